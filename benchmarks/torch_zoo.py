"""Models of torchvision, timm, transformers, ultralytics and torch itself, of random weights, to be exported.

Those of transformers have small configurations. A model comes with the arguments that it is exported with.
"""

# The tables have a model a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .torch_zoo_modules import make_modules
from .torch_zoo_shrunk import make_shrunk
from .torch_zoo_transformers import make_transformers

TORCHVISION = {
    "resnet18": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "efficientnet_b0": 64, "densenet121": 64,
    "squeezenet1_1": 64, "shufflenet_v2_x0_5": 64, "googlenet": 64, "inception_v3": 128, "alexnet": 64, "vgg11": 32,
    "regnet_y_400mf": 64, "convnext_tiny": 64, "swin_t": 64, "swin_v2_t": 64, "vit_b_32": 224, "maxvit_t": 224,
    "mnasnet0_5": 64, "wide_resnet50_2": 64, "resnext50_32x4d": 64, "efficientnet_v2_s": 64, "mobilenet_v3_large": 64,
    "regnet_x_400mf": 64, "efficientnet_b1": 64, "shufflenet_v2_x1_0": 64, "regnet_y_800mf": 64, "mnasnet1_0": 64, "vgg11_bn": 32, "resnet34": 64,
}  # fmt: skip
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large", "deeplabv3_resnet50")
DETECTION = (
    "ssdlite320_mobilenet_v3_large",
    "retinanet_resnet50_fpn",
    "fcos_resnet50_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "maskrcnn_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "retinanet_resnet50_fpn_v2",
    "ssd300_vgg16",
)
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "mvit_v2_s", "s3d", "swin3d_t", "mvit_v1_b")
ULTRALYTICS = (
    "yolov8n",
    "yolov8n-seg",
    "yolov8n-pose",
    "yolov8n-obb",
    "yolov8n-cls",
    "yolo11n",
    "yolo12n",
    "yolov5nu",
    "yolov9t",
    "yolov10n",
    "rtdetr-l",
    "yolov3-tiny",
    "yolov6n",
    "yolov8n-ghost",
    "yolo11n-seg",
    "yolo11n-obb",
    "yolo12n-pose",
    "yolo26n",
    "yolo26n-seg",
)
TIMM = {
    "resnet10t": 64, "mixer_s32_224": 224, "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224, "convnext_atto": 64, "mobilenetv4_conv_small": 64, "efficientformer_l1": 224,
    "levit_128s": 224, "ghostnet_100": 64, "hrnet_w18_small": 64, "res2net50_26w_4s": 64, "dpn68": 64,
    "poolformer_s12": 64, "mobilevit_xxs": 64, "edgenext_xx_small": 64, "fastvit_t8": 64, "repvgg_a0": 64,
    "gmlp_s16_224": 224, "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224, "coat_lite_tiny": 224, "maxvit_rmlp_pico_rw_256": 256,
    "eva02_tiny_patch14_224": 224, "beit_base_patch16_224": 224, "tf_efficientnet_lite0": 64, "nfnet_l0": 64, "volo_d1_224": 224,
    "coatnet_0_rw_224": 224, "regnety_002": 64, "regnetv_040": 64, "rdnet_tiny": 64, "repvit_m0_9": 64, "tiny_vit_5m_224": 224, "efficientvit_b0": 64,
    "efficientvit_m0": 224, "davit_tiny": 224, "gcvit_xxtiny": 224, "focalnet_tiny_srf": 224, "pvt_v2_b0": 224, "twins_pcpvt_small": 224,
    "twins_svt_small": 224, "crossvit_9_240": 240, "convit_tiny": 224, "pit_ti_224": 224, "visformer_tiny": 224, "inception_next_atto": 64,
    "hiera_tiny_224": 224, "nextvit_small": 224, "resnest14d": 64, "skresnet18": 64, "halonet26t": 256, "rexnet_100": 64, "hgnetv2_b0": 64,
    "lambda_resnet26t": 256, "botnet26t_256": 256, "resmlp_12_224": 224, "sequencer2d_s": 224, "mvitv2_tiny": 224, "nest_tiny": 224, "vovnet39a": 64,
    "dla34": 64, "starnet_s1": 64, "tnt_s_patch16_224": 224, "mambaout_femto": 64, "xception41": 64, "vitamin_small_224": 224, "swiftformer_xs": 224,
    "shvit_s1": 224, "csatv2": 512, "convnextv2_atto": 64, "swinv2_tiny_window8_256": 256, "swinv2_cr_tiny_224": 224, "mobilenetv4_hybrid_medium": 224,
    "mobilenetv3_small_050": 64, "efficientnetv2_rw_t": 64, "vit_small_patch14_dinov2": 518, "vit_so150m_patch16_reg4_gap_256": 256,
    "deit3_small_patch16_224": 224, "beitv2_base_patch16_224": 224, "mobileone_s0": 64, "mobilevitv2_050": 256, "ghostnetv2_100": 64, "ese_vovnet19b_dw": 64,
    "efficientformerv2_s0": 224, "convmixer_768_32": 64, "fbnetc_100": 64, "hardcorenas_a": 64, "tresnet_m": 64, "inception_v4": 128, "resnetv2_50": 64,
    "naflexvit_base_patch16_gap": 384, "vit_tiny_patch16_dinov3_qkvb": 256, "edgenext_small": 256, "caformer_s18": 224, "levit_conv_128s": 224,
    "bat_resnext26ts": 128, "gcresnext26ts": 64, "cpubone_nano": 64, "cs3darknet_focus_s": 64, "cspnext_tiny": 64, "fasternet_t0": 64, "iformer_t": 224,
    "lcnetv2_small": 64, "lowformer_b0": 64, "efficientvim_m1": 224, "qwen3_vit_88m": 224, "selecsls42": 64, "legacy_seresnet18": 64, "repghostnet_050": 64,
    "test_vit_relpos": 160, "dpn48b": 64, "gmixer_12_224": 224, "hgnet_tiny": 64, "gernet_m": 64, "eca_halonext26ts": 256, "hieradet_small": 224,
    "vit_small_r26_s32_224": 224, "efficientvit_l1": 64,
}  # fmt: skip


def list_models() -> dict[str, Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]]:
    """All models by name, each made when asked for."""
    import timm
    import torchvision

    def vision(name: str, size: int) -> Callable[[], Any]:
        extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        return lambda: (getattr(torchvision.models, name)(weights=None, **extra), (torch.randn(2, 3, size, size),), {})

    def segmentation(name: str) -> Callable[[], Any]:
        made = getattr(torchvision.models.segmentation, name)
        return lambda: (made(weights=None, weights_backbone=None), (torch.randn(2, 3, 64, 64),), {})

    def detection(name: str) -> Callable[[], Any]:
        made = getattr(torchvision.models.detection, name)
        extra = {} if name.startswith("ssd") else {"min_size": 128, "max_size": 192}
        return lambda: (
            made(weights=None, weights_backbone=None, **extra),
            ([torch.rand(3, 128, 160)],),
            {},
        )

    def video(name: str) -> Callable[[], Any]:
        made = getattr(torchvision.models.video, name)
        large = name.startswith(("mvit", "swin"))
        clip = (1, 3, 16, 224, 224) if large else (1, 3, 16, 64, 64)
        return lambda: (made(weights=None), (torch.randn(clip),), {})

    def yolo(name: str) -> Callable[[], Any]:
        def make() -> Any:
            import ultralytics

            kind = ultralytics.RTDETR if name.startswith("rtdetr") else ultralytics.YOLO
            model = kind(f"{name}.yaml").model.eval()
            model(torch.zeros(1, 3, 64, 64))  # anchors are made by the first run
            return model, (torch.rand(1, 3, 64, 64),), {}

        return make

    def image(name: str, size: int) -> Callable[[], Any]:
        return lambda: (timm.create_model(name, pretrained=False), (torch.randn(2, 3, size, size),), {})

    return {
        **{f"tv.{name}": vision(name, size) for name, size in TORCHVISION.items()},
        **{f"tv.{name}": segmentation(name) for name in SEGMENTATION},
        **{f"module.{name}": make for name, make in make_modules().items()},
        **{f"hf.{name}": make for name, make in make_transformers().items()},
        **make_shrunk(),
        **{f"timm.{name}": image(name, size) for name, size in TIMM.items()},
        **{f"yolo.{name}": yolo(name) for name in ULTRALYTICS},
        **{f"tv.{name}": video(name) for name in VIDEO},
        **{f"tv.{name}": detection(name) for name in DETECTION},
        "tv.raft_small": lambda: (
            torchvision.models.optical_flow.raft_small(weights=None),
            (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128)),
            {"num_flow_updates": 2},
        ),
    }

"""Published networks of torch, small and with random weights, by litert-torch: of real numbers and quantized.

    python wild_published.py FOLDER --count 60 --seed 1

Networks take turns, and so do kinds. Runs in an environment with litert-torch, torchvision, timm, transformers and
ai-edge-quantizer.
"""

# The table has several networks a line.
# ruff: noqa: E402, E501
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import torch

try:
    import torchvision
except RuntimeError:  # built for another torch it finds no operators of its own, but wants these to be named
    TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        TORCHVISION.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

from wild_children import Made, read_arguments, write_each
from wild_torch import quantize

sys.path[:] = [
    one for one in sys.path if Path(one or ".").resolve() != Path(__file__).resolve().parent
]  # kernels.py is ours

import litert_torch
import timm
import transformers
from ai_edge_quantizer import quantizer, recipe
from torch import nn

RECIPES = (
    "dynamic_wi8_afp32",
    "static_wi8_ai8",
    "weight_only_wi4_afp32",
    "static_wi8_ai16",
    "dynamic_wi4b32_afp32",
    "weight_only_wi8_afp32",
)
KINDS = ("float32", *RECIPES[:2], "PT2E int8", *RECIPES[2:], "PT2E dynamic range", "float32")
#: what small networks of transformers are made of
SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50,
    "image_size": 32, "patch_size": 8, "num_key_value_heads": 2, "max_position_embeddings": 32, "head_dim": 8,
}  # fmt: skip


class Last(nn.Module):
    """A network of transformers whose result is its hidden state or its scores."""

    def __init__(self, inner: nn.Module, entry: str) -> None:
        super().__init__()
        self.inner, self.entry = inner, entry

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        more = {"use_cache": False} if hasattr(self.inner.config, "use_cache") else {}
        return self.inner(**{self.entry: x}, return_dict=False, **more)[0]


def image(extent: int) -> torch.Tensor:
    return torch.rand(1, 3, extent, extent) * 2 - 1


def of_timm(name: str, extent: int, **more: Any) -> Callable[[], Any]:
    return lambda: (timm.create_model(name, pretrained=False, num_classes=10, **more), (image(extent),))


def of_torchvision(name: str, extent: int, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        model = torchvision.models.get_model(name, weights=None, **more)
        return (Chosen(model) if "lraspp" in name else model), (image(extent),)

    return make


class Chosen(nn.Module):
    """The segmentation of a network that yields several results."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)["out"]


def of_transformers(
    kind: str, name: str, entry: str, shape: tuple[int, ...] = (1, 10), **more: Any
) -> Callable[[], Any]:
    def make() -> Any:
        made = getattr(transformers, f"{kind}Config")()
        for key, value in {**SMALL, **more}.items():
            if hasattr(made, key) or key in more:
                setattr(made, key, value)
        made._attn_implementation = "eager" if kind in ("MobileViT", "Mamba") else "sdpa"
        given = torch.randint(0, 10, shape) if entry == "input_ids" else torch.rand(shape) * 2 - 1
        return Last(getattr(transformers, name)(made), entry), (given,)

    return make


IMAGES = ("pixel_values", (1, 3, 32, 32))
NETWORKS: dict[str, Callable[[], Any]] = {
    **{name: of_timm(name, 64) for name in (
        "mobilenetv4_conv_small_050", "efficientvit_b0", "repvit_m0_9", "lcnet_050", "tinynet_e", "edgenext_xx_small", "mobilevit_xxs", "mobilevitv2_050", "convnextv2_atto",
        "pvt_v2_b0", "regnety_002", "starnet_s050", "repghostnet_050", "mixnet_s", "hgnetv2_b0", "inception_next_atto", "mambaout_femto", "fasternet_t0", "ghostnet_050", "hardcorenas_a",
    )},
    **{name: of_timm(name, 64, **more) for name, more in {
        "xcit_nano_12_p16_224": {"img_size": 64}, "deit_tiny_patch16_224": {"img_size": 64, "depth": 2}, "gmlp_ti16_224": {"img_size": 64, "num_blocks": 2}, "vit_tiny_patch16_224": {"img_size": 64, "depth": 2},
        "mixer_s32_224": {"img_size": 64, "num_blocks": 2}, "swinv2_cr_tiny_224": {"img_size": 64, "depths": (1, 1), "embed_dim": 24, "num_heads": (2, 4), "window_size": 4},
        "eva02_tiny_patch14_224": {"img_size": 56, "depth": 2}, "levit_128s": {"img_size": 64},
    }.items()},
    **{name: of_torchvision(name, 64) for name in ("shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5")},
    "lraspp_mobilenet_v3_large": of_torchvision("lraspp_mobilenet_v3_large", 64, weights_backbone=None),
    "bert": of_transformers("Bert", "BertModel", "input_ids"), "distilbert": of_transformers("DistilBert", "DistilBertModel", "input_ids", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "albert": of_transformers("Albert", "AlbertModel", "input_ids", embedding_size=16), "electra": of_transformers("Electra", "ElectraModel", "input_ids", embedding_size=16),
    "gpt2": of_transformers("GPT2", "GPT2LMHeadModel", "input_ids", n_embd=32, n_layer=2, n_head=4, n_positions=32), "opt": of_transformers("OPT", "OPTForCausalLM", "input_ids", ffn_dim=64, word_embed_proj_dim=32),
    "gpt_neox": of_transformers("GPTNeoX", "GPTNeoXForCausalLM", "input_ids"), "bloom": of_transformers("Bloom", "BloomForCausalLM", "input_ids", n_layer=2, n_head=4),
    "llama": of_transformers("Llama", "LlamaForCausalLM", "input_ids"), "qwen3": of_transformers("Qwen3", "Qwen3ForCausalLM", "input_ids"), "phi": of_transformers("Phi", "PhiForCausalLM", "input_ids"),
    "mistral": of_transformers("Mistral", "MistralForCausalLM", "input_ids"), "t5": of_transformers("T5", "T5EncoderModel", "input_ids", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
    "vit": of_transformers("ViT", "ViTModel", *IMAGES), "clip_vision": of_transformers("CLIPVision", "CLIPVisionModel", *IMAGES), "dinov2": of_transformers("Dinov2", "Dinov2Model", *IMAGES),
    "segformer": of_transformers("Segformer", "SegformerForSemanticSegmentation", *IMAGES, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16, num_attention_heads=[1, 2, 2, 4]),
    "yolos": of_transformers("Yolos", "YolosModel", *IMAGES, image_size=[32, 32], num_detection_tokens=5), "poolformer": of_transformers("PoolFormer", "PoolFormerModel", *IMAGES, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    "mobilevit": of_transformers("MobileViT", "MobileViTModel", "pixel_values", (1, 3, 64, 64), image_size=64), "squeezebert": of_transformers("SqueezeBert", "SqueezeBertModel", "input_ids", embedding_size=32),
    "audio": of_transformers("AST", "ASTModel", "input_values", (1, 32, 16), max_length=32, num_mel_bins=16, patch_size=4, frequency_stride=3, time_stride=3),
    "wav2vec2": of_transformers("Wav2Vec2", "Wav2Vec2Model", "input_values", (1, 800), conv_dim=[16, 16], conv_kernel=[10, 4], conv_stride=[5, 4], num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, num_feat_extract_layers=2),
    "nystromformer": of_transformers("Nystromformer", "NystromformerModel", "input_ids", num_landmarks=5, segment_means_seq_len=10), "xlnet": of_transformers("XLNet", "XLNetModel", "input_ids", d_model=32, n_layer=2, n_head=4, d_inner=64, d_head=8),
    "patchtst": of_transformers("PatchTST", "PatchTSTForPrediction", "past_values", (1, 32, 2), d_model=16, ffn_dim=32, context_length=32, patch_length=8, patch_stride=4, prediction_length=6, num_input_channels=2),
    "gemma2": of_transformers("Gemma2", "Gemma2ForCausalLM", "input_ids"), "olmo2": of_transformers("Olmo2", "Olmo2ForCausalLM", "input_ids"),
}  # fmt: skip


def recalibrate(content: bytes, name: str, inputs: tuple[torch.Tensor, ...]) -> bytes:
    """A model of real numbers, quantized by a recipe of ai-edge-quantizer after four random inputs."""
    made = quantizer.Quantizer(bytearray(content), getattr(recipe, name)())
    ranges = None
    if made.need_calibration:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_content=content)
        (signature,) = interpreter.get_signature_list()
        keys = list(interpreter.get_signature_runner(signature).get_input_details())
        drawn = [[torch.rand_like(one) * 2 - 1 if one.is_floating_point() else one for one in inputs] for _ in range(4)]
        ranges = made.calibrate(
            {signature: [{key: one.numpy() for key, one in zip(keys, given, strict=True)} for given in drawn]}
        )
    return bytes(made.quantize(ranges, enable_progress_report=False).quantized_model)


def make(name: str, seed: int, kind: str) -> Made:
    """A network of torch as a model of TensorFlow Lite."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    model, inputs = NETWORKS[name]()
    model = model.eval()
    for module in model.modules():  # running means begin as zeros and ones, which say nothing
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    path = Path(f"{os.getpid()}.exported")
    try:
        if kind.startswith("PT2E"):
            made = litert_torch.convert(quantize(model, inputs, "dynamic" in kind), inputs, strict_export=False)
        else:
            made = litert_torch.convert(model, inputs, strict_export=False)
        made.export(str(path))
        content = path.read_bytes()
        return Made(recalibrate(content, kind, inputs) if kind in RECIPES else content)
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    asked = read_arguments(60)
    names = list(reversed(NETWORKS))  # those that take least time first
    makers = {}
    for number in range(asked.count):
        turn, at = divmod(number, len(names))
        seed, kind = asked.seed * 1000 + number, KINDS[(at + 3 * turn + asked.seed) % len(KINDS)]
        makers[f"{kind.replace(' ', '_')}/{names[at]}-{seed}.tflite"] = partial(make, names[at], seed, kind)
    write_each(asked.folder, makers, 400)


if __name__ == "__main__":
    main()

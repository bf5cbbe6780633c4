"""Export models of torchvision, timm and transformers, convert them, and compare with what torch computes.

    python -m nnrewrite.benchmarks.torch_models [NAME ...] [--peer] [--decomposed] [--dynamic]

Prints for each model the seconds and nodes of the conversion and how far its results are from torch's; with --peer,
seconds and nodes of torch.onnx.export(dynamo=True, optimize=True) from the same program, and latency beside latency.
Models have random weights, those of transformers small configurations.
"""

from __future__ import annotations

import argparse
import io
import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnxruntime
import torch
from torch.utils import _pytree

#: how far results may lie apart, of the largest number among them
TOLERANCE = 1e-4
IMAGE = (1, 3, 64, 64)
TORCHVISION = {
    "resnet18": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "efficientnet_b0": 64, "densenet121": 64,
    "squeezenet1_1": 64, "shufflenet_v2_x0_5": 64, "googlenet": 64, "inception_v3": 128, "alexnet": 64, "vgg11": 32,
    "regnet_y_400mf": 64, "convnext_tiny": 64, "swin_t": 64, "swin_v2_t": 64, "vit_b_32": 224, "maxvit_t": 224,
    "mnasnet0_5": 64, "wide_resnet50_2": 64,
}  # fmt: skip
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")
TIMM = {
    "resnet10t": 64, "mixer_s32_224": 224, "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224, "convnext_atto": 64, "mobilenetv4_conv_small": 64, "efficientformer_l1": 224,
    "levit_128s": 224, "ghostnet_100": 64, "hrnet_w18_small": 64, "res2net50_26w_4s": 64, "dpn68": 64,
    "poolformer_s12": 64, "mobilevit_xxs": 64, "edgenext_xx_small": 64, "fastvit_t8": 64, "repvgg_a0": 64,
    "gmlp_s16_224": 224, "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224, "coat_lite_tiny": 224, "maxvit_rmlp_pico_rw_256": 256,  # noqa: E501
    "eva02_tiny_patch14_224": 224, "beit_base_patch16_224": 224, "tf_efficientnet_lite0": 64, "nfnet_l0": 64, "volo_d1_224": 224,  # noqa: E501
}  # fmt: skip


def make_transformers() -> dict[str, Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]]:
    """Small models of transformers by name, each with the arguments that it is exported with."""
    import transformers as t

    ids = torch.randint(3, 90, (2, 12))
    mask = torch.ones(2, 12, dtype=torch.int64)
    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 99,
    }
    pixels = torch.randn(2, 3, 32, 32)
    vision = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
    }
    bert = {"input_ids": ids, "attention_mask": mask}

    def text(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            model = getattr(t, kind)(getattr(t, config)(**{**small, **changes}))
            return model, (), dict(bert)

        return make

    def causal(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            model = getattr(t, kind)(getattr(t, config)(**{**small, **changes}))
            return model, (), {**bert, "use_cache": False}

        return make

    def image(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            return getattr(t, kind)(getattr(t, config)(**{**vision, **changes})), (pixels,), {}

        return make

    def t5() -> Any:
        config = t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        return (
            t.T5ForConditionalGeneration(config),
            (),
            {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False},
        )

    def bart() -> Any:
        config = t.BartConfig(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        )  # fmt: skip
        return t.BartModel(config), (), {"input_ids": ids, "use_cache": False}

    def whisper() -> Any:
        config = t.WhisperConfig(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50, num_mel_bins=16,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        )  # fmt: skip
        return t.WhisperModel(config), (torch.randn(1, 16, 100),), {"decoder_input_ids": ids[:1], "use_cache": False}

    def clip() -> Any:
        config = t.CLIPConfig(
            text_config={**small, "max_position_embeddings": 64, "projection_dim": 16, "eos_token_id": 2},
            vision_config={**vision, "projection_dim": 16}, projection_dim=16,
        )  # fmt: skip
        return t.CLIPModel(config), (), {**bert, "pixel_values": pixels}

    def wav2vec() -> Any:
        config = t.Wav2Vec2Config(
            **small, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        )  # fmt: skip
        return t.Wav2Vec2Model(config), (torch.randn(1, 1000),), {}

    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64}
    grouped = {"num_key_value_heads": 2, "max_position_embeddings": 64}
    return {
        "bert": text("BertModel", "BertConfig"),
        "roberta": text("RobertaModel", "RobertaConfig"),
        "electra": text("ElectraModel", "ElectraConfig", embedding_size=16),
        "albert": text("AlbertModel", "AlbertConfig", embedding_size=16),
        "mobilebert": text("MobileBertModel", "MobileBertConfig", embedding_size=32, intra_bottleneck_size=32),
        "deberta_v2": text("DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "distilbert": text("DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        "mpnet": text("MPNetModel", "MPNetConfig"),
        "modernbert": text("ModernBertModel", "ModernBertConfig", pad_token_id=0),
        "gpt2": causal("GPT2LMHeadModel", "GPT2Config", **gpt2),
        "gpt_neox": causal("GPTNeoXForCausalLM", "GPTNeoXConfig"),
        "opt": causal("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=64),
        "llama": causal("LlamaForCausalLM", "LlamaConfig", **grouped),
        "mistral": causal("MistralForCausalLM", "MistralConfig", **grouped),
        "qwen2": causal("Qwen2ForCausalLM", "Qwen2Config", **grouped),
        "qwen3": causal("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **grouped),
        "gemma": causal("GemmaForCausalLM", "GemmaConfig", head_dim=8, **grouped),
        "phi": causal("PhiForCausalLM", "PhiConfig", **grouped),
        "falcon": causal("FalconForCausalLM", "FalconConfig"),
        "mamba": causal("MambaForCausalLM", "MambaConfig", state_size=8),
        "bloom": causal("BloomForCausalLM", "BloomConfig", n_layer=2, n_head=4),
        "t5": t5, "bart": bart, "whisper": whisper, "clip": clip, "wav2vec2": wav2vec,
        "vit": image("ViTModel", "ViTConfig"),
        "deit": image("DeiTModel", "DeiTConfig"),
        "beit": image("BeitModel", "BeitConfig"),
        "dinov2": image("Dinov2Model", "Dinov2Config"),
        "swin": image("SwinModel", "SwinConfig", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=2),  # noqa: E501
        "segformer": image("SegformerModel", "SegformerConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]),  # noqa: E501
        "convnext": image("ConvNextModel", "ConvNextConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], patch_size=4),  # noqa: E501
        "resnet": image("ResNetModel", "ResNetConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], embedding_size=8),  # noqa: E501
        "mobilevit": image("MobileViTModel", "MobileViTConfig", image_size=64, patch_size=2),
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

    def image(name: str, size: int) -> Callable[[], Any]:
        return lambda: (timm.create_model(name, pretrained=False), (torch.randn(2, 3, size, size),), {})

    return {
        **{f"tv.{name}": vision(name, size) for name, size in TORCHVISION.items()},
        **{f"tv.{name}": segmentation(name) for name in SEGMENTATION},
        **{f"hf.{name}": make for name, make in make_transformers().items()},
        **{f"timm.{name}": image(name, size) for name, size in TIMM.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--decomposed", action="store_true")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--keep", help="a folder to save the programs in")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    models = list_models()
    wanted = [name for name in models if not asked.names or any(name.startswith(one) for one in asked.names)]
    equal = 0
    print(
        f"{'model':32s} {'export s':>8s} {'our s':>7s} {'nodes':>6s} {'difference':>10s}  {'peer s':>7s} {'nodes':>6s} {'ms':>7s} {'peer ms':>7s}"  # noqa: E501
    )
    for name in wanted:
        line, right = judge(name, models[name], asked)
        equal += right
        print(f"{name:32s} {line}", flush=True)
    print(f"{equal} of {len(wanted)} equal")


def judge(name: str, make: Callable[[], Any], asked: argparse.Namespace) -> tuple[str, bool]:
    """The line of a model, and whether its results are torch's."""
    torch.manual_seed(0)
    try:
        model, positional, named = make()
        model = model.eval()
        shapes = None
        if asked.dynamic:
            batch = torch.export.Dim("batch", min=1, max=64)
            tensors = {**{f"{i}": one for i, one in enumerate(positional)}, **named}
            dims = {key: {0: batch} if isinstance(one, torch.Tensor) else None for key, one in tensors.items()}
            shapes = (tuple(dims[f"{i}"] for i in range(len(positional))), {key: dims[key] for key in named})
            shapes = shapes[0] if not named else None if positional else {key: dims[key] for key in named}
        with torch.no_grad():
            expected = _pytree.tree_leaves(model(*positional, **named))
        began = time.perf_counter()
        program = torch.export.export(model, positional, named, dynamic_shapes=shapes)
        if asked.decomposed:
            program = program.run_decompositions()
        exported = time.perf_counter() - began
    except Exception as error:
        return f"not exported: {type(error).__name__} {' '.join(str(error).split())[:200]}", False
    stream = io.BytesIO()
    torch.export.save(program, stream)
    if asked.keep:
        Path(asked.keep, f"{name}.pt2").write_bytes(stream.getvalue())
    began = time.perf_counter()
    try:
        converted = nnrewrite.rewrite(stream.getvalue())
        ours = converted.model
    except nnrewrite.RewriteError as error:
        return f"{exported:8.2f} refused: {' '.join(str(error).split())[:600]}", False
    seconds = time.perf_counter() - began
    feeds = [one for one in _pytree.tree_leaves((positional, named)) if isinstance(one, torch.Tensor)]
    try:
        session = open_session(ours)
        results = session.run(None, feed(session, feeds))
    except Exception as error:
        return f"{exported:8.2f} {seconds:7.2f} not run: {' '.join(str(error).split())[:400]}", False
    apart = difference(results, [one for one in expected if isinstance(one, torch.Tensor)])
    line = f"{exported:8.2f} {seconds:7.2f} {len(ours.graph.node):6d} {apart:10.2e}"
    if asked.peer:
        line += compare_peer(program, session, feeds)
    return line, apart <= TOLERANCE


def open_session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def feed(session: Any, tensors: list[Any]) -> dict[str, Any]:
    return {
        one.name: tensor.detach().contiguous().numpy()
        for one, tensor in zip(session.get_inputs(), tensors, strict=False)
    }


def compare_peer(program: Any, session: Any, tensors: list[Any]) -> str:
    """Seconds and nodes of torch's own exporter from the same program, and the latency of both."""
    began = time.perf_counter()
    try:
        theirs = torch.onnx.export(program, (), dynamo=True, optimize=True, verbose=False).model_proto
    except Exception as error:
        return f"  peer: {type(error).__name__}"
    seconds = time.perf_counter() - began
    other = open_session(theirs)
    return (
        f"  {seconds:7.2f} {len(theirs.graph.node):6d} {latency(session, tensors):7.2f} {latency(other, tensors):7.2f}"
    )


def latency(session: Any, tensors: list[Any]) -> float:
    """The least of some runs, in milliseconds."""
    feeds = feed(session, tensors)
    times = []
    for _ in range(12):
        began = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def difference(results: list[Any], expected: list[Any]) -> float:
    """The largest distance from torch's results, as a fraction of the largest number of each; infinite for others."""
    if len(results) < len(expected):
        return float("inf")
    worst = 0.0
    for found, wanted in zip(results, expected, strict=False):
        right = wanted.detach().numpy()
        if found.shape != right.shape:
            return float("inf")
        scale = max(float(np.abs(right[np.isfinite(right)]).max(initial=0.0)), 1e-6)
        gap = np.where(found == right, 0.0, np.abs(found.astype(np.float64) - right.astype(np.float64)))
        worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0)) / scale)
    return worst


if __name__ == "__main__":
    main()

"""Architectures of transformers, each in a configuration made small by the names of its settings, to be exported.

Which of them can be made so differs by architecture: those that cannot are told apart by what they raise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

#: the most parameters that a model is made with
MOST = 30_000_000
_WIDTHS = dict.fromkeys(("hidden_size", "d_model", "dim", "n_embd", "embed_dim", "encoder_hidden_size"), 32)
_DEPTHS = dict.fromkeys(
    ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "depth"), 2
)
_HEADS = dict.fromkeys(
    (
        "num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads",
        "attention_heads",
    ), 4
)  # fmt: skip
_INNER = dict.fromkeys(
    (
        "intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim", "mlp_dim",
        "moe_intermediate_size", "shared_expert_intermediate_size",
    ), 64
)  # fmt: skip
_OTHERS = {
    "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "vocab_size": 99, "max_position_embeddings": 64,
    "image_size": 32, "patch_size": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "projection_dim": 16, "num_queries": 10, "num_mel_bins": 16, "max_source_positions": 50,
    "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "context_length": 32, "prediction_length": 4,
    "use_timm_backbone": False, "use_pretrained_backbone": False, "mamba_d_state": 8, "mamba_n_heads": 8,
    "mamba_d_head": 8, "first_k_dense_replace": 1, "encoder_vocab_size": 99, "type_vocab_size": 2,
}  # fmt: skip
#: settings and what they are in every small configuration
SETTINGS = {**_WIDTHS, **_DEPTHS, **_HEADS, **_INNER, **_OTHERS}


def list_architectures() -> list[str]:
    """The types of all models that transformers has a base model of."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return list(MODEL_MAPPING_NAMES)


def make_shrunk() -> dict[str, Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]]:
    """The maker of a small model of each architecture, with the arguments that it is exported with."""
    return {f"small.{kind}": lambda kind=kind: make_small(kind) for kind in list_architectures()}


def make_small(kind: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A small model of a type and its arguments. Raises ValueError for one that is not small."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = shrink(CONFIG_MAPPING[kind])
    with torch.device("meta"):
        size = sum(one.numel() for one in AutoModel.from_config(config).parameters())
    if size > MOST:
        raise ValueError(f"{size} parameters")
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    return model, (), make_arguments(model, config)


def shrink(kind: Any) -> Any:
    """A configuration of a class, with the settings that it knows small, and those inside it too."""
    known = inspect.signature(kind.__init__).parameters.keys() | getattr(kind, "__annotations__", {}).keys()
    inner = {
        name: shrink(one).to_dict()
        for name, one in getattr(kind, "sub_configs", {}).items()
        if inspect.isclass(one) and not inspect.isabstract(one) and one.model_type
    }
    return kind(**{name: value for name, value in SETTINGS.items() if name in known}, **inner)


def make_arguments(model: Any, config: Any) -> dict[str, Any]:
    """What a model takes, by the names of its parameters."""
    names = inspect.signature(model.forward).parameters
    ids, inner = torch.randint(3, 90, (2, 12)), getattr(config, "vision_config", config)
    size = getattr(inner, "image_size", None) or 64
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = getattr(inner, "num_channels", 3)
    offered = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "decoder_input_ids": ids,
        "pixel_values": torch.randn(2, channels, height, width),
        "input_values": torch.randn(2, 1600),
        "input_features": torch.randn(2, getattr(config, "num_mel_bins", 16), 100),
        "past_values": torch.randn(2, getattr(config, "context_length", 32), getattr(config, "num_input_channels", 3)),
        "use_cache": False,
    }
    if "input_ids" not in names:
        offered.pop("attention_mask")
    return {name: one for name, one in offered.items() if name in names}

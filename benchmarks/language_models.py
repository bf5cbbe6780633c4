"""Small language models with random weights, as the model builder of onnxruntime-genai exports them.

    python -P benchmarks/language_models.py FOLDER

Needs torch, transformers, tokenizers and onnxruntime-genai, and none of nnrewrite. Writes for each architecture one
model of single precision and one with weights of 4 bits, which the runtime multiplies in single precision too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import torch
import transformers
from tokenizers import Tokenizer, models

COMMON = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 2,
}  # fmt: skip
ARCHITECTURES = {
    "Llama": {}, "Mistral": {"sliding_window": 16}, "Qwen2": {}, "Qwen3": {"head_dim": 16}, "Gemma": {"head_dim": 16},
    "Olmo": {}, "Granite": {}, "SmolLM3": {},
}  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "<eos>": 2}, unk_token="a"))
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as made:
        for name, own in ARCHITECTURES.items():
            source = Path(made) / name
            config = getattr(transformers, f"{name}Config")(**COMMON, **own)
            getattr(transformers, f"{name}ForCausalLM")(config).eval().save_pretrained(source)
            tokens = {"eos_token": "<eos>", "bos_token": "b", "pad_token": "<eos>"}
            transformers.PreTrainedTokenizerFast(tokenizer_object=words, **tokens).save_pretrained(source)
            for precision in ("fp32", "int4"):
                command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-e", "cpu"]
                command += ["-o", folder / f"{name}_{precision}", "-p", precision, "-c", Path(made) / "cache"]
                command += ["--extra_options", "int4_block_size=32"]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                keep_precise(folder / f"{name}_{precision}" / "model.onnx")


def keep_precise(path: Path) -> None:
    """Let products by weights of few bits take what they multiply as it is, and not in 8 bits."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 0
    onnx.save(model, path)


if __name__ == "__main__":
    main()

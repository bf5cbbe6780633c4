"""Convert models of torch to TensorFlow Lite with nnrewrite and with litert-torch, and compare what they make.

    python -m nnrewrite.benchmarks.torch_litert [NAME ...]

Needs an environment with litert-torch, transformers, onnx and onnx_ir. Prints for each model the seconds of processor
time (of litert-torch without those of a torch.export.export, which stand apart), operators, TRANSPOSEs and the
difference from torch's results of both, our latency as a fraction of theirs, in two interpreters of each, and theirs in
the second as a fraction of the first.
"""

from __future__ import annotations

import io
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import litert_torch
import nnrewrite
import torch
from ai_edge_litert.interpreter import Interpreter
from torch import nn
from torch.utils import _pytree

from .torch_models import difference, measure_latency
from .torch_zoo_modules import make_modules
from .torch_zoo_transformers import make_transformers

#: models of transformers and of torch's own layers that are compared where no names are given
NAMES = (
    "net", "separable", "lstm", "transformer_encoder", "bert", "roberta", "mobilebert", "vit", "segformer",
    "convnextv2", "regnet", "mobilenet_v2", "gpt2", "qwen3", "mixtral",
)  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    models = {"net": make_net, "separable": make_separable, **make_modules(), **make_transformers()}
    head = f"{'model':22s} {'export s':>8s} {'s':>6s} {'ops':>5s} {'transposes':>10s} {'difference':>10s}"
    print(f"{head} {'peer s':>7s} {'ops':>5s} {'transposes':>10s} {'difference':>10s} {'latency':>7s} {'control':>7s}")
    for name in sys.argv[1:] or NAMES:
        print(f"{name:22s} {judge(models[name])}", flush=True)


def make_net() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A small residual network for images."""

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            layers = [
                nn.Conv2d(width, width, 3, padding=1),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1),
            ]
            self.body = nn.Sequential(*layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + self.body(x))

    layers = [nn.Conv2d(3, 32, 3, 2, 1), Block(32), nn.MaxPool2d(2), Block(32), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(32, 10)), (torch.randn(1, 3, 64, 64),), {}


def make_separable() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Separable convolutions, a resize and a softmax over channels."""
    layers = [
        nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 32, 1),
        nn.Hardswish(), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(32, 5, 1), nn.Softmax(1),
    ]  # fmt: skip
    return nn.Sequential(*layers), (torch.randn(1, 3, 64, 64),), {}


def judge(make: Callable[[], Any]) -> str:
    """The line of a model."""
    torch.manual_seed(0)
    try:
        model, positional, named = make()
        model = model.eval()
        with torch.no_grad():
            leaves = _pytree.tree_leaves(model(*positional, **named))
        began = time.process_time()
        program = torch.export.export(model, positional, named)
        exported = time.process_time() - began
    except Exception as error:  # what the versions at hand cannot make or export
        return f"not exported: {type(error).__name__} {' '.join(str(error).split())[:200]}"
    expected = [one for one in leaves if isinstance(one, torch.Tensor)]
    tensors = [one for one in _pytree.tree_leaves((positional, named)) if isinstance(one, torch.Tensor)]
    with TemporaryDirectory() as folder:
        line, found = f"{exported:8.2f}", []
        for convert in (convert_ours, convert_theirs):
            path = Path(folder, f"{convert.__name__}.tflite")
            began = time.process_time()
            try:
                convert(model, program, positional, named, path)
                seconds = time.process_time() - began - (exported if convert is convert_theirs else 0)
                one = open_interpreter(path, tensors)
                names = [each["op_name"] for each in one._get_ops_details() if each["op_name"] != "DELEGATE"]
                apart = difference(run(one), expected)
                line += f" {seconds:7.2f} {len(names):5d} {names.count('TRANSPOSE'):10d} {apart:10.2e}"
                found.append(one)
            except Exception as error:
                line += f" {type(error).__name__} {' '.join(str(error).split())[:120]}"
        if len(found) == 2:
            # What was opened first is slower: ours is the first and the last.
            more = [
                open_interpreter(Path(folder, f"{each.__name__}.tflite"), tensors)
                for each in (convert_theirs, convert_ours)
            ]
            first, peer, again, last = measure_latency([one.invoke for one in (*found, *more)])
            line += f" {(first + last) / (peer + again):7.3f} {again / peer:7.3f}"
    return line


def convert_ours(model: Any, program: Any, positional: Any, named: Any, path: Path) -> None:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    nnrewrite.rewrite(stream.getvalue(), rules=("aten2onnx", "onnx2tflite")).save(path)


def convert_theirs(model: Any, program: Any, positional: Any, named: Any, path: Path) -> None:
    litert_torch.convert(model, positional or None, sample_kwargs=named or None).export(str(path))


def open_interpreter(path: Path, tensors: list[torch.Tensor]) -> Any:
    """An interpreter with its inputs set: those of one shape and type in the order that names or places give."""
    one = Interpreter(str(path), num_threads=1)
    one.allocate_tensors()
    given = list(tensors)
    for detail in sorted(one.get_input_details(), key=lambda each: each["index"]):
        place = next(i for i, each in enumerate(given) if tuple(each.shape) == tuple(detail["shape"]))
        one.set_tensor(detail["index"], given.pop(place).numpy().astype(detail["dtype"]))
    return one


def run(one: Any) -> list[Any]:
    one.invoke()
    return [one.get_tensor(detail["index"]) for detail in one.get_output_details()]


if __name__ == "__main__":
    main()

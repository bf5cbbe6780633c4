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

from .torch_zoo import list_models

#: how far results may lie apart, of the largest number among them
TOLERANCE = 1e-4


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
    ours = f"{'model':32s} {'export s':>8s} {'our s':>7s} {'nodes':>6s} {'difference':>10s}"
    print(f"{ours}  {'peer s':>7s} {'nodes':>6s} {'ms':>7s} {'peer ms':>7s}")
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

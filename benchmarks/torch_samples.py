"""Try rules on the samples of PyTorch's own tests: each is exported, converted, run in ONNX Runtime and compared.

    python -m nnrewrite.benchmarks.torch_samples [--only NAME ...] [--most 6] [--decomposed] [--core] [--failures]
        [--type float32] [--tflite]

--tflite converts to TensorFlow Lite, run by its interpreter; there 64-bit integers may have become narrower.
Prints for each operator how many samples are right, different, refused, and not run by the runtime, whether it is one
of torch's core operators, and the totals; with --failures only those with a sample that is not right, and the first
reasons. --core leaves out programs with an operator that is not core: with --decomposed, what core ATen consists of.
"""

from __future__ import annotations

import argparse
import functools
import io
import logging
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import nnrewrite
import numpy as np
import torch
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.verify import Interpreter, Runtime
from nnrewrite.verify.interpreted import Interpreted, widen_integers
from nnrewrite.verify.pytorch import convert_to_array
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

Run = Callable[[bytes, list[Any]], list[Any]]

#: how far results may lie apart, of the largest number among them
TOLERANCE = 1e-4
#: what may come of a sample
OUTCOMES = ("right", "different", "refused", "not run")
#: what random operators are called by, whose results cannot be compared
RANDOM = re.compile(
    r"rand|dropout|bernoulli|multinomial|normal$|uniform|exponential|cauchy|geometric|poisson|empty|rrelu"
)


class Call(torch.nn.Module):
    """An operator with all but its tensors fixed."""

    def __init__(self, function: Any, spec: Any, leaves: list[Any]) -> None:
        super().__init__()
        self.function, self.spec, self.leaves = function, spec, leaves

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        positional, named = _pytree.tree_unflatten(leaves, self.spec)
        results = _pytree.tree_leaves(self.function(*positional, **named))
        return tuple(one.clone() if any(one is t for t in tensors) else one for one in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=None)
    parser.add_argument("--most", type=int, default=6)
    parser.add_argument("--decomposed", action="store_true")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--type", default="float32")
    parser.add_argument("--tflite", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    core = list_core()
    totals: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    kind = getattr(torch, asked.type)
    run = run_tflite if asked.tflite else run_onnx
    infos = [info for info in op_db if kind in info.dtypes and not RANDOM.search(info.name)]
    print(f"{'operator':48s} {'core':4s} {' '.join(f'{one:>9s}' for one in OUTCOMES)}")
    for info in infos[asked.first : asked.last]:
        name = f"{info.name}{info.variant_test_name and '.' + info.variant_test_name}"
        if asked.only and not {info.name, name} & set(asked.only):
            continue
        found: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        for program, tensors, expected in list_programs(info, kind, asked.most, asked.decomposed):
            if asked.core and not is_core(program):
                continue
            outcome, reason = judge(program, tensors, expected, run)
            found[outcome] += 1
            if reason:
                reasons[f"{outcome}: {reason}"] += 1
        inner = bool({info.name.rpartition(".")[2], info.aten_name} & core)
        totals[inner].update(found)
        if found and (reasons or not asked.failures):
            counts = " ".join(f"{found[one] or '':>9}" for one in OUTCOMES)
            print(f"{name:48s} {'core' if inner else '':4s} {counts}", flush=True)
            for reason, count in reasons.most_common(3) if asked.failures else ():
                print(f"    {count} {reason[:300]}", flush=True)
    report("of core operators", totals[True])
    report("of others", totals[False])
    report("of all", totals[True] + totals[False])


def report(of: str, found: Counter[str]) -> None:
    """Print how many samples came to what."""
    whole = sum(found.values())
    counts = ", ".join(f"{found[one]} {one}" for one in OUTCOMES)
    print(f"{found['right'] / max(whole, 1):.1%} of {whole} samples {of} are right: {counts}")


def list_core() -> set[str]:
    """The names of ATen's operators of which an overload is tagged core, without an underscore in front."""
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    return {
        packet.__name__.removeprefix("_")
        for packet in packets
        if hasattr(packet, "overloads")
        and any(torch.Tag.core in getattr(packet, one).tags for one in packet.overloads())
    }


def list_programs(
    info: Any, kind: torch.dtype, most: int, decomposed: bool
) -> Iterator[tuple[Any, list[torch.Tensor], list[Any]]]:
    """The samples of an operator that can be exported, each with its tensors and torch's results."""
    torch.manual_seed(0)
    try:
        samples = list(info.sample_inputs("cpu", kind, requires_grad=False))
    except Exception:  # samples that this machine cannot make
        return
    step = max(1, len(samples) // most)
    for sample in samples[::step][:most]:
        leaves, spec = _pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        module = Call(info.op, spec, leaves)
        try:
            expected = list(_pytree.tree_leaves(module(*(t.clone() for t in tensors))))
            program = torch.export.export(module, tuple(tensors))
            if decomposed:
                program = program.run_decompositions()
            torch.export.save(program, io.BytesIO())
        except Exception:  # what torch itself cannot export, or save
            continue
        yield program, tensors, [one for one in expected if one is not None]


def is_core(program: Any) -> bool:
    """Whether each operator of a program is tagged core."""
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    return all(torch.Tag.core in getattr(target, "tags", ()) or target.__module__ == "_operator" for target in called)


def judge(program: Any, tensors: list[torch.Tensor], expected: list[Any], run: Run) -> tuple[str, str]:
    """The outcome of a sample, and why it is not right."""
    stream = io.BytesIO()
    torch.export.save(program, stream)
    arrays = [np.array(convert_to_array(one), order="C") for one in tensors]
    try:
        results = run(stream.getvalue(), arrays)
    except nnrewrite.RewriteError as error:
        ran = isinstance(error, VerificationError)
        return "not run" if ran else "refused", " ".join(f"{error}".split())
    wanted = [convert_to_array(one) for one in expected]
    count = min(len(results), len(wanted))
    return compare(widen_integers(results[:count], wanted[:count]), expected)


def run_onnx(program: bytes, arrays: list[Any]) -> list[Any]:
    """What ONNX Runtime makes of the ONNX model of a program."""
    return Runtime(nnrewrite.convert(program).SerializeToString()).run(arrays)


def run_tflite(program: bytes, arrays: list[Any]) -> list[Any]:
    """What the interpreter makes of the TensorFlow Lite model of a program."""
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        nnrewrite.rewrite(program, to="tflite").save(file.name)
        return Interpreted(file.name, interpreter()).run(arrays)


@functools.cache
def interpreter() -> Interpreter:
    """One interpreter for all samples."""
    return Interpreter()


def compare(results: list[Any], expected: list[Any]) -> tuple[str, str]:
    """Whether results are torch's, to a fraction of their magnitude."""
    if len(results) < len(expected):
        return "different", f"{len(results)} results of {len(expected)}"
    for position, (found, wanted) in enumerate(zip(results, expected, strict=False)):
        right = convert_to_array(wanted)
        if found.shape != right.shape:
            return "different", f"result {position} has shape {found.shape}, not {right.shape}"
        if found.dtype != right.dtype and isinstance(wanted, torch.Tensor):
            return "different", f"result {position} is {found.dtype}, not {right.dtype}"
        a, b = found.astype(np.float64), right.astype(np.float64)
        finite = np.isfinite(b)
        scale = max(np.abs(b[finite]).max(initial=0.0), 1e-6)
        same = np.where(finite, np.abs(a - b) <= TOLERANCE * scale, (a == b) | (np.isnan(a) & np.isnan(b)))
        if not same.all():
            worst = np.abs(a - b)[finite].max(initial=0.0) / scale
            return "different", f"result {position} differs by {worst:.3g} of its magnitude ({right.dtype})"
    return "right", ""


if __name__ == "__main__":
    main()

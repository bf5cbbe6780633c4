"""Convert onnx's own test cases of single operators to TensorFlow Lite, and compare with what they expect.

    python benchmarks/node_cases.py [--only WORD] [--list OUTCOME] [--part K/N] [--free] [--refused FOLDER] [NAME...]

The cases are those of onnx.backend.test whose inputs and outputs are tensors of numbers. Operands that say where, how
much or how many (integers of rank 0 or 1 behind the first operand, and scalars) are constants, as no model computes
them; where the conversion then refuses, all operands behind the first are, and the first if it is a scalar. With
--free no extent of an input or output is known before the run, not even of channels or weights. Prints each
operator with how many of its cases are equal, refused or wrong, and writes into a FOLDER one model for each reason for
which one is refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx.numpy_helper
from nnrewrite import RewriteError
from nnrewrite.backends.tflite_file import Encoded
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.verify import Interpreter, Kernels

#: what the interpreter's results may differ by beyond what the case says
TOLERANCE = 1e-3
#: the same beside the largest number: what cancels out in sums of others in single precision
SUMS = 1e-6
#: the same for numbers of 16 bits, of which one may be the next
HALF = 1e-2


def list_cases() -> list[Any]:
    """The cases of single operators, those alone whose inputs and outputs are plain tensors."""
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    return [case for case in collect_testcases(None) if _is_plain(case)]


def _is_plain(case: Any) -> bool:
    graph = case.model.graph
    values = [*graph.input, *graph.output]
    if not case.data_sets or not all(v.type.HasField("tensor_type") for v in values):
        return False
    return all(v.type.tensor_type.elem_type != onnx.TensorProto.STRING for v in values)


def side_inputs(case: Any, all_of_them: bool = False) -> dict[str, np.ndarray]:
    """The inputs of a case that are to be constants, with what they hold."""
    graph, (given, _) = case.model.graph, case.data_sets[0]
    found = {}
    for place, (value, content) in enumerate(zip(graph.input, given, strict=False)):
        array = _array(content)
        says_how_many = array.ndim == 0 or (array.ndim == 1 and array.dtype.kind in "iu")
        if (place and (all_of_them or says_how_many)) or (all_of_them and array.ndim == 0):
            found[value.name] = array
    return found


def _array(content: Any) -> np.ndarray:
    if isinstance(content, onnx.TensorProto):
        return onnx.numpy_helper.to_array(content)
    return np.asarray(content)


def fix(model: onnx.ModelProto, constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    """A model with some of its inputs as constants."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    kept = [value for value in fixed.graph.input if value.name not in constants]
    types = {value.name: value.type.tensor_type.elem_type for value in fixed.graph.input}
    del fixed.graph.input[:]
    fixed.graph.input.extend(kept)
    for name, array in constants.items():
        tensor = onnx.numpy_helper.from_array(array, name)
        if tensor.data_type != types[name]:
            tensor = onnx.helper.make_tensor(name, types[name], array.shape, array.tobytes(), raw=True)
        fixed.graph.initializer.append(tensor)
    return fixed


def free(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that says of its inputs and outputs how many axes they have, and no extent but 0."""
    freed = onnx.ModelProto()
    freed.CopyFrom(model)
    for value in (*freed.graph.input, *freed.graph.output):
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if extent.dim_value:
                extent.dim_param = f"{value.name}_{axis}"
    return freed


def judge(case: Any, interpreter: Interpreter, freed: bool = False) -> tuple[str, str]:
    """What became of a case: `equal`, `refused`, `wrong` or `fails`, and why."""
    said = ""
    for all_of_them in (False, True):
        constants = side_inputs(case, all_of_them)
        model = fix(case.model, constants)
        try:
            data = _convert(free(model) if freed else model)
        except RewriteError as error:
            said = f"{error}"
            continue
        except Exception as error:
            return "fails", f"{type(error).__name__}: {error}"
        return _compare(case, data, constants, interpreter)
    return "refused", said


def _compare(case: Any, data: bytes, constants: dict[str, np.ndarray], interpreter: Interpreter) -> tuple[str, str]:
    for given, wanted in case.data_sets:
        feeds = [
            _widen_packed(_array(content))
            for value, content in zip(case.model.graph.input, given, strict=False)
            if value.name not in constants
        ]
        try:
            (results,) = interpreter.run(data, [feeds], Kernels.DEFAULT)
        except VerificationError as error:
            return "fails", f"{error}"
        for value, result, content in zip(case.model.graph.output, results, wanted, strict=False):
            expected = _array(content)
            if result.dtype != expected.dtype and not (
                result.dtype.itemsize == expected.dtype.itemsize and expected.dtype.kind == "V"
            ):
                return "wrong", f"{value.name} is {result.dtype} and not {expected.dtype}"
            if result.shape != expected.shape:
                return "wrong", f"{value.name} has the shape {result.shape} and not {expected.shape}"
            a, b = result.astype(np.float64), expected.astype(np.float64)
            short = result.dtype.itemsize == 2 and result.dtype.kind in "fV"
            least = max(case.atol, 1e-5, SUMS * np.abs(b[np.isfinite(b)]).max(initial=0))
            close = np.isclose(a, b, rtol=max(case.rtol, HALF if short else TOLERANCE), atol=least, equal_nan=True)
            if not close.all() and not _random(case):
                worst = np.abs(a - b)[~close].max() if (~close).any() else 0
                return "wrong", f"{value.name} differs by {worst:.3g} in {(~close).sum()} of {close.size}"
    return "equal", ""


def _widen_packed(array: np.ndarray) -> np.ndarray:
    """An array as the interpreter takes it, which has numbers of less than 8 bits in bytes."""
    name = array.dtype.name
    return array.astype(np.uint8 if name.startswith("u") else np.int8) if re.match(r"u?int[24]$", name) else array


def _random(case: Any) -> bool:
    return any("Random" in node.op_type or node.op_type == "Bernoulli" for node in case.model.graph.node)


def operator_of(case: Any) -> str:
    """The operator that a case is about."""
    name = case.name.removeprefix("test_")
    kinds = Counter(node.op_type for node in case.model.graph.node)
    return case.model.graph.node[0].op_type if len(kinds) == 1 else f"{name.split('_')[0]} (expanded)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="cases whose name has this word in it")
    parser.add_argument("--list", action="append", default=[], help="print the cases with this outcome, and why")
    parser.add_argument("--part", default="0/1", help="K/N: each Nth case from the Kth on")
    parser.add_argument("--free", action="store_true", help="no extent is known before the run")
    parser.add_argument("--refused", type=Path, help="a folder for a model of each operator and reason to refuse it")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args(arguments)
    reasons: dict[tuple[str, str], Any] = {}
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    with Interpreter(timeout=30) as interpreter:
        for case in _choose_cases(list_cases(), options):
            outcome, why = judge(case, interpreter, options.free)
            outcomes[operator_of(case)][outcome] += 1
            if outcome == "refused":
                reasons.setdefault((operator_of(case), _reason(why)), case)
            if outcome in options.list or "all" in options.list:
                print(f"{outcome} {case.name}: {' '.join(why.split())[:300]}", flush=True)
    if options.refused is not None:
        _write_refused(reasons, options.refused)
    total: Counter[str] = Counter()
    for operator, counts in sorted(outcomes.items()):
        total += counts
        print(f"{operator:40} " + "  ".join(f"{word} {count}" for word, count in sorted(counts.items())))
    number = sum(total.values())
    print(f"{'all':40} {number} cases, {total['equal'] / max(number, 1):.1%} equal; {dict(total)}")
    return 0


def _reason(why: str) -> str:
    """The reason for a refusal, without the place of the rule that gives it."""
    last = why.strip().splitlines()[-1].strip()
    return re.sub(r"^\S+\.rules:\d+:\d+: rule \S+: ", "", last)


def _write_refused(reasons: dict[tuple[str, str], Any], folder: Path) -> None:
    """A model for each operator and reason, and the list of them as a table."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["| Operator | Why it is refused | Model |", "|---|---|---|"]
    for (operator, reason), case in sorted(reasons.items(), key=lambda entry: entry[0]):
        onnx.save(fix(case.model, side_inputs(case)), folder / f"{case.name}.onnx")
        lines.append(f"| {operator} | {reason.replace('|', ' ')} | {case.name}.onnx |")
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _choose_cases(cases: list[Any], options: argparse.Namespace) -> Iterator[Any]:
    first, step = map(int, options.part.split("/"))
    for case in cases[first::step]:
        if (options.only is None or options.only in case.name) and (
            not options.operators or operator_of(case) in options.operators
        ):
            yield case


def _convert(model: onnx.ModelProto) -> bytes:
    encoded = nnrewrite.rewrite(model.SerializeToString(), to="tflite").encoded
    assert isinstance(encoded, Encoded)
    return encoded.encode()


if __name__ == "__main__":
    sys.exit(main())

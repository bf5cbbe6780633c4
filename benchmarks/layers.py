"""Compare models tensor by tensor as `rewrite verify --per-layer` does: as they are, and with one fault planted.

    python benchmarks/layers.py [--faults N] [--seed N] [--seconds N] MODEL.tflite...

Prints for each model how many of its tensors were compared, and the alarms: there should be none. With --faults, so
many copies of each converted model get one fault, of kinds drawn at random among those that apply: a constant that is
scaled, a zero point that is moved, operands that are exchanged, another attribute, another operator, a node that is
left out. Those that change the outputs by more than `rewrite verify` allows are compared, and it is printed whether the
node is among those that the first alarm names, and among how many. Products of bytes are kept from saturating, so that
figures are those of the models and not of the processor.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from nnrewrite import RewriteError, convert
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.layers import compare_layers, find_divergence, find_suspect
from onnx import NodeProto, numpy_helper

#: operators that take the same operands and yield the same shape
OTHERS = {
    "Add": "Sub",
    "AveragePool": "MaxPool",
    "Clip": "Identity",
    "Div": "Mul",
    "Exp": "Tanh",
    "Max": "Min",
    "Min": "Max",
    "Mul": "Add",
    "ReduceMax": "ReduceMin",
    "ReduceMean": "ReduceMax",
    "Relu": "Abs",
    "Sigmoid": "Tanh",
    "Sqrt": "Identity",
    "Sub": "Add",
    "Tanh": "Sigmoid",
}
ORDERED = ("Sub", "Div", "Pow", "Less", "Greater")
#: so many draws at most for a fault that changes outputs
DRAWS = 12

Fault = tuple[str, Callable[[], None]]


@dataclass(frozen=True)
class Named:
    """What became of one fault: its operator and kind, and among how many nodes it was named, if at all.

    Where no tensor differs and one is suspected, that is `hidden` in what the interpreter's own kernels differ by.
    """

    kind: str
    among: int | None
    instead: str
    hidden: bool


def faults(model: onnx.ModelProto, node: NodeProto, chance: random.Random) -> Iterator[Fault]:
    """The ways to spoil one node of a model."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for place, name in enumerate(node.input):
        if name in constants and numpy_helper.to_array(constants[name]).size:
            array = numpy_helper.to_array(constants[name])
            if array.dtype.kind == "f":
                yield f"operand {place} scaled", lambda a=array, p=place: put(model, node, p, a * a.dtype.type(1.7))
            elif array.dtype.kind in "iu" and array.dtype.itemsize == 1:
                moved = (
                    np.roll(array.ravel(), 1).reshape(array.shape) if array.size > 1 else array ^ array.dtype.type(16)
                )
                yield f"operand {place} changed", lambda a=moved, p=place: put(model, node, p, a)
            elif array.dtype == np.int32:
                yield f"operand {place} doubled", lambda a=array, p=place: put(model, node, p, (a * 2).astype(a.dtype))
    if node.op_type in OTHERS:
        yield f"is {OTHERS[node.op_type]}", lambda: turn(node, OTHERS[node.op_type])
    if node.op_type in ORDERED:
        yield "operands exchanged", lambda: exchange(node)
    for attribute in node.attribute:
        if attribute.name == "pads" and sum(attribute.ints):
            yield "pads moved", lambda a=attribute: a.ints.__setitem__(slice(None), reflect(list(a.ints)))
        elif attribute.name == "axis" and node.op_type in ("Softmax", "Gather", "ArgMax"):
            yield "another axis", lambda a=attribute: setattr(a, "i", a.i - 1 if a.i != 0 else 1)
        elif attribute.name == "perm" and len(attribute.ints) > 2:
            yield "another order", lambda a=attribute: chance.shuffle(a.ints)
        elif attribute.name in ("alpha", "epsilon"):
            yield f"another {attribute.name}", lambda a=attribute: setattr(a, "f", a.f * 3)


def put(model: onnx.ModelProto, node: NodeProto, place: int, array: np.ndarray) -> None:
    """Give one node a constant of its own."""
    name = f"{node.name}/spoilt"
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    node.input[place] = name


def turn(node: NodeProto, operator: str) -> None:
    if operator == "Identity":
        del node.input[1:]
    if operator in ("Identity", "MaxPool"):
        kept = [a for a in node.attribute if operator == "MaxPool" and a.name != "count_include_pad"]
        del node.attribute[:]
        node.attribute.extend(kept)
    node.op_type = operator


def exchange(node: NodeProto) -> None:
    node.input[0], node.input[1] = node.input[1], node.input[0]


def reflect(pads: list[int]) -> list[int]:
    """As much at both ends together, but at the other one."""
    half = len(pads) // 2
    begins, ends = pads[:half], pads[half:]
    if begins != ends:
        return ends + begins
    return [begin - 1 if begin else 0 for begin in begins] + [
        end + 1 if begin else end for begin, end in zip(begins, ends, strict=True)
    ]


def spoilt(
    model: onnx.ModelProto, chance: random.Random, made: set[tuple[str, str]]
) -> tuple[onnx.ModelProto, str, str] | None:
    """A copy of a model with one fault that is not made yet; which node it is in, and what it is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node = chance.choice(list(copy.graph.node))
    found = list(faults(copy, node, chance))
    if not found:
        return None
    kind, do = chance.choice(found)
    if (node.output[0], kind) in made:
        return None
    name = f"{node.op_type}: {kind}"
    made.add((node.output[0], kind))
    do()
    return copy, node.output[0], name


def plant(
    path: Path, model: onnx.ModelProto, chance: random.Random, interpreter: Interpreter, known: set[tuple[str, str]]
) -> Named | None:
    """Plant one more fault that changes what a model computes, and look who is blamed; None where no such is found."""
    for _ in range(DRAWS * 4):
        made = spoilt(model, chance, known)
        if made is None:
            continue
        copy, output, kind = made
        data = copy.SerializeToString()
        try:
            if compare_models(path, data, interpreter=interpreter, precise=True).passed:
                continue
            steps = compare_layers(path, data, interpreter)
        except RewriteError:
            continue  # a model that does not run is nothing to compare
        first = find_divergence(steps)
        if hidden := first is None:
            first = find_suspect(steps)
        named = first is not None and any(output in node.output for node in first.nodes)
        instead = "none differs" if first is None else f"{first.operator} does: {first.comparison.error}"
        return Named(kind, len(first.nodes) if first is not None and named else None, instead, hidden)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120, help="for one run of the interpreter")
    parser.add_argument("models", nargs="+", type=Path)
    asked = parser.parse_args()
    alarms, compared, models, all_named = 0, 0, 0, list[Named]()
    with Interpreter(timeout=asked.seconds) as interpreter:
        for path in asked.models:
            started = time.process_time()
            try:
                model = convert(path)
                passed = compare_models(path, model.SerializeToString(), interpreter=interpreter, precise=True).passed
                steps = compare_layers(path, model.SerializeToString(), interpreter)
            except RewriteError as error:
                print(f"{path.stem}: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            wrong = [step for step in steps if not step.comparison.verdict.passed]
            models, alarms, compared = models + passed, alarms + len(wrong), compared + len(steps)
            print(
                f"{path.stem}: {len(steps)} tensors, {len(wrong)} alarms, {time.process_time() - started:.1f} s"
                + "; outputs differ" * (not passed),
                flush=True,
            )
            for step in wrong:
                print(f"  {step.operator} {step.comparison.name}: {step.comparison.reason}")
            if not passed:
                continue  # what differs already tells nothing of a fault
            all_named += report(path, model, asked.faults, random.Random(f"{path.name}{asked.seed}"), interpreter)
    print(f"{models} verified models, {compared} tensors compared, {alarms} alarms")
    if all_named:
        among = [one.among for one in all_named if one.among is not None]
        hidden = sum(one.hidden for one in all_named if one.among is not None)
        print(
            f"{len(all_named)} faults, {len(among)} named (of these {hidden} only suspected), "
            f"among {statistics.median(among or [0])} nodes in the median, {max(among, default=0)} at most"
        )


def report(
    path: Path, model: onnx.ModelProto, count: int, chance: random.Random, interpreter: Interpreter
) -> Sequence[Named]:
    found, made = [], set[tuple[str, str]]()
    for _ in range(count):
        one = plant(path, model, chance, interpreter, made)
        if one is None:
            break
        found.append(one)
        said = (
            f"NOT NAMED, {one.instead}"
            if one.among is None
            else f"{'suspected' if one.hidden else 'named'} among {one.among}"
        )
        print(f"  {one.kind}: {said}", flush=True)
    return found


if __name__ == "__main__":
    main()

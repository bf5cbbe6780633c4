"""Layers: every intermediate tensor that both models have, in the order in which the original computes them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ..engine.errors import ModelError
from ..engine.operators import load
from .comparison import Comparison, compare, largest_difference
from .frames import Array
from .inputs import draw
from .interpreter import Interpreter, InterpreterError, Kernels, Layer, Source
from .runtime import Runtime

#: what follows a quantized tensor's name in that of its real numbers
_REAL = "/real"


@dataclass(frozen=True, slots=True)
class Step:
    """One tensor compared: the operator that yields it in the original, and how far apart both sides are."""

    operator: str
    comparison: Comparison


def compare_layers(
    source: Source, target: Source, interpreter: Interpreter, seed: int = 0, inputs: Sequence[Array] | None = None
) -> list[Step]:
    """Run both models on one sample and compare all tensors of the same name.

    A tensor whose axes the rewriting put in another order is compared in the original's. Raises VerificationError
    where one side does not run, ModelError where the target is no model.
    """
    feeds, known = _layers(interpreter, source, seed, inputs)
    model = _parsed(target)
    outputs = {value.name for value in model.graph.output}
    codes = _codes(model, {layer.tensor.name for layer, _ in known if layer.tensor.scales})
    opened = _opened(model, {layer.tensor.name for layer, _ in known} | {name for name, _ in codes.values()})
    runtime = Runtime(opened.SerializeToString())
    results = dict(zip(runtime.outputs, runtime.run(feeds), strict=True))
    steps = []
    for layer, want in known:
        got = results.get(layer.tensor.name)
        if got is None and layer.tensor.name in codes:
            name, zero = codes[layer.tensor.name]
            got = _shifted(results[name], zero, layer.tensor.zero_points, want)
        # Rules give some inner tensors another shape: more channels, axes of extent 1.
        if got is not None and (sorted(got.shape) == sorted(want.shape) or layer.tensor.name in outputs):
            steps.append(Step(layer.operator, _best(layer, want, got)))
    return steps


def _best(layer: Layer, want: Array, got: Array) -> Comparison:
    """Compare a tensor in the order in which the original has its axes: as it is, or with the channels moved last.

    Where both have the same shape the closer one is it. Elements in any other order are as good: those of a flattened
    image go in the order of its channels, and the weights that read them go with them.
    """
    orders = [got]
    if got.ndim == want.ndim and got.ndim > 2:
        orders.append(np.moveaxis(got, 1, -1))
    fit = [order for order in orders if order.shape == want.shape] or orders[:1]
    closest = min(fit, key=lambda order: largest_difference(want, order))
    found = compare(layer.tensor, want, closest, Kernels.OPTIMIZED)
    if found.verdict.passed or want.size != got.size or object in (want.dtype, got.dtype):
        return found
    reordered = compare(layer.tensor, np.sort(want, None), np.sort(got, None), Kernels.OPTIMIZED)
    return reordered if reordered.verdict.passed else found


def _codes(model: onnx.ModelProto, names: Collection[str]) -> dict[str, tuple[str, int]]:
    """The tensors that hold the codes of quantized ones whose real numbers alone go by their name, and the zero points.

    What is dequantized is called after the original, with a suffix.
    """
    dequantize = load().dialect("onnx").role("dequantize").name
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found: dict[str, tuple[str, int]] = {}
    for node in model.graph.node:
        called = next((node.output[0][:at] for at in _ends(node.output[0]) if node.output[0][:at] in names), None)
        if node.op_type != dequantize or called is None or node.input[0] in constants or called in found:
            continue
        zero = constants.get(node.input[2]) if len(node.input) > 2 else None
        found[called] = node.input[0], 0 if zero is None else int(onnx.numpy_helper.to_array(zero).ravel()[0])
    return found


def _ends(name: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(_REAL), name)]


def _shifted(codes: Array, zero: int, zeros: Sequence[int], want: Array) -> Array:
    """Codes around the original's own zero point; the rewritten model may have another signedness."""
    limits = np.iinfo(want.dtype)
    moved = codes.astype(np.int64) - zero + (zeros[0] if zeros else 0)
    return np.asarray(np.clip(moved, limits.min, limits.max), want.dtype)


def _layers(
    interpreter: Interpreter, source: Source, seed: int, inputs: Sequence[Array] | None
) -> tuple[list[Array], list[tuple[Layer, Array]]]:
    """Inputs that the interpreter takes, and what each of its operators makes of them."""
    if inputs is not None:
        return list(inputs), interpreter.layers(source, inputs)
    failure: InterpreterError | None = None
    for (sample,) in draw(interpreter.describe(source).inputs, seed):
        try:
            return sample, interpreter.layers(source, sample)
        except InterpreterError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _parsed(target: Source) -> onnx.ModelProto:
    try:
        return onnx.load_from_string(target) if isinstance(target, bytes) else onnx.load(target)
    except Exception as error:  # the parser's exceptions have no common root but this
        raise ModelError(f"{target if isinstance(target, str) else 'the model'}: {error}") from error


def _opened(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """The model with those of its inner tensors as further outputs that have one of some names."""
    wanted = set(names) - {value.name for value in model.graph.output}
    inner = dict.fromkeys(name for node in model.graph.node for name in node.output if name in wanted)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    return model


def first_divergence(steps: Sequence[Step]) -> Step | None:
    """The first tensor that differs, None where all agree."""
    return next(itertools.dropwhile(lambda step: step.comparison.verdict.passed, steps), None)

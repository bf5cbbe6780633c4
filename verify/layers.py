"""Layers: every intermediate tensor that both models have, in the order in which the original computes them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ..engine.errors import ModelError
from .comparison import Comparison, compare
from .frames import Array
from .inputs import draw
from .interpreter import Interpreter, InterpreterError, Kernels, Layer, Source
from .runtime import Runtime


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
    layers = _layers(interpreter, source, seed, inputs)
    feeds, known = layers
    opened = _opened(target, [layer.tensor.name for layer, _ in known])
    runtime = Runtime(opened.SerializeToString())
    results = dict(zip(runtime.outputs, runtime.run(feeds), strict=True))
    steps = []
    for layer, want in known:
        got = results.get(layer.tensor.name)
        if got is not None:
            got = _turned(got, want)
            steps.append(Step(layer.operator, compare(layer.tensor, want, got, Kernels.OPTIMIZED)))
    return steps


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


def _opened(target: Source, names: Sequence[str]) -> onnx.ModelProto:
    """The model with those of its inner tensors as further outputs that have one of some names."""
    try:
        model = onnx.load_from_string(target) if isinstance(target, bytes) else onnx.load(target)
    except Exception as error:  # the parser's exceptions have no common root but this
        raise ModelError(f"{target if isinstance(target, str) else 'the model'}: {error}") from error
    wanted = set(names) - {value.name for value in model.graph.output}
    inner = dict.fromkeys(name for node in model.graph.node for name in node.output if name in wanted)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    return model


def _turned(got: Array, want: Array) -> Array:
    """A tensor with its channels moved to where the original has them, where only that makes the shapes agree."""
    if got.shape == want.shape or got.ndim != want.ndim or got.ndim < 3:
        return got
    last = np.moveaxis(got, 1, -1)
    return last if last.shape == want.shape else got


def first_divergence(steps: Sequence[Step]) -> Step | None:
    """The first tensor that differs, None where all agree."""
    return next(itertools.dropwhile(lambda step: step.comparison.verdict.passed, steps), None)

"""Stateful models: both sides begin anew and run on, state fed back from step to step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..engine.base.errors import ModelError, UnsupportedError
from ..engine.dialects.ops_files import load
from ..engine.passes.variables import Variables
from ..frontends import tflite_reader
from .comparison import Comparison, choose_worst, compare
from .frames import Array
from .interpreter import Interpreter, Kernels, Signature, Source
from .runtime import Runtime


def find_stateful(folder: Path, largest: float = float("inf")) -> Iterator[Path]:
    """The stateful models below a folder, in a fixed order, none above `largest` bytes."""
    catalogue = load()
    dialect = catalogue.find_dialect("tflite")
    for path in sorted(folder.rglob("*.tflite")):
        if path.stat().st_size > largest:
            continue
        try:
            model = tflite_reader.read(path, catalogue)
        except ModelError:
            continue  # a file that is no model, of which some are kept on purpose
        variables = Variables(dialect, model.meta["subgraphs"])
        with contextlib.suppress(UnsupportedError):
            variables.survey_graph(model.graph)
        if variables.samples:
            yield path


def draw_samples(signature: Signature, steps: int, seed: int = 0) -> list[list[Array]]:
    """Seeded inputs for as many steps: codes over their whole range, real numbers around zero."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(steps):
        sample = []
        for tensor in signature.inputs:
            kind = np.dtype(tensor.dtype)
            if kind.kind in "iu" and tensor.scales:
                limits = np.iinfo(kind)
                sample.append(random.integers(limits.min, limits.max, tensor.shape, endpoint=True).astype(kind))
            elif kind.kind in "iub":
                sample.append(random.integers(0, 2, tensor.shape).astype(kind))
            else:
                sample.append(random.normal(size=tensor.shape).astype(kind))
        found.append(sample)
    return found


def run_stream(runtime: Runtime, steps: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Run a model on one sample after the other, its state fed back; the outputs of each, without the state."""
    kept: dict[str, Array] = {}
    found = []
    for sample in steps:
        outputs, kept = runtime.run_step(sample, kept)
        found.append(outputs)
    return found


def compare_streams(
    source: Source,
    target: Source,
    steps: Sequence[Sequence[Array]],
    interpreter: Interpreter,
    kernels: Kernels = Kernels.OPTIMIZED,
) -> tuple[Comparison, ...]:
    """Run a TFLite model and the ONNX model made of it in step and compare every output at every step, the worst kept.

    Raises VerificationError where one side does not run.
    """
    signature = interpreter.describe(source)
    expected = interpreter.run(source, steps, kernels, keep=True)
    actual = run_stream(Runtime(target), steps)
    return tuple(
        choose_worst(
            [compare(tensor, want[place], got[place], kernels) for want, got in zip(expected, actual, strict=True)]
        )
        for place, tensor in enumerate(signature.outputs)
    )

"""Models that remember: both sides begin anew and then run on, state fed back from step to step."""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import Comparison, compare, worst
from .frames import Array
from .interpreter import Interpreter, Kernels, Source
from .runtime import Runtime


def stream(runtime: Runtime, steps: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Run a model on one sample after the other, its state fed back; the outputs of each, without the state."""
    kept: dict[str, Array] = {}
    found = []
    for sample in steps:
        outputs, kept = runtime.step(sample, kept)
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
    actual = stream(Runtime(target), steps)
    return tuple(
        worst([compare(tensor, want[place], got[place], kernels) for want, got in zip(expected, actual, strict=True)])
        for place, tensor in enumerate(signature.outputs)
    )

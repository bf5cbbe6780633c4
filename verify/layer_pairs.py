"""Layers of a model and of the one made of it, whichever of the two is of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.base.errors import VerificationError
from .formats import INTERPRETED, REFERENCE, find_format
from .frames import Array
from .inputs import draw
from .interpreted import Interpreted
from .interpreter import Interpreter, Source
from .layers import Step, compare_layers
from .reference import Reference


def compare_pair(
    source: Source, target: Source, interpreter: Interpreter, seed: int = 0, inputs: Sequence[Array] | None = None
) -> list[Step]:
    """Compare each tensor that a model and the one made of it both have, on one sample of the first, in the order of
    the TensorFlow Lite model, from whose numbers each is computed.

    Raises VerificationError where the two are not one of TensorFlow Lite and one of ONNX, and as `compare_layers` does.
    """
    formats = find_format(source), find_format(target)
    if formats == (INTERPRETED, REFERENCE):
        return compare_layers(source, target, interpreter, seed, inputs)
    if formats != (REFERENCE, INTERPRETED):
        raise VerificationError("layers are compared between a TensorFlow Lite and an ONNX model")
    made = Interpreted(target, interpreter)
    reference = Reference([made.read_shape(name) for name in made.inputs])
    drawn = [inputs] if inputs is not None else [sample for (sample,) in draw(reference.describe(source).inputs, seed)]
    failure: VerificationError | None = None
    for sample in drawn:
        try:
            return compare_layers(target, source, interpreter, seed, made.make_sample(sample))
        except VerificationError as error:
            failure = failure or error
    raise failure or VerificationError("there are no inputs to run the models on")

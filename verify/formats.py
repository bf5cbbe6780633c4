"""The formats of the models that can be run, by the runtime that runs them."""

from __future__ import annotations

from ..engine.base.errors import VerificationError
from ..frontends.readers import find_reader
from .interpreter import Source

#: the dialects whose models ONNX Runtime computes, and the interpreter
REFERENCE, INTERPRETED = "onnx", "tflite"


def find_format(model: Source) -> str:
    """The dialect of a model that one of the runtimes runs; raises VerificationError for any other."""
    dialect = find_reader(model if isinstance(model, bytes) else str(model)).dialect
    if dialect not in (REFERENCE, INTERPRETED):
        name = "the model" if isinstance(model, bytes) else f"{model}"
        raise VerificationError(f"{name}: neither an ONNX nor a TensorFlow Lite model, which alone are run")
    return dialect

"""The formats of the models that can be run, by the runtime that runs them."""

from __future__ import annotations

from collections.abc import Collection

from ..engine.base.errors import VerificationError
from ..frontends.readers import find_reader
from .interpreter import Interpreter, Source, Worker
from .pytorch import PyTorch
from .reference import Reference

#: the dialects whose models ONNX Runtime computes, the interpreter and torch
REFERENCE, INTERPRETED, EXPORTED = "onnx", "tflite", "aten"
#: those of originals, the others are of results as well
ORIGINALS = (REFERENCE, INTERPRETED, EXPORTED)


def find_format(model: Source, known: Collection[str] = (REFERENCE, INTERPRETED)) -> str:
    """The dialect of a model that one of the runtimes runs; raises VerificationError for one that is not known."""
    dialect = find_reader(model if isinstance(model, bytes) else str(model)).dialect
    if dialect not in known:
        name = "the model" if isinstance(model, bytes) else f"{model}"
        raise VerificationError(f"{name}: neither an ONNX nor a TensorFlow Lite model, which alone are run here")
    return dialect


def find_worker(original: Source, interpreter: Interpreter) -> Worker:
    """What runs an original: the interpreter given, ONNX Runtime, or torch."""
    dialect = find_format(original, ORIGINALS)
    return Reference() if dialect == REFERENCE else PyTorch() if dialect == EXPORTED else interpreter

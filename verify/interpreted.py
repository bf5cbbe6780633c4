"""TensorFlow Lite models as results: the interpreter in the place of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .frames import Array
from .interpreter import Interpreter, Kernels, Signature, Source


@dataclass(slots=True)
class Interpreted:
    """A TensorFlow Lite model, asked as a model in ONNX Runtime is; raises InterpreterError where it does not run."""

    model: Source
    interpreter: Interpreter
    #: whether the model computes with real numbers what its original computes with codes
    unquantized: bool = False
    _signature: Signature = field(init=False)

    def __post_init__(self) -> None:
        self._signature = self.interpreter.describe(self.model)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in the model's order."""
        return tuple(tensor.name for tensor in self._signature.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the model's order."""
        return tuple(tensor.name for tensor in self._signature.outputs)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the model on one sample; integers of 64 bits that it takes as narrower ones are narrowed."""
        return self.interpreter.run(self.model, [self.narrow(inputs)], Kernels.DEFAULT)[0]

    def narrow(self, inputs: Sequence[Array]) -> list[Array]:
        """A sample in the types of the model's inputs."""
        tensors = zip(self._signature.inputs, inputs, strict=True)
        return [array if array.dtype == object else array.astype(np.dtype(tensor.dtype)) for tensor, array in tensors]

    def is_real(self, name: str) -> bool:
        """Whether an input takes single-precision numbers."""
        return any(tensor.name == name and tensor.dtype == "float32" for tensor in self._signature.inputs)

    def read_shape(self, name: str) -> tuple[Any, ...]:
        """The extents of an input, a word for each that is not static."""
        tensor = next(one for one in self._signature.inputs if one.name == name)
        return tuple("?" if known < 0 else known for known in tensor.signature or tensor.shape)

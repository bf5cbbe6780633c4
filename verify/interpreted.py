"""TensorFlow Lite models as results: the interpreter in the place of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.base.quantization import NUMBERS, REAL
from .frames import Array
from .interpreter import Interpreter, Kernels, Signature, Source
from .layouts import Layouts, read_layouts


@dataclass(slots=True)
class Interpreted:
    """A TensorFlow Lite model, asked as a model in ONNX Runtime is; raises InterpreterError where it does not run."""

    model: Source
    interpreter: Interpreter
    kernels: Kernels = Kernels.DEFAULT
    _signature: Signature = field(init=False)
    _layouts: Layouts = field(init=False)

    def __post_init__(self) -> None:
        self._signature = self.interpreter.describe(self.model)
        self._layouts = read_layouts(self._signature.metadata)

    @property
    def unquantized(self) -> bool:
        """Whether the model computes with real numbers what its original computes with codes."""
        return self._signature.metadata.get(NUMBERS) == REAL

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in the model's order."""
        return tuple(tensor.name for tensor in self._signature.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the model's order."""
        return tuple(tensor.name for tensor in self._signature.outputs)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the model on one sample of its original, whose axes its results have too."""
        [results] = self.interpreter.run(self.model, [self.make_sample(inputs)], self.kernels)
        return [self._layouts.restore(name, result) for name, result in zip(self.outputs, results, strict=True)]

    def make_sample(self, inputs: Sequence[Array]) -> list[Array]:
        """A sample of the original in the types and layouts of the model's inputs; wider integers are narrowed."""
        tensors = zip(self._signature.inputs, inputs, strict=True)
        return [
            self._layouts.permute(tensor.name, array if array.dtype == object else array.astype(np.dtype(tensor.dtype)))
            for tensor, array in tensors
        ]

    def is_real(self, name: str) -> bool:
        """Whether an input takes single-precision numbers."""
        return any(tensor.name == name and tensor.dtype == "float32" for tensor in self._signature.inputs)

    def read_shape(self, name: str) -> tuple[Any, ...]:
        """The extents of an input in the original's order of axes, a word for each that is not static."""
        tensor = next(one for one in self._signature.inputs if one.name == name)
        shape = ["?" if known < 0 else known for known in tensor.signature or tensor.shape]
        return self._layouts.restore_shape(name, shape)


def widen_integers(found: Sequence[Array], wanted: Sequence[Array]) -> list[Array]:
    """Results with the types of the original's, where these are wider integers that the format has no kernels for."""
    return [
        one.astype(two.dtype)
        if one.dtype.kind == two.dtype.kind and one.dtype.kind in "iu" and np.can_cast(one.dtype, two.dtype)
        else one
        for one, two in zip(found, wanted, strict=True)
    ]

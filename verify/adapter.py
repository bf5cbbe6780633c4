"""Adapters: a model with a real interface, or of other extents, called as the model that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .frames import Array
from .interpreted import Interpreted
from .interpreter import Signature, Tensor
from .runtime import Runtime


class Adapter:
    """A model in ONNX Runtime that takes and yields the codes of its original's quantized inputs and outputs.

    Where a model has real numbers at its interface, as options ask for, codes become those and those become codes.
    """

    def __init__(self, runtime: Runtime | Interpreted, signature: Signature) -> None:
        self._runtime, self._signature = runtime, signature

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the model on one sample; raises VerificationError as the runtime does."""
        results = self._runtime.run(self.convert_inputs(inputs))
        return [_convert_to_codes(*pair) for pair in zip(self._signature.outputs, results, strict=True)]

    def convert_inputs(self, inputs: Sequence[Array]) -> list[Array]:
        """The original's inputs as the model takes them, in the same order."""
        entries = zip(self._signature.inputs, self._runtime.inputs, inputs, strict=True)
        return [
            convert_to_real(tensor, array) if self._runtime.is_real(name) else array for tensor, name, array in entries
        ]


def resize_inputs(signature: Signature, runtime: Runtime | Interpreted) -> Signature:
    """A signature whose inputs have the extents that a model asks for, where it asks for others of the same rank."""
    inputs = []
    for tensor, name in zip(signature.inputs, runtime.inputs, strict=True):
        asked = runtime.read_shape(name)
        if len(asked) == len(tensor.shape):
            shape, signature_shape = (
                tuple(new if isinstance(new, int) else old for new, old in zip(asked, extents, strict=True))
                for extents in (tensor.shape, tensor.signature)
            )
            tensor = replace(tensor, shape=shape, signature=signature_shape)
        inputs.append(tensor)
    return replace(signature, inputs=tuple(inputs))


def convert_to_real(tensor: Tensor, array: Array) -> Array:
    """The real numbers that the codes of a tensor stand for; what is no code stays as it is."""
    if len(tensor.scales) != 1 or array.dtype.kind not in "iu":
        return array
    numbers = (array.astype(np.int64) - tensor.zero_points[0]) * np.float64(tensor.scales[0])
    return np.asarray(numbers, np.float32)


def _convert_to_codes(tensor: Tensor, array: Array) -> Array:
    if len(tensor.scales) != 1 or array.dtype.kind != "f" or np.dtype(tensor.dtype).kind not in "iu":
        return array
    limits = np.iinfo(tensor.dtype)
    codes = np.rint(array.astype(np.float64) / tensor.scales[0]) + tensor.zero_points[0]
    return np.asarray(np.clip(codes, limits.min, limits.max), tensor.dtype)

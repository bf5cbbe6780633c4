"""ONNX Runtime: runs the rewritten model in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.errors import VerificationError
from .frames import Array
from .interpreter import Source, require

#: what metadata calls the state that a caller feeds back, before the name of the input
STATE = "nnrewrite.state."


class Runtime:
    """A model loaded into ONNX Runtime's CPU provider; `threads` limits how many it computes with.

    Raises VerificationError where the runtime refuses the model, or later fails to run it.
    """

    def __init__(self, model: Source, threads: int = 0) -> None:
        require("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        source = model if isinstance(model, bytes) else os.fspath(model)
        try:
            self._session: Any = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime's exceptions have no common root but this
            raise VerificationError(f"ONNX Runtime refuses the model: {_line(error)}") from error
        self.inputs: tuple[str, ...] = tuple(item.name for item in self._session.get_inputs())
        metadata = self._session.get_modelmeta().custom_metadata_map
        self.state: dict[str, str] = {
            name.removeprefix(STATE): output for name, output in metadata.items() if name.startswith(STATE)
        }
        outputs = (item.name for item in self._session.get_outputs())
        self.outputs: tuple[str, ...] = tuple(name for name in outputs if name not in self.state.values())
        self._layouts = _layouts(metadata)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the model on one sample, inputs and outputs in the model's order, their axes in the original's."""
        feeds = {name: self._turned(name, _fed(array), 1) for name, array in zip(self.inputs, inputs, strict=True)}
        try:
            results: list[Any] = self._session.run(list(self.outputs), feeds)
        except Exception as error:
            raise VerificationError(f"ONNX Runtime fails to run the model: {_line(error)}") from error
        named = zip(self.outputs, results, strict=True)
        return [self._turned(name, np.asarray(result), -1) for name, result in named]

    def _turned(self, name: str, array: Array, direction: int) -> Array:
        """An input, or with direction -1 an output, whose axes were put in another order."""
        if name not in self._layouts:
            return array
        before, after = self._layouts[name][::direction]
        return np.ascontiguousarray(np.transpose(array, [before.index(letter) for letter in after]))


def _layouts(metadata: Mapping[str, str]) -> dict[str, list[str]]:
    """Inputs and outputs whose layout is not the original's: their axes' letters before and after."""
    from ..engine.layout.interface import LAYOUT

    start = f"{LAYOUT}."
    return {key.removeprefix(start): axes.split(":") for key, axes in metadata.items() if key.startswith(start)}


def _fed(array: Array) -> Array:
    """Strings are bytes on one side and text on the other, complex numbers become pairs of real ones."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1)
    if array.dtype != object:
        return array
    return np.array([item.decode() for item in array.ravel()], dtype=object).reshape(array.shape)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

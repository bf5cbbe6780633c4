"""Layouts: interfaces of models whose axes stand in another order than their originals', as metadata says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.passes.layout.interface import LAYOUT
from .frames import Array

_START = f"{LAYOUT}."


@dataclass(frozen=True, slots=True)
class Layouts:
    """For inputs and outputs by their names the letters of their axes before and after."""

    axes: Mapping[str, tuple[str, str]]

    def is_turned(self, name: str) -> bool:
        """Whether the axes of an input or output stand in another order than the original's."""
        return name in self.axes

    def permute(self, name: str, array: Array) -> Array:
        """An input of the original as the model takes it."""
        return _permute(array, *self.axes[name]) if name in self.axes else array

    def restore(self, name: str, array: Array) -> Array:
        """An output of the model as the original yields it."""
        return _permute(array, *self.axes[name][::-1]) if name in self.axes else array

    def restore_shape(self, name: str, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The extents of an input of the model in the original's order."""
        if name not in self.axes:
            return tuple(shape)
        before, after = self.axes[name]
        return tuple(shape[after.index(letter)] for letter in before)


def read_layouts(metadata: Mapping[str, str]) -> Layouts:
    """What a model's metadata says of its layouts."""
    said = {key.removeprefix(_START): text.split(":") for key, text in metadata.items() if key.startswith(_START)}
    return Layouts({name: (before, after) for name, (before, after) in said.items()})


def _permute(array: Array, before: str, after: str) -> Array:
    return np.ascontiguousarray(np.transpose(array, [before.index(letter) for letter in after]))

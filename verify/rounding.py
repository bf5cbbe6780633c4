"""Rounding: an ONNX model and its inputs, off by as much as the last places of their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from ..frontends.onnx_graphs import read_proto
from .frames import Array

#: by which share numbers are off: twice the distance of two of single precision
_SHARE = 2.0**-22
#: constants of fewer elements are no weights, but factors of an image's axes or bounds, which say what is computed
_LEAST = 8


def round_constants(model: str | bytes, seed: int) -> bytes | None:
    """The model, from its path or its bytes, whose weights are off in their last places; None where there are none.

    A model whose constants lie in other files is none that can be changed so.
    """
    proto = read_proto(model, external_data=False)
    stored = proto.graph.initializer
    if any(one.data_location == onnx.TensorProto.EXTERNAL for one in stored):
        return None
    generator = np.random.default_rng(seed)
    weights = [one for one in stored if one.data_type == onnx.TensorProto.FLOAT and np.prod(one.dims) >= _LEAST]
    for one in weights:
        one.CopyFrom(numpy_helper.from_array(_round(numpy_helper.to_array(one), generator), one.name))
    return bytes(proto.SerializeToString()) if weights else None


def round_inputs(samples: Sequence[Sequence[Array]], seed: int) -> list[list[Array]]:
    """Samples whose real numbers are off in their last places."""
    generator = np.random.default_rng(seed)
    return [[_round(array, generator) if array.dtype == np.float32 else array for array in one] for one in samples]


def _round(array: Array, generator: np.random.Generator) -> Array:
    signs = generator.integers(0, 2, array.shape) * 2 - 1
    return np.asarray(array * (1 + _SHARE * signs), array.dtype)

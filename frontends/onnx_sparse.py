"""Sparse constants of ONNX models, with all their elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_ir import serde

from ..engine.base.errors import ModelError
from .external_data import TensorFiles
from .onnx_graphs import list_bodies

#: constants of one model that would take more bytes with all their elements are refused
_MOST = 1 << 28


def densify(graph: onnx.GraphProto, files: TensorFiles, room: int = _MOST) -> int:
    """Put ordinary initializers in the place of sparse ones, and of nodes that yield sparse constants; the bytes that
    they leave of those that there is room for.

    Raises ModelError where they take more, and for one whose indices lie outside of it.
    """
    for sparse in graph.sparse_initializer:
        graph.initializer.append(_densify_tensor(sparse, sparse.values.name, files, room))
        room -= len(graph.initializer[-1].raw_data)
    del graph.sparse_initializer[:]
    for place in reversed(range(len(graph.node))):
        node = graph.node[place]
        found = [attribute.sparse_tensor for attribute in node.attribute if attribute.name == "sparse_value"]
        if found and not node.input and not node.domain:
            graph.initializer.append(_densify_tensor(found[0], node.output[0], files, room))
            room -= len(graph.initializer[-1].raw_data)
            del graph.node[place]
            continue
        for inner in list_bodies(node):
            room = densify(inner, files, room)
    return room


def _densify_tensor(sparse: onnx.SparseTensorProto, name: str, files: TensorFiles, room: int) -> onnx.TensorProto:
    values, places = (_read_array(tensor, files) for tensor in (sparse.values, sparse.indices))
    extents = tuple(sparse.dims)
    size = math.prod(extents) * values.dtype.itemsize
    if any(extent < 0 for extent in extents) or size > room:
        raise ModelError(
            f"{files.name}: sparse constant {name} of shape {list(extents)} takes more bytes than the {room} that are"
            f" left of the 256 MB for all sparse constants"
        )
    if places.ndim == 2 and places.shape[1] == len(extents):
        within = bool((places >= 0).all() and (places < extents).all())
        flat = places @ np.array([math.prod(extents[axis + 1 :]) for axis in range(len(extents))], np.int64)
    else:
        flat = places
        within = flat.ndim == 1 and bool((flat >= 0).all() and (flat < math.prod(extents)).all())
    if not within or flat.shape != values.shape:
        raise ModelError(f"{files.name}: malformed: sparse constant {name} has elements outside of {list(extents)}")
    dense = np.zeros(math.prod(extents), values.dtype)
    dense[flat] = values
    return numpy_helper.from_array(dense.reshape(extents), name)


def _read_array(tensor: onnx.TensorProto, files: TensorFiles) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(files.read_constant(serde.deserialize_tensor(tensor)).numpy())

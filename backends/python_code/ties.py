"""Weights of the source among the tensors that code holds: those that are shared, and those that are trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir


def find_tied(tensors: Sequence[tuple[str, ir.Value]], shared: Sequence[ir.TensorProtocol]) -> list[tuple[str, str]]:
    """The paths of tensors that are one in the source, each with that of the first; `shared` are those of the source
    that several nodes read."""
    return [pair for one in shared if one.size > 1 for pair in _list_pairs(one, tensors)]


def find_frozen(tensors: Sequence[tuple[str, ir.Value]], frozen: Sequence[ir.TensorProtocol]) -> list[str]:
    """The paths of tensors of layers that have the elements of weights which are not trained."""
    held = [(path, value.const_value) for path, value in tensors if value.const_value is not None and "." in path]
    return [path for path, tensor in held if tensor.size > 1 and any(has_elements_of(tensor, one) for one in frozen)]


def _list_pairs(one: ir.TensorProtocol, tensors: Sequence[tuple[str, ir.Value]]) -> Iterator[tuple[str, str]]:
    shape = tuple(one.shape.numpy())
    alike = [
        path for path, value in tensors if value.const_value is not None and _is_equal(value.const_value, one, shape)
    ]
    yield from ((path, alike[0]) for path in alike[1:])


def _is_equal(tensor: ir.TensorProtocol, one: ir.TensorProtocol, shape: tuple[int | str | None, ...]) -> bool:
    like = tensor.dtype == one.dtype and tuple(tensor.shape.numpy()) == shape
    return like and tensor.tobytes() == one.tobytes()


def has_elements_of(tensor: ir.TensorProtocol, one: ir.TensorProtocol) -> bool:
    """Whether a tensor has the elements of another, or some of them, in whatever order."""
    if tensor.dtype != one.dtype or tensor.size > one.size:
        return False
    found, known = np.unique(tensor.numpy()), np.unique(one.numpy())
    return bool(np.isin(found, known, assume_unique=True).all())


def write_path(path: str) -> str:
    """The path of a tensor as the class that holds it says it, `blocks.0.weight` as `self.blocks[0].weight`."""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))

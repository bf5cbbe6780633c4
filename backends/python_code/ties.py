"""What is known of the tensors that code holds: which are shared in the source, which are trained, their precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ...engine.base.constants import FROZEN, SHARED
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions.registry import SHORT
from .printer import write_statement
from .templates import fill, parse_template


def write_last_statements(tensors: Sequence[tuple[str, ir.Value]], graph: ir.Graph, python: DialectPython) -> list[str]:
    """The lines at the end of a constructor: what is shared, what is not trained, and the precision of all."""
    lines: list[str] = []
    for one, other in find_tied(tensors, graph.meta.get(SHARED, ())) if python.ties else ():
        lines += write_statement(f"{write_path(one)} = ", parse_template(write_path(other)), 2)
    for path in find_frozen(tensors, graph.meta.get(FROZEN, ())) if python.frozen else ():
        weight = parse_template(write_path(path))
        lines += write_statement("", fill(parse_template(python.frozen or ""), {"weight": weight}), 2)
    precise = find_precision(tensors, python.precision)
    return lines if precise is None else [*lines, *write_statement("", parse_template(precise), 2)]


def write_layer_precisions(
    held: Sequence[tuple[str, ir.Value]], tensors: Sequence[tuple[str, ir.Value]], python: DialectPython
) -> list[str]:
    """The lines by which layers have the element type of what they hold, where not all of a model has it: layers are
    made in single precision."""
    lines: list[str] = []
    if find_precision(tensors, python.precision) is not None:
        return lines
    kinds = {path.rpartition(".")[0]: value.dtype for path, value in held if value.dtype is not None}
    for path, kind in kinds.items():
        call = python.precision.get(SHORT[kind])
        if call is not None:
            layer = parse_template(write_path(path))
            lines += write_statement("", fill(parse_template(call), {"self": layer}), 2)
    return lines


def find_tied(tensors: Sequence[tuple[str, ir.Value]], shared: Sequence[ir.TensorProtocol]) -> list[tuple[str, str]]:
    """The paths of tensors that are one in the source, each with that of the first; `shared` are those of the source
    that several nodes read."""
    return [pair for one in shared if one.size > 1 for pair in _list_pairs(one, tensors)]


def find_precision(tensors: Sequence[tuple[str, ir.Value]], calls: Mapping[str, str]) -> str | None:
    """The call by which all real numbers that a model holds have their element type, where they have one alone."""
    kinds = {value.dtype for _, value in tensors if value.dtype is not None and value.dtype.is_floating_point()}
    return calls.get(SHORT[kinds.pop()]) if len(kinds) == 1 else None


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

"""Models of one operator, to try an interpreter or a converter with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..engine.base.errors import ModelError
from ..engine.base.quantization import KEY, Quantization
from ..engine.dialects.operators import Catalogue, Dialect, Option
from ..frontends import option
from .tflite_writer import write

#: an element type: of ONNX, of TensorFlow Lite by name, or of numpy
Type = ir.DataType | str | type[np.generic]
#: a value by element type, shape (None for a dimension that is not known), and maybe quantization
Described = tuple[Type, Sequence[int | None]] | tuple[Type, Sequence[int | None], Quantization]
#: a constant, maybe quantized
Constant = npt.NDArray[Any] | tuple[npt.NDArray[Any], Quantization] | ir.TensorProtocol


def write_operator_model(
    catalogue: Catalogue,
    op: str,
    inputs: Mapping[str, Described | Constant | None],
    outputs: Sequence[Described],
    **options: Any,
) -> bytes:
    """Write a TensorFlow Lite model of one operator: see `make_operator_model` for the arguments."""
    return write(make_operator_model(catalogue, op, inputs, outputs, **options), catalogue)


def make_operator_model(
    catalogue: Catalogue,
    op: str,
    inputs: Mapping[str, Described | Constant | None],
    outputs: Sequence[Described],
    **options: Any,
) -> ir.Model:
    """A model of one operator of the dialect `tflite`, its results named `output_0` and on.

    Operands are given in order: arrays become constants, None is an operand left out, all else becomes an input of the
    model under its name. An operator that ops.yaml does not have becomes a custom one. Raises ModelError for an option
    that the operator does not have.
    """
    dialect = catalogue.find_dialect("tflite")
    spec = dialect.operators.get(op)
    attributes = []
    for name, value in options.items():
        if spec is not None and name not in spec.options:
            raise ModelError(f"{op} has no option {name}, only {', '.join(spec.options) or 'none at all'}")
        made = make_attribute(spec.options[name], value, dialect) if spec else option.make_attribute(name, value)
        if made is not None:
            attributes.append(made)
    operands = [None if what is None else _make_value(name, what, dialect) for name, what in inputs.items()]
    results = [_make_value(f"output_{i}", what, dialect) for i, what in enumerate(outputs)]
    domain = spec.domain if spec else f"{dialect.domain}.custom"
    node = ir.Node(domain, op, operands, attributes, outputs=results, name=op)
    constants = [value for value in operands if value is not None and value.const_value is not None]
    main = ir.Graph(
        [value for value in operands if value is not None and value.const_value is None],
        results,
        nodes=[node],
        initializers=constants,
        opset_imports={dialect.domain: 1},
        name="main",
    )
    return ir.Model(main, ir_version=10)


def find_element_type(kind: Type, dialect: Dialect) -> ir.DataType:
    """The ONNX element type for any way to say one; raises ModelError where there is none."""
    if isinstance(kind, ir.DataType):
        return kind
    if not isinstance(kind, str):
        return ir.DataType.from_numpy(np.dtype(kind))
    entry = dialect.types.get(kind)
    if entry is None or entry["dtype"] is None:
        raise ModelError(f"there is no element type {kind}")
    return ir.DataType[entry["dtype"]]


def _make_value(name: str, what: Described | Constant, dialect: Dialect) -> ir.Value:
    value = ir.Value(name=name)
    if isinstance(what, tuple) and isinstance(what[-1], Quantization):
        value.meta[KEY] = what[-1]
    if isinstance(what, tuple) and not isinstance(what[0], np.ndarray):
        described: tuple[Any, ...] = what
        value.type = ir.TensorType(find_element_type(described[0], dialect))
        value.shape = ir.Shape(described[1])
        return value
    content = ir.tensor(what[0] if isinstance(what, tuple) else what, name=name)
    value.const_value = content
    value.type = ir.TensorType(content.dtype)
    value.shape = ir.Shape(content.shape.numpy())
    return value


def make_attribute(known: Option, value: Any, dialect: Dialect) -> ir.Attr:
    """An option's value as an attribute of the type that ops.yaml gives the option."""
    types = ir.AttributeType
    base = known.type.strip("[]")
    texts = base == "string" or base in dialect.enums
    floats = base in ("float", "double")
    if base == "tensor":
        array = np.asarray(value)
        return ir.AttrTensor(known.name, ir.tensor(array.astype(np.float32) if array.dtype == np.float64 else array))
    if known.type.startswith("["):
        items = np.ravel(np.array(value, object)).tolist()  # as of a constant of more axes that is an option here
        return ir.Attr(known.name, types.STRINGS if texts else types.FLOATS if floats else types.INTS, items)
    return ir.Attr(known.name, types.STRING if texts else types.FLOAT if floats else types.INT, value)

"""TensorFlow Lite files as graphs: a table walk that knows containers and no operator."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.errors import ModelError
from ..engine.operators import Catalogue, Dialect, OperatorSpec, Option
from ..engine.quantization import Quantization
from . import constant, flexbuffer
from .flatbuffer import FlatBuffer, Record, Reference, schema

#: number of the buffer that stands for no data
_NO_BUFFER = 0

_Maker = Callable[[str, Any], ir.Attr]


@dataclass(frozen=True, slots=True)
class Signature:
    """A named way to call a model: the names a caller uses, and the graph's values they stand for."""

    key: str
    subgraph: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def read(
    source: str | os.PathLike[str] | bytes | memoryview, catalogue: Catalogue, name: str | None = None
) -> ir.Model:
    """Read a TensorFlow Lite model, from a file or from bytes, as a graph of the dialect `tflite`.

    Constants are views of the mapped file. `name` is what errors call the source. `meta` of the model has `subgraphs`
    (all graphs, the main one first), `signatures`, `description` and `metadata`; `meta` of a value has `quantization`
    (engine.quantization.Quantization), `variable`, `static_shape` where the file has a static shape beside a dynamic
    one, `sparsity` (constant.Sparsity), and `type` for element types that ONNX lacks; `meta` of a node has
    `custom_options` (the bytes), options of type bytes, `intermediates` and `mutating_variable_inputs`.

    Raises ModelError when there is no such file, or it is not a well-formed model.
    """
    if isinstance(source, bytes | memoryview):
        data, name = memoryview(source).cast("B"), name or "model"
    else:
        data, name = load(source), name or os.fspath(source)
    dialect = catalogue.dialect("tflite")
    return _Reader(FlatBuffer(data, name, schema(dialect)), dialect).model()


def load(path: str | os.PathLike[str]) -> memoryview:
    """Map a file into memory; raises ModelError when it cannot be read or is empty."""
    try:
        with Path(path).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ModelError(f"{os.fspath(path)}: the file is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelError(f"{os.fspath(path)}: {reason}") from error


def quoted(name: str) -> str:
    """A name out of a file, fit to stand in one line of a message."""
    return json.dumps(name if len(name) <= 80 else f"{name[:77]}...")


def _makers(spec: OperatorSpec, dialect: Dialect) -> dict[str, _Maker]:
    """How each option of an operator becomes an attribute."""
    return {name: _maker(option, dialect) for name, option in spec.options.items() if option.type != "bytes"}


def _maker(option: Option, dialect: Dialect) -> _Maker:
    types = ir.AttributeType
    base = option.type.strip("[]")
    vector = option.type.startswith("[")
    if base in dialect.enums:
        names = {number: enumerant for enumerant, number in dialect.enums[base].items()}

        def enumerant(number: int) -> str:
            return names.get(number) or f"{base}({number})"

        if vector:
            return lambda name, value: ir.Attr(name, types.STRINGS, [enumerant(number) for number in value or ()])
        return lambda name, value: ir.Attr(name, types.STRING, enumerant(value))
    single, many = {"float": (types.FLOAT, types.FLOATS), "double": (types.FLOAT, types.FLOATS)}.get(
        base, (types.STRING, types.STRINGS) if base == "string" else (types.INT, types.INTS)
    )
    if vector:
        return lambda name, value: ir.Attr(name, many, value if value is not None else ())
    return lambda name, value: ir.Attr(name, single, value)


def _custom_attribute(name: str, value: Any) -> ir.Attr | None:
    """The attribute for a value out of a FlexBuffers map; None where a list has mixed types."""
    types = ir.AttributeType
    if isinstance(value, str):
        return ir.Attr(name, types.STRING, value)
    if isinstance(value, float):
        return ir.Attr(name, types.FLOAT, value)
    if not isinstance(value, list):
        return ir.Attr(name, types.INT, value)
    if all(isinstance(item, str) for item in value) and value:
        return ir.Attr(name, types.STRINGS, value)
    if any(isinstance(item, str) for item in value):
        return None
    return ir.Attr(name, types.FLOATS if any(isinstance(item, float) for item in value) else types.INTS, value)


@dataclass(frozen=True, slots=True)
class _Code:
    """An operator code of a file: the operator's name, and how its options are read."""

    domain: str
    name: str
    version: int
    custom: bool = False
    table: str | None = None
    #: field of the operator's table that holds the options
    union: str = ""
    makers: Mapping[str, _Maker] = field(default_factory=dict)


@dataclass(slots=True)
class _Subgraph:
    """A subgraph being read: its tensors, and the value that each stands for so far."""

    index: int
    record: Record
    tensors: list[Record]
    names: list[str]
    taken: set[str]
    values: dict[int, ir.Value] = field(default_factory=dict)
    constants: list[ir.Value] = field(default_factory=list)
    inputs: frozenset[int] = frozenset()
    produced: frozenset[int] = frozenset()


class _Reader:
    """One file being read."""

    def __init__(self, file: FlatBuffer, dialect: Dialect) -> None:
        self.file = file
        self.dialect = dialect
        self.error = file.error
        self.custom = dialect.role("custom")
        self.types = {
            entry["code"]: (name, None if entry["dtype"] is None else ir.DataType[entry["dtype"]])
            for name, entry in dialect.types.items()
        }

    def model(self) -> ir.Model:
        root = self.file.root("Model", self.dialect.facts["identifier"])
        wanted = self.dialect.facts["version"]
        if root["version"] != wanted:
            raise self.error(f"schema version {root['version']} is not {wanted}, the only supported one")
        self.buffers: list[Record] = root["buffers"] or []
        self.codes = [self._code(record) for record in root["operator_codes"] or []]
        subgraphs = root["subgraphs"] or []
        if not subgraphs:
            raise self.error("the model has no subgraph")
        opened = [self._open(index, record) for index, record in enumerate(subgraphs)]
        graphs = [self._graph(subgraph) for subgraph in opened]
        model = ir.Model(graphs[0], ir_version=10, producer_name=self.dialect.name)
        model.meta["subgraphs"] = graphs
        model.meta["signatures"] = tuple(self._signature(s, opened) for s in root["signature_defs"] or [])
        model.meta["description"] = root["description"] or ""
        model.meta["metadata"] = {
            entry["name"] or "": bytes(self._bytes(entry["buffer"], "metadata") or b"")
            for entry in root["metadata"] or []
        }
        return model

    def _code(self, record: Record) -> _Code:
        code = max(record["deprecated_builtin_code"], record["builtin_code"])
        version = record["version"]
        domain = self.dialect.domain
        if code == self.custom.code:
            if not record["custom_code"]:
                raise self.error("a custom operator has no name")
            return _Code(f"{domain}.custom", record["custom_code"], version, custom=True)
        spec = self.dialect.by_code(code)
        if spec is None:
            return _Code(domain, f"BUILTIN_{code}", version)
        if spec.table is None:
            return _Code(domain, spec.name, version)
        union = self.file.schema.union_of(spec.table)
        fields = self.file.schema.tables["Operator"].values()
        place = next(field.name for field in fields if union is not None and field.type == union[0])
        return _Code(domain, spec.name, version, False, spec.table, place, _makers(spec, self.dialect))

    def _bytes(self, number: int, what: str) -> memoryview | None:
        """The content of a buffer, which may lie outside the tables of the file; None where it has none."""
        if number == _NO_BUFFER:
            return None
        if number >= len(self.buffers):
            raise self.error(f"malformed: {what} has buffer {number}, the file has {len(self.buffers)}")
        record = self.buffers[number]
        if record["data"] is None and record["offset"] > 1:
            return self.file.span(what, record["offset"], record["size"])
        data: memoryview | None = record["data"]
        return data

    def _open(self, index: int, record: Record) -> _Subgraph:
        """Check a subgraph's indices and name its tensors, those of its inputs and outputs first."""
        tensors = record["tensors"] or []
        inputs = self._indices(record["inputs"], tensors, f"an input of subgraph {index}")
        outputs = self._indices(record["outputs"], tensors, f"an output of subgraph {index}")
        names = [""] * len(tensors)
        taken: set[str] = set()
        for i in dict.fromkeys((*inputs, *outputs, *range(len(tensors)))):
            wanted = name = tensors[i]["name"] or f"tensor_{i}"
            while name in taken:
                name = f"{name}_{i}" if name == wanted else f"{name}_"
            names[i] = name
            taken.add(name)
        produced = frozenset(i for operator in record["operators"] or [] for i in operator["outputs"] or () if i >= 0)
        return _Subgraph(index, record, tensors, names, taken, inputs=frozenset(inputs), produced=produced)

    def _indices(self, vector: memoryview | None, tensors: list[Record], what: str) -> list[int]:
        """A vector of tensor indices, all of them there."""
        if vector is None:
            return []
        self.file.charge(len(vector))
        indices: list[int] = vector.tolist()
        for i in indices:
            if not 0 <= i < len(tensors):
                raise self.error(f"malformed: {what} is tensor {i}, there are {len(tensors)}")
        return indices

    def _graph(self, subgraph: _Subgraph) -> ir.Graph:
        record = subgraph.record
        inputs = [self._value(subgraph, i) for i in (record["inputs"] or ())]
        nodes = [self._node(subgraph, i, operator) for i, operator in enumerate(record["operators"] or [])]
        outputs = [
            self._source(subgraph, i, f"output {position} of subgraph {subgraph.index}")
            for position, i in enumerate(record["outputs"] or ())
        ]
        return ir.Graph(
            inputs,
            outputs,
            nodes=nodes,
            initializers=subgraph.constants,
            opset_imports={self.dialect.domain: 1},
            name=record["name"] or f"subgraph_{subgraph.index}",
        )

    def _value(self, subgraph: _Subgraph, i: int) -> ir.Value:
        """The value that a tensor stands for, made on first use."""
        value = subgraph.values.get(i)
        if value is None:
            value = subgraph.values[i] = self._make(subgraph, i)
        return value

    def _make(self, subgraph: _Subgraph, i: int) -> ir.Value:
        record, name = subgraph.tensors[i], subgraph.names[i]
        what = f"tensor {i} ({quoted(name)})"
        if record["type"] not in self.types:
            raise self.error(f"{what} has the unknown element type {record['type']}")
        type_name, dtype = self.types[record["type"]]
        self.file.charge(len(record["shape"] or ()))
        static = tuple(record["shape"] or ())
        if any(n < 0 for n in static):
            raise self.error(f"{what} has the shape {list(static)}")
        if record["external_buffer"]:
            raise self.error(f"{what} keeps its elements in another file, which is not supported")
        value = ir.Value(name=name, type=None if dtype is None else ir.TensorType(dtype))
        data = self._bytes(record["buffer"], what)
        if record["is_variable"]:
            value.meta["variable"] = True
        elif i not in subgraph.inputs and i not in subgraph.produced and (data or 0 in static):
            data = data or memoryview(b"")
            if dtype is None:
                raise self.error(f"{what} is a constant of type {type_name}")
            value.const_value = self._constant(data, dtype, static, value, record, what)
            subgraph.constants.append(value)
        value.shape = self._shape(subgraph, i, static, value)
        if dtype is None:
            value.meta["type"] = type_name
        if record["quantization"] is not None:
            quantization = self._quantization(record["quantization"], static, subgraph, what)
            if quantization is not None:
                value.meta["quantization"] = quantization
        return value

    def _shape(self, subgraph: _Subgraph, i: int, static: tuple[int, ...], value: ir.Value) -> ir.Shape | None:
        record = subgraph.tensors[i]
        if value.const_value is not None:
            return ir.Shape(static)
        if not static and not record["has_rank"] and i not in subgraph.inputs:
            # Also how files from before the field say scalar; an operator's result can be inferred, an input cannot.
            return None
        signature = record["shape_signature"]
        if signature is None or len(signature) != len(static) or -1 not in signature:
            return ir.Shape(static)
        value.meta["static_shape"] = static
        symbol = value.name if i in subgraph.inputs else None
        return ir.Shape([n if n >= 0 else f"{symbol}_d{axis}" if symbol else None for axis, n in enumerate(signature)])

    def _constant(
        self, data: memoryview, dtype: ir.DataType, shape: tuple[int, ...], value: ir.Value, record: Record, what: str
    ) -> ir.TensorProtocol:
        try:
            if record["sparsity"] is None:
                if dtype == ir.DataType.STRING:
                    self.file.charge(len(data) // 4)
                return constant.tensor(data, dtype, shape, value.name or "")
            sparsity = self._sparsity(record["sparsity"], data, dtype, what)
            value.meta["sparsity"] = sparsity
            self.file.charge(len(data))
            return ir.Tensor(constant.densify(sparsity, shape, self.file.size), dtype, name=value.name)
        except constant.ConstantError as error:
            raise self.error(f"{what}: {error}") from error

    def _sparsity(self, record: Record, data: memoryview, dtype: ir.DataType, what: str) -> constant.Sparsity:
        if dtype == ir.DataType.STRING or dtype.bitwidth < 8 or len(data) * 8 % dtype.bitwidth:
            raise self.error(f"{what} is a sparse tensor of {dtype.name} in {len(data)} bytes")
        levels = []
        for level in record["dim_metadata"] or []:
            if level["format"] == self.dialect.enums["DimensionType"]["DENSE"]:
                levels.append(constant.Level(level["dense_size"]))
                continue
            vectors = [self._member(level[part], "values") for part in ("array_segments", "array_indices")]
            if vectors[0] is None or vectors[1] is None:
                raise self.error(f"{what} has a sparse dimension without segments or indices")
            levels.append(constant.Level(0, np.asarray(vectors[0]), np.asarray(vectors[1])))
        return constant.Sparsity(
            tuple(record["traversal_order"] or ()),
            tuple(record["block_map"] or ()),
            tuple(levels),
            np.frombuffer(data, dtype.numpy()),
        )

    def _member(self, reference: Reference | None, name: str) -> Any:
        return None if reference is None else self.file.table(*reference)[name]

    def _quantization(
        self, record: Record, shape: tuple[int, ...], subgraph: _Subgraph, what: str
    ) -> Quantization | None:
        axis = record["quantized_dimension"]
        details = None if record["details"] is None else self.file.table(*record["details"])
        if details is not None and "scales" in details:
            return self._blockwise(details, axis, subgraph, what)
        if not record["scale"]:
            return None
        scale = np.asarray(record["scale"])
        zero = np.zeros(1, np.int64) if not record["zero_point"] else np.asarray(record["zero_point"])
        if len(zero) == 1 < len(scale):
            zero = np.broadcast_to(zero, scale.shape)
        if len(zero) != len(scale):
            raise self.error(f"{what} has {len(scale)} scales and {len(zero)} zero points")
        if len(shape) == 1:
            axis = 0  # some writers give a bias the axis of its filter
        if len(scale) > 1 and shape and (not 0 <= axis < len(shape) or shape[axis] != len(scale)):
            raise self.error(f"{what} of shape {list(shape)} has {len(scale)} scales along axis {axis}")
        return Quantization(scale, zero, axis)

    def _blockwise(self, details: Record, axis: int, subgraph: _Subgraph, what: str) -> Quantization:
        """Scales and zero points that are tensors of their own."""
        arrays = []
        for i in (details["scales"], details["zero_points"]):
            if i < 0 or (i == 0 and arrays):
                arrays.append(np.zeros(arrays[0].shape, np.int64) if arrays else np.zeros(0, np.float32))
                continue
            if i >= len(subgraph.tensors):
                raise self.error(f"malformed: the scales of {what} are tensor {i}, there are {len(subgraph.tensors)}")
            record = subgraph.tensors[i]
            dtype = self.types.get(record["type"], ("", None))[1]
            data = self._bytes(record["buffer"], what)
            if dtype is None or dtype == ir.DataType.STRING or data is None:
                raise self.error(f"the scales of {what}, tensor {i}, are not constant numbers")
            try:
                arrays.append(constant.tensor(data, dtype, tuple(record["shape"] or ()), "").numpy())
            except constant.ConstantError as error:
                raise self.error(f"the scales of {what}: {error}") from error
        return Quantization(
            arrays[0], arrays[1], axis, details["block_size"], tuple(details.get("quantized_dimensions") or ())
        )

    def _source(self, subgraph: _Subgraph, i: int, reader: str) -> ir.Value:
        """The value that is read from a tensor, checked to have come from somewhere."""
        value = subgraph.values.get(i)
        if value is None:
            value = self._value(subgraph, i)
            if value.const_value is None and not subgraph.tensors[i]["is_variable"]:
                whence = "a later operator" if i in subgraph.produced else "nothing"
                raise self.error(f"{reader} reads tensor {i} ({quoted(subgraph.names[i])}), which {whence} produces")
        return value

    def _result(self, subgraph: _Subgraph, i: int, number: int) -> ir.Value:
        """The value that an operator writes to a tensor: a new one where the tensor has had another value before."""
        if i in subgraph.values:
            if subgraph.tensors[i]["is_variable"]:
                raise self.error(f"operator {number} yields tensor {i}, a variable that has been read before")
            del subgraph.values[i]
            name = f"{subgraph.names[i]}_{number}"
            while name in subgraph.taken:
                name += "_"
            subgraph.taken.add(name)
            subgraph.names[i] = name
        return self._value(subgraph, i)

    def _node(self, subgraph: _Subgraph, number: int, record: Record) -> ir.Node:
        if record["opcode_index"] >= len(self.codes):
            raise self.error(
                f"malformed: operator {number} has code {record['opcode_index']}, the file has {len(self.codes)}"
            )
        code = self.codes[record["opcode_index"]]
        what = f"operator {number} ({code.name})"
        inputs = [
            None if i is None else self._source(subgraph, i, what)
            for i in self._operands(record["inputs"], subgraph, what)
        ]
        results = self._indices(record["outputs"], subgraph.tensors, f"a result of {what}")
        if len(set(results)) < len(results):
            raise self.error(f"{what} yields the same tensor twice")
        attributes, other = self._options(code, record)
        place = f"{subgraph.index}_{number}" if subgraph.index else f"{number}"
        node = ir.Node(
            code.domain,
            code.name,
            inputs,
            attributes,
            outputs=[self._result(subgraph, i, number) for i in results],
            version=code.version,
            name=f"{code.name}_{place}",
            metadata_props={"nnrewrite.source": f"{code.name}@{subgraph.index}:{number}"},
        )
        if other:
            node.meta.update(other)
        self._remember(node, record, subgraph, what)
        return node

    def _operands(self, vector: memoryview | None, subgraph: _Subgraph, what: str) -> list[int | None]:
        """The tensor indices of operands, None for one that is left out."""
        indices = [] if vector is None else vector.tolist()
        self.file.charge(len(indices))
        for i in indices:
            if not -1 <= i < len(subgraph.tensors):
                raise self.error(f"malformed: {what} reads tensor {i}, there are {len(subgraph.tensors)}")
        return [None if i < 0 else i for i in indices]

    def _options(self, code: _Code, record: Record) -> tuple[list[ir.Attr], Record]:
        """The options of an operator as attributes, and those that are bytes for its `meta`."""
        if code.custom:
            return self._custom(record)
        reference = record[code.union] if code.union else None
        # Another operator's options are no options: so says the interpreter.
        if reference is None or reference.table != code.table:
            return [], {}
        attributes, other = [], {}
        for name, value in self.file.present(*reference).items():
            if isinstance(value, memoryview):
                self.file.charge(len(value))
            if name in code.makers:
                attributes.append(code.makers[name](name, value))
            else:
                other[name] = bytes(value)
        return attributes, other

    def _raw(self, record: Record) -> memoryview | None:
        """The options of a custom operator, which may lie outside the tables of the file."""
        raw: memoryview | None = record["custom_options"]
        if raw is None and record["large_custom_options_offset"] > 1:
            size = record["large_custom_options_size"]
            return self.file.span("options of a custom operator", record["large_custom_options_offset"], size)
        return raw

    def _custom(self, record: Record) -> tuple[list[ir.Attr], Record]:
        raw = self._raw(record) or memoryview(b"")
        self.file.charge(len(raw))
        other = {"custom_options": bytes(raw)}
        try:
            options = flexbuffer.options(raw)
        except flexbuffer.FlexBufferError:
            # Custom operators may keep anything here; the bytes are in the node's meta.
            return [], other
        attributes = (_custom_attribute(name, value) for name, value in options.items())
        return [attribute for attribute in attributes if attribute is not None], other

    def _remember(self, node: ir.Node, record: Record, subgraph: _Subgraph, what: str) -> None:
        """Keep in `meta` what is neither operand nor option."""
        if record["intermediates"]:
            indices = self._indices(record["intermediates"], subgraph.tensors, f"an intermediate of {what}")
            node.meta["intermediates"] = tuple(self._value(subgraph, i) for i in indices)
        mutating = record["mutating_variable_inputs"]
        if mutating and any(mutating):
            self.file.charge(len(mutating))
            node.meta["mutating_variable_inputs"] = tuple(mutating)

    def _signature(self, record: Record, subgraphs: list[_Subgraph]) -> Signature:
        index, key = record["subgraph_index"], record["signature_key"] or ""
        if index >= len(subgraphs):
            raise self.error(f"malformed: signature {quoted(key)} is of subgraph {index} of {len(subgraphs)}")
        names = subgraphs[index].names
        sides: list[dict[str, str]] = []
        for side in ("inputs", "outputs"):
            entries = record[side] or []
            for entry in entries:
                if entry["tensor_index"] >= len(names):
                    raise self.error(f"malformed: signature {quoted(key)} names tensor {entry['tensor_index']}")
            sides.append({entry["name"] or "": names[entry["tensor_index"]] for entry in entries})
        return Signature(key, index, sides[0], sides[1])

"""Graphs of the dialect `tflite` as TensorFlow Lite files, generic over ops.yaml."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from flatbuffers import flexbuffers

from ..engine.base.constants import STATEFUL
from ..engine.base.errors import ModelError
from ..engine.base.garbage_collection import pause_collection
from ..engine.base.quantization import KEY, Quantization
from ..engine.base.startup import dataclass, field
from ..engine.dialects.operators import Catalogue, Dialect, OperatorSpec, Option
from ..engine.dialects.versions import find_version
from ..engine.rewrite.origins import RECORD, encode_origins
from ..frontends import custom, option
from ..frontends.constant import Sparsity
from ..frontends.flatbuffer_reader import make_schema
from . import flatbuffer_writer
from .flatbuffer_writer import Outside, Record, Union

#: constants are put behind the tables when they take more than this, as offsets reach 2 GiB
_INLINE = 1 << 30

#: the code that older readers look at is a byte; larger ones say this instead
_PLACEHOLDER = 127


def write(model: ir.Model, catalogue: Catalogue, inline: int = _INLINE) -> bytes:
    """Write a graph of the dialect `tflite`, with what `meta` says as frontends.tflite.read puts it there.

    A dimension that is not known becomes -1 in the shape signature, and `static_shape` or 1 in the shape. Constants go
    behind the tables when they take more than `inline` bytes. Raises ModelError when the graph has something that the
    format cannot say.
    """
    return b"".join(write_parts(model, catalogue, inline))


def write_parts(
    model: ir.Model, catalogue: Catalogue, inline: int = _INLINE, recorded: bool = True
) -> Iterator[flatbuffer_writer.Buffer]:
    """Write as `write` does, in parts to be put one behind the other; constants behind the tables are not copied.

    Which rule made each operator stands beside the model where it is to be `recorded`. Raises ModelError for what the
    format cannot hold.
    """
    dialect = catalogue.find_dialect("tflite")
    with pause_collection():
        record = _Writer(dialect, inline, recorded).write_model(model)
        try:
            yield from flatbuffer_writer.encode(make_schema(dialect), "Model", record, dialect.facts.identifier or "")
        except (struct.error, UnicodeEncodeError) as error:
            raise ModelError(f"a number or a name in the graph does not fit the format: {error}") from error


def number_enumerant(enumeration: Mapping[str, int], enumerant: str) -> int | None:
    """The number of an enumerant; of an unknown one the number in its parentheses; None where there is none."""
    unknown = re.fullmatch(r"\w+\((-?\d+)\)", enumerant)
    return int(unknown[1]) if unknown else enumeration.get(enumerant)


def pack_strings(items: Sequence[bytes]) -> bytes:
    """Pack strings as a buffer holds them: their number, the offset of each and of the end, then the bytes."""
    ends = np.cumsum([4 * (len(items) + 2), *map(len, items)], dtype=np.int64)
    return np.array([len(items), *ends], np.int32).tobytes() + b"".join(items)


def pack_options(attributes: Mapping[str, ir.Attr]) -> bytes:
    """Write attributes as a FlexBuffers map, as custom operators keep their options."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, attribute in attributes.items():
            builder.Key(name)
            if not isinstance(attribute.value, tuple):
                _add(builder, attribute.value)
                continue
            with builder.Vector():
                for item in attribute.value:
                    _add(builder, item)
    return bytes(builder.Finish())


def _add(builder: flexbuffers.Builder, value: str | float | int) -> None:
    if isinstance(value, str):
        builder.String(value)
    elif isinstance(value, int):
        builder.Int(value)
    else:
        # All eight bytes: the package fails on its own to find a width for what exceeds a float of four.
        builder.Float(value, 8)


@dataclass(slots=True)
class _Subgraph:
    """A subgraph being written: its tensors so far, which value each is, and the nodes that are its operators."""

    tensors: list[Record] = field(default_factory=list)
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    nodes: list[ir.Node] = field(default_factory=list)


class _Writer:
    """One model being written."""

    def __init__(self, dialect: Dialect, inline: int, recorded: bool) -> None:
        self.dialect = dialect
        self.inline, self.recorded = inline, recorded
        self.types = {entry["dtype"]: name for name, entry in dialect.types.items() if entry["dtype"] is not None}
        self.codes: dict[tuple[int, str | None, int], int] = {}
        self.buffers: list[npt.NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
        self.bodies: dict[ir.Graph, int] = {}
        self.shared: dict[tuple[int, int], int] = {}

    def write_model(self, model: ir.Model) -> Record:
        graphs = [model.graph, *model.meta.get("subgraphs", ())[1:]]
        for graph in graphs:  # those that attributes hold follow the graphs that they are found in
            inner = [a.value for node in graph for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH]
            self.bodies.update({body: len(graphs) + place for place, body in enumerate(inner)})
            graphs += inner
        opened = [_Subgraph() for _ in graphs]
        subgraphs = [self._write_graph(graph, subgraph) for graph, subgraph in zip(graphs, opened, strict=True)]
        signatures = [self._write_signature(signature, opened) for signature in model.meta.get("signatures", ())]
        beside = dict(model.meta.get("metadata", {}))
        beside.pop(RECORD, None)  # which was about the operators that the model had before
        if self.recorded and (record := encode_origins([one.nodes for one in opened])) is not None:
            beside[RECORD] = record
        metadata = [
            {"name": name, "buffer": self._add_buffer(np.frombuffer(content, np.uint8))}
            for name, content in beside.items()
        ]
        outside = sum(map(len, self.buffers)) > self.inline
        return {
            "version": self.dialect.facts.version,
            "operator_codes": [
                {
                    "deprecated_builtin_code": min(code, _PLACEHOLDER),
                    "custom_code": custom,
                    "version": version,
                    "builtin_code": code,
                }
                for code, custom, version in self.codes
            ],
            "subgraphs": subgraphs,
            "description": model.meta.get("description") or None,
            "buffers": [_make_data(content, outside) for content in self.buffers],
            "metadata": metadata or None,
            "signature_defs": signatures or None,
        }

    def _add_buffer(self, content: npt.NDArray[np.uint8]) -> int:
        """The number of a buffer, the same for what is one memory."""
        if not content.size:
            self.buffers.append(content)
            return len(self.buffers) - 1
        place = content.__array_interface__["data"][0], content.size
        if place not in self.shared:  # which no other has while the buffers are held
            self.buffers.append(content)
            self.shared[place] = len(self.buffers) - 1
        return self.shared[place]

    def _write_graph(self, graph: ir.Graph, subgraph: _Subgraph) -> Record:
        inputs = [self._number_tensor(value, subgraph) for value in graph.inputs]
        subgraph.nodes += [node for node in graph if not self._is_alias(node, subgraph)]
        operators = [self._write_operator(node, subgraph) for node in subgraph.nodes]
        return {
            "inputs": inputs,
            "operators": operators,
            "outputs": [self._number_tensor(value, subgraph) for value in graph.outputs],
            "name": graph.name or "",
            "tensors": subgraph.tensors,
        }

    def _is_alias(self, node: ir.Node, subgraph: _Subgraph) -> bool:
        """Whether a node only gives a value another name, which is then that of the same tensor."""
        spec = self.dialect.operators.get(node.op_type)
        if spec is None or spec.role != "copy" or spec.code is not None or node.inputs[0] is None:
            return False
        inner = node.graph if node.graph in self.bodies else None
        if node.inputs[0].is_graph_input() and inner is not None:
            return False  # what a loop carries on is written while it is read
        number = self._number_tensor(node.inputs[0], subgraph)
        results = inner.outputs if inner is not None and node.outputs[0].is_graph_output() else ()
        if any(subgraph.numbers.get(one) == number for one in results):
            return False  # the interpreter hands the memory of a result on once
        subgraph.numbers[node.outputs[0]] = number
        return True

    def _number_tensor(self, value: ir.Value, subgraph: _Subgraph) -> int:
        """The number of a value's tensor, made on first use."""
        known = subgraph.numbers.get(value)
        if known is not None:
            return known
        content = None if value.is_graph_input() else value.const_value
        shape: Any = value.shape if content is None else content.shape
        static, signature = _split_shape(shape, value.meta.get("static_shape"))
        record: dict[str, Any] = {
            "shape": static,
            "type": self._find_type(value),
            "buffer": 0 if content is None else self._add_buffer(_encode_content(value, content)),
            "name": value.name or "",
            "is_variable": True if value.meta.get(STATEFUL) else None,
            "sparsity": _write_sparsity(value.meta["sparsity"], self.dialect) if "sparsity" in value.meta else None,
            "shape_signature": signature,
            "has_rank": True if shape is not None and not len(shape) else None,  # else extents tell
        }
        quantization = value.meta.get(KEY)
        if quantization is not None:
            record["quantization"] = self._write_quantization(quantization, subgraph)
        subgraph.numbers[value] = len(subgraph.tensors)
        subgraph.tensors.append(record)
        return len(subgraph.tensors) - 1

    def _find_type(self, value: ir.Value) -> int:
        name = value.meta.get("type")
        if value.dtype is not None:
            name = self.types.get(value.dtype.name)
        if name is None:
            if value.dtype is not None or (node := value.producer()) is None:
                raise ModelError(f"{value.name}: TensorFlow Lite has no element type {value.dtype}")
            raise ModelError(f"{value.name}: what {node.op_type} yields has no element type that is known")
        return int(self.dialect.types[name]["code"])

    def _write_quantization(self, quantization: Quantization, subgraph: _Subgraph) -> Record:
        if not quantization.block_size:
            return {
                "scale": quantization.scale.tolist(),
                "zero_point": quantization.zero_point.tolist(),
                # a delegate takes one scale along the first axis alone
                "quantized_dimension": quantization.axis if quantization.per_axis else 0,
            }
        scale, zero = quantization.scale, quantization.zero_point
        half = scale.astype(np.float16)  # the type that kernels read scales of blocks in
        details: dict[str, Any] = {
            "scales": self._add_constant(half if np.array_equal(half, scale) else scale, subgraph),
            "zero_points": self._add_constant(zero, subgraph) if zero.any() else -1,
            "block_size": quantization.block_size,
        }
        table = "MultiAxisQuantization" if quantization.axes else "BlockwiseQuantization"
        if quantization.axes:
            details["quantized_dimensions"] = quantization.axes
        # XNNPACK takes blocks whose file names the first axis; which one is divided the shape of the scales tells
        axis = quantization.axis if quantization.axes else 0
        return {"details": Union(table, details), "quantized_dimension": axis}

    def _add_constant(self, array: npt.NDArray[Any], subgraph: _Subgraph) -> int:
        """A tensor that only another tensor's quantization refers to; never the first one, which means none there."""
        if not subgraph.tensors:
            subgraph.tensors.append({"shape": (0,), "has_rank": True})
        content = ir.tensor(array)
        value = ir.Value(name=f"scales_{len(subgraph.tensors)}", type=ir.TensorType(content.dtype))
        value.const_value = content
        return self._number_tensor(value, subgraph)

    def _write_operator(self, node: ir.Node, subgraph: _Subgraph) -> Record:
        record: dict[str, Any] = {
            "inputs": [-1 if value is None else self._number_tensor(value, subgraph) for value in node.inputs],
            "outputs": [self._number_tensor(value, subgraph) for value in node.outputs],
            "mutating_variable_inputs": node.meta.get("mutating_variable_inputs"),
            "intermediates": [self._number_tensor(value, subgraph) for value in node.meta.get("intermediates", ())]
            or None,
        }
        unknown = re.fullmatch(r"BUILTIN_(-?\d+)", node.op_type)
        spec = self.dialect.operators.get(node.op_type)
        version = node.version or (1 if spec is None else find_version(spec, node))
        if node.domain == f"{self.dialect.domain}.custom":
            record["custom_options"] = _encode_custom_options(node, spec)
            code: tuple[int, str | None, int] = (int(self.dialect.find_role("custom").code or 0), node.op_type, version)
        elif node.domain != self.dialect.domain or not (spec or unknown):
            raise ModelError(f"{node.name}: TensorFlow Lite has no operator {node.domain}::{node.op_type}")
        elif unknown:
            code = (int(unknown[1]), None, version)
        elif spec is not None and spec.role == "copy" and spec.code is None:
            code = (int(self.dialect.find_role("convert").code or 0), None, version)
        elif spec is None or spec.code is None:
            raise ModelError(f"{node.name}: {node.op_type} is a form that no file has")
        else:
            code = (spec.code, None, version)
            record.update(self._write_options(node, spec))
        record["opcode_index"] = self.codes.setdefault(code, len(self.codes))
        return record

    def _write_options(self, node: ir.Node, spec: OperatorSpec) -> Record:
        """The table of options, under the union that it belongs to."""
        for name in node.attributes:
            if name not in spec.options:
                raise ModelError(f"{node.name}: {spec.name} has no option {name}")
        if spec.table is None:
            return {}
        tables = make_schema(self.dialect)
        union = tables.find_union(spec.table)
        if union is None:
            raise ModelError(f"ops.yaml: {spec.table} is in no union")
        place = next(field.name for field in tables.tables["Operator"].values() if field.type == union[0])
        options = {}
        for name, known in spec.options.items():
            if name in spec.when:
                options[name] = self._convert_option(known, spec.when[name], node)
            elif name in node.attributes:
                options[name] = self._convert_option(known, node.attributes[name].value, node)
            elif name in node.meta:
                options[name] = node.meta[name]
        return {place: Union(spec.table, options)}

    def _convert_option(self, known: Option, value: Any, node: ir.Node) -> Any:
        if isinstance(value, ir.Graph):
            return self.bodies[value]
        enumeration = self.dialect.enums.get(known.type.strip("[]"))
        if enumeration is None:
            return value
        vector = known.type.startswith("[")
        numbers = [number_enumerant(enumeration, enumerant) for enumerant in (value if vector else [value])]
        if None in numbers:
            raise ModelError(f"{node.name}: {known.name} cannot be {value}, only {', '.join(enumeration)}")
        return numbers if vector else numbers[0]

    def _write_signature(self, signature: Any, subgraphs: list[_Subgraph]) -> Record:
        numbers = {value.name: i for value, i in subgraphs[signature.subgraph].numbers.items()}

        def list_entries(names: Mapping[str, str]) -> list[Record]:
            missing = [name for name in names.values() if name not in numbers]
            if missing:
                raise ModelError(f"signature {signature.key} names {missing[0]}, which the graph does not have")
            return [{"name": key, "tensor_index": numbers[name]} for key, name in names.items()]

        return {
            "inputs": list_entries(signature.inputs),
            "outputs": list_entries(signature.outputs),
            "signature_key": signature.key,
            "subgraph_index": signature.subgraph,
        }


def _make_data(content: npt.NDArray[np.uint8], outside: bool) -> Record:
    if not len(content):
        return {}
    return {"offset": Outside(content), "size": len(content)} if outside and len(content) > 1 else {"data": content}


def _split_shape(
    shape: ir.Shape | None, known: tuple[int, ...] | None
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Static shape and signature of a tensor; no signature where all is static."""
    if shape is None:
        return None, None
    signature = tuple(n if isinstance(n, int) else -1 for n in shape)
    if -1 not in signature:
        return signature, None
    if known is None or len(known) != len(signature):
        known = tuple(max(n, 1) for n in signature)
    return known, signature


def _encode_content(value: ir.Value, content: ir.TensorProtocol) -> npt.NDArray[np.uint8]:
    """The bytes of a constant as a buffer holds them."""
    sparsity = value.meta.get("sparsity")
    if sparsity is not None:
        return np.ascontiguousarray(sparsity.stored).view(np.uint8)
    if content.dtype == ir.DataType.STRING:
        strings = content.string_data() if isinstance(content, ir.StringTensor) else content.numpy().ravel().tolist()
        return np.frombuffer(pack_strings(strings) if strings else b"", np.uint8)
    if isinstance(content, ir.PackedTensor):
        return content.numpy_packed().ravel()
    if content.dtype.bitwidth < 8:
        return np.frombuffer(content.tobytes(), np.uint8)
    return np.ascontiguousarray(content.numpy()).reshape(-1).view(np.uint8)


def _write_sparsity(sparsity: Sparsity, dialect: Dialect) -> Record:
    formats = dialect.enums["DimensionType"]
    levels: list[Record] = []
    for level in sparsity.levels:
        if level.segments is None or level.indices is None:
            levels.append({"format": formats["DENSE"], "dense_size": level.size})
            continue
        vectors = {
            name: Union(f"{array.dtype.name.capitalize()}Vector", {"values": array.tolist()})
            for name, array in (("array_segments", level.segments), ("array_indices", level.indices))
        }
        levels.append({"format": formats["SPARSE_CSR"], **vectors})
    return {"traversal_order": sparsity.order, "block_map": sparsity.blocks or None, "dim_metadata": levels}


def _encode_custom_options(node: ir.Node, spec: OperatorSpec | None) -> bytes | None:
    """The bytes that were read while they still say what the attributes say, else new ones."""
    raw: bytes = node.meta.get("custom_options", b"")
    read = custom.read_options(memoryview(raw), spec).items() if raw else ()
    known = {name: option.make_attribute(name, value) for name, value in read}
    if {name: attribute for name, attribute in known.items() if attribute is not None} == dict(node.attributes):
        return raw or None
    if spec is not None and custom.is_struct_stored(spec):
        return custom.pack_options({name: attribute.value for name, attribute in node.attributes.items()}, spec)
    return pack_options(node.attributes)

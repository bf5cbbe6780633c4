"""TensorFlow Lite files as graphs: a table walk that knows containers and no operator."""

from __future__ import annotations

import os
from collections.abc import Mapping

import onnx_ir as ir

from ..engine.base.errors import quote_name
from ..engine.base.garbage_collection import pause_collection
from ..engine.base.provenance import SOURCE
from ..engine.base.startup import dataclass, field
from ..engine.dialects.operators import Catalogue, Dialect
from . import custom, option
from .flatbuffer_reader import FlatBuffer, Record, make_schema
from .mapping import load
from .stated_results import forget_wrong_extents, set_types
from .tensor import Subgraph, TensorReader, make_unique_names


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
    dialect = catalogue.find_dialect("tflite")
    with pause_collection():
        return _Reader(FlatBuffer(data, name, make_schema(dialect)), dialect).read_model()


def recognize(head: bytes) -> bool:
    """Whether a file begins as TensorFlow Lite models do: with their identifier at bytes 4 to 8."""
    return head[4:8] == b"TFL3"


@dataclass(frozen=True, slots=True)
class _Code:
    """An operator code of a file: the operator's name, and how its options are read."""

    domain: str
    name: str
    version: int
    custom: bool = False
    #: options that only repeat the types of values
    silent: frozenset[str] = frozenset()
    table: str | None = None
    #: field of the operator's table that holds the options
    union: str = ""
    makers: Mapping[str, option.Maker] = field(default_factory=dict)


class _Reader:
    """One file being read."""

    def __init__(self, file: FlatBuffer, dialect: Dialect) -> None:
        self.file = file
        self.dialect = dialect
        self.error = file.make_error
        self.custom = dialect.find_role("custom")

    def read_model(self) -> ir.Model:
        root = self.file.read_root("Model", self.dialect.facts.identifier or "")
        wanted = self.dialect.facts.version
        if root["version"] != wanted:
            raise self.error(f"schema version {root['version']} is not {wanted}, the only supported one")
        self.tensors = TensorReader(self.file, self.dialect, root["buffers"] or [])
        self.codes = [self._read_code(record) for record in root["operator_codes"] or []]
        subgraphs = root["subgraphs"] or []
        if not subgraphs:
            raise self.error("the model has no subgraph")
        opened = [self._open(index, record) for index, record in enumerate(subgraphs)]
        graphs = [self._read_graph(subgraph) for subgraph in opened]
        for graph in graphs:
            forget_wrong_extents(graph, self.dialect)
            set_types(graph, self.dialect)
        model = ir.Model(graphs[0], ir_version=10, producer_name=self.dialect.name)
        model.meta["subgraphs"] = graphs
        model.meta["signatures"] = tuple(self._read_signature(s, opened) for s in root["signature_defs"] or [])
        model.meta["description"] = root["description"] or ""
        model.meta["metadata"] = {
            entry["name"] or "": self._read_metadata(entry["buffer"]) for entry in root["metadata"] or []
        }
        return model

    def _read_metadata(self, buffer: int) -> bytes:
        content = self.tensors.read_content(buffer, "metadata") or b""
        self.file.charge(len(content))
        return bytes(content)

    def _read_code(self, record: Record) -> _Code:
        code = max(record["deprecated_builtin_code"], record["builtin_code"])
        version = record["version"]
        domain = self.dialect.domain
        if code == self.custom.code:
            if not record["custom_code"]:
                raise self.error("a custom operator has no name")
            return self._read_custom_code(record["custom_code"], version)
        spec = self.dialect.find_by_code(code)
        if spec is None:
            return _Code(domain, f"BUILTIN_{code}", version)
        if spec.table is None:
            return _Code(domain, spec.name, version)
        union = self.file.schema.find_union(spec.table)
        fields = self.file.schema.tables["Operator"].values()
        place = next(field.name for field in fields if union is not None and field.type == union[0])
        return _Code(
            domain, spec.name, version, table=spec.table, union=place, makers=option.list_makers(spec, self.dialect)
        )

    def _read_custom_code(self, name: str, version: int) -> _Code:
        """A custom operator; one of another program that was kept under its own name is the one that rules know."""
        known, kept = self.dialect.operators, self.custom.facts.kept
        prefixed = name if kept is None else f"{kept['prefix']}{name}"
        domain = f"{self.dialect.domain}.custom"
        if kept is None or name in known or prefixed not in known:
            return _Code(domain, name, version, custom=True)
        return _Code(domain, prefixed, version, custom=True, silent=frozenset(kept["types"]))

    def _open(self, index: int, record: Record) -> Subgraph:
        tensors = record["tensors"] or []
        inputs = self._read_indices(record["inputs"], tensors, "an input of subgraph", index)
        outputs = self._read_indices(record["outputs"], tensors, "an output of subgraph", index)
        produced: set[int] = set()
        for number, operator in enumerate(record["operators"] or []):
            produced.update(self._read_indices(operator["outputs"], tensors, "a result of operator", number))
        names = make_unique_names(tensors, inputs + outputs)
        says_rank = any(tensor["has_rank"] for tensor in tensors)
        return Subgraph(index, record, tensors, names, frozenset(inputs), frozenset(produced), says_rank=says_rank)

    def _read_indices(
        self, vector: memoryview | None, tensors: list[Record], what: str, number: int, least: int = 0
    ) -> list[int]:
        """A vector of tensor indices, all of them there; `what` and `number` word the error."""
        if not vector:
            return []
        self.file.charge(len(vector))
        indices: list[int] = vector.tolist()
        if min(indices) < least or max(indices) >= len(tensors):
            wrong = next(i for i in indices if not least <= i < len(tensors))
            raise self.error(f"malformed: {what} {number} is tensor {wrong}, there are {len(tensors)}")
        return indices

    def _read_graph(self, subgraph: Subgraph) -> ir.Graph:
        record = subgraph.record
        inputs = [self.tensors.find_value(subgraph, i) for i in (record["inputs"] or ())]
        nodes = [self._read_node(subgraph, i, operator) for i, operator in enumerate(record["operators"] or [])]
        outputs = [
            self._find_source(subgraph, i, "an output of subgraph", subgraph.index) for i in record["outputs"] or ()
        ]
        for number, operator in enumerate(record["operators"] or []):
            # Scratch values that carry a quantization; made last, as nothing may read them.
            if scratch := self._read_indices(operator["intermediates"], subgraph.tensors, "an intermediate of", number):
                nodes[number].meta["intermediates"] = tuple(self.tensors.find_value(subgraph, i) for i in scratch)
        return ir.Graph(
            inputs,
            outputs,
            nodes=nodes,
            initializers=subgraph.constants,
            opset_imports={self.dialect.domain: 1},
            name=record["name"] or f"subgraph_{subgraph.index}",
        )

    def _find_operand(self, subgraph: Subgraph, i: int, code: _Code, number: int) -> ir.Value:
        """The value that an operator reads. Custom ones also have tensors that are room to work in, with no source."""
        if code.custom and i not in subgraph.produced:
            return self.tensors.find_value(subgraph, i)
        return self._find_source(subgraph, i, "operator", number)

    def _find_source(self, subgraph: Subgraph, i: int, what: str, number: int) -> ir.Value:
        """The value that is read from a tensor, checked to have come from somewhere."""
        value = subgraph.values.get(i)
        if value is None:
            value = self.tensors.find_value(subgraph, i)
            if value.const_value is None and not subgraph.tensors[i]["is_variable"]:
                whence = "a later operator" if i in subgraph.produced else "nothing"
                raise self.error(f"{what} {number} reads {subgraph.label_tensor(i)}, which {whence} produces")
        return value

    def _make_result(self, subgraph: Subgraph, i: int, number: int) -> ir.Value:
        """The value that an operator writes to a tensor: a new one where the tensor has had another value before."""
        if i in subgraph.values:
            if subgraph.tensors[i]["is_variable"]:
                raise self.error(
                    f"operator {number} yields {subgraph.label_tensor(i)}, a variable that has been read before"
                )
            earlier = subgraph.values.pop(i)
            name = subgraph.rename(i, f"_{number}")
            if i not in subgraph.inputs:
                # The last value of a tensor is what an output shows, so it has the name.
                earlier.name, subgraph.names[i] = name, earlier.name or ""
        return self.tensors.find_value(subgraph, i)

    def _read_node(self, subgraph: Subgraph, number: int, record: Record) -> ir.Node:
        index = record["opcode_index"]
        if index >= len(self.codes):
            raise self.error(f"malformed: operator {number} has code {index}, the file has {len(self.codes)}")
        code = self.codes[index]
        operands = self._read_indices(record["inputs"], subgraph.tensors, "an operand of operator", number, -1)
        results = self._read_indices(record["outputs"], subgraph.tensors, "a result of operator", number)
        if len(results) > 1 and len(set(results)) < len(results):
            raise self.error(f"operator {number} ({code.name}) yields the same tensor twice")
        attributes, other = self._read_options(code, record)
        kind, attributes = self._find_form(code, attributes)
        place = f"{subgraph.index}_{number}" if subgraph.index else f"{number}"
        node = ir.Node(
            code.domain,
            kind,
            [None if i < 0 else self._find_operand(subgraph, i, code, number) for i in operands],
            attributes,
            outputs=[self._make_result(subgraph, i, number) for i in results],
            version=code.version,
            name=f"{kind}_{place}",
            metadata_props={SOURCE: f"{kind}@{subgraph.index}:{number}"},
        )
        spec = self.dialect.operators.get(code.name)
        if spec is not None and spec.facts.reshapes:
            for result in node.outputs:
                result.shape = None
        elif spec is not None and spec.facts.layout == "transparent" and len(operands) == len(results) == 1:
            _forget_extents(node)
        if other:
            node.meta.update(other)
        mutating = record["mutating_variable_inputs"]
        if mutating and any(mutating):
            self.file.charge(len(mutating))
            node.meta["mutating_variable_inputs"] = tuple(mutating)
        return node

    def _find_form(self, code: _Code, attributes: list[ir.Attr]) -> tuple[str, list[ir.Attr]]:
        """The operator that a node is, and its options without those that tell it from others of its number."""
        spec = self.dialect.operators.get(code.name)
        if spec is None or code.custom:
            return code.name, attributes
        form = self.dialect.find_form(spec, {attribute.name: attribute.value for attribute in attributes})
        return form.name, [attribute for attribute in attributes if attribute.name not in form.when]

    def _read_options(self, code: _Code, record: Record) -> tuple[list[ir.Attr], Record]:
        """The options of an operator as attributes, and those that are bytes for its `meta`."""
        if code.custom:
            return self._read_custom(code, record)
        reference = record[code.union] if code.union else None
        # Another operator's options are no options: so says the interpreter.
        if reference is None or reference.table != code.table:
            return [], {}
        attributes, other = [], {}
        for name, value in self.file.read_present(*reference).items():
            if isinstance(value, memoryview):
                self.file.charge(len(value))
            if name in code.makers:
                attributes.append(code.makers[name](name, value))
            else:
                other[name] = bytes(value)
        return attributes, other

    def _read_raw(self, record: Record) -> memoryview | None:
        """The options of a custom operator, which may lie outside the tables of the file."""
        raw: memoryview | None = record["custom_options"]
        if raw is None and record["large_custom_options_offset"] > 1:
            size = record["large_custom_options_size"]
            return self.file.read_span("options of a custom operator", record["large_custom_options_offset"], size)
        return raw

    def _read_custom(self, code: _Code, record: Record) -> tuple[list[ir.Attr], Record]:
        """The options of a custom operator, in the form that ops.yaml says it stores them in."""
        raw = self._read_raw(record) or memoryview(b"")
        self.file.charge(len(raw))
        other = {"custom_options": bytes(raw)}
        spec = self.dialect.operators.get(code.name)
        options = custom.read_options(raw, spec)
        attributes = (option.make_attribute(name, value) for name, value in options.items() if name not in code.silent)
        return [attribute for attribute in attributes if attribute is not None], other

    def _read_signature(self, record: Record, subgraphs: list[Subgraph]) -> Signature:
        index, key = record["subgraph_index"], record["signature_key"] or ""
        if index >= len(subgraphs):
            raise self.error(f"malformed: signature {quote_name(key)} is of subgraph {index} of {len(subgraphs)}")
        names = subgraphs[index].names
        sides: list[dict[str, str]] = []
        for side in ("inputs", "outputs"):
            entries = record[side] or []
            for entry in entries:
                if entry["tensor_index"] >= len(names):
                    raise self.error(f"malformed: signature {quote_name(key)} names tensor {entry['tensor_index']}")
            sides.append({entry["name"] or "": names[entry["tensor_index"]] for entry in entries})
        return Signature(key, index, sides[0], sides[1])


def _forget_extents(node: ir.Node) -> None:
    """Make extents of a result unknown that are of its one operand; tools that put in nodes write those of one run."""
    [operand], [result] = node.inputs, node.outputs
    if operand is None or operand.shape is None or result.shape is None or len(operand.shape) != len(result.shape):
        return
    known = [isinstance(extent, int) for extent in operand.shape]
    if not all(known):
        if result.shape.is_static():
            result.meta["static_shape"] = tuple(result.shape.numpy())
        extents = zip(result.shape, known, strict=True)
        result.shape = ir.Shape([extent if is_known else None for extent, is_known in extents])

"""Exported PyTorch programs (`.pt2`) as graphs: a walk over the schema of arguments that knows no operator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.base.errors import ModelError
from ..engine.base.garbage_collection import pause_collection
from ..engine.dialects.inference import make_shape
from ..engine.dialects.operators import Catalogue, Dialect, OperatorSpec
from .mapping import load
from .pt2_archive import Archive
from .pt2_extents import read_extent
from .pt2_functional import Tensor
from .pt2_names import functional, operator_name, split_target
from .tensor import quote_name

#: the major version of the schema that is read
_SCHEMA = 8
#: the program that is read where an archive has several
_MAIN = "model"
#: the option that says how many values each operand of a node has, where several may have any number
_COUNTS = "counts"
#: how deep graphs of nodes may nest
_DEPTH = 32
#: arguments by which torch says where elements are, not what they are: by their type, and by their name
_PLACES = frozenset({"as_device", "as_layout", "as_memory_format"})
_PINNED = frozenset({"pin_memory", "generator", "device", "layout", "memory_format"})
#: arguments that are single numbers, with the type of a constant of each
_NUMBERS = {"as_int": np.int64, "as_float": np.float64, "as_bool": np.bool_}
#: the same in lists
_LISTS = {"as_ints": np.int64, "as_floats": np.float64, "as_bools": np.bool_}
#: numbers that may be computed: by the type of the argument, what a node yields there
_SYMBOLIC = {
    "as_sym_int": ir.DataType.INT64,
    "as_sym_bool": ir.DataType.BOOL,
    "as_sym_float": ir.DataType.DOUBLE,
}
_SYMBOLIC_LISTS = frozenset({"as_sym_ints", "as_sym_bools", "as_sym_floats"})
#: what a program takes that the file holds: the folder of the archive, and the field with the name there
_HELD = {
    "parameter": ("weights", "parameter_name"),
    "buffer": ("weights", "buffer_name"),
    "tensor_constant": ("constants", "tensor_constant_name"),
}
#: the inputs that a program has beside tensors, and that no node reads
_UNREAD = frozenset({"constant_input", "token", "custom_obj"})
#: the key of `meta` of a graph under which it lists its state: what each buffer begins as, and what becomes of it
STATE = "state"


def recognize(head: bytes) -> bool:
    """Whether a file begins as an exported program does, or as what else torch writes, which is refused with advice."""
    named = any(word in head for word in (b"/data", b"/models/", b"/archive", b"/.data", b"/byteorder", b"/code/"))
    return (head.startswith(b"PK\x03\x04") and named) or head.startswith(b"\x80\x02")


def read(
    source: str | os.PathLike[str] | bytes | memoryview, catalogue: Catalogue, name: str | None = None
) -> ir.Model:
    """Read an exported program, from a file or from bytes, as a graph of the dialect `aten`.

    Constants are views of the mapped file where their elements lie one behind the other. What may be computed (tensors,
    sizes, numbers) is an operand, whatever else an option. `name` is what errors call the source. `meta` of the model
    is as of `tflite_reader.read`; `meta` of the main graph has `state`, pairs of values, where the program writes to
    its buffers.

    Raises ModelError when there is no such file, or it is not a well-formed program.
    """
    if isinstance(source, bytes | memoryview):
        data, name = memoryview(source).cast("B"), name or "model"
    else:
        data, name = load(source), name or os.fspath(source)
    with pause_collection():
        try:
            return _read(Archive(data, name), catalogue.dialect("aten"))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
            said = " ".join(f"{error}".split())
            raise ModelError(f"{name}: malformed program: {type(error).__name__} {said:.200}") from error


def _read(archive: Archive, dialect: Dialect) -> ir.Model:
    programs = archive.list_programs()
    if not programs:
        raise archive.error("the archive has no exported program")
    program = _MAIN if _MAIN in programs else programs[0]
    if len(programs) > 1 and program != _MAIN:
        raise archive.error(f"the archive has several programs ({', '.join(programs)}), none of them called {_MAIN}")
    root = archive.text(f"models/{program}.json")
    version = root["schema_version"]
    if version["major"] != _SCHEMA:
        raise archive.error(f"schema version {version['major']}.{version['minor']} is not {_SCHEMA}, the one supported")
    subgraphs: list[ir.Graph] = []
    reader = _Program(archive, dialect, program, subgraphs)
    graph = reader.main(root["graph_module"])
    model = ir.Model(graph, ir_version=10, producer_name=dialect.name)
    model.meta["subgraphs"] = [graph, *subgraphs]
    model.meta["signatures"] = ()
    model.meta["description"] = ""
    model.meta["metadata"] = {}
    return model


class _Program:
    """The graphs of one program being read; subgraphs are numbered from 1, behind the main graph."""

    def __init__(self, archive: Archive, dialect: Dialect, name: str, subgraphs: list[ir.Graph]) -> None:
        self.archive, self.dialect, self.name, self.subgraphs = archive, dialect, name, subgraphs
        self.types = {
            entry["code"]: ir.DataType[entry["dtype"]] for entry in dialect.types.values() if entry["dtype"] is not None
        }
        self.type_names = {entry["code"]: name for name, entry in dialect.types.items()}
        self.depth = 0

    def main(self, module: Mapping[str, Any]) -> ir.Graph:
        record, signature = module["graph"], module["signature"]
        graph = _GraphReader(self, record, "main")
        for spec in signature["input_specs"]:
            ((kind, content),) = spec.items()
            if kind in _HELD:
                folder, key = _HELD[kind]
                if kind == "buffer" and not content["persistent"]:
                    folder = "constants"
                graph.constant(content["arg"]["name"], content[key], folder, kind == "buffer")
            elif kind == "user_input":
                graph.input(content["arg"])
            elif kind not in _UNREAD:
                raise ValueError(f"an input is {kind}")
        graph.nodes(record["nodes"])
        for spec in signature["output_specs"]:
            ((kind, content),) = spec.items()
            if kind in ("user_output", "loss_output"):
                graph.output(content["arg"])
            elif kind == "buffer_mutation":
                graph.mutate(content["buffer_name"], content["arg"]["name"])
        return graph.finish()

    def subgraph(self, record: Mapping[str, Any], name: str) -> int:
        """Read the graph of a node; the number of it."""
        if self.depth == _DEPTH:
            raise self.archive.error(f"graphs of nodes nest deeper than {_DEPTH}")
        self.depth += 1
        graph = _GraphReader(self, record, name)
        for argument in record["inputs"]:
            graph.input(argument)
        graph.nodes(record["nodes"])
        for argument in record["outputs"]:
            graph.output(argument)
        self.depth -= 1
        self.subgraphs.append(graph.finish())
        return len(self.subgraphs)


class _GraphReader:
    """One graph of a program being read."""

    def __init__(self, program: _Program, record: Mapping[str, Any], name: str) -> None:
        self.program, self.dialect, self.record, self.name = program, program.dialect, record, name
        self.metas: Mapping[str, Any] = record["tensor_values"]
        self.tensors: dict[str, Tensor] = {}
        self.inputs: list[ir.Value] = []
        self.outputs: list[ir.Value] = []
        self.made: list[ir.Node] = []
        self.constants: dict[Any, ir.Value] = {}
        self.lists: dict[Any, ir.Value] = {}
        self.names: set[str] = set()
        self.buffers: dict[str, tuple[ir.Value, Tensor]] = {}
        self.count = 0

    # what a graph takes and yields

    def constant(self, name: str, key: str, folder: str, keeps: bool) -> None:
        """Let a name stand for a weight; those that are tied stand for one value, unless the program may write to it."""
        tensor = self.program.archive.tensor(self.program.name, folder, key, self.program.types)
        value = None if keeps else self.constants.get(id(tensor))
        if value is None:
            value = ir.Value(
                name=self._unique(key), type=ir.TensorType(tensor.dtype), shape=make_shape(tuple(tensor.shape.numpy()))
            )
            value.const_value = tensor
            self.constants[key if keeps else id(tensor)] = value
        self.tensors[name] = Tensor.own(value)
        if keeps:
            self.buffers[key] = value, self.tensors[name]

    def input(self, argument: Mapping[str, Any]) -> None:
        ((tag, content),) = argument.items()
        name = content.get("as_name") if tag in _SYMBOLIC else content["name"] if tag == "as_tensor" else None
        if name is not None:
            value = self._value(name, tag)
            self.inputs.append(value)
            self.tensors[name] = Tensor.own(value)

    def output(self, argument: Mapping[str, Any]) -> None:
        ((tag, _),) = argument.items()
        if tag != "as_none":
            self.outputs.extend(self._operands(argument))

    def mutate(self, buffer: str, name: str) -> None:
        """Let a buffer become what a name stands for."""
        self.buffers[buffer][1].write(self._read(name), self._repeat, self._restore)

    def finish(self) -> ir.Graph:
        changed = [(begun, one.read(self._repeat)) for begun, one in self.buffers.values() if one.storage.version]
        graph = ir.Graph(
            self.inputs,
            self.outputs,
            nodes=self.made,
            initializers=list(dict.fromkeys(self.constants.values())),
            opset_imports={self.dialect.domain: 1},
            name=self.name,
        )
        if changed:
            graph.meta[STATE] = changed
        return graph

    # values

    def _unique(self, name: str) -> str:
        wanted, count = name, 1
        while name in self.names:
            name, count = f"{wanted}_{count}", count + 1
        self.names.add(name)
        return name

    def _value(self, name: str, tag: str) -> ir.Value:
        """A new value for a name of the program."""
        if tag in _SYMBOLIC:
            value = ir.Value(name=self._unique(name), type=ir.TensorType(_SYMBOLIC[tag]))
            value.shape = make_shape(())
            return value
        meta = self.metas.get(name)
        if meta is None:  # what a node yields and nobody reads
            return ir.Value(name=self._unique(name))
        dtype = self.program.types.get(meta["dtype"])
        value = ir.Value(name=self._unique(name), type=None if dtype is None else ir.TensorType(dtype))
        value.shape = make_shape(tuple(read_extent(size) for size in meta["sizes"]))
        return value

    def _number(self, content: Any, dtype: Any) -> ir.Value:
        """A constant number, or list of such."""
        key = (np.dtype(dtype).char, tuple(content) if isinstance(content, list) else content, repr(content))
        if key not in self.constants:
            array = np.array(content, dtype)
            name = self._unique(f"number_{len(self.constants)}")
            value = ir.Value(name=name, shape=make_shape(array.shape))
            value.const_value = ir.Tensor(array, name=name)
            value.type = ir.TensorType(value.const_value.dtype)
            self.constants[key] = value
        return self.constants[key]

    def _read(self, name: str) -> ir.Value:
        if name not in self.tensors:
            raise ValueError(f"{quote_name(name)} is read before a node yields it")
        return self.tensors[name].read(self._repeat)

    # nodes

    def nodes(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Read the nodes. One that neither yields nor writes anything computes nothing: an assertion."""
        for number, record in enumerate(records):
            if record["outputs"]:
                self._node(number, record)

    def _node(self, number: int, record: Mapping[str, Any]) -> None:
        library, base, overload = split_target(record["target"])
        name = operator_name(library, functional(base), overload)
        spec = self.dialect.operators.get(name)
        writes = functional(base) != base
        if spec is None:
            writes, name = False, operator_name(library, base, overload)
        operands, attributes = self._arguments(_renamed(record["inputs"], spec) if writes else record["inputs"], spec)
        names, tags = _results(record["outputs"])
        node = ir.Node(
            self.dialect.domain if spec is not None or library == self.dialect.domain else library,
            name,
            operands,
            attributes,
            outputs=[self._value(result, tag) for result, tag in zip(names, tags, strict=True)],
            name=_scoped(record, f"{name.lower()}_{number}"),
            metadata_props={"nnrewrite.source": f"{record['target'].removeprefix('torch.ops.')}@{self.name}:{number}"},
        )
        self.made.append(node)
        self._bind(node, names, record, spec, writes)

    def _bind(
        self, node: ir.Node, names: Sequence[str], record: Mapping[str, Any], spec: OperatorSpec | None, writes: bool
    ) -> None:
        """Let the names of results stand for tensors: new ones, views of the first operand, or that operand itself."""
        shared = self._first(record["inputs"]) if spec is not None and (writes or "view" in spec.traits) else None
        for position, (name, value) in enumerate(zip(names, node.outputs, strict=True)):
            if shared is None:
                self.tensors[name] = Tensor.own(value)
            elif writes:
                shared.write(value, self._repeat, self._restore)
                self.tensors[name] = shared
            else:
                self.tensors[name] = shared.view(node, position)

    def _first(self, arguments: Sequence[Mapping[str, Any]]) -> Tensor | None:
        content = arguments[0]["arg"].get("as_tensor") if arguments else None
        return None if content is None else self.tensors.get(content["name"])

    def _arguments(
        self, records: Sequence[Mapping[str, Any]], spec: OperatorSpec | None
    ) -> tuple[list[ir.Value | None], list[ir.Attr]]:
        """Operands in the order of the schema, with the defaults of those left out; what else is given as options."""
        if spec is None:
            return [v for one in records for v in self._operands(one["arg"], True)], []
        given = _by_name(records, spec)
        operands: list[ir.Value | None] = []
        counts: list[int] = []
        for operand in spec.operands:
            counts.append(-len(operands))
            argument = given.pop(operand.name, None)
            if argument is not None and "as_none" not in argument:
                operands.extend(self._operands(argument, many=operand.variadic))
            elif operand.name in spec.facts.defaults:
                default = spec.facts.defaults[operand.name]
                operands.append(self._number(list(default) if isinstance(default, tuple) else default, _type(default)))
            elif not operand.variadic:
                operands.append(None)
            counts[-1] += len(operands)
        while operands and operands[-1] is None:
            operands.pop()
        attributes = []
        if _COUNTS in spec.options:
            attributes.append(ir.Attr(_COUNTS, ir.AttributeType.INTS, counts))
        for name, argument in given.items():
            ((tag, content),) = argument.items()
            if name in spec.options:
                attributes.extend(self._attribute(name, tag, content))
            elif tag not in _PLACES and name not in _PINNED and tag != "as_none":
                raise ValueError(f"{spec.name} has no argument {quote_name(name)}")
        return operands, attributes

    def _attribute(self, name: str, tag: str, content: Any) -> Iterator[ir.Attr]:
        kinds = ir.AttributeType
        if tag == "as_none":
            return
        if tag == "as_scalar_type":
            yield ir.Attr(name, kinds.STRING, self.program.type_names.get(content, f"{content}"))
        elif tag == "as_string":
            yield ir.Attr(name, kinds.STRING, content)
        elif tag == "as_float":
            yield ir.Attr(name, kinds.FLOAT, float(content))
        elif tag == "as_floats":
            yield ir.Attr(name, kinds.FLOATS, [float(one) for one in content])
        elif tag in ("as_int", "as_bool"):
            yield ir.Attr(name, kinds.INT, int(content))
        elif tag in ("as_ints", "as_bools"):
            yield ir.Attr(name, kinds.INTS, [int(one) for one in content])
        elif tag == "as_tensors" and not content:  # an empty list of whatever type
            yield ir.Attr(name, kinds.INTS, [])
        elif tag == "as_graph":
            number = self.program.subgraph(content["graph"], content["name"])
            yield ir.Attr(name, kinds.INT, number)
        else:
            raise ValueError(f"the option {quote_name(name)} is given {tag}")

    def _operands(self, argument: Mapping[str, Any], many: bool = False) -> list[ir.Value | None]:
        """The values that an argument stands for: one, or with `many` any number of them."""
        ((tag, content),) = argument.items()
        if tag == "as_tensor":
            return [self._read(content["name"])]
        if tag in _SYMBOLIC:
            return [self._symbol(content)]
        if tag in _NUMBERS:
            return [self._number(content, _NUMBERS[tag])]
        if tag in _LISTS:
            return [self._number(content, _LISTS[tag])]
        if tag in _SYMBOLIC_LISTS:
            items = [self._symbol(one) for one in content]
            return [self._list(items)]
        if tag in ("as_tensors", "as_optional_tensors"):
            if not content and not many:
                return [self._number([], np.int64)]
            values = [self._optional(one) for one in content]
            return values if many else [self._list([one for one in values if one is not None])]
        if tag == "as_optional_tensor":
            return [self._optional(content)]
        if tag == "as_complex":
            return [self._number(complex(content["real"], content["imag"]), np.complex64)]
        if many:
            return []
        raise ValueError(f"an operand is given {tag}")

    def _optional(self, content: Mapping[str, Any]) -> ir.Value | None:
        if "as_none" in content:
            return None
        return self._read(content["as_tensor"]["name"] if "as_tensor" in content else content["name"])

    def _symbol(self, content: Mapping[str, Any]) -> ir.Value:
        ((tag, one),) = content.items()
        return self._read(one) if tag == "as_name" else self._number(one, _NUMBERS[tag])

    def _list(self, items: Sequence[ir.Value]) -> ir.Value:
        """Numbers as one list: a constant where all are."""
        known = [item.const_value for item in items]
        if all(one is not None for one in known):
            return self._number([one.numpy().item() for one in known if one is not None], np.int64)
        key = tuple(map(id, items))
        if key not in self.lists:
            whole = ir.Value(type=items[0].type, shape=make_shape((len(items),)))
            made = self._make(self.dialect.role("list"), items, [whole], "list")[0]
            self.lists[key] = made
        return self.lists[key]

    def _make(
        self, spec: OperatorSpec, operands: Sequence[ir.Value | None], like: Sequence[ir.Value], name: str
    ) -> list[ir.Value]:
        """A new node, its results of the types and shapes of some values."""
        results = [ir.Value(name=self._unique(name), type=one.type, shape=one.shape) for one in like]
        self.count += 1
        self.made.append(
            ir.Node(
                spec.domain, spec.name, operands, outputs=results, name=f"{spec.name.lower()}_{name}_{self.count}",
                metadata_props={"nnrewrite.source": f"{name}@{self.name}"},
            )
        )  # fmt: skip
        return results

    # writes

    def _repeat(self, node: ir.Node, result: int, whole: ir.Value) -> ir.Value:
        """The view of a new whole that a node made of the old one."""
        made = ir.Node(
            node.domain,
            node.op_type,
            [whole, *node.inputs[1:]],
            node.attributes.values(),
            outputs=[
                ir.Value(name=self._unique(f"{one.name}_again"), type=one.type, shape=one.shape) for one in node.outputs
            ],
            name=self._unique(f"{node.name}_again"),
            metadata_props=node.metadata_props,
        )
        self.made.append(made)
        return made.outputs[result]

    def _restore(self, node: ir.Node, result: int, whole: ir.Value, part: ir.Value) -> ir.Value:
        """The whole in which the part that a node took has another value."""
        spec = self.dialect.operators[node.op_type]
        way = spec.facts.restores
        if way is None or len(node.outputs) > 1:
            raise self.program.archive.error(
                f"{node.name} makes a view that is written to, and nothing says how {node.op_type} is undone"
            )
        inverse = self.dialect.operators[way]
        named = {operand.name: value for operand, value in zip(spec.operands, node.inputs, strict=False)}
        places = [operand.name for operand in inverse.operands]
        given = {"self": whole, "src": part} if "src" in places else {"self": part, "other": whole}
        made = ir.Node(
            inverse.domain,
            inverse.name,
            [given.get(place, named.get(place)) for place in places],
            [attribute for attribute in node.attributes.values() if attribute.name in inverse.options],
            outputs=[ir.Value(name=self._unique(f"{whole.name}_written"), type=whole.type, shape=whole.shape)],
            name=self._unique(f"{node.name}_written"),
            metadata_props=node.metadata_props,
        )
        self.made.append(made)
        return made.outputs[0]


def _renamed(records: Sequence[Mapping[str, Any]], spec: OperatorSpec | None) -> list[Mapping[str, Any]]:
    """Arguments of an operator that writes to the first, which its functional form may call otherwise."""
    first = spec.operands[0].name if spec is not None else records[0]["name"]
    return [{**records[0], "name": first}, *records[1:]]


def _type(default: Any) -> Any:
    first = default[0] if isinstance(default, tuple) and default else default
    return np.bool_ if isinstance(first, bool) else np.float64 if isinstance(first, float) else np.int64


def _by_name(records: Sequence[Mapping[str, Any]], spec: OperatorSpec) -> dict[str, Mapping[str, Any]]:
    """Arguments by their names; those of higher-order operators, which have none, in the order of the entry."""
    if all(record["name"] for record in records):
        return {record["name"]: record["arg"] for record in records}
    graphs = [name for name, option in spec.options.items() if option.type == "subgraph"]
    others = [name for name, option in spec.options.items() if option.type != "subgraph" and name != _COUNTS]
    operands = [operand.name for operand in spec.operands]
    found: dict[str, Mapping[str, Any]] = {}
    loose: list[Any] = []
    for record in records:
        tags = record["arg"].keys()
        kind = (
            graphs if "as_graph" in tags else others if others and not tags & {"as_tensor", "as_tensors"} else operands
        )
        if len(kind) == 1 and kind is operands and "as_tensor" in tags and spec.operands[-1].variadic:
            loose.append(record["arg"]["as_tensor"])
        elif kind:
            found[kind.pop(0)] = record["arg"]
    if loose:
        found[spec.operands[-1].name] = {"as_tensors": loose}
    return found


def _results(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """The names of what a node yields, those in lists one behind the other, and the type of argument of each."""
    names, tags = [], []
    for record in records:
        ((tag, content),) = record.items()
        if tag in _SYMBOLIC:
            names.append(content.get("as_name", ""))
            tags.append(tag)
        elif tag == "as_tensor":
            names.append(content["name"])
            tags.append(tag)
        elif tag == "as_tensors":
            names.extend(one["name"] for one in content)
            tags.extend(["as_tensor"] * len(content))
        elif tag == "as_optional_tensor":
            names.append(content["as_tensor"]["name"] if "as_tensor" in content else "")
            tags.append("as_tensor")
        elif tag == "as_none":
            names.append("")
            tags.append("as_tensor")
        else:
            raise ValueError(f"a node yields {tag}")
    return names, tags


def _scoped(record: Mapping[str, Any], name: str) -> str:
    """The name of a node: the module that it was traced in, as `layer1/0/conv1`, and its own."""
    stack = record["metadata"].get("nn_module_stack", "")
    last = stack.split(";")[-1].split(",")
    path = last[1] if len(last) > 2 and not last[0].startswith("_") else ""
    return "/".join([*(word for word in path.split(".") if word), name])

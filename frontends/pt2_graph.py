"""Graphs of exported programs: each node by the schema of its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..engine.base.constants import FROZEN, STATE, WEIGHT
from ..engine.base.errors import quote_name
from ..engine.base.provenance import SCOPE, SOURCE
from ..engine.dialects.inference import make_shape
from ..engine.dialects.operators import Dialect, OperatorSpec, Option
from ..engine.rewrite.subgraphs import NESTED
from .pt2_archive import Archive
from .pt2_extents import read_extent
from .pt2_functional import Tensor, restore_whole
from .pt2_names import find_functional, is_out_variant, list_functional_names, make_operator_name, split_target
from .pt2_records import (
    CONSTANTS,
    COUNTS,
    EACH,
    HELD,
    SYMBOLIC,
    SYMBOLIC_LISTS,
    TRAINABLE,
    UNREAD,
    find_scope,
    find_type,
    is_conversion,
    list_results,
    name_arguments,
    separate_written,
)

#: arguments by which torch says where elements are, not what they are: by their type, and by their name
_PLACES = frozenset({"as_device", "as_layout", "as_memory_format"})
_PINNED = frozenset({"pin_memory", "generator", "device", "layout", "memory_format"})


class Program:
    """The graphs of one program being read; subgraphs are numbered from 1, behind the main graph."""

    def __init__(self, archive: Archive, dialect: Dialect, name: str, subgraphs: list[ir.Graph]) -> None:
        self.archive, self.dialect, self.name, self.subgraphs = archive, dialect, name, subgraphs
        self.types = {
            entry["code"]: ir.DataType[entry["dtype"]] for entry in dialect.types.values() if entry["dtype"] is not None
        }
        self.type_names = {entry["code"]: name for name, entry in dialect.types.items()}
        self.depth = 0

    def read_main(self, module: Mapping[str, Any]) -> ir.Graph:
        """Read the graph of the program, whose inputs and outputs are those of the model."""
        record, signature = module["graph"], module["signature"]
        graph = _GraphReader(self, record, "main")
        for spec in signature["input_specs"]:
            ((kind, content),) = spec.items()
            if kind in HELD:
                folder, key = HELD[kind]
                if kind == "buffer" and not content["persistent"]:
                    folder = "constants"
                graph.read_constant(content["arg"]["name"], content[key], folder, kind)
            elif kind == "user_input":
                graph.read_input(content["arg"])
            elif kind not in UNREAD:
                raise ValueError(f"an input is {kind}")
        graph.read_nodes(record["nodes"])
        for spec in signature["output_specs"]:
            ((kind, content),) = spec.items()
            if kind in ("user_output", "loss_output"):
                graph.read_output(content["arg"])
            elif kind == "buffer_mutation":
                graph.mutate(content["buffer_name"], content["arg"]["name"])
        return graph.finish()

    def read_subgraph(self, record: Mapping[str, Any], name: str) -> int:
        """Read the graph of a node; the number of it. Raises ModelError where graphs nest too deep."""
        if self.depth == NESTED:
            raise self.archive.make_error(f"graphs of nodes nest deeper than {NESTED}")
        self.depth += 1
        graph = _GraphReader(self, record, name)
        for argument in record["inputs"]:
            graph.read_input(argument)
        graph.read_nodes(record["nodes"])
        for argument in record["outputs"]:
            graph.read_output(argument)
        self.depth -= 1
        self.subgraphs.append(graph.finish())
        return len(self.subgraphs)


class _GraphReader:
    """One graph of a program being read."""

    def __init__(self, program: Program, record: Mapping[str, Any], name: str) -> None:
        self.program, self.dialect, self.record, self.name = program, program.dialect, record, name
        self.metas: Mapping[str, Any] = record["tensor_values"]
        self.tensors: dict[str, Tensor] = {}
        self.inputs: list[ir.Value] = []
        self.outputs: list[ir.Value] = []
        self.made: list[ir.Node] = []
        self.constants: dict[Any, ir.Value] = {}
        self.lists: dict[Any, ir.Value] = {}
        self.names: set[str] = set()
        self.numbers: Counter[str] = Counter()
        self.buffers: dict[str, tuple[ir.Value, Tensor]] = {}
        self.count = 0

    # what a graph takes and yields

    def read_constant(self, name: str, key: str, folder: str, kind: str) -> None:
        """Let a name stand for a weight; tied ones stand for one value, unless the program may write to it."""
        keeps = kind == "buffer"
        tensor = self.program.archive.read_tensor(self.program.name, folder, key, self.program.types)
        value = None if keeps else self.constants.get(id(tensor))
        if value is None:
            value = ir.Value(
                name=self._rename(key), type=ir.TensorType(tensor.dtype), shape=make_shape(tuple(tensor.shape.numpy()))
            )
            value.const_value = tensor
            if kind == TRAINABLE:
                is_frozen = self.program.archive.is_frozen(self.program.name, folder, key)
                value.meta[FROZEN if is_frozen else WEIGHT] = value.name
            self.constants[key if keeps else id(tensor)] = value
        self.tensors[name] = Tensor.make_own(value)
        if keeps:
            self.buffers[key] = value, self.tensors[name]

    def read_input(self, argument: Mapping[str, Any]) -> None:
        ((tag, content),) = argument.items()
        name = content.get("as_name") if tag in SYMBOLIC else content["name"] if tag == "as_tensor" else None
        if name is not None:
            value = self._make_value(name, tag)
            self.inputs.append(value)
            self.tensors[name] = Tensor.make_own(value)

    def read_output(self, argument: Mapping[str, Any]) -> None:
        ((tag, _),) = argument.items()
        if tag != "as_none":
            self.outputs.extend(value for value in self._read_operands(argument) if value is not None)

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

    def _rename(self, name: str) -> str:
        wanted = name
        while name in self.names:
            self.numbers[wanted] += 1
            name = f"{wanted}_{self.numbers[wanted]}"
        self.names.add(name)
        return name

    def _make_value(self, name: str, tag: str) -> ir.Value:
        """A new value for a name of the program."""
        if tag in SYMBOLIC:
            return ir.Value(name=self._rename(name), type=ir.TensorType(SYMBOLIC[tag]), shape=make_shape(()))
        meta = self.metas.get(name)
        if meta is None:  # what a node yields and nobody reads
            return ir.Value(name=self._rename(name))
        dtype = self.program.types.get(meta["dtype"])
        shape = make_shape(tuple(read_extent(size) for size in meta["sizes"]))
        return ir.Value(name=self._rename(name), type=None if dtype is None else ir.TensorType(dtype), shape=shape)

    def _make_number(self, content: Any, dtype: Any) -> ir.Value:
        """A constant number, or list of such."""
        key = (np.dtype(dtype).char, tuple(content) if isinstance(content, list) else content, repr(content))
        if key not in self.constants:
            array = np.array(content, dtype)
            name = self._rename(f"number_{len(self.constants)}")
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

    def read_nodes(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Read the nodes. One that neither yields nor writes anything computes nothing: an assertion."""
        for number, record in enumerate(records):
            if record["outputs"]:
                self._read_node(number, record)

    def _read_node(self, number: int, record: Mapping[str, Any]) -> None:
        library, base, overload = split_target(record["target"])
        known = list_functional_names(library, base, overload, [one["name"] for one in record["inputs"]])
        spec = next(filter(None, map(self.dialect.operators.get, known)), None)
        name = spec.name if spec is not None else make_operator_name(library, base, overload)
        given, written = record["inputs"], None
        if spec is not None and (find_functional(base) != base or is_out_variant(overload)):
            written, given = separate_written(given, spec)
        operands, attributes = self._read_arguments(given, spec)
        names, tags = list_results(record["outputs"])
        scope = find_scope(record)
        node = ir.Node(
            self.dialect.domain if spec is not None or library == self.dialect.domain else library,
            name,
            operands,
            attributes,
            outputs=[self._make_value(result, tag) for result, tag in zip(names, tags, strict=True)],
            name="/".join([*(word.partition(":")[0] for word in scope.split("/") if word), f"{name.lower()}_{number}"]),
            metadata_props={SOURCE: f"{record['target'].removeprefix('torch.ops.')}@{self.name}:{number}"},
        )
        node.metadata_props.update({SCOPE: scope} if scope else {})
        self.made.append(node)
        is_view = written is None and spec is not None and "view" in spec.traits and len(given) > 0
        self._bind_results(node, names, spec, self._find_tensor(given[0] if is_view else written), not is_view)

    def _bind_results(
        self, node: ir.Node, names: Sequence[str], spec: OperatorSpec | None, shared: Tensor | None, writes: bool
    ) -> None:
        """Let the names of results stand for tensors: new ones, views of a shared one, or that one as written to."""
        for position, (name, value) in enumerate(zip(names, node.outputs, strict=True)):
            if shared is not None and writes:
                shared.write(value, self._repeat, self._restore)
                self.tensors[name] = shared
            elif shared is not None and not is_conversion(node, value, spec):
                self.tensors[name] = shared.make_view(node, position)
            else:
                self.tensors[name] = Tensor.make_own(value)

    def _find_tensor(self, argument: Mapping[str, Any] | None) -> Tensor | None:
        content = None if argument is None else argument["arg"].get("as_tensor")
        return None if content is None else self.tensors.get(content["name"])

    def _read_arguments(
        self, records: Sequence[Mapping[str, Any]], spec: OperatorSpec | None
    ) -> tuple[list[ir.Value | None], list[ir.Attr]]:
        """Operands in the order of the schema, with the defaults of those left out; what else is given as options."""
        if spec is None:
            return [v for one in records for v in self._read_operands(one["arg"], True)], []
        given = name_arguments(records, spec)
        operands: list[ir.Value | None] = []
        counts: list[int] = []
        for operand in spec.operands:
            counts.append(-len(operands))
            argument = given.pop(operand.name, None)
            if argument is not None and "as_none" not in argument:
                operands.extend(self._read_operands(argument, many=operand.variadic))
            elif operand.name in spec.facts.defaults:
                default = spec.facts.defaults[operand.name]
                operands.append(
                    self._make_number(list(default) if isinstance(default, tuple) else default, find_type(default))
                )
            elif not operand.variadic:
                operands.append(None)
            counts[-1] += len(operands)
        while operands and operands[-1] is None:
            operands.pop()
        attributes = []
        if COUNTS in spec.options:
            attributes.append(ir.Attr(COUNTS, ir.AttributeType.INTS, counts))
        for name, argument in given.items():
            ((tag, content),) = argument.items()
            if name in spec.options:
                attributes.extend(self._read_attribute(spec.options[name], tag, content))
            elif tag not in _PLACES and name not in _PINNED and tag != "as_none":
                raise ValueError(f"{spec.name} has no argument {quote_name(name)}")
        return operands, attributes

    def _read_attribute(self, option: Option, tag: str, content: Any) -> Iterator[ir.Attr]:
        kinds, name = ir.AttributeType, option.name
        if tag == "as_none":
            return
        if option.type.startswith("[") and not isinstance(content, list):
            raise ValueError(f"the option {quote_name(name)} is given no list")
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
            yield ir.Attr(name, kinds.INT, self.program.read_subgraph(content["graph"], content["name"]))
        else:
            raise ValueError(f"the option {quote_name(name)} is given {tag}")

    def _read_operands(self, argument: Mapping[str, Any], many: bool = False) -> list[ir.Value | None]:
        """The values that an argument stands for: one, or with `many` any number of them."""
        ((tag, content),) = argument.items()
        if tag == "as_tensor":
            return [self._read(content["name"])]
        if tag == EACH:
            return [value for one in content for value in self._read_operands(one)]
        if tag in SYMBOLIC:
            return [self._read_symbol(content)]
        if tag in CONSTANTS:
            return [self._make_number(content, CONSTANTS[tag])]
        if tag in SYMBOLIC_LISTS:
            return [self._make_list([self._read_symbol(one) for one in content])]
        if tag in ("as_tensors", "as_optional_tensors"):
            if not content and not many:
                return [self._make_number([], np.int64)]
            values = [self._read_optional(one) for one in content]
            return values if many else [self._make_list([one for one in values if one is not None])]
        if tag == "as_optional_tensor":
            return [self._read_optional(content)]
        if tag == "as_complex":
            return [self._make_number(complex(content["real"], content["imag"]), np.complex64)]
        if many:
            return []
        raise ValueError(f"an operand is given {tag}")

    def _read_optional(self, content: Mapping[str, Any]) -> ir.Value | None:
        if "as_none" in content:
            return None
        return self._read(content["as_tensor"]["name"] if "as_tensor" in content else content["name"])

    def _read_symbol(self, content: Mapping[str, Any]) -> ir.Value:
        ((tag, one),) = content.items()
        return self._read(one) if tag == "as_name" else self._make_number(one, CONSTANTS[tag])

    def _make_list(self, items: Sequence[ir.Value]) -> ir.Value:
        """Numbers as one list: a constant where all are."""
        known = [item.const_value for item in items]
        if all(one is not None for one in known):
            return self._make_number([one.numpy().item() for one in known if one is not None], np.int64)
        key = tuple(map(id, items))
        if key not in self.lists:
            whole = ir.Value(type=items[0].type, shape=make_shape((len(items),)))
            made = self._make(self.dialect.find_role("list"), items, [whole], "list")[0]
            self.lists[key] = made
        return self.lists[key]

    def _make(
        self, spec: OperatorSpec, operands: Sequence[ir.Value | None], like: Sequence[ir.Value], name: str
    ) -> list[ir.Value]:
        """A new node, its results of the types and shapes of some values."""
        results = [ir.Value(name=self._rename(name), type=one.type, shape=one.shape) for one in like]
        self.count += 1
        self.made.append(
            ir.Node(
                spec.domain, spec.name, operands, outputs=results, name=f"{spec.name.lower()}_{name}_{self.count}",
                metadata_props={SOURCE: f"{name}@{self.name}"},
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
                ir.Value(name=self._rename(f"{one.name}_again"), type=one.type, shape=one.shape) for one in node.outputs
            ],
            name=self._rename(f"{node.name}_again"),
            metadata_props=node.metadata_props,
        )
        self.made.append(made)
        return made.outputs[result]

    def _restore(self, node: ir.Node, result: int, whole: ir.Value, part: ir.Value) -> ir.Value:
        """The whole in which the part that a node took has another value."""
        parts = [part if i == result else self._repeat(node, i, whole) for i in range(len(node.outputs))]
        made = restore_whole(node, self.dialect.operators, whole, parts, result)
        if made is None:
            raise self.program.archive.make_error(
                f"{node.name} makes a view that is written to, and nothing says how {node.op_type} is undone"
            )
        made.name, made.outputs[0].name = self._rename(f"{node.name}_written"), self._rename(f"{whole.name}_written")
        self.made.append(made)
        return made.outputs[0]

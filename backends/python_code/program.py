"""A graph as a program: its classes, inner ones first, and the tensors that these hold by their paths."""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from ...engine.base.constants import TRAINED
from ...engine.base.errors import RewriteError
from ...engine.base.startup import dataclass, field
from ...engine.dialects.operators import Dialect
from ...engine.expressions.functions.registry import SHORT
from .blocks import find_blocks
from .class_names import list_parts, name_block, name_model
from .class_sizes import list_inputs, put_back, read_sizes, take_sizes
from .forward import Method, write_kind
from .identifiers import Names, list_identifiers, make_class_name, make_identifier, make_snake, select_functions
from .layer_builds import write_builds
from .members import Body, Member, plan_body
from .precisions import Precision, give_precision, note_precision
from .printer import WIDTH, quote, write_expression, write_head, write_statement
from .program_inputs import Input, describe_input
from .progressions import write_progressions
from .rerolled_loops import fold_rounds
from .step_order import list_steps
from .steps import Block, Slot, Step, read_options
from .templates import Filling, fill, list_arguments, make_literal, parse_template
from .ties import has_elements_of, write_last_statements, write_layer_precisions

#: letters of an option in a comment
_LONGEST = 400
#: equal layers in a row that are written once
_RUN = 3


@dataclass(slots=True, eq=False)
class Program:
    """The lines of a module, and the tensors that its main class holds: path and value, in the order of the classes."""

    lines: list[str]
    tensors: list[tuple[str, ir.Value]]
    name: str
    inputs: list[Input] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The module."""
        return "\n".join([*self.lines, ""])


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        python = dialect.facts.python
        assert python is not None
        self._dialect, self._python = dialect, python
        self._bodies: dict[Block, Body] = {}
        imported = [name for line in python.imports for name in line.replace(",", " ").split()]
        self._classes = Names([*imported, *python.functions])
        self.placeholders: list[str] = []
        self._inputs: list[str] = []  # what the class written last calls its inputs
        self._block_inputs: dict[Block, Sequence[str]] = {}
        self._parts: dict[str, set[str]] = {}
        self._weights: Sequence[ir.TensorProtocol] = ()
        self._precision = Precision()

    def write_program(self, graph: ir.Graph) -> Program:
        """Write a graph."""
        outputs, self._weights = list(graph.outputs), graph.meta.get(TRAINED, ())
        _require_types(graph, self._dialect)
        self._precision = note_precision(graph, self._python)
        listed, sizes = take_sizes(list_steps(graph, self._dialect), outputs)
        listed = fold_rounds(listed, outputs)
        steps, blocks = find_blocks(listed, outputs)
        steps = put_back(steps, sizes, outputs)
        lines: list[str] = []
        used = _list_used(steps)
        for block in blocks:
            if block not in used:
                continue
            block.name = self._classes.give(self._distinguish(block), "Block")
            results = [block.steps[place].writes[result] for place, result in block.results]
            names = Names([*self._python.reserved, *block.parameters])
            body = plan_body(
                block.steps, list_inputs(block.steps), results, block, names, self._dialect, self._block_inputs
            )
            body.sizes = read_sizes(block.steps, body.inputs, sizes)
            self._bodies[block] = body
            lines += ["", "", *self._write_class(block.name, body)]
        inputs = list(graph.inputs)  # what a model remembers is given by the caller, also where it has a beginning
        body = plan_body(steps, inputs, outputs, None, Names(self._python.reserved), self._dialect, self._block_inputs)
        name = self._classes.give(name_model(graph), "Model")
        held = list(self._iterate_tensors(body, steps, ""))
        tensors = [(path, value) for path, value, _ in held]
        ends = write_last_statements(tensors, graph, self._python)
        ends += write_layer_precisions([(path, value) for path, value, layer in held if layer], tensors, self._python)
        lines += ["", "", *self._write_class(name, body, ends)]
        functions = select_functions("\n".join(lines), self._python.functions)
        lines = [*(line for text in functions for line in ["", "", *text.rstrip().split("\n")]), *lines]
        head = self._list_imports("\n".join(lines))
        taken = [describe_input(value, said) for value, said in zip(inputs, self._inputs, strict=True)]
        return Program([*head, *lines], tensors, name, taken, self.placeholders)

    def _distinguish(self, block: Block) -> str:
        """The name of a block; where another has it, behind the part of the source that this one has besides."""
        name, parts = name_block(block, self._python.sequential), set(list_parts(block))
        more = parts - self._parts.setdefault(name, parts)
        return make_class_name(more.pop()) + name if len(more) == 1 else name

    def _list_imports(self, text: str) -> list[str]:
        """The lines of imports that something refers to."""
        words = list_identifiers(text)
        found = []
        for line in self._python.imports:
            [statement] = ast.parse(line).body
            assert isinstance(statement, ast.Import | ast.ImportFrom)
            names = [one for one in statement.names if (one.asname or one.name.split(".")[0]) in words]
            if names:
                statement.names = names
                found.append(ast.unparse(statement))
        return found

    # ---- classes

    def _write_class(self, name: str, body: Body, ends: Sequence[str] = ()) -> list[str]:
        """The lines of a class, `ends` those behind what its constructor makes."""
        slots = {} if body.block is None else body.block.literals
        if body.is_chain:
            [member] = body.members
            member.name = ""
            chain = self._make_chain(member, body, slots)
            assert isinstance(chain, ast.Call)
            begin = ast.Call(parse_template("super().__init__"), chain.args, chain.keywords)
            head = f"class {name}({write_expression(chain.func)}):"
            return [head, *self._write_signature(body), *write_statement("", begin, 2), *ends]
        stubs = self._collect_stubs(body)
        named = {step: stub for step, (stub, _) in stubs.items()}
        method = Method(body, slots, named, self._python, self._block_inputs)
        forward = method.write(self._python.method, self._python.tensor)
        self._inputs = method.inputs
        if body.block is not None:
            self._block_inputs[body.block] = method.inputs
        bodies = list(_walk(body))
        made = [line for one in bodies for member in one.members for line in self._write_member(member, one, slots)]
        inner = [(member, one) for one in bodies[1:] for member in one.members]
        made += [line for member, one in inner for line in write_builds(member, one, self._python.build)]
        made += [f"        self.{parameter} = {parameter}" for parameter in sorted(method.kept)]
        made += ends
        base = self._python.base if body.block is None else self._python.block or self._python.base
        lines = [f"class {name}({base}):"]
        buffers = [
            member
            for one in bodies
            for member in one.members
            if member.kind == "tensor" and not self._is_parameter(one.read_tensor(member))
        ]
        if buffers and self._python.tensor:
            lines += [*(f"    {member.name}: {self._python.tensor}" for member in buffers), ""]
        if made:
            given = self._precision.write_arguments(self._python, body.block is None)
            begin = ast.Call(parse_template("super().__init__"), [], given)
            lines += [*self._write_signature(body), *write_statement("", begin, 2), *made, ""]
        lines += forward
        for _, text in dict(stubs.values()).items():
            lines += ["", *text]
        return lines

    def _write_signature(self, body: Body) -> list[str]:
        if body.block is None:
            return list(write_head("__init__", self._precision.write_parameters(self._python), "None"))
        if not body.block.parameters:
            return ["    def __init__(self) -> None:"]
        taken = []
        for name, slots in body.block.parameters.items():
            place, slot = slots[0]
            kind = _write_type([one[place].literals[slot] for one in body.block.instances])
            value = body.block.defaults.get(name, ...)
            taken.append(f"{name}: {kind}" + ("" if value is ... else f" = {write_expression(make_literal(value))}"))
        return list(write_head("__init__", taken, "None"))

    def _collect_stubs(self, body: Body) -> dict[Step, tuple[str, tuple[str, ...]]]:
        """Methods that are to be filled in, one for each kind of operator that there is no code for."""
        found: dict[Step, tuple[str, tuple[str, ...]]] = {}
        named: dict[object, tuple[str, tuple[str, ...]]] = {}
        bodies = list(_walk(body))
        names = Names([*self._python.reserved, *(member.name for one in bodies for member in one.members)])
        for step in (step for one in bodies for step in one.steps):
            if step.spec is not None or step.node is None:
                continue
            if step.key not in named:
                stub = names.give(make_snake(step.node.op_type), "operator")
                named[step.key] = stub, tuple(self._write_stub(stub, step))
                self.placeholders.append(make_class_name(step.node.op_type) or "Operator")
            found[step] = named[step.key]
        return found

    def _write_stub(self, name: str, step: Step) -> Iterator[str]:
        node, tensor = step.node, self._python.tensor
        assert node is not None
        taken = [
            f"x{place}: {tensor}{'' if value is not None else ' | None'}" if tensor else f"x{place}"
            for place, value in enumerate(node.inputs)
        ]
        yield from write_head(name, taken, write_kind(tensor, len(node.outputs)))
        for one in _describe(node):
            yield from (f"        # {line}" for line in textwrap.wrap(one, WIDTH - 10))
        yield f"        raise NotImplementedError({quote(f'{node.op_type} is to be written')})"

    # ---- what a class holds

    def _write_member(self, member: Member, body: Body, slots: Mapping[tuple[int, Slot], ast.expr]) -> Iterator[str]:
        if member.slot is not None:
            yield from self._write_tensor_member(member, body, slots)
            return
        if member.kind == "layer":
            [place] = member.places
            value = self._make_layer(place, body.steps[place], slots)
        else:
            value = self._make_chain(member, body, slots)
        yield from write_statement(f"self.{member.name} = ", value, 2)

    def _make_chain(self, member: Member, body: Body, slots: Mapping[tuple[int, Slot], ast.expr]) -> ast.expr:
        layers = [self._make_layer(place, body.steps[place], slots) for place in member.places]
        alike = all(ast.dump(one) == ast.dump(layers[0]) for one in layers)
        items: list[ast.expr] = []
        for _, run in itertools.groupby(layers, ast.dump):
            same = list(run)
            several = len(same) >= _RUN or (alike and len(same) > 1)
            items += [ast.Starred(_repeat(same[0], len(same)))] if several else same
        items = list(write_progressions(items))
        if member.kind == "chain":
            return fill(parse_template(self._python.sequential), {"layers": items})
        whole = _repeat(layers[0], len(layers)) if alike and len(layers) > 1 else ast.List(items)
        return fill(parse_template(self._python.list), {"layers": whole})

    def _make_layer(self, place: int, step: Step, slots: Mapping[tuple[int, Slot], ast.expr]) -> ast.expr:
        def make_slot_literal(slot: Slot) -> ast.expr:
            return slots.get((place, slot)) or make_literal(step.literals[slot])

        if step.block is not None:
            arguments = {name: make_slot_literal((name, 0)) for name in step.block.parameters}
            usual = {name: ast.dump(make_literal(value)) for name, value in step.block.defaults.items()}
            given = {name: one for name, one in arguments.items() if ast.dump(one) != usual.get(name)}
            plain = [one for name, one in given.items() if name in step.block.widths]
            named = [ast.keyword(name, one) for name, one in given.items() if name not in step.block.widths]
            return ast.Call(ast.Name(step.block.name), plain, named)
        assert step.spec is not None and step.spec.facts.python.module is not None
        text = step.spec.facts.python.module
        names: dict[str, Filling] = dict(read_options(step))
        names |= {name: make_literal(name in step.held) for name in step.spec.facts.python.held}
        names |= {name: make_slot_literal((name, 0)) for name in list_arguments(text) if (name, 0) in step.literals}
        return give_precision(fill(parse_template(text), names), self._python.typed, step.precision)

    def _write_tensor_member(
        self, member: Member, body: Body, slots: Mapping[tuple[int, Slot], ast.expr]
    ) -> Iterator[str]:
        value, [place], slot = body.read_tensor(member), member.places, member.slot
        assert slot is not None and value.const_value is not None and value.dtype is not None
        shape = make_literal([int(extent) for extent in value.const_value.shape.numpy()])
        names: dict[str, Filling] = {
            "name": make_literal(member.name),
            "shape": slots.get((place, (f"{slot[0]}_shape", slot[1]))) or shape,
        }
        kind = parse_template(self._python.types[SHORT[value.dtype]])
        made = self._python.buffer.removeprefix("name = ")
        if self._is_parameter(value):
            names["dtype"] = None if value.dtype in (ir.DataType.FLOAT, self._precision.only) else kind
            yield from write_statement(f"self.{member.name} = ", fill(parse_template(self._python.parameter), names), 2)
        else:
            names["dtype"] = kind
            target = "" if made == self._python.buffer else f"self.{member.name} = "
            yield from write_statement(target, fill(parse_template(made), names), 2)

    def _is_parameter(self, value: ir.Value) -> bool:
        """Whether a tensor is one that is trained: a weight where the source tells these from other constants, else
        real numbers, and more than one."""
        tensor = value.const_value
        if TRAINED in value.meta or tensor is None or not tensor.dtype.is_floating_point():
            return TRAINED in value.meta
        return tensor.size > 1 and (not self._weights or any(has_elements_of(tensor, one) for one in self._weights))

    def _iterate_tensors(self, body: Body, steps: Sequence[Step], path: str) -> Iterator[tuple[str, ir.Value, bool]]:
        """The tensors of a class, as an instance of it with these steps has them, and whether a layer holds each."""
        for member in body.members:
            if member.slot is not None:
                yield f"{path}{member.name}", steps[member.places[0]].read_tensor(member.slot), False
                continue
            for at, place in enumerate(member.places):
                inner = path + "".join(
                    f"{part}." for part in (member.name, "" if member.kind == "layer" else f"{at}") if part
                )
                step = steps[place]
                if step.block is not None:
                    yield from self._iterate_tensors(self._bodies[step.block], step.inner, inner)
                stored = {} if step.spec is None else step.spec.facts.python.stored
                for name, value in step.held.items():
                    yield f"{inner}{stored.get(name, name)}", value, True
        for inside in body.inner.values():
            yield from self._iterate_tensors(inside, inside.steps, path)


def write_program(graph: ir.Graph, dialect: Dialect, outputs: Sequence[str] = ()) -> Program:
    """Write a graph of a dialect that is source code as a module of Python."""
    return _Writer(dialect).write_program(graph)


def _require_types(graph: ir.Graph, dialect: Dialect) -> None:
    """Raise RewriteError with every input, constant and result of a type that the dialect has no tensors of."""
    python = dialect.facts.python
    assert python is not None
    results = [output for node in graph.all_nodes() for output in node.outputs]
    values = [*graph.inputs, *graph.initializers.values(), *results]
    wrong = [one for one in values if one.dtype is not None and SHORT.get(one.dtype) not in python.types]
    if wrong:
        said = ", ".join(
            f"{one.name} ({SHORT.get(one.dtype, one.dtype.name)})" for one in wrong if one.dtype is not None
        )
        raise RewriteError(f"{dialect.name} has no tensors of the types of {said}")


def _repeat(layer: ast.expr, count: int) -> ast.GeneratorExp:
    each = ast.comprehension(ast.Name("_"), ast.Call(ast.Name("range"), [ast.Constant(count)], []), [], 0)
    return ast.GeneratorExp(layer, [each])


def _walk(body: Body) -> Iterator[Body]:
    """A body and those of its blocks of statements."""
    yield body
    for inner in body.inner.values():
        yield from _walk(inner)


def _list_used(steps: Sequence[Step]) -> set[Block]:
    found: set[Block] = set()
    for step in steps:
        if step.block is not None and step.block not in found:
            found |= {step.block, *_list_used(step.block.steps)}
    return found


def _write_type(values: Sequence[object]) -> str:
    kinds = []
    for value in values:
        items = [type(one).__name__ for one in value] if isinstance(value, tuple) else []
        kinds.append(f"tuple[{', '.join(items)}]" if isinstance(value, tuple) else type(value).__name__)
    found = sorted(set(kinds), key=lambda kind: (len(kind), kind))
    return " | ".join("tuple[()]" if kind == "tuple[]" else kind for kind in found)


def _describe(node: ir.Node) -> Iterator[str]:
    """What a node computes, in words that are safe in a comment."""

    def describe_kind(value: ir.Value | None) -> str:
        if value is None:
            return "nothing"
        name = SHORT.get(value.dtype, "?") if value.dtype is not None else "?"
        if value.shape is None:
            return name
        return f"{name}[{', '.join(str(d) if isinstance(d, int) else '?' for d in value.shape)}]"

    taken = ", ".join(map(describe_kind, node.inputs))
    yield f"{make_class_name(node.op_type)}({taken}) -> {', '.join(map(describe_kind, node.outputs))}"
    for name, attribute in node.attributes.items():
        if attribute.type in (
            ir.AttributeType.INT,
            ir.AttributeType.FLOAT,
            ir.AttributeType.INTS,
            ir.AttributeType.FLOATS,
        ):
            yield f"{make_identifier(name)}: {attribute.value}"[:_LONGEST]
        elif attribute.type == ir.AttributeType.STRING:
            yield f"{make_identifier(name)}: {quote(str(attribute.value)[:_LONGEST])}"

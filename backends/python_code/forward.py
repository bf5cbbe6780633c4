"""The statements of a method that computes: expressions put into each other where a reader follows, names given."""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from ...engine.base.startup import dataclass, field, replace
from ...engine.dialects.python_facts import DialectPython
from .identifiers import make_identifier
from .members import Body, is_read_as_number
from .printer import write_expression, write_head
from .shape_comments import shorten_places, write_shape
from .small_constants import write_constant
from .statements import LETTERS, Statement, StatementWriter, Suite, is_number, make_call
from .steps import Block, Roll, Slot, Step, count_reads, is_truth, read_options, read_truth
from .templates import Filling, fill, make_attribute, make_literal, parse_template
from .value_names import find_preferred_names

#: letters of an expression that may stand in another, and of a statement that it may make
_INNER, _LINE = 60, 84


@dataclass(slots=True, eq=False)
class Method:
    """The statements of a method under construction."""

    body: Body
    parameters: Mapping[tuple[int, Slot], ast.expr]
    placeholders: Mapping[Step, str]
    python: DialectPython
    block_inputs: Mapping[Block, Sequence[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    _lengths: Mapping[ir.Value, int] = field(default_factory=dict)
    _counters: set[ir.Value] = field(default_factory=set)
    _values: list[ir.Value] = field(default_factory=list)
    _numbers: dict[ir.Value, int] = field(default_factory=dict)
    _known: dict[ir.Value, ast.expr] = field(default_factory=dict)
    _waiting: dict[ir.Value, Statement] = field(default_factory=dict)
    _used: list[ir.Value] = field(default_factory=list)
    _statements: list[Statement] = field(default_factory=list)

    def write(self, method: str, tensor: str) -> list[str]:
        """The lines of the method, within a class."""
        body = self.body
        preferred = find_preferred_names(body, self.block_inputs)
        self._lengths = {value: len(name) for value, name in preferred.items()}
        if body.block is None:
            self._lengths |= {value: len(make_identifier(value.name or "")) for value in body.inputs}
        for value in body.inputs:
            self._known[value] = self._make_name(value)
        suite = self._finish_suite()
        scribe = StatementWriter(self._values, self.python, preferred)
        for at, value in enumerate(body.inputs):
            scribe.given[value] = self._name_input(at, value, scribe, preferred)
        names = scribe.given
        lines = list(scribe.write(suite))
        self.inputs = [names[value] for value in body.inputs]
        taken = [
            f"{names[value]}: {'int' if is_number(value) else tensor}" if tensor else names[value]
            for value in body.inputs
        ]
        return [*write_head(method, taken, write_kind(tensor, len(body.outputs))), *lines]

    def _finish_suite(self) -> Suite:
        """The statements of the body that is worked on, and what it yields."""
        body, outer, self._statements = self.body, self._statements, []
        reads = count_reads(body.steps, body.outputs)
        looped = {
            value for member in body.members if member.kind == "list" for value in body.steps[member.places[0]].inputs
        }
        for size in body.sizes:
            self._known[size.value] = self._make_name(size.value)
            self._statements.append(Statement([size.value], size.write(self._known[size.source])))
        for place, step in enumerate(body.steps):
            self._take(place, step, reads, looped)
        for value in body.outputs:
            if is_truth(value):
                self._known[value] = make_literal(read_truth(value))
        result = self._write_expression(lambda: ast.Tuple([self._read(value) for value in body.outputs]))
        assert isinstance(result, ast.Tuple)
        statements, self._statements = self._statements, outer
        return Suite(statements, result.elts)

    def _name_input(self, at: int, value: ir.Value, scribe: StatementWriter, preferred: Mapping[ir.Value, str]) -> str:
        if is_number(value):
            return scribe.names.number_name("n")
        if self.body.block is not None and at and value in preferred:
            name = scribe.reserve_name(preferred[value])
            if name not in scribe.given.values():
                return name
        if self.body.block is not None or len(self.body.inputs) == 1:
            return LETTERS[at] if at < len(LETTERS) else scribe.names.number_name("x")
        name = make_identifier(value.name or "")
        return name if name in LETTERS and name not in scribe.given.values() else scribe.names.give(name, "x")

    # ---- branches and loops

    def _write_compound(self, place: int, step: Step, reads: Mapping[ir.Value, int]) -> None:
        assert step.spec is not None
        is_branch = step.spec.facts.python.statement == "if"
        asked = step.inputs if not is_branch else [v for v in step.inputs if v is not step.reads[0] or reads[v] > 1]
        for value in asked:
            if not is_number(value):
                self._settle(value)
        values = [
            self._write_operand(place, step, operand.name, at, value)
            for operand in step.spec.operands
            for at, value in enumerate(step.operands[operand.name])
        ]
        inner = [self.body.inner[place, option] for option in step.graphs]
        kept: list[int] = []
        if step.spec.facts.python.statement == "for":
            kept = self._find_unchanged(inner[0], values[2:])
            for at in kept:
                begin = values[at + 2]
                assert begin is not None
                self._known[inner[0].inputs[at + 2]] = begin
        suites = [self._write_inner(body, kept) for body in inner]
        for at, result in enumerate(step.writes):
            begin = values[at + 2] if at in kept else None
            self._known[result] = self._make_name(result) if begin is None else begin
        if is_branch:
            choice = self._make_choice(values[0], suites)
            statement = Statement(list(step.writes), values[0] if choice is None else choice)
            statement.suites = suites if choice is None else []
            self._statements.append(statement)
            return
        count, going, *all_begins = values
        begins = [begin for at, begin in enumerate(all_begins) if at not in kept]
        writes = [value for at, value in enumerate(step.writes) if at not in kept]
        going = self._make_loop_condition(suites[0], count, going)
        known = [begin for begin in begins if begin is not None]
        self._statements.append(Statement(writes, count, suites=suites, begins=known, condition=going))

    def _make_loop_condition(self, suite: Suite, count: ast.expr | None, going: ast.expr | None) -> ast.expr | None:
        """Whether a loop begins at all; None where its rounds are counted, and no round ends them."""
        keeps = suite.results[0]
        same = isinstance(keeps, ast.Constant) or ast.dump(keeps) == ast.dump(self._make_name(suite.inputs[1]))
        if same and (going is None or (isinstance(going, ast.Constant) and going.value)) and count is not None:
            return None
        return ast.Constant(True) if going is None else going

    @staticmethod
    def _make_choice(condition: ast.expr | None, suites: Sequence[Suite]) -> ast.expr | None:
        """The expression of a branch that only chooses; None where it does more, or is too long."""
        if condition is None or any(suite.statements for suite in suites):
            return None
        one, other = (suite.results[0] if len(suite.results) == 1 else ast.Tuple(suite.results) for suite in suites)
        made = ast.IfExp(condition, one, other)
        return made if len(write_expression(made)) <= _LINE else None

    @staticmethod
    def _find_unchanged(body: Body, begins: Sequence[ast.expr | None]) -> list[int]:
        """Which of the values that go round a loop are the same in each round."""
        copies = {step.writes[0]: step.reads[0] for step in body.steps if _is_copy(step)}
        carried = zip(body.inputs[2:], body.outputs[1:], strict=False)
        same = [before in (after, copies.get(after)) for before, after in carried]
        return [at for at, stays in enumerate(same) if stays and begins[at] is not None]

    def _write_inner(self, body: Body, kept: Sequence[int]) -> Suite:
        outer, self.body = self.body, body
        inputs = [value for at, value in enumerate(body.inputs) if at - 2 not in kept]
        for value in inputs:
            self._known[value] = self._make_name(value)
        if body.inputs:
            counter = body.inputs[0]
            self._counters.add(counter)
            self._known[counter] = fill(parse_template(self.python.scalar), {"n": self._make_name(counter)})
        suite = self._finish_suite()
        suite.inputs = inputs
        suite.results = [result for at, result in enumerate(suite.results) if at - 1 not in kept]
        self.body = outer
        return suite

    # ---- expressions

    def _make_name(self, value: ir.Value) -> ast.Name:
        if value not in self._numbers:
            self._numbers[value] = len(self._values)
            self._values.append(value)
        return ast.Name(f"${self._numbers[value]}")

    def _take(self, place: int, step: Step, reads: Mapping[ir.Value, int], looped: set[ir.Value]) -> None:
        member = self.body.of_step.get(place)
        if member is not None and member.kind != "numbered" and place != member.places[-1]:
            return  # the last one stands for all
        if step.constant is not None:
            self._known[step.constant] = self._write_tensor(place, ("", -1))
            return
        if member is not None and member.kind == "list":
            self._write_loop(member.name, [self.body.steps[one] for one in member.places])
            return
        if step.graphs:
            self._write_compound(place, step, reads)
            return
        if step.roll is not None:
            joined = self._write_rounds(step, step.roll)
            self._assign(place, replace(step, writes=step.writes[:1]), joined, reads, looped)
            return
        first = step if member is None or member.kind == "numbered" else self.body.steps[member.places[0]]
        value = self._write_expression(lambda: self._compute(place, first, step))
        self._assign(place, step, value, reads, looped)

    def _assign(
        self, place: int, step: Step, value: ast.expr, reads: Mapping[ir.Value, int], looped: set[ir.Value]
    ) -> None:
        """Let results have a name, or let the expression wait for the one that reads it."""
        if isinstance(value, ast.Name):
            self._known[step.writes[0]] = value
            return
        python = None if step.spec is None else step.spec.facts.python
        statement = Statement(list(step.writes), value)
        if step.spec is not None and python is not None:
            statement.unpacked, statement.results = python.unpacked, tuple(one.name for one in step.spec.results)
            statement.several = any(one.variadic for one in step.spec.results)
        statement.comment = self._format_shape(place, 0) if len(step.writes) == 1 else ""
        if len(step.writes) == 1:
            result = step.writes[0]
            short = self._measure(value) <= _INNER
            plain = statement.unpacked is None and not statement.several
            if reads.get(result, 0) == 1 and short and plain and result not in looped:
                self._known[result] = value
                self._waiting[result] = statement
                return
        for result in step.writes:
            if reads.get(result, 0):
                self._known[result] = self._make_name(result)
        self._statements.append(statement)

    def _write_rounds(self, step: Step, roll: Roll) -> ast.expr:
        """Write a loop over rounds that are alike; the expression of what they yield together."""
        for value in step.inputs:
            self._settle(value)
        begins = [self._known[begin] for begin, _, _ in roll.carried]
        outputs = [*(after for _, _, after in roll.carried), roll.row]
        inputs = [roll.counter, ir.Value(name="going"), *(before for _, before, _ in roll.carried)]
        outer, given = self.body, self.parameters
        self.body, self.parameters = Body(roll.steps, inputs, outputs), {}
        for value in inputs:
            self._known[value] = self._make_name(value)
        suite = self._finish_suite()
        self.body, self.parameters = outer, given
        suite.inputs, suite.results = inputs, [ast.Constant(True), *suite.results]
        targets = [*roll.finals, roll.rows]
        for value in (*step.writes[1:], roll.rows):
            self._known[value] = self._make_name(value)
        self._statements.append(
            Statement(targets, ast.Constant(roll.count), suites=[suite], begins=begins, is_listed=True)
        )
        assert roll.join.spec is not None and roll.join.spec.facts.python.expression is not None
        [operand] = roll.join.spec.operands
        names: dict[str, Filling] = {operand.name: [ast.Starred(self._known[roll.rows])]}
        return fill(parse_template(roll.join.spec.facts.python.expression), {**names, **read_options(roll.join)})

    def _write_loop(self, name: str, steps: Sequence[Step]) -> None:
        first = steps[0]
        turning = len(first.reads) - 1
        for at, value in enumerate(steps[1].reads):
            if value is first.writes[0]:
                turning = at
        for value in first.inputs:
            self._settle(value)
        call = self._make_call(ast.Name("layer"), first)
        result = steps[-1].writes[0]
        self._known[result] = self._make_name(result)
        self._statements.append(Statement([result], call, layers=(name, turning)))

    def _make_call(self, called: ast.expr, first: Step) -> ast.Call:
        # A chain of layers takes one value, and has no names.
        named = self.python.named_numbers and first.block is not None
        names = self.block_inputs.get(first.block, ()) if named and first.block is not None else ()
        return make_call(called, list(first.inputs), [self._read(value) for value in first.inputs], names)

    def _settle(self, value: ir.Value) -> None:
        """Let a value have a name of its own, which waits to stand in an expression."""
        statement = self._waiting.pop(value, None)
        if statement is not None:
            self._known[value] = self._make_name(value)
            self._statements.append(statement)

    def _write_expression(self, make: Callable[[], ast.expr]) -> ast.expr:
        """An expression; what makes its line too long is assigned before it."""
        self._used = []
        made = make()
        used = dict.fromkeys(self._used)
        if self._measure(made) > _LINE:
            made = self._shorten(made, make, [value for value in used if value in self._waiting])
        for value in used:
            self._waiting.pop(value, None)
        return made

    def _shorten(self, made: ast.expr, make: Callable[[], ast.expr], waiting: Sequence[ir.Value]) -> ast.expr:
        """An expression made anew, the longest of what waits to stand in it having names, until it is short enough."""
        longest = sorted(waiting, key=lambda value: len(write_expression(self._known[value])), reverse=True)
        queue, length = deque(longest), self._measure(made)
        while queue and length > _LINE:
            occurrences = Counter(map(id, ast.walk(made)))
            while queue and length > _LINE:  # an expression of thousands is not made anew for each of them
                value = queue.popleft()
                written = self._known[value]
                length -= max(occurrences[id(written)], 1) * (self._measure(written) + 2)  # at most, in brackets
                self._settle(value)
            made = make()
            length = self._measure(made)
        return made

    def _read(self, value: ir.Value) -> ast.expr:
        """The expression of a value, noted as part of what is made of it."""
        self._used.append(value)
        return self._known[value]

    def _measure(self, node: ast.expr) -> int:
        """The letters of an expression, with names that are known to be long as they will be."""
        names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id[0] == "$"]
        longer = (self._lengths.get(self._values[int(name[1:])], 0) - len(name) for name in names)
        return len(write_expression(node)) + sum(max(0, more) for more in longer)

    def _compute(self, place: int, first: Step, step: Step) -> ast.expr:
        member = self.body.of_step.get(place)
        if member is not None and (step.block is not None or member.kind == "chain"):
            called: ast.expr = make_attribute(member.name)
            if member.kind == "numbered":
                called = ast.Subscript(called, ast.Constant(member.places.index(place)))
            return self._make_call(called, first)
        if step.spec is None:
            items = [self._write_operand(place, step, "", at, one) for at, [one] in enumerate(step.operands.values())]
            given: list[ast.expr] = [one or ast.Constant(None) for one in items]
            return ast.Call(make_attribute(self.placeholders[step]), given, [])
        python = step.spec.facts.python
        names: dict[str, Filling] = {}
        for operand in step.spec.operands:
            values = step.operands[operand.name]
            if member is not None and operand.name in python.held:
                continue
            found = [self._write_operand(place, step, operand.name, at, value) for at, value in enumerate(values)]
            names[operand.name] = [one for one in found if one is not None] if operand.variadic else found[0]
        if member is not None:
            if python.call is None:
                arguments = [one for one in names.values() if isinstance(one, ast.expr)]
                return ast.Call(make_attribute(member.name), arguments, [])
            names["layer"] = make_attribute(member.name)
            return fill(parse_template(python.call), names)
        assert python.expression is not None
        made = fill(parse_template(python.expression), {**names, **read_options(step)})
        return shorten_places(made, next(iter(step.operands.values()), [])) if isinstance(made, ast.Subscript) else made

    def _write_operand(self, place: int, step: Step, name: str, at: int, value: ir.Value | None) -> ast.expr | None:
        if value is None:
            return None
        if (name, at) in step.literals:
            parameter = self.parameters.get((place, (name, at)))
            if parameter is None:
                return make_literal(step.literals[name, at])
            names = {one.id: make_attribute(one.id) for one in ast.walk(parameter) if isinstance(one, ast.Name)}
            self.kept |= set(names)
            return fill(parameter, names)
        if (name, at) in step.own:
            return self._write_tensor(place, (name, at))
        counts = value in self._counters and step.spec is not None and name in step.spec.facts.python.numbers
        if counts and (any(one not in self._counters for one in step.reads) or is_read_as_number(self.body, step)):
            return self._make_name(value)
        return self._read(value)

    def _write_tensor(self, place: int, slot: Slot) -> ast.expr:
        if (place, slot) not in self.body.tensors:
            return write_constant(self.body.steps[place].read_tensor(slot), self.python)
        return make_attribute(self.body.tensors[place, slot].name)

    def _format_shape(self, place: int, result: int) -> str:
        """The extents of a result as a comment, where all instances have the same."""
        block: Block | None = self.body.block
        steps = [self.body.steps[place]] if block is None else [one[place] for one in block.instances]
        texts = {write_shape(step.writes[result]) for step in steps}
        return texts.pop() if len(texts) == 1 else ""


def write_kind(tensor: str, count: int) -> str:
    """The type of some results; nothing where there is none of tensors."""
    return tensor if count == 1 or not tensor else f"tuple[{', '.join([tensor] * count)}]"


def _is_copy(step: Step) -> bool:
    expression = None if step.spec is None else step.spec.facts.python.expression
    return expression is not None and len(step.reads) == 1 and isinstance(parse_template(expression), ast.Name)

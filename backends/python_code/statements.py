"""Statements of a method with values in the place of names, and the names and lines that they get."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir

from ...engine.base.startup import dataclass, field
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions.registry import SHORT
from .identifiers import Names
from .printer import write_expression, write_return, write_statement
from .steps import PLAIN
from .templates import fill, make_literal, parse_template

#: names of values that come and go
LETTERS = ("x", "y", "z", "u", "v", "w")
#: the name of numbers of Python
NUMBER = "n"
#: behind all statements
_END = 1 << 30


@dataclass(slots=True, eq=False)
class Statement:
    """An assignment, a loop over layers, a branch or a loop; values stand in expressions as names `$1`.

    `unpacked` is how results are assigned where they are no flat list, `results` are their names there. `layers` is the
    list that is looped over, and which argument goes round. Of a branch or a loop, `value` is the condition or the
    count (None: there is none), and `suites` are what is done. What rounds yield is a list where it `is_listed`.
    """

    targets: list[ir.Value]
    value: ast.expr | None
    unpacked: str | None = None
    results: tuple[str, ...] = ()
    several: bool = False
    layers: tuple[str, int] | None = None
    comment: str = ""
    suites: list[Suite] = field(default_factory=list)
    begins: list[ast.expr] = field(default_factory=list)
    condition: ast.expr | None = None
    is_listed: bool = False


@dataclass(slots=True, eq=False)
class Suite:
    """A block of statements and what it yields; `inputs` are the counter, the condition and what goes round."""

    statements: list[Statement]
    results: list[ast.expr]
    inputs: list[ir.Value] = field(default_factory=list)


def is_number(value: ir.Value) -> bool:
    """Whether a value is a number of Python and no tensor."""
    return value.meta.get(PLAIN) is True


def make_call(called: ast.expr, values: Sequence[ir.Value], given: list[ast.expr], names: Sequence[str]) -> ast.Call:
    """A call of a layer with what is `given` for its values; from the first number on by `names`, if there are any."""
    start = next((at for at, value in enumerate(values) if names and is_number(value)), len(values))
    pairs = zip(names[start:], given[start:], strict=False)
    return ast.Call(called, given[:start], [ast.keyword(name, one) for name, one in pairs])


class StatementWriter:
    """Gives values names and writes lines: a name is free again when nothing reads its value any more."""

    def __init__(
        self,
        values: Sequence[ir.Value],
        python: DialectPython,
        preferred: Mapping[ir.Value, str] = MappingProxyType({}),
    ) -> None:
        self._values, self._python, self._preferred = values, python, preferred
        self._reserved: dict[str, str] = {}
        self._handed: dict[ir.Value, str] = {}
        self._numbers = {value: number for number, value in enumerate(values)}
        self.names = Names(["self", "layer", *LETTERS, NUMBER, *python.reserved])
        self.given: dict[ir.Value, str] = {}

    def write(self, suite: Suite) -> Iterator[str]:
        """The lines of a method; its inputs have their names."""
        live = dict.fromkeys(self.given.values(), _END)
        last = _find_last([*suite.statements, Statement([], ast.Tuple(suite.results))])
        for value, name in self.given.items():
            live[name] = last.get(self._numbers[value], -1)
        several = ast.Tuple(suite.results)
        statements, result = self._split_end(suite) if len(suite.results) == 1 else (suite.statements, several)
        yield from self._write_suite(statements, live, last, 2)
        yield from write_return(self._rename(result), 2)

    def _split_end(self, suite: Suite) -> tuple[list[Statement], ast.expr]:
        """The statements before the return and what it returns: what is assigned at last, where that is the result."""
        [result] = suite.results
        last = suite.statements[-1] if suite.statements else None
        if last is None or last.value is None or last.suites or last.layers is not None or len(last.targets) != 1:
            return suite.statements, result
        same = isinstance(result, ast.Name) and result.id == f"${self._numbers.get(last.targets[0])}"
        if same and last.unpacked is None and not last.several:
            return suite.statements[:-1], last.value
        return suite.statements, result

    def _write_suite(
        self, statements: Sequence[Statement], live: dict[str, int], last: Mapping[int, int], depth: int
    ) -> Iterator[str]:
        for at, statement in enumerate(statements):
            if statement.suites:
                _expire(live, at - 1)
                yield from self._write_compound(at, statement, live, last, depth)
                _expire(live, at)
                continue
            if statement.layers is not None:
                _expire(live, at - 1)  # what is read in each round stays
                yield from self._write_layers(at, statement, live, last, depth)
                _expire(live, at)
                continue
            _expire(live, at)
            yield from self._assign(at, statement, live, last, depth)

    def _assign(
        self, at: int, statement: Statement, live: dict[str, int], last: Mapping[int, int], depth: int
    ) -> Iterator[str]:
        assert statement.value is not None
        free = self._list_free(statement, at, last)
        value = self._rename(statement.value)
        targets = []
        for target in statement.targets:
            if target not in self._numbers or self._numbers[target] not in last:
                targets.append("_")
                continue
            targets.append(self._give(target, free, live, last))
        yield from write_statement(f"{_list_targets(statement, targets)} = ", value, depth, statement.comment)

    def _write_layers(
        self, at: int, statement: Statement, live: dict[str, int], last: Mapping[int, int], depth: int
    ) -> Iterator[str]:
        assert statement.layers is not None and isinstance(statement.value, ast.Call)
        [target], (member, turning) = statement.targets, statement.layers
        free = self._list_free(statement, at, last)
        value = self._rename(statement.value)
        assert isinstance(value, ast.Call)
        named = value.keywords[turning - len(value.args)] if turning >= len(value.args) else None
        came = value.args[turning] if named is None else named.value
        if isinstance(came, ast.Name) and came.id in free and came.id in LETTERS:
            self.given[target] = came.id
            live[came.id] = last.get(self._numbers[target], -1)
        else:
            yield from write_statement(f"{self._give(target, [], live, last)} = ", came, depth)
        name = self.given[target]
        if named is None:
            value.args[turning] = ast.Name(name)
        else:
            named.value = ast.Name(name)
        yield f"{_indent(depth)}for layer in self.{member}:"
        yield from write_statement(f"{name} = ", value, depth + 1, statement.comment)

    # ---- branches and loops

    def _write_compound(
        self, at: int, statement: Statement, live: dict[str, int], last: Mapping[int, int], depth: int
    ) -> Iterator[str]:
        if len(statement.suites) == 2:
            assert statement.value is not None
            names = [self._give(target, [], live, last) for target in statement.targets]
            test = f"if {write_expression(self._rename(statement.value))}:"
            for head, suite in zip((test, "else:"), statement.suites, strict=True):
                yield f"{_indent(depth)}{head}"
                yield from self._write_inside(suite, live, names, depth + 1)
            return
        yield from self._write_loop(at, statement, live, last, depth)

    def _write_inside(
        self, suite: Suite, live: Mapping[str, int], names: Sequence[str], depth: int, did: bool = False
    ) -> Iterator[str]:
        """The lines of a block that ends with the assignment of what it yields; `did` says that it begins above."""
        inner = dict.fromkeys(live, _END)
        last = _find_last([*suite.statements, Statement([], ast.Tuple(suite.results))])
        yield from self._write_suite(suite.statements, inner, last, depth)
        results = [self._rename(result) for result in suite.results]
        pairs = [
            (name, result)
            for name, result in zip(names, results, strict=True)
            if not (isinstance(result, ast.Name) and result.id == name)
        ]
        taken = {one.id for _, result in pairs for one in ast.walk(result) if isinstance(one, ast.Name)}
        if len(pairs) > 1 and taken & {name for name, _ in pairs}:
            text = write_expression(ast.Tuple([result for _, result in pairs]))[1:-1]
            yield f"{_indent(depth)}{', '.join(name for name, _ in pairs)} = {text}"
            return
        for name, result in pairs:
            yield from write_statement(f"{name} = ", result, depth)
        if not pairs and not suite.statements and not did:
            yield f"{_indent(depth)}pass"

    def _write_loop(
        self, at: int, statement: Statement, live: dict[str, int], last: Mapping[int, int], depth: int
    ) -> Iterator[str]:
        suite = statement.suites[0]
        counter, condition, *carried = suite.inputs
        count = len(carried)
        names = list[str]()
        for value, begin in zip(carried, statement.begins, strict=True):
            taken = self._is_last_read(begin, at, statement, last)
            yield from self._begin_carried(value, begin, taken, names, live, depth)
        lists = []
        for _ in statement.targets[count:]:
            lists.append(self.names.give("rows"))
            kind = f": list[{self._python.tensor}]" if self._python.tensor else ""
            yield f"{_indent(depth)}{lists[-1]}{kind} = []"
        going = ""
        if statement.condition is not None:
            going = self.names.give("going")
            self.given[condition] = going
            constant = isinstance(statement.condition, ast.Constant) and self._python.tensor
            kind = f": bool | {self._python.tensor}" if constant else ""
            yield from write_statement(f"{going}{kind} = ", self._rename(statement.condition), depth)
        index = self.names.give("i")
        self.given[counter] = index
        inner = {**live, **dict.fromkeys([going, index], _END)}
        used = any(self._numbers.get(counter, -1) in _list_numbers(one) for one in _iterate_statements(suite))
        turns = None if statement.value is None else write_expression(self._rename(statement.value))
        yield from _write_head(turns, index if used else "", going, depth)
        keeps, *results = suite.results
        rows = results[count:]
        body = Suite(suite.statements, [*rows, *([keeps] if going else []), *results[:count]], suite.inputs)
        self._carry_names(body, carried, results[:count])
        yield from self._write_rounds(body, inner, lists, [*([going] if going else []), *names], depth + 1)
        if used and statement.value is None:
            yield f"{_indent(depth + 1)}{index} += 1"
        for target, name in zip(statement.targets[:count], names, strict=True):
            if target in self._numbers:
                self.given[target] = name
            live[name] = last.get(self._numbers.get(target, -1), -1)
        for target, name in zip(statement.targets[count:], lists, strict=True):
            if statement.is_listed:
                self.given[target], live[name] = name, last.get(self._numbers[target], -1)
            elif self._numbers.get(target) in last:
                made = self._stack_rows(name, target, statement)
                yield from write_statement(f"{self._give(target, [], live, last)} = ", made, depth)

    def _begin_carried(
        self, value: ir.Value, begin: ast.expr, taken: bool, names: list[str], live: dict[str, int], depth: int
    ) -> Iterator[str]:
        """Name a value that rounds hand on, and assign what it begins as; `taken`, it has the name of that instead."""
        came = self._rename(begin)
        name = came.id if taken and isinstance(came, ast.Name) else self._choose_name(value, [], live)
        names.append(name)
        self.given[value], live[name] = name, _END
        if not taken:
            yield from write_statement(f"{name} = ", came, depth)

    def _stack_rows(self, rows: str, target: ir.Value, statement: Statement) -> ast.expr:
        """What a loop has collected as one tensor, also where it may have turned no times and the extents are known."""
        made = fill(parse_template(self._python.stack), {"xs": ast.Name(rows)})
        begins = (one for one in (statement.value, statement.condition) if one is not None)
        turns = all(isinstance(one, ast.Constant) and one.value for one in begins)
        extents = [None] if target.shape is None else list(target.shape)[1:]
        if turns or target.dtype is None or not all(isinstance(n, int) for n in extents):
            return made
        dtype = parse_template(self._python.types[SHORT[target.dtype]])
        nothing = fill(parse_template(self._python.empty), {"shape": make_literal([0, *extents]), "dtype": dtype})
        return ast.IfExp(ast.Name(rows), made, nothing)

    def _is_last_read(self, begin: ast.expr, at: int, statement: Statement, last: Mapping[int, int]) -> bool:
        """Whether a value that a loop begins with is read there for the last time, and not within the loop."""
        if not isinstance(begin, ast.Name) or not begin.id.startswith("$"):
            return False
        number = int(begin.id[1:])
        return last.get(number, _END) <= at and list(_list_numbers(statement)).count(number) == 1

    def _carry_names(self, suite: Suite, carried: Sequence[ir.Value], results: Sequence[ast.expr]) -> None:
        """Let what a round hands on have the name of what it was given, where that is not read any more by then."""
        last = _find_last([*suite.statements, Statement([], ast.Tuple(suite.results))])
        for value, result in zip(carried, results, strict=True):
            for at, statement in enumerate(suite.statements):
                for target in statement.targets:
                    same = isinstance(result, ast.Name) and result.id == f"${self._numbers.get(target)}"
                    if same and last.get(self._numbers.get(value, -1), -1) <= at:
                        self._handed[target] = self.given[value]

    def _write_rounds(
        self, suite: Suite, live: Mapping[str, int], lists: Sequence[str], names: Sequence[str], depth: int
    ) -> Iterator[str]:
        """One round of a loop: rows are appended before what goes round is assigned."""
        inner = dict.fromkeys(live, _END)
        last = _find_last([*suite.statements, Statement([], ast.Tuple(suite.results))])
        yield from self._write_suite(suite.statements, inner, last, depth)
        for name, row in zip(lists, suite.results, strict=False):
            yield from write_statement(
                "", ast.Call(ast.Attribute(ast.Name(name), "append"), [self._rename(row)], []), depth
            )
        did = bool(suite.statements or lists)
        yield from self._write_inside(Suite([], suite.results[len(lists) :]), inner, names, depth, did)

    # ---- names

    def _list_free(self, statement: Statement, at: int, last: Mapping[int, int]) -> list[str]:
        """The names of what a statement reads last."""
        used = dict.fromkeys(_list_numbers(statement))
        return [self.given[self._values[number]] for number in used if last.get(number, _END) <= at]

    def _give(self, target: ir.Value, free: Sequence[str], live: dict[str, int], last: Mapping[int, int]) -> str:
        name = self._choose_name(target, free, live)
        self.given[target] = name
        live[name] = last.get(self._numbers.get(target, -1), -1)
        return name

    def _choose_name(self, target: ir.Value, free: Sequence[str], live: Mapping[str, int]) -> str:
        if is_number(target):
            return self.names.number_name(NUMBER) if NUMBER in live else NUMBER
        if target in self._handed:
            return self._handed[target]
        if target in self._preferred and (name := self.reserve_name(self._preferred[target])) not in live:
            return name
        wishes = [*(name for name in free if name in LETTERS), *LETTERS]
        return next((name for name in wishes if name not in live), "") or self.names.number_name("x")

    def reserve_name(self, preferred: str) -> str:
        """The free name that stands for a preferred one, the same each time."""
        if preferred not in self._reserved:
            self._reserved[preferred] = self.names.give(preferred)
        return self._reserved[preferred]

    def _rename(self, node: ast.expr) -> ast.expr:
        found: ast.expr = _Renaming(self._values, self.given).visit(copy.deepcopy(node))
        return found


class _Renaming(ast.NodeTransformer):
    def __init__(self, values: Sequence[ir.Value], given: Mapping[ir.Value, str]) -> None:
        self._values, self._given = values, given

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._given[self._values[int(node.id[1:])]]) if node.id.startswith("$") else node


def _indent(depth: int) -> str:
    return "    " * depth


def _expire(live: dict[str, int], at: int) -> None:
    for name in [name for name, end in live.items() if end <= at]:
        del live[name]


def _write_head(turns: str | None, index: str, going: str, depth: int) -> Iterator[str]:
    """The first lines of a loop of so many `turns`, or any where None, that ends where `going` is false."""
    if turns is None:
        if index:
            yield f"{_indent(depth)}{index} = 0"
        yield f"{_indent(depth)}while {going or 'True'}:"
        return
    yield f"{_indent(depth)}for {index or '_'} in range({turns}):"
    if going:
        yield f"{_indent(depth + 1)}if not {going}:"
        yield f"{_indent(depth + 2)}break"


def _find_last(statements: Sequence[Statement]) -> dict[int, int]:
    """The last statement that reads each value."""
    return {number: at for at, statement in enumerate(statements) for number in _list_numbers(statement)}


def _iterate_statements(suite: Suite) -> Iterator[Statement]:
    yield from suite.statements
    yield Statement([], ast.Tuple(suite.results))


def _list_numbers(statement: Statement) -> Iterator[int]:
    """The values that a statement reads, in its blocks as well."""
    for node in (statement.value, statement.condition, *statement.begins):
        if node is not None:
            yield from (int(one.id[1:]) for one in ast.walk(node) if isinstance(one, ast.Name) and one.id[0] == "$")
    for suite in statement.suites:
        for inner in _iterate_statements(suite):
            yield from _list_numbers(inner)


def _list_targets(statement: Statement, names: Sequence[str]) -> str:
    if statement.unpacked is not None:
        results = {result: ast.Name(name) for result, name in zip(statement.results, names, strict=False)}
        return write_expression(_merge_unused(fill(parse_template(statement.unpacked), results)))[1:-1]
    return f"({names[0]},)" if statement.several and len(names) == 1 else ", ".join(names)


def _merge_unused(node: ast.expr) -> ast.expr:
    """Targets with one underscore for those in brackets of which none is used."""
    if not isinstance(node, ast.Tuple):
        return node
    items = [_merge_unused(item) for item in node.elts]
    unused = [isinstance(item, ast.Tuple) and {ast.unparse(one) for one in item.elts} == {"_"} for item in items]
    return ast.Tuple([ast.Name("_") if no else item for item, no in zip(items, unused, strict=True)])

"""The compile-time language: expressions compiled to closures over a frame of variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..syntax import tree
from ..syntax.tree_traversal import walk
from .frame import Emitter, Frame, Located
from .functions import CONSTANTS, FUNCTIONS, EvaluationError, UnknownValueError, Unsupported, format_value
from .invariants import hoist_invariants
from .memo import is_small, list_inputs, make_key, may_visit_elements, memoize
from .values import ARITHMETIC, ORDER, has_item, is_same, list_items, read_number, read_truth, take_item

Code = Callable[[Frame], Any]

#: the variable that holds the opset aimed at, bound in every rule
OPSET = "opset"
#: `trait(op, name)`, whose second argument is a word and not a variable
TRAIT = "trait"

#: the code of expressions by their ids, and of how many it is kept: some of the packs of many conversions
_compiled: dict[int, tuple[tree.Expression, Code]] = {}
_MOST = 1 << 16

#: how many results of one call of a definition are kept, for the next node with the same options and extents
_KEPT = 1024


def evaluate(expression: tree.Expression, frame: Frame) -> Any:
    """The value of an expression; raises Located when it has none."""
    found = _compiled.get(id(expression))
    if found is None:
        if len(_compiled) >= _MOST:
            _compiled.clear()  # whoever goes through many packs, as fuzzing does, uses few of them again
        # The expression is kept beside its code, so that its id stays its own.
        found = _compiled[id(expression)] = (expression, _compile(expression))
    return found[1](frame)


def interpolate(message: str, frame: Frame) -> str:
    """Put the values of variables where a message has `{name}`."""

    def replace_name(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in frame.values:
            return found.group(0)
        bound = frame.values[name]
        return bound.name or name if isinstance(bound, ir.Value) else format_value(bound)

    return re.sub(r"\{(\w+)\}", replace_name, message)


def _compile(expression: tree.Expression) -> Code:
    code = _compile_code(expression)
    if isinstance(expression, tree.Literal | tree.Name | tree.Symbol):
        return code  # which has a value always
    if may_visit_elements(expression) and (needed := list_inputs(expression)):
        code = memoize(code, needed)
    span = expression.span

    def locate(frame: Frame) -> Any:
        try:
            return code(frame)
        except (EvaluationError, Unsupported) as error:
            raise Located(span, error) from error
        except (TypeError, AttributeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
            raise Located(span, EvaluationError(_explain_error(error))) from error

    return locate


def _explain_error(error: Exception) -> str:
    """What Python says of numbers that do not go together, in words for the reader of a rule."""
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if "NoneType" in f"{error}":
        return "something that is left out, or not known before run time, is used as if it were there"
    return f"{error}"


def _compile_code(expression: tree.Expression) -> Code:
    match expression:
        case tree.Literal(value):
            return lambda frame: value
        case tree.Name(name):
            return lambda frame: frame.values[name]
        case tree.Symbol(name):
            meant = CONSTANTS.get(name, name)
            return lambda frame: frame.values.get(name, meant)
        case tree.Unary(symbol, operand):
            return _compile_unary(symbol, _compile(operand))
        case tree.Binary(symbol, left, right):
            return _compile_binary(symbol, _compile(left), _compile(right))
        case tree.Conditional(then, condition, other):
            yes, test, no = _compile(then), _compile(condition), _compile(other)
            return lambda frame: yes(frame) if read_truth(test(frame)) else no(frame)
        case tree.Member(tree.Call() as call, result):
            return _compile_result(call, result)
        case tree.Fold():
            return _fold(expression)
        case tree.Member(tree.Name(name), axis):
            return lambda frame: _read_extent(frame, name, axis)
        case tree.Index(value, index):
            of, at = _compile(value), _compile(index)
            return lambda frame: take_item(of(frame), at(frame))
        case tree.ListOf(items):
            codes = [_compile(item) for item in items]
            return lambda frame: frame.budget.spend_items([code(frame) for code in codes])
        case tree.Numbers(text):
            import json  # few rules have such lists

            numbers: list[int | float] = json.loads(text)
            return lambda frame: frame.budget.spend_items(list(numbers))
        case tree.Comprehension():
            return _compile_comprehension(expression)
        case tree.Call():
            return _compile_call(expression)
    raise AssertionError(
        f"{expression.span}: {type(expression).__name__} is no expression"
    )  # the checker says so before


def _read_extent(frame: Frame, name: str, axis: str) -> int | None:
    value, layout = frame.values[name], frame.layouts[name]
    if type(value) is not ir.Value:
        return int(np.shape(value)[layout.index(axis)])
    if value.shape is None:
        raise UnknownValueError(f"the rank of {name}")
    extent = value.shape[layout.index(axis)]
    return extent if isinstance(extent, int) else None


def _compile_unary(symbol: str, operand: Code) -> Code:
    if symbol == "not":
        return lambda frame: not read_truth(operand(frame))

    def negate(frame: Frame) -> Any:
        value = operand(frame)
        return _get_emitter(frame).make_infix(frame, "-", 0, value) if type(value) is ir.Value else -read_number(value)

    return negate


def _compile_binary(symbol: str, left: Code, right: Code) -> Code:
    match symbol:
        case "and":
            return lambda frame: read_truth(left(frame)) and read_truth(right(frame))
        case "or":
            return lambda frame: read_truth(left(frame)) or read_truth(right(frame))
        case "==":
            return lambda frame: is_same(left(frame), right(frame))
        case "!=":
            return lambda frame: not is_same(left(frame), right(frame))
        case "in" | "not in":
            wanted = symbol == "in"
            return lambda frame: has_item(right(frame), left(frame)) == wanted
        case "++":
            return lambda frame: frame.budget.spend_items([*list_items(left(frame)), *list_items(right(frame))])
    if symbol in ORDER:
        compare = ORDER[symbol]
        return lambda frame: compare(read_number(left(frame)), read_number(right(frame)))
    compute = ARITHMETIC[symbol]

    def calculate(frame: Frame) -> Any:
        a, b = left(frame), right(frame)
        if type(a) is ir.Value or type(b) is ir.Value:
            return _get_emitter(frame).make_infix(frame, symbol, a, b)
        return compute(read_number(a), read_number(b))

    return calculate


def _get_emitter(frame: Frame) -> Emitter:
    if frame.emitter is None:
        raise EvaluationError("run-time values are computed in templates only")
    return frame.emitter


def _compile_comprehension(expression: tree.Comprehension) -> Code:
    source, names = _compile(expression.source), expression.names
    condition = None if expression.condition is None else _compile(expression.condition)
    body, invariants = hoist_invariants(expression.item, frozenset(names))
    item, codes = _compile(body), [(name, _compile(part)) for name, part in invariants.items()]

    def run(frame: Frame) -> list[Any]:
        found: list[Any] = []
        constant: dict[str, Any] = {}
        for drawn in list_items(source(frame)):
            inner = frame.make_inner({**frame.values, **_bind_item(frame, names, drawn)})
            if condition is None or read_truth(condition(inner)):
                if codes:  # at the first item, as there may be none
                    constant = constant or {name: code(frame) for name, code in codes}
                    inner.values.update(constant)
                found.append(item(inner))
        return frame.budget.spend_items(found)

    return run


def _fold(expression: tree.Fold) -> Code:
    start, source = _compile(expression.start), _compile(expression.source)
    names, total = expression.names, expression.total
    body, invariants = hoist_invariants(expression.body, frozenset((*names, total)))
    step, codes = _compile(body), [(name, _compile(part)) for name, part in invariants.items()]

    def run(frame: Frame) -> Any:
        found = start(frame)
        items = list_items(source(frame))
        outer = {**frame.values, **{name: code(frame) for name, code in codes}} if items and codes else frame.values
        for drawn in items:
            found = step(frame.make_inner({**outer, total: found, **_bind_item(frame, names, drawn)}))
        return found

    return run


def _bind_item(frame: Frame, names: Sequence[str], drawn: Any) -> dict[str, Any]:
    """What the names of a loop stand for at one item; raises EvaluationError for an item of another length."""
    frame.budget.spend_step()
    parts = [drawn] if len(names) == 1 else list_items(drawn)
    if len(parts) != len(names):
        raise EvaluationError(f"{len(names)} names for items of length {len(parts)}")
    return dict(zip(names, parts, strict=True))


def _compile_result(call: tree.Call, result: str) -> Code:
    """One result of an operator, which is made with those before it."""
    make = _compile(call)

    def pick(frame: Frame) -> Any:
        place = _get_emitter(frame).find_place(frame, call, result)
        made = make(frame)
        return made[place] if isinstance(made, list) else made

    return pick


def _compile_call(call: tree.Call) -> Code:
    arguments = [_compile_argument(argument) for argument in call.arguments]
    values, name = _compile_values(call, arguments), call.callee
    if name == "fail":
        return lambda frame: FUNCTIONS[name].call(*(interpolate(str(v), frame) for v in values(frame)))
    if name == TRAIT:
        operator, trait = arguments[0], call.arguments[1].value
        assert isinstance(trait, tree.Name)
        return lambda frame: trait.name in frame.traits(operator(frame))
    if name in FUNCTIONS:
        compute = FUNCTIONS[name].call

        def apply(frame: Frame) -> Any:
            found = compute(*values(frame))
            return frame.budget.spend_items(found) if type(found) is list else found

        return apply
    make = _compile_operator(call, values)
    if name[0].isupper():
        return make
    defined = _Defined(name, () if any(argument.spread for argument in call.arguments) else call.arguments)

    def call_named(frame: Frame) -> Any:
        # A variable that stands for an operator goes before a definition of another file that happens to be called so.
        definition = None if name in frame.values else defined.find(frame)
        return make(frame) if definition is None else defined.call(definition, frame, values(frame))

    return call_named


def _compile_values(call: tree.Call, arguments: Sequence[Code]) -> Callable[[Frame], list[Any]]:
    """What yields the values of all arguments, those of a list that is spread one by one."""
    spreads = [argument.spread for argument in call.arguments]

    def spread(frame: Frame) -> list[Any]:
        found: list[Any] = []
        for code, several in zip(arguments, spreads, strict=True):
            value = code(frame)
            found.extend(list_items(value)) if several else found.append(value)
        return found

    return spread if any(spreads) else lambda frame: [code(frame) for code in arguments]


def _compile_operator(call: tree.Call, values: Callable[[Frame], list[Any]]) -> Code:
    """A call that makes a node, of the operator that it names or that a variable stands for."""
    # Graphs come last: what their parameters are may depend on the other options.
    ordered = sorted(call.attributes, key=lambda attribute: isinstance(attribute.value, tree.GraphOf))
    attributes = [(attribute.name, _compile_attribute(attribute)) for attribute in ordered]
    name = call.callee

    def make(frame: Frame) -> Any:
        operator = frame.values.get(name, name)
        operands = values(frame)
        options: dict[str, Any] = {}
        for key, code in attributes:
            options[key] = code(frame, operator, operands, options)
        return _get_emitter(frame).emit(frame, call, operator, operands, options)

    return make


class _Defined:
    """A call of a definition, which keeps what it yielded: networks repeat themselves."""

    __slots__ = ("_arguments", "_definition", "_definitions", "_kept", "_name", "_named", "_pure")

    def __init__(self, name: str, arguments: Sequence[tree.Argument]) -> None:
        self._name, self._arguments = name, arguments
        self._definitions: Mapping[str, tree.Definition] | None = None
        self._definition: tree.Definition | None = None
        #: parameters whose arguments may name the dimensions of what they stand for: in the call, or by their own name
        self._named: list[tuple[str, str | None, str]] = []
        self._pure = False
        self._kept: dict[Any, Any] = {}

    def find(self, frame: Frame) -> tree.Definition | None:
        """The definition that is called; None where there is none of this name."""
        if frame.definitions is not self._definitions:
            self._definitions = frame.definitions
            found = frame.definitions.get(self._name)
            if found is not None and found is not self._definition:
                self._pure = is_computation(found, frame.definitions)
                self._named = list(self._list_named(found.parameters))
                self._kept.clear()
            self._definition = found
        return self._definition

    def call(self, definition: tree.Definition, frame: Frame, given: list[Any]) -> Any:
        """What a definition yields of some arguments."""
        frame.budget.spend_step()
        opset = frame.values[OPSET]
        layouts = self._find_layouts(frame.layouts) if frame.layouts and self._named else {}
        key = make_key([*given, opset]) if self._pure else None
        if key is not None:
            key = key, tuple(layouts.items())  # by which a constant's dimensions are named
            if key in self._kept:
                return self._kept[key]
        inner = frame.make_inner({OPSET: opset, **dict(zip(definition.parameters, given, strict=True))})
        inner.layouts = layouts
        found = evaluate(definition.body, inner)
        if key is not None and (is_small(found) or np.ndarray not in map(type, given)):
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _list_named(self, parameters: Sequence[str]) -> Iterator[tuple[str, str | None, str]]:
        for parameter, argument in zip(parameters, self._arguments, strict=False):
            name = argument.value.name if isinstance(argument.value, tree.Name) else ""
            if argument.layout or name:
                yield parameter, argument.layout, name

    def _find_layouts(self, known: Mapping[str, str]) -> dict[str, str]:
        """The names that dimensions of arguments have, which go with them."""
        found = ((parameter, layout or known.get(name)) for parameter, layout, name in self._named)
        return {parameter: layout for parameter, layout in found if layout}


def is_computation(definition: tree.Definition, definitions: Mapping[str, tree.Definition]) -> bool:
    """Whether a definition only computes: it calls functions and such definitions, and so yields the same each time."""
    work, seen = [definition], {definition.name}
    while work:
        for node in walk(work.pop().body):
            if not isinstance(node, tree.Call) or node.callee in FUNCTIONS or node.callee in seen:
                continue
            if node.callee not in definitions:
                return False
            seen.add(node.callee)
            work.append(definitions[node.callee])
    return True


def _compile_attribute(attribute: tree.Attribute) -> Callable[[Frame, str, list[Any], dict[str, Any]], Any]:
    value = attribute.value
    if isinstance(value, tree.GraphOf):

        def build(frame: Frame, operator: str, operands: list[Any], options: dict[str, Any]) -> Any:
            return _get_emitter(frame).make_graph(frame, value, operator, attribute.name, operands, options)

        return build
    code = _compile(value)
    return lambda frame, operator, operands, options: code(frame)


def _compile_argument(argument: tree.Argument) -> Code:
    if argument.layout is None:
        return _compile(argument.value)
    assert isinstance(argument.value, tree.Name)
    name, layout = argument.value.name, argument.layout
    return lambda frame: _get_emitter(frame).arrange(frame, name, layout)


__all__ = ["OPSET", "TRAIT", "Emitter", "Frame", "Located", "evaluate", "interpolate", "is_same", "read_truth"]

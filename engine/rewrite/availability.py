"""Availability at an opset of what a rule names: operators, operands and attributes, as onnx.defs has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import onnx.defs

from ..dialects.operators import Dialect, OperatorSpec
from ..expressions.opset_range import decide, find_possible, is_omitted
from ..syntax import tree
from ..syntax.tree_traversal import list_child_fields


class Availability:
    """What exists at each opset, of all that rules beside certain definitions may write; found out once for each part.

    Names that a dialect has at no opset at all are left to the checker, which refuses definitions that call themselves,
    too. In a `pattern`, operands stand where the operator has them, and are no attributes.
    """

    def __init__(self, definitions: Mapping[str, tree.Definition]) -> None:
        self._definitions = definitions
        #: kept with what was asked about, whose identity is nobody else's then
        self._found: dict[tuple[int, _Place], tuple[object, bool]] = {}
        self._outlines: dict[int, tuple[object, _Outline]] = {}

    def has(self, written: object, dialects: tuple[Dialect, ...], opset: int, pattern: bool = False) -> bool:
        """Whether all that is written exists at an opset, what definitions that it calls write counted in.

        An operator that meant another thing there does not, but for a pattern, which may be about that.
        """
        return self._has(written, _Place(dialects, opset, pattern, not pattern))

    def list_opsets(
        self, written: object, dialects: tuple[Dialect, ...], opsets: Collection[int], pattern: bool = False
    ) -> frozenset[int]:
        """The opsets at which all that is written exists.

        What exists does so from some opset on, or up to one: what is there at the ends is there in between.
        """
        if opsets and all(self.has(written, dialects, opset, pattern) for opset in {min(opsets), max(opsets)}):
            return frozenset(opsets)
        return frozenset(opset for opset in opsets if self.has(written, dialects, opset, pattern))

    def list_adapted(self, rule: tree.Rule, reads: Dialect, opsets: frozenset[int]) -> frozenset[int]:
        """The opsets of several that a rule of the stage `adapt` is for: those that lack the form which it reads.

        A rule that compares with an opset says so itself, and what all or none of them have came with no opset.
        """
        guards = (clause.condition for clause in rule.clauses if isinstance(clause, tree.Where))
        if any(find_possible(guard, opsets) != opsets for guard in guards):
            return opsets
        lacking = frozenset(n for n in opsets if not self._has(rule.equations, _Place((reads,), n, True, True)))
        return lacking if min(opsets) in lacking else opsets

    def _has(self, written: object, place: _Place) -> bool:
        key = id(written), place
        if key not in self._found:
            self._found[key] = written, True  # meanwhile, for definitions that call themselves
            self._found[key] = written, self._search(self._find_outline(written), place)
        return self._found[key][1]

    def _find_outline(self, written: object) -> _Outline:
        if id(written) not in self._outlines:
            self._outlines[id(written)] = written, _make_outline(written)
        return self._outlines[id(written)][1]

    def _search(self, outline: _Outline, place: _Place) -> bool:
        if not all(self._has_callee(call, place) for call in outline.calls):
            return False
        for choice in outline.choices:
            sides = (self._search(side, place) for side in choice.sides)
            if not any(sides):
                return False
        for conditional in outline.conditionals:
            decided = decide(conditional.condition, place.opset)
            if decided is not False and not self._search(conditional.then, place):
                return False
            if decided is not True and not self._search(conditional.other, place):
                return False
        return True

    def _has_callee(self, call: tree.Call, place: _Place) -> bool:
        name = call.callee
        if name in self._definitions and not place.pattern:
            return self._has(self._definitions[name].body, place)
        if not name[0].isupper() or call.wildcard:
            return True
        for dialect in place.dialects:
            spec = dialect.find_operator(name, place.opset)
            if spec is not None:
                former = place.of_today and any(place.opset <= last for last in spec.facts.older)
                return not former and _can_take(call, spec, dialect, place)
            if dialect.find_operator(name) is not None:
                return False
        return True


class _Outline(NamedTuple):
    """What is written, as far as its availability goes: it stands for all opsets."""

    calls: tuple[tree.Call, ...]
    choices: tuple[_Choice, ...]
    conditionals: tuple[_Conditional, ...]


class _Choice(NamedTuple):
    sides: tuple[_Outline, _Outline]


class _Conditional(NamedTuple):
    condition: tree.Expression
    then: _Outline
    other: _Outline


def _make_outline(written: object) -> _Outline:
    calls: list[tree.Call] = []
    choices: list[_Choice] = []
    conditionals: list[_Conditional] = []
    work: list[object] = [written]
    while work:
        one = work.pop()
        if isinstance(one, tuple):
            work += one
        elif isinstance(one, tree.Conditional):
            work.append(one.condition)
            conditionals.append(_Conditional(one.condition, _make_outline(one.then), _make_outline(one.other)))
        elif isinstance(one, tree.Choice):
            choices.append(_Choice((_make_outline(one.left), _make_outline(one.right))))
        else:
            if isinstance(one, tree.Call):
                calls.append(one)
            work += [getattr(one, name) for name in list_child_fields(type(one)) or ()]
    return _Outline(tuple(calls), tuple(choices), tuple(conditionals))


class _Place(NamedTuple):
    """The dialects in which something is written, the opset aimed at, whether it is a pattern, and whether operators
    are to mean what they do today."""

    dialects: tuple[Dialect, ...]
    opset: int
    pattern: bool
    of_today: bool


def _can_take(call: tree.Call, spec: OperatorSpec, dialect: Dialect, place: _Place) -> bool:
    """Whether an operator has, as it stands at an opset, what a call gives it, of all that it has at some opset."""
    for attribute in call.attributes:
        name = attribute.name
        if (
            not (place.pattern and isinstance(attribute.value, tree.Name) and attribute.value.name == "_")
            and name not in spec.options
            and not is_omitted(attribute.value, place.opset)
            and _has_option(call, name, dialect)
        ):
            return False
    newest = dialect.find_operator(call.callee) or spec
    (least, most), (least_of_newest, most_of_newest) = spec.count_operands(), newest.count_operands()
    count = len(call.arguments)
    given = max((place for place, one in enumerate(call.arguments, 1) if not _is_none(one.value)), default=0)
    if any(argument.spread for argument in call.arguments):
        return True
    # What is too few or too many at any opset is left to the checker.
    too_few = least_of_newest <= given < least
    return not too_few and (most is None or count <= most or (most_of_newest is not None and count > most_of_newest))


def _is_none(value: tree.Expression) -> bool:
    return isinstance(value, tree.Literal) and value.value is None


def _has_option(call: tree.Call, name: str, dialect: Dialect) -> bool:
    forms = (dialect.find_operator(call.callee, opset) for opset in range(1, onnx.defs.onnx_opset_version() + 1))
    return any(form is not None and name in form.options for form in forms)

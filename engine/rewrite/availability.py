"""Availability at an opset of what a rule names: operators, operands and attributes, as onnx.defs has them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import onnx.defs

from ..dialects.operators import Dialect, OperatorSpec, Option
from ..expressions.opset_range import decide, is_omitted
from ..syntax import tree


def former_attributes(spec: OperatorSpec, newest: OperatorSpec | None, count: int) -> list[Option] | None:
    """The attributes of an operator that have become its last operands since, of so many; None where one was none.

    `ReduceMax(x, axes)` of opset 18 is `ReduceMax(x) {axes}` before.
    """
    most = spec.arity()[1]
    if most is None or newest is None or not most < count <= len(newest.operands):
        return None
    found = [spec.options.get(operand.name) for operand in newest.operands[most:count]]
    return None if None in found else [option for option in found if option is not None]


class Availability:
    """What exists at one opset in the dialects that templates or patterns are written in.

    Names that a dialect has at no opset at all are left to the checker. In a pattern, operands stand where the operator
    has them, and are no attributes.
    """

    __slots__ = ("_asked", "_definitions", "_dialects", "_known", "_opset", "_pattern")

    def __init__(
        self,
        dialects: Sequence[Dialect],
        opset: int,
        definitions: Mapping[str, tree.Definition],
        pattern: bool = False,
    ) -> None:
        self._dialects, self._opset, self._definitions, self._pattern = dialects, opset, definitions, pattern
        #: definitions by name; one that calls itself is no obstacle to itself
        self._known: dict[str, bool] = {}
        self._asked: dict[int, tuple[object, bool]] = {}

    def has_equations(self, equations: tuple[tree.Equation, ...]) -> bool:
        """Whether all that a template builds exists, found out once for each."""
        if id(equations) not in self._asked:
            self._asked[id(equations)] = equations, self.has(equations)
        return self._asked[id(equations)][1]

    def first(self, equations: tuple[tree.Equation, ...]) -> int | None:
        """The first later opset at which all that a template builds exists; None where there is none."""
        for opset in range(self._opset + 1, onnx.defs.onnx_opset_version() + 1):
            if Availability(self._dialects, opset, self._definitions).has(equations):
                return opset
        return None

    def has(self, written: object) -> bool:
        """Whether all that is written exists, what definitions that it calls write counted in."""
        work: list[object] = [written]
        while work:
            one = work.pop()
            if isinstance(one, tuple):
                work += one
                continue
            if isinstance(one, tree.Conditional):
                decided = decide(one.condition, self._opset)
                work += [one.condition] + [one.then] * (decided is not False) + [one.other] * (decided is not True)
                continue
            if isinstance(one, tree.Choice) and self._pattern:
                if not any(self.has(side) for side in (one.left, one.right)):
                    return False
                continue
            if isinstance(one, tree.Call) and not self._has_callee(one):
                return False
            work += [getattr(one, name) for name in tree.below(type(one)) or ()]
        return True

    def _has_callee(self, call: tree.Call) -> bool:
        name = call.callee
        if name in self._definitions:
            if name not in self._known:
                self._known[name] = True
                self._known[name] = self.has(self._definitions[name].body)
            return self._known[name]
        if not name[0].isupper() or call.wildcard:
            return True
        for dialect in self._dialects:
            spec = dialect.operator(name, self._opset)
            if spec is not None:
                return _takes(call, spec, dialect, self._opset, self._pattern)
            if dialect.operator(name) is not None:
                return False
        return True


def _takes(call: tree.Call, spec: OperatorSpec, dialect: Dialect, opset: int, pattern: bool) -> bool:
    """Whether an operator has, as it stands at an opset, what a call gives it, of all that it has at some opset."""
    for attribute in call.attributes:
        name = attribute.name
        if name not in spec.options and not is_omitted(attribute.value, opset) and _has_option(call, name, dialect):
            return False
    newest = dialect.operator(call.callee) or spec
    (_, most), (_, in_newest) = spec.arity(), newest.arity()
    count = len(call.arguments)
    if most is None or count <= most or (in_newest is not None and count > in_newest):
        return True
    if any(argument.spread for argument in call.arguments):
        return True
    return not pattern and former_attributes(spec, newest, count) is not None


def _has_option(call: tree.Call, name: str, dialect: Dialect) -> bool:
    forms = (dialect.operator(call.callee, opset) for opset in range(1, onnx.defs.onnx_opset_version() + 1))
    return any(form is not None and name in form.options for form in forms)


def list_opsets(written: object, opsets: Collection[int], at: Callable[[int], Availability]) -> frozenset[int]:
    """The opsets at which all that is written exists; `at` yields what does at one.

    What exists does so from some opset on, or up to one: what is there at the ends is there in between.
    """
    if opsets and all(at(opset).has(written) for opset in {min(opsets), max(opsets)}):
        return frozenset(opsets)
    return frozenset(opset for opset in opsets if at(opset).has(written))

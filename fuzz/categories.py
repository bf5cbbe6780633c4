"""Categories: what is said of operators and the order of axes, each tried on operators drawn from their schemas.

An operator that ops.yaml lets through must commute with every arrangement of its axes: what it yields is the same.
"""

from __future__ import annotations

import itertools
import traceback
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from ..engine.base.errors import RewriteError
from ..engine.base.names import Scope
from ..engine.dialects.operators import FORM, Dialect, describe_operator
from ..engine.packs.loader import Pack
from ..engine.passes.layout.axis_groups import ATTRIBUTE, TRANSPARENT
from ..engine.passes.layout.permute_weights import Tensors, list_linked_places
from ..engine.passes.layout.placement import Layout
from ..engine.passes.layout.regroup import Opaque
from ..engine.passes.layout.views import DEQUANTIZE, PERMUTE, QUANTIZE
from ..verify.formats import INTERPRETED, REFERENCE
from .choices import Choices
from .element_types import USUAL
from .finding import End, Finding, Rejected
from .results import list_counts
from .runtimes import write_model
from .schema_steps import draw_step
from .self_check import SelfCheck
from .sketch import Case, Step, make_graph

if TYPE_CHECKING:
    from .oracle import Oracle

#: what the names of these trials begin with
FAMILY, SHUFFLE = "layout", "shuffle"
#: at most so many arrangements are chosen from
_ARRANGED = 120


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """An operator whose layout category is on trial."""

    operator: str
    dialect: Dialect
    opsets: tuple[int, int]
    family: str = FAMILY

    @property
    def name(self) -> str:
        return f"{self.family}.{self.operator}"

    @property
    def place(self) -> str:
        """The trial's name and where what it is about stands."""
        return f"{self.name} (what is said of {self.dialect.name}, {self.operator})"

    @property
    def excuse(self) -> str:
        """Why it cannot be tried: it always can."""
        return ""

    def list_operators(self) -> frozenset[str]:
        """The names of the operators that it is about."""
        return frozenset({self.operator})


def list_categories(pack: Pack) -> list[Category]:
    """All operators of a pack's dialects that may be moved, and those of which something is said of the elements along
    one axis."""
    read = dict.fromkeys(name for file in pack.files for name in (file.target, file.source))
    found = [pack.catalogue.find_dialect(name) for name in read if name in (REFERENCE, INTERPRETED)]
    return [category for dialect in found for category in _list_categories(dialect, pack.opsets)]


def _list_categories(dialect: Dialect, opsets: tuple[int, int]) -> list[Category]:
    """Those of a dialect: of operators that files of these opsets have, and that yield no codes of a scale of their
    own."""
    there = [spec for spec in dialect.operators.values() if dialect.find_operator(spec.name, opsets[1]) is not None]
    specs = [
        spec for spec in there if dialect.schemas or not (FORM in spec.traits or spec.role in (QUANTIZE, DEQUANTIZE))
    ]
    movable = [spec.name for spec in specs if spec.facts.layout in (TRANSPARENT, ATTRIBUTE)]
    along = [spec.name for spec in specs if spec.facts.letters or spec.facts.along or spec.facts.joins]
    return [
        *(Category(name, dialect, opsets) for name in movable),
        *(Category(name, dialect, opsets, SHUFFLE) for name in along),
    ]


def draw(choices: Choices, category: Category, oracle: Oracle) -> Case:
    """Draw the operator with operands and options; raises Rejected where the runtime does not take them."""
    low, high = category.opsets
    opset = high - choices.draw_int(0, high - low)
    spec = category.dialect.find_operator(category.operator, opset)
    if spec is None:
        raise Rejected(f"opset {opset} does not have it")
    found = spec.schema if category.dialect.schemas else describe_operator(spec)
    if found is None:
        raise Rejected(f"opset {opset} does not have it")
    step = draw_step(choices, category.dialect, spec, found)
    if category.dialect.name == REFERENCE:
        count = sum(1 + result.variadic for result in spec.results if not result.optional)
        step = oracle.self_check.settle(step, [count], [], lambda dtype: (), opset)
    else:
        step = oracle.settle(step, list_counts(step, ()), _list_types(step), lambda dtype: [])
    if any(not value.content.size for value in step.results):
        raise Rejected("a result has no elements")
    return Case(category.name, (step,), opset)


def _list_types(step: Step) -> list[ir.DataType]:
    """The types to try for results: those of operands, the first first, then the usual ones."""
    return list(dict.fromkeys([*(value.dtype for value in step.operands if value is not None), *USUAL]))


def judge_shuffle(case: Case, category: Category, oracle: Oracle) -> Finding:
    """Put elements along one axis of an operand in another order, and those that are said to go with them."""
    assert case.opset is not None
    (step,) = case.steps
    made = make_graph(case.steps, case.outputs, category.dialect)
    places = [
        (True, position, axis)
        for position, value in enumerate(step.operands)
        for axis in range(0 if value is None else value.content.ndim)
        if value is not None and value.content.shape[axis] > 1
    ]
    words = step.operator.facts.remap
    named = {step.options.get(name) for name, word in words.items() if word == "axis"} - {None}
    places = [place for place in places if not named or {place[2], place[2] - _measure_operand(step, place[1])} & named]
    if not places:
        return Finding(End.REFUSED, "there is one element only")
    where = places[zlib.crc32(case.describe().encode()) % len(places)]
    try:
        found = list_linked_places(_Plain(made, category.dialect, case.opset), made.node(0), where)
    except Opaque:
        return Finding(End.REFUSED, "its elements are told apart")
    operands, results = list(step.operands), list(step.results)
    count = _measure_operand(step, where[1], where[2])
    for (given, position, axis), start in found:
        values: list[Any] = operands if given else results
        content = values[position].content
        order = [*range(start), *range(start + 1, start + count), start, *range(start + count, content.shape[axis])]
        values[position] = replace(values[position], content=np.take(content, order, axis))
    other = replace(case, steps=(replace(step, operands=tuple(operands), results=tuple(results)),))
    model = write_model(
        make_graph(other.steps, other.outputs, category.dialect),
        [v.name for v in other.outputs],
        category.dialect,
        case.opset,
    )
    said = f"elements moved along axis {where[2]} of operand {where[1]}: "
    return _compare(other, model, category, said, oracle)


def _compare(case: Case, model: bytes, category: Category, said: str, oracle: Oracle) -> Finding:
    """Run what became of a case in the runtime of its dialect."""
    interpreter = None if category.dialect.name == REFERENCE else oracle.interpreter
    return SelfCheck.compare_case(case, model, {category.name: 1}, said, optimized=False, interpreter=interpreter)


def _measure_operand(step: Step, position: int, axis: int | None = None) -> int:
    """The rank of an operand, or its extent along an axis."""
    value = step.operands[position]
    shape = () if value is None else value.content.shape
    return len(shape) if axis is None else shape[axis]


def judge(case: Case, category: Category, oracle: Oracle) -> Finding:
    """Put the axes of the operator in another order, as is said how, and compare."""
    assert case.opset is not None
    made = make_graph(case.steps, case.outputs, category.dialect)
    node = made.node(0)
    expected = tuple(value.content for value in case.outputs)
    try:
        plain = category.dialect.operators[category.operator].role in (PERMUTE, QUANTIZE, DEQUANTIZE)
        tensors = (_Plain if plain else Tensors)(made, category.dialect, case.opset)
        blocks = tensors.find_blocks(node)
        if blocks is None or blocks.count < 2:
            return Finding(End.REFUSED, "nothing may be moved through it", {}, expected)
        orders = itertools.islice(itertools.permutations(range(blocks.count)), 1, _ARRANGED)
        admitted = [order for order in orders if blocks.can_arrange(order)]
        if not admitted:
            return Finding(End.REFUSED, "it has one order only", {}, expected)
        chosen = admitted[zlib.crc32(case.describe().encode()) % len(admitted)]
        Layout(tensors, {node: chosen}, Scope(made)).apply()
        made.sort()
        said = f"axes arranged as {list(chosen)}: "
        model = write_model(made, [value.name for value in case.outputs], category.dialect, case.opset)
    except RewriteError as error:
        return Finding(End.FAILED, f"{error}", {category.name: 1}, expected)
    except Exception:
        return Finding(End.FAILED, "internal error: " + traceback.format_exc(), {category.name: 1}, expected)
    found = _compare(case, model, category, said, oracle)
    return replace(found, operators=len(made))


class _Plain(Tensors):
    """Tensors without views: what permutes or scales is the operator that it also is, and has to be remapped as one."""

    def read_permutation(self, node: ir.Node) -> None:
        return None

    def find_scaling(self, node: ir.Node) -> None:
        return None

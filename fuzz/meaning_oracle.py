"""The oracle for operators without a kernel: the operators that a rule of the stage `meaning` puts in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from ..engine.base.errors import RewriteError
from ..engine.base.names import Scope
from ..engine.dialects.inference import make_shape
from ..engine.dialects.operators import Catalogue, Dialect, OperatorSpec, get_option
from ..engine.passes.base import Module, run_passes
from ..engine.passes.meanings import Meanings
from ..engine.rewrite.rules import RuleSet
from ..engine.rewrite.stages import MEANING
from ..engine.rewrite.subgraphs import find_bodies
from .element_types import USUAL, read_admitted
from .finding import Rejected
from .sketch import Step, UnknownResult, Value, make_graph

#: how far meanings may lead to operators that mean others
_DEPTH = 8

#: finds the results of a step, as many as are counted
Settled = Callable[[Step, int, Sequence[ir.DataType]], Step]


def has_meaning(rules: RuleSet, step: Step) -> bool:
    """Whether rules say what the operator of a step means."""
    return bool(rules.list_candidates(MEANING, step.operator.domain, step.operator.name))


def explain_step(
    step: Step, count: int, rules: RuleSet, catalogue: Catalogue, opset: int, settle_step: Settled, depth: int
) -> Step:
    """A step with the results that its meaning yields, each of whose steps is settle_step as the rule is read.

    Raises Rejected where the rules do not say what it means here, or the interpreter does not take that.
    """
    if depth > _DEPTH:
        raise Rejected(f"what {step.operator.name} means is said by itself")
    blanks = [UnknownResult(f"result_{place}") for place in range(count)]
    dialect = rules.source
    # The meaning is of this case, and its extents are known here.
    closed = tuple(None if value is None else replace(value, open=False) for value in step.operands)
    made = make_graph([replace(step, operands=closed)], blanks, dialect)
    meaning = _Meaning(step, catalogue, dialect, settle_step)
    try:
        run_passes([Meanings(meaning.settle)], Module(made, rules, Scope(made)))
        for node in made:
            if node not in meaning.steps:  # whose results a schema has told
                meaning.settle(node)
    except RewriteError as error:
        raise Rejected(f"{error}") from error
    inner = tuple(meaning.steps[node] for node in made)
    yielded = {value for one in inner for value in one.results}
    results = tuple(found for value in made.outputs if (found := meaning.values.get(value)) in yielded)
    if len(set(results)) < count:
        raise Rejected(f"what {step.operator.name} means yields a result that no operator of its own computes")
    return replace(step, results=results, meaning=inner)


@dataclass(slots=True)
class _Meaning:
    """The steps that stand for a `step`, and the values that they read and yield, as far as they are known."""

    step: Step
    catalogue: Catalogue
    dialect: Dialect
    settle_step: Settled
    values: dict[ir.Value, Value] = field(default_factory=dict)
    steps: dict[ir.Node, Step] = field(default_factory=dict)

    def settle(self, node: ir.Node) -> None:
        """Find the results of a node, and make it a step; raises Rejected where it has graphs of its own."""
        spec = self.catalogue.find_spec(node)
        assert spec is not None
        if any(find_bodies(node)):
            raise Rejected(f"what {self.step.operator.name} means has {node.op_type}, which has graphs of its own")
        operands = tuple(None if value is None else self._find_value(value) for value in node.inputs)
        options = {name: get_option(node, spec.options[name]) for name in node.attributes}
        types = self._list_types(spec, operands, options)
        found = self.settle_step(Step(spec, operands, options), len(node.outputs), types)
        self.steps[node] = found
        for output, value in zip(node.outputs, found.results, strict=True):
            output.type, output.shape = ir.TensorType(value.dtype), make_shape(value.content.shape)
            self.values[output] = value

    def _find_value(self, value: ir.Value) -> Value:
        """What a node reads: an operand of the step, a constant of the rule, or the result of a node before it."""
        if value in self.values:
            return self.values[value]
        known = {one.name: one for one in self.step.operands if one is not None}.get(value.name or "")
        content = value.const_value
        if known is None and content is None:
            raise Rejected(f"what {self.step.operator.name} means has graphs of its own")
        if known is None and content is not None:
            known = Value(f"number_{len(self.values)}", content.dtype, content.numpy(), True)
        assert known is not None
        self.values[value] = known
        return known

    def _list_types(
        self, spec: OperatorSpec, operands: Sequence[Value | None], options: Mapping[str, Any]
    ) -> list[ir.DataType]:
        """The types that results may have, the likeliest first: as options say, as ops.yaml does, and usual ones."""
        typed = [
            ir.DataType[dtype]
            for name, option in spec.options.items()
            if option.type == "TensorType"
            and name in options
            and (dtype := self.dialect.types[options[name]]["dtype"]) is not None
        ]
        said = [dtype for types in read_admitted(spec).results[:1] for dtype in types]
        own = [value.dtype for value in operands if value is not None]
        return list(dict.fromkeys([*typed, *said, *own, *USUAL]))

"""The oracle for operators without a kernel: the operators that a rule of the stage `meaning` puts in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir as ir

from ..engine.base.errors import RewriteError
from ..engine.base.names import Scope
from ..engine.dialects.inference import make_shape
from ..engine.dialects.operators import Catalogue, get_option
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
    known = {value.name: value for value in step.operands if value is not None}
    values: dict[ir.Value, Value] = {}
    steps: dict[ir.Node, Step] = {}

    def draw_value(value: ir.Value) -> Value:
        if value not in values:
            name = value.name or ""
            content = value.const_value
            if name in known:
                values[value] = known[name]
            elif content is None:
                raise Rejected(f"what {step.operator.name} means has graphs of its own")
            else:
                values[value] = Value(f"number_{len(values)}", content.dtype, content.numpy(), True)
        return values[value]

    def settle(node: ir.Node) -> None:
        spec = catalogue.find_spec(node)
        assert spec is not None
        if any(find_bodies(node)):
            raise Rejected(f"what {step.operator.name} means has {node.op_type}, which has graphs of its own")
        operands = tuple(None if value is None else draw_value(value) for value in node.inputs)
        options = {name: get_option(node, spec.options[name]) for name in node.attributes}
        typed = [
            ir.DataType[dtype]
            for name, option in spec.options.items()
            if option.type == "TensorType"
            and name in options
            and (dtype := dialect.types[options[name]]["dtype"]) is not None
        ]
        said = [dtype for types in read_admitted(spec).results[:1] for dtype in types]
        own = [value.dtype for value in operands if value is not None]
        types = list(dict.fromkeys([*typed, *said, *own, *USUAL]))
        found = settle_step(Step(spec, operands, options), len(node.outputs), types)
        steps[node] = found
        for output, value in zip(node.outputs, found.results, strict=True):
            output.type, output.shape = ir.TensorType(value.dtype), make_shape(value.content.shape)
            values[output] = value

    try:
        run_passes([Meanings(settle)], Module(made, rules, Scope(made)))
        for node in made:
            if node not in steps:  # whose results a schema has told
                settle(node)
    except RewriteError as error:
        raise Rejected(f"{error}") from error
    inner = tuple(steps[node] for node in made)
    yielded = {value for one in inner for value in one.results}
    results = tuple(found for value in made.outputs if (found := values.get(value)) in yielded)
    if len(set(results)) < count:
        raise Rejected(f"what {step.operator.name} means yields a result that no operator of its own computes")
    return replace(step, results=results, meaning=inner)

"""Self-check of rules over the target dialect alone: their own left side before and after."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from .. import compiled_rules
from ..backends import onnx_writer
from ..backends.writers import Output
from ..engine.base.errors import RewriteError, RewriteFailure, VerificationError
from ..engine.dialects.inference import Extents, InferenceError, infer
from ..engine.dialects.operators import Dialect
from ..engine.packs.loader import Pack
from ..engine.passes.evaluation import convert_graph
from ..engine.passes.layout.axis_groups import ATTRIBUTE, TRANSPARENT
from ..engine.passes.layout.views import QUANTIZE
from ..engine.rewrite.rules import RuleSet, compile_rules
from ..verify.comparison import compare
from ..verify.frames import Array
from ..verify.interpreter import Kernels, Tensor
from ..verify.runtime import Runtime
from .finding import End, Finding, Grids, Rejected
from .sketch import Blank, Case, Step, Value, graph

#: half of what a real result may lose, of the largest number that a graph reads: sums cancel, and the runtime's
#: recurrent layers have a Sigmoid that is 6e-7 off, where a state of any size is multiplied by it
_CANCELLED = 5e-7
#: seconds that a model may run: loops may have no end
_PATIENCE = 0.5


class SelfCheck:
    """ONNX Runtime alone, which runs the left side of a rule and what the rule makes of it."""

    def __init__(self, rules: tuple[str, ...]) -> None:
        self._rules = rules

    def settle(self, step: Step, counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids, opset: int) -> Step:
        """Run a step on its own to find its results, as many as first run; raises Rejected where the runtime takes
        none."""
        said = ""
        for count in counts:
            try:
                return self._run(step, count, opset)
            except (RewriteError, VerificationError, InferenceError) as error:
                said = said or f"{error}"
        raise Rejected(said)

    def _run(self, step: Step, count: int, opset: int) -> Step:
        """A step with so many results, as the runtime computes them."""
        blanks = tuple(Blank(f"result_{place}") for place in range(count))
        named = graph([step], blanks, self._dialect)
        for value, (dtype, shape) in zip(named.outputs, _describe(step, named.node(0), opset), strict=True):
            value.type = None if dtype is None else ir.TensorType(dtype)
            value.shape = None if shape is None else ir.Shape(shape)
        model = write_model(named, [blank.name for blank in blanks], self._dialect, opset)
        arrays = Runtime(model, threads=1, precise=True).run(
            [value.content for value in step.fed], _PATIENCE if step.graphs else None
        )
        results = (
            Value(blank.name, ir.DataType.from_numpy(array.dtype), array)
            for blank, array in zip(blanks, arrays, strict=True)
        )
        return replace(step, results=tuple(results))

    def judge(self, case: Case) -> Finding:
        """Rewrite the left side by the one rule and compare both graphs on the case's inputs."""
        prepared = compiled_rules.prepare(self._rules, case.opset)
        outputs = case.outputs
        names = [value.name for value in outputs]
        made = graph(case.steps, outputs, self._dialect)
        alone = _alone(prepared.pack, case.rule, prepared.opset)
        try:
            module = convert_graph(made, alone)
            model = write_model(made, names, self._dialect, prepared.opset)
        except RewriteFailure as failure:
            return Finding(End.FAILED, f"{failure}")
        except RewriteError as error:
            return Finding(End.REFUSED, f"{error}")
        except Exception:
            return Finding(End.FAILED, "internal error: " + traceback.format_exc())
        fired = dict(module.outcome.fired)
        expected = tuple(value.content for value in outputs)
        if not fired:
            return Finding(End.REFUSED, "the rule does not match its own left side", fired, expected)
        return replace(self.compare_case(case, model, fired), operators=len(made))

    @staticmethod
    def compare_case(
        case: Case, model: bytes, fired: Mapping[str, int], said: str = "", optimized: bool = True
    ) -> Finding:
        """Run what became of a case, by the runtime as `optimized` says, and compare; `said` precedes what is wrong."""
        outputs = case.outputs
        expected = tuple(value.content for value in outputs)
        try:
            runtime = Runtime(model, threads=1, optimized=optimized, precise=True)
            actual = runtime.run([value.content for value in case.inputs], _PATIENCE if _turns(case) else None)
        except VerificationError as error:
            return Finding(End.FAILED, f"{said}{error}", fired, expected)
        rounded = _list_rounded(case)
        read = [operand for step in case.steps for operand in step.operands if operand is not None]
        compared = [
            compare(
                _tensor(value, value in rounded),
                value.content,
                got,
                Kernels.REFERENCE,
                _bound_cancellation(value, read),
            )
            for value, got in zip(outputs, actual, strict=True)
        ]
        wrong = "; ".join(f"{one.name}: {one.reason}" for one in compared if not one.verdict.passed)
        return Finding(
            End.FAILED if wrong else End.PASSED, f"{said}{wrong}" if wrong else "", fired, expected, tuple(actual)
        )

    @property
    def _dialect(self) -> Dialect:
        return compiled_rules.prepare(self._rules, None).rules.target


def _describe(step: Step, node: ir.Node, opset: int) -> list[tuple[ir.DataType | None, Extents | None]]:
    """The types and shapes of what a step yields, as far as they are known: of its graphs, the types alone."""
    if step.graphs:
        return [(value.dtype, None) for value in step.graphs[0].yields[-len(node.outputs) :]]
    first = next((operand for operand in step.operands if operand is not None), None)
    dtype, shape = (None, None) if first is None else (first.dtype, first.content.shape)
    known = infer(node, opset)  # few have no inference
    return [(found.dtype or dtype, shape if found.shape is None else found.shape) for found in known]


def write_model(made: ir.Graph, names: Sequence[str], dialect: Dialect, opset: int) -> bytes:
    """A graph of the target dialect as the bytes of a model; raises RewriteError where it is none."""
    return b"".join(onnx_writer.encode(Output(made, names, dialect, opset)).parts())


def _alone(pack: Pack, name: str, opset: int) -> RuleSet:
    """A rule set with one rule: of several of a name, that of the last pack."""
    named = [outline for outline in pack.contents.outlines if outline.name == name]
    outlines = tuple(sorted(named, key=lambda outline: outline.order)[:1])
    return compile_rules(pack.files, pack.catalogue, opset, replace(pack.contents, outlines=outlines))


def _bound_cancellation(value: Value, read: Sequence[Value]) -> float:
    """What a real result may lose by cancellation of what was read for it: units of the result."""
    if value.content.dtype.kind != "f":
        return 0.0
    real = [np.abs(one.content[np.isfinite(one.content)]) for one in read if one.content.dtype.kind == "f"]
    return _CANCELLED * max((float(one.max()) for one in real if one.size), default=0.0)


def _turns(case: Case) -> bool:
    """Whether a case has graphs that may run without an end."""
    return any(step.graphs for step in case.steps)


def _list_rounded(case: Case) -> set[Value]:
    """The codes that sums are rounded to: other orders of summation may fall on the other side of a half."""
    sums = any(step.operator.facts.layout not in (TRANSPARENT, ATTRIBUTE) for step in case.steps)
    return {value for step in case.steps if sums and step.operator.role == QUANTIZE for value in step.results}


def _tensor(value: Value, rounded: bool) -> Tensor:
    array: Array = value.content
    return Tensor(value.name, array.dtype.name, array.shape, array.shape, (1.0,) if rounded else ())

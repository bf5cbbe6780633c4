"""Whole conversions of ONNX models: ONNX Runtime runs what is read, and the interpreter what is written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from ..conversion import compiled_rules, pipeline
from ..conversion.options import HYBRID_PACKS
from ..engine.base.errors import RewriteError, UnsupportedError
from ..engine.dialects.operators import Catalogue
from ..verify.comparison import measure_largest_difference
from ..verify.frames import Array
from ..verify.interpreter import Interpreter
from .elements import shift_digits, shift_half_step
from .finding import End, Finding, Grids, Rejected, judge_error
from .runtimes import encode_case, read_bytes
from .self_check import NoNumpyType, SelfCheck, is_kernel_missing, yield_arrays
from .sketch import Case, Step, Value

#: what the interpreter says of a model that it takes, where a kernel does not take the numbers that it is then given
_RUNNING = "failed to invoke"
#: by so many draws inputs are rounded up or down
_DRAWS = 8
_CODES = (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16)


@dataclass(frozen=True, slots=True)
class _Shift:
    """How numbers are changed to find out what results depend on: the draws, and what each does to arrays."""

    ways: Sequence[int]
    change: Callable[[Array, int], Array]
    change_result: Callable[[Array, bool, int], Array]


_BY_DIGITS = _Shift((0, 1, -1), lambda array, way: shift_digits(array, False, way), shift_digits)
#: kernels that round inputs by their range keep the rest
_BY_RANGE = _Shift(range(_DRAWS), shift_half_step, lambda array, codes, way: array)


class ConversionCheck:
    """The rules under trial, and the interpreter that runs what they make of models that ONNX Runtime has run."""

    def __init__(
        self, rules: tuple[str, ...], interpreter: Interpreter, catalogue: Catalogue, runtime: SelfCheck
    ) -> None:
        self._rules = rules
        self._interpreter = interpreter
        self._catalogue = catalogue
        self._runtime = runtime

    def settle(self, step: Step, counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids, opset: int) -> Step:
        """Run a step on its own to find its results, by the first number of them that the runtime takes.

        Raises Rejected where there are none, or none of some elements.
        """
        *others, last = counts
        for count in others:
            with contextlib.suppress(Rejected):
                return self.settle(step, [count], types, grids, opset)
        try:
            step = self._runtime.settle(step, [last], types, grids, opset)
        except Rejected as refusal:
            asked = any(step.options.get(name) for name in step.operator.facts.fuzz.reference)
            if not (asked or isinstance(refusal, NoNumpyType) or is_kernel_missing(step, f"{refusal}")):
                raise
            step = self._evaluate(step, last, opset)
        if not all(value.content.size for value in step.results):
            raise Rejected("a result has no elements")
        return step

    def _evaluate(self, step: Step, count: int, opset: int) -> Step:
        """Find the results of a step by the evaluator of the standard; raises Rejected where that fails."""
        import onnx
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(onnx.load_from_string(self._runtime.draft(step, count, opset)))
        try:
            feeds = zip(evaluator.input_names, [value.content for value in step.fed], strict=True)
            arrays = evaluator.run(None, dict(feeds))
        except Exception as error:  # of any kind, as numpy's own are among them
            raise Rejected(f"the evaluator fails: {error}") from error
        return yield_arrays(step, [np.asarray(array) for array in arrays])

    def judge(self, case: Case) -> Finding:
        """Convert a case and compare what the interpreter computes with what ONNX Runtime did."""
        opset = case.opset or compiled_rules.prepare(self._rules, None).opset
        try:
            conversion = pipeline.rewrite(encode_case(case, self._catalogue, opset), rules=self._rules, alone=True)
        except UnsupportedError as refusal:
            said = f"{refusal}" if case.widened else f"its own test is refused: {refusal}"
            return Finding(End.REFUSED if case.widened else End.FAILED, said)
        except RewriteError as error:
            return judge_error(error)
        fired, model = dict(conversion.report.rules), read_bytes(conversion.encoded)
        operators = sum(conversion.report.target_operators.values())
        found = SelfCheck.compare_case(case, model, fired, interpreter=self._interpreter)
        if found.end is End.FAILED and case.widened and _RUNNING in found.reason:
            found = replace(found, end=End.REFUSED)
        if found.end is End.FAILED and found.actual and self._is_shaky(case, found.actual, opset):
            found = replace(found, end=End.PASSED, reason="")
        return replace(found, operators=operators)

    def judge_adapted(self, case: Case, given: int) -> Finding:
        """Write a case of the opset `given` in its own, and compare both in ONNX Runtime."""
        try:
            conversion = pipeline.rewrite(
                encode_case(case, self._catalogue, given), rules=self._rules, opset=case.opset
            )
        except RewriteError as error:  # much cannot be said in an older opset
            return judge_error(error)
        fired, model = dict(conversion.report.rules), read_bytes(conversion.encoded)
        found = SelfCheck.compare_case(case, model, fired)
        return replace(found, operators=sum(conversion.report.target_operators.values()))

    def _is_shaky(self, case: Case, actual: Sequence[Array], opset: int) -> bool:
        """Whether results are off by no more than twice what the model's own are where each operator's are.

        Codes are off by one: kernels round real operands in ways of their own. Of real numbers it
        is the last digits, of inputs as well; with rules for kernels that round inputs by their range it is half a step
        of these.
        """
        spreads = [0.0] * len(actual)
        shift = _BY_RANGE if any(name in self._rules for name in HYBRID_PACKS.values()) else _BY_DIGITS
        for way in shift.ways:
            made: dict[Value | None, Value] = {}
            for value in case.inputs:
                made[value] = replace(value, content=shift.change(value.content, way))
            for step in case.steps:
                operands = tuple(made.get(value, value) for value in step.operands)
                try:
                    again = self.settle(
                        replace(step, operands=operands, results=()), [len(step.results)], [], lambda _: (), opset
                    )
                except Rejected:
                    return False
                for value, other in zip(step.results, again.results, strict=True):
                    codes = _is_rounding(step) and value.content.dtype.kind in "iu" and value.content.ndim > 0
                    made[value] = replace(value, content=shift.change_result(other.content, codes, way))
            found = (measure_largest_difference(value.content, made[value].content) for value in case.outputs)
            spreads = list(map(max, spreads, found))
        off = (measure_largest_difference(value.content, got) for value, got in zip(case.outputs, actual, strict=True))
        return all(one <= 2 * spread for one, spread in zip(off, spreads, strict=True))


def _is_rounding(step: Step) -> bool:
    """Whether an operator makes codes of real numbers, or of sums of products of codes."""
    return step.results[0].dtype in _CODES and any(value.dtype.is_floating_point() for value in step.reads)


__all__ = ["ConversionCheck"]

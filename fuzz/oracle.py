"""The oracle: asks the interpreter what a generated step yields, and judges the rewritten model by it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from ..conversion import compiled_rules, pipeline
from ..conversion.converted_model import Conversion
from ..conversion.options import PORTABLE
from ..engine.base.errors import RewriteError, RewriteFailure, UnsupportedError, VerificationError
from ..engine.base.quantization import HYBRID, Quantization
from ..engine.dialects.operators import Catalogue
from ..engine.passes.resize import has_batch_facts
from ..engine.rewrite.rules import RuleSet
from ..verify.comparison import check_equal, check_form, compare, measure_largest_difference
from ..verify.frames import Array
from ..verify.interpreter import Interpreter, InterpreterError, Kernels, Tensor
from ..verify.runtime import Runtime
from ..verify.verification import compare_models
from .conversion_check import ConversionCheck
from .elements import shift_digits
from .finding import End, Finding, Grids, Kind, Rejected, judge_error
from .meaning_oracle import explain_step, has_meaning
from .memory import Memory
from .self_check import SelfCheck
from .sketch import Case, Step, Value, draft, encode

#: operators whose results may differ from run to run
RANDOM = "random"

#: how often the scale of a result is changed so that its codes neither pile up at the ends nor vanish in the middle
_FITTINGS = 4
#: by how many times the tolerance results may be off, at the most, where the last digits of operands decide them
_LATITUDE = 10
#: a batch that no draw has
_BATCH = 7
#: what the interpreter and its client say of an operator's version, and of an end that was not its own
_UNKNOWN, _CRASH = "Didn't find op for builtin opcode", "crashed"
_VERSIONS = 12
#: what ONNX Runtime says where it is at fault itself, told as a refusal (docs/appendix/findings.md): it has no form of
#: an operator at an opset, or makes int8 of its own uint8
_RUNTIME = (
    "NOT_IMPLEMENTED : Could not find an implementation for",
    "output_dtype INT8 does not match y_zero_point type UINT8",
)
#: how what it says begins of a model that it loads and then finds wrong about what it is fed: it may of odd ones
_RUNNING = ("ONNX Runtime fails to run the model",)


class Oracle:
    """One interpreter in its worker, and the rules under trial.

    With `exact` the rules promise what the reference kernels compute, bit for bit. `opset` is the one that a target
    sets, None where none does.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        catalogue: Catalogue,
        rules: tuple[str, ...],
        exact: bool = False,
        opset: int | None = None,
    ) -> None:
        self.catalogue, self.opset = catalogue, opset
        self._exact = exact
        self.self_check = SelfCheck(rules, interpreter)
        self.conversions = ConversionCheck(rules, interpreter, catalogue, self.self_check)
        self.interpreter = interpreter
        self.rules = rules
        self._versions: dict[str, int] = {}
        self.memory = Memory()
        self._depth = 0

    # ---- what a step yields

    def settle(self, step: Step, counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids) -> Step:
        """Find the results of a step: how many, of which types, quantized how, and what they hold.

        `counts` and `types` are tried in their order, after what the interpreter took before for such operands. Raises
        Rejected when it takes none.
        """
        if has_meaning(self._meanings, step):
            return self._explain(step, counts[0])
        key = (step.operator.name, *(None if v is None else (v.dtype, v.grid is None) for v in step.operands))
        said = tuple(value for value in step.options.values() if isinstance(value, str))
        names = [f"{step.operator.name}_{place}" for place in range(max(counts))]
        complaints: dict[str, None] = {}
        alike = any(result.variadic for result in step.operator.results) or step.operator.facts.fuzz.alike
        known = self.memory.known.get((*key, *said))
        likely: list[list[Kind]] = [[*step.followed]] if step.followed else []
        for kinds in itertools.chain(likely, self._iterate_candidates((*key, *said), counts, types, grids, alike)):
            try:
                step, arrays = self._run(step, kinds)
            except InterpreterError as error:
                complaint = f"{error}"
                complaints[complaint] = None
                # What it says of results that such operands had before, and what no other results ever helped, is
                # not about the results.
                ours = tuple(dtype for dtype, _ in kinds) == known
                if ours or _CRASH in complaint or (step.operator.name, complaint) in self.memory.hopeless:
                    break
                continue
            if any(grid is not None and not _can_fit(grid, one) for (_, grid), one in zip(kinds, arrays, strict=True)):
                continue  # scales of another operand's axis, which the interpreter does not look at
            if not all(array.size for array in arrays) and all(v.content.size for v in step.operands if v is not None):
                raise Rejected("a result has no elements")
            # Kernels may set another type than the file says, and what they set is not quantized.
            kinds = [
                (dtype, grid) if (found := _retype(array, dtype)) == dtype else (found, None)
                for (dtype, grid), array in zip(kinds, arrays, strict=True)
            ]
            self.memory.hopeless -= {(step.operator.name, complaint) for complaint in complaints}
            kinds, arrays = self._fit_scale(step, kinds, arrays)
            self.memory.known[(*key, *said)] = tuple(dtype for dtype, _ in kinds)
            unknown = any(value is not None and value.open for value in step.operands)
            results = tuple(
                Value(name, dtype, array, False, grid, unknown)
                for name, (dtype, grid), array in zip(names, kinds, arrays, strict=False)
            )
            return replace(step, results=results)
        first = next(iter(complaints), "there is no type for its results")
        if len(complaints) == 1:
            self.memory.hopeless.add((step.operator.name, first))
        raise Rejected(first)

    def rerun(self, step: Step, kinds: Sequence[Kind]) -> Step:
        """Find the results of a step whose types and grids are known; raises Rejected where it is not taken."""
        try:
            step, arrays = self._run(step, kinds)
        except InterpreterError as error:
            raise Rejected(f"{error}") from error
        names = [f"{step.operator.name}_{place}" for place in range(len(kinds))]
        unknown = any(value is not None and value.open for value in step.operands)
        results = tuple(
            Value(name, _retype(array, dtype), array, False, grid if _retype(array, dtype) == dtype else None, unknown)
            for name, (dtype, grid), array in zip(names, kinds, arrays, strict=True)
        )
        return replace(step, results=results)

    def _explain(self, step: Step, count: int) -> Step:
        """Find the results of a step by what rules say that its operator means."""

        def settle_step(inner: Step, count: int, types: Sequence[ir.DataType]) -> Step:
            return self.settle(inner, [count], types, lambda dtype: [])

        self._depth += 1
        try:
            rules = self._meanings
            found = explain_step(step, count, rules, self.catalogue, rules.opset, settle_step, self._depth)
        finally:
            self._depth -= 1
        unknown = any(value is not None and value.open for value in step.operands)
        return found.set_results([replace(value, open=unknown) for value in found.results])

    @property
    def _meanings(self) -> RuleSet:
        """The rules that say what operators mean, which are the same at every opset."""
        return compiled_rules.prepare(self.rules, None).rules

    def _run(self, step: Step, kinds: Sequence[Kind]) -> tuple[Step, list[Array]]:
        """Run a step on its own, at the first version of its operator that the interpreter knows."""
        feeds = [[value.content for value in step.fed]]
        version = self._versions.get(step.operator.name, step.version)
        while True:
            step = replace(step, version=version)
            try:
                (arrays,) = self.interpreter.run(draft(step, kinds, self.catalogue), feeds, Kernels.OPTIMIZED)
            except InterpreterError as error:
                if _UNKNOWN not in f"{error}":
                    raise
                if version >= _VERSIONS:
                    self._versions[step.operator.name] = version  # no further draw needs to look for it
                    raise
                version += 1
                continue
            self._versions[step.operator.name] = version
            return step, arrays

    def _iterate_candidates(
        self, key: tuple[object, ...], counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids, alike: bool
    ) -> Iterator[list[Kind]]:
        before = self.memory.known.get(key)
        for count in counts:
            rows = [[dtype] * count for dtype in types]
            if before is not None and len(before) == count and before[0] in types:
                rows.insert(0, list(before))
            if count > 1 and not alike:  # values, and where they are
                rows[:0] = [[dtype, *[ir.DataType.INT32] * (count - 1)] for dtype in types]
            for row in rows:
                # Where several grids may hold, those of all results are the first, the second, and so on.
                choices: list[Sequence[Quantization | None]] = [grids(dtype) or [None] for dtype in row]
                for place in range(max(map(len, choices), default=1)):
                    yield [
                        (dtype, choice[min(place, len(choice) - 1)]) for dtype, choice in zip(row, choices, strict=True)
                    ]

    def _fit_scale(self, step: Step, kinds: list[Kind], arrays: list[Array]) -> tuple[list[Kind], list[Array]]:
        """Change the scale of the one quantized result while its codes say little and the interpreter lets us."""
        for _ in range(_FITTINGS):
            (dtype, grid), codes = kinds[0], arrays[0]
            # Of a grid that ops.yaml fixes there is no other, whatever the kernel takes.
            fixed = isinstance(step.operator.facts.grid, dict)
            if grid is None or fixed or len(kinds) != 1 or codes.size < 4:
                break
            if any(grid is value.grid for value in step.operands if value is not None):
                break
            limits = np.iinfo(codes.dtype)
            full = float(np.mean((codes == limits.min) | (codes == limits.max)))
            spread = int(codes.max()) - int(codes.min())
            factor = 8.0 if full > 0.3 else 0.25 if 0 < spread < 24 else 1.0
            if factor == 1.0:
                break
            changed: list[Kind] = [(dtype, Quantization(grid.scale * np.float32(factor), grid.zero_point))]
            try:
                _, others = self._run(step, changed)
            except InterpreterError:
                break  # the operator has a scale of its own, and this one was taken
            kinds, arrays = changed, others
        return kinds, arrays

    # ---- what is made of a case

    def _is_unstable(self, case: Case) -> bool:
        """Whether the interpreter's own outputs change when each operator is off by a rounding error.

        Where several operators follow each other, a rounding of the first may decide what the last makes of it.
        """
        case = case.as_run
        return len(case.steps) > 1 and any(self._is_different(case, way) for way in (0, 1, -1))

    def _is_different(self, case: Case, way: int) -> bool:
        """Whether outputs differ where results are off upwards (1), downwards (-1), or some each way (0)."""
        made: dict[Value | None, Value] = {}
        for step in case.steps:
            operands = tuple(made.get(value, value) for value in step.operands)
            kinds: list[Kind] = [(value.dtype, value.grid) for value in step.results]
            try:
                _, arrays = self._run(replace(step, operands=operands, results=()), kinds)
            except InterpreterError:
                return False
            for value, array in zip(step.results, arrays, strict=True):
                made[value] = replace(value, content=shift_digits(array, value.grid is not None, way))
        return any(
            not compare(_describe_tensor(value), value.content, made[value].content, Kernels.OPTIMIZED).verdict.passed
            for value in case.outputs
        )

    def _is_loose(self, case: Case, actual: Sequence[Array]) -> bool:
        """Whether one operator of real numbers is off by no more than their last digits change what it yields.

        Sums that are cut off do not tell by their size how far they are rounded: what is left of thousands may be 6.
        Where a kernel rounds real operands to codes of its own, a number halfway between two goes to either.
        """
        step, *rest = case.as_run.steps
        scaled = any(value.grid is not None for value in step.reads)
        rounds = scaled and HYBRID in step.operator.traits
        real = all(value.grid is None for value in step.results) and rounds == scaled
        if rest or not real or case.outputs != step.results:
            return False
        operands = [value and replace(value, content=shift_digits(value.content, False)) for value in step.operands]
        try:
            kinds: list[Kind] = [(value.dtype, None) for value in step.results]
            _, arrays = self._run(replace(step, operands=tuple(operands), results=()), kinds)
        except InterpreterError:
            return False
        for value, other, got in zip(step.results, arrays, actual, strict=True):
            plain = compare(_describe_tensor(value), value.content, got, Kernels.OPTIMIZED)
            most = np.inf if rounds else _LATITUDE / 2 * plain.tolerance
            spread = min(measure_largest_difference(value.content, other), most)
            if not compare(_describe_tensor(value), value.content, got, Kernels.OPTIMIZED, spread).verdict.passed:
                return False
        return True

    def _convert(self, source: bytes, opset: int | None) -> Conversion:
        """Convert for an opset, or for the default one where the first cannot hold the types of the model."""
        try:
            return pipeline.rewrite(source, rules=self.rules, opset=opset, target=PORTABLE)
        except (RewriteFailure, UnsupportedError):
            raise
        except RewriteError:
            if opset == self.opset:
                raise
            return pipeline.rewrite(source, rules=self.rules, target=PORTABLE)

    def _is_random(self, operators: Iterable[str]) -> bool:
        """Whether results differ from run to run: operators that ops.yaml calls not pure are in the model."""
        known = self.catalogue.find_dialect("onnx").operators
        return any(name in known and not known[name].facts.pure for name in operators)

    def judge(self, case: Case) -> Finding:
        """Convert a case and compare both models on its inputs."""
        source = encode(case, self.catalogue)
        try:
            conversion = self._convert(source, case.opset)
        except RewriteFailure as failure:
            return Finding(End.REFUSED if case.odd else End.FAILED, f"{failure}")
        except UnsupportedError as refusal:
            if case.widened or case.opset != self.opset:
                return Finding(End.REFUSED, f"{refusal}")
            return Finding(End.FAILED, f"its own test is refused: {refusal}")
        except Exception as error:
            return judge_error(error)
        if not case.taken:
            return Finding(End.PASSED, "", dict(conversion.report.rules))
        finding = self._compare(case, source, conversion)
        return replace(finding, operators=sum(conversion.report.target_operators.values()))

    def describe_rebatched(self, case: Case) -> str:
        """What becomes of a case with another batch: the shapes of its results, or `refused`.

        Nothing where ops.yaml says of none of its operators what another batch means to it.
        """
        if not any(has_batch_facts(step.operator.facts) for step in case.steps):
            return ""
        try:
            source = encode(case, self.catalogue)
            found = pipeline.rewrite(source, rules=self.rules, batch=_BATCH, target=PORTABLE).model.graph.output
        except RewriteError:
            return "refused"
        return " ".join(str([d.dim_value or d.dim_param for d in one.type.tensor_type.shape.dim]) for one in found)

    def _compare(self, case: Case, source: bytes, conversion: Conversion) -> Finding:
        """Run both models on the inputs of a case."""
        fired = dict(conversion.report.rules)
        feeds = [value.content for value in case.inputs]
        outputs = case.outputs
        expected = [value.content for value in outputs]
        target = conversion.model.SerializeToString()
        try:
            actual = Runtime(target, threads=1, precise=True).run(feeds)
        except VerificationError as error:
            ours = not any(words in f"{error}" for words in (*_RUNTIME, *(_RUNNING if case.odd else ())))
            end = End.FAILED if ours else End.REFUSED
            return Finding(end, f"{error}", fired, tuple(expected))
        found = (tuple(expected), tuple(actual))
        if case.odd and not any(one.size for one in (*expected, *actual)):
            return Finding(End.PASSED, "", fired, *found)  # some kernels leave no extents either
        if case.loose or self._is_random(conversion.report.target_operators):
            wanted = [value.content for value in outputs]
            differences = "; ".join(filter(None, map(check_form, [value.name for value in outputs], wanted, actual)))
            return Finding(End.FAILED if differences else End.PASSED, differences, fired, *found)
        if self._exact and fired.get(case.rule):
            (exactly,) = self.interpreter.run(source, [feeds], Kernels.REFERENCE)
            wrong = "; ".join(filter(None, map(check_equal, [value.name for value in outputs], exactly, actual)))
            return Finding(End.FAILED if wrong else End.PASSED, wrong, fired, *found)
        compared = [
            compare(_describe_tensor(value), value.content, got, Kernels.OPTIMIZED)
            for value, got in zip(outputs, actual, strict=True)
        ]
        if all(one.verdict.passed for one in compared):
            return Finding(End.PASSED, "", fired, *found)
        try:
            asked = encode(case.as_run, self.catalogue)
            again = compare_models(asked, target, inputs=[feeds], interpreter=self.interpreter, precise=True)
        except VerificationError as error:
            return Finding(End.FAILED, f"{error}", fired, *found)
        if again.passed or _is_close(case, outputs, actual) or self._is_unstable(case) or self._is_loose(case, actual):
            return Finding(End.PASSED, "", fired, *found)
        return Finding(End.FAILED, "; ".join(again.differences), fired, *found)


def _is_close(case: Case, outputs: Sequence[Value], actual: Sequence[Array]) -> bool:
    """Whether outputs of several quantized operators are off by no more steps than there are operators to round."""
    rounding = sum(value.grid is not None for step in case.steps for value in step.results)
    return len(case.steps) > 1 and all(
        value.grid is not None and measure_largest_difference(value.content, got) <= rounding
        for value, got in zip(outputs, actual, strict=True)
    )


def _can_fit(grid: Quantization, array: Array) -> bool:
    """Whether a value has as many indices along the axis of its scales as there are scales."""
    axes = array.shape[grid.axis : grid.axis + 1]
    return grid.scale.size == 1 or axes == (grid.scale.size,)


def _retype(array: Array, said: ir.DataType) -> ir.DataType:
    """The type that a result turned out to have; kernels may set another than the file says."""
    if array.dtype == object:
        return said
    return ir.DataType.from_numpy(array.dtype)


def _describe_tensor(value: Value) -> Tensor:
    """A result as comparison wants it described."""
    shape = value.content.shape
    scales = () if value.grid is None else tuple(float(scale) for scale in value.grid.scale)
    return Tensor(value.name, value.content.dtype.name, shape, shape, scales)

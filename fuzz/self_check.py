"""Self-check of rules over the target dialect alone: their own left side before and after."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from ..conversion import compiled_rules
from ..conversion.compiled_rules import Prepared
from ..engine.base.errors import RewriteError, VerificationError
from ..engine.dialects.inference import Extents, InferenceError, infer
from ..engine.dialects.onnx_schemas import find_schema
from ..engine.dialects.operators import Dialect
from ..engine.expressions.functions import DTYPES, NARROW_FLOATS, SHORT
from ..engine.passes.layout.axis_groups import ATTRIBUTE, TRANSPARENT
from ..engine.passes.layout.views import QUANTIZE
from ..engine.passes.pass_list import convert_graph
from ..engine.rewrite.outlines import Outline
from ..engine.rewrite.rules import RuleSet
from ..verify.comparison import compare
from ..verify.formats import REFERENCE
from ..verify.frames import Array
from ..verify.interpreter import Interpreter, Kernels, Tensor
from .finding import End, Finding, Grids, Rejected, judge_error
from .meaning_oracle import explain_step, has_meaning
from .runtimes import run_model, write_model
from .sketch import Case, Step, UnknownResult, Value, make_graph

#: half of what a real result may lose, of the largest number that a graph reads: sums cancel, and the runtime's
#: recurrent layers have a Sigmoid that is 6e-7 off, where a state of any size is multiplied by it
_CANCELLED = 5e-7
#: bits of an element from which on it is no code
_WORD = 32
#: seconds that a model may run: loops may have no end
_PATIENCE = 0.5
#: elements of a result: extents that are drawn may ask for gigabytes
_MOST_ELEMENTS = 1 << 22
#: the opset from which on ops.yaml lists the types that the runtime has kernels for
_LISTED = 13
#: the newest opset that the runtime has kernels of: ONNX Runtime 1.32
_LAST = 27
_NO_KERNEL = re.compile(r"Could not find an implementation for \w+\((?P<since>\d+)\)")


class NoNumpyType(Rejected):
    """What the runtime would read or yield are numbers that it gives as bytes."""


class SelfCheck:
    """One runtime alone, which runs the left side of a rule and what the rule makes of it: that of the dialect."""

    def __init__(self, rules: tuple[str, ...], interpreter: Interpreter) -> None:
        self._rules = rules
        self._interpreter = interpreter
        self._depth = 0

    def settle(self, step: Step, counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids, opset: int) -> Step:
        """Run a step in ONNX Runtime to find its results, as many as first run, or what rules say that it means; raises
        Rejected where it takes none."""
        if has_meaning(self._prepared.rules, step):
            return self._explain(step, counts[0], opset)
        feeds = [value.content for value in step.fed]
        said = ""
        for count in counts:
            try:
                model = self.draft(step, count, opset)
                self._require_numpy_types(step, count, opset)
                arrays = run_model(model, feeds, seconds=_PATIENCE if step.graphs else None)
                if max((array.size for array in arrays), default=0) > _MOST_ELEMENTS:
                    raise Rejected("a result has too many elements to compare")
                self._require_ranks(step, arrays, opset)
                return yield_arrays(step, arrays)
            except NoNumpyType:
                raise
            except (Rejected, VerificationError) as error:
                said = said or f"{error}"
        raise Rejected(said)

    def _explain(self, step: Step, count: int, opset: int) -> Step:
        """Find the results of a step by what rules say that its operator means."""

        numbers = itertools.count()

        def settle_step(inner: Step, count: int, types: Sequence[ir.DataType]) -> Step:
            made = self.settle(inner, [count], types, lambda dtype: [], opset)
            # What one step yields is read by the next, whose own results have other names.
            return made.set_results(
                [replace(value, name=f"meant_{self._depth}.{next(numbers)}") for value in made.results]
            )

        rules, catalogue = self._prepared.rules, self._prepared.pack.catalogue
        self._depth += 1
        try:
            found = explain_step(step, count, rules, catalogue, opset, settle_step, self._depth)
        finally:
            self._depth -= 1
        results = [replace(value, name=f"result_{place}") for place, value in enumerate(found.results)]
        return found.set_results(results)

    def _require_numpy_types(self, step: Step, count: int, opset: int) -> None:
        """Raise NoNumpyType where the runtime would yield or be given numbers as bytes."""
        results = _describe(step, self._make_graph(step, count).node(0), opset)
        read = [value.dtype for value in step.reads]
        if any(
            dtype is not None and SHORT.get(dtype) in NARROW_FLOATS
            for dtype in (*read, *(dtype for dtype, _ in results))
        ):
            raise NoNumpyType("the runtime takes and yields floating-point numbers of 8 bits as bytes")

    def _require_ranks(self, step: Step, arrays: Sequence[Array], opset: int) -> None:
        """Raise Rejected where the runtime makes results of other ranks than the standard says, as of no axes."""
        node = self._make_graph(step, len(arrays)).node(0)
        if step.graphs or find_schema(node.op_type, opset, node.domain) is None:
            return
        for said, array in zip(infer(node, opset), arrays, strict=True):
            if said.shape is not None and len(said.shape) != array.ndim:
                raise Rejected(f"a result has rank {array.ndim}, and {len(said.shape)} by the standard")

    def _make_graph(self, step: Step, count: int) -> ir.Graph:
        """A graph of a step on its own, whose results nobody knows yet."""
        return make_graph([step], tuple(UnknownResult(f"result_{place}") for place in range(count)), self._dialect)

    @property
    def _dialect(self) -> Dialect:
        return self._prepared.pack.catalogue.find_dialect(REFERENCE)

    @property
    def _prepared(self) -> Prepared:
        return compiled_rules.prepare(self._rules, None)

    def draft(self, step: Step, count: int, opset: int) -> bytes:
        """Write a step on its own, whose results nobody knows yet; raises Rejected where it is no model."""
        named = self._make_graph(step, count)
        try:
            for value, (dtype, shape) in zip(named.outputs, _describe(step, named.node(0), opset), strict=True):
                value.type = None if dtype is None else ir.TensorType(dtype)
                value.shape = None if shape is None else ir.Shape(shape)
            return write_model(named, [value.name or "" for value in named.outputs], self._dialect, opset)
        except (RewriteError, InferenceError) as error:
            raise Rejected(f"{error}") from error

    def judge(self, case: Case) -> Finding:
        """Rewrite the left side by the one rule and compare both graphs on the case's inputs."""
        prepared = compiled_rules.prepare(self._rules, case.opset)
        outputs = case.outputs
        names = [value.name for value in outputs]
        dialect = prepared.rules.target
        made = make_graph(case.steps, outputs, dialect)
        alone = _isolate_rule(prepared, case.rule)
        try:
            module = convert_graph(made, alone)
            model = write_model(made, names, dialect, prepared.opset)
        except Exception as error:
            return judge_error(error)
        fired = dict(module.outcome.fired)
        expected = tuple(value.content for value in outputs)
        if not fired:
            return Finding(End.REFUSED, _explain_idle(prepared, case.rule), fired, expected)
        interpreter = None if dialect.name == REFERENCE else self._interpreter
        found = self.compare_case(case, model, fired, interpreter=interpreter)
        if found.end is End.FAILED and found.actual:
            whole = write_model(make_graph(case.steps, outputs, dialect), names, dialect, prepared.opset)
            found = self._compare_whole(case, whole, found, interpreter)
        return replace(found, operators=len(made))

    @staticmethod
    def _compare_whole(case: Case, whole: bytes, found: Finding, interpreter: Interpreter | None) -> Finding:
        """Compare with what the runtime makes of the left side as a whole: it rounds biases to codes, and fuses."""
        try:
            feeds = [value.content for value in case.inputs]
            expected = run_model(whole, feeds, interpreter, _PATIENCE if _has_loops(case) else None)
        except VerificationError:
            return found
        if _list_differences(case, expected, found.actual):
            return found
        return replace(found, end=End.PASSED, reason="", expected=tuple(expected))

    @staticmethod
    def compare_case(
        case: Case,
        model: bytes,
        fired: Mapping[str, int],
        said: str = "",
        optimized: bool = True,
        interpreter: Interpreter | None = None,
    ) -> Finding:
        """Run what became of a case, as `run_model` does, and compare; `said` precedes what is wrong."""
        outputs = case.outputs
        expected = tuple(value.content for value in outputs)
        try:
            feeds = [value.content for value in case.inputs]
            actual = run_model(model, feeds, interpreter, _PATIENCE if _has_loops(case) else None, optimized)
        except VerificationError as error:
            end = End.REFUSED if _is_kernel_unlisted(f"{error}") else End.FAILED
            return Finding(end, f"{said}{error}", fired, expected)
        wrong = _list_differences(case, expected, actual)
        return Finding(
            End.FAILED if wrong else End.PASSED, f"{said}{wrong}" if wrong else "", fired, expected, tuple(actual)
        )


def _list_differences(case: Case, expected: Sequence[Array], actual: Sequence[Array]) -> str:
    """Word what differs in the outputs of a case; empty where nothing does."""
    rounded = _list_rounded(case)
    read = [operand for step in case.steps for operand in step.operands if operand is not None]
    compared = [
        compare(
            _describe_tensor(value, value in rounded), want, got, Kernels.REFERENCE, _bound_cancellation(value, read)
        )
        for value, want, got in zip(case.outputs, expected, actual, strict=True)
    ]
    return "; ".join(f"{one.name}: {one.reason}" for one in compared if not one.verdict.passed)


def yield_arrays(step: Step, arrays: Sequence[Array]) -> Step:
    """A step whose results are some arrays."""
    results = (
        Value(f"result_{place}", ir.DataType.from_numpy(array.dtype), _encode_texts(array))
        for place, array in enumerate(arrays)
    )
    return replace(step, results=tuple(results))


def _encode_texts(array: Array) -> Array:
    """Strings as the bytes that they are in files."""
    if array.dtype != object:
        return array
    texts = [item.encode() if isinstance(item, str) else item for item in array.ravel()]
    return np.array(texts, dtype=object).reshape(array.shape)


def _describe(step: Step, node: ir.Node, opset: int) -> list[tuple[ir.DataType | None, Extents | None]]:
    """The types and shapes of what a step yields, as far as they are known: of its graphs, the types alone."""
    if step.graphs:
        return [(value.dtype, None) for value in step.graphs[0].yields[-len(node.outputs) :]]
    first = next((operand for operand in step.operands if operand is not None), None)
    dtype, shape = (None, None) if first is None else (first.dtype, first.content.shape)
    if find_schema(node.op_type, opset, node.domain) is None:  # of another domain, or the older form of another
        said = [DTYPES[name] for name in step.operator.facts.yields]
        return [(said[place] if place < len(said) else dtype, None) for place in range(len(node.outputs))]
    known = infer(node, opset)  # few have no inference
    return [(found.dtype or dtype, shape if found.shape is None else found.shape) for found in known]


def _isolate_rule(prepared: Prepared, name: str) -> RuleSet:
    """A rule set with one rule: of several of a name, that of the last pack."""
    pack = prepared.pack
    contents = replace(pack.contents, outlines=tuple(_list_named(prepared, name)[:1]))
    return RuleSet(pack.files, pack.catalogue, prepared.opset, contents, prepared.rules.settle)


def _list_named(prepared: Prepared, name: str) -> list[Outline]:
    """The rules of a name, the one that is tried first at a node before the others."""
    named = [outline for outline in prepared.pack.contents.outlines if outline.name == name]
    return sorted(named, key=lambda outline: outline.order)


def _explain_idle(prepared: Prepared, name: str) -> str:
    """Why a rule did not fire on its own left side: it may not be the one that was tried."""
    named = _list_named(prepared, name)
    if len(named) > 1:
        file = prepared.pack.files[named[0].file].items[named[0].item].span
        return f"the rule of this name at {file} goes before it, and was tried: call one of them otherwise"
    return "the rule does not match its own left side"


def _bound_cancellation(value: Value, read: Sequence[Value]) -> float:
    """What a real result may lose by cancellation of what was read for it: units of the result."""
    if value.content.dtype.kind != "f":
        return 0.0
    cancelled = _CANCELLED * max(float(np.finfo(value.content.dtype).eps / np.finfo(np.float32).eps), 1.0)
    real = [np.abs(one.content[np.isfinite(one.content)]) for one in read if one.content.dtype.kind == "f"]
    return cancelled * max((float(one.max()) for one in real if one.size), default=0.0)


def _is_kernel_unlisted(error: str) -> bool:
    """Whether the runtime says that it has no kernel for a type at an opset for which ops.yaml does not list them."""
    found = _NO_KERNEL.search(error)
    return found is not None and not _LISTED <= int(found["since"]) <= _LAST


def is_kernel_missing(step: Step, error: str) -> bool:
    """Whether the runtime says that it has no kernel for an operator, not even for one of single precision."""
    first = next(iter(step.reads), None)
    return _NO_KERNEL.search(error) is not None and first is not None and first.dtype == ir.DataType.FLOAT


def _has_loops(case: Case) -> bool:
    """Whether a case has graphs that may run without an end."""
    return any(step.graphs for step in case.steps)


def _list_rounded(case: Case) -> set[Value]:
    """The codes that sums are rounded to: other orders of summation may fall on the other side of a half."""
    sums = any(step.operator.facts.layout not in (TRANSPARENT, ATTRIBUTE) for step in case.steps)
    return {value for step in case.steps if sums and is_quantizing(step) for value in step.results}


def is_quantizing(step: Step) -> bool:
    """Whether an operator yields codes: it quantizes, or is given the scale of what it yields."""
    scaled = "scale" in step.operator.facts.fuzz.limits.values() and step.results[0].dtype.bitwidth < _WORD
    return step.operator.role == QUANTIZE or scaled


def _describe_tensor(value: Value, rounded: bool) -> Tensor:
    array: Array = value.content
    return Tensor(value.name, array.dtype.name, array.shape, array.shape, (1.0,) if rounded else ())

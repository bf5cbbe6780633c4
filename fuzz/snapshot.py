"""Snapshots of what rules yield for operators that no interpreter has, held against what they yielded when recorded.

They prove no number, which tests against known ones do (tests/rules/test_flex.py, tests/rules/test_stablehlo.py); they
tell that one is not what it was.
"""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from ..conversion import compiled_rules
from ..engine.base.errors import RewriteError
from ..engine.expressions.functions import DTYPES
from ..engine.passes.pass_list import convert_graph
from ..verify.frames import Array
from ..verify.runtime import Runtime
from .cases import draw_opset
from .choices import Choices
from .finding import End, Finding, Grids, Rejected
from .generate import CaseBuilder
from .runtimes import write_model
from .sketch import Case, Step, UnknownResult, make_graph
from .subjects import Subject

#: types of results to try, where a rule asks for them: unknown, as the first operand, as counts
_COUNTS = ir.DataType.INT32
#: numbers may differ by this share of the sum of their magnitudes
_CLOSE = 2e-3


def draw(choices: Choices, subject: Subject, usual: int | None = None) -> Case:
    """Draw one operator whose results nobody knows; raises Rejected where a rule is about several.

    A test may say of which type and shape a result is, as files do. `usual` is the opset that a target sets.
    """
    count = 1

    def settle(step: Step, counts: Sequence[int], types: Sequence[ir.DataType], grids: Grids) -> Step:
        nonlocal count
        count = counts[0]
        return step

    opset = draw_opset(choices, subject, usual)
    test = choices.pick(subject.tests, None if choices.turn is None else choices.turn // 2)
    bench = CaseBuilder(choices, settle, subject, test, opset or subject.newest)
    steps = bench.build_steps()
    if len(steps) != 1:
        raise Rejected("it is about several operators, whose results nobody knows")
    said = {one.name: one for one in test.declarations}
    targets = [target.name for target in subject.compile_pattern(opset or subject.newest)[-1].targets]
    while targets and targets[-1] == "_":  # what nobody may read
        targets.pop()
        count -= 1
    blanks = [UnknownResult(f"result_{place}") for place in range(count)]
    for place, name in enumerate(targets[:count]):
        if name in said:
            shape = tuple(bench.draw_shape(said[name]))
            blanks[place] = replace(blanks[place], dtype=DTYPES[said[name].type], shape=shape)
    return Case(subject.name, steps, opset, widened=True, unknown=tuple(blanks))


def judge(case: Case, rules: tuple[str, ...]) -> Finding:
    """Rewrite a case and run what becomes of it; what it yields is in `actual`."""
    prepared = compiled_rules.prepare(rules, case.opset)
    reason = ""
    for dtypes in _list_types(case):
        blanks = [replace(blank, dtype=blank.dtype or dtype) for blank, dtype in zip(case.unknown, dtypes, strict=True)]
        made = make_graph(case.steps, blanks, prepared.rules.source)
        try:
            module = convert_graph(made, prepared.rules)
            left = sorted({node.op_type for node in made if node.domain == prepared.rules.source.domain})
            if left:
                raise RewriteError(f"no rule takes {', '.join(left)}")
            model = write_model(made, [blank.name for blank in blanks], prepared.rules.target, prepared.opset)
            actual = Runtime(model, threads=1, precise=True).run([value.content for value in case.inputs])
        except RewriteError as error:
            reason = reason or f"{error}"
            continue
        except Exception:
            return Finding(End.FAILED, "internal error: " + traceback.format_exc())
        known = prepared.rules.target.operators
        if any(node.op_type in known and not known[node.op_type].facts.pure for node in made):
            actual = [np.zeros(array.shape, array.dtype) for array in actual]  # drawn at random
        return Finding(End.PASSED, "", dict(module.outcome.fired), (), tuple(actual), len(made))
    return Finding(End.REFUSED, reason)


def _list_types(case: Case) -> list[list[ir.DataType | None]]:
    first = next((value.dtype for value in case.steps[0].operands if value is not None), ir.DataType.FLOAT)
    more = len(case.unknown) - 1
    return [[None] * (more + 1), [first] * (more + 1), [first, *[_COUNTS] * more], [_COUNTS] * (more + 1)]


def summarize_arrays(arrays: Sequence[Array]) -> str:
    """Some arrays in a word: of each its type and shape, its magnitude, its sum, and a sum that tells places apart."""
    return ";".join(map(_summarize_array, arrays))


def _summarize_array(array: Array) -> str:
    kind = f"{zlib.crc32(f'{array.dtype.kind}{array.dtype.itemsize}{array.shape}'.encode()) & 0xFFFF:04x}"
    if array.dtype.kind not in "fiub":
        return f"{kind}~{zlib.crc32(repr(array.tolist()).encode()):08x}"
    numbers = np.nan_to_num(array.astype(np.float64), nan=7.0, posinf=11.0, neginf=-13.0).ravel()
    sums = np.abs(numbers).sum(), numbers.sum(), (numbers * np.cos(np.arange(numbers.size))).sum()
    return "~".join([kind, *(f"{number:.3e}" for number in sums)])


def is_same(now: str, before: str) -> bool:
    """Whether two words of `told` are of the same arrays, but for rounding."""
    ours, theirs = ([word.split("~") for word in text.split(";")] for text in (now, before))
    return len(ours) == len(theirs) and all(map(_are_alike, ours, theirs))


def _are_alike(now: list[str], before: list[str]) -> bool:
    if now[0] != before[0] or len(now) != len(before):
        return False
    if len(now) < 4:
        return now == before
    numbers, others = (np.array([float(text) for text in word[1:]]) for word in (now, before))
    return bool(np.all(np.abs(numbers - others) <= _CLOSE * max(numbers[0], others[0]) + 1e-9))

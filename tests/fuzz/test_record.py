"""The record: a change is held to what came of fixed cases, and only to these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from nnrewrite.conversion.options import DEFAULT, Options
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz import baseline
from nnrewrite.fuzz.finding import End, Finding
from nnrewrite.fuzz.rule_sets import digest_all, find_records, list_stacks
from nnrewrite.fuzz.selection import make_plan, plan_others
from nnrewrite.fuzz.sketch import Case, Step, UnknownResult
from nnrewrite.fuzz.subjects import list_subjects

pytestmark = pytest.mark.slow

CASE, OTHER = Case("relu", (), 18), Case("relu", (), 17)
PASSED = Finding(End.PASSED, fired={"relu": 1}, operators=3)
REFUSED = Finding(End.REFUSED, "an extent is not known")


def again(finding: Finding, before: Finding, alone: bool = False, case: Case = CASE, recorded: Case = CASE) -> Finding:
    return baseline.judge_fixed(case, finding, baseline.format_outcome(recorded, before), alone)


def digested(now: str, before: str) -> Finding:
    return baseline.judge_fixed(CASE, PASSED, baseline.format_outcome(CASE, PASSED, before), False, now)


def test_the_same_outcome_is_no_failure() -> None:
    assert again(PASSED, PASSED) is PASSED
    assert again(REFUSED, REFUSED) is REFUSED


def test_a_case_that_was_converted_must_not_be_refused() -> None:
    found = again(REFUSED, PASSED)
    assert found.end is End.FAILED
    assert "an extent is not known" in found.reason


def test_more_operators_than_were_left_are_a_failure_and_fewer_are_none() -> None:
    more, fewer = (Finding(End.PASSED, fired={"relu": 1}, operators=count) for count in (4, 2))
    assert again(more, PASSED).reason.startswith("4 operators are left, where 3 were")
    assert again(fewer, PASSED).end is End.PASSED


def test_a_rule_that_is_tried_alone_must_not_fire_where_it_did_not() -> None:
    assert again(PASSED, REFUSED, alone=True).end is End.FAILED
    assert again(PASSED, REFUSED).end is End.PASSED


def test_another_case_than_the_recorded_one_is_not_compared() -> None:
    assert again(REFUSED, PASSED, case=OTHER) is REFUSED


def test_a_file_must_be_written_as_it_was() -> None:
    assert digested("00a1", "00a1") is PASSED
    assert "not what was recorded" in digested("00a2", "00a1").reason
    assert digested("00a2", "") is PASSED  # nothing is known of it
    first, other = baseline.format_outcome(CASE, PASSED, "00a1"), baseline.format_outcome(CASE, PASSED, "00a2")
    assert baseline.judge_fixed(CASE, PASSED, first, False, "00a2", [first, other]) is PASSED  # worded alike


def test_draws_that_the_interpreter_takes_no_more_are_told_of() -> None:
    taken, none = baseline.format_outcome(CASE, PASSED), baseline.format_outcome(None, None)
    assert "takes 2 by now" in baseline.explain_missing([taken, taken, none, none], [taken, taken, taken, none])
    assert not baseline.explain_missing([taken, taken, taken, none], [taken, taken, taken, none])


def test_a_case_that_took_more_draws_than_before_is_one_that_is_taken_no_more() -> None:
    first, later = (baseline.format_outcome(CASE, PASSED, before=refused) for refused in (0, 2))
    assert "takes 2 by now" in baseline.explain_missing([first, first, later], [first, first, first])
    assert not baseline.explain_missing([first, first, later], [later, first, later])


def test_it_is_told_where_all_cases_are_refused_that_are_drawn_in_another_way() -> None:
    passed, refused = baseline.format_outcome(CASE, PASSED), baseline.format_outcome(OTHER, REFUSED)
    assert "is refused" in baseline.explain_missing([refused] * 3, [passed] * 3)
    assert not baseline.explain_missing([refused, refused, passed], [passed] * 3)
    assert not baseline.explain_missing([refused] * 3, [refused, refused, passed])


def test_of_cases_that_are_drawn_in_another_way_half_must_still_be_taken() -> None:
    taken, other, none = (
        baseline.format_outcome(CASE, PASSED),
        baseline.format_outcome(OTHER, PASSED),
        baseline.format_outcome(None, None),
    )
    assert not baseline.explain_missing([other, other, none, none], [taken, taken, taken, none])
    assert "takes 1 by now" in baseline.explain_missing([other, none, none, none], [taken, taken, taken, none])


def test_an_operator_that_no_interpreter_has_must_yield_the_numbers_that_are_recorded() -> None:
    def found(*numbers: float) -> Finding:
        return Finding(End.PASSED, fired={"relu": 1}, operators=3, actual=(np.array(numbers, np.float32),))

    case = Case("relu", (), 18, unknown=(UnknownResult("result_0"),))
    told = again(found(1.5, 2.0), found(1.0, 2.0), case=case, recorded=case)
    assert told.end is End.FAILED
    assert "other numbers" in told.reason
    assert again(found(2.0, 1.0), found(1.0, 2.0), case=case, recorded=case).end is End.FAILED
    assert again(found(1.0, 2.0000002), found(1.0, 2.0), case=case, recorded=case).end is End.PASSED


def test_what_an_operator_means_must_yield_the_numbers_that_are_recorded(catalogue: Catalogue) -> None:
    spec = catalogue.find_dialect("tflite").operators["Mfcc"]
    case = Case("mfcc", (Step(spec, (), {}, meaning=(Step(spec, (), {}),)),), 18)
    now, before = (Finding(End.PASSED, fired={"mfcc": 1}, expected=(np.array([n]),)) for n in (1.5, 1.0))
    assert "other numbers" in again(now, before, case=case, recorded=case).reason
    assert again(before, before, case=case, recorded=case) is before


def test_what_is_excused_from_the_interpreter_is_tried_against_the_record() -> None:
    (plain, *_) = list_stacks(DEFAULT)
    tried = {trial.name for trial in plain.trials if trial.excuse}
    assert {name for name in tried if name.startswith("flex_softmax")} == {"flex_softmax"}
    known = baseline.read_entries(OPS.parent / "rules" / "tflite2onnx" / baseline.NAME)
    assert all(":" in entry for name in tried for entry in known[name].outcomes if entry != "-")


def test_only_operands_that_are_forms_without_a_file_are_excused() -> None:
    pack = loader.load(Options(rules=("onnx2tflite",)).stacked)
    excused = {one.name for one in list_subjects(pack) if one.tests and one.excuse}
    assert {"cancelled_grids", "rows_by_one_range"} <= excused
    assert "view_of_view" not in excused  # an operand may be a form, or any other view


#: outcomes of every kind
GOOD = "c171e8af:1/3"
WORDS = (GOOD, "-", "2#c171e8af:refused@00a1", "1#c171e8af:0/12:121b~1.960e+01;0000~1e+0@00a1", "c171e8af:1/0:a-b")


def test_each_outcome_is_a_line_of_words(tmp_path: Path) -> None:
    lines = baseline.merge(tmp_path / baseline.NAME, {"a": "1e10"}, {"a": WORDS[:3]}, ["a"]).splitlines()
    assert lines == [
        "a:",
        "  rule: '1e10'",
        "  tried: 2",
        "  refused: 1",
        "  fired: 1",
        "  cases:",
        "  - case c171e8af, fires, leaves 3",
        "  - nothing drawn",
        "  - case c171e8af, refused, file 00a1, after 2 refused draws",
    ]


@pytest.mark.parametrize(
    "text", ["a", "a: 1", "a: {rule: x}", "a: {rule: x, cases: [1]}", "a: [", "a: {rule: x, cases: [y]}"]
)
def test_what_is_no_record_is_told_of(text: str, tmp_path: Path) -> None:
    (tmp_path / baseline.NAME).write_text(text, encoding="utf-8")
    with pytest.raises(CallError, match="is no record of outcomes"):
        baseline.read_entries(tmp_path / baseline.NAME)


def test_every_rule_of_a_pack_that_is_recorded_has_its_cases_in_the_folder_of_the_pack() -> None:
    files = find_records(list_stacks(DEFAULT), DEFAULT)
    assert files["relu6"] == OPS.parent / "rules" / "tflite2onnx" / baseline.NAME
    assert files["layout.Transpose"] == OPS.parent / baseline.NAME
    for file in set(files.values()):
        assert baseline.read_entries(file).keys() == {name for name in files if files[name] == file}


def test_most_of_what_is_recorded_is_as_it_was_recorded() -> None:
    found = list_stacks(DEFAULT)
    files = find_records(found, DEFAULT)
    known = {name: entry for file in set(files.values()) for name, entry in baseline.read_entries(file).items()}
    old = baseline.list_changed(digest_all(found, files), known)
    assert len(old) <= len(files) // 10, "`rewrite fuzz --record` makes the record anew"


def test_what_is_written_is_read_and_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / baseline.NAME
    file.write_text(baseline.merge(file, {"a": "1", "b": "2"}, {"a": [GOOD], "b": []}, ["a", "b"]), encoding="utf-8")
    file.write_text(baseline.merge(file, {"a": "3", "on": "5"}, {"a": WORDS, "on": ()}, ["a", "on"]), encoding="utf-8")
    assert baseline.read_entries(file) == {"a": baseline.Entry("3", WORDS), "on": baseline.Entry("5")}
    assert baseline.list_changed({"a": "3", "c": "4", "on": "5"}, baseline.read_entries(file)) == {"c"}


def test_the_record_of_the_program_as_it_is_installed_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline.check_writable([baseline.HOME / baseline.NAME])
    monkeypatch.setattr(baseline, "HOME", tmp_path / "nnrewrite")
    installed = tmp_path / "nnrewrite" / "rules" / "uint8" / baseline.NAME
    with pytest.raises(CallError, match="the program's own rules in a clone alone; of packs of yours"):
        baseline.check_writable([tmp_path / baseline.NAME, installed])
    baseline.check_writable([tmp_path / baseline.NAME])


def test_rules_that_options_lay_over_others_are_tried_in_stacks_of_their_own() -> None:
    plain, exact, signed, safe, small = list_stacks(DEFAULT)
    assert [stack.exact for stack in (plain, exact, signed)] == [False, True, False]
    assert "conv_2d_8" in {trial.name for trial in plain.trials} | {trial.name for trial in exact.trials}
    assert [trial.name for trial in signed.trials] == ["signed"]
    assert safe.trials and not [trial.name for trial in safe.trials if "unsigned" not in trial.name]
    assert [trial.name for trial in small.trials] == ["weights_that_are_codes"]
    assert loader.load(exact.rules).files


def test_numbers_that_the_record_alone_knows_need_a_case_that_is_the_same() -> None:
    known = ("c171e8af:1/1:121b~1.960e+01", "8c90c390:1/6:121b~2.417e+01")
    assert baseline.explain_missing(("c171e8af:1/1:121b~1.960e+01", "11111111:1/6:121b~2.417e+01"), known) == ""
    assert "nothing else tells" in baseline.explain_missing(
        ("22222222:1/1:121b~1.960e+01", "11111111:1/6:121b~2.417e+01"), known
    )
    others = ("c171e8af:1/1", "8c90c390:1/6")
    assert baseline.explain_missing(("22222222:1/1", "11111111:1/6"), others) == ""


@pytest.mark.thorough
def test_what_changed_for_another_rule_set_alone_is_tried_there(monkeypatch: pytest.MonkeyPatch) -> None:
    known = baseline.read_entries

    def entries(file: Path) -> dict[str, baseline.Entry]:
        found = known(file)
        if file.parent.name == "onnx2tflite":
            found["conv_integer"] = baseline.Entry("of another day", found["conv_integer"].outcomes)
        return found

    monkeypatch.setattr(baseline, "read_entries", entries)
    plan = make_plan(DEFAULT)
    (other,) = (one for one in plan_others(plan) if one.options.rules == ("onnx2tflite",))
    assert "conv_integer" not in plan.changed
    assert "conv_integer" in [trial.name for trial in other.chosen]
    assert len(other.chosen) < len(other.stacks[0].trials) / 2
    assert not other.whole

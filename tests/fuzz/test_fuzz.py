"""Fuzzing draws the same for the same seed, finds what is wrong, makes it small, and saves what runs again."""

from __future__ import annotations

import ast
import os
import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from click.testing import CliRunner, Result
from nnrewrite.cli.dispatch import app

pytest.importorskip("ai_edge_litert")
pytest.importorskip("hypothesis")

from nnrewrite.conversion.options import DEFAULT, Options
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue, Dialect, OperatorSpec
from nnrewrite.engine.packs import loader
from nnrewrite.engine.rewrite import coverage
from nnrewrite.fuzz import baseline, results, search, snapshot
from nnrewrite.fuzz.cases import draw, draw_opset
from nnrewrite.fuzz.categories import SHUFFLE, Category
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.element_types import pick_type, read_admitted
from nnrewrite.fuzz.elements import make_grid
from nnrewrite.fuzz.failure_files import replay, save
from nnrewrite.fuzz.file_digest import digest_file
from nnrewrite.fuzz.finding import End, Finding, Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.quantization_parameters import StepQuantization
from nnrewrite.fuzz.random_graphs import NAME
from nnrewrite.fuzz.rule_sets import RuleSets, list_stacks
from nnrewrite.fuzz.runner import examine
from nnrewrite.fuzz.schedule import Interrupted, fuzz
from nnrewrite.fuzz.sketch import Case, Step, Value
from nnrewrite.fuzz.subjects import Subject, list_subjects
from nnrewrite.fuzz.tally import Tally
from nnrewrite.fuzz.turns import Budget, Wanted
from nnrewrite.fuzz.unknown import forget_extents
from nnrewrite.verify import Interpreter

pytestmark = pytest.mark.slow

PACK = OPS.parent / "rules" / "tflite2onnx"


def mutant(folder: Path, *changes: tuple[str, str, str]) -> tuple[str, ...]:
    """The pack, and over it one with copies of files in each of which something is changed."""
    target = folder / "pack"
    target.mkdir()
    texts = {file: (PACK / file).read_text(encoding="utf-8") for file, _, _ in changes}
    for file, before, after in changes:
        assert before in texts[file]
        texts[file] = texts[file].replace(before, after, 1)
    defined = {
        path.name: set(re.findall(r"^def (\w+)", path.read_text(), re.MULTILINE)) for path in PACK.glob("*.rules")
    }
    others = set[str]().union(*defined.values()).difference(*(defined[file] for file in texts))
    for file, text in texts.items():
        header = next(line for line in text.splitlines() if line.startswith("ruleset"))
        used = sorted(others.intersection(re.findall(r"\b(\w+)\(", text)))
        uses = f"\nuse tflite2onnx.{{{', '.join(used)}}}" if used else ""
        (target / file).write_text(text.replace(header, header + uses, 1), encoding="utf-8")
    return ("tflite2onnx", f"{target}")


def found(rules: tuple[str, ...], name: str) -> Subject:
    """The rule of a name, of several the one in the pack that lies over the others."""
    return [subject for subject in list_subjects(loader.load(rules)) if subject.name == name][-1]


def oracle(interpreter: Interpreter, rules: tuple[str, ...]) -> Oracle:
    return Oracle(interpreter, loader.load(rules).catalogue, rules)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], catch_exceptions=False, prog_name="rewrite")


# ---- choices ---------------------------------------------------------------------------------------------------------


def given(made: Sequence[int]) -> Choices:
    """Choices made again."""
    left = iter(made)
    return Choices(lambda low, high: next(left), free=False)


def test_the_same_seed_makes_the_same_choices() -> None:
    first, second, other = Choices.make_seeded(1), Choices.make_seeded(1), Choices.make_seeded(2)
    rolls = [[choices.draw_int(0, 1000) for _ in range(8)] for choices in (first, second, other)]
    assert rolls[0] == rolls[1] != rolls[2]


def test_choices_made_again_are_the_same() -> None:
    choices = Choices.make_seeded(3)
    rolled = [choices.draw_int(5, 90) for _ in range(4)]
    again = given(choices.made)
    assert [again.draw_int(5, 90) for _ in range(4)] == rolled


def test_a_choice_that_is_wanted_is_noted_as_if_it_had_come_by_chance() -> None:
    choices = Choices.make_seeded(4)
    wanted = [choices.draw_chance(5, True), choices.draw_chance(95, False), choices.draw_chance(5)]
    again = given(choices.made)
    assert [again.draw_chance(5), again.draw_chance(95), again.draw_chance(5)] == wanted == [True, False, wanted[2]]


# ---- searches --------------------------------------------------------------------------------------------------------


def roll(choices: Choices) -> Case:
    """A case that is told by numbers alone: so many steps at an opset."""
    return Case(f"{[choices.draw_int(0, 90) for _ in range(choices.draw_int(1, 9))]}", (), choices.draw_int(13, 25))


def large(case: Case) -> bool:
    return any(number >= 17 for number in ast.literal_eval(case.rule))


def test_a_search_ends_with_the_least_choices_that_fail() -> None:
    failed: list[Case] = []
    search.search(roll, lambda case: large(case) and not failed.append(case), 50, "0")
    assert failed[-1] == Case("[17]", (), 13)


def test_the_same_seed_tries_the_same_cases_and_none_is_the_simplest() -> None:
    tried: list[list[Case]] = [[], [], []]
    for seen, seed in zip(tried, "001", strict=True):
        search.search(roll, lambda case, seen=seen: bool(seen.append(case)), 4, seed)
    assert tried[0] == tried[1] != tried[2]
    assert [len(seen) for seen in tried] == [4, 4, 4]
    assert Case("[0]", (), 13) not in [case for seen in tried for case in seen]


@pytest.mark.filterwarnings("error")
def test_choices_of_a_seed_that_failed_are_made_small() -> None:
    choices, failed = Choices.make_seeded("x"), []
    first = roll(choices)
    assert large(first)
    search.reduce(choices.made, roll, lambda case: large(case) and not failed.append(case))
    assert failed[0] == first
    assert failed[-1] == Case("[17]", (), 13)


def test_what_is_kept_is_tried_again_until_it_passes(tmp_path: Path) -> None:
    tried: list[Case] = []
    search.keep(tmp_path, "rolls", [0, 17, 0])
    for name, fails in (("rolls", True), ("others", True), ("rolls", False), ("rolls", False)):
        search.repeat(tmp_path, name, roll, lambda case, fails=fails: tried.append(case) or fails)
    assert set(tried) == {Case("[17]", (), 13)}
    before = len(tried)
    search.repeat(tmp_path, "rolls", roll, lambda case: bool(tried.append(case)))
    assert len(tried) == before


# ---- cases -----------------------------------------------------------------------------------------------------------


def test_the_same_choices_draw_the_same_case(interpreter: Interpreter) -> None:
    rules = ("tflite2onnx",)
    subject, lab = found(rules, "conv_2d"), oracle(interpreter, rules)
    cases: list[Case] = []
    choices = Choices.make_seeded("same")
    while len(cases) < 1:
        try:
            cases.append(draw(choices, subject, lab))
        except Rejected:
            choices = Choices.make_seeded(f"{len(choices.made)}")
    again = draw(given(choices.made), subject, lab)
    assert again.describe() == cases[0].describe()
    for one, other in zip(cases[0].inputs, again.inputs, strict=True):
        assert np.array_equal(one.content, other.content)


def test_each_option_that_a_test_names_is_left_out_of_a_fixed_case(interpreter: Interpreter) -> None:
    rules = ("tflite2onnx",)
    subject, lab = found(rules, "local_response_normalization"), oracle(interpreter, rules)
    said = [
        draw(Choices.make_seeded(f"fixed {turn}", turn=turn), subject, lab).steps[0].options.keys() for turn in range(8)
    ]
    assert said[:3] == [{"radius", "bias", "alpha", "beta"}] * 3
    assert [said[0] - one for one in said[3:]] == [{"radius"}, {"bias"}, {"alpha"}, {"beta"}, set()]


def test_draws_vary_types_options_and_what_is_constant(interpreter: Interpreter) -> None:
    rules = ("tflite2onnx",)
    subject, lab = found(rules, "conv_2d"), oracle(interpreter, rules)
    drawn: list[Case] = []
    for seed in range(60):
        try:
            drawn.append(draw(Choices.make_seeded(seed), subject, lab))
        except Rejected:
            continue
    steps = [case.steps[0] for case in drawn]
    assert {ir.DataType.FLOAT, ir.DataType.INT8} <= {step.operands[0].dtype for step in steps if step.operands[0]}
    assert {step.options.get("padding", "SAME") for step in steps} == {"SAME", "VALID"}
    assert len({step.operands[1].constant for step in steps if step.operands[1]}) == 2
    assert len(drawn) > 35


def test_files_are_drawn_that_tell_none_of_the_extents_of_an_operand_and_some_of_them(catalogue: Catalogue) -> None:
    four = Value("x", ir.DataType.FLOAT, np.zeros((1, 2, 3, 4), np.float32))
    drawn = [forget_extents(Choices.make_seeded(seed), four, True) for seed in range(60)]
    assert {(), (3,), (1, 2, 3), (0, 1, 3)} <= {value.told for value in drawn}
    assert all(value.open for value in drawn)
    assert not forget_extents(Choices.make_seeded(0), replace(four, constant=True), True).open
    step = Step(catalogue.find_dialect("tflite").find_operator("ABS"), (replace(four, open=True, told=(3,)),), {})
    assert step.describe() == "ABS(float[1?, 2?, 3?, 4])"


def test_results_that_nobody_knows_are_of_the_type_and_shape_that_a_test_says() -> None:
    iota = found(("tflite2onnx",), "stablehlo_iota")
    drawn = [snapshot.draw(Choices.make_seeded(seed), iota).unknown[0] for seed in range(12)]
    assert {(blank.dtype, blank.shape) for blank in drawn} == {
        (ir.DataType.INT32, (2, 3, 4)),
        (ir.DataType.FLOAT, (3, 2)),
    }


def test_what_the_interpreter_refuses_is_counted_and_no_failure(interpreter: Interpreter) -> None:
    rules = ("tflite2onnx",)
    tally = examine(found(rules, "slice_dynamic"), oracle(interpreter, rules), 20)
    assert tally.rejected
    assert tally.failure is None
    assert 0 < tally.acceptance < 1


# ---- mistakes --------------------------------------------------------------------------------------------------------

MUTANTS = {
    "a pad on the other side": (
        "convolution.rules",
        "[total(z...) // 2 for z in zip(size, k, s, d)] ++",
        "[ceil_div(total(z...), 2) for z in zip(size, k, s, d)] ++",
        "conv_2d",
    ),
    "an epsilon": ("reduction.rules", "1.0e-6", "1.0e-3", "l2_normalization"),
    "a bound": ("activation.rules", "y = Clip(x, 0.0, 6.0)", "y = Clip(x, 0.0, 6.5)", "relu6"),
    "an axis": ("activation.rules", "x * beta) {axis: -1}", "x * beta) {axis: 1}", "softmax"),
    "strides swapped": (
        "pooling.rules",
        "let s = [stride_h, stride_w]",
        "let s = [stride_w, stride_h]",
        "pool_2d.MAX_POOL_2D",
    ),
    "a comparison": ("elementwise.rules", "reached = GreaterOrEqual(", "reached = Greater(", "bucketize"),
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The pack, and over it one in which each of several rules has a mistake."""
    return mutant(tmp_path_factory.mktemp("mistaken"), *(change[:3] for change in MUTANTS.values()))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_a_rule_is_found(name: str, mistaken: tuple[str, ...], interpreter: Interpreter) -> None:
    *_, rule = MUTANTS[name]
    tally = examine(found(mistaken, rule), oracle(interpreter, mistaken), 60, shrinking=1.0)
    assert tally.failure is not None
    case, finding = tally.failure
    assert finding.end is End.FAILED
    assert len(case.steps) == 1
    assert rule in tally.explain_problem()


@pytest.mark.thorough
def test_a_failure_is_saved_and_runs_again_from_its_files(tmp_path: Path) -> None:
    rules = mutant(tmp_path, MUTANTS["a bound"][:3])
    out = tmp_path / "failures"
    command = ["fuzz", *(word for name in rules for word in ("--rules", name))]
    run = call(*command, "--rule", "relu6", "--examples", "20", "--jobs", "1", "--out", f"{out}")
    assert run.exit_code == 1
    assert "activation.rules:" in run.stderr
    (model,) = out.glob("relu6-*.tflite")
    assert f"--replay {model}" in model.with_suffix(".md").read_text(encoding="utf-8")
    with np.load(model.with_suffix(".npz")) as saved:
        assert not np.array_equal(saved["expected_0"], saved["actual_0"])
    wrong = call(*command, "--replay", f"{model}")
    assert (wrong.exit_code, "different" in wrong.stdout) == (1, True)
    assert call("fuzz", "--replay", f"{model}").exit_code == 0


def test_texts_of_a_failure_are_saved_without_a_pickle_and_read_as_they_are(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    texts = np.array([[b"ab", b""], ["\u00fc".encode(), b"c\0"]], dtype=object)
    x, y = (Value(name, ir.DataType.STRING, texts) for name in "xy")
    case = Case("same", (Step(catalogue.find_dialect("onnx").operators["Identity"], (x,), {}, (y,)),), 18)
    stack = RuleSets(("onnx2onnx",), loader.load(("onnx2onnx",)), False, ())
    report, _ = save(case, Finding(End.FAILED, "differs"), tmp_path, {}, True, stack, Options(rules=("onnx2onnx",)))
    with np.load(report.with_suffix(".npz")) as saved:
        assert saved["input_0"].tobytes() == "ab\u00fcc\0".encode()
    assert replay(report.with_suffix(".onnx"), ("onnx2onnx",)).passed
    for content in (b"", b"PK\3\4", pickle.dumps(3)):
        report.with_suffix(".npz").write_bytes(content)
        with pytest.raises(VerificationError, match="npz: no inputs of a saved failure: "):
            replay(report.with_suffix(".onnx"), ("onnx2onnx",))


def write_own(folder: Path, limit: str, meant: bool) -> str:
    """A pack about an operator of ONNX that no runtime has, with what it means."""
    folder.mkdir()
    (folder / "ops.yaml").write_text(
        "onnx: {operators: {Mine: {domain: com.own, operands: [x], results: [y], options: {limit: [float, 6.0]}}}}\n"
    )
    rule = f"rule mine stage normalize {{ y = Mine(x) {{limit}} => y = Clip(x, 0.0, {limit})"
    test = "test x: f32[2, 3..5] for limit in [0.5, 6.0] }"
    meaning = "rule mine_means stage meaning { y = Mine(x) {limit} => y = Min(Relu(x), limit) }\n" if meant else ""
    (folder / "a.rules").write_text(f"ruleset own : onnx -> onnx opset 13..28\n{rule} {test}\n{meaning}")
    return f"{folder}"


@pytest.mark.thorough
def test_rules_about_operators_that_no_runtime_of_onnx_has_are_held_against_what_these_mean(tmp_path: Path) -> None:
    right, wrong, unsaid = (
        write_own(tmp_path / name, limit, name != "unsaid")
        for name, limit in (("right", "limit"), ("wrong", "limit + 0.5"), ("unsaid", "limit"))
    )
    for below in ((), ("--rules", "onnx2tflite")):
        command = ["fuzz", *below, "--jobs", "1", "--examples", "8", "--rule", "mine", "--out", f"{tmp_path / 'out'}"]
        assert call(*command, "--rules", right).exit_code == 0
        failed = call(*command, "--rules", wrong)
        assert failed.exit_code == 1 and "off by" in failed.stderr
        assert "say in a rule of `stage meaning` what it means" in call(*command, "--rules", unsaid).stderr
    (model,) = (path for path in (tmp_path / "out").glob("mine-*.onnx") if "meaning" not in path.name)
    assert model.with_suffix(".meaning.onnx").exists()
    again = ["fuzz", "--rules", "onnx2tflite", "--replay", f"{model}", "--rules"]
    assert (call(*again, wrong).exit_code, call(*again, right).exit_code) == (1, 0)


@pytest.mark.parametrize(
    ("finding", "command"),
    [
        (Finding(End.FAILED, "off by 1"), "--replay {model}"),
        (Finding(End.FAILED, "5 operators are left", most=4, recorded=True), "--replay {model}"),
        (Finding(End.FAILED, "the rule does not fire", recorded=True), "--rule softmax"),
    ],
)
def test_a_failure_that_only_the_record_tells_runs_again_with_its_rule(
    finding: Finding, command: str, catalogue: Catalogue, tmp_path: Path
) -> None:
    x, y = (Value(name, ir.DataType.FLOAT, np.ones((2, 3), np.float32)) for name in "xy")
    case = Case("softmax", (Step(catalogue.find_dialect("tflite").operators["SOFTMAX"], (x,), {"beta": 0.5}, (y,)),))
    stack = RuleSets(DEFAULT.stacked, loader.load(DEFAULT.stacked), False, ())
    report, _ = save(case, finding, tmp_path, {}, True, stack, DEFAULT)
    said = command.format(model=report.with_suffix(".tflite"))
    assert f"    rewrite fuzz {said}\n" in report.read_text(encoding="utf-8")
    assert report.with_suffix(".tflite").exists()


@pytest.mark.parametrize("constant", [True, False])
def test_a_bias_without_a_scale_counts_products_of_the_scales_beside_it(
    interpreter: Interpreter, constant: bool
) -> None:
    here = oracle(interpreter, ("tflite2onnx", "kernels"))
    spec = here.catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"]
    generator = np.random.default_rng(0)
    x = Value("x", ir.DataType.UINT8, generator.integers(0, 255, (2, 4)).astype(np.uint8), False, make_grid(0.5, 128))
    w = Value("w", ir.DataType.UINT8, generator.integers(1, 255, (3, 4)).astype(np.uint8), True, make_grid(0.25, 128))
    b = Value("b", ir.DataType.INT32, generator.integers(-3000, 3000, 3).astype(np.int32), constant)
    step = here.settle(Step(spec, (x, w, b), {}), [1], [ir.DataType.UINT8], lambda dtype: [make_grid(50.0, 128)])
    finding = here.judge(Case("fully_connected", (step,), 18))
    assert finding.end is End.PASSED, finding.reason


def test_rules_over_the_target_alone_are_fuzzed_without_graphs_of_the_source() -> None:
    command = [sys.executable, "-m", "nnrewrite", "fuzz", "--rules", "onnx", "--rule", "gru_step", "--examples", "8"]
    run = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True, check=False)
    assert (run.returncode, "several operators" in run.stdout) == (0, False), run.stderr
    assert "gru_step" in run.stdout


# ---- files -----------------------------------------------------------------------------------------------------------


def test_the_imprint_of_a_case_is_that_of_what_its_file_says_but_for_numbers(catalogue: Catalogue) -> None:
    dialect = catalogue.find_dialect("tflite")
    spec = dialect.operators["SOFTMAX"]
    tables = {**dialect.facts.tables, "SoftmaxOptions": {"beta": (1, "float")}}
    moved = replace(dialect, facts=replace(dialect.facts, tables=tables))

    def marked(fill: float = 1.0, beta: float = 0.5, dialect: Dialect = dialect, spec: OperatorSpec = spec) -> str:
        x, y = (Value(name, ir.DataType.FLOAT, np.full((2, 3), fill, np.float32)) for name in "xy")
        case = Case("softmax", (Step(spec, (replace(x, constant=True),), {"beta": beta}, (y,)),))
        known = replace(dialect, operators={**dialect.operators, "SOFTMAX": spec})
        return digest_file(case, Catalogue({**catalogue.dialects, "tflite": known}))

    assert marked() == marked(fill=2.0)
    assert len({marked(), marked(beta=0.25), marked(dialect=moved), marked(spec=replace(spec, code=7))}) == 4


def test_the_imprint_tells_what_files_mean_that_leave_options_out(catalogue: Catalogue) -> None:
    dialect = catalogue.find_dialect("tflite")
    spec = dialect.operators["SOFTMAX"]
    said = replace(spec, options={"beta": replace(spec.options["beta"], default=1.0)})
    other = replace(dialect, operators={**dialect.operators, "SOFTMAX": said})
    x, y = (Value(name, ir.DataType.FLOAT, np.ones((2, 3), np.float32)) for name in "xy")
    case = Case("softmax", (Step(spec, (x,), {"beta": 0.5}, (y,)),))
    assert digest_file(case, Catalogue({**catalogue.dialects, "tflite": other})) != digest_file(case, catalogue)


def test_the_imprint_of_codes_tells_where_they_become_real_numbers(catalogue: Catalogue) -> None:
    dialect = catalogue.find_dialect("tflite")
    spec = dialect.operators["REDUCE_MIN"]
    computed = replace(spec, facts=replace(spec.facts, quantization=None))
    others = Catalogue(
        {**catalogue.dialects, "tflite": replace(dialect, operators={**dialect.operators, "REDUCE_MIN": computed})}
    )

    def case(grid: Quantization | None) -> Case:
        x, y = (Value(name, ir.DataType.INT8, np.ones((2, 3), np.int8), grid=grid) for name in "xy")
        return Case("reduce", (Step(spec, (x,), {}, (y,)),))

    codes, integers = case(make_grid(0.5, 3)), case(None)
    assert (
        digest_file(codes, others) != digest_file(codes, catalogue) == digest_file(case(make_grid(0.25, 7)), catalogue)
    )
    assert digest_file(integers, others) == digest_file(integers, catalogue)


def test_the_imprint_holds_scales_that_the_operators_entry_names(catalogue: Catalogue) -> None:
    spec = catalogue.find_dialect("tflite").operators["TANH"]

    def case(grid: Quantization) -> Case:
        x, y = (
            Value(name, ir.DataType.INT8, np.ones((2, 3), np.int8), grid=one)
            for name, one in (("x", make_grid(0.5, 3)), ("y", grid))
        )
        return Case("tanh", (Step(spec, (x,), {}, (y,)),))

    assert digest_file(case(make_grid(1 / 128, 0)), catalogue) != digest_file(case(make_grid(1 / 64, 0)), catalogue)


def test_each_second_of_the_fixed_cases_has_another_type_the_quantized_ones_in_front(catalogue: Catalogue) -> None:
    kinds = read_admitted(catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"])
    others = ["f16", "qi8", "qu8"]
    drawn = [pick_type(Choices.make_seeded("x", turn=turn), kinds, 0, "f32", others) for turn in range(8)]
    assert drawn[::2] == ["f32"] * 4
    assert drawn[1::2] == ["qi8", "qu8", "f16", "qi8"]


WRONG = """ruleset mine : tflite -> onnx opset 13..25

rule lower {
  y = RELU6(x)
  => y = Clip(x, 0.0, 1.0)
  test x: f32[2, 3]
}
"""


@pytest.mark.thorough
def test_a_wrong_rule_of_ones_own_fails_and_its_failure_runs_again_from_any_folder(tmp_path: Path) -> None:
    pack = tmp_path / "my rules"
    pack.mkdir()
    (pack / "mine.rules").write_text(WRONG, encoding="utf-8")
    command = [sys.executable, "-m", "nnrewrite", "fuzz", "--rules", "tflite2onnx", "--rules", pack.name]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    assert "error: lower (my rules/mine.rules:3:6): RELU6_0: off by " in run.stderr
    said = next(line for line in run.stderr.splitlines() if "run it again: " in line)
    words = shlex.split(said.partition(": rewrite ")[2])
    assert words[:5] == ["fuzz", "--rules", "tflite2onnx", "--rules", f"{pack}"]
    again = subprocess.run([sys.executable, "-m", "nnrewrite", *words], capture_output=True, text=True, check=False)
    assert (again.returncode, "RELU6_0: off by " in again.stdout) == (1, True), again.stderr


#: a rule in the place of the program's, by the same name
OWN = WRONG.replace("rule lower", "rule relu6").replace("1.0", "6.0")


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack that the working folder has, with a rule in the place of one of the program's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.rules").write_text(OWN, encoding="utf-8")
    return tmp_path / "mine"


@pytest.mark.thorough
def test_packs_of_ones_own_are_tried_and_recorded_beside_the_programs(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "HOME", tmp_path / "the program's")  # which is neither read nor written
    folder = baseline.HOME / "rules" / "tflite2onnx"
    folder.mkdir(parents=True)
    (folder / baseline.NAME).write_text("no record", encoding="utf-8")
    asked = ("fuzz", "--rules", "tflite2onnx", "--rules", "mine", "--jobs", "1", "--examples", "4")
    run = call(*asked)
    assert (run.exit_code, run.stderr) == (0, "")
    assert {line.split()[0] for line in run.stdout.splitlines()[1:-1]} <= {"relu6", "several"}
    assert [file.name for file in pack.iterdir()] == ["mine.rules"]
    assert call(*asked, "--record").exit_code == 0
    assert list(baseline.read_entries(pack / baseline.NAME)) == ["relu6"]
    assert call(*asked).exit_code == 0
    more = OWN.replace("Clip(x, 0.0, 6.0)", "Sub(Relu(x), Relu(Sub(x, 6.0)))")
    (pack / "mine.rules").write_text(more, encoding="utf-8")
    run = call(*asked)
    assert run.exit_code == 1
    assert "4 operators are left, where 1 were when that was recorded" in run.stderr
    assert (folder / baseline.NAME).read_text(encoding="utf-8") == "no record"


@pytest.mark.thorough
def test_a_rule_of_ones_own_that_never_fires_is_told_of_where_one_of_its_name_does(pack: Path) -> None:
    (pack / "mine.rules").write_text(OWN.replace("  =>", "  where rank(x) < 0\n  =>"), encoding="utf-8")
    run = call("fuzz", "--rules", "tflite2onnx", "--rules", "mine", "--jobs", "1", "--examples", "4")
    assert run.exit_code == 1
    assert "relu6 (mine/mine.rules:3:6): does not fire in " in run.stderr


def test_rules_of_one_name_have_patterns_of_their_own(pack: Path) -> None:
    other = OWN.replace("y = RELU6(x)", "y = ELU(x)").replace("=>", "where opset >= 17\n  =>")
    (pack / "mine.rules").write_text(other, encoding="utf-8")
    theirs, own = (one for one in list_subjects(loader.load(("tflite2onnx", "mine"))) if one.name == "relu6")
    assert (theirs.list_operators(), own.list_operators()) == ({"RELU6"}, {"ELU"})
    assert (theirs.turning, own.turning, own.make_stand_in("relu6", own.span).turning) == ((), (16, 17), ())


@pytest.mark.thorough
def test_the_coverage_of_packs_of_ones_own_is_of_their_rules(pack: Path) -> None:
    elu = OWN.replace("relu6", "elu").replace("RELU6(x)", "ELU(x)").replace("Clip(x, 0.0, 6.0)", "Elu(x)")
    (pack / "more.rules").write_text(elu, encoding="utf-8")
    asked = ["fuzz", "--rules", "tflite2onnx", "--rules", "mine", "--rule", "relu6", "--examples", "4", "--jobs", "1"]
    environment = {**os.environ, coverage.FOLDER: "noted"}
    run = subprocess.run([sys.executable, "-m", "nnrewrite", *asked], check=False, env=environment)
    assert run.returncode == 0
    missing = ["mine/more.rules:3: rule never fired: elu", "mine/more.rules:5: template never used: elu"]
    counts = "1 of 2 rules fired (50.0 %), 1 of 2 templates were used"
    for rules in (("mine",), ("tflite2onnx", "mine")):
        told = call("coverage", "noted", *(word for name in rules for word in ("--rules", name)))
        assert (told.exit_code, told.stdout.splitlines()) == (1, [*missing, counts])
    told = call("coverage", "noted", "--rules", f"{pack}")
    assert told.stdout.splitlines()[-1] == counts


def write_repeated(folder: Path, meaning: str = "") -> str:
    """A pack about an operator of ONNX with a graph, which is put in its place as often as an option says."""
    folder.mkdir()
    (folder / "ops.yaml").write_text(
        "onnx:\n  operators:\n"
        "    Again: {domain: com.own, operands: [x], results: [y], options: {times: [int64, 1], body: [subgraph]}}\n"
    )
    (folder / "a.rules").write_text(
        "ruleset own : onnx -> onnx opset 13..28\n"
        "rule again stage normalize { y = Again(x) {times, body: f} => y = fold(v = x for _i in range(times): f(v))\n"
        f"  test x: f32[2, 3] for times in [1, 3], f in [['Relu'], ['Sin', 'Neg']] }}\n{meaning}".replace("'", '"')
    )
    return f"{folder}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meaning", "said"),
    [
        ("=> y = fold(v = x for _i in range(times): f(v))", ""),
        (
            '=> y = Loop(array(times, "i64"), none, x) {body: graph(_i, go, v) { w = f(v)  yield go, w }}',
            "what Again means has Loop, which has graphs of its own",
        ),
        ("", "say in a rule of `stage meaning` what it means"),
    ],
)
@pytest.mark.thorough
def test_an_operator_with_a_graph_is_tried(meaning: str, said: str, tmp_path: Path) -> None:
    rule = f"rule again_means stage meaning {{ y = Again(x) {{times, body: f}} {meaning} }}" if meaning else ""
    pack = write_repeated(tmp_path / "own", rule)
    run = call("fuzz", "--rules", pack, "--examples", "6", "--jobs", "1", "--out", f"{tmp_path / 'out'}")
    assert (run.exit_code, said in run.stderr) == (int(bool(said)), True), run.stderr


def test_a_graph_that_is_put_in_several_times_has_nodes_of_several_names(tmp_path: Path) -> None:
    pack, info = write_repeated(tmp_path / "own"), onnx.helper.make_tensor_value_info
    ends = [info(name, onnx.TensorProto.FLOAT, [2]) for name in "abxy"]
    inner = [onnx.helper.make_node("Neg", ["a"], ["n"], name="n"), onnx.helper.make_node("Sin", ["n"], ["b"], name="s")]
    body = onnx.helper.make_graph(inner, "body", ends[:1], ends[1:2])
    node = onnx.helper.make_node("Again", ["x"], ["y"], domain="com.own", times=3, body=body)
    graph = onnx.helper.make_graph([node], "main", ends[2:3], ends[3:])
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.own", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    made = nnrewrite.convert(model, rules=("onnx2onnx", pack))
    assert [one.name for one in made.graph.node] == ["n_1", "s_1", "n_2", "s_2", "n_3", "s_3"]
    (found,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": np.ones(2, np.float32)})
    np.testing.assert_allclose(found, np.sin(-np.sin(-np.sin(-np.ones(2)))), rtol=1e-6)


def test_a_target_is_tried_with_its_own_rules(tmp_path: Path) -> None:
    header = WRONG.replace("tflite -> onnx", "onnx -> onnx").partition("rule lower")[0]
    rule = "rule no_relu stage simplify { y = Relu(x) => y = Max(x, 0.0) test x: f32[2, 3] }"
    (tmp_path / "mine.rules").write_text(header + rule, encoding="utf-8")
    run = call("fuzz", "--target", f"{tmp_path}", "--examples", "4", "--jobs", "1")
    assert run.exit_code == 0
    assert [line.split()[:2] for line in run.stdout.splitlines()[1:-1]] == [["no_relu", "4"]]


def test_a_target_of_another_dialect_is_tried_with_rules_within_it(tmp_path: Path) -> None:
    header = "ruleset mine : tflite -> tflite opset 13..28\n"
    rule = "rule no_relu stage tune { y = RELU(x) => y = MAXIMUM(x, 0.0) test x: f32[2, 3] }"
    (tmp_path / "mine.rules").write_text(header + rule, encoding="utf-8")
    run = call("fuzz", "--target", f"{tmp_path}", "--examples", "4", "--jobs", "1", "--out", f"{tmp_path / 'out'}")
    assert run.exit_code == 0, run.stderr
    assert [line.split()[:2] for line in run.stdout.splitlines()[1:-1]] == [["no_relu", "4"]]


def test_a_rule_that_is_called_like_another_is_told_of_it(tmp_path: Path) -> None:
    header = "ruleset mine : tflite -> tflite opset 13..28\n"
    rule = "rule weights_of_half stage tune { y = RELU(x) => y = MAXIMUM(x, 0.0) test x: f32[2, 3] }"
    (tmp_path / "mine.rules").write_text(header + rule, encoding="utf-8")
    run = call("fuzz", "--rules", f"{tmp_path}", "--examples", "4", "--jobs", "1", "--out", f"{tmp_path / 'out'}")
    assert run.exit_code == 1
    assert "the rule of this name at litert/weights.rules:" in run.stderr


def test_a_target_is_tried_at_the_opset_that_it_sets(tmp_path: Path) -> None:
    header = WRONG.replace("tflite -> onnx", "onnx -> onnx").partition("rule lower")[0]
    rule = "rule no_relu stage simplify { y = Relu(x) => y = Max(x, 0.5) test x: f32[2, 3] }"
    (tmp_path / "mine.rules").write_text(header + rule, encoding="utf-8")
    (tmp_path / "target.yaml").write_text("options: {opset: 16}", encoding="utf-8")
    (stack,) = list_stacks(Options(target=f"{tmp_path}"))
    subject = next(trial for trial in stack.trials if trial.name == "no_relu")
    assert isinstance(subject, Subject)
    assert stack.opset == 16
    drawn = [draw_opset(Choices.make_seeded(f"{n}"), subject, stack.opset) for n in range(40)]
    assert 25 < drawn.count(16) < 40
    run = call("fuzz", "--target", f"{tmp_path}", "--examples", "4", "--jobs", "1", "--out", f"{tmp_path / 'out'}")
    assert (run.exit_code, "at opset 16" in run.stderr) == (1, True)


@pytest.mark.thorough
def test_rules_of_packs_of_ones_own_have_a_turn_whatever_the_time(pack: Path) -> None:
    rule = OWN.partition("\n\n")[2]
    more = [rule.replace("relu6", f"relu6_{n}").replace("=>", f"where rank(x) < {n}\n  =>") for n in range(3, 6)]
    rules = "".join([OWN.removesuffix(rule), *more, rule])
    (pack / "mine.rules").write_text(rules, encoding="utf-8")
    (stack,) = list_stacks(Options(rules=("tflite2onnx", "mine")))
    chosen = [trial for trial in stack.trials if trial.name in stack.own]
    tallies = fuzz([stack], Wanted(chosen, graphs=True, reach=True), Budget(8, 0, 1), lambda tally: None)
    assert len(chosen) == 4
    assert all(tallies[trial.name].tried >= 4 for trial in chosen)


@pytest.mark.thorough
def test_graphs_are_drawn_about_rules_that_an_option_lays_over_others() -> None:
    found_stacks = list_stacks(Options())
    chosen = [trial for stack in found_stacks for trial in stack.trials if trial.name == "quantize_away"]
    assert chosen[0] not in found_stacks[0].trials
    tallies = fuzz(found_stacks, Wanted(chosen, graphs=True, reach=True), Budget(8, 20, 1), lambda tally: None)
    assert tallies[NAME].tried > 0
    assert not [tally.explain_problem() for tally in tallies.values() if tally.explain_problem()]


def test_who_interrupts_it_has_what_came_of_it_until_then() -> None:
    stack = list_stacks(Options(rules=("onnx",)))[0]
    chosen = [trial for trial in stack.trials if trial.name == "gru_step"]

    def report(tally: Tally) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as interrupted:
        fuzz([stack], Wanted(chosen), Budget(8, 60, 1), report)
    assert interrupted.value.tallies["gru_step"].tried == 4


def change_entry(dialect: Dialect, operator: str, fact: dict[str, Any]) -> Dialect:
    """A dialect whose entry of an operator says something else."""
    spec = dialect.operators[operator]
    return replace(dialect, operators={**dialect.operators, operator: replace(spec, facts=replace(spec.facts, **fact))})


@pytest.mark.parametrize(
    ("operator", "fact", "said"),
    [
        ("Gemm", {"letters": {"A": "mk", "B": "kn", "C": "nm", "Y": "mn"}}, "elements moved along axis"),
        ("MatMul", {"letters": {"A": "km", "B": "kn", "Y": "mn"}}, "elements moved along axis"),
        ("Concat", {"remap": {"axis": "axis"}, "joins": None}, ""),
    ],
)
def test_what_an_entry_says_of_the_order_of_elements_along_an_axis_is_tried(
    interpreter: Interpreter, catalogue: Catalogue, operator: str, fact: dict[str, Any], said: str
) -> None:
    dialect = catalogue.find_dialect("onnx")
    other = change_entry(dialect, operator, fact)
    here = oracle(interpreter, ("tflite2onnx",))
    right, wrong = (examine(Category(operator, one, (13, 21), SHUFFLE), here, 12) for one in (dialect, other))
    assert (right.explain_problem(), right.passed > 5) == ("", True)
    assert said in wrong.explain_problem() if said else wrong.passed < right.passed


@pytest.mark.parametrize(
    ("operator", "fact", "said"),
    [
        ("REVERSE_V2", {"adjacent": None}, "Non-contiguous"),
        ("ARG_MAX", {"removes": None}, ""),
        ("CONCATENATION", {"remap": {}}, "axes arranged as"),
        ("SOFTMAX", {"layout": "transparent", "fixed": ()}, "axes arranged as"),
        ("SOFTMAX", {"fixed": (0,)}, "axes arranged as"),
    ],
)
def test_what_an_entry_of_tflite_says_of_axes_is_tried_in_the_interpreter(
    interpreter: Interpreter, catalogue: Catalogue, operator: str, fact: dict[str, Any], said: str
) -> None:
    dialect = catalogue.find_dialect("tflite")
    spec, other = dialect.operators[operator], change_entry(dialect, operator, fact)
    here = oracle(interpreter, ("tflite2onnx",))
    right, wrong = (examine(Category(operator, one, (13, 21)), here, 24) for one in (dialect, other))
    movable = spec.facts.layout in ("transparent", "attribute") or bool(spec.facts.fixed)
    assert (right.explain_problem(), right.passed > 5) == ("", movable)
    assert said in wrong.explain_problem() if said else wrong.passed < right.passed


def test_what_a_cut_off_leaves_of_large_sums_may_be_off_as_their_last_digits_are(interpreter: Interpreter) -> None:
    here = oracle(interpreter, ("tflite2onnx", "kernels"))
    spec = here.catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"]
    generator = np.random.default_rng(0)
    x, w = (
        Value(name, ir.DataType.FLOAT, generator.normal(0, scale, (extent, 384)).astype(np.float32))
        for name, scale, extent in (("x", 80, 120), ("w", 2, 160))
    )

    def passes(x: Value, by: float) -> bool:
        drawn = Step(spec, (x, w, None), {"fused_activation_function": "RELU6"})
        step = here.settle(drawn, [1], [ir.DataType.FLOAT], lambda dtype: [])
        found = step.results[0].content
        return here._is_loose(
            Case("fully_connected", (step,)), [np.where(found % 6 == 0, found, found + np.float32(by))]
        )

    small = replace(x, content=x.content / 4096)
    assert [passes(x, by) for by in (0.0005, 0.0015, 0.02)] == [True, True, False]
    assert [passes(small, by) for by in (0.00005, 0.0015)] == [True, False]


def test_a_number_halfway_between_two_codes_of_a_kernels_own_may_go_to_either(interpreter: Interpreter) -> None:
    here = oracle(interpreter, ("tflite2onnx",))
    spec = here.catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"]
    w = Value("w", ir.DataType.INT8, np.full((3, 8), 100, np.int8), True, make_grid(0.5, 0))
    codes = np.array([127, -127, 3, 7, 11, 40, 45, -20], np.float32)

    def passes(offset: float, by: float) -> bool:
        x = Value("x", ir.DataType.FLOAT, (codes + np.float32(offset) * (np.abs(codes) < 50)).reshape(1, 8))
        step = here.settle(Step(spec, (x, w, None), {}), [1], [ir.DataType.FLOAT], lambda dtype: [])
        return here._is_loose(Case("fully_connected", (step,)), [step.results[0].content + np.float32(by)])

    assert [passes(0.5, by) for by in (50, 5000)] == [True, False]
    assert not passes(0.25, 50)


def test_last_digits_excuse_neither_another_whole_number_nor_other_codes(interpreter: Interpreter) -> None:
    here = oracle(interpreter, ("tflite2onnx",))
    ops = here.catalogue.find_dialect("tflite").operators
    x = Value("x", ir.DataType.FLOAT, np.array([0.5, 1.5, 2.5, -0.5], np.float32))
    step = here.settle(Step(ops["ROUND"], (x,), {}), [1], [ir.DataType.FLOAT], lambda dtype: [])
    assert not here._is_loose(Case("round", (step,)), [step.results[0].content + np.float32(1)])
    y = Value("y", ir.DataType.INT8, np.arange(4, dtype=np.int8), False, make_grid(0.5, 0))
    step = here.settle(Step(ops["ABS"], (y,), {}), [1], [ir.DataType.INT8], lambda dtype: [make_grid(0.5, 0)])
    assert not here._is_loose(Case("abs", (step,)), [step.results[0].content])


@pytest.mark.parametrize(
    ("operator", "scale", "takes"), [("LESS", 0.99, True), ("LESS", 1.0, False), ("ADD", 32.0, True)]
)
def test_a_value_of_a_scale_that_kernels_are_wrong_about_is_not_drawn(
    catalogue: Catalogue, operator: str, scale: float, takes: bool
) -> None:
    quantities = StepQuantization(Choices.make_seeded(0), catalogue.find_dialect("tflite").operators[operator])
    value = Value("x", ir.DataType.INT8, np.zeros(3, np.int8), grid=make_grid(scale, 0))
    if takes:
        quantities.take(1, value)
    else:
        with pytest.raises(Rejected, match="of the scale 1"):
            quantities.take(1, value)


def test_no_result_is_tried_of_the_type_that_only_weights_have(catalogue: Catalogue) -> None:
    spec = catalogue.find_dialect("tflite").operators["FULLY_CONNECTED"]
    x, w = (
        Value("x", dtype, np.zeros((2, 2), dtype.numpy()), grid=make_grid(0.5, 0))
        for dtype in (ir.DataType.INT16, ir.DataType.INT8)
    )
    subject = found(("tflite2onnx",), "fully_connected")
    tried = results.list_types(Choices.make_seeded(0), subject, Step(spec, (x, w), {}), read_admitted(spec))
    assert (tried[0], ir.DataType.INT8 in tried) == (ir.DataType.INT16, False)


def test_the_type_that_an_option_names_is_tried_first_as_the_result(catalogue: Catalogue) -> None:
    spec = catalogue.find_dialect("tflite").operators["CAST"]
    x = Value("x", ir.DataType.INT32, np.zeros((2, 1), np.int32))
    subject = found(("onnx2tflite", "litert"), "indices_made_wide")
    step = Step(spec, (x,), {"in_data_type": "INT32", "out_data_type": "INT64"})
    assert results.list_types(Choices.make_seeded(0), subject, step, read_admitted(spec))[0] is ir.DataType.INT64

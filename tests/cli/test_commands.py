"""The subcommands about rules: check, ops, explain, fmt, and --trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nnrewrite.cli.dispatch import app
from nnrewrite.engine.base.data_files import BUILT_IN
from nnrewrite.engine.packs import loader
from nnrewrite.engine.passes.support import survey_support
from nnrewrite.engine.syntax.formatter import format_rules

ROOT = Path(BUILT_IN).parent
DOCS = ROOT / "docs"
HEADER = "ruleset mine : tflite -> onnx opset 13..25\n"
GOOD = HEADER + "rule mine {\n  y = ABS(x)\n  => y = Max(x, Neg(x))\n  test x: f32[2]\n}\n"
BAD = HEADER + "rule mine {\n  y = ABSS(x)\n  => y = Abs(x)\n  test x: f32[2]\n}\n"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False, prog_name="rewrite")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pack(folder: Path) -> Path:
    (folder / "pack").mkdir()
    (folder / "pack" / "mine.rules").write_text(GOOD)
    return folder / "pack"


@pytest.fixture
def model(folder: Path, single: Callable[..., bytes]) -> Path:
    path = folder / "net.tflite"
    path.write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    return path


# ---- check


@pytest.mark.slow
@pytest.mark.parametrize("names", [("tflite2onnx",), pytest.param((), marks=pytest.mark.thorough)])
def test_the_packs_that_come_with_the_program_have_no_mistakes(names: tuple[str, ...]) -> None:
    result = call("check", *names)
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"tflite2onnx: no mistakes in \d+ files: \d+ rules, \d+ tables, \d+ definitions", result.stdout)


def test_mistakes_are_told_with_their_count_and_status_2(pack: Path) -> None:
    (pack / "mine.rules").write_text(BAD)
    result = call("check", "pack")
    assert result.exit_code == 2
    assert "pack/mine.rules:3:7: error: dialect tflite has no operator `ABSS`" in result.stderr
    assert "help: did you mean `ABS`?" in result.stderr
    assert result.stderr.endswith("1 mistake in 1 file\n")


def test_a_file_stands_for_the_pack_it_is_in(pack: Path) -> None:
    result = call("check", "pack/mine.rules")
    assert result.exit_code == 0
    assert "pack: no mistakes in 1 file: 1 rule, 0 tables, 0 definitions" in result.stdout


@pytest.mark.slow
def test_packs_are_checked_together_as_they_are_laid_over_each_other(pack: Path) -> None:
    result = call("check", "tflite2onnx", "pack")
    assert result.exit_code == 0
    assert "mine (pack/mine.rules:2) takes the place of unary.ABS (tflite2onnx/elementwise.rules:" in result.stdout


def test_a_pack_that_is_not_there_is_a_wrong_call(folder: Path) -> None:
    result = call("check", "nowhere")
    assert result.exit_code == 2
    assert "there is no rule set nowhere" in result.stderr


@pytest.mark.parametrize("place", ["", "no/"])
@pytest.mark.parametrize(
    "given",
    [
        ("net.tflite", "--rules"),
        ("net.tflite", "--target"),
        ("check",),
        ("ops", "--rules"),
        ("ops", "--target"),
        ("partition", "net.tflite", "--target"),
    ],
)
def test_a_name_that_is_too_long_for_a_folder_is_none_of_a_pack(
    model: Path, given: tuple[str, ...], place: str
) -> None:
    name = place + "x" * 300
    result = call(*given, name)
    assert result.exit_code == 2
    assert re.search(rf"there is no (rule set|target) {name}[:;]", result.stderr)
    assert len(result.stderr.splitlines()) == 1


# ---- ops


@pytest.mark.slow
def test_every_operator_is_listed_with_its_state() -> None:
    lines = call("ops").stdout.splitlines()
    count = sum(
        "form" not in spec.traits
        for spec in loader.load(("tflite2onnx",)).catalogue.find_dialect("tflite").operators.values()
    )
    assert count > 210
    assert len(lines) == count + 2
    counts = re.fullmatch(
        rf"{count} operators: (\d+) supported in every case, (\d+) as state of the model, (\d+) in part, "
        r"(\d+) not at all\.",
        lines[-1],
    )
    assert counts is not None
    assert sum(int(number) for number in counts.groups()) == count


@pytest.mark.slow
def test_operators_that_the_engine_takes_by_their_role_are_supported_as_state() -> None:
    for name in ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"):
        lines = call("ops", name).stdout.splitlines()
        assert lines[0].endswith("supported: as state")
        assert "no rule" not in "\n".join(lines)


def test_an_operator_without_a_rule_says_why() -> None:
    assert "it hashes the bytes of its operands" in call("ops", "LSH_PROJECTION").stdout


def test_every_operator_has_a_rule_a_role_or_a_reason() -> None:
    pack = loader.load(["tflite2onnx"])
    silent = [
        one.operator.name
        for one in survey_support(pack.files, pack.catalogue)
        if not (one.uses or one.operator.role or one.operator.unsupported)
    ]
    assert not silent


def test_what_is_called_unsupported_has_no_rule() -> None:
    pack = loader.load(["tflite2onnx"])
    for one in survey_support(pack.files, pack.catalogue):
        assert not (one.uses and one.operator.unsupported), one.operator.name


def test_one_operator_is_told_whole() -> None:
    text = call("ops", "conv_2d").stdout
    assert text.startswith("CONV_2D (code 3): supported: ")
    assert "at opsets 13..25" in text
    assert "  stride_w: any" in text
    assert re.search(r"conv_2d \(tflite2onnx/convolution.rules:\d+\), stage lower", text)
    assert re.search(r"unfuse_activation \(tflite2onnx/activation.rules:\d+\), stage normalize", text)


@pytest.mark.slow
def test_an_unknown_operator_is_told_with_what_may_be_meant() -> None:
    result = call("ops", "CONV2D")
    assert result.exit_code == 2
    assert "there is no operator CONV2D: did you mean `CONV_2D`" in result.stderr


@pytest.mark.parametrize(("pack", "name"), [("tflite2onnx", "operators.md"), ("onnx2tflite", "onnx-operators.md")])
def test_the_lists_in_the_documentation_are_current(pack: str, name: str) -> None:
    page = call("ops", "--rules", pack, "--format", "markdown").stdout
    assert (DOCS / name).read_text(encoding="utf-8") == page, (
        f"write it anew: rewrite ops --rules {pack} --format markdown > docs/{name}"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("ops", "ABS", "--target", "portable"), "OP is not about a target"),
        (("ops", "--rules", "onnx2onnx", "--target", "portable"), "--rules is not about a target"),
        (("ops", "ABS", "--format", "markdown"), "--format is about lists"),
        (("ops", "--json", "--format", "text"), "--format is about lists"),
        (("bench", "net.tflite", "net.tflite", "--rules", "onnx2onnx"), "--rules is about a conversion"),
        (("bench", "net.tflite", "net.tflite", "--target", "portable"), "--target is about a conversion"),
        (("fuzz", "--replay", "net.tflite", "--op", "ABS"), "--op is about models that are drawn, and --replay names"),
        (("fuzz", "--replay", "net.tflite", "--record"), "--record is about models that are drawn"),
        (
            ("verify", "net.tflite", "net.tflite", "--inputs", "net.tflite", "--seed", "0"),
            "--seed is about random inputs",
        ),
        (
            ("verify", "net.tflite", "net.tflite", "--inputs", "net.tflite", "--samples", "2"),
            "--samples is about random",
        ),
        (("net.tflite", "-o", "o.tflite", "--layout-svg", "o.svg"), "--layout-svg draws ONNX models"),
        (("net.tflite", "-o", "o.torch", "--layout-svg", "o.svg"), "--layout-svg draws ONNX models"),
        (("net.tflite", "-o", "o.cc", "--verify"), "written as TensorFlow Lite Micro is compiled into a program first"),
        (("net.tflite", "-o", "o/", "--verify"), "written as PyTorch code is run by its own README"),
    ],
)
def test_an_option_that_has_no_effect_beside_another_is_refused(
    model: Path, given: tuple[str, ...], message: str
) -> None:
    result = call(*given)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert [path.name for path in model.parent.iterdir()] == ["net.tflite"]


# ---- explain and trace


def test_each_node_is_explained_by_its_rule_and_its_source(model: Path) -> None:
    assert call(model.name).exit_code == 0
    text = call("explain", "net.onnx").stdout
    assert re.search(r"^Abs +\S+ +unary\.ABS \(tflite2onnx/elementwise\.rules:\d+\) from ", text)
    assert re.search(r"^ +1  unary\.ABS", text, re.MULTILINE)


def test_one_node_is_explained_whole(model: Path) -> None:
    call(model.name)
    name = call("explain", "net.onnx").stdout.split()[1]
    text = call("explain", "net.onnx", name).stdout
    assert text.startswith(f"Abs {name}")
    assert "  rule      unary.ABS" in text


def test_a_node_that_is_not_there_is_told(model: Path) -> None:
    call(model.name)
    result = call("explain", "net.onnx", "nothing")
    assert (result.exit_code, result.stderr) == (1, "rewrite: error: net.onnx: no node has nothing in its name\n")


def test_a_file_that_is_no_model_is_told(folder: Path) -> None:
    (folder / "no.onnx").write_bytes(b"\xff\xff")
    result = call("explain", "no.onnx")
    assert result.exit_code == 1
    assert "not an ONNX model" in result.stderr
    (folder / "no.onnx").write_bytes(b"")
    assert call("explain", "no.onnx").stderr == "rewrite: error: no.onnx: the file is empty\n"


def test_operators_of_tensorflow_lite_are_explained_too(model: Path) -> None:
    call(model.name)
    assert call("net.onnx", "-o", "back.tflite").exit_code == 0
    text = call("explain", "back.tflite").stdout
    assert re.search(r"^ABS +\S+ +unary\.Abs \(onnx2tflite/elementwise\.rules:\d+\) from ", text)
    assert call("back.tflite", "-o", "again.tflite").exit_code == 0
    assert "onnx2tflite" not in call("explain", "again.tflite").stdout  # no rule made anything of what was there


def test_a_trace_shows_each_match(model: Path) -> None:
    text = call("--trace", model.name).stdout
    assert re.search(
        r"^lower: unary\.ABS \(tflite2onnx/elementwise\.rules:\d+\) takes ABS \S+: Abs$", text, re.MULTILINE
    )


@pytest.mark.slow
def test_a_trace_of_a_node_shows_every_rule_tried(model: Path, pack: Path) -> None:
    (pack / "mine.rules").write_text(GOOD.replace("=>", "where rank(x) == 3\n  =>", 1))
    name = next(line for line in call("--trace", model.name).stdout.splitlines() if "ABS" in line).split()[5].strip(":")
    text = call("--rules", "tflite2onnx", "--rules", "pack", f"--trace={name}", model.name).stdout
    tried, taken = [line for line in text.splitlines() if line.startswith("lower: ")]
    assert "mine (pack/mine.rules:2) does not take ABS" in tried
    assert "pack/mine.rules:4:3: the guard does not hold" in tried
    assert "takes ABS" in taken


def test_a_trace_of_a_node_that_is_not_there_says_so(model: Path) -> None:
    result = call("--trace=output", model.name)
    assert result.exit_code == 1
    assert "--trace: no node or value is called output; did you mean output_0?" in result.stderr


@pytest.mark.slow
def test_what_a_pack_takes_the_place_of_is_said(model: Path, pack: Path) -> None:
    result = call("--rules", "tflite2onnx", "--rules", "pack", model.name)
    assert result.exit_code == 0
    assert "rewrite: note: mine (pack/mine.rules:2) takes the place of unary.ABS" in result.stderr


@pytest.mark.slow
def test_what_a_pack_takes_the_place_of_is_said_once_and_where_it_occurs(
    model: Path, pack: Path, single: Callable[..., bytes]
) -> None:
    (model.parent / "exp.tflite").write_bytes(single("EXP", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    (model.parent / "more.tflite").write_bytes(model.read_bytes())
    rules = ("--rules", "tflite2onnx", "--rules", "pack")
    assert call(*rules, "exp.tflite").stderr == ""
    assert call(*rules, "exp.tflite", model.name, "more.tflite").stderr.count("takes the place of") == 1


# ---- fmt

UGLY = """ruleset   demo:tflite->onnx opset 13 .. 25   default 18


# comment


table t{ABS<=>Abs EXP=>Exp
NEG=>Neg
   test x:f32[ 2 ,3 .. 5 ]
}
def f( x,y )=x+-y*2 if x>=3 and not y==-1 else[ a for a in[1,2] if a!=- 1 ]
rule r   stage normalize over{ABS=>Abs EXP=>Exp}{
y@NHWC=SRC( const x@NHWC,b ?,xs ... ){beta,alpha:_, .. }
let k=x . C//2
      # note
where k==2,"no # comment"   # yes
=>when opset>=18:z=DST(x)
y=z
=>y=x[ 0 ]
}
"""
NEAT = """ruleset demo : tflite -> onnx opset 13..25 default 18

# comment

table t { ABS <=> Abs   EXP => Exp
  NEG => Neg
  test x: f32[2, 3..5]
}
def f(x, y) = x + -y * 2 if x >= 3 and not y == -1 else [a for a in [1, 2] if a != -1]
rule r stage normalize over {ABS => Abs  EXP => Exp} {
  y @ NHWC = SRC(const x @ NHWC, b?, xs...) {beta, alpha: _, ..}
  let k = x.C // 2
      # note
  where k == 2, "no # comment"   # yes
  => when opset >= 18: z = DST(x)
     y = z
  => y = x[0]
}
"""


def test_files_are_formatted_in_place(folder: Path) -> None:
    (folder / "a.rules").write_text(UGLY)
    assert call("fmt", "a.rules").stdout == "formatted a.rules\n"
    assert (folder / "a.rules").read_text() == NEAT


def test_formatted_files_are_left_alone(folder: Path) -> None:
    (folder / "a.rules").write_text(NEAT)
    assert call("fmt", "a.rules").stdout == ""


def test_check_tells_and_changes_nothing(folder: Path) -> None:
    (folder / "a.rules").write_text(UGLY)
    result = call("fmt", "--check", ".")
    assert (result.exit_code, result.stdout) == (1, "would format a.rules\n")
    assert (folder / "a.rules").read_text() == UGLY


def test_a_diff_is_shown_and_nothing_changed(folder: Path) -> None:
    (folder / "a.rules").write_text(UGLY)
    result = call("fmt", "--diff", "a.rules")
    assert result.exit_code == 1
    assert result.stdout.startswith("--- a.rules (before)\n+++ a.rules (after)\n@@ -1,")
    assert "\n+def f(x, y) = x + -y * 2" in result.stdout
    assert (folder / "a.rules").read_text() == UGLY
    (folder / "a.rules").write_text(NEAT)
    assert (call("fmt", "--diff", "a.rules").exit_code, call("fmt", "--diff", "a.rules").stdout) == (0, "")


def test_a_byte_order_mark_is_no_part_of_rules(folder: Path) -> None:
    (folder / "a.rules").write_text(NEAT, encoding="utf-8-sig")
    assert (call("fmt", "--check", "a.rules").exit_code, "unexpected" in call("check", ".").output) == (0, False)


def test_standard_input_is_formatted_to_standard_output(folder: Path) -> None:
    for text, status in ((UGLY, 1), (NEAT, 0)):
        result = CliRunner().invoke(app, ["fmt", "-"], input=text, prog_name="rewrite")
        assert (result.exit_code, result.stdout, result.stderr) == (0, NEAT, "")
        checked = CliRunner().invoke(app, ["fmt", "--check", "-"], input=text, prog_name="rewrite")
        assert (checked.exit_code, checked.stdout) == (status, "would format <stdin>\n" * status)
    wrong = CliRunner().invoke(app, ["fmt", "-"], input="rule", prog_name="rewrite")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("<stdin>:1:1: error: ")


def test_a_folder_without_rules_and_a_file_that_is_no_text_are_told(folder: Path) -> None:
    assert "there are no *.rules files in ." in call("fmt", ".").stderr
    (folder / "a.rules").write_bytes(b"\xff")
    assert call("fmt", "a.rules").stderr.startswith("rewrite: error: a.rules: cannot be read: ")


def test_a_file_that_cannot_be_parsed_is_told(folder: Path) -> None:
    (folder / "a.rules").write_text("rule")
    result = call("fmt", "a.rules")
    assert result.exit_code == 2
    assert "a.rules:1:1: error: unexpected `rule`" in result.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(BUILT_IN.rglob("*.rules")), ids=lambda path: path.stem)
def test_rules_of_the_program_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_rules(text, path.name) == text


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "tests" / "engine" / "check" / "golden" / "checker").glob("*.rules")),
    ids=lambda path: path.stem,
)
def test_formatting_twice_is_formatting_once(path: Path) -> None:
    once = format_rules(path.read_text(encoding="utf-8"), path.name)
    assert format_rules(once, path.name) == once


def test_any_layout_of_one_text_comes_to_the_same_meaning() -> None:
    squeezed = re.sub(r"[ \t]+", " ", NEAT.replace("\n  ", "\n"))
    assert format_rules(squeezed, "a.rules").replace("# note", "").split() == NEAT.replace("# note", "").split()


@pytest.mark.slow
def test_operators_that_rules_rewrite_into_their_own_dialect_are_kept_or_simplified() -> None:
    told = call("ops", "--rules", "onnx2onnx").stdout
    assert re.search(r"^Sinh +kept$", told, re.MULTILINE)
    assert re.search(r"^Slice +simplified +.*\bslice_of_slice\b", told, re.MULTILINE)
    assert told.splitlines()[-1].endswith("the others stay as they are.")

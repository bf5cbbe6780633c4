"""What commands print with --json: one form for all, which docs/json.schema.json says, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import COMMANDS, app
from nnrewrite.cli.json_documents import make_plain
from nnrewrite.engine.base.data_files import BUILT_IN
from nnrewrite.fuzz import baseline

SCHEMA = Path(BUILT_IN).parent / "docs" / "json.schema.json"
HEADER = "ruleset mine : tflite -> onnx opset 13..25\n"
GOOD = HEADER + "rule mine {\n  y = ABS(x)\n  => y = Max(x, Neg(x))\n  test x: f32[2]\n}\n"
BAD = GOOD.replace("ABS", "ABSS")


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.fixture
def call(validate: Callable[[Any], Any]) -> Callable[..., dict[str, Any]]:
    """Run a command with --json; the document, which is all of standard output and follows the schema."""

    def called(*arguments: str, status: int = 0, stdin: str | None = None) -> dict[str, Any]:
        result = CliRunner().invoke(
            app, [*arguments, "--json"], catch_exceptions=False, prog_name="rewrite", input=stdin
        )
        assert result.exit_code == status, result.output
        document: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(word))
        validate(document)
        assert document["ok"] == (status == 0)
        return document

    return called


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: Callable[..., bytes]) -> Path:
    """A folder with a model and a pack of rules, which is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    Path("pack").mkdir()
    Path("pack/mine.rules").write_text(GOOD)
    return tmp_path


def test_the_schema_knows_every_command(validate: Callable[[Any], Any]) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert set(schema["properties"]["command"]["enum"]) == {*COMMANDS, "convert"}
    assert set(COMMANDS) - {"help"} <= set(schema["definitions"])
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({"schema": 1, "command": "check", "ok": True, "results": [{}], "summary": {}, "diagnostics": []})


def test_a_conversion_is_an_object_with_its_report(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    document = call("net.tflite")
    (one,) = document["results"]
    assert (one["source"], one["target"], one["opset"]) == ("net.tflite", "net.onnx", 18)
    assert (one["source_operators"], one["target_operators"]) == ({"ABS": 1}, {"Abs": 1})
    assert one["bytes_out"] == Path("net.onnx").stat().st_size
    assert (document["command"], document["summary"]["converted"]) == ("convert", 1)


def test_verification_and_profile_are_in_the_document_when_asked_for(
    folder: Path, call: Callable[..., dict[str, Any]]
) -> None:
    pytest.importorskip("ai_edge_litert")
    (one,) = call("convert", "net.tflite", "--verify", "--profile")["results"]
    assert one["verification"]["passed"] and one["verification"]["comparisons"][0]["verdict"] == "equal"
    assert "writing" in one["profile"]["parts"] and one["profile"]["rules"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_failure_is_told_with_its_file(
    folder: Path, call: Callable[..., dict[str, Any]], single: Callable[..., bytes], workers: str
) -> None:
    Path("bad.tflite").write_bytes(b"no model, but long enough to be read as one")
    hashes = single("LSH_PROJECTION", {"x": ("FLOAT32", [2, 3])}, [("INT32", [2])])
    Path("hash.tflite").write_bytes(hashes)
    arguments = ("bad.tflite", "gone.tflite", "hash.tflite", "net.tflite")
    document = call(*arguments, "--keep-going", "--jobs", workers, status=1)
    assert [(one["source"], one["ok"]) for one in document["results"]] == [
        ("net.tflite", True),
        ("bad.tflite", False),
        ("gone.tflite", False),
        ("hash.tflite", False),
    ]
    told = {one["file"]: one for one in document["diagnostics"]}
    assert told["gone.tflite"]["kind"] == "ModelError" and "No such file" in told["gone.tflite"]["message"]
    assert told["hash.tflite"]["kind"] == "UnsupportedError" and "LSH_PROJECTION_0" in told["hash.tflite"]["message"]


def test_a_rule_that_takes_the_place_of_another_is_a_note(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    (note,) = call("net.tflite", "--rules", "tflite2onnx", "--rules", "pack")["diagnostics"]
    assert note["severity"] == "note" and "takes the place of unary.ABS" in note["message"]


@pytest.mark.slow
def test_mistakes_of_rules_have_their_place_and_a_hint(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    Path("pack/mine.rules").write_text(BAD)
    for arguments in (("check", "pack"), ("net.tflite", "--rules", "pack"), ("ops", "--rules", "pack")):
        (one,) = call(*arguments, status=2)["diagnostics"]
        assert (one["kind"], one["file"], one["line"], one["column"]) == ("RuleError", "pack/mine.rules", 3, 7)
        assert one["message"] == "dialect tflite has no operator `ABSS`"
        assert one["hint"] == "did you mean `ABS`?"


def test_packs_are_counted(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    (one,) = call("check", "pack")["results"]
    assert (one["packs"], one["files"], one["rules"], one["opsets"]) == (["pack"], 1, 1, [13, 25])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "Missing argument MODEL"),
        (("net.tflite", "--opset", "many"), 2, "'many' is not a valid integer"),
        (("net.tflite", "--opset", "3"), 2, "opset 3 is none of 13 to 25"),
        (("net.tflite", "--trace"), 2, "--trace prints lines"),
        (("explain", "gone.onnx"), 2, "does not exist"),
        (("explain", "pack/mine.rules"), 1, "pack/mine.rules: "),
        (("ops", "CONV2D"), 2, "there is no operator CONV2D"),
        (("ops", "--rules", "nowhere"), 2, "there is no rule set nowhere"),
        (("check", "nowhere"), 2, "there is no rule set nowhere"),
        (("coverage", "nowhere"), 1, "nowhere holds no records"),
        (("fuzz", "--rules", "onnx", "--rule", "nowhere"), 2, "no rule with a test is called nowhere"),
        (("fmt", "-"), 2, "give --check or --diff"),
        (("verify", "net.onnx", "net.tflite"), 2, "does not exist"),
        (("bench", "net.tflite", "--rounds", "0"), 2, "not in the range"),
        (("help", "nothing"), 2, "No such option"),
    ],
)
def test_errors_are_documents_too(
    folder: Path, call: Callable[..., dict[str, Any]], arguments: tuple[str, ...], status: int, message: str
) -> None:
    document = call(*arguments, status=status)
    assert message in document["diagnostics"][0]["message"]
    assert document["command"] == (arguments[0] if arguments and arguments[0] in COMMANDS else "convert")


@pytest.mark.slow
def test_operators_targets_and_nodes_are_objects(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    (one,) = call("ops", "conv_2d")["results"]
    assert (one["name"], one["code"]) == ("CONV_2D", 3) and 18 in one["opsets"]
    assert any(rule["name"] == "conv_2d" and rule["line"] for rule in one["rules"])
    assert len(call("ops")["results"]) > 200
    target = call("ops", "--target", "onnxruntime")
    assert target["summary"]["target"] == "onnxruntime" and any(one["why"] for one in target["results"])
    assert {one["file"] for one in call("ops", "--target", "portable")["results"]} == {
        "portable/permutations.rules",
        "portable/products.rules",
        "portable/quantization.rules",
    }
    call("net.tflite")
    (node,) = call("explain", "net.onnx")["results"]
    assert node["operator"] == "Abs" and node["rule"].startswith("unary.ABS (")
    assert call("explain", "net.onnx", node["name"])["results"] == [node]


def test_formatting_tells_what_would_change(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    Path("pack/mine.rules").write_text(GOOD.replace("x, Neg", "x,Neg"))
    (one,) = call("fmt", "pack", "--diff", status=1)["results"]
    assert one["changed"] and "+  => y = Max(x, Neg(x))" in one["diff"]
    assert call("fmt", "-", "--check", stdin=GOOD)["results"] == [{"file": "<stdin>", "changed": False, "diff": None}]
    assert call("fmt", "pack")["results"][0]["changed"]
    assert Path("pack/mine.rules").read_text() == GOOD


@pytest.mark.slow
def test_runtimes_are_compared_and_timed(folder: Path, call: Callable[..., dict[str, Any]]) -> None:
    pytest.importorskip("ai_edge_litert")
    call("net.tflite")
    (one,) = call("verify", "net.tflite", "net.onnx", "--per-layer")["results"]
    assert one["passed"] and one["comparisons"][0]["absolute"] == 0
    assert [(layer["operator"], layer["saturates"]) for layer in one["layers"]] == [("ABS@0:0", False)]
    names = [one["name"] for one in call("bench", "net.tflite", "--threads", "1", "--rounds", "1")["results"]]
    assert names == ["tflite", "onnxruntime", "portable"]


@pytest.mark.thorough
def test_rules_are_tried_with_figures_for_each(
    folder: Path, call: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setattr(baseline, "read_entries", lambda *arguments: {})
    arguments = ("--rule", "unary.NEG", "--examples", "2", "--jobs", "1", "--time", "20")
    document = call("fuzz", *arguments)
    (one,) = document["results"]
    assert one["rule"] == "unary.NEG" and one["tried"] == one["passed"] > 0


@pytest.mark.slow
def test_what_was_not_tried_has_its_place(
    folder: Path, call: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from nnrewrite.engine.rewrite import coverage

    noted = coverage.Coverage({"conv_2d": {1: 1}}, {})
    monkeypatch.setattr(coverage, "load", lambda path: noted)
    document = call("coverage", "notes", status=1)
    assert 0 <= document["summary"]["fired_percent"] < 1
    assert {"rule never fired", "template never used"} == {one["gap"] for one in document["results"]}


def test_values_that_json_has_not_got_become_those_it_has() -> None:
    assert make_plain({"a": float("nan"), "b": np.float64(2), "c": (Path("x"), {1: float("inf")})}) == {
        "a": None,
        "b": 2.0,
        "c": ["x", {"1": None}],
    }

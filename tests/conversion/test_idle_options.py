"""Options that would have no effect on a conversion are refused, and told what they are about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import app
from nnrewrite.conversion.conversion_steps import plan_steps
from nnrewrite.conversion.options import DEFAULT
from nnrewrite.engine.base.errors import CallError

from ..rules.text_models import write_model

PROGRAM = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"

#: for each option a value, and from which format to which other it has an effect
EFFECTS: dict[str, tuple[Any, set[str]]] = {
    "opset": (21, {"tflite onnx", "onnx onnx", "pt2 onnx"}),
    "float": (True, {f"{source} {to}" for source in ("tflite", "onnx", "pt2")
                     for to in ("onnx", "tflite", "torch", "keras")}),
    "float_io": (True, {f"{source} {to}" for source in ("tflite", "onnx", "pt2")
                        for to in ("onnx", "tflite", "torch", "keras")}),
    "activations": ("int8", {"tflite onnx", "pt2 onnx"}),
    "exact": (True, {"tflite onnx"}),
    "hybrid": ("real", {"tflite onnx", "onnx tflite", "pt2 tflite"}),
    "fake_quantize": (True, {"tflite torch", "onnx torch", "pt2 torch"}),
    "keep_custom": (True, {"tflite onnx", "onnx tflite", "pt2 onnx", "pt2 tflite"}),
    "max_folded_bytes": (0, {"tflite tflite", "tflite torch", "tflite keras", "onnx onnx", "onnx tflite", "onnx torch",
                             "onnx keras", "pt2 tflite", "pt2 torch", "pt2 keras"}),
    "state": ("internal", {"tflite onnx", "tflite torch", "tflite keras", "pt2 onnx", "pt2 tflite", "pt2 torch",
                           "pt2 keras"}),
    "layout": ("target", {"tflite onnx", "tflite torch", "tflite keras", "onnx onnx", "onnx tflite", "onnx torch",
                          "onnx keras", "pt2 onnx", "pt2 tflite", "pt2 torch", "pt2 keras"}),
}  # fmt: skip


@pytest.fixture
def sources(tmp_path: Path, single: Callable[..., bytes]) -> dict[str, Path]:
    """A model of each format."""
    lite = tmp_path / "lite.tflite"
    lite.write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    return {"tflite": lite, "onnx": write_model(tmp_path / "exp.onnx", 17, "y", "y = Exp(x)"), "pt2": PROGRAM}


@pytest.mark.slow
@pytest.mark.parametrize("option", EFFECTS)
def test_an_option_without_effect_is_refused_and_told_what_it_is_about(sources: dict[str, Path], option: str) -> None:
    value, effects = EFFECTS[option]
    for name, source in sources.items():
        for to in ("onnx", "tflite", "torch", "keras"):
            asked = DEFAULT.replace(to=to, **{option: value})
            if f"{name} {to}" in effects:
                assert plan_steps(f"{source}", asked)
                continue
            with pytest.raises(CallError, match=f"--{option.replace('_', '-')} is about .*: it has no effect on"):
                plan_steps(f"{source}", asked)


def test_an_opset_is_that_of_rules_that_are_named(sources: dict[str, Path]) -> None:
    nnrewrite.rewrite(sources["onnx"], rules="onnx2tflite", opset=27)


def test_the_layout_of_the_source_is_what_there_is(sources: dict[str, Path]) -> None:
    nnrewrite.rewrite(sources["tflite"], to="tflite", layout="source")


def test_the_command_refuses_an_option_without_effect(sources: dict[str, Path], tmp_path: Path) -> None:
    given = [f"{sources['tflite']}", "-o", f"{tmp_path / 'o.onnx'}", "--max-folded-bytes", "0"]
    result = CliRunner().invoke(app, given, catch_exceptions=False, prog_name="rewrite")
    assert (result.exit_code, result.stderr) == (
        2,
        "rewrite: error: --max-folded-bytes is about ONNX models and those that keep their format: it has no effect on"
        " TensorFlow Lite models that are written as ONNX\n",
    )
    assert not (tmp_path / "o.onnx").exists()


def test_real_numbers_are_made_by_rules_that_a_call_has(tmp_path: Path, sources: dict[str, Path]) -> None:
    (tmp_path / "own").mkdir()
    rule = "rule twice stage simplify { y = Relu(Relu(x)) => y = Relu(x) test x: f32[2] }"
    (tmp_path / "own" / "a.rules").write_text(f"ruleset own : onnx -> onnx opset 13..28\n{rule}\n")
    asked = DEFAULT.replace(to="onnx", float=True, rules=f"{tmp_path / 'own'}")
    with pytest.raises(CallError, match=r"--float is about .* by the rules of onnx2onnx: it has no effect on"):
        plan_steps(f"{sources['onnx']}", asked)
    assert plan_steps(f"{sources['onnx']}", asked.replace(rules=("onnx2onnx", *asked.rules)))

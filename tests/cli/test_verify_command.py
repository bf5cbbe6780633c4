"""`rewrite verify` measures outputs, and names the first tensor that differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite import convert
from onnx import numpy_helper

pytest.importorskip("ai_edge_litert")

from nnrewrite.cli import dispatch
from nnrewrite.cli.commands.verify import _format_layers
from nnrewrite.conversion.converted_model import Conversion
from nnrewrite.conversion.options import Options
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.fuzz.sketch import Case, Step, Value, encode
from nnrewrite.verify import Interpreter, Kernels, Tensor
from nnrewrite.verify.comparison import compare
from nnrewrite.verify.layer_pairs import compare_pair
from nnrewrite.verify.layers import Step as Compared
from nnrewrite.verify.layers import compare_layers, find_divergence

pytestmark = pytest.mark.slow


def chain() -> bytes:
    """A model that multiplies by two, adds one and squashes, as three operators."""
    catalogue = load()
    operators = catalogue.find_dialect("tflite").operators

    def value(name: str, content: object, constant: bool = False) -> Value:
        return Value(name, ir.DataType.FLOAT, np.asarray(content, np.float32), constant)

    x, two, one = value("x", np.zeros((1, 4))), value("two", [2.0], True), value("one", [1.0], True)
    twice, more, y = (value(name, np.zeros((1, 4))) for name in ("twice", "more", "y"))
    steps = (
        Step(operators["MUL"], (x, two), {}, (twice,)),
        Step(operators["ADD"], (twice, one), {}, (more,)),
        Step(operators["TANH"], (more,), {}, (y,)),
    )
    return encode(Case("chain", steps), catalogue)


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "a.tflite", tmp_path / "b.onnx"
    source.write_bytes(chain())
    onnx.save(convert(source), target)
    return source, target


def spoil(target: Path) -> None:
    """Add something else than one."""
    model = onnx.load(target)
    for tensor in model.graph.initializer:
        if numpy_helper.to_array(tensor).tolist() == [1.0]:
            tensor.CopyFrom(numpy_helper.from_array(np.array([1.5], np.float32), tensor.name))
    onnx.save(model, target)


def verify(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nnrewrite", "verify", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_models_that_agree_pass(models: tuple[Path, Path]) -> None:
    run = verify(*models, "--samples", 3)
    assert run.returncode == 0, run.stderr
    assert "3 samples" in run.stdout


def test_models_that_differ_fail_with_the_measure_of_it(models: tuple[Path, Path]) -> None:
    spoil(models[1])
    run = verify(*models, "--json")
    assert run.returncode == 1
    document = json.loads(run.stdout)
    (result,) = document["results"]
    (output,) = result["comparisons"]
    assert not document["ok"] and not result["passed"]
    assert output["verdict"] == "different"
    assert output["absolute"] > output["mean_relative"] > 0


def test_the_first_operator_that_differs_is_named(models: tuple[Path, Path]) -> None:
    spoil(models[1])
    run = verify(*models, "--per-layer")
    assert run.returncode == 1
    assert "the first to differ is more (of ADD@0:1)" in run.stdout


def test_the_first_operator_that_differs_is_named_of_a_model_made_of_an_onnx_model(
    models: tuple[Path, Path], tmp_path: Path, interpreter: Interpreter
) -> None:
    made = tmp_path / "made.tflite"
    rewrite(models[1], to="tflite", layout=("x=AB:BA", "y=AB:BA")).save(made)
    steps = compare_pair(models[1], made, interpreter)
    assert [step.comparison.name for step in steps][-1] == "y" and find_divergence(steps) is None
    spoil(models[1])
    run = verify(models[1], made, "--per-layer")
    assert run.returncode == 1
    assert "the first to differ is more (of ADD@0:" in run.stdout


def test_a_tensor_within_the_spread_is_pointed_out_where_outputs_alone_differ() -> None:
    tensor, want = Tensor("t", "float32", (2,), (2,)), np.ones(2, np.float32)
    node = onnx.helper.make_node("Relu", ["x"], ["t"])
    step = Compared("RELU@0:3", compare(tensor, want, want + np.float32(0.3), Kernels.DEFAULT, 0.2), (node,))
    said = list(_format_layers([step], passed=False, saturated=False))
    assert "differences add up" in said[-3]
    assert "t (of RELU@0:3) needs most of that, off by 0.3, 0.2 between the interpreter's own kernels" in said[-2]
    assert "Relu  t" in said[-1]
    assert "none differs" in list(_format_layers([step], passed=True, saturated=False))[-1]


def test_every_tensor_that_both_have_is_compared_in_order(models: tuple[Path, Path], interpreter: Interpreter) -> None:
    steps = compare_layers(models[0].read_bytes(), models[1].read_bytes(), interpreter)
    assert [step.comparison.name for step in steps] == ["twice", "more", "y"]
    assert find_divergence(steps) is None


def test_inputs_are_read_by_name_with_samples_in_front(models: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "inputs.npz"
    np.savez(file, x=np.arange(8, dtype=np.float32).reshape(2, 1, 4))
    run = verify(*models, "--inputs", file, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["results"][0]["samples"] == 2


@pytest.mark.parametrize(
    ("arrays", "words"),
    [({"z": np.zeros((1, 4), np.float32)}, "has no array x"), ({"x": np.zeros(3, np.float32)}, "another number")],
)
def test_inputs_that_are_not_the_models_are_told(
    models: tuple[Path, Path], tmp_path: Path, arrays: dict[str, np.ndarray], words: str
) -> None:
    file = tmp_path / "inputs.npz"
    np.savez(file, **arrays)
    run = verify(*models, "--inputs", file)
    assert run.returncode == 1
    assert words in run.stderr


def test_a_file_of_one_array_without_a_name_is_told(models: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "inputs.npy"
    np.save(file, np.zeros((1, 4), np.float32))
    run = verify(*models, "--inputs", file)
    assert run.returncode == 1
    assert "inputs.npy is no file of arrays by name, such as numpy.savez writes" in run.stderr
    os.mkfifo(tmp_path / "pipe.npz")
    assert "pipe.npz is no file of arrays by name" in verify(*models, "--inputs", tmp_path / "pipe.npz").stderr


@pytest.mark.thorough
def test_either_model_may_be_of_either_format(models: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = models
    assert [verify(*pair).returncode for pair in ((target, source), (source, source), (target, target))] == [0, 0, 0]
    run = verify(target, target, "--per-layer")
    assert (run.returncode, "a TensorFlow Lite and an ONNX model" in run.stderr) == (2, True)
    file = tmp_path / "inputs.npz"
    np.savez(file, x=np.ones((1, 4), np.float32))
    assert verify(target, target, "--inputs", file).returncode == 0


def test_bad_files_are_told_by_name(models: tuple[Path, Path], tmp_path: Path) -> None:
    _, target = models
    (tmp_path / "empty.tflite").write_bytes(b"")
    assert verify(tmp_path / "empty.tflite", target).stderr.endswith("empty.tflite: the file is empty\n")
    (tmp_path / "junk.tflite").write_bytes(b"no model, but long enough")
    assert f"{tmp_path / 'junk.tflite'} and {target}: the TFLite interpreter says" in (
        verify(tmp_path / "junk.tflite", target).stderr
    )


def verify_part(folder: Path, model: Path, *arguments: str) -> str:
    """Convert a part of a model into a folder with --verify, and what is said of the comparison."""
    asked = [f"{model}", "-d", f"{folder / 'out'}", "--verify", *arguments]
    done = CliRunner().invoke(dispatch.app, asked, catch_exceptions=False, prog_name="rewrite")
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.thorough
def test_a_part_is_compared_with_the_same_part_of_the_original(models: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = models
    for asked in (["--inputs", "twice", "--outputs", "more"], ["--inputs", "more"]):
        for model, others in ((source, []), (source, ["--to", "tflite"]), (target, []), (target, ["--to", "tflite"])):
            assert "seed 0, 1 sample" in verify_part(tmp_path, model, *asked, *others)


def test_a_difference_in_a_part_is_one(
    models: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert_another(source: Path, options: Options, **changes: Any) -> Conversion:
        return rewrite(source, options.replace(outputs="y"), **changes)

    monkeypatch.setattr("nnrewrite.conversion.pipeline.rewrite", convert_another)
    with pytest.raises(AssertionError, match="differs from the original"):
        verify_part(tmp_path, models[0], "--outputs", "more")


def test_the_page_of_a_part_compares_its_layers(models: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for model, others, operator in ((models[0], (), "TANH@0:1"), (models[1], ("--to", "tflite"), "TANH@0:")):
        verify_part(tmp_path, model, "--inputs", "twice", "--report", f"{page}", *others)
        text = page.read_text()
        assert "Layers could not be compared" not in text and "Layers are compared" not in text and operator in text

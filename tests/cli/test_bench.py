"""`rewrite bench` times a model in both runtimes and tells where the time goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from nnrewrite import convert
from nnrewrite.cli.dispatch import app
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.verify.latency import Latency
from onnx import TensorProto, helper

pytestmark = pytest.mark.slow

FLOAT = ("FLOAT32", [1, 8, 8, 4])
BIAS = np.linspace(-1, 1, 6, dtype=np.float32)
SCALES = {"x": (0.1, 128), "w": (0.01, 128), "b": (0.001, 0), "y": (0.2, 128)}
FILTERS = np.linspace(-1, 1, 6 * 3 * 3 * 4)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False, prog_name="rewrite")


@pytest.fixture
def model(tmp_path: Path, single: Callable[..., bytes]) -> Path:
    path = tmp_path / "net.tflite"
    weights = FILTERS.reshape(6, 3, 3, 4).astype(np.float32)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    path.write_bytes(single("CONV_2D", {"x": FLOAT, "w": weights, "b": BIAS}, [("FLOAT32", [1, 8, 8, 6])], **options))
    return path


@pytest.fixture
def quantized(tmp_path: Path, single: Callable[..., bytes]) -> Path:
    path = tmp_path / "quantized.tflite"
    quantization = {name: Quantization(np.array([scale]), np.array([zero])) for name, (scale, zero) in SCALES.items()}
    operands = {
        "x": ("UINT8", [1, 8, 8, 4], quantization["x"]),
        "w": ((FILTERS.reshape(6, 3, 3, 4) * 100 + 128).round().astype(np.uint8), quantization["w"]),
        "b": (np.zeros(6, np.int32), quantization["b"]),
    }
    result = ("UINT8", [1, 8, 8, 6], quantization["y"])
    path.write_bytes(single("CONV_2D", operands, [result], padding="SAME", stride_h=1, stride_w=1))
    return path


def measured(*arguments: str) -> dict[str, dict[str, Any]]:
    """What was measured of each side, by its name."""
    result = call("bench", "--threads", "1", "--rounds", "2", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return {one["name"]: one for one in json.loads(result.stdout)["results"]}


def test_a_model_is_converted_for_both_targets_and_timed(model: Path) -> None:
    found = measured(f"{model}")
    assert list(found) == ["tflite", "onnxruntime", "portable"]
    for side in found.values():
        assert 0 < side["latency"]["least"] <= side["latency"]["median"]
        assert len(side["latency"]["rounds"]) == 2


def test_a_page_has_the_latency_of_each_node(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    measured("--target", "onnxruntime", f"{model}", "--report", f"{page}")
    text = page.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1].split("</script>")[0]
    data = json.loads(text)
    assert [side[0] for side in data["latency"]["sides"]] == ["net.tflite", "onnxruntime"]
    names = {data["texts"][node[1]] for node in data["after"]["nodes"]}
    assert {node for node, operator, _ in data["latency"]["kernels"] if operator == "Conv"} <= names


def test_a_page_is_about_a_conversion(model: Path, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(convert(model).SerializeToString())
    page = tmp_path / "page.html"
    result = call("bench", f"{model}", f"{tmp_path / 'net.onnx'}", "--report", f"{page}")
    assert result.exit_code == 2 and "leave out the ONNX models" in result.output and not page.exists()


def test_given_onnx_models_are_timed_instead(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(convert(model, target="portable").SerializeToString())
    assert list(measured(f"{model}", f"{other}")) == ["tflite", f"{other}"]


def test_models_of_either_format_are_timed_beside_one_of_either(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(convert(model, target="portable").SerializeToString())
    found = measured(f"{other}", f"{model}", f"{other}")
    assert list(found) == ["onnx", f"{model}", f"{other}"]
    assert "operators" in found[f"{other}"] and "operators" not in found[f"{model}"]
    assert list(measured(f"{other}")) == ["onnx", "onnxruntime", "portable"]


def test_the_profile_names_the_operators_that_ran(model: Path) -> None:
    operators = measured(f"{model}")["onnxruntime"]["operators"]
    assert any("Conv" in one["operator"] and one["nodes"] == 1 for one in operators)
    assert all(one["milliseconds"] >= 0 for one in operators)


def test_integer_kernels_are_told_from_those_that_merely_convert(quantized: Path, tmp_path: Path) -> None:
    model = convert(quantized, target="portable")
    folded, apart = tmp_path / "folded.onnx", tmp_path / "apart.onnx"
    folded.write_bytes(model.SerializeToString())
    # A convolution whose real result is wanted does not run on integers.
    convolution = next(node for node in model.graph.node if node.op_type == "Conv")
    model.graph.output.append(helper.make_tensor_value_info(convolution.output[0], TensorProto.FLOAT, None))
    apart.write_bytes(model.SerializeToString())
    found = measured(f"{quantized}", f"{folded}", f"{apart}")
    share = found[f"{folded}"]["integer_kernels"]
    assert share["kernels"] == share["of"] == 1
    assert 0 < share["milliseconds"] == share["of_milliseconds"]
    share = found[f"{apart}"]["integer_kernels"]
    assert share["kernels"] == 0 < share["of"]


def test_the_table_has_a_line_for_each_side_and_each_operator(model: Path) -> None:
    result = call("bench", "--threads", "1", "--rounds", "1", f"{model}")
    assert result.exit_code == 0
    for line in ("net.tflite, 1 thread", "times that", "onnxruntime", "portable", "ms by operator"):
        assert line in result.stdout


def test_inputs_can_be_given(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, other=np.zeros(3))
    result = call("bench", f"{model}", "--inputs", f"{path}")
    assert result.exit_code == 1
    assert "has no array x" in result.stderr
    np.savez(path, x=np.zeros(FLOAT[1], np.float32))
    assert call("bench", f"{model}", "--inputs", f"{path}", "--threads", "1", "--rounds", "1").exit_code == 0


def test_what_does_not_run_is_told_in_one_line(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    result = call("bench", f"{model}", f"{broken}")
    assert result.exit_code == 1
    assert result.stderr.startswith("rewrite: error: ONNX Runtime refuses the model")
    assert result.stderr.count("\n") == 1


def test_a_ratio_compares_rounds_so_that_what_slows_both_cancels_out() -> None:
    slow_at_times = Latency.summarize([[1.0], [10.0], [1.0]])
    assert Latency.summarize([[2.0], [20.0], [2.0]]).compute_ratio(slow_at_times) == 2.0


def test_a_model_with_a_real_interface_is_timed_beside_the_codes_of_its_source(quantized: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.onnx"
    real.write_bytes(convert(quantized, float=True).SerializeToString())
    assert "real.onnx" in str(measured(f"{quantized}", f"{real}"))

"""Models with free sizes are compared with more than one."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.parser
import pytest
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Tensor, compare_models
from nnrewrite.verify.free_sizes import list_other_sizes


def write(path: Path, nodes: str, inputs: str = "float[b, n] x") -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 18]> net ({inputs}) => (float[] y) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    onnx.save(model, path)
    return path.read_bytes()


def test_free_axes_are_one_longer_or_twice_as_long_and_equal_ones_stay_equal() -> None:
    tensors = [Tensor(name, "float32", (1, 16), (1, 16)) for name in "xy"]
    sample = [np.zeros((1, 16), np.float32), np.zeros((16, 16), np.float32)]
    found = list_other_sizes(tensors, [(("b", "n"), (-1, "?")), ((16, "n"), (16, -1))], sample)
    shapes = [[tensor.shape for tensor in one] for one in found]
    assert shapes == [
        [(2, 17), (16, 17)],
        [(1, 17), (16, 17)],
        [(2, 16), (16, 16)],
        [(1, 32), (16, 32)],
    ]


def test_sizes_that_one_of_both_says_are_not_changed() -> None:
    tensors = [Tensor("x", "float32", (1, 16), (1, 16))]
    assert not list(list_other_sizes(tensors, [(("b", "n"), (1, 16))], [np.zeros((1, 16), np.float32)]))


@pytest.mark.slow
def test_what_is_right_with_even_sizes_alone_is_found(tmp_path: Path) -> None:
    two = """t = Constant<value_ints = [2]>() o = Constant<value_ints = [1]>()
      s = Shape(x) h = Slice(s, o, t) k = Div(h, t)"""
    source = write(tmp_path / "model.onnx", f"{two} m = Mul(k, t) z = Sub(h, m) y = Cast<to = 1>(z)")
    wrong = write(tmp_path / "wrong.onnx", f"{two} m = Mul(k, t) z = Sub(m, m) y = Cast<to = 1>(z)")
    assert compare_models(source, source).samples == 2
    assert not compare_models(source, wrong).passed


def test_a_result_that_does_not_run_with_other_sizes_is_told_with_them(tmp_path: Path) -> None:
    source = write(tmp_path / "model.onnx", "y = Relu(x)")
    fixed = write(tmp_path / "fixed.onnx", "p = Constant<value_ints = [1, 16]>() y = Reshape(x, p)")
    with pytest.raises(VerificationError, match=r"inputs of \[2, 17\]"):
        compare_models(source, fixed)


def test_models_that_take_multiples_alone_get_twice_as_many(tmp_path: Path) -> None:
    source = write(tmp_path / "model.onnx", "p = Constant<value_ints = [0, -1, 16]>() y = Reshape(x, p)")
    verification = compare_models(source, read_bytes(nnrewrite.rewrite(source, to="tflite").encoded))
    assert verification.passed, verification.differences
    assert verification.samples == 2

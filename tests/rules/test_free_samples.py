"""TensorFlow Lite of ONNX models of any number of samples: as many operators as for one, and the same results."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, compare_models

from .text_models import add_weights, write_model

pytestmark = pytest.mark.slow

#: the input, and nodes
MODELS = {
    "an image of known extents, doubled": (
        "float[b, 3, 4, 6] x",
        'k = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() y = Resize<mode = "linear">(x, , k)',
    ),
    "lines as layers of images, with constants for each channel behind them": (
        "float[b, 9, 4] x",
        """a = Constant<value_ints = [1]>() u = Unsqueeze(x, a) t = Transpose<perm = [0, 3, 1, 2]>(u)
        c = Conv(t, w) d = Constant<value_ints = [2]>() s = Squeeze(c, d) r = Transpose<perm = [0, 2, 1]>(s)
        p = Add(r, v) m = Mul(p, v) y = Relu(m)""",
    ),
    "expanded to what it is": (
        "float[b, 6] x",
        """s = Shape(x) z = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() n = Slice(s, z, o)
        k = Constant<value_ints = [6]>() t = Concat<axis = 0>(n, k) e = Expand(x, t) y = Neg(e)""",
    ),
    "cut off behind its end": (
        "float[b, 6] x",
        """z = Constant<value_ints = [0, 0]>() e = Constant<value_ints = [1000000000, 6]>()
        s = Slice(x, z, e) y = Neg(s)""",
    ),
    "elements of rows": (
        "float[b, 6] x",
        """t = Constant<value_ints = [2]>() k = Constant<value_ints = [3]>() v, i = TopK<axis = 1, largest = 0>(x, k)
        n = Neg(x) y = GatherElements<axis = 1>(n, i)""",
    ),
    "rows side by side, and one of them": (
        "float[b, 6] x",
        """n = Neg(x) o = Constant<value_ints = [1]>() a = Unsqueeze(x, o) c = Unsqueeze(n, o)
        s = Concat<axis = 1>(a, c) t = Constant<value_ints = [2]>() r = Slice(s, o, t, o) y = Squeeze(r, o)""",
    ),
}  # fmt: skip


def write(path: Path, given: str, nodes: str, named: bool = True) -> str:
    """A model with weights for a layer of three channels; without names for its free extents where so wanted."""
    made = write_model(path, 18, "y", nodes, given)
    add_weights(made, {"w": (3, 4, 1, 3), "v": (3,)})
    model = onnx.load(made)
    for value in () if named else model.graph.input:
        value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    onnx.save(model, made)
    return made


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize(("given", "nodes"), MODELS.values(), ids=MODELS)
def test_any_number_of_samples_takes_no_more_operators_than_one(
    given: str, nodes: str, named: bool, tmp_path: Path, interpreter: Interpreter
) -> None:
    path = write(tmp_path / "model.onnx", given, nodes, named)
    one = nnrewrite.rewrite(path, to="tflite", batch=1).report.target_operators
    any_number = nnrewrite.rewrite(path, to="tflite")
    assert sum(any_number.report.target_operators.values()) <= sum(one.values()), (any_number.report, one)
    made = read_bytes(any_number.encoded)
    rng = np.random.default_rng(0)
    extents = [dim.dim_value for dim in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
    for samples in (1, 3):
        x = rng.standard_normal((samples, *extents[1:]), np.float32)
        verdict = compare_models(path, made, inputs=[[x]], interpreter=interpreter)
        assert verdict.passed, (samples, verdict.differences)


@pytest.mark.parametrize("batch", [None, 1])
def test_a_tracker_of_octaves_needs_no_transposes(batch: int | None) -> None:
    path = Path(__file__).parents[3] / "shared/onnx_models/basicpitch_nmp.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    assert "TRANSPOSE" not in nnrewrite.rewrite(path, to="tflite", batch=batch).report.target_operators

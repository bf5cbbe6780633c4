"""What is written for TensorFlow Lite loads in runtimes of years ago, where the model leaves a choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from nnrewrite.engine.packs import loader
from nnrewrite.frontends.tflite_reader import read
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import compare_models

from .text_models import write_model

#: inputs, outputs and nodes
MODELS = {
    "numbers below an extent": (
        "float[b, n] x",
        """s = Shape<start = 1>(x) c = Squeeze(s) z = Constant<value_int = 0>() o = Constant<value_int = 1>()
        y = Range(z, c, o)""",
    ),
    "numbers from an extent on": (
        "float[b, n] x",
        """s = Shape<start = 1>(x) c = Squeeze(s) f = Shape<start = 0, end = 1>(x) z = Squeeze(f) e = Add(z, c)
        o = Constant<value_int = 1>() y = Range(z, e, o)""",
    ),
    "truth values at places": (
        "float[3, 4] x, int64[2, 1, 3, 1, 2] i",
        "z = Sub(x, x) b = Less(z, x) y = GatherND(b, i)",
    ),
    "groups of channels turned": (
        "float[1, 12, 5, 5] x",
        """p = Constant<value_ints = [1, 3, 4, 5, 1, 5]>() v = Reshape(x, p) w = Transpose<perm = [0, 2, 1, 3, 5, 4]>(v)
        y = Mul(w, w)""",
    ),
    "an activation behind a transposed convolution": (
        "float[1, 2, 4, 4] x",
        "v = ConvTranspose<strides = [2, 2]>(x, k) y = Relu(v)",
    ),
    "one slope for all channels": ("float[1, 2, 4, 4] x", "v = Conv(x, k) y = PRelu(v, a)"),
}
WEIGHTS = {"k": np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 2, 2, 2), "a": np.full([1, 1, 1], 0.25, np.float32)}
#: operators, each with the version that TensorFlow 2.8 does not know: 0 where one up to 2.14 gets it wrong
YOUNG = {"RANGE": 2, "GATHER_ND": 5, "TRANSPOSE": 6, "TRANSPOSE_CONV": 4, "PRELU": 0}


def list_versions(data: bytes) -> Mapping[str, int]:
    """The version of each operator in a file."""
    graph = read(data, loader.load(("onnx2tflite",)).catalogue).graph
    return {node.op_type: node.version or 1 for node in graph}


@pytest.mark.parametrize("about", MODELS)
def test_what_old_runtimes_take_is_preferred(tmp_path: Path, about: str) -> None:
    inputs, nodes = MODELS[about]
    source = write_model(tmp_path / "source.onnx", 18, "y", nodes, inputs)
    model = onnx.load(source)
    for name, array in WEIGHTS.items():
        if any(name in node.input for node in model.graph.node):
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, source)
    data = read_bytes(nnrewrite.rewrite(source, to="tflite").encoded)
    versions = list_versions(data)
    assert not [name for name, version in versions.items() if name in YOUNG and version >= YOUNG[name]]
    assert compare_models(str(source), data).passed

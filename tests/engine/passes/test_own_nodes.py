"""Constants are dequantized for each node that reads them."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import compare_models
from onnx import TensorProto, helper, numpy_helper


def test_readers_of_shared_weights_have_nodes_of_their_own(tmp_path: Path) -> None:
    """As ONNX Runtime 1.15 and 1.16 lose the axis of a node that several others read."""
    codes = np.arange(-18, 18, dtype=np.int8).reshape(4, 1, 3, 3)
    constants = {"w": codes, "s": np.array([0.1, 0.2, 0.3, 0.4], np.float32), "z": np.zeros(4, np.int8)}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"], axis=0),
        helper.make_node("Conv", ["x", "v"], ["a"], group=4),
        helper.make_node("Conv", ["a", "v"], ["b"], group=4),
        helper.make_node("DequantizeLinear", ["c", "s1", "z1"], ["x"]),
    ]
    constants |= {"s1": np.array(0.05, np.float32), "z1": np.array(3, np.int8)}
    graph = helper.make_graph(
        [nodes[3], *nodes[:3]],
        "net",
        [helper.make_tensor_value_info("c", TensorProto.INT8, [1, 4, 8, 8])],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [1, 4, 4, 4])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    source = tmp_path / "source.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    data = read_bytes(nnrewrite.rewrite(source).encoded)
    made = onnx.load_from_string(data).graph
    weights = [node for node in made.node if node.op_type == "DequantizeLinear" and node.input[0] != "c"]
    assert [len([one for one in made.node if node.output[0] in one.input]) for node in weights] == [1, 1]
    assert len({node.input[0] for node in weights}) == 1
    assert compare_models(str(source), data).passed

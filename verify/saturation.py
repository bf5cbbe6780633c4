"""Products of bytes that saturate: whether ONNX Runtime has such on this processor, and what models ask for."""

from __future__ import annotations

import functools

import numpy as np

from .interpreter import require


@functools.cache
def saturates() -> bool:
    """Whether the runtime adds two products of an unsigned and a signed byte in 16 bits, as on x86 without VNNI.

    Asked of a product of one row and one column, once. Raises VerificationError where the runtime is not there.
    """
    require("onnxruntime")
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    row, column = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    product = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, row.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
        [numpy_helper.from_array(column, "w")],
    )
    model = helper.make_model(product, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [[[found]]] = session.run(None, {"x": row})
    return int(found) != 2 * 255 * 127

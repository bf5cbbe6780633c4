"""Products of bytes that saturate: whether ONNX Runtime has such on this processor, and which a model has."""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir

from ..engine.base.names import Scope
from ..engine.dialects.operators import load
from ..engine.passes.accepted import Accepted
from ..engine.passes.base import Module, run_passes
from ..options import PORTABLE
from ..pipeline import prepare
from ..report import word_told
from .interpreter import require

#: the runtime's option to compute with unsigned weights where signed ones would saturate
PRECISE = "session.x64quantprecision"


@functools.cache
def saturates() -> bool:
    """Whether the runtime adds two products of an unsigned and a signed byte in 16 bits, as on x86 without VNNI.

    Asked of a product of one row and one column, once. Raises VerificationError where the runtime is not there.
    """
    require("onnxruntime")
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    operator = load().dialect("onnx").role("integer_product").name
    row, column = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    product = helper.make_graph(
        [helper.make_node(operator, ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, row.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
        [numpy_helper.from_array(column, "w")],
    )
    model = helper.make_model(product, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [[[found]]] = session.run(None, {"x": row})
    return int(found) != 2 * 255 * 127


def explain_saturation(model: bytes | str) -> str:
    """Which products of a model, from its bytes or its path, saturate on this processor, and with what target they do
    not, in the words of the rules of the target for no runtime in particular; nothing where none does."""
    if not saturates():
        return ""
    import onnx

    graph = (ir.from_proto(onnx.load_from_string(model)) if isinstance(model, bytes) else ir.load(model)).graph
    module = Module(graph, prepare((PORTABLE,), None).rules, Scope(graph))
    run_passes([Accepted()], module)
    return ", ".join(word_told(module.outcome.told))


def unshare(model: bytes | str) -> bytes:
    """A model, from its bytes or its path, in which each constant of signed bytes is read by one node.

    The runtime makes unsigned weights anew for each node that reads them, under one name, and then refuses the model.
    """
    import onnx

    proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    signed = {one.name: one for one in proto.graph.initializer if one.data_type == onnx.TensorProto.INT8}
    read: set[str] = set()
    for node in proto.graph.node:
        for place, name in enumerate(node.input):
            if name in signed and name in read:
                own = proto.graph.initializer.add()
                own.CopyFrom(signed[name])
                node.input[place] = own.name = f"{name} of {node.output[0]} {place}"
            read.add(name)
    return bytes(proto.SerializeToString())

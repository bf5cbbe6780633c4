"""Products of bytes that saturate: whether ONNX Runtime has such on this processor, and which a model has."""

from __future__ import annotations

import functools
import math
from collections.abc import MutableMapping, MutableSequence
from typing import TYPE_CHECKING

import numpy as np

from ..conversion.compiled_rules import prepare
from ..conversion.options import PORTABLE
from ..conversion.report import format_remarks
from ..engine.base.names import Scope
from ..engine.dialects.ops_files import load
from ..engine.passes.accepted import Accepted
from ..engine.passes.base import Module, run_passes
from ..frontends.onnx_graphs import read_proto
from ..frontends.onnx_source import read_graph
from .interpreter import require

if TYPE_CHECKING:
    import onnx

#: the runtime's option to compute with unsigned weights where signed ones would saturate
PRECISE = "session.x64quantprecision"
#: what is said where a model agrees with its original as that computes where they do not
UNSATURATED = "the original's products of bytes saturate on this processor, and were kept from it"


@functools.cache
def can_saturate() -> bool:
    """Whether the runtime adds two products of an unsigned and a signed byte in 16 bits, as on x86 without VNNI.

    Asked of a product of one row and one column, once. Raises VerificationError where the runtime is not there.
    """
    require("onnxruntime")
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    operator = load().find_dialect("onnx").find_role("integer_product").name
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
    """Which products of a model (bytes or path) saturate on this processor, and the target with which they do not.

    The words are those of the rules of the target `portable`. Empty where nothing saturates.
    """
    if not can_saturate():
        return ""
    graph = read_graph(model).graph
    module = Module(graph, prepare((PORTABLE,), None).rules, Scope(graph))
    run_passes([Accepted()], module)
    return ", ".join(format_remarks(module.outcome.told))


def unshare(model: bytes | str) -> bytes:
    """Give each reader of signed bytes its own constant, and several scales as many zero points; the model's bytes.

    A node that computes from such constants alone is copied for each of its readers as well. The runtime makes
    unsigned weights anew for each node that reads them, under one name, and then refuses the model; and where there is
    no zero point it makes a single one, which it refuses beside several scales.
    """
    import onnx

    proto = read_proto(model)
    signed = {one.name: one for one in proto.graph.initializer if one.data_type == onnx.TensorProto.INT8}
    _add_zero_points(proto, signed)
    constants, read = {one.name for one in proto.graph.initializer}, set[str]()
    made = {
        name: node
        for node in proto.graph.node
        if not signed.keys().isdisjoint(node.input) and constants.issuperset(node.input)
        for name in node.output
    }
    nodes = list[onnx.NodeProto]()

    def give_copies(reader: str, names: MutableSequence[str]) -> None:
        """Give a node copies of all that others before it read."""
        for place, name in enumerate(names):
            if name in read and name in signed:
                tensor = proto.graph.initializer.add()
                tensor.CopyFrom(signed[name])
                names[place] = tensor.name = f"{name} of {reader} {place}"
                signed[tensor.name] = tensor
            elif name in read and name in made:
                node = onnx.NodeProto()
                node.CopyFrom(made[name])
                node.output[:] = [f"{one} of {reader} {place}" for one in node.output]
                node.name = ""
                names[place] = node.output[list(made[name].output).index(name)]
                give_copies(node.output[0], node.input)
                nodes.append(node)
            read.add(names[place])

    for node in proto.graph.node:
        give_copies(node.output[0], node.input)
        nodes.append(node)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return bytes(proto.SerializeToString())


@functools.cache
def _find_dequantizer() -> str:
    """The name of the operator that turns codes into numbers: a runtime asks for each model that it loads."""
    return load().find_dialect("onnx").find_role("dequantize").name


def _add_zero_points(proto: onnx.ModelProto, signed: MutableMapping[str, onnx.TensorProto]) -> None:
    """Add the zero points, all 0, of signed constants that have several scales and none."""
    from onnx import TensorProto, helper

    operator = _find_dequantizer()
    extents = {one.name: one.dims for one in proto.graph.initializer}
    for number, node in enumerate(proto.graph.node):
        if node.op_type == operator and len(node.input) == 2 and node.input[0] in signed and extents.get(node.input[1]):
            dims = extents[node.input[1]]
            zero = helper.make_tensor(
                f"zero points of node {number}", TensorProto.INT8, dims, bytes(math.prod(dims)), raw=True
            )
            proto.graph.initializer.append(zero)
            signed[zero.name] = proto.graph.initializer[-1]
            node.input.append(zero.name)

"""Steps of real outputs of ONNX models: the scales of the codes that they are a view of."""

from __future__ import annotations

from onnx import numpy_helper

from ..engine.dialects.ops_files import load
from ..frontends.onnx_graphs import read_proto


def find_steps(model: str | bytes) -> dict[str, float]:
    """The scale of the codes that each output is a view of, for those that are one and have one scale alone."""
    graph = read_proto(model, external_data=False).graph
    dequantize = load().find_dialect("onnx").find_role("dequantize").name
    stored = {one.name: one for one in graph.initializer}
    outputs = {one.name for one in graph.output}
    found = {}
    for node in graph.node:
        if node.op_type == dequantize and node.output[0] in outputs and node.input[1] in stored:
            scale = numpy_helper.to_array(stored[node.input[1]])
            if scale.size == 1:
                found[node.output[0]] = float(scale.reshape(()))
    return found

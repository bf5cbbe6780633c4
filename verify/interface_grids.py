"""Grids of the inputs and outputs of ONNX models, by the nodes beside them: of codes, and of what these stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx_ir.passes.common import LiftConstantsToInitializersPass

from ..engine.base.constants import read_initializer
from ..engine.dialects.ops_files import load
from ..engine.passes.float_interface import list_named_grids
from ..frontends.onnx_source import read_graph


@dataclass(frozen=True, slots=True)
class InterfaceGrids:
    """What is known of the quantization of inputs and outputs, by their names."""

    #: the scale and zero point of those that are codes
    grids: Mapping[str, tuple[float, int]]
    #: the step of real outputs that are dequantized codes: the scale of the codes
    steps: Mapping[str, float]


def read_interface_grids(model: str | bytes) -> InterfaceGrids:
    """What the nodes that read all of an input say of it, and those that make an output of that."""
    read = read_graph(model)
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(read)
    dialect = load().find_dialect("onnx")
    grids = {
        value.name or "": (float(known.scale.item()), int(known.zero_point.item()))
        for value, known in list_named_grids(read.graph, dialect)
        if known.scale.size == 1
    }
    dequantize, steps = dialect.find_role("dequantize").name, dict[str, float]()
    for value in read.graph.outputs:
        node = value.producer()
        scale = None if node is None or node.op_type != dequantize else node.inputs[1]
        known = None if scale is None else read_initializer(scale)
        if known is not None and known.size == 1:
            steps[value.name or ""] = float(known.item())
    return InterfaceGrids(grids, steps)

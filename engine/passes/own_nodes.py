"""Pass `own-nodes`: constants are dequantized once for each node that reads them, where ops.yaml has that apart."""

from __future__ import annotations

import onnx_ir as ir

from ..base.startup import dataclass
from ..rewrite.subgraphs import copy
from .base import Module, Visit


@dataclass(frozen=True, slots=True)
class OwnNodes:
    """Copy nodes that dequantize constants for each reader behind the first, where ops.yaml has them `apart`.

    The constants stay one. Readers inside the graphs of nodes keep the node that they share.
    """

    visits: Visit = Visit.OUTSIDE_FIRST
    name = "own-nodes"

    def run(self, module: Module) -> None:
        """Give each reader its own node; what the graph yields is read as well."""
        spec = module.target.find_role("dequantize")
        same = [node for node in module.graph if node.op_type == spec.name and node.domain == spec.domain]
        for node in same:
            [value] = node.outputs
            readers = list(dict.fromkeys(use.node for use in value.uses()))
            if len(readers) + value.is_graph_output() > 1 and all(map(_is_constant, node.inputs)):
                for reader in readers if value.is_graph_output() else readers[1:]:
                    if reader.graph is module.graph:
                        _give_own(reader, node, module)


def _is_constant(value: ir.Value | None) -> bool:
    return value is None or value.is_initializer()


def _give_own(reader: ir.Node, node: ir.Node, module: Module) -> None:
    made = copy(node, node.inputs, module.names, node.attributes.values())
    module.graph.insert_before(reader, made)
    for place, read in enumerate(reader.inputs):
        if read is node.outputs[0]:
            reader.replace_input_with(place, made.outputs[0])

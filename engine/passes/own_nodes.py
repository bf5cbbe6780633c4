"""Pass `own-nodes`: constants are dequantized once for each node that reads them, where ops.yaml has that apart."""

from __future__ import annotations

import onnx_ir as ir

from ..base.startup import dataclass
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
    [value] = node.outputs
    made = ir.Node(node.domain, node.op_type, node.inputs, node.attributes.values(), num_outputs=1)
    made.metadata_props.update(node.metadata_props)
    made.name = module.names.make_name(node.name or f"{value.name}")
    copy = made.outputs[0]
    copy.name = module.names.make_name(f"{value.name}")
    copy.type, copy.shape = value.type, value.shape
    copy.meta.update(value.meta)
    module.graph.insert_before(reader, made)
    for place, read in enumerate(reader.inputs):
        if read is value:
            reader.replace_input_with(place, copy)

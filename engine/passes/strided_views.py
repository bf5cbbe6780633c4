"""Views: picks of all elements along an axis in their order, as exporters write views by strides, become reshapes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..base.startup import replace
from ..dialects.operators import get_option
from .base import Module
from .samples import KnownValues


def replace_strided_views(module: Module, known: KnownValues, samples: int) -> KnownValues:
    """Let nodes that pick more than the samples there are, in their order, reshape them: that can be said of others.

    Returns what is known of the graph then.
    """
    shapes, constants = dict(known.shapes), dict(known.constants)
    reshape = module.source.find_role("reshape")
    for node in list(module.graph):
        shape = shapes.get(node.outputs[0]) if node.outputs else None
        if shape is None or _count_picked(node, module, known) <= samples:
            continue
        to = module.names.register(module.names.make_constant(np.array(shape, np.int64), f"{node.name}/shape"))
        made = ir.Node(reshape.domain, reshape.name, [node.inputs[0], to], num_outputs=1)
        made.metadata_props.update(node.metadata_props)
        old, new = node.outputs[0], made.outputs[0]
        made.name = node.name
        ir.convenience.replace_nodes_and_values(module.graph, node, [node], [made], [old], [new])
        shapes[new] = shape
        assert to.const_value is not None
        constants[made, 1] = to.const_value
    return replace(known, shapes=shapes, constants=constants)


def _count_picked(node: ir.Node, module: Module, known: KnownValues) -> int:
    """How many elements along an axis a node yields, where these are all, in their order, by constants; else 0."""
    spec = module.source.find_operator(node.op_type, module.opset)
    if spec is None or spec.domain != node.domain:
        return 0
    read = known.shapes.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
    for option, operand in spec.facts.replaces.items():
        at = spec.find_operand(operand)
        tensor = None if at is None else known.constants.get((node, at))
        if read and tensor is not None and option in spec.options:
            count = read[int(get_option(node, spec.options[option])) % len(read)]
            if tensor.size == count and np.array_equal(tensor.numpy().ravel(), np.arange(count)):
                return count
    return 0

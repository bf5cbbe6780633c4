"""Weights of few bits: ONNX Runtime rounds to 8 bits what it multiplies by them, where a model or nobody says how."""

from __future__ import annotations

from ..frontends.onnx_graphs import list_nodes, read_proto

#: the attribute by which a node says how precisely the runtime may multiply; 0 is as precisely as its operands are
_LEVEL, _WHOLE = "accuracy_level", 0
#: the runtime's option that says so for what it joins itself, and single precision
LEVEL_OF_JOINED, SINGLE = "session.qdq_matmulnbits_accuracy_level", "1"
#: what stands beside a comparison without that
ROUNDED = (
    f"ONNX Runtime was asked by {LEVEL_OF_JOINED} = {SINGLE} not to round what it multiplies by weights of few bits"
)


def reset_accuracy_level(model: str | bytes) -> bytes | None:
    """The model, from its path or its bytes, that multiplies by weights of few bits as precisely as its operands are;
    None where it does so anyway. Constants that lie in other files stay there.
    """
    proto = read_proto(model, external_data=False)
    said = [one for node in list_nodes(proto.graph) for one in node.attribute if one.name == _LEVEL and one.i != _WHOLE]
    for one in said:
        one.i = _WHOLE
    return bytes(proto.SerializeToString()) if said else None

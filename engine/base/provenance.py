"""Provenance: which rule made a node, of which node of the source, and in which module that stood."""

from __future__ import annotations

import onnx_ir as ir

#: keys of `metadata_props`; the scope is the path of a module with slashes, each with its class behind a colon where
#: that is known
RULE, SOURCE, SCOPE = "nnrewrite.rule", "nnrewrite.source", "nnrewrite.scope"


def name_source(node: ir.Node) -> str:
    """The node of the source that a node stems from, by its name; the node itself where it says none."""
    return node.metadata_props.get(SOURCE, node.name or node.op_type)


#: key of `meta`: the operator of the source's node that a node stems from, which no file keeps
_OPERATOR = "source_operator"


def find_source_operator(node: ir.Node) -> str:
    """The operator of the node of the source that a node stems from; the node's own where no rule made it."""
    operator: str = node.meta.get(_OPERATOR, node.op_type)
    return operator


def note_source_operator(node: ir.Node, operator: str) -> None:
    """Note which operator of the source a node stems from, unless that is known."""
    node.meta.setdefault(_OPERATOR, operator)

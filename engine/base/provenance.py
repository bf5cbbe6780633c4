"""Provenance: which rule made a node, of which node of the source, and in which module that stood."""

from __future__ import annotations

import onnx_ir as ir

#: keys of `metadata_props`; the scope is the path of a module with slashes, each with its class behind a colon where
#: that is known
RULE, SOURCE, SCOPE = "nnrewrite.rule", "nnrewrite.source", "nnrewrite.scope"


def name_source(node: ir.Node) -> str:
    """The node of the source that a node stems from, by its name; the node itself where it says none."""
    return node.metadata_props.get(SOURCE, node.name or node.op_type)

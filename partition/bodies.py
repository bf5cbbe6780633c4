"""The graphs that nodes name, as attributes or by their numbers: bodies of loops and branches."""

from __future__ import annotations

import onnx_ir as ir

from ..engine.dialects.operators import Dialect
from ..engine.rewrite.subgraphs import find_bodies, list_called


def list_bodies(node: ir.Node, dialect: Dialect, model: ir.Model) -> list[ir.Graph]:
    """The graphs that a node of a model names itself, each once."""
    called = list_called([node], dialect, model.meta.get("subgraphs", ()), deep=False)
    return list(dict.fromkeys((*find_bodies(node), *called)))

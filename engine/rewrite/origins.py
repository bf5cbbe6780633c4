"""Which rule made each node of a model, and from which node of its source: read from a model, and written beside one.

Nodes of ONNX carry it themselves. Formats whose operators carry no text have it in a record of the whole model: a JSON
object `{"rules": [...], "operators": [[[rule, source], ...] of each graph]}`, deflated, where `rule` is a place in the
list of rules, or null.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ..base.errors import ModelError
from ..base.provenance import RULE, SOURCE
from ..base.startup import dataclass
from .traversal import walk_nodes

#: the name of the record among what else stands beside a model
RECORD = "nnrewrite.rules"
#: so many bytes a record may have when it is inflated
_MOST = 1 << 26


@dataclass(frozen=True, slots=True)
class Origin:
    """A node, the rule that made it (its file, line and column) and the node of the source it was made for, if any."""

    node: ir.Node
    rule: str | None
    source: str | None


def list_origins(model: ir.Model) -> list[Origin]:
    """The nodes of a model and of all its graphs, each with its origin; raises ModelError for a damaged record."""
    graphs = [model.graph, *model.meta.get("subgraphs", ())[1:]]
    record = model.meta.get("metadata", {}).get(RECORD)
    if record is not None:
        nodes = [list(graph) for graph in graphs]
        pairs = decode_origins(record)
        if list(map(len, pairs)) != list(map(len, nodes)):
            raise ModelError(f"its record {RECORD} is about other operators than it has")
        return [
            Origin(node, *pair)
            for row, said in zip(nodes, pairs, strict=True)
            for node, pair in zip(row, said, strict=True)
        ]
    return [Origin(node, *_read_props(node.metadata_props)) for graph in graphs for node in walk_nodes(graph)]


def encode_origins(graphs: Sequence[Sequence[ir.Node]]) -> bytes | None:
    """The record of the nodes of each graph of a model; None where no rule has made any of them."""
    rules: dict[str, int] = {}
    rows = []
    for graph in graphs:
        pairs = [_read_props(node.metadata_props) for node in graph]
        rows.append([(None if rule is None else rules.setdefault(rule, len(rules)), source) for rule, source in pairs])
    if not rules:
        return None
    return zlib.compress(json.dumps({"rules": list(rules), "operators": rows}, separators=(",", ":")).encode(), 9)


def decode_origins(record: bytes) -> list[list[tuple[str | None, str | None]]]:
    """The rule and the source of each node of each graph; raises ModelError for what is no such record."""
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(record, _MOST)
        if inflater.unconsumed_tail:
            raise ValueError("it is too long")
        read: Any = json.loads(text)
        rules = [str(rule) for rule in read["rules"]]
        return [
            [(None if rule is None else rules[rule], None if source is None else str(source)) for rule, source in row]
            for row in read["operators"]
        ]
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ModelError(f"its record {RECORD} is damaged: {error}") from error


def _read_props(props: Mapping[str, str]) -> tuple[str | None, str | None]:
    return props.get(RULE), props.get(SOURCE)


__all__ = ["RECORD", "Origin", "decode_origins", "encode_origins", "list_origins"]

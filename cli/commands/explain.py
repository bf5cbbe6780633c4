"""`rewrite explain`: which rule made each node of a converted model, and from which node of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import flags

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

#: what is said of a node that no rule has made
_NO_RULE = "no rule: it was in the model before, or a pass made it"


@click.command("rewrite explain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", metavar="MODEL.onnx", type=flags.File(exists=True))
@click.argument("node", metavar="[NODE]", required=False)
@flags.as_json
def command(model: Path, node: str | None, as_json: bool) -> None:
    """Show which rule (file and line) and which source operator each node of a converted MODEL comes from.

    NODE is the name of a node or of one of its results, or a part of the name. Without it, all nodes are listed, and
    how many each rule made.

    Exit status: 0 shown; 1 there is no such node, or the file is no ONNX model.
    """
    import google.protobuf.message
    import onnx

    from ...engine.base.errors import ModelError, RewriteError
    from ..json_documents import show

    try:
        read = onnx.load(model, load_external_data=False)
    except (google.protobuf.message.DecodeError, OSError) as error:
        raise ModelError(f"{model}: not an ONNX model, such as `rewrite MODEL.tflite` writes: {error}") from error
    if not read.HasField("graph"):
        raise ModelError(f"{model}: not an ONNX model, such as `rewrite MODEL.tflite` writes: it has no graph")
    nodes = list(_iterate_nodes(read.graph))
    if node is not None:
        wanted = [one for one in nodes if node in (one.name, *one.output)] or [
            one for one in nodes if any(node in name for name in (one.name, *one.output))
        ]
        if not wanted:
            raise RewriteError(f"{model}: no node has {node} in its name")
        if as_json:
            show("explain", True, map(_make_entry, wanted))
        else:
            click.echo("\n\n".join(_format_block(one) for one in wanted))
        return
    rules = Counter(_describe(one).get("nnrewrite.rule", _NO_RULE) for one in nodes)
    if as_json:
        show("explain", True, map(_make_entry, nodes), nodes=len(nodes), rules=rules)
        return
    width = max((len(one.op_type) for one in nodes), default=0)
    for one in nodes:
        click.echo(
            f"{one.op_type:<{width}}  {click.style(one.name or ', '.join(one.output), bold=True)}  {find_origin(one)}"
        )
    click.echo("")
    for rule, count in rules.most_common():
        click.echo(f"{count:>6}  {rule}")


def _iterate_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """All nodes of a graph and of the graphs inside it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _iterate_nodes(attribute.g)
            for inner in attribute.graphs:
                yield from _iterate_nodes(inner)


def _describe(node: NodeProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def _make_entry(node: NodeProto) -> dict[str, Any]:
    from ...conversion.target import find_reason

    said = _describe(node)
    rule = said.get("nnrewrite.rule")
    return {
        "operator": node.op_type,
        "name": node.name,
        "inputs": list(node.input),
        "outputs": list(node.output),
        "rule": rule,
        "why": find_reason(rule or "") or None,
        "source": said.get("nnrewrite.source"),
    }


def find_origin(node: NodeProto) -> str:
    """The rule that made a node, and the source operator."""
    said = _describe(node)
    if "nnrewrite.rule" not in said:
        return click.style(_NO_RULE, dim=True)
    source = said.get("nnrewrite.source", "")
    return said["nnrewrite.rule"] + (f" from {source}" if source else "")


def _format_block(node: NodeProto) -> str:
    from ...conversion.target import find_reason

    said = _describe(node)
    lines = [
        click.style(f"{node.op_type} {node.name}", bold=True),
        f"  operands  {', '.join(name or 'none' for name in node.input) or 'none'}",
        f"  results   {', '.join(node.output)}",
        f"  rule      {said.get('nnrewrite.rule', _NO_RULE)}",
    ]
    if why := find_reason(said.get("nnrewrite.rule", "")):
        lines.append(f"  why       {why}")
    if "nnrewrite.source" in said:
        lines.append(f"  source    {said['nnrewrite.source']}")
    return "\n".join(lines)

"""`rewrite explain`: which rule made each node of a converted model, and from which node of its source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import flags

if TYPE_CHECKING:
    from ...engine.rewrite.origins import Origin

#: what is said of a node that no rule has made
_NO_RULE = "no rule: it was in the model before, or a pass made it"


@click.command("rewrite explain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", metavar="MODEL", type=flags.File(exists=True))
@click.argument("node", metavar="[NODE]", required=False)
@flags.as_json
def command(model: Path, node: str | None, as_json: bool) -> None:
    """Show which rule (file and line) and which source operator each node of a converted MODEL comes from.

    MODEL is of any format. NODE is the name of a node or of one of its results, or a part of the name. Without it, all
    nodes are listed, and how many each rule made.

    Exit status: 0 shown; 1 there is no such node, or the file is no model.
    """
    from ...conversion.subject import list_origins
    from ...engine.base.errors import RewriteError
    from ..json_documents import show

    found = list_origins(model)
    if node is not None:
        wanted = [one for one in found if node in _list_names(one)] or [
            one for one in found if any(node in name for name in _list_names(one))
        ]
        if not wanted:
            raise RewriteError(f"{model}: no node has {node} in its name")
        if as_json:
            show("explain", True, map(_make_entry, wanted))
        else:
            click.echo("\n\n".join(_format_block(one) for one in wanted))
        return
    rules = Counter(one.rule or _NO_RULE for one in found)
    if as_json:
        show("explain", True, map(_make_entry, found), nodes=len(found), rules=rules)
        return
    width = max((len(one.node.op_type) for one in found), default=0)
    for one in found:
        name = one.node.name or ", ".join(_list_names(one))
        origin = format_origin(one.rule, one.source)
        click.echo(f"{one.node.op_type:<{width}}  {click.style(name, bold=True)}  {origin}")
    click.echo("")
    for rule, count in rules.most_common():
        click.echo(f"{count:>6}  {rule}")


def _list_names(origin: Origin) -> list[str]:
    return [origin.node.name or "", *_list_results(origin)]


def _list_results(origin: Origin) -> list[str]:
    return [value.name or "" for value in origin.node.outputs]


def _list_operands(origin: Origin) -> list[str]:
    return ["" if value is None else value.name or "" for value in origin.node.inputs]


def _make_entry(origin: Origin) -> dict[str, Any]:
    from ...conversion.target import find_reason

    return {
        "operator": origin.node.op_type,
        "name": origin.node.name,
        "inputs": _list_operands(origin),
        "outputs": _list_results(origin),
        "rule": origin.rule,
        "why": find_reason(origin.rule or "") or None,
        "source": origin.source,
    }


def format_origin(rule: str | None, source: str | None) -> str:
    """Word the rule that made a node, and the source operator."""
    if rule is None:
        return click.style(_NO_RULE, dim=True)
    return rule + (f" from {source}" if source else "")


def _format_block(origin: Origin) -> str:
    from ...conversion.target import find_reason

    lines = [
        click.style(f"{origin.node.op_type} {origin.node.name}", bold=True),
        f"  operands  {', '.join(name or 'none' for name in _list_operands(origin)) or 'none'}",
        f"  results   {', '.join(_list_results(origin))}",
        f"  rule      {origin.rule or _NO_RULE}",
    ]
    if why := find_reason(origin.rule or ""):
        lines.append(f"  why       {why}")
    if origin.source is not None:
        lines.append(f"  source    {origin.source}")
    return "\n".join(lines)

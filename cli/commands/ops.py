"""`rewrite ops`: which operators rules support, read from the rules themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from .. import completion, flags

if TYPE_CHECKING:
    from ...engine.passes.support import Support

_COLOURS = {
    "yes": "green",
    "as state": "green",
    "as it is made of others": "green",
    "in part": "yellow",
    "no": "red",
    "simplified": "green",
    "kept": "green",
}


@click.command("rewrite ops", context_settings={"help_option_names": ["-h", "--help"]})
@flags.rules
@click.option(
    "--target",
    metavar="TARGET",
    shell_complete=completion.offer_targets,
    help="Show instead what a target changes, and why.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="What to print.",
)
@flags.as_json
@click.argument("operator", metavar="[OP]", required=False, shell_complete=completion.offer_operators)
def command(rules: tuple[str, ...], target: str | None, form: str, as_json: bool, operator: str | None) -> None:
    """List the source operators and whether the rules support them: in every case, in part, or not, and why not.

    With OP, show one operator: its rules, options, types and opsets. With --target, show the options that a target
    sets where the user does not, and its rules with the reason for each.

    Exit status: 0 shown; 2 there is no such operator or rule pack, or a pack has mistakes.
    """
    from ..json_documents import show

    if as_json or operator is not None:
        flags.refuse_idle(("form",), "is about lists and targets that are printed as lines")
    if target is not None:
        flags.refuse_idle(("rules", "operator"), "is not about a target, whose own changes are shown")
        from ...conversion.checked_packs import read_checked

        read_checked([target])
        if as_json:
            show("ops", True, **_list_changes(target))
            return
        click.echo("\n".join(_format_target(target, form)))
        return
    from ...engine.packs import headers, loader
    from ...engine.passes.support import find_operator, survey_support

    pack = loader.load(rules)
    found = survey_support(pack.files, pack.catalogue, loader.read_sources(headers.add_bases(rules)))
    if operator is not None:
        found = [find_operator(found, operator)]
    if as_json:
        show("ops", True, map(_make_entry, found), rules=rules)
    elif operator is not None:
        click.echo("\n".join(format_detail(found[0])))
    else:
        click.echo("\n".join(write_markdown(found, rules) if form == "markdown" else format_list(found)))


def _make_entry(one: Support) -> dict[str, Any]:
    """All about one operator as an object of a document."""
    spec = one.operator
    types = spec.facts.types
    return {
        "name": spec.name,
        "code": spec.code,
        "supported": one.state,
        "limits": one.limits,
        "opsets": sorted(one.opsets),
        "operands": [
            {
                "name": operand.name,
                "optional": operand.optional,
                "variadic": operand.variadic,
                "types": types[place] if place < len(types) else None,
            }
            for place, operand in enumerate(spec.operands)
        ],
        "options": {name: one.options.get(name) for name in spec.options},
        "rules": [
            {
                "name": use.rule,
                "file": use.span.file,
                "line": use.span.line,
                "stage": use.stage,
                "conditions": use.conditions,
                "demands": use.demands,
            }
            for use in one.uses
        ],
    }


def _list_changes(name: str) -> dict[str, Any]:
    """What a target changes, as parts of a document."""
    from ...conversion.target import describe, list_changes, read_defaults

    return {"results": list_changes(name), "target": name, "about": describe(name), "options": read_defaults(name)}


def _format_target(name: str, form: str) -> list[str]:
    """What a target changes, as text or as tables of the documentation."""
    from ...conversion.target import describe, list_changes, read_defaults

    heading = f"{name}: {describe(name)}" if describe(name) else name
    options = {
        key: ", ".join(value) if isinstance(value, tuple) else value for key, value in read_defaults(name).items()
    }
    if form == "markdown":
        rows = [f"| `{one.rule}` | {one.file}:{one.line} | {one.why} |" for one in list_changes(name)]
        said = [f"| `{key}` | `{value}` |" for key, value in options.items()]
        tables = ["| Option | Value |", "|---|---|", *said, "", "| Rule | Where | Why |", "|---|---|---|", *rows]
        return [f"## {heading}", "", *tables]
    lines = [click.style(heading, bold=True), *(f"  {key}: {value}" for key, value in options.items())]
    for one in list_changes(name):
        lines.append(f"  {click.style(one.rule, bold=True)} ({one.file}:{one.line})")
        lines += [f"    {one.why}"] if one.why else []
    return lines


def format_list(found: Sequence[Support]) -> list[str]:
    """One line an operator, for a terminal."""
    width, states = (
        max(map(len, words)) for words in zip(*((one.operator.name, one.state) for one in found), strict=True)
    )
    lines = []
    for one in found:
        state = click.style(one.state, fg=_COLOURS[one.state]) + " " * (states - len(one.state))
        lines.append(f"{one.operator.name:<{width}}  {state}  {'; '.join(one.limits)}".rstrip())
    return [*lines, "", _count(found)]


def format_detail(one: Support) -> list[str]:
    """All about one operator."""
    from ...engine.expressions.opset_range import format_opsets

    spec = one.operator
    code = "" if spec.code is None else f" (code {spec.code})"
    lines = [
        click.style(spec.name, bold=True) + f"{code}: supported: " + click.style(one.state, fg=_COLOURS[one.state])
    ]
    lines += [f"  {limit}" for limit in one.limits]
    if one.opsets:
        lines.append(f"at {format_opsets(one.opsets)}")
    types = spec.facts.types
    lines.append("operands:")
    for position, operand in enumerate(spec.operands):
        said = types[position] if position < len(types) else ""
        lines.append(f"  {operand.name}{'?' * operand.optional}{'...' * operand.variadic}  {said}".rstrip())
    if spec.options:
        lines.append("options:")
        lines += [f"  {name}: {one.options.get(name, 'not taken')}" for name in spec.options]
    if one.uses:
        lines.append("rules:")
    for use in one.uses:
        conditions = f" where {' and '.join(use.conditions)}" if use.conditions else ""
        lines.append(f"  {use.rule} ({use.span.file}:{use.span.line}), stage {use.stage}{conditions}")
        lines += [f"    refuses the rest: {demand}" for demand in use.demands]
    return lines


def write_markdown(found: Sequence[Support], rules: Sequence[str]) -> list[str]:
    """The whole list as a page of the documentation: operators with a code, then those known by a name alone."""
    call = " ".join(f"--rules {name}" for name in rules)
    lines = [
        f"# Operators of {', '.join(rules)}",
        "",
        f"Written by `rewrite ops {call} --format markdown` from the rules themselves; do not edit.",
        "",
    ]
    if all(one.operator.code is None for one in found):
        return [*lines, _count(found), "", *_format_rows(found, ("Code", "Opsets"))]
    lines.append(_count([one for one in found if one.operator.code is not None]))
    custom = [one for one in found if one.operator.code is None]
    lines += ["", *_format_rows([one for one in found if one.operator.code is not None])]
    if custom:
        lines += ["", "## Custom operators", "", _count(custom), "", *_format_rows(custom)]
    return lines


def _format_rows(found: Sequence[Support], without: Collection[str] = ()) -> list[str]:
    """A table with a row for each operator, `without` some of its columns."""
    from ...engine.expressions.opset_range import format_opsets

    columns = ("Operator", "Code", "Supported", "Options", "Limits", "Opsets", "Rules")
    shown = [place for place, column in enumerate(columns) if column not in without]
    lines = [f"| {' | '.join(columns[place] for place in shown)} |", "|---" * len(shown) + "|"]
    for one in found:
        options = ", ".join(f"{name}: {taken}" for name, taken in one.options.items())
        rows = (
            one.operator.name,
            "" if one.operator.code is None else str(one.operator.code),
            one.state,
            options,
            "; ".join(one.limits),
            format_opsets(one.opsets).split(" ", 1)[1] if one.opsets else "",
            ", ".join(dict.fromkeys(use.rule for use in one.uses)),
        )
        lines.append("| " + " | ".join(rows[place].replace("|", "\\|") for place in shown) + " |")
    return lines


def _count(found: Sequence[Support]) -> str:
    counts = {state: sum(one.state == state for one in found) for state in _COLOURS}
    if counts["kept"] or counts["simplified"]:
        return f"{len(found)} operators: rules are about {counts['simplified']} of them, the others stay as they are."
    made = counts["as it is made of others"]
    return (
        f"{len(found)} operators: {counts['yes']} supported in every case, {counts['as state']} as state of the "
        f"model, {f'{made} as they are made of others, ' if made else ''}{counts['in part']} in part, "
        f"{counts['no']} not at all."
    )

"""`rewrite check`: the mistakes of rule packs, all of them, before a model is touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...engine.base.errors import format_count
from .. import completion, flags
from ..result_documents import override_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...engine.base.errors import RuleError
    from ...engine.packs.loader import Pack


@click.command("rewrite check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", metavar="[PACK...]", nargs=-1, shell_complete=completion.offer_packs)
@flags.as_json
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], as_json: bool) -> None:
    """Check rule packs: every mistake with its place, what is wrong, and how to mend it.

    PACK is a pack that comes with the program, a folder, or a file in one: its rules, its ops.yaml and its target.yaml.
    Several are laid over each other as they are by --rules; without any, every pack that comes with the program is
    checked.

    Exit status: 0 no mistakes; 2 mistakes, or a pack that is not there.
    """
    from ...conversion.checked_packs import read_checked
    from ...engine.base.errors import CallError, RuleError
    from ...engine.packs import folders
    from ..json_documents import diagnose, show

    together = [[_find_folder(path) for path in paths]] if paths else [[name] for name in folders.list_built_in()]
    found: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    for names in together:
        try:
            pack = read_checked(names)
            found.append(_count_items(names, pack))
            if not as_json:
                click.echo("\n".join(_format_summary(found[-1], pack)))
        except RuleError as error:
            wrong += diagnose(error)
            click.echo("\n".join(_format_error(error)), err=True)
        except CallError as error:
            from ..dispatch import print_error

            wrong += diagnose(error)
            print_error(f"{error}")
    if as_json:
        show("check", not wrong, found, wrong)
    ctx.exit(2 if wrong else 0)


def _find_folder(path: str) -> str:
    """A file stands for the pack that it is in, as rules call each other's definitions."""
    file = Path(path)
    return str(file.parent) if file.suffix in (".rules", ".yaml") and file.is_file() else path


def _format_error(error: RuleError) -> list[str]:
    lines = []
    for diagnostic in error.diagnostics:
        first, *rest = diagnostic.render(error.sources).splitlines()
        place, _, message = first.partition(f" {diagnostic.severity}: ")
        lines += [
            click.style(place, bold=True) + click.style(f" {diagnostic.severity}: ", fg="red") + message,
            *rest,
            "",
        ]
    files = len({diagnostic.span.file for diagnostic in error.diagnostics})
    return [*lines, f"{format_count(len(error.diagnostics), 'mistake')} in {format_count(files, 'file')}"]


def _count_items(names: Sequence[str], pack: Pack) -> dict[str, Any]:
    """What some packs hold, without those that they are loaded with."""
    from ...engine.packs import loader
    from ...engine.rewrite.families import write_out
    from ...engine.syntax import tree

    own = loader.read_sources(names, empty=True)
    files = [file for file in pack.files if file.span.file in own]
    items = [item for file in files for item in file.items]
    return {
        "packs": names,
        "files": len(files),
        "rules": sum(isinstance(item, tree.Rule) for item in items),
        "tables": sum(isinstance(item, tree.Table) for item in items),
        "definitions": sum(isinstance(item, tree.Definition) for item in items),
        "written_out": len(list(write_out(files))),
        "opsets": pack.opsets,
        "overrides": [override._asdict() for override in pack.overrides],
    }


def _format_summary(counts: Mapping[str, Any], pack: Pack) -> list[str]:
    from ...conversion.checked_packs import list_settings
    from ...engine.packs import loader

    low, high = pack.opsets
    parts = [format_count(counts[f"{noun}s"], noun) for noun in ("rule", "table", "definition")]
    head = f"{click.style(', '.join(counts['packs']), bold=True)}: {click.style('no mistakes', fg='green')}"
    others = [file.name for file in (*loader.find_entries(counts["packs"]), *list_settings(counts["packs"]))]
    if not counts["files"]:
        return [f"{head} in {' and '.join(others)}"]
    lines = [
        f"{head} in {format_count(counts['files'] + len(others), 'file')}: {', '.join(parts)}; "
        f"{format_count(counts['written_out'], 'rule')} with every member written out, opsets {low}..{high}"
    ]
    lines += [f"  {override_note(override)}" for override in pack.overrides]
    return lines

"""`rewrite fmt`: rule files in their one form."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .. import flags

#: stands for standard input, which is formatted to standard output
STDIN = Path("-")


@click.command("rewrite fmt", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", is_flag=True, help="Change nothing, and list the files that would be changed.")
@click.option("--diff", is_flag=True, help="Change nothing, and show what would be changed.")
@flags.as_json
@click.argument(
    "paths", metavar="FILE...", nargs=-1, required=True, type=flags.File(exists=True, folders=True, dash=True)
)
@click.pass_context
def command(ctx: click.Context, check: bool, diff: bool, as_json: bool, paths: tuple[Path, ...]) -> None:
    """Format rule files in place: indentation and spaces; lines and comments stay as they are.

    FILE is a rule file, a folder of which every rule file is formatted, or - for standard input, whose formatted text
    goes to standard output.

    Exit status: 0 done; 1 with --check or --diff, a file would be changed; 2 a file cannot be parsed.
    """
    from ...engine.base.atomic_write import open_replacement
    from ...engine.base.errors import CallError, RuleError
    from ...engine.syntax.formatter import format_rules
    from ..json_documents import diagnose, show

    kept = check or diff
    if as_json and STDIN in paths and not kept:
        raise CallError("--json takes standard output, where the formatted text of - goes: give --check or --diff")
    found: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    for file in _find_files(paths):
        before, name = _read_text(file), "<stdin>" if file == STDIN else f"{file}"
        try:
            after = format_rules(before, name)
        except RuleError as error:
            wrong += diagnose(error)
            click.echo(f"{error}", err=True)
            continue
        changed = after != before
        found.append({"file": name, "changed": changed, "diff": _make_diff(before, after, name) if diff else None})
        if file == STDIN and not kept:
            click.echo(after, nl=False)
        elif changed and not kept:
            with open_replacement(file) as out:
                out.write(after.encode("utf-8"))
        if as_json or not changed or (file == STDIN and not kept):
            continue
        click.echo(found[-1]["diff"] if diff else f"{'would format' if check else 'formatted'} {name}", nl=not diff)
    unlike = any(one["changed"] for one in found)
    if as_json:
        show("fmt", not wrong and not (kept and unlike), found, wrong)
    ctx.exit(2 if wrong else 1 if kept and unlike else 0)


def _find_files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """The rule files meant; raises CallError for a folder that has none."""
    from ...engine.base.errors import CallError

    for path in paths:
        files = sorted(path.rglob("*.rules")) if path.is_dir() else [path]
        if not files:
            raise CallError(f"there are no *.rules files in {path}")
        yield from files


def _read_text(file: Path) -> str:
    """The text of a rule file; raises RewriteError where it cannot be read."""
    from ...engine.base.errors import RewriteError
    from ...engine.base.regular_files import explain_failure, read_bytes

    try:
        data = sys.stdin.buffer.read() if file == STDIN else read_bytes(file)
        return data.decode("utf-8-sig")  # which some editors of Windows put a mark in front of
    except (OSError, UnicodeDecodeError) as error:
        raise RewriteError(f"{file}: cannot be read: {explain_failure(error)}") from error


def _make_diff(before: str, after: str, name: str) -> str:
    import difflib

    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(*lines, f"{name} (before)", f"{name} (after)"))

"""`rewrite fmt`: rule files in their one form."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("rewrite fmt", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", is_flag=True, help="Change nothing, and list the files that would be changed.")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.pass_context
def command(ctx: click.Context, check: bool, paths: tuple[Path, ...]) -> None:
    """Format rule files in place: indentation and spaces; lines and comments stay as they are.

    FILE is a rule file, or a folder of which every rule file is formatted.

    Exit status: 0 done; 1 with --check, a file would be changed; 2 a file cannot be parsed.
    """
    from ..destination import replacing
    from ..engine.errors import RuleError
    from ..engine.language.formatter import formatted

    changed = failed = False
    files = [file for path in paths for file in (sorted(path.rglob("*.rules")) if path.is_dir() else [path])]
    for file in files:
        before = file.read_text(encoding="utf-8")
        try:
            after = formatted(before, str(file))
        except RuleError as error:
            failed = True
            click.echo(f"{error}", err=True)
            continue
        if after == before:
            continue
        changed = True
        if not check:
            with replacing(file) as out:
                out.write(after.encode("utf-8"))
        click.echo(f"{'would format' if check else 'formatted'} {file}")
    ctx.exit(2 if failed else 1 if check and changed else 0)

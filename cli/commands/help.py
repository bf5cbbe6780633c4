"""`rewrite help`: what the command or a subcommand does, as --help says it."""

from __future__ import annotations

import click

from .. import completion
from ..dispatch import COMMANDS, app


@click.command("rewrite help", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", metavar="[COMMAND]", required=False, shell_complete=completion.offer_commands)
@click.pass_context
def command(ctx: click.Context, name: str | None) -> None:
    """Show what `rewrite`, or one of its commands, does and which options it has.

    Exit status: 0 shown; 2 there is no such command.
    """
    from ...engine.base.errors import CallError, suggest_nearest

    if name is not None and name not in COMMANDS:
        raise CallError(f"there is no command {name}{suggest_nearest(name, COMMANDS)}")
    app.main([*([name] if name else []), "--help"], prog_name="rewrite")

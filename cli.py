"""The command `rewrite`: which subcommand is meant, and what its errors look like and exit with."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

DEFAULT = "nnrewrite.conversion"
"""The module of the command that needs no name: `rewrite --rules tflite2onnx MODEL...`."""

COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("nnrewrite.commands.bench", "time models in TensorFlow Lite and in ONNX Runtime"),
    "check": ("nnrewrite.commands.check", "find the mistakes of rule packs"),
    "coverage": ("nnrewrite.commands.coverage", "list the rules and options that no test tried"),
    "explain": ("nnrewrite.commands.explain", "show which rule made each node of a converted model"),
    "fmt": ("nnrewrite.commands.fmt", "format rule files"),
    "fuzz": ("nnrewrite.commands.fuzz", "test rules on random models against the interpreter"),
    "ops": ("nnrewrite.commands.ops", "list the operators that rules support"),
    "verify": ("nnrewrite.commands.verify", "compare two models on the same inputs"),
}
"""Every other subcommand: name -> (its module, one line of help). A module's `command` is a click command."""


class Commands(click.Group):
    """A group whose default command needs no name and whose modules are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(COMMANDS[cmd_name][0]) if cmd_name in COMMANDS else None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Hand everything that does not start with a subcommand's name to the default command."""
        if args and args[0] in COMMANDS:
            return super().make_context(info_name, args, parent, **extra)
        return _command(DEFAULT).make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command meant; an error for the user is printed and ends it with status 1, or 2 for a rule's."""
        from .imports import light

        light()
        if ctx.command is self:
            gc.enable()
        from .engine.errors import RewriteError, RuleError

        try:
            return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)
        except RuleError as error:
            click.echo(f"{error}", err=True)
            ctx.exit(2)
        except RewriteError as error:
            complain(f"{error}")
            ctx.exit(1)
        except KeyboardInterrupt:
            complain("interrupted")
            ctx.exit(130)


def complain(message: str) -> None:
    """Print one error the way all of them are printed."""
    click.echo(click.style("rewrite: error: ", fg="red", bold=True) + message, err=True)


def no_command(name: str) -> str:
    """What to say of a first argument that is no file and may be a misspelt subcommand; empty for a file's name."""
    if "." in name or "/" in name:
        return ""
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"; did you mean `rewrite {close[0]}`?" if close else ""
    return f"there is no file or command {name}{hint}"


def commands_help() -> str:
    """List the subcommands for the default command's help, empty while there are none."""
    if not COMMANDS:
        return ""
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in sorted(COMMANDS.items())]
    return "\b\nCommands (rewrite COMMAND --help says more):\n" + "\n".join(lines)


def _command(module: str) -> click.Command:
    command: click.Command = importlib.import_module(module).command
    return command


app = Commands("rewrite")


def main() -> None:
    """Run the command line; what is terminated cleans up as what is interrupted does."""
    signal.signal(signal.SIGTERM, _terminated)
    # Modules and rules stay until the end: looking for garbage among them takes a fifth of a small conversion. What
    # runs for longer turns this off.
    gc.disable()
    try:
        app(prog_name="rewrite")
    finally:
        gc.freeze()


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)

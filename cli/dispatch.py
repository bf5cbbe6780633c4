"""The command `rewrite`: which subcommand is meant, and what its errors look like and exit with."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import click

DEFAULT = "nnrewrite.cli.convert"
"""The module of the command that needs no name: `rewrite --rules tflite2onnx MODEL...`."""

COMMANDS: dict[str, tuple[str, str]] = {
    "convert": (DEFAULT, "convert models: the same as `rewrite MODEL...`"),
    "bench": ("nnrewrite.cli.commands.bench", "time models in TensorFlow Lite and in ONNX Runtime"),
    "check": ("nnrewrite.cli.commands.check", "find the mistakes of rule packs"),
    "coverage": ("nnrewrite.cli.commands.coverage", "list the rules and options that no test tried"),
    "explain": ("nnrewrite.cli.commands.explain", "show which rule made each node of a converted model"),
    "fmt": ("nnrewrite.cli.commands.fmt", "format rule files"),
    "fuzz": ("nnrewrite.cli.commands.fuzz", "test rules on random models against the interpreter"),
    "help": ("nnrewrite.cli.commands.help", "show the help of a command"),
    "ops": ("nnrewrite.cli.commands.ops", "list the operators that rules support"),
    "partition": ("nnrewrite.cli.commands.partition", "divide a model into what a target takes and the rest"),
    "suggest": ("nnrewrite.cli.commands.suggest", "propose a rule for an operator by searching small templates"),
    "verify": ("nnrewrite.cli.commands.verify", "compare two models on the same inputs"),
}
"""Every other subcommand: name -> (its module, one line of help). A module's `command` is a click command."""


class Commands(click.Group):
    """A group whose default command needs no name and whose modules are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _import_command(COMMANDS[cmd_name][0]) if cmd_name in COMMANDS else None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Hand everything that does not start with a subcommand's name to the default command."""
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            extra["color"] = False
        named = bool(args) and args[0] in COMMANDS
        called = args[0] if named else "convert", "--json" in args
        with _report_errors(*called):
            if named:
                ctx = super().make_context(info_name, args, parent, **extra)
            else:
                ctx = _import_command(DEFAULT).make_context(info_name, args, parent, **extra)
        ctx.meta[_CALLED] = called
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command meant; an error for the user is printed and ends it with status 1 or 2."""
        with _report_errors(*ctx.meta[_CALLED]):
            from ..engine.base.startup import import_onnx_ir

            import_onnx_ir()
            logging.getLogger("onnx_ir").setLevel(logging.ERROR)  # what is wrong with a model we say ourselves
            if ctx.command is not self:
                return ctx.command.invoke(ctx)
            gc.enable()
            return super().invoke(ctx)


#: what the system says of a device that takes no more
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: the kind of a diagnostic that tells of an interruption
INTERRUPTED = "Interrupted"
#: where a context has the name of the command that is called, and whether it prints JSON
_CALLED = "nnrewrite.called"


class Told(KeyboardInterrupt):
    """An interruption of a command that has printed its document, with what was finished, already."""


def format_interruption(finished: str) -> str:
    """Say that a call was interrupted, and what was finished by then."""
    return f"interrupted: {finished}" if finished else "interrupted"


@contextlib.contextmanager
def _report_errors(command: str, as_json: bool) -> Iterator[None]:
    """Print an error for the user, also as a document where JSON is asked for, and end the program by its status.

    The status is 2 for mistakes of rule files and of the call, 130 for an interruption, and 1 for all else.
    """
    try:
        yield
    except click.exceptions.Exit:
        raise
    except click.ClickException as error:
        if as_json:
            _print_document(command, error.format_message(), "CallError")
        raise
    except KeyboardInterrupt as error:
        # Whoever counts what is finished says so by the interruption that is passed on.
        message = format_interruption(f"{error}")
        print_error(message)
        if as_json and not isinstance(error, Told):
            _print_document(command, message, INTERRUPTED)
        raise click.exceptions.Exit(130) from None
    except Exception as error:
        from ..engine.base.errors import CallError, InternalError, RewriteError, RuleError

        if isinstance(error, OSError) and error.filename is None and error.errno in (*_NO_ROOM, errno.EPIPE):
            raise
        if not isinstance(error, RewriteError):
            error = InternalError(f"rewrite {command}", error)
        if isinstance(error, RuleError):
            click.echo(f"{error}", err=True)
        else:
            print_error(f"{error}")
        if as_json:
            from .json_documents import diagnose, show

            show(command, False, diagnostics=diagnose(error))
        raise click.exceptions.Exit(2 if isinstance(error, RuleError | CallError) else 1) from None


def _print_document(command: str, message: str, kind: str) -> None:
    from .json_documents import make_diagnostic, show

    show(command, False, diagnostics=[make_diagnostic(message, kind)])


def print_error(message: str) -> None:
    """Print one error the way all of them are printed."""
    click.echo(click.style("rewrite: error: ", fg="red", bold=True) + message, err=True)


def explain_unknown(name: str) -> str:
    """What to say of a first argument that is no file and may be a misspelt subcommand; empty for a file's name."""
    if name in COMMANDS:
        return f"a command stands first: rewrite {name} ..."
    if "." in name or "/" in name:
        return ""
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"; did you mean `rewrite {close[0]}`?" if close else ""
    return f"there is no file or command {name}{hint}"


def list_commands() -> str:
    """List the subcommands for the default command's help."""
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in sorted(COMMANDS.items())]
    return "\b\nCommands (rewrite COMMAND --help says more):\n" + "\n".join(lines)


def _import_command(module: str) -> click.Command:
    command: click.Command = importlib.import_module(module).command
    return command


app = Commands("rewrite")


def main() -> None:
    """Run the command line; what is terminated cleans up as what is interrupted does."""
    end_by_signals()
    sys.unraisablehook = _raise_again
    _open_streams()
    # Modules and rules stay until the end: looking for garbage among them takes a fifth of a small conversion. What
    # runs for longer turns this off.
    gc.disable()
    try:
        app(prog_name="rewrite")
    except OSError as error:
        _give_up(error)
    finally:
        gc.freeze()


def _open_streams() -> None:
    """Let streams that the caller has closed lead nowhere, so that no other file gets their place."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def end_by_signals() -> None:
    """Let what is terminated, or loses its terminal, clean up before it ends."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, end_program)


def _raise_again(found: sys.UnraisableHookArgs) -> None:
    """Raise what ends the program once more, soon, where it came as an object went and Python passes it over."""
    ending = found.exc_value
    if not isinstance(ending, KeyboardInterrupt | SystemExit) or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(found)
        return

    def raise_ending(number: int, frame: FrameType | None) -> NoReturn:
        raise ending

    signal.signal(signal.SIGALRM, raise_ending)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def end_program(number: int, frame: FrameType | None) -> NoReturn:
    """Raise an exception that ends the program for a signal; a second signal is ignored."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _give_up(error: OSError) -> NoReturn:
    """Tell in one line that what is printed finds no room; raises the error itself where it is another."""
    if error.filename is not None or error.errno not in _NO_ROOM:
        raise error
    # What is left to print goes nowhere, or it would fail again as the program ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(OSError):
        print_error(f"the output cannot be written: {error.strerror}")
    sys.exit(1)

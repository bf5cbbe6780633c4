"""Flags: the options of the command line that several commands have, above all those that are fields of Options."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from . import completion

Command = TypeVar("Command", bound=Callable[..., Any])


#: the key under which a context says that the value of a parameter ends as folders do
FOLDER = "nnrewrite.folder"


class File(click.Path):
    """A path on this machine, to read or to write: no URL, and no standard input except where `dash` allows it."""

    def __init__(
        self,
        exists: bool = False,
        files: bool = True,
        folders: bool = False,
        written: bool = False,
        dash: bool = False,
    ) -> None:
        super().__init__(exists=exists, file_okay=files, dir_okay=folders, path_type=Path, allow_dash=dash)
        self.written = written

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a path; fail for what is none."""
        from ..engine.base.atomic_write import check_name
        from ..engine.base.errors import CallError
        from ..frontends.source import is_remote

        if not f"{value}":
            self.fail("an empty name is none of a file", param, ctx)
        try:
            check_name(f"{value}")
        except CallError as error:
            self.fail(f"{error}", param, ctx)
        try:
            os.lstat(value)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self.fail(f"{value}: {error.strerror}", param, ctx)
        if is_remote(value):
            where = "is a URL: files are written to this machine" if self.written else "is a URL: download it first"
            self.fail(f"{value} {where}", param, ctx)
        if f"{value}" == "-" and not (self.written or self.allow_dash):
            self.fail("- is no file: what is read has to be a file, not standard input", param, ctx)
        if self.written and ctx is not None and param is not None and f"{value}".endswith("/"):
            ctx.meta[f"{FOLDER}.{param.name}"] = True
        return super().convert(value, param, ctx)


def add_seconds(help: str, default: float | None = None) -> Callable[[Command], Command]:
    """The option `--time`, a number of seconds above 0."""
    return click.option(
        "--time",
        "seconds",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=default,
        show_default=default is not None,
        help=help,
    )


def _add_seed(help: str) -> Callable[[Command], Command]:
    return click.option("--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help=help)


#: prints a document in place of lines
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, as docs/json.md describes.")
#: tells random inputs apart, and random models
seed = _add_seed("Seed of the random inputs.")
model_seed = _add_seed("The same seed generates the same models.")
#: the packs whose rules a command is about
rules = click.option(
    "--rules",
    multiple=True,
    default=("tflite2onnx",),
    show_default=True,
    metavar="PACK",
    shell_complete=completion.offer_packs,
    help="The rules. May be repeated.",
)

#: gives inputs another shape
input_shape = click.option(
    "--input-shape",
    multiple=True,
    metavar="NAME=SHAPE",
    help="Give an input another shape than the file says, such as NAME=1,224,224,3. May be repeated."
    " [default: that of the file]",
)
#: gives inputs another batch
batch = click.option(
    "--batch",
    metavar="N|dynamic",
    shell_complete=completion.offer_words("dynamic"),
    help="Give the inputs another batch (their first extent), 1 or more, or leave it to be known at run time."
    " [default: that of the file]",
)

#: one for each field of Options, by its name; what the help shows is in this order
FLAGS = (
    click.option(
        "--rules",
        multiple=True,
        metavar="PACK",
        shell_complete=completion.offer_packs,
        help="Rules to apply: a pack that comes with the program, or a folder. May be repeated. [default: those that"
        " lead from the model's format to the one to write]",
    ),
    click.option(
        "--opset",
        type=int,
        metavar="N",
        help="The ONNX opset to write: 13 to 25, or 7 to the newest of the installed onnx where the"
        " model is ONNX already. [default: 18, or the first that can hold the model; that of an ONNX model]",
    ),
    click.option(
        "--target",
        metavar="TARGET",
        shell_complete=completion.offer_targets,
        help="The runtime to make models for: onnxruntime, onnxruntime-avx2 or onnxruntime-small; litert or tflm for"
        " TensorFlow Lite models; a folder of rules; or portable for none in particular. [default: onnxruntime, for"
        " TensorFlow Lite models litert; portable for ONNX models]",
    ),
    click.option(
        "--to",
        metavar="FORMAT",
        help="The format to write, by the ending of its files: onnx, tflite or cc, or torch or keras for code."
        " [default: that of -o]",
    ),
    click.option(
        "--layout",
        multiple=True,
        metavar="LAYOUT",
        shell_complete=completion.offer_words("source", "target"),
        help="The order of axes of inputs and outputs: source (the model's own), target (channels first where that"
        " saves a Transpose), or NAME=NHWC:NCHW for one of them. May be repeated. [default: source]",
    ),
    input_shape,
    batch,
    click.option("--float", is_flag=True, help="Make everything that is quantized float32."),
    click.option("--float-io", is_flag=True, help="Make quantized inputs and outputs float32."),
    click.option("--unfold", is_flag=True, help="In code: put a BatchNorm back behind convolutions and products."),
    click.option("--fake-quantize", is_flag=True, help="In code: round what was quantized to the grid of its codes."),
    click.option("--keep-float16", is_flag=True, help="Leave float16 constants as they are stored."),
    click.option(
        "--activations",
        type=click.Choice(["int8", "uint8"]),
        help="The signedness of inner 8-bit values of quantized models. [default: what the target is fast with]",
    ),
    click.option(
        "--exact",
        is_flag=True,
        help="Compute quantized operators bit for bit as TensorFlow Lite's reference kernels do.",
    ),
    click.option(
        "--hybrid",
        type=click.Choice(["integers", "real"]),
        help="Multiply real activations by integer weights as integers, quantizing them in each run as TensorFlow Lite"
        " does, or as real numbers. [default: what the target asks for]",
    ),
    click.option(
        "--keep-custom",
        is_flag=True,
        help="Leave custom operators that no rule is about as nodes of the domain tflite.custom.",
    ),
    click.option(
        "--max-folded-bytes",
        type=click.IntRange(0),
        metavar="N",
        help="Compute constants of an ONNX model that in all take at most N bytes more than what they are made of."
        " [default: 65536, or a 64th of all constants]",
    ),
    click.option(
        "--state",
        type=click.Choice(["external", "internal"]),
        default="external",
        show_default=True,
        help="What a model remembers between calls: external makes it inputs and outputs, to be fed back; internal"
        " lets each call begin anew.",
    ),
    click.option(
        "--signature",
        metavar="NAME|all",
        shell_complete=completion.offer_signatures,
        help="Convert this signature of a model, or each of them to FILE.NAME.onnx. [default: serving_default, or the"
        " only one]",
    ),
    click.option(
        "--inputs",
        multiple=True,
        metavar="NAME",
        help="Convert a part of the model, which begins at this value. May be repeated. [default: the model's inputs]",
    ),
    click.option(
        "--outputs",
        multiple=True,
        metavar="NAME",
        help="Convert a part of the model, which ends at this value. May be repeated. [default: the model's outputs]",
    ),
    click.option(
        "--skip",
        multiple=True,
        metavar="RULE",
        shell_complete=completion.offer_rules,
        help="Leave out a rule. May be repeated.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="RULE",
        shell_complete=completion.offer_rules,
        help="Try no rule but this. May be repeated.",
    ),
    click.option("--alone", is_flag=True, help="Apply no rule set before that of a pack whose header asks for one."),
    click.option(
        "--member",
        metavar="NAME",
        shell_complete=completion.offer_members,
        help="Of a .task bundle, convert this model alone. [default: all of them]",
    ),
)


def take_options(command: Command) -> Command:
    """Let a command take every field of Options, as an argument of the same name."""
    for flag in reversed(FLAGS):
        command = flag(command)
    return command


def refuse_idle(names: Sequence[str], why: str) -> None:
    """Raise CallError for an option or argument, by the name of its parameter, that is given although it has no
    effect."""
    ctx = click.get_current_context()
    for param in ctx.command.params:
        given = param.name is not None and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
        if param.name in names and given:
            from ..engine.base.errors import CallError

            said = param.opts[-1] if param.param_type_name == "option" else param.make_metavar(ctx).strip("[]")
            raise CallError(f"{said} {why}")

"""Flags: the options of the command line that are fields of Options, for each command that converts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

#: one for each field of Options, by its name; what the help shows is in this order
FLAGS = (
    click.option(
        "--rules",
        multiple=True,
        default=("tflite2onnx",),
        metavar="PACK",
        help="Rules to apply: a pack that comes with the program, or a folder. May be repeated. [default: tflite2onnx]",
    ),
    click.option("--opset", type=click.IntRange(min=1), metavar="N", help="The ONNX opset to write."),
    click.option(
        "--target",
        default="onnxruntime",
        metavar="TARGET",
        help="The runtime to make models for: onnxruntime, a folder of rules, or portable for none in particular."
        " [default: onnxruntime]",
    ),
    click.option(
        "--layout",
        multiple=True,
        metavar="LAYOUT",
        help="The order of axes of inputs and outputs: source (the model's own), target (channels first where that"
        " saves a Transpose), or NAME=NHWC:NCHW for one of them. May be repeated. [default: source]",
    ),
    click.option(
        "--input-shape",
        multiple=True,
        metavar="NAME=SHAPE",
        help="Give an input another shape than the file says, such as NAME=1,224,224,3. May be repeated.",
    ),
    click.option(
        "--batch",
        metavar="N|dynamic",
        help="Give the inputs another batch (their first extent), or leave it to be known at run time.",
    ),
    click.option("--float", is_flag=True, help="Make everything that is quantized float32."),
    click.option("--float-io", is_flag=True, help="Make quantized inputs and outputs float32."),
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
        "--state",
        type=click.Choice(["external", "internal"]),
        default="external",
        help="What a model remembers between calls: external makes it inputs and outputs, to be fed back; internal"
        " lets each call begin anew. [default: external]",
    ),
    click.option(
        "--signature",
        metavar="NAME|all",
        help="Convert this signature of a model, or each of them to FILE.NAME.onnx. [default: serving_default, or the"
        " only one]",
    ),
    click.option("--member", metavar="NAME", help="Of a .task bundle, convert this model alone."),
)


def asked(command: Command) -> Command:
    """Let a command take every field of Options, as an argument of the same name."""
    for flag in reversed(FLAGS):
        command = flag(command)
    return command

"""The keys of ops.yaml that say how operators and models of a dialect that is source code are written in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from ..base.startup import dataclass, field


@dataclass(frozen=True, slots=True)
class OperatorPython:
    """How an operator of a dialect that is source code is written in Python."""

    said: tuple[str, ...] = ()
    expression: Annotated[
        str | None,
        "The expression that computes it, as its documentation has it: `F.pad(x, pad, mode='constant', value=0.0)`."
        " Names are those of operands and options; what has its default is left out, `*xs` puts in several",
    ] = None
    module: Annotated[str | None, "The layer that computes it, as it is constructed: `nn.ReLU()`"] = None
    held: Annotated[
        tuple[str, ...], "Operands that the layer holds; as an argument of it their name says whether there is one"
    ] = ()
    stored: Annotated[
        Mapping[str, str],
        "Operands that the layer has under other names or in parts of it, as `{kernel: cell.kernel}`; what others"
        " are called that are constants",
    ] = field(default_factory=dict)
    built: Annotated[
        str | None,
        "The extents of what the layer takes as far as its weights tell them, of their extents and of options:"
        " `(None, None, kernel[-2] * groups)`",
    ] = None
    numbers: Annotated[
        tuple[str, ...], "Operands that are written as numbers where they are constants of one element"
    ] = ()
    rest: Annotated[str | None, "Of those, extents of which one may be -1: what follows from all others"] = None
    called: Annotated[str | None, "What layers and results of it are called"] = None
    call: Annotated[str | None, "How the layer is called, where that is not with its operands: `layer(x, (h, c))`"] = (
        None
    )
    unpacked: Annotated[str | None, "The results as they are assigned, where these are no flat list: `y, (h, c)`"] = (
        None
    )
    plain: Annotated[bool, "Whether its results are numbers of Python and no tensors"] = False
    extent: Annotated[str | None, "The option with the axis, where its result is an extent of its operand"] = None
    types: Annotated[tuple[str, ...], "Options that are numbers of element types, as ONNX has them"] = ()
    statement: Annotated[
        Literal["if", "for"] | None,
        "The statement of Python that it is, whose blocks are its graphs. `if`: of a condition; `for`: of a count and a"
        " condition, either of which may be left out, and of values that go round",
    ] = None


@dataclass(frozen=True, slots=True)
class DialectPython:
    """How a model in a dialect that is source code is written in Python."""

    said: tuple[str, ...] = ()
    imports: Annotated[tuple[str, ...], "The lines at its head; those that nothing refers to are left out"] = ()
    functions: Annotated[
        Mapping[str, str], "Functions by their names, as they stand before the classes where something calls them"
    ] = field(default_factory=dict)
    base: Annotated[str, "The class that the model extends"] = "object"
    block: Annotated[str | None, "The class that its repeated parts extend, where that is another"] = None
    method: Annotated[str, "The method that computes"] = "forward"
    tensor: Annotated[str, "The class of tensors; nothing where methods are written without types"] = "Tensor"
    sequential: Annotated[str, "The layer that is a chain of others, `*layers`"] = "Sequential(*layers)"
    list: Annotated[str, "What holds layers of which each is called apart, `layers`"] = "list(layers)"
    parameter: Annotated[str, "A tensor that is trained, of a `name` and a `shape`"] = "zeros(shape)"
    buffer: Annotated[
        str,
        "A statement that makes a tensor that is not, of a `name`, a `shape` and a `dtype`; behind `name = ` what is"
        " assigned",
    ] = ""
    constant: Annotated[
        str,
        "A tensor of few numbers `value` of a `dtype` that is not trained, where these are written and it is no buffer",
    ] = ""
    build: Annotated[
        str,
        "What makes the weights of a layer `layer` for operands of a `shape`, where a run may pass it by",
    ] = ""
    named_numbers: Annotated[bool, "Whether layers take what is no tensor, and what comes after it, by name"] = False
    ties: Annotated[bool, "Whether an assignment lets layers share a weight"] = False
    frozen: Annotated[str | None, "A statement by which a weight `weight` of a layer is not trained"] = None
    precision: Annotated[
        Mapping[str, str],
        "By an element type that layers have not by themselves, the call by which all real numbers of a model have it",
    ] = field(default_factory=dict)
    keywords: Annotated[
        str | None, "What the constructor of a model takes besides and hands on to its base, as keywords: `kwargs`"
    ] = None
    typed: Annotated[
        str | None, "The argument that says the element type of a layer and of a class, where it is not of 32 bits"
    ] = None
    mixed: Annotated[str, "A call with what classes are given instead where real numbers are of several types"] = "f()"
    types: Annotated[Mapping[str, str], "Element types by their short names"] = field(default_factory=dict)
    scalar: Annotated[str, "The tensor of a number `n`"] = "n"
    stack: Annotated[str, "Tensors of a list `xs` one above the other"] = "stack(xs)"
    empty: Annotated[str, "A tensor without elements, of a `shape` and a `dtype`"] = "zeros(shape, dtype)"
    examples: Annotated[
        Mapping[str, str],
        "By the kind of an element type (float, other_float if not of 32 bits, integer, bool): an input with `{shape}`"
        " and `{dtype}`; `begin`: one that is `{number}` at first",
    ] = field(default_factory=dict)
    readme: Annotated[
        str,
        "The text beside the code, with `{name}` of the class, `{code}` and `{tensors}` for files, `{inputs}` of its"
        " method and `{examples}`, the lines that make them",
    ] = ""
    reserved: Annotated[tuple[str, ...], "Names that members of its classes cannot have"] = ()
    unfolded: Annotated[str | None, "The rule set that puts layers back which were folded into others"] = None
    fake_quantized: Annotated[
        str | None, "The rule set by which quantized values are real numbers on the grid of their codes"
    ] = None
    unfused: Annotated[
        tuple[str, ...], "Rules on the way to it that are left out, as what they make one is trained apart"
    ] = ()

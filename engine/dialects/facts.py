"""The keys of ops.yaml beside those that each operator has: every key declared once, with what it says.

The text in an annotation is what editors show of the key, and a type behind it is what stands in the file, where that
is another than in the program. A dataclass inside another is a section of keys of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from ..base.startup import dataclass, field
from .python_facts import OperatorPython
from .trial_facts import Grid, Member, OperatorTrials

#: the words that passes and rules ask for, and what passes need the one operator of a dialect for
Trait = Literal[
    "activation", "bilinear", "by_parts", "by_range", "commutative", "context", "core", "effect", "form", "former",
    "hybrid", "linear", "moves", "output_activation", "pads", "random", "runs_graphs", "stored", "view",
]  # fmt: skip
Role = Literal[
    "assign", "broadcast", "convert", "copy", "custom", "dequantize", "dequantize_by", "extend", "fill", "initialize",
    "integer_product", "join", "list", "permute", "pick", "quantize", "quantize_by", "read", "reshape", "shape",
    "table", "variable",
]  # fmt: skip
#: what a number or a list of them counts of the axes of a tensor
Counted = Literal["axis", "axes", "perm", "per_axis", "per_axis_computed", "per_axis_pairs", "per_axis_rows"]
#: element types that formats have and rules have no name for, and what stands for all
OTHER_TYPES = frozenset({"any", "resource", "variant"})


class Kept(TypedDict):
    """Operators of another program that files have under their own names."""

    prefix: Annotated[str, "What their names have in front in rules"]
    types: Annotated[tuple[str, ...], "Options of theirs that repeat the types of values"]


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What ops.yaml says of an operator beside its operands, results and options; `said` are the keys it has there."""

    said: tuple[str, ...] = ()
    types: Annotated[
        tuple[str, ...],
        "The element types of the first operands, a string for each and the last for all that follow: short names with"
        " a blank between them, and a `q` before those that are codes of quantized values",
    ] = ()
    yields: Annotated[tuple[str, ...], "The element types of results where these are not those of the operands"] = ()
    version: Annotated[int, "The first version of it that runtimes have"] = 1
    versions: Annotated[
        Mapping[int, tuple[Mapping[str, Any], ...]],
        "Later versions, each with conditions of which one makes it needed: operands and results with element types,"
        " options with a value (of numbers the least), `rank` (at least), `operands` (at most so many), `coded`,"
        " `broadcast`, and `channels`, the operand that has a scale for each index",
    ] = field(default_factory=dict)
    older: Annotated[
        Mapping[int, str],
        "Opsets up to which it meant something else, each with the name that rules have for what it was",
    ] = field(default_factory=dict)
    once_along: Annotated[int | None, "The axis that a second operand of one axis had before opset 7"] = None
    called: Annotated[str | None, "Its name in files, where rules have another, as another domain has it"] = None
    names_variable: Annotated[
        str | None,
        "The option by which a handle says of which variable it is",
        Member | None,
    ] = None
    opaque: Annotated[str | None, "The type of its result, where that has no elements"] = None
    names_type: Annotated[
        str | None,
        "The option that names the element type of the first result",
        Member | None,
    ] = None
    when: Annotated[Mapping[str, Any], "Options and their values that tell it from operators with the same code"] = (
        field(default_factory=dict)
    )
    parameters: Annotated[
        Mapping[str, tuple[str, ...]],
        "Options that are graphs, each with the element types of parameters of it that no operand stands for",
        Mapping[Member, tuple[str, ...]],
    ] = field(default_factory=dict)
    slices: Annotated[
        str | None,
        "The option that counts the last operands, which its graph is given by slices",
        Member | None,
    ] = None
    slice_axes: Annotated[
        str | None,
        "The option that lists along which axis each of them is sliced; the first where it is not given",
        Member | None,
    ] = None
    stack_axes: Annotated[
        str | None,
        "The option that lists along which axis the last results, as many as it yields for each slice, are stacked",
        Member | None,
    ] = None
    decides: Annotated[
        tuple[str, ...],
        "Options that are graphs and yield no results",
        tuple[Member, ...],
    ] = ()
    pure: Annotated[bool, "Whether its results are the same in each run"] = True
    former: Annotated[
        Mapping[str, str],
        "Operands that older forms have as options of other names, each with that name",
        Mapping[Member, str],
    ] = field(default_factory=dict)
    counted: Annotated[
        Mapping[str, str],
        "Options that count the results, each with the operand that says it instead; older forms go without both",
        Mapping[Member, str],
    ] = field(default_factory=dict)
    shown: Annotated[str | None, "The option that older forms have not: more than one result shows that it is 1"] = None
    none_if_empty: Annotated[
        tuple[str, ...],
        "Operands that count as left out where they are constants without elements",
        tuple[Member, ...],
    ] = ()
    fold: Annotated[bool, "Whether it is computed where its operands are constant"] = True

    # what is known of results before a run
    tells: Annotated[
        Literal["extents", "count"] | None,
        "What its results are that reads no elements: the extents of the operand, or how many elements these make",
    ] = None
    between: Annotated[
        tuple[str, ...],
        "The options that say of which axes it tells the extents: the first, and the first that is left out",
        tuple[Member, ...],
    ] = ()
    typed_by: Annotated[
        str | None,
        "The operand of which it reads the type alone",
        Member | None,
    ] = None
    fills: Annotated[
        str | None,
        "The option that all elements of its result equal, 0 where it is not given",
        Member | None,
    ] = None
    span: Annotated[
        tuple[str, ...],
        "Operands that say from where to where the elements of its result go, in which steps, and along which axes of"
        " the first operand where it takes them from there",
        tuple[Member, ...],
    ] = ()
    scaled_by: Annotated[
        tuple[str, ...],
        "The operand by which the extents of the first one are multiplied, in single precision and without what is"
        " behind the point, and the option that lists along which axes; all where it has none",
        tuple[Member, ...],
    ] = ()
    chooses: Annotated[
        Mapping[str, bool],
        "Options that are graphs, each with what the operand is where its results are those of it",
        Mapping[Member, bool],
    ] = field(default_factory=dict)
    same_extents: Annotated[bool, "Whether its first result has the extents of its first operand"] = False
    same_rank: Annotated[bool, "Whether its first result has as many axes as its first operand, and its type"] = False
    rearranges: Annotated[
        tuple[str, ...],
        "The operands whose elements its results have, in another order",
        tuple[Member, ...],
    ] = ()
    relation: Annotated[
        Literal["==", "<", "<=", ">", ">="] | None, "The sign that stands for what it tells of two numbers"
    ] = None
    computes: Annotated[
        Literal[
            "and", "or", "not", "square root", "choice", "sequence", "conversion", "remainder", "maximum", "minimum"
        ]
        | None,
        "What it makes of elements, where no sign says it: a truth value, a root, the second or third operand as the"
        " first says, integers from the first operand to the second in steps of the third, the first operand in"
        " another type, the remainder of a quotient, or the maximum or minimum of all operands",
    ] = None

    # the order of axes
    layout: Annotated[
        Literal["transparent", "attribute", "implicit", "terminate"] | None,
        "What becomes of the order of axes. `transparent`: operands broadcast element by element, any order passes;"
        " `attribute`: it does so once what counts axes is remapped; `implicit`: it has an order of its own;"
        " `terminate`: none passes",
    ] = None
    remap: Annotated[
        Mapping[str, Counted],
        "Options and operands that count axes of the operand, each with how it counts them",
        Mapping[Member, Counted],
    ] = field(default_factory=dict)
    remap_result: Annotated[
        Mapping[str, Counted],
        "Those that count axes of the result, where it has others; numbers per axis follow `axes` where it is given",
        Mapping[Member, Counted],
    ] = field(default_factory=dict)
    frame: Annotated[
        tuple[str, ...],
        "The operands on which axes are counted, where it is not the first alone",
        tuple[Member, ...],
    ] = ()
    only: Annotated[
        Mapping[str, Any],
        "Options that must have these values, or it is one that ends a layout",
        Mapping[Member, Any],
    ] = field(default_factory=dict)
    fixed: Annotated[
        tuple[int, ...],
        "Axes of the first operand and of the result that have their place, where the others may stand in any order",
    ] = ()
    pointwise: Annotated[
        Mapping[str, tuple[int, ...]],
        "Operands that must have one element along these of their axes for that",
        Mapping[Member, tuple[int, ...]],
    ] = field(default_factory=dict)
    removes: Annotated[
        str | None,
        "What lists the axes that the result lacks, unless the option `keeps` is set",
        Member | None,
    ] = None
    adjacent: Annotated[
        str | None,
        "What lists axes that kernels take side by side alone",
        Member | None,
    ] = None
    keeps: Annotated[str | None, "The option by which axes that were to be removed stay", Member | None] = None
    inserts: Annotated[str | None, "What lists the axes that the result has besides", Member | None] = None
    permutes: Annotated[
        str | None,
        "What is the permutation that gives the result its axes",
        Member | None,
    ] = None
    replaces: Annotated[
        Mapping[str, str],
        "An axis in whose place the result has as many as an operand has: `{axis: indices}`",
        Mapping[Member, Member],
    ] = field(default_factory=dict)
    regroups: Annotated[bool, "Whether it merges and splits neighbouring axes"] = False
    broadcasts: Annotated[bool, "Whether the operand is repeated to the shape of the result"] = False

    # the order of elements along an axis
    along: Annotated[
        str | None,
        "The operand with an element for each along the axis, or one for all",
        Member | None,
    ] = None
    joins: Annotated[
        str | None,
        "What counts the axis along which operands stand one behind the other",
        Member | None,
    ] = None
    letters: Annotated[
        Mapping[str, str],
        "Letters for the last axes of operands and results; those with equal ones have their elements in one order",
        Mapping[Member, str],
    ] = field(default_factory=dict)
    swaps: Annotated[
        Mapping[str, str],
        "Operands, each with the option by which its letters are in turned order",
        Mapping[Member, Member],
    ] = field(default_factory=dict)
    within: Annotated[
        Mapping[str, tuple[int, int]],
        "Options, each with the range beyond which onnx's inference reads foreign memory",
        Mapping[Member, tuple[int, int]],
    ] = field(default_factory=dict)

    # quantized values
    quantization: Annotated[
        Literal["codes", "matched", "raw", "extents", "passed"] | None,
        "What it does with codes, where it does not compute with real numbers. `codes`: it moves them; `matched`: it"
        " compares or joins them on one grid; `raw`: it computes with the integers; `extents`: it reads no elements;"
        " `passed`: it passes them to and from graphs (docs/quantization.md)",
    ] = None
    grid: Annotated[
        Literal["same", "own"] | Mapping[str, Grid] | None,
        "`same`: kernels take the codes of operands as if these were on the result's grid; `own`: each value has one of"
        " its own; or by element type the scale and zero point that the result always has",
    ] = None
    unbounded: Annotated[bool, "Whether results may lie beyond that grid, where kernels cut them off"] = False
    coded: Annotated[
        Mapping[str, Any],
        "Options that have these values where it computes with codes that rules have not made",
        Mapping[Member, Any],
    ] = field(default_factory=dict)
    slow: Annotated[
        tuple[str, ...],
        "Types of codes whose kernel takes longer than real numbers between two conversions, so that models keep these",
        tuple[str, ...],
    ] = ()
    step_ratio: Annotated[
        Mapping[str, int],
        "By type of codes, the largest ratio of an operand's step to the result's: beyond it kernels abort or overflow",
    ] = field(default_factory=dict)
    products: Annotated[
        Mapping[str, tuple[str, ...]],
        "Operands whose scale is the product of others', each with these: biases",
        Mapping[Member, tuple[Member, ...]],
    ] = field(default_factory=dict)
    channels: Annotated[
        Mapping[str, int],
        "Operands, each with the axis of its scales, whatever axis the file names",
        Mapping[Member, int],
    ] = field(default_factory=dict)
    rounding: Annotated[Literal["away"] | None, "`away`: integer kernels round halves away from zero"] = None

    # another batch
    batch: Annotated[int | None, "The only number of samples that it takes"] = None
    mixes: Annotated[
        str | None,
        "The operand that lists axes along which elements are put together",
        Member | None,
    ] = None
    samples: Annotated[
        Mapping[str, int],
        "Operands, each with the axis of its samples, where elements along others meet",
        Mapping[Member, int],
    ] = field(default_factory=dict)
    extents: Annotated[
        Mapping[str, int],
        "Operands and options that are extents of the result, each with what means any extent there",
        Mapping[Member, int],
    ] = field(default_factory=dict)

    # files
    defaults: Annotated[
        Mapping[str, Any],
        "Operands that files leave out, each with the number or list that it is then",
        Mapping[Member, Any],
    ] = field(default_factory=dict)
    micro: Annotated[
        str | None, "The method by which the resolver of TensorFlow Lite Micro registers it; null where it has none"
    ] = None
    restores: Annotated[
        str | None, "The operator that puts a changed part back into the whole from which this one took it as a view"
    ] = None
    stored: Annotated[
        Literal["struct"] | None,
        "How a custom operator keeps its options: `struct`, one after the other as in C; else in a FlexBuffers map or"
        " as a node of TensorFlow",
    ] = None
    reshapes: Annotated[bool, "Whether kernels give its results shapes of their own, whatever the file says"] = False
    ranks: Annotated[
        Mapping[str, str],
        "Results, each with the operand whose rank it has: a file that states another is not believed, there or behind",
        Mapping[Member, Member],
    ] = field(default_factory=dict)
    deepens: Annotated[int, "How many axes more its result has than its first operand, whatever a file states"] = 0
    kept: Annotated[Kept | None, "Operators of another program that this one stands for"] = None

    python: Annotated[OperatorPython, "How it is written as source code"] = field(default_factory=OperatorPython)

    fuzz: Annotated[OperatorTrials, "What only fuzzing asks of it"] = field(default_factory=OperatorTrials)

"""The keys that ops.yaml has for a dialect beside its operators, declared as those of operators are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from ..base.startup import dataclass, field
from .python_facts import DialectPython
from .trial_facts import DialectTrials

#: version and type variable by version: the element types that there are kernels for
Kernels = Mapping[str, Mapping[int, Mapping[str, str]]]


class ElementType(TypedDict):
    """An element type of a file format."""

    code: Annotated[int, "Its number in the file"]
    dtype: Annotated[str | None, "What ONNX calls it; null where ONNX has none"]
    bits: Annotated[int | None, "The bits that an element takes in a buffer"]


@dataclass(frozen=True, slots=True)
class DialectFacts:
    """What ops.yaml says of a dialect beside its operators; `said` are the keys it has there."""

    said: tuple[str, ...] = ()
    measured: Annotated[
        Mapping[str, tuple[str, str]], "Packages, each with the first and last version that facts about it are from"
    ] = field(default_factory=dict)
    identifier: Annotated[str | None, "The letters by which files of the format are known"] = None
    version: Annotated[int | None, "The version of the format"] = None
    reference: Annotated[
        str | None,
        "The rule set that says in ONNX what operators compute: it tells types, shapes and constant results",
    ] = None
    others: Annotated[
        str | None,
        "The rule set that says what operators of other domains compute: it tells types and shapes of their results",
    ] = None
    apart: Annotated[bool, "Whether constants are dequantized once for each node that reads them"] = False
    closed: Annotated[bool, "Whether the graphs of nodes read nothing but their inputs"] = False
    nearest: Annotated[
        Mapping[str, str],
        "Element types that no kernel may have, each with the one to compute in where no type holds all its numbers",
    ] = field(default_factory=dict)
    begins: Annotated[
        tuple[str, ...],
        "Element types of variables that begin with the codes that stand for zero; others begin with zeros",
    ] = ()
    channels: Annotated[
        Literal["last"] | None, "Where its operators want the channels of images: behind the batch if nothing is said"
    ] = None
    activation: Annotated[str | None, "The option that the trait `output_activation` is about"] = None
    codes: Annotated[
        Literal["real"] | None,
        "`real`: quantize and dequantize nodes also stand around operators that only move codes",
    ] = None
    storage: Annotated[Mapping[str, str], "How enumerations are stored, where it is not as int8"] = field(
        default_factory=dict
    )
    unions: Annotated[
        Mapping[str, Mapping[str, int]],
        "Unions: the table that each number stands for; the number is in the slot before the union's own",
    ] = field(default_factory=dict)
    tables: Annotated[
        Mapping[str, Mapping[str, tuple[Any, ...]]],
        "Tables, `field: [slot, type, default]`. A type is bool, a number type, string, bytes, subgraph (the index of a"
        " graph as int32), a table, an enumeration, a union, or one of these in brackets and quotes for a list",
    ] = field(default_factory=dict)
    kernels: Annotated[
        Kernels, "By operator, version and type variable: the element types that the runtime has kernels for"
    ] = field(default_factory=dict)
    more_kernels: Annotated[
        Mapping[str, Kernels], "By version of the runtime: the kernels that it has besides, which nothing uses yet"
    ] = field(default_factory=dict)
    extensions: Annotated[
        Mapping[str, int],
        "Operators that runtimes have in its domain and its schemas lack, each with the version that it begins at",
    ] = field(default_factory=dict)
    python: Annotated[DialectPython | None, "How models are written, where the dialect is source code"] = None
    fuzz: Annotated[DialectTrials, "What only fuzzing asks of it"] = field(default_factory=DialectTrials)

"""A conversion from end to end: read, rewrite, write, and say what was done."""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import onnx
import onnx.helper
import onnx_ir as ir

from .backends import onnx as onnx_backend
from .engine import packs
from .engine.errors import CallError, RewriteError
from .engine.layout import LAYOUT, SOURCE, Interface, arrange
from .engine.operators import Dialect
from .engine.rules import RuleSet, compile_rules
from .engine.scope import Scope
from .engine.stages import Rewriter
from .engine.state import described, externalize
from .engine.view import least_opset
from .frontends import bundle, tflite

if TYPE_CHECKING:
    from .engine.layout.explain import Remaining


#: the runtime that models are made for where the user names none, and the word for none in particular
TARGET, PORTABLE = "onnxruntime", "portable"


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did: operators in and out, permutations left and the elements they move, rules fired.

    `layout` is what was asked of inputs and outputs, `layouts` has those with another order of axes than in the source,
    as letters before and after. `remarks` tells what is odd about the source, in sentences.
    """

    source_operators: Mapping[str, int]
    target_operators: Mapping[str, int]
    permutations: int
    moved: int | None
    opset: int
    rules: Mapping[str, int]
    layout: str = SOURCE
    layouts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted model and the report about it."""

    model: onnx.ModelProto
    report: Report


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rule packs, compiled for one opset."""

    pack: packs.Pack
    rules: RuleSet
    opset: int


def stacked(rules: str | Sequence[str], target: str = TARGET) -> tuple[str, ...]:
    """The rule sets of a conversion: those asked for, and on them what the target adds."""
    names = (rules,) if isinstance(rules, str) else tuple(rules)
    return names if target == PORTABLE or target in names else (*names, target)


def members(path: str | os.PathLike[str]) -> list[str]:
    """The models inside a bundle; none for a plain model file. Raises ModelError when it cannot be read."""
    return bundle.members(path) if bundle.is_bundle(path) else []


def convert(
    source: str | os.PathLike[str] | bytes,
    rules: str | Sequence[str] = "tflite2onnx",
    opset: int | None = None,
    member: str | None = None,
    layout: str | Sequence[str] = SOURCE,
    target: str = TARGET,
) -> onnx.ModelProto:
    """Convert a model, from a path or from bytes, by a rule set or by several that are laid over each other.

    Takes and raises what `rewrite` does.
    """
    return rewrite(source, rules, opset, member, layout, target).model


def rewrite(
    source: str | os.PathLike[str] | bytes,
    rules: str | Sequence[str] = "tflite2onnx",
    opset: int | None = None,
    member: str | None = None,
    layout: str | Sequence[str] = SOURCE,
    target: str = TARGET,
) -> Conversion:
    """Convert a model and report what was done; `member` names one model of a bundle.

    `layout` is `source` (inputs and outputs keep their order of axes), `target` (channels come first wherever that
    saves a permutation), `NAME=NHWC:NCHW` for one input or output, or several of these.

    Raises ModelError for a file that is no model, UnsupportedError for operators without a rule, RuleError for
    mistakes in rule files, CallError for an unknown rule set or layout or an opset outside the range the rules declare.
    """
    interface = Interface.parse(layout)
    names = stacked(rules, target)
    prepared = prepare(names, opset)
    catalogue = prepared.pack.catalogue
    data = bundle.open_member(source, member) if member is not None and not isinstance(source, bytes) else source
    model = tflite.read(data, catalogue, _called(source, member))
    graph = model.graph
    least = least_opset(graph, prepared.rules.target)
    if least > prepared.opset:
        if opset is not None:
            raise RewriteError(f"opset {opset} cannot hold the quantized types of the model, opset {least} can")
        prepared = prepare(names, least)
    ruleset, version = prepared.rules, prepared.opset
    before = Counter(node.op_type for node in graph)
    subgraphs = model.meta.get("subgraphs", ())
    outputs = [value.name or "" for value in graph.outputs]
    state = externalize(graph, ruleset.source, subgraphs)
    outputs += state.values()
    rewriter = Rewriter(graph, ruleset, catalogue, version, subgraphs)
    layouts: dict[str, str] = {}

    def place(scope: Scope) -> None:
        """The interface is that of the whole; graphs of nodes keep theirs."""
        asked = (interface, tuple(outputs)) if scope.graph is graph else ()
        layouts.update(arrange(scope, ruleset.target, version, *asked))

    rewriter.run(place)
    proto = onnx_backend.write(graph, outputs, ruleset.target, version)
    turned = {f"{LAYOUT}.{name}": axes for name, axes in layouts.items()}
    onnx.helper.set_model_props(proto, {LAYOUT: f"{interface}", **turned, **described(state)})
    report = _report(graph, ruleset.target, before, version, rewriter)
    return Conversion(proto, replace(report, layout=f"{interface}", layouts=layouts))


def explain(model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx") -> list[Remaining]:
    """Tell of each permutation left in a model what it moves and which two operators force it."""
    from .engine.layout.explain import explain

    return explain(model, _target(rules))


def picture(model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx") -> str:
    """Draw a model as SVG, in two colours for the two layouts."""
    from .engine.layout.picture import svg

    return svg(model, _target(rules))


def _target(rules: str | Sequence[str]) -> Dialect:
    return prepare((rules,) if isinstance(rules, str) else tuple(rules), None).rules.target


def _called(source: str | os.PathLike[str] | bytes, member: str | None) -> str | None:
    if isinstance(source, bytes):
        return None
    return os.fspath(source) if member is None else f"{os.fspath(source)}:{member}"


@functools.lru_cache(maxsize=8)
def _pack(rules: tuple[str, ...], stamp: packs.Stamp) -> packs.Pack:
    return packs.load(rules)


def prepare(rules: tuple[str, ...], opset: int | None) -> Prepared:
    """Load rule sets and compile them for an opset, by default the one that they name.

    Raises RuleError for mistakes in rule files, CallError for an unknown rule set or an opset out of range.
    """
    return _prepared(rules, opset, packs.stamp(rules))


@functools.lru_cache(maxsize=16)
def _prepared(rules: tuple[str, ...], opset: int | None, stamp: packs.Stamp) -> Prepared:
    pack = _pack(rules, stamp)
    low, high = pack.opsets
    version = pack.default_opset if opset is None else opset
    if not low <= version <= high:
        raise CallError(f"opset {version} is not one of {low} to {high}, for which {', '.join(rules)} is written")
    return Prepared(pack, compile_rules(pack.files, pack.catalogue, version, pack.contents), version)


def _report(graph: ir.Graph, dialect: Dialect, before: Mapping[str, int], opset: int, rewriter: Rewriter) -> Report:
    permute = dialect.role("permute").name
    moves = [node.outputs[0] for node in graph if node.op_type == permute and node.domain == dialect.domain]
    sizes = [_elements(value) for value in moves]
    moved = None if None in sizes else sum(size for size in sizes if size is not None)
    after = Counter(node.op_type for node in graph)
    return Report(before, after, len(moves), moved, opset, dict(rewriter.fired), remarks=_remarks(rewriter.remarks))


def _remarks(contradictions: Sequence[str]) -> tuple[str, ...]:
    if not contradictions:
        return ()
    more = f", and {len(contradictions) - 1} more" if len(contradictions) > 1 else ""
    return (f"shapes in the file are stale and were computed anew: {contradictions[0]}{more}",)


def _elements(value: ir.Value) -> int | None:
    if value.shape is None or not all(isinstance(extent, int) for extent in value.shape):
        return None
    return math.prod(extent for extent in value.shape if isinstance(extent, int))

"""A conversion from end to end: read, rewrite, write, and say what was done."""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from .backends import onnx as onnx_backend
from .engine import layout, packs
from .engine.errors import CallError, RewriteError
from .engine.operators import Dialect
from .engine.rules import RuleSet, compile_rules
from .engine.stages import Rewriter
from .engine.view import least_opset
from .frontends import bundle, tflite


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did: operators in and out, permutations left and the elements they move, rules fired.

    `remarks` tells what is odd about the source, in sentences.
    """

    source_operators: Mapping[str, int]
    target_operators: Mapping[str, int]
    permutations: int
    moved: int | None
    opset: int
    rules: Mapping[str, int]
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


def members(path: str | os.PathLike[str]) -> list[str]:
    """The models inside a bundle; none for a plain model file. Raises ModelError when it cannot be read."""
    return bundle.members(path) if bundle.is_bundle(path) else []


def convert(
    source: str | os.PathLike[str] | bytes,
    rules: str | Sequence[str] = "tflite2onnx",
    opset: int | None = None,
    member: str | None = None,
) -> onnx.ModelProto:
    """Convert a model, from a path or from bytes, by a rule set or by several that are laid over each other.

    Raises what `rewrite` raises.
    """
    return rewrite(source, rules, opset, member).model


def rewrite(
    source: str | os.PathLike[str] | bytes,
    rules: str | Sequence[str] = "tflite2onnx",
    opset: int | None = None,
    member: str | None = None,
) -> Conversion:
    """Convert a model and report what was done; `member` names one model of a bundle.

    Raises ModelError for a file that is no model, UnsupportedError for operators without a rule, RuleError for
    mistakes in rule files, CallError for an unknown rule set or an opset outside the range the rules declare.
    """
    names = (rules,) if isinstance(rules, str) else tuple(rules)
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
    outputs = [value.name or "" for value in graph.outputs]
    rewriter = Rewriter(graph, ruleset, catalogue, version)
    rewriter.run(functools.partial(layout.arrange, dialect=ruleset.target, opset=version))
    proto = onnx_backend.write(graph, outputs, ruleset.target, version)
    return Conversion(proto, _report(graph, ruleset.target, before, version, rewriter))


def _called(source: str | os.PathLike[str] | bytes, member: str | None) -> str | None:
    if isinstance(source, bytes):
        return None
    return os.fspath(source) if member is None else f"{os.fspath(source)}:{member}"


@functools.lru_cache(maxsize=8)
def _pack(rules: tuple[str, ...]) -> packs.Pack:
    return packs.load(rules)


@functools.lru_cache(maxsize=8)
def prepare(rules: tuple[str, ...], opset: int | None) -> Prepared:
    """Load rule sets and compile them for an opset, by default the one that they name.

    Raises RuleError for mistakes in rule files, CallError for an unknown rule set or an opset out of range.
    """
    pack = _pack(rules)
    low, high = pack.opsets
    version = pack.default_opset if opset is None else opset
    if not low <= version <= high:
        raise CallError(f"opset {version} is not one of {low} to {high}, for which {', '.join(rules)} is written")
    return Prepared(pack, compile_rules(pack.files, pack.catalogue, version), version)


def _report(graph: ir.Graph, dialect: Dialect, before: Mapping[str, int], opset: int, rewriter: Rewriter) -> Report:
    permute = dialect.role("permute").name
    moves = [node.outputs[0] for node in graph if node.op_type == permute and node.domain == dialect.domain]
    sizes = [_elements(value) for value in moves]
    moved = None if None in sizes else sum(size for size in sizes if size is not None)
    after = Counter(node.op_type for node in graph)
    return Report(before, after, len(moves), moved, opset, dict(rewriter.fired), _remarks(rewriter.remarks))


def _remarks(contradictions: Sequence[str]) -> tuple[str, ...]:
    if not contradictions:
        return ()
    more = f", and {len(contradictions) - 1} more" if len(contradictions) > 1 else ""
    return (f"shapes in the file are stale and were computed anew: {contradictions[0]}{more}",)


def _elements(value: ir.Value) -> int | None:
    if value.shape is None or not all(isinstance(extent, int) for extent in value.shape):
        return None
    return math.prod(extent for extent in value.shape if isinstance(extent, int))

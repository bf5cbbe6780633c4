"""A conversion from end to end: read, rewrite, write, and say what was done."""

from __future__ import annotations

import contextlib
import functools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx
import onnx_ir as ir

from . import signatures
from .backends import onnx as onnx_backend
from .backends import stream
from .destination import remove, replacing
from .engine import packs
from .engine.collector import uncollected
from .engine.constants import keep
from .engine.errors import CallError, RewriteError, RewriteFailure, RuleError, UnsupportedError
from .engine.evaluation import evaluate
from .engine.extents import Asked, Resizing
from .engine.layout import LAYOUT, Interface, arrange
from .engine.operators import Catalogue, Dialect
from .engine.opsets import least_opset
from .engine.profile import timed
from .engine.records import dataclass, replace
from .engine.rules import RuleSet, compile_rules
from .engine.scope import Scope
from .engine.stages import RULE, Rewriter
from .engine.state import described, externalize
from .engine.subgraphs import called
from .engine.view import real_interface
from .frontends import bundle, tflite
from .measures import Report as Report
from .measures import elements, lacking, remarks, stored
from .options import DEFAULT, INTERNAL, PORTABLE, Options

if TYPE_CHECKING:
    from .engine.layout.explain import Remaining

#: the opset to try where the one that rules aim at has no form of something
_LATER = 21

#: a model: its path, or the bytes of its file
Source: TypeAlias = str | os.PathLike[str] | bytes


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted model and the report about it; weights are read when the model is saved or asked for."""

    encoded: stream.Encoded
    report: Report

    @property
    def model(self) -> onnx.ModelProto:
        """The model, the same each time; raises TooLargeError where it exceeds what one message can hold."""
        return self.encoded.proto()

    @property
    def sketch(self) -> onnx.ModelProto:
        """The model without the bytes of its large constants, whatever its size: to be looked at, not to be run."""
        return self.encoded.sketch()

    def save(self, path: str | os.PathLike[str], external_data: bool = False) -> int:
        """Write the model to a file, which takes the place of an older one when it is whole; the bytes written.

        With `external_data`, and where the model exceeds 2 GB, large constants are in a second file, `PATH.data`. One
        that an older model had there goes with it. Raises DestinationError for what the system refuses.
        """
        with timed("writing"):
            return self._save(Path(path), external_data)

    def _save(self, target: Path, external_data: bool) -> int:
        beside = target.with_name(f"{target.name}.data")
        if not external_data and self.encoded.size <= stream.LIMIT:
            stale = beside.is_file() and stream.refers(target, beside.name)
            with replacing(target) as file:
                size = stream.write(file, self.encoded.parts())
            if stale:
                remove(beside)
            return size
        head, parts = self.encoded.apart(beside.name)
        with replacing(target) as file, replacing(beside) as data:
            return file.write(head) + stream.write(data, parts)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rule packs, compiled for one opset."""

    pack: packs.Pack
    rules: RuleSet
    opset: int


def members(path: str | os.PathLike[str]) -> list[str]:
    """The models inside a bundle; none for a plain model file. Raises ModelError when it cannot be read."""
    return bundle.members(path) if bundle.is_bundle(path) else []


def signed(path: str | os.PathLike[str], member: str | None = None) -> list[str]:
    """The names of a model's signatures; raises ModelError when it cannot be read."""
    data = path if member is None else bundle.open_member(path, member)
    return signatures.keys(tflite.read(data, prepare(DEFAULT.stacked, None).pack.catalogue))


def convert(source: Source, options: Options = DEFAULT, **changes: Any) -> onnx.ModelProto:
    """Convert a model, from a path or from bytes; takes and raises what `rewrite` does."""
    return rewrite(source, options, **changes).model


def rewrite(source: Source, options: Options = DEFAULT, **changes: Any) -> Conversion:
    """Convert a model, from a path or from bytes, and report what was done.

    `changes` are fields of Options, for which see there: `rewrite(path, opset=17)`.

    Raises ModelError for a file that is no model, UnsupportedError for operators without a rule, RuleError for
    mistakes in rule files, CallError for an unknown rule set or layout or an opset outside the range the rules declare.
    """
    options = options.but(**changes).settled
    with uncollected():
        try:
            return _rewrite(source, options)
        except UnsupportedError as error:
            if options.opset is not None:
                raise
            # What the opset that rules aim at cannot say a later one may, and nobody asked for the first.
            with contextlib.suppress(RewriteError):
                return _rewrite(source, options.but(opset=_LATER), lacking(error.refusals[0]))
            raise


@dataclass(frozen=True, slots=True)
class Subject:
    """What is converted: one graph of a model, those that it may call, and what a signature calls its outputs.

    `renamed` has the source's names of inputs and outputs by those of the signature.
    """

    model: ir.Model
    graph: ir.Graph
    subgraphs: Sequence[ir.Graph]
    signature: tflite.Signature | None
    outputs: Sequence[str]
    renamed: Mapping[str, str]


def _rewrite(source: Source, options: Options, reason: str = "") -> Conversion:
    """Convert a model; `reason` says why for another opset than rules aim at."""
    interface, asked = Interface.parse(options.layout), Asked.parse(options.input_shape, options.batch)
    prepared = prepare(options.stacked, options.opset)
    subject = _read(source, options, prepared.pack.catalogue)
    prepared, held = _aimed(subject, options, prepared)
    graph, dialect, opset = subject.graph, prepared.rules.target, prepared.opset
    before = Counter(node.op_type for node in graph)
    given = stored([graph, *called(graph, prepared.rules.source, subject.subgraphs)])
    resized = Resizing(graph, subject.subgraphs, prepared.rules.source, asked) if asked else None
    state = _opened(subject, options, prepared)
    outputs = [*subject.outputs, *state.values()]
    rewriter = _rewriter(subject, options, prepared)
    layouts = _run(rewriter, subject, prepared, interface, state, resized)
    left = stored([graph, *graph.subgraphs()])
    report = replace(
        _report(subject, prepared, before, rewriter, f"{interface}", layouts, options),
        opset_reason=reason or held,
        constants={name: (given[name], left[name]) for name in sorted(given | left)},
    )
    metadata = {**_layouts(report), **described(state), **signatures.described(subject.renamed)}
    return Conversion(onnx_backend.write(graph, outputs, dialect, opset, metadata), report)


def _read(source: Source, options: Options, catalogue: Catalogue) -> Subject:
    """Read a model, and find the graph that is asked for."""
    member = options.member
    data = bundle.open_member(source, member) if member is not None and not isinstance(source, bytes) else source
    with timed("reading"):
        model = tflite.read(data, catalogue, _called(source, member))
    signature = signatures.chosen(model, options.signature)
    subgraphs: Sequence[ir.Graph] = model.meta["subgraphs"]
    graph = model.graph if signature is None else subgraphs[signature.subgraph]
    return Subject(model, graph, subgraphs, signature, *signatures.named(graph, signature))


def _aimed(subject: Subject, options: Options, prepared: Prepared) -> tuple[Prepared, str]:
    """The rules for an opset that holds the types of the model, and the type that is the reason, where another would
    not do; raises RewriteError where that was asked for."""
    rules = prepared.rules
    graphs = [subject.graph, *called(subject.graph, rules.source, subject.subgraphs)]
    least = least_opset(graphs, rules.source, rules.target, options.float)
    if least.opset <= prepared.opset:
        return prepared, ""
    if options.opset is not None:
        raise RewriteError(
            f"opset {options.opset} cannot hold the element types of the model ({least.held}), opset {least.opset} can"
        )
    return prepare(options.stacked, least.opset), f"the first that holds {least.held}"


def _opened(subject: Subject, options: Options, prepared: Prepared) -> Mapping[str, str]:
    """Give the graph the inputs and outputs asked for; those by which its state comes in and goes out, by name."""
    graph, subgraphs, rules, opset = subject.graph, subject.subgraphs, prepared.rules, prepared.opset
    if options.float_io:
        real_interface(graph, rules.target, opset)
    if options.keep_float16:
        keep(graph, ir.DataType.FLOAT16)
    catalogue = prepared.pack.catalogue
    constants = functools.partial(evaluate, rules=rules, catalogue=catalogue, opset=opset, subgraphs=subgraphs)
    return externalize(graph, rules.source, subgraphs, constants, options.state == INTERNAL)


def _rewriter(subject: Subject, options: Options, prepared: Prepared) -> Rewriter:
    return Rewriter(
        subject.graph,
        prepared.rules,
        prepared.pack.catalogue,
        prepared.opset,
        subject.subgraphs,
        plain=options.float,
        keep=options.keep_custom,
    )


def _run(
    rewriter: Rewriter,
    subject: Subject,
    prepared: Prepared,
    interface: Interface,
    state: Mapping[str, str],
    resized: Resizing | None,
) -> dict[str, str]:
    """Rewrite a graph; the inputs and outputs whose axes stand in another order than in the source.

    `state` has the names of the inputs by which state comes in, and of the outputs to feed to them. Raises RewriteError
    where the model forbids the extents that were asked for.
    """
    graph, layouts = subject.graph, dict[str, str]()
    outputs, carried = (*subject.outputs, *state.values()), frozenset((*state, *state.values()))

    def place(scope: Scope) -> None:
        """The interface is that of the whole; graphs of nodes keep theirs."""
        whole = (interface, outputs, carried) if scope.graph is graph else ()
        with timed("layout"):
            layouts.update(arrange(scope, prepared.rules.target, prepared.opset, *whole))

    try:
        rewriter.run(place)
    except RewriteFailure as failure:
        if resized is None:
            raise
        raise RewriteError(f"{failure.node} forbids the extents asked for: {failure.message}") from failure
    if resized is not None:
        resized.check(graph)
    return layouts


def _layouts(report: Report) -> dict[str, str]:
    """The order of axes of inputs and outputs as entries of a model's metadata."""
    return {LAYOUT: report.layout, **{f"{LAYOUT}.{name}": axes for name, axes in report.layouts.items()}}


def explain(
    model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx", target: str = DEFAULT.target
) -> list[Remaining]:
    """Tell of each permutation left in a model what it moves, and which two operators force it, or which rule of the
    target put it in to be quick."""
    from .engine.layout.explain import explain

    packs = (rules,) if isinstance(rules, str) else tuple(rules)
    prepared = prepare(Options(rules=packs, target=target).stacked, None)
    places = [entry.value for node in model.graph.node for entry in node.metadata_props if entry.key == RULE]
    speeding = _speeding(prepared, target, places)
    purposes = {place: f"for speed, by {rule}" for place, rule in speeding.items()}
    return explain(model, prepared.rules.target, purposes)


def picture(model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx") -> str:
    """Draw a model as SVG, in two colours for the two layouts."""
    from .engine.layout.picture import svg

    return svg(model, _target(rules))


def _target(rules: str | Sequence[str]) -> Dialect:
    return prepare((rules,) if isinstance(rules, str) else tuple(rules), None).rules.target


def _called(source: Source, member: str | None) -> str | None:
    if isinstance(source, bytes):
        return None
    return os.fspath(source) if member is None else f"{os.fspath(source)}:{member}"


@functools.lru_cache(maxsize=8)
def _pack(rules: tuple[str, ...], stamp: packs.Stamp) -> packs.Pack | RuleError:
    """Packs, or their mistakes: neither is looked for again before a file changes."""
    try:
        return packs.load(rules)
    except RuleError as error:
        return error


def prepare(rules: tuple[str, ...], opset: int | None) -> Prepared:
    """Load rule sets and compile them for an opset, by default the one that they name.

    Raises RuleError for mistakes in rule files, CallError for an unknown rule set or an opset out of range.
    """
    return _prepared(rules, opset, packs.stamp(rules))


@functools.lru_cache(maxsize=64)  # as many as there are opsets, for a few sets of packs
def _prepared(rules: tuple[str, ...], opset: int | None, stamp: packs.Stamp) -> Prepared:
    pack = _pack(rules, stamp)
    if isinstance(pack, RuleError):
        raise RuleError(pack.diagnostics, pack.sources)
    low, high = pack.opsets
    version = pack.default_opset if opset is None else opset
    if not low <= version <= high:
        raise CallError(f"opset {version} is none of {low} to {high}, which the rules of {', '.join(rules)} can write")
    return Prepared(pack, compile_rules(pack.files, pack.catalogue, version, pack.contents), version)


def _report(
    subject: Subject,
    prepared: Prepared,
    before: Mapping[str, int],
    rewriter: Rewriter,
    layout: str,
    layouts: Mapping[str, str],
    options: Options,
) -> Report:
    graph, dialect, signature = subject.graph, prepared.rules.target, subject.signature
    permute = dialect.role("permute").name
    moves = [node for node in graph if node.op_type == permute and node.domain == dialect.domain]
    sizes = [elements(node.outputs[0]) for node in moves]
    places = [node.metadata_props.get(RULE, "") for node in moves]
    speeding = _speeding(prepared, options.target, places)
    return Report(
        source_operators=before,
        target_operators=Counter(node.op_type for node in graph),
        permutations=len(moves),
        moved=None if None in sizes else sum(size for size in sizes if size is not None),
        opset=prepared.opset,
        rules=dict(rewriter.fired),
        layout=layout,
        layouts=layouts,
        remarks=(*remarks(rewriter.remarks), *signatures.remarks(subject.model, signature)),
        signature=signature.key if signature is not None and signature.subgraph else None,
        inexact=dict(rewriter.viewed) if options.exact else {},
        target=options.target,
        for_speed=Counter(speeding[place] for place in places if place in speeding),
    )


def _speeding(prepared: Prepared, target: str, places: Sequence[str]) -> Mapping[str, str]:
    """Of rules by their places, those that a target has to be quick and that put in permutations, with their names."""
    if target == PORTABLE or not places:
        return {}
    from .target import introducing

    dialect = prepared.rules.target
    return introducing(target, prepared.pack.files, dialect.role("permute").name, places)

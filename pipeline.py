"""A conversion from end to end: read, rewrite, write, and say what was done."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import onnx
import onnx_ir as ir

from . import signatures, summary
from .backends import stream, writers
from .engine.base.errors import (
    CallError,
    InternalError,
    ModelError,
    RewriteError,
    RewriteFailure,
    RuleError,
    UnsupportedError,
    suggest_nearest,
)
from .engine.base.garbage_collection import pause_collection
from .engine.base.names import Scope
from .engine.base.quantization import NUMBERS, REAL
from .engine.base.startup import dataclass, replace
from .engine.dialects.operators import Dialect
from .engine.dialects.opsets import least_opset
from .engine.packs import loader
from .engine.packs.headers import read_pair
from .engine.passes.base import Module, run_passes
from .engine.passes.evaluation import evaluate
from .engine.passes.layout import LAYOUT, Interface
from .engine.passes.part import Part
from .engine.passes.pass_list import PassOptions, list_passes
from .engine.passes.resize import Asked
from .engine.passes.state import describe_state
from .engine.rewrite.driver import RULE
from .engine.rewrite.profile import time_part
from .engine.rewrite.result_inference import ResultInference
from .engine.rewrite.rules import RuleSet, compile_rules
from .engine.rewrite.subgraphs import check_calls, list_called
from .frontends import bundle, readers
from .frontends.source import Source, accept
from .frontends.tflite_reader import Signature
from .options import DEFAULT, INTERNAL, Options, OptionsDict
from .report import Report, count_bytes, count_elements, word_bounds, word_lack, word_remarks, word_told
from .routes import find_route

if TYPE_CHECKING:
    from .engine.passes.layout.explain import Remaining

#: the dialects that the rule sets of an option that nobody set lead from and to
_USUAL = ("tflite", "onnx")
#: the opset to try where the one that rules aim at has no form of something
_LATER = 21


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted model and the report about it; weights are read when the model is saved or asked for."""

    encoded: writers.Encoded
    report: Report

    def __repr__(self) -> str:
        return f"<Conversion: {summary.line(self.report, self.encoded.size)}>"

    def _repr_html_(self) -> str:
        return summary.html(self.report, self.encoded.size)

    @property
    def model(self) -> onnx.ModelProto:
        """The model, the same each time; raises TooLargeError where it exceeds what one message can hold, and CallError
        where it is none of ONNX."""
        return self._onnx.proto()

    @property
    def sketch(self) -> onnx.ModelProto:
        """The model without the bytes of its large constants, whatever its size: to be looked at, not to be run."""
        return self._onnx.sketch()

    @property
    def _onnx(self) -> stream.Encoded:
        if not isinstance(self.encoded, stream.Encoded):
            raise CallError("the result is no ONNX model: save(path) writes it")
        return self.encoded

    def save(self, path: str | os.PathLike[str], external_data: bool = False) -> int:
        """Write the model to a file, which takes the place of an older one when it is whole; the bytes written.

        With `external_data`, and where an ONNX model exceeds 2 GB, large constants are in a second file, `PATH.data`.
        One that an older model had there goes with it. Raises DestinationError for what the system refuses.
        """
        with time_part("writing"):
            return self.encoded.save(Path(path), external_data)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rule packs, compiled for one opset."""

    pack: loader.Pack
    rules: RuleSet
    opset: int


def members(path: str | os.PathLike[str]) -> list[str]:
    """The models inside a bundle; none for a plain model file. Raises ModelError when it cannot be read."""
    return bundle.members(path) if bundle.is_bundle(path) else []


def list_signatures(path: str | os.PathLike[str], member: str | None = None) -> list[str]:
    """The names of a model's signatures; raises ModelError when it cannot be read."""
    data = os.fspath(path) if member is None else bundle.open_member(path, member)
    model = readers.READERS[0].read(data, prepare(DEFAULT.stacked, None).pack.catalogue)
    return signatures.keys(model)


def convert(source: Source, options: Options = DEFAULT, **changes: Unpack[OptionsDict]) -> onnx.ModelProto:
    """Convert a model, and return it alone; takes and raises what `rewrite` does."""
    return rewrite(source, options, **changes).model


def rewrite(source: Source, options: Options = DEFAULT, **changes: Unpack[OptionsDict]) -> Conversion:
    """Convert a model, and report what was done: from a path, from bytes, or from a file that is open for reading them.

    `changes` are fields of Options, for which see there: `rewrite(path, opset=17)`.

    Raises ModelError for a file that is no model, UnsupportedError for operators without a rule, RuleError for
    mistakes in rule files, CallError for an option or a source that cannot be (an unknown rule set or layout, an opset
    outside the range the rules declare, a value of another type), and InternalError for mistakes of ours. All are
    RewriteErrors, and nothing else is raised for what a file says.
    """
    if not isinstance(options, Options):
        raise CallError(
            f"the second argument is nnrewrite.Options, got {options!r:.60}: options are given by name, opset=17, and"
            " the model is written by rewrite(model).save(path)"
        )
    options, source = options.but(**changes), accept(source)
    try:
        # Numbers that a file has out of range are what they are; who reads the result decides.
        with pause_collection(), np.errstate(all="ignore"):
            return _attempt(source, options)
    except RewriteError:
        raise
    except MemoryError as error:
        raise RewriteError("there is not enough memory to convert the model") from error
    except Exception as error:
        raise InternalError("the conversion", error) from error


def _attempt(source: str | bytes, options: Options) -> Conversion:
    """Convert at the opset asked for; where none is, and the usual one has no form of something, at a later one."""
    try:
        return _rewrite(source, options)
    except UnsupportedError as error:
        if options.opset is None:
            # What the opset that rules aim at cannot say a later one may, and nobody asked for the first.
            try:
                return _rewrite(source, options.but(opset=_LATER), word_lack(error.refusals[0]))
            except InternalError:
                raise
            except RewriteError:
                pass
        advice = _stacking(error, options)
        if advice is None:
            raise
        raise UnsupportedError(error.refusals, advice=advice) from None


def _stacking(error: UnsupportedError, options: Options) -> str | None:
    """How to lay packs over the program's rules, where operators are refused as these are not among them."""
    if options.rules == DEFAULT.rules:
        return None
    files = prepare(options.stacked, None).pack.files
    if all(refusal.reasons for refusal in error.refusals) or any(file.name in DEFAULT.rules for file in files):
        return None
    return f"{', '.join(options.rules)} alone has no rule for it: {_below(options)}"


def _below(options: Options) -> str:
    """How to ask for the program's own rules below others."""
    words = " ".join(f"--rules {name}" for name in (*DEFAULT.rules, *options.rules))
    return f"the program's own rules go below it by {words}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is converted: one graph of a model, those that it may call, and what a signature calls its outputs.

    `renamed` has the source's names of inputs and outputs by those of the signature.
    """

    model: ir.Model
    graph: ir.Graph
    subgraphs: Sequence[ir.Graph]
    signature: Signature | None
    outputs: Sequence[str]
    renamed: Mapping[str, str]


def _rewrite(source: str | bytes, options: Options, reason: str = "") -> Conversion:
    """Convert a model; `reason` says why for another opset than rules aim at."""
    interface, asked = Interface.parse(options.layout), Asked.parse(options.input_shape, options.batch)
    writer = find_writer(options)
    steps = plan_steps(source, options)
    subject = _read(source, options, prepare(steps[0].stacked, None).pack)
    graph = subject.graph
    before = Counter(node.op_type for node in graph)
    given: Counter[str] = Counter()
    prepared, held, module = None, "", None
    for place, step in enumerate(steps):
        version = subject.model.opset_imports.get("") if prepared is None else prepared.opset
        prepared, held = _prepare_step(subject, step, None if prepared is None else prepared.opset)
        functions = () if place else subject.subgraphs
        if not place:
            given = count_bytes([graph, *list_called(graph, prepared.rules.source, functions)])
        module = _run_step(
            subject, prepared, functions, step, asked if not place else Asked(), interface, module, version
        )
    assert prepared is not None and module is not None
    left = count_bytes([graph, *graph.subgraphs()])
    report = replace(
        _report(subject, prepared, before, module, f"{interface}", steps[-1]),
        opset_reason=reason or held,
        constants={name: (given[name], left[name]) for name in sorted(given | left)},
    )
    numbers = {NUMBERS: REAL} if options.float else {}
    metadata = {
        **_layouts(report),
        **numbers,
        **describe_state(module.state),
        **signatures.describe_names(subject.renamed),
    }
    dialect = prepared.rules.target
    kept = subject.model if len(steps) == 1 and prepared.rules.source is dialect else None
    output = writers.Output(
        graph, [*subject.outputs, *module.state.values()], dialect, prepared.opset, {} if kept else metadata, kept
    )
    return Conversion(writer.encode(output), report)


def plan_steps(source: str | bytes, options: Options) -> list[Options]:
    """The options of each step that a model takes from its format to the one that is to be written.

    Raises CallError where no rules lead there, ModelError for a file that cannot be read.
    """
    return _plan(find_reader(source, options), find_writer(options).dialect, options)


def find_reader(source: str | bytes, options: Options) -> readers.Reader:
    """The format that a model is read from; a model of a bundle has that of bundles."""
    return readers.READERS[0] if options.member is not None else readers.find_reader(source)


def find_writer(options: Options) -> writers.Writer:
    """The format to write: that which is asked for, else that of what the rules make.

    Raises CallError for an ending that no format has.
    """
    if options.to is None:
        pairs = [pair for name in options.rules if (pair := read_pair(name)) is not None]
        made = pairs[-1][1] if pairs else None
        return next((one for one in writers.WRITERS if one.dialect == made), writers.WRITERS[0])
    found = writers.find_writer(options.to if options.to == "/" else f".{options.to.lstrip('.')}")
    if found is None:
        known = ", ".join(suffix for one in writers.WRITERS for suffix in one.suffixes)
        raise CallError(f"there is no writing {options.to} files: the endings of those that can be written are {known}")
    return found


def _plan(read: readers.Reader, dialect: str, options: Options) -> list[Options]:
    """The options of each step from a format that is read to a dialect, by the rule sets that lead there."""
    own = options.rules != DEFAULT.rules or (read.dialect, dialect) == _USUAL
    if own and len(options.rules) == 1 and not any(loader.folders(options.rules)[0].glob("**/*.rules")):
        return [options.settled]
    if own and all(pair[0] == pair[1] != read.dialect for name in options.rules if (pair := read_pair(name))):
        raise CallError(f"the rules of {', '.join(options.rules)} do not read models: {_below(options)}")
    routes = find_route(read.dialect, dialect, options.rules if own else ())
    steps = [options.but(rules=names).settled for names in routes]
    if options.skip or options.only:
        known = {name for step in steps for name in prepare(step.stacked, None).pack.contents.list_names()}
        for name in (*options.skip, *options.only):
            if name not in known:
                raise CallError(f"there is no rule {name}{suggest_nearest(name, known)}")
    return steps if len(steps) == 1 else _match_opsets(steps)


def _match_opsets(steps: list[Options]) -> list[Options]:
    """Steps each of which writes an opset that the next one reads; what is not written at last is quantized nowhere."""
    found = steps[-1:]
    for step in reversed(steps[:-1]):
        low, _ = prepare(found[0].stacked, None).pack.opsets
        usual = prepare(step.stacked, step.opset).opset
        last = prepare(found[-1].stacked, None).pack.catalogue
        pair = read_pair(found[-1].rules[-1])
        code = pair is not None and last.dialect(pair[1]).facts.python is not None
        found.insert(0, step.but(opset=max(usual, low), float=step.float or code))
    return found


def _prepare_step(subject: Subject, step: Options, opset: int | None) -> tuple[Prepared, str]:
    """The rules of one step, compiled for the opset of the graph that they read, or else for that which they write.

    `opset` is that of the graph that the step before has written. Raises CallError for an opset that rules lack.
    """
    pair = read_pair(step.rules[0])
    own = subject.model.opset_imports.get("") if opset is None else opset
    if pair is None or own is None or pair[0] != _USUAL[1]:
        return _choose_opset(subject, step, _prepare_options(step, step.opset))
    if pair[0] != pair[1]:  # operators of other opsets are brought to one that the rules read
        low, high = prepare(step.stacked, None).pack.opsets
        return _prepare_options(step, min(max(own, low), high)), ""
    if step.opset is not None and step.opset != own:
        raise CallError(f"the model is of opset {own}, and there are no rules yet that write it in opset {step.opset}")
    return _prepare_options(step, own), ""


def _prepare_options(options: Options, opset: int | None) -> Prepared:
    return prepare(options.stacked, opset, tuple(options.skip), tuple(options.only))


def _run_step(
    subject: Subject,
    prepared: Prepared,
    functions: Sequence[ir.Graph],
    options: Options,
    asked: Asked,
    interface: Interface,
    last: Module | None,
    version: int | None,
) -> Module:
    """Run the passes of one step over the graph, which is of an opset if of any; `last` is the module that the step
    before has left."""
    graph = subject.graph
    module = Module(graph, prepared.rules, Scope(graph), functions)
    if last is not None:
        outcome = replace(last.outcome, complex=False)  # pairs of numbers are what the step before made of them
        module = replace(module, outcome=outcome, layouts=last.layouts, state=last.state, real=last.real)
    chosen = PassOptions(
        extents=asked,
        layout=interface,
        outputs=tuple(subject.outputs),
        evaluate=functools.partial(evaluate, rules=prepared.rules, functions=functions) if functions else None,
        internal_state=options.state == INTERNAL,
        plain=options.float,
        float_interface=options.float_io,
        keep_float16=options.keep_float16,
        keep_custom=options.keep_custom,
        given=version if prepared.rules.target.facts.reference is not None else None,
        part=Part(tuple(options.inputs), tuple(options.outputs)) if last is None else Part(),
    )
    try:
        run_passes(list_passes(prepared.rules, chosen), module)
    except RewriteFailure as failure:
        if not asked:
            raise
        raise RewriteError(f"{failure.node} forbids the extents asked for: {failure.message}") from failure
    return module


def _read(source: str | bytes, options: Options, pack: loader.Pack) -> Subject:
    """Read a model, and find the graph that is asked for."""
    member = options.member
    if member is not None and isinstance(source, bytes):
        raise CallError(f"member {member} is of a bundle, which is read from its path")
    data = source if member is None or isinstance(source, bytes) else bundle.open_member(source, member)
    with time_part("reading"):
        model = find_reader(source, options).read(data, pack.catalogue, _name_source(source, member))
    if pack.catalogue.dialect(pack.files[0].target).facts.python is not None:
        _fix_defaults(model.graph)
        if model.opset_imports.get("", pack.opsets[0]) < pack.opsets[0]:
            from .frontends.onnx_versions import upgrade

            model = upgrade(model, pack.opsets[0])
    signature = signatures.choose(model, options.signature)
    subgraphs: Sequence[ir.Graph] = model.meta["subgraphs"]
    graph = model.graph if signature is None else subgraphs[signature.subgraph]
    if not graph.outputs:
        raise ModelError(
            f"{_name_source(source, member) or 'model'}: graph {graph.name} has no outputs: nothing to compute"
        )
    names, renamed = signatures.name_interface(graph, signature)
    return Subject(model, graph, subgraphs, signature, list(options.outputs) or names, renamed)


def _fix_defaults(graph: ir.Graph) -> None:
    """Let inputs that have a default be constants: in code weights are no arguments."""
    for value in [value for value in graph.inputs if value.const_value is not None]:
        graph.inputs.remove(value)


def _choose_opset(subject: Subject, options: Options, prepared: Prepared) -> tuple[Prepared, str]:
    """The rules for an opset that holds the types of the model, and the type that is the reason, where another would
    not do; raises RewriteError where that was asked for."""
    rules = prepared.rules
    graphs = [subject.graph, *list_called(subject.graph, rules.source, subject.subgraphs)]
    check_calls(graphs, rules.source, subject.subgraphs)
    least = least_opset(graphs, rules.source, rules.target, options.float)
    if least.opset <= prepared.opset:
        return prepared, ""
    if options.opset is not None:
        raise RewriteError(
            f"opset {options.opset} cannot hold the element types of the model ({least.held}), opset {least.opset} can"
        )
    return _prepare_options(options, least.opset), f"the first that holds {least.held}"


def _layouts(report: Report) -> dict[str, str]:
    """The order of axes of inputs and outputs as entries of a model's metadata."""
    return {LAYOUT: report.layout, **{f"{LAYOUT}.{name}": axes for name, axes in report.layouts.items()}}


def explain(
    model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx", target: str = DEFAULT.runtime
) -> list[Remaining]:
    """Tell of each permutation left in a model what it moves, and which two operators force it, or which rule of the
    target put it in to be quick."""
    from .engine.passes.layout.explain import explain

    packs = (rules,) if isinstance(rules, str) else tuple(rules)
    prepared = prepare(Options(rules=packs, target=target).stacked, None)
    places = [entry.value for node in model.graph.node for entry in node.metadata_props if entry.key == RULE]
    speeding = _speeding(prepared, target, places)
    purposes = {place: f"for speed, by {rule}" for place, rule in speeding.items()}
    return explain(model, prepared.rules.target, purposes)


def read_graph(
    source: str | os.PathLike[str], options: Options = DEFAULT, member: str | None = None, signature: str | None = None
) -> ir.Graph:
    """Read the graph that a conversion would begin with; raises what `rewrite` raises for what cannot be read."""
    path, options = os.fspath(source), options.but(member=member, signature=signature)
    steps = plan_steps(path, options)
    return _read(path, options, prepare(steps[0].stacked, None).pack).graph


def sides(graph: ir.Graph, rules: str | Sequence[str] = "tflite2onnx") -> dict[ir.Node, str]:
    """Tell in which layout each node of a converted graph runs."""
    from .engine.passes.layout.drawing import find_sides

    return find_sides(graph, _target(rules))


def picture(model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx") -> str:
    """Draw a model as SVG, in two colours for the two layouts."""
    from .engine.passes.layout.drawing import svg

    return svg(model, _target(rules))


def _target(rules: str | Sequence[str]) -> Dialect:
    return prepare((rules,) if isinstance(rules, str) else tuple(rules), None).rules.target


def _name_source(source: str | bytes, member: str | None) -> str | None:
    if isinstance(source, bytes):
        return None
    return source if member is None else f"{source}:{member}"


@functools.lru_cache(maxsize=8)
def _pack(rules: tuple[str, ...], stamp: loader.Stamp) -> loader.Pack | RuleError:
    """Packs, or their mistakes: neither is looked for again before a file changes."""
    try:
        return loader.load(rules)
    except RuleError as error:
        return error


def prepare(
    rules: tuple[str, ...], opset: int | None, skip: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Prepared:
    """Load rule sets and compile them for an opset, by default the one that they name.

    Rules to `skip` are left out, or all but those that `only` names. Raises RuleError for mistakes in rule files,
    CallError for an unknown rule set or rule, or an opset out of range.
    """
    return _prepare(rules, opset, skip, only, loader.stamp(rules))


@functools.lru_cache(maxsize=64)  # as many as there are opsets, for a few sets of packs
def _prepare(
    rules: tuple[str, ...], opset: int | None, skip: tuple[str, ...], only: tuple[str, ...], stamp: loader.Stamp
) -> Prepared:
    pack = _pack(rules, stamp)
    if isinstance(pack, RuleError):
        raise RuleError(pack.diagnostics, pack.sources)
    low, high = pack.opsets
    version = pack.default_opset if opset is None else opset
    if not low <= version <= high:
        raise CallError(f"opset {version} is none of {low} to {high}, which the rules of {', '.join(rules)} can write")
    contents = pack.contents.select(skip, only)
    compiled = compile_rules(pack.files, pack.catalogue, version, contents)
    reference = compiled.target.facts.reference
    if reference is not None and compiled.source is not compiled.target:
        compiled.settle = ResultInference(prepare((reference,), None).rules).settle
    return Prepared(pack, compiled, version)


def _report(
    subject: Subject,
    prepared: Prepared,
    before: Mapping[str, int],
    module: Module,
    layout: str,
    options: Options,
) -> Report:
    graph, dialect, signature = subject.graph, prepared.rules.target, subject.signature
    permute = dialect.role("permute").name
    moves = [node for node in graph if node.op_type == permute and node.domain == dialect.domain]
    sizes = [count_elements(node.outputs[0]) for node in moves]
    places = [node.metadata_props.get(RULE, "") for node in moves]
    speeding = _speeding(prepared, options.runtime, places)
    return Report(
        source_operators=before,
        target_operators=Counter(node.op_type for node in graph),
        permutations=len(moves),
        moved=None if None in sizes else sum(size for size in sizes if size is not None),
        opset=prepared.opset,
        rules=dict(module.outcome.fired),
        layout=layout,
        layouts=module.layouts,
        remarks=(
            *word_remarks(module.outcome.remarks),
            *word_bounds(module.outcome.bounded),
            *word_told(module.outcome.told),
            *signatures.remarks(subject.model, signature),
        ),
        signature=signature.key if signature is not None and signature.subgraph else None,
        inexact=dict(module.real) if options.exact else {},
        runtime=options.runtime,
        told=dict(module.outcome.told),
        for_speed=Counter(speeding[place] for place in places if place in speeding),
    )


def _speeding(prepared: Prepared, target: str, places: Sequence[str]) -> Mapping[str, str]:
    """Of rules by their places, those that a target has to be quick and that put in permutations, with their names."""
    if not places:
        return {}
    from .target import introducing

    dialect = prepared.rules.target
    return introducing(target, prepared.pack.files, dialect.role("permute").name, places)

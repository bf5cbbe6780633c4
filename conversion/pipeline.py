"""A conversion from end to end: read, rewrite, write, and say what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
import onnx

from ..backends import writers
from ..engine.base.constants import keep_trained
from ..engine.base.errors import (
    CallError,
    InternalError,
    RewriteError,
    RewriteFailure,
    UnsupportedError,
)
from ..engine.base.garbage_collection import pause_collection
from ..engine.base.held_files import hold_files
from ..engine.base.names import Scope
from ..engine.base.provenance import RULE
from ..engine.base.quantization import NUMBERS, REAL
from ..engine.base.startup import dataclass, replace
from ..engine.packs.headers import read_pair
from ..engine.passes.base import Module, run_passes
from ..engine.passes.complex import clear_complex_marks
from ..engine.passes.layout import LAYOUT, SOURCE_INTERFACE, Interface
from ..engine.passes.part import Part
from ..engine.passes.pass_list import PassOptions, list_passes
from ..engine.passes.resize import RequestedShapes
from ..engine.passes.state import describe_state
from ..engine.rewrite.subgraphs import list_called
from ..frontends.source import Source, accept
from . import signatures
from .compiled_rules import Prepared, prepare
from .conversion_steps import (
    explain_stacking,
    find_arranging,
    find_resizing,
    find_writer,
    is_left_later,
    plan_steps,
    prepare_step,
)
from .converted_model import Conversion
from .inspection import find_speeding
from .options import DEFAULT, INTERNAL, Options, OptionsDict
from .report import (
    Report,
    count_bytes,
    count_elements,
    count_unwritten,
    format_bounds,
    format_contradictions,
    format_lack,
    format_remarks,
)
from .subject import Subject, read_subject

#: the opset to try where the one that rules aim at has no form of something
_LATER = 21


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step of a conversion does.

    `opset` is that of the graph that it reads, where it has one. With `keep_all` what no rule takes is left: code has
    methods to be filled in. With `fixed` nobody overrides what inputs are by default. Where it is not to be `tuned`
    yet, that is left to a later step, as is the `layout` where there is none.
    """

    options: Options
    prepared: Prepared
    opset: int | None
    extents: RequestedShapes
    layout: Interface | None
    keep_all: bool
    fixed: bool
    tuned: bool


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
    options, source = options.replace(**changes), accept(source)
    try:
        # Numbers that a file has out of range are what they are; who reads the result decides.
        with pause_collection(), hold_files(), np.errstate(all="ignore"):
            return _attempt(source, options)
    except (RewriteError, BrokenPipeError):  # nobody reads on what a trace prints
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
            later = _try_rewrite(source, options.replace(opset=_LATER), format_lack(error.refusals[0]))
            if later is not None:
                return later
        advice = _suggest_stacking(error, options) or _suggest_batch(source, options)
        if advice is None:
            raise
        raise UnsupportedError(error.refusals, advice=advice) from None


def _suggest_stacking(error: UnsupportedError, options: Options) -> str | None:
    """How to lay packs over the program's rules, where operators are refused as these are not among them."""
    if options.rules == DEFAULT.rules or all(refusal.reasons for refusal in error.refusals):
        return None
    if any(read_pair(name) not in (None, read_pair(DEFAULT.rules[0])) for name in options.rules):
        return None  # packs about other formats, which have nothing to lie over
    if any(file.name in DEFAULT.rules for file in prepare(options.stacked, None).pack.files):
        return None
    return f"{', '.join(options.rules)} alone has no rule for it: {explain_stacking(options)}"


def _suggest_batch(source: str | bytes, options: Options) -> str | None:
    """To convert a model for one sample at a time, where that can be done and the file leaves their number open."""
    if options.batch is not None:
        return None
    inputs = read_subject(source, options, prepare(plan_steps(source, options)[0].stacked, None).pack).graph.inputs
    if all(isinstance(extent, int) for value in inputs for extent in (value.shape or ())[:1]):
        return None
    converted = _try_rewrite(source, options.replace(batch=1)) is not None
    return "--batch 1 converts it, for one sample at a time" if converted else None


def _try_rewrite(source: str | bytes, options: Options, reason: str = "") -> Conversion | None:
    """Convert a model in another way than was asked for; None where that is refused as well."""
    try:
        return _rewrite(source, options, reason)
    except InternalError:
        raise
    except RewriteError:
        return None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What the steps of a conversion came to: the rules and the module of the last one.

    `given` are the bytes of the constants that it began with, by type; `opset_reason` says why for the opset.
    """

    prepared: Prepared
    module: Module
    given: Counter[str]
    opset_reason: str


def _rewrite(source: str | bytes, options: Options, reason: str = "") -> Conversion:
    """Convert a model; `reason` says why for another opset than rules aim at."""
    writer = find_writer(options)
    steps = plan_steps(source, options)
    settled = steps[0]  # what the target asks for is among its options
    interface = Interface.parse(settled.layout)
    extents = RequestedShapes.parse(settled.input_shape, settled.batch)
    subject = read_subject(source, options, prepare(settled.stacked, None).pack)
    graph = subject.graph
    if writer.folder:  # code, which is trained
        keep_trained(graph)
    before = Counter(node.op_type for node in graph)
    outcome = _run_steps(subject, steps, interface, extents, writer.folder)
    prepared, module, given = outcome.prepared, outcome.module, outcome.given
    left = count_bytes([graph, *graph.subgraphs()])
    report = replace(
        _report(subject, prepared, before, module, f"{interface}", steps[-1], writer.folder),
        opset_reason=reason or outcome.opset_reason,
        constants={name: (given[name], left[name]) for name in sorted(given | left)},
    )
    output = _make_output(subject, steps, outcome, report, settled.float)
    read = None if isinstance(source, bytes) else Path(source).absolute()
    return Conversion(writer.encode(output), report, graph, steps[-1], read)


def _run_steps(
    subject: Subject, steps: Sequence[Options], interface: Interface, extents: RequestedShapes, code: bool
) -> _Outcome:
    """Run the steps of a conversion one behind the other, each with what is asked for that falls to it."""
    graph = subject.graph
    given: Counter[str] = Counter()
    prepared, held, module, arranging = None, "", None, find_arranging(steps)
    resizing = find_resizing(steps) if extents else None
    for place, step in enumerate(steps):
        opset = subject.model.opset_imports.get("") if prepared is None else prepared.opset
        prepared, held = prepare_step(subject, step, None if prepared is None else prepared.opset)
        if not place:
            given = count_bytes([graph, *list_called(graph, prepared.rules.source, subject.subgraphs)])
        asked = extents if step is resizing else RequestedShapes()
        order: Interface | None = interface if step is arranging else Interface()
        # What is the same for the batch of the file, as a reshape for a permutation, is not for another.
        tuned = resizing is None or place >= steps.index(resizing)
        ends = prepared.rules.source, prepared.rules.target
        alike = len({end.facts.channels for end in ends}) == 1
        if order == SOURCE_INTERFACE and alike and (code or step is not arranging):
            order = None  # a permutation stands in code where the source has it; a later step finds the best places
        order = order if tuned else None
        fixed = is_left_later(steps, place)
        module = _run_step(subject, _Step(step, prepared, opset, asked, order, code, fixed, tuned), module)
    assert prepared is not None and module is not None
    return _Outcome(prepared, module, given, held)


def _make_output(
    subject: Subject, steps: Sequence[Options], outcome: _Outcome, report: Report, is_real: bool
) -> writers.Output:
    """The graph as it is to be written: under which names, in which opset, with which metadata."""
    rules, module, dialect = outcome.prepared.rules, outcome.module, outcome.prepared.rules.target
    stays = rules.source is dialect and len({read_pair(step.rules[0]) for step in steps}) == 1
    kept = subject.model if stays else None
    numbers = {NUMBERS: REAL} if is_real else {}
    if kept:  # the file's own metadata stays
        metadata = {**numbers, **(_list_layouts(report) if report.layouts else {})}
    else:
        state, names = describe_state(module.state), signatures.describe_names(subject.renamed)
        metadata = {**_list_layouts(report), **numbers, **state, **names}
    added = [name for name in module.state.values() if name not in subject.outputs]
    written = [name for name in (*subject.outputs, *added) if name not in module.kept]
    return writers.Output(subject.graph, written, dialect, outcome.prepared.opset, metadata, kept)


def _run_step(subject: Subject, step: _Step, last: Module | None) -> Module:
    """Run the passes of one step over the graph; `last` is the module that the step before has left."""
    options, rules = step.options, step.prepared.rules
    across = rules.source is not rules.target
    functions = subject.subgraphs if last is None else ()
    module = Module(subject.graph, rules, Scope(subject.graph), functions)
    if last is not None:
        if last.outcome.complex:
            clear_complex_marks(subject.graph)
        outcome = replace(last.outcome, complex=False, told=Counter())  # of a result that is read on
        module = replace(module, outcome=outcome, layouts=last.layouts, state=last.state, real=last.real)
    chosen = PassOptions(
        extents=step.extents,
        layout=step.layout,
        outputs=tuple(subject.outputs),
        state=bool(functions) and across,
        internal_state=options.state == INTERNAL,
        plain=options.float,
        float_interface=options.float_io or (options.float and rules.source.schemas),
        keep_float16=options.keep_float16,
        keep_custom=options.keep_custom,
        keep_all=step.keep_all,
        folded=options.max_folded_bytes,
        fixed=step.fixed,
        tuned=step.tuned,
        given=step.opset if rules.source.schemas and across else None,
        adapted=step.opset if not across and step.opset != step.prepared.opset else None,
        part=Part(tuple(options.inputs), tuple(options.outputs)) if last is None else Part(),
    )
    try:
        run_passes(list_passes(rules, chosen), module)
    except RewriteFailure as failure:
        if not step.extents:
            raise
        raise RewriteError(f"{failure.node} forbids the extents asked for: {failure.message}") from failure
    return module


def _list_layouts(report: Report) -> dict[str, str]:
    """The order of axes of inputs and outputs as entries of a model's metadata."""
    return {LAYOUT: report.layout, **{f"{LAYOUT}.{name}": axes for name, axes in report.layouts.items()}}


def _report(
    subject: Subject,
    prepared: Prepared,
    before: Mapping[str, int],
    module: Module,
    layout: str,
    options: Options,
    code: bool,
) -> Report:
    graph, dialect, signature = subject.graph, prepared.rules.target, subject.signature
    told = {**module.outcome.told, **(count_unwritten(graph, dialect) if code else {})}
    permute = dialect.find_role("permute").name
    moves = [node for node in graph if node.op_type == permute and node.domain == dialect.domain]
    sizes = [count_elements(node.outputs[0]) for node in moves]
    places = [node.metadata_props.get(RULE, "") for node in moves]
    speeding = find_speeding(prepared, options.runtime, places)
    return Report(
        source_operators=before,
        target_operators=Counter(node.op_type for node in graph),
        permutations=len(moves),
        moved=None if None in sizes else sum(size for size in sizes if size is not None),
        opset=prepared.opset if dialect.schemas else None,
        rules=dict(module.outcome.fired),
        layout=layout,
        layouts=module.layouts,
        remarks=(
            *format_contradictions(module.outcome.remarks),
            *format_bounds(module.outcome.bounded),
            *format_remarks(told),
            *signatures.list_remarks(subject.model, signature),
        ),
        signature=signature.key if signature is not None and signature.subgraph else None,
        inexact=dict(module.real) if options.exact else {},
        runtime=options.runtime,
        told=told,
        for_speed=Counter(speeding[place] for place in places if place in speeding),
    )

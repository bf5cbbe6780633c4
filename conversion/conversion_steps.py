"""The steps of a conversion: the formats at both ends, and the rule sets and the opset of each step between them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..backends import writers
from ..engine.base.errors import CallError, RewriteError, suggest_nearest
from ..engine.dialects.opsets import find_least_opset
from ..engine.dialects.python_facts import DialectPython
from ..engine.packs import folders
from ..engine.packs.headers import read_header, read_pair
from ..engine.passes.resize import can_resize
from ..engine.rewrite.subgraphs import check_calls, list_called
from ..frontends import readers
from .compiled_rules import Prepared, prepare
from .idle_options import check_options, list_idle
from .options import DEFAULT, PORTABLE, Options, has_built_in_packs
from .routes import RouteStep, add_prerequisites, find_route
from .subject import Subject, find_reader
from .target import find_dialect, list_changes

#: the dialects that the rule sets of an option that nobody set lead from and to
_USUAL = ("tflite", "onnx")
#: options that add a rule set, each with the key of a dialect that is source code which names it
_ADDED = (("unfold", "unfolded"), ("fake_quantize", "fake_quantized"))


def plan_steps(source: str | bytes, options: Options) -> list[Options]:
    """The options of each step that a model takes from its format to the one that is to be written.

    Raises CallError where no rules lead there, and for options that have no effect on the way; ModelError for a file
    that cannot be read.
    """
    # a list of its own: the plan is kept
    return [*_plan_route(find_reader(source, options), find_writer(options), options)]


def ask_for_target(source: str | bytes, options: Options, target: str) -> Options:
    """Options for the parts of a target: with what it asks for wherever nothing was asked for and a conversion heeds
    it, and without its rules. Raises what `plan_steps` does."""
    asked, writer = options.replace(target=target).settled.replace(target=options.target), find_writer(options)
    idle = list_idle(asked, writer, _list_route(find_reader(source, options), writer, asked))
    unsaid = {name: getattr(options, name) for name in idle if getattr(options, name) == getattr(DEFAULT, name)}
    return asked.replace(**unsaid) if unsaid else asked


def find_writer(options: Options) -> writers.Writer:
    """The format to write: that which is asked for, else that of what the rules make.

    Raises CallError for an ending that no format has.
    """
    if options.to is None:
        pairs = [pair for name in options.rules if (pair := read_pair(name)) is not None]
        made = pairs[-1][1] if pairs else None
        return writers.find_dialect_writer(made or "") or writers.WRITERS[0]
    found = writers.find_writer(options.to if options.to == "/" else f".{options.to.lstrip('.')}")
    if found is None:
        known = ", ".join(suffix for one in writers.WRITERS for suffix in one.suffixes)
        raise CallError(f"there is no writing {options.to} files: the endings of those that can be written are {known}")
    return found


@functools.partial(folders.read_packs_once, is_built_in=lambda read, writer, options: has_built_in_packs(options))
def _plan_route(read: readers.Reader, writer: writers.Writer, options: Options) -> list[Options]:
    """The options of each step from a format that is read to one that is written, by the rule sets that lead there."""
    dialect, own = writer.dialect, _has_own_rules(read, writer, options)
    if own and len(options.rules) == 1 and read_header(folders.find_folder(options.rules[0])) is None:
        return [options.settled]
    if own and all(pair[0] == pair[1] != read.dialect for name in options.rules if (pair := read_pair(name))):
        advice = f"the program's own rules go below it by {words}" if (words := _advise(read, writer, options)) else ""
        said = f"the rules of {', '.join(options.rules)} do not read models"
        raise CallError(f"{said}: {advice}" if advice else said)
    route, back = _list_route(read, writer, options), False
    if own and (made := read_pair(route[-1][0])) is not None and made[1] != dialect:
        advice = f": the program's own rules go below by {words}" if (words := _advise(read, writer, options)) else ""
        said = f"the rules of {', '.join(options.rules)} write {made[1]} models, and {writer.name} is to be written"
        raise CallError(f"{said}{advice}")
    if len(route) == 1:
        only, resized = options.replace(rules=route[0], target=None), options.input_shape or options.batch is not None
        made_real = options.float and dialect != read.dialect and _has_quantizing_operators(only)
        if made_real or (resized and not _can_resize(only)):
            route = [*route, *find_route(dialect, dialect)]
        elif _is_brought_back(only, read, writer):
            route, back = [*route, *route], True
    check_options(options, read, writer, route)
    planned = [RouteStep(names) for names in route] if options.alone else add_prerequisites(route)
    routes = _add_asked([one.names for one in planned], options)
    targets = _choose_targets(options, routes)
    # Rules of a target are for what runs a model, and models between two steps are not run.
    unrun = [() if one in (None, options.target) else _list_rules_of_target(one) for one in targets[:-1]]
    steps = [
        options.replace(rules=names, target=target, skip=(*options.skip, *one.without, *skipped)).settled
        for one, names, target, skipped in zip(planned, routes, targets, (*unrun, ()), strict=True)
    ]
    # What a target says of the opset is of the model that is written, not of what a further step reads.
    steps = [*(step.replace(opset=options.opset) for step in steps[:-1]), steps[-1]]
    if back:
        steps = [*(step.replace(opset=None) for step in steps[:-1]), steps[-1].replace(float=False, float_io=False)]
    if options.skip or options.only:
        known = {name for step in steps for name in prepare(step.stacked, None).pack.contents.list_names()}
        for name in (*options.skip, *options.only):
            if name not in known:
                raise CallError(f"there is no rule {name}{suggest_nearest(name, known)}")
    return steps if len(steps) == 1 else _match_opsets(steps)


def _is_brought_back(options: Options, read: readers.Reader, writer: writers.Writer) -> bool:
    """Whether a model stays in its format and is to be written in an opset before those of the rules that make it one
    of real numbers: a further step brings it there."""
    if not (options.float and options.opset and read.dialect == writer.dialect == _USUAL[1]):
        return False
    least, last = (prepare(one.stacked, None).pack.opsets[0] for one in (options, options.replace(float=False)))
    return last <= options.opset < least


def _has_own_rules(read: readers.Reader, writer: writers.Writer, options: Options) -> bool:
    """Whether it is the rule sets of the options that lead from a format to another."""
    return options.rules != DEFAULT.rules or (read.dialect, writer.dialect) == _USUAL


def _list_route(read: readers.Reader, writer: writers.Writer, options: Options) -> list[tuple[str, ...]]:
    """The rule sets of each step from a format that is read to one that is written."""
    own = _has_own_rules(read, writer, options)
    return find_route(read.dialect, writer.dialect, options.rules if own else ())


def _advise(read: readers.Reader, writer: writers.Writer, options: Options) -> str:
    """How to ask for the program's own rules from a format to another below those asked for; empty where none lead."""
    try:
        found = [name for names in find_route(read.dialect, writer.dialect) for name in names]
    except CallError:
        return ""
    return " ".join(f"--rules {name}" for name in dict.fromkeys((*found, *options.rules)))


def _add_asked(routes: list[tuple[str, ...]], options: Options) -> list[tuple[str, ...]]:
    """The rule sets of each step, with those that options ask for; raises CallError where no dialect has any."""
    asked = [(field, flag) for field, flag in _ADDED if getattr(options, field)]
    if not asked:
        return routes
    found, had = [], set()
    for names in routes:
        pair = read_pair(names[-1])
        facts = (
            None
            if pair is None
            else prepare(options.replace(rules=names).stacked, None).pack.catalogue.find_dialect(pair[1]).facts
        )
        sets = {field: getattr(facts.python, flag) for field, flag in asked if facts is not None and facts.python}
        had |= {field for field, name in sets.items() if name is not None}
        found.append((*names, *(name for name in sets.values() if name is not None and name not in names)))
    for field, _ in asked:
        if field not in had:
            raise CallError(f"--{field.replace('_', '-')} is about models that are written as PyTorch code")
    return found


def _choose_targets(options: Options, routes: list[tuple[str, ...]]) -> list[str | None]:
    """The target of each step: that which is asked for, where the step writes its dialect.

    What a further step reads is made for no runtime unless one is asked for: the next rules know the usual forms. Where
    no step writes the dialect of what is asked for, the last is asked for it, which refuses that.
    """
    found = [
        options.target if _is_target_of(options.target, names) else PORTABLE if _is_target_of(PORTABLE, names) else None
        for names in routes[:-1]
    ]
    last = options.target if _is_target_of(options.target, routes[-1]) or options.target not in found else None
    return [*found, last]


@functools.cache  # 0.2 ms, where a model of a few operators takes 7
def _list_rules_of_target(target: str) -> tuple[str, ...]:
    return tuple(change.rule for change in list_changes(target))


def _is_target_of(target: str | None, names: tuple[str, ...]) -> bool:
    """Whether a target is of the dialect that rule sets write, or of none in particular."""
    if target is None:
        return False
    made, pair = find_dialect(target), read_pair(names[-1])
    return made is None or pair is None or made == pair[1]


def _match_opsets(steps: list[Options]) -> list[Options]:
    """Steps each of which writes an opset that the next one reads; what is not written at last is quantized nowhere."""
    found = steps[-1:]
    for step in reversed(steps[:-1]):
        ends = read_pair(step.rules[0])
        if ends is not None and ends[0] == ends[1]:
            found.insert(0, step)  # keeps that of the model, which the step that reads it brings to its own
            continue
        low, _ = prepare(found[0].stacked, None).pack.opsets
        usual = prepare(step.stacked, step.opset).opset
        _, high = prepare(step.stacked, None).pack.opsets  # what is newer the step that reads it brings about
        python = _find_code(found[-1])
        fake = step.fake_quantize and python is not None
        # A step that writes code itself has rules about codes, as where it is the last.
        real = python is not None and _find_code(step) is None
        step = step.replace(opset=min(max(usual, low), high), float=not fake and (step.float or real))
        step = step.replace(float_io=step.float_io or fake)
        found.insert(0, step if python is None else step.replace(skip=(*step.skip, *python.unfused)))
    return found


def _find_code(step: Options) -> DialectPython | None:
    """How the dialect that a step writes is source code, if it is."""
    pair = read_pair(step.rules[-1])
    return None if pair is None else prepare(step.stacked, None).pack.catalogue.find_dialect(pair[1]).facts.python


def find_arranging(steps: Sequence[Options]) -> Options | None:
    """The step that gives inputs and outputs the order of axes that is asked for: the last that does not write code, in
    which there are no layouts. None where there is none."""

    def is_arranging(step: Options) -> bool:
        return _find_code(step) is None

    return next(filter(is_arranging, reversed(steps)), None)


def is_left_later(steps: Sequence[Options], place: int) -> bool:
    """Whether a step stays within a dialect that a later one leaves."""
    stays, *later = (pair is None or pair[0] == pair[1] for pair in (read_pair(one.rules[0]) for one in steps[place:]))
    return stays and not all(later)


def find_resizing(steps: Sequence[Options]) -> Options | None:
    """The step that gives inputs the shapes that are asked for: the first that reads a dialect whose graphs follow.
    None where there is none."""
    return next(filter(_can_resize, steps), None)


def _can_resize(step: Options) -> bool:
    """Whether the graphs that a step reads follow when their inputs are given other shapes."""
    pack = prepare(step.stacked, None).pack
    return can_resize(pack.catalogue.find_dialect(pack.source))


def _has_quantizing_operators(step: Options) -> bool:
    """Whether what a step reads says by operators what is quantized, and not by types: rules of what these become turn
    it into real numbers."""
    pack = prepare(step.stacked, None).pack
    known = pack.catalogue.find_dialect(pack.source)
    return not any(spec.facts.quantization for spec in known.operators.values())


def prepare_step(subject: Subject, step: Options, opset: int | None) -> tuple[Prepared, str]:
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
    low, high = prepare(step.stacked, None).pack.opsets
    if step.opset is not None or low <= own <= high:
        return _prepare_options(step, own if step.opset is None else step.opset), ""
    nearest = "first that the rules read" if own < low else "last that the rules write"
    return _prepare_options(step, min(max(own, low), high)), f"the {nearest}, the model was of {subject.opset}"


def _prepare_options(options: Options, opset: int | None) -> Prepared:
    return prepare(options.stacked, opset, tuple(options.skip), tuple(options.only))


def _choose_opset(subject: Subject, options: Options, prepared: Prepared) -> tuple[Prepared, str]:
    """The rules for the first opset that can hold the model's types, and why it is a later one, "" where it is not.

    Raises RewriteError where the user asked for an opset that cannot hold them.
    """
    rules = prepared.rules
    graphs = [subject.graph, *list_called(subject.graph, rules.source, subject.subgraphs)]
    check_calls(graphs, rules.source, subject.subgraphs)
    least = find_least_opset(graphs, rules.source, rules.target, options.float)
    if least.opset <= prepared.opset:
        return prepared, ""
    if options.opset is not None:
        raise RewriteError(
            f"opset {options.opset} cannot hold the element types of the model ({least.held}), opset {least.opset} can"
        )
    return _prepare_options(options, least.opset), f"the first that holds {least.held}"


def explain_stacking(options: Options) -> str:
    """How to ask for the program's own rules below others."""
    words = " ".join(f"--rules {name}" for name in (*DEFAULT.rules, *options.rules))
    return f"the program's own rules go below it by {words}"

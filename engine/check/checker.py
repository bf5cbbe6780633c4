"""Every mistake of rule files that can be found before a model is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx.defs

from ..base.errors import Diagnostic, Note
from ..dialects.operators import Catalogue
from ..rewrite.outlines import Contents, RuleOutlines, outline_rules
from ..rewrite.rules import Override
from ..syntax import tree
from ..syntax.diagnostics import Collector, find_unknown_dialects
from .calls import check_body
from .checked import CheckedItems
from .definitions import find_builders, find_refusers, list_calls, report_recursion
from .kinds import ANY, NUMBER, make_single
from .rule import check_rule, check_table
from .scope import Context, Variable, World
from .shadowing import report_shadowed

#: the oldest opset whose operators the language can describe
_OLDEST = 7


def check(files: Sequence[tree.RuleFile], catalogue: Catalogue, complete: bool = True) -> list[Diagnostic]:
    """Find all mistakes of some rule files that are used together, in the order of the files and their lines.

    `complete` is false where other files could not be parsed: what those define is then not taken to be missing.
    """
    return review(files, catalogue, complete)[0]


def review(
    files: Sequence[tree.RuleFile], catalogue: Catalogue, complete: bool = True, sound: CheckedItems | None = None
) -> tuple[list[Diagnostic], list[Override], Contents | None]:
    """Find all mistakes, as `check` does, the rules that take the place of another pack's, and what the files hold.

    What is `sound` already beside this catalogue, of packs that others are laid over, is not looked at again. Of files
    with mistakes nobody needs to know what they hold.
    """
    diagnosis = Collector()
    definitions = _collect_definitions(files, diagnosis)
    calls = list_calls(definitions)
    loops = report_recursion(definitions, calls, diagnosis)
    known = {name: d for name, d in definitions.items() if name not in loops}
    ends = {name: calls[name] for name in known}
    world = World(catalogue, known, find_builders(ends), find_refusers(ends), complete and not loops, diagnosis)
    _check_headers(files, catalogue, diagnosis)
    _check_names(files, diagnosis)
    before = sound.find_sound(known) if sound is not None else frozenset()
    good: list[tree.RuleFile] = []
    for file in files:
        context = _make_context(file, world)
        if context is not None:
            items = tuple(item for item in file.items if id(item) in before or _check_item(item, context))
            good.append(file if items == file.items else replace(file, items=items))
    outlines: RuleOutlines = {}
    if sound is not None and complete and not loops:
        sound.keep(known, (item for file in good for item in file.items))
        outlines = sound.outlines
    contents = None
    overrides: list[Override] = []
    if complete and (good := [file for file in good if file.items]):
        contents = outline_rules(good, catalogue, outlines)
        overrides = report_shadowed(good, catalogue, contents, diagnosis)
    order = {file.span.file: position for position, file in enumerate(files)}
    found = sorted(diagnosis.found, key=lambda d: (order.get(d.span.file, len(files)), d.span.line, d.span.column))
    return found, overrides, contents if not found and len(good) == len(files) else None


def _check_item(item: tree.Rule | tree.Table | tree.Definition, context: Context) -> bool:
    """Check one item of a file; whether it is free of mistakes."""
    before = len(context.world.diagnosis.found)
    if isinstance(item, tree.Rule):
        check_rule(item, context)
    elif isinstance(item, tree.Table):
        check_table(item, context)
    elif item.name in context.world.definitions:
        general = replace(context, emits=True, general=True, builds=(context.source, context.target))
        count = len(item.parameters)
        check_body(item, [ANY] * count, [None] * count, general)
    return len(context.world.diagnosis.found) == before


# ---- files


def _check_headers(files: Sequence[tree.RuleFile], catalogue: Catalogue, diagnosis: Collector) -> None:
    newest = onnx.defs.onnx_opset_version()
    firsts: dict[tuple[int, str], tree.RuleFile] = {}
    for file in files:
        for unknown in find_unknown_dialects(file, catalogue.dialects):
            diagnosis.add_error(unknown.span, unknown.message, unknown.help)
        low, high = file.opsets
        if low > high:
            diagnosis.add_error(
                file.span, f"the range of opsets {low}..{high} is empty", f"did you mean {high}..{low}?"
            )
        elif low < _OLDEST or high > newest:
            diagnosis.add_error(
                file.span,
                f"opsets {low}..{high} are not all known",
                f"the installed onnx package describes opsets {_OLDEST}..{newest}",
            )
        elif file.default_opset is not None and not low <= file.default_opset <= high:
            diagnosis.add_error(file.span, f"the default opset {file.default_opset} is not in {low}..{high}")
        first = firsts.setdefault((file.rank, file.name), file)
        if says := _find_disagreement(file, first):
            diagnosis.add_error(
                file.span,
                f"ruleset `{file.name}` {says} here, and not in another file",
                "the files of a ruleset begin alike",
                [Note("the other header is here", first.span)],
            )


def _find_disagreement(file: tree.RuleFile, first: tree.RuleFile) -> str | None:
    """What the header of a file says that the first of its ruleset does not; None where they are alike."""
    if (first.source, first.target) != (file.source, file.target):
        return f"goes from {file.source} to {file.target}"
    if first.opsets != file.opsets:
        low, high = file.opsets
        return f"is for opsets {low}..{high}"
    if first.base != file.base:
        return "lies over no other" if file.base is None else f"lies over {file.base}"
    if first.without != file.without:
        return f"leaves out {', '.join(file.without)}" if file.without else "leaves no rule out"
    if first.after != file.after:
        pack, without = "".join(file.after[:1]), ", ".join(file.after[1:])
        return f"comes after {pack or 'no other'}" + (f" without {without}" if without else "")
    if first.default_opset != file.default_opset:
        return "names no default opset" if file.default_opset is None else f"has default {file.default_opset}"
    return None


def _collect_definitions(files: Sequence[tree.RuleFile], diagnosis: Collector) -> dict[str, tree.Definition]:
    found: dict[str, tree.Definition] = {}
    for file in files:
        for item in file.items:
            if not isinstance(item, tree.Definition):
                continue
            first = found.setdefault(item.name, item)
            if first is not item:
                note = Note("it is defined here", first.span)
                diagnosis.add_error(item.span, f"`{item.name}` is defined already", None, [note])
    return found


def _check_names(files: Sequence[tree.RuleFile], diagnosis: Collector) -> None:
    found: dict[tuple[int, str, str], tree.Rule | tree.Table] = {}
    for file in files:
        for item in file.items:
            if isinstance(item, tree.Definition):
                continue
            first = found.setdefault((file.rank, file.name, item.name), item)
            if first is not item:
                note = Note("it is here", first.span)
                diagnosis.add_error(item.span, f"there is a rule or table `{item.name}` already", None, [note])


def _make_context(file: tree.RuleFile, world: World) -> Context | None:
    """Where the items of a file stand; None where its header makes no sense of them."""
    dialects = world.catalogue.dialects
    low, high = file.opsets
    opsets = frozenset(range(max(low, _OLDEST), min(high, onnx.defs.onnx_opset_version()) + 1))
    if file.source not in dialects or file.target not in dialects or not opsets:
        return None
    source, target = dialects[file.source], dialects[file.target]
    opset = Variable("opset", file.span, "opset", make_single(NUMBER), used=True)
    return Context(world, {"opset": opset}, source, target, (target,), opsets, declared=opsets)

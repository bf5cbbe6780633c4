"""Rules and tables of other packs that a file reads from right to left, by `reverse PACK.NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..base.errors import Diagnostic, RuleError
from ..base.startup import replace
from ..dialects.operators import Catalogue
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.reversal import Irreversible, is_reversible, reverse
from .folders import find_built_in, list_built_in

#: the parsed files of a pack that comes with the program
Reader = Callable[[str], Sequence[tree.RuleFile]]


def add_reversed(
    files: Sequence[tree.RuleFile], catalogue: Catalogue, read_pack: Reader
) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
    """Files with the items that they read backwards, and what is wrong with naming these."""
    found, wrong = [], list[Diagnostic]()
    for file in files:
        items: list[tree.Rule | tree.Table | tree.Definition] = []
        for asked in file.reverses:
            made = _read_backwards(asked, file, catalogue, read_pack)
            if isinstance(made, Diagnostic):
                wrong.append(made)
            else:
                items.append(made)
        found.append(replace(file, items=(*file.items, *items)) if items else file)
    return found, wrong


def _read_backwards(
    asked: tree.Use, file: tree.RuleFile, catalogue: Catalogue, read_pack: Reader
) -> tree.Rule | tree.Table | Diagnostic:
    if find_built_in(asked.pack) is None:
        message = f"there is no rule set `{asked.pack}` that comes with the program"
        return Diagnostic(asked.span, message, (), suggest(asked.pack, list_built_in()))
    try:
        parsed = read_pack(asked.pack)
    except RuleError as error:
        return error.diagnostics[0]
    known = {item.name: (one, item) for one in parsed for item in _iterate_reversible(one)}
    if asked.name not in known:
        help = suggest(asked.name, known, "what it says with `<=>`")
        return Diagnostic(asked.span, f"{asked.pack} has no `{asked.name}` that holds both ways", (), help)
    home, item = known[asked.name]
    if (home.target, home.source) != (file.source, file.target):
        said = f"{home.source} -> {home.target} is not {file.source} -> {file.target} backwards"
        return Diagnostic(asked.span, f"{asked.pack} leads elsewhere: {said}")
    try:
        made = reverse(item, catalogue.find_dialect(home.source).list_enumerants)
        # It is a rule of this file, whose records and places are its own.
        if isinstance(made, tree.Table):
            made = replace(made, entries=tuple(replace(entry, span=asked.span) for entry in made.entries))
        return replace(made, span=asked.span)
    except Irreversible as error:
        return Diagnostic(error.span, f"`<=>` cannot be read backwards: {error.reason}")


def _iterate_reversible(file: tree.RuleFile) -> Iterator[tree.Rule | tree.Table]:
    return (item for item in file.items if not isinstance(item, tree.Definition) and is_reversible(item))

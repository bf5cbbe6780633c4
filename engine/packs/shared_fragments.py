"""Fragments of packs below that files name by `use`, put in where they are named.

What they call is of the file in which they stand. Until definitions have names of their own, such calls say so:
`FILE:name`. A definition of the same name goes before a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..base.errors import Diagnostic, Note, RuleError
from ..base.startup import replace
from ..check.checked import Item
from ..syntax import tree
from .parse_cache import MARK, Parses


def put_in_fragments(
    files: Sequence[tree.RuleFile], texts: Mapping[str, str], parses: Parses
) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
    """Files with the fragments that they use of packs below, and the mistakes made in naming these; a file with
    mistakes has no items."""
    defined = {(file.name, item.name) for file in files for item in file.items if isinstance(item, tree.Definition)}
    homes: dict[tuple[str, str], list[tuple[tree.RuleFile, tree.Fragment]]] = {}
    for file in files:
        for fragment in file.fragments:
            if (file.name, fragment.name) not in defined:
                homes.setdefault((file.name, fragment.name), []).append((file, fragment))
    found, wrong = [], list[Diagnostic]()
    for file in files:
        used: dict[str, tree.Fragment] = {}
        wrong += _add_used(used, file, homes, parses)
        if used or file.awaited:
            try:
                file = parses.put_in_used(file, texts[file.span.file], used)
            except RuleError as error:
                wrong += error.diagnostics
                file = replace(file, items=())
        found.append(file)
    return found, wrong


def _add_used(
    used: dict[str, tree.Fragment],
    file: tree.RuleFile,
    homes: Mapping[tuple[str, str], Sequence[tuple[tree.RuleFile, tree.Fragment]]],
    parses: Parses,
) -> Iterator[Diagnostic]:
    """Add the fragments that a file uses; those that it cannot are told."""
    own = {fragment.name for fragment in file.fragments}
    for use in file.uses:
        there = [(home, one) for home, one in homes.get((use.pack, use.name), ()) if home.rank < file.rank]
        nearest = max((home.rank for home, _ in there), default=0)
        there = [(home, one) for home, one in there if home.rank == nearest]
        if len(there) > 1:
            notes = tuple(Note("one is here", one.span) for _, one in there)
            yield Diagnostic(use.span, f"{use.pack} has several fragments `{use.name}`", notes)
        elif there and (use.called in own or use.called in used):
            yield explain_clash(use, use.called in own)
        elif there:
            used[use.called] = parses.mark_fragment(*there[0])


def explain_clash(use: tree.Use, defined: bool) -> Diagnostic:
    """That what a file uses of another pack has a name here already: it is `defined` here, else used before."""
    what = "is defined here as well" if defined else "is used twice"
    return Diagnostic(use.span, f"`{use.called}` {what}", (), f"`use {use.pack}.{use.name} as other` renames it")


def resolve_marks(items: Sequence[Item], parses: Parses, own: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What the calls in items mean that say of which file they are, by what each file calls its own."""
    marked = {name for item in items for name in parses.mentions.list_names(item) if MARK in name}
    split = {name: name.rpartition(MARK) for name in marked}
    return {name: own[file].get(called, called) for name, (file, _, called) in split.items()}

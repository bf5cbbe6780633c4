"""Whose definitions a file calls: those of its own pack, and those of packs below that it names by `use`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..base.errors import Diagnostic, Note
from ..base.startup import replace
from ..check.checked import Item
from ..syntax import tree
from ..syntax.diagnostics import suggest
from ..syntax.tree_traversal import walk
from .shared_fragments import explain_clash, resolve_marks

if TYPE_CHECKING:
    from .parse_cache import Parses

#: by the rank of a pack: its definitions, each with the name that no other pack has
Packs = Mapping[int, Mapping[str, str]]


def separate_definitions(
    files: Sequence[tree.RuleFile], parses: Parses, complete: bool = True
) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
    """Files in which every definition of every pack has a name of its own, and the mistakes made in naming others'.

    Where files are missing, as they cannot be read, what is not defined in the others is no mistake.
    """
    packs = _name_apart(files)
    owners: dict[str, list[int]] = {}
    for rank in sorted(packs):
        for name in packs[rank]:
            owners.setdefault(name, []).append(rank)
    names = {file.rank: file.name for file in files}
    found, wrong = [], list[Diagnostic]()
    called: dict[str, dict[str, str]] = {}
    for file in files:
        own = dict(packs[file.rank])
        mistakes = list(dict.fromkeys(_add_used(own, file, packs, names, files)))  # a line may use several names
        if not complete:
            mistakes, own = [], {**{name: f"{name} elsewhere" for name in owners.keys() - own.keys()}, **own}
        wrong += mistakes
        called[file.span.file] = own
    for file in files:
        own = called[file.span.file]
        others = owners.keys() - own.keys()
        for item in file.items:
            if not others.isdisjoint(parses.mentions.list_names(item)):
                wrong += (
                    _make_diagnostic(call, owners[call.callee], names, file) for call in _list_calls(item, others)
                )
        changed = {name: apart for name, apart in own.items() if name != apart}
        changed |= resolve_marks(file.items, parses, called)
        items = tuple(parses.rename_item(item, changed) for item in file.items) if changed else file.items
        found.append(replace(file, items=items))
    return found, list(dict.fromkeys(wrong))  # what a fragment calls stands in every rule that it is put in


def _name_apart(files: Sequence[tree.RuleFile]) -> Packs:
    """The lowest pack that has a name keeps it as it is."""
    titles: dict[int, str] = {}
    for rank, name in sorted({file.rank: file.name for file in files}.items()):
        titles[rank] = f"{name}.{rank}" if name in titles.values() else name
    packs: dict[int, dict[str, str]] = {rank: {} for rank in titles}
    taken = set[str]()
    for rank in sorted(packs):
        of_pack = (item.name for file in files if file.rank == rank for item in file.items if _is_definition(item))
        packs[rank] = {name: f"{name}.{titles[rank]}" if name in taken else name for name in of_pack}
        taken |= packs[rank].keys()
    return packs


def _is_definition(item: Item) -> bool:
    return isinstance(item, tree.Definition)


def _add_used(
    own: dict[str, str], file: tree.RuleFile, packs: Packs, names: Mapping[int, str], files: Sequence[tree.RuleFile]
) -> Iterator[Diagnostic]:
    """Add to what a file may call the definitions that it uses; those that it cannot are told."""
    defined = set(own)
    for use in file.uses:
        below = sorted((rank for rank, name in names.items() if name == use.pack and rank < file.rank), reverse=True)
        if not below:
            known = (name for rank, name in names.items() if rank < file.rank)
            help = suggest(use.pack, known, "the rule sets below it")
            yield Diagnostic(use.span, f"no rule set `{use.pack}` lies below {file.name}", (), help)
            continue
        # Packs of one's own may have the name of the one that they lie over.
        apart = next((packs[rank][use.name] for rank in below if use.name in packs[rank]), None)
        fragments = {part.name for one in files if one.rank in below for part in one.fragments}
        if apart is None and use.name in fragments:
            continue  # it has been put in
        if apart is None:
            help = suggest(use.name, packs[below[-1]].keys() | fragments, "its definitions")
            yield Diagnostic(use.span, f"{use.pack} defines no `{use.name}`", (), help)
        elif use.called in own:
            yield explain_clash(use, use.called in defined)
        else:
            own[use.called] = apart


def _list_calls(item: Item, names: set[str]) -> Iterator[tree.Call]:
    """Where an item calls one of some names that is no variable of it."""
    nodes = list(walk(item))
    variables = {node.name for node in nodes if isinstance(node, tree.Name)}
    yield from (node for node in nodes if isinstance(node, tree.Call) and node.callee in names - variables)


def _make_diagnostic(
    call: tree.Call, owners: Sequence[int], names: Mapping[int, str], file: tree.RuleFile
) -> Diagnostic:
    """What is wrong with a call of what packs of some ranks define: the nearest below is to be named."""
    name, below = call.callee, [rank for rank in owners if rank < file.rank]
    if not below:
        help = f"{names[owners[0]]}, which defines it, does not lie below {file.name}"
        return Diagnostic(call.callee_span, f"there is no function `{name}`", (), help)
    pack = names[below[-1]]
    note = Note("the header is here", file.span)
    help = f"write `use {pack}.{name}` below the header"
    return Diagnostic(call.callee_span, f"`{name}` is a definition of {pack}", (note,), help)

"""Parsed rule files, kept between runs: who changes one file waits for that one alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..base import file_cache
from ..base.errors import Diagnostic
from ..check.checked import CheckedItems, Item, Mentions
from ..check.named_operands import place_operands
from ..dialects.operators import Catalogue
from ..rewrite.families import rename_tree
from ..syntax import tree
from ..syntax.fragments import put_in_used
from ..syntax.local_definitions import lift_definitions
from ..syntax.loops import expand_loops
from ..syntax.tree_traversal import walk
from .serialization import freeze, thaw

#: how many files are kept, the ones used last
MOST_ENTRIES = 512
#: how many catalogues are known at a time that items are checked beside
MOST_CATALOGUES = 8
#: stands between a file and what a fragment of it calls
MARK = ":"


@dataclass(frozen=True, slots=True)
class _CatalogueState:
    """What is known of items beside a catalogue: those without mistakes, and what those that name operands become."""

    catalogue: Catalogue
    sound: CheckedItems
    placed: dict[int, tuple[Item, Item, list[Diagnostic]]]


class Parses:
    """The syntax trees of rule files by their names and texts."""

    def __init__(self, key: str | None = None) -> None:
        """With a key, begin with what was kept under it in earlier runs."""
        self._key = key
        self._frozen: dict[str, bytes] = _fetch(key) if key is not None else {}
        self._found: dict[str, tree.RuleFile] = {}
        self._marked: dict[tuple[int, str], tuple[tree.Fragment, tree.Fragment]] = {}
        self._filled: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[object, tree.RuleFile]] = {}
        #: what their items mention
        self.mentions = Mentions()
        self._named: dict[tuple[int, tuple[tuple[str, str], ...]], Item] = {}
        self._states: dict[int, _CatalogueState] = {}
        self._decided: dict[tuple[int, tuple[str, ...]], tuple[Item, Item]] = {}
        self._bytes: dict[int, tuple[Item, bytes]] = {}

    def parse(self, text: str, name: str) -> tree.RuleFile:
        """The tree of one file, parsed where that was not done before; raises RuleError as `parser.parse` does."""
        digest = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()
        if digest not in self._found:
            frozen = self._frozen.get(digest)
            self._found[digest] = _parse(text, name) if frozen is None else thaw(frozen)
        return self._found[digest]

    def mark_fragment(self, file: tree.RuleFile, fragment: tree.Fragment) -> tree.Fragment:
        """A fragment whose calls of functions say of which file they are, the same whenever it is asked for."""
        key = id(fragment), file.span.file
        if key not in self._marked:  # kept with the fragment, whose identity is nobody else's then
            called = {one.callee for one in walk(fragment) if isinstance(one, tree.Call) and one.callee[0].islower()}
            names = {name: f"{file.span.file}{MARK}{name}" for name in called}
            self._marked[key] = fragment, rename_tree(fragment, names)
        return self._marked[key][1]

    def put_in_used(self, file: tree.RuleFile, text: str, used: Mapping[str, tree.Fragment]) -> tree.RuleFile:
        """A file with the fragments that it uses of other packs, and then written out, the same for the same fragments.

        Raises RuleError where one is misused.
        """
        # Files differ in their ranks from load to load, their items do not.
        key = id(file.items), tuple((name, id(one)) for name, one in used.items())
        if key not in self._filled:  # kept with what it is made of, whose identities are nobody else's then
            made = put_in_used(file, used)
            if file.awaited:
                made = lift_definitions(expand_loops(made, text), text)
            self._filled[key] = (file.items, used), made
        return replace(file, items=self._filled[key][1].items, awaited=())

    def rename_item(self, item: Item, names: Mapping[str, str]) -> Item:
        """An item of one of the files with other names for some definitions, the same whenever it is asked for."""
        own = self.mentions.list_names(item) & names.keys()
        if own:  # an operator that the item calls by a name of its own is no definition
            own -= {one.callee for one in walk(item) if isinstance(one, tree.Call) and one.wildcard}
        if not own:
            return item
        key = id(item), tuple((name, names[name]) for name in sorted(own))
        if key not in self._named:
            made: Item = rename_tree(item, {name: names[name] for name in own})
            if isinstance(made, tree.Definition) and made.name in names:
                made = replace(made, name=names[made.name])
            self._named[key] = made
        return self._named[key]

    def place_operands(
        self, files: Sequence[tree.RuleFile], catalogue: Catalogue
    ) -> tuple[list[tree.RuleFile], list[Diagnostic]]:
        """Files with all operands that are named in their places, and the mistakes made in naming them; of an item the
        same whenever it is asked for, so that it need not be checked again."""
        placed = self._find_state(catalogue).placed
        found, wrong = [], list[Diagnostic]()
        for file in files:
            source, target = catalogue.find_dialect(file.source), catalogue.find_dialect(file.target)
            items = []
            for item in file.items:
                if not self.mentions.has_named_operands(item):
                    items.append(item)
                    continue
                if id(item) not in placed:  # kept with the item, whose identity is nobody else's then
                    placed[id(item)] = item, *place_operands(item, source, target)
                _, made, mistakes = placed[id(item)]
                items.append(made)
                wrong += mistakes
            found.append(replace(file, items=tuple(items)))
        return found, wrong

    def find_checked(self, catalogue: Catalogue) -> CheckedItems:
        """Those of the items that have been checked beside a catalogue."""
        return self._find_state(catalogue).sound

    def _find_state(self, catalogue: Catalogue) -> _CatalogueState:
        if id(catalogue) not in self._states:  # kept with the catalogue, whose identity is nobody else's then
            for oldest in [*self._states][: 1 - MOST_CATALOGUES]:
                del self._states[oldest]
                self._bytes = {}  # those of its items would stay for good
            self._states[id(catalogue)] = _CatalogueState(catalogue, CheckedItems(self.mentions), {})
        return self._states[id(catalogue)]

    def keep_decided(self, item: Item, conditions: tuple[str, ...], made: Item) -> Item:
        """What an item becomes by some conditions, the same whenever it is told of."""
        key = id(item), conditions
        # Kept with the item, whose identity is nobody else's then.
        return self._decided.setdefault(key, (item, made))[1]

    def freeze_item(self, item: Item) -> bytes:
        """The bytes of an item of files whose operands are in their places, made once for all packs that have it."""
        if id(item) not in self._bytes:  # kept with the item, whose identity is nobody else's then
            self._bytes[id(item)] = item, freeze(item)
        return self._bytes[id(item)][1]

    def keep(self) -> None:
        """Keep the trees for the next run."""
        if self._key is None or not (parsed := self._found.keys() - self._frozen.keys()):
            return
        self._frozen |= {digest: freeze(self._found[digest]) for digest in parsed}
        known = {**self._frozen, **_fetch(self._key)}  # others may have kept some meanwhile
        others = {digest: frozen for digest, frozen in known.items() if digest not in self._found}
        used = {digest: self._frozen[digest] for digest in self._found}
        file_cache.keep(self._key, freeze(dict([*others.items(), *used.items()][-MOST_ENTRIES:])))


def _fetch(key: str) -> dict[str, bytes]:
    kept = file_cache.fetch(key)
    return {} if kept is None else dict(thaw(kept))


def _parse(text: str, name: str) -> tree.RuleFile:
    from ..syntax.parser import parse  # lark takes as long to load as trees that are known

    return parse(text, name)

"""Items of rule files that were checked before and need not be again where other packs are laid over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dialects.operators import Catalogue
from ..syntax import tree
from ..syntax.tree_traversal import walk

#: mentioned where there is a choice
_CHOICE = "|"

Item = tree.Rule | tree.Table | tree.Definition


class CheckedItems:
    """Items of rule files that have no mistakes beside certain definitions, and what each of them mentions."""

    def __init__(self) -> None:
        self._catalogue: Catalogue | None = None
        self._definitions: Mapping[str, tree.Definition] = {}
        self._items: dict[int, Item] = {}
        self._mentioned: dict[int, tuple[Item, frozenset[str]]] = {}

    def list_mentioned(self, item: Item) -> frozenset[str]:
        """The names that may be those of definitions, its own among them."""
        if id(item) not in self._mentioned:  # kept with the item, whose identity is nobody else's then
            self._mentioned[id(item)] = item, frozenset(_iterate_mentioned(item))
        return self._mentioned[id(item)][1]

    def has_choice(self, item: Item) -> bool:
        """Whether a choice `a | b` stands in it."""
        return _CHOICE in self.list_mentioned(item)

    def find_sound(self, catalogue: Catalogue, definitions: Mapping[str, tree.Definition]) -> frozenset[int]:
        """The identities of the items that have no mistakes beside these definitions either."""
        if catalogue is not self._catalogue:
            return frozenset()
        names = definitions.keys() | self._definitions.keys()
        others = {name for name in names if definitions.get(name) is not self._definitions.get(name)}
        count = 0
        while count < len(others):  # until no further definition uses one of them
            count = len(others)
            others |= {name for name, one in definitions.items() if not others.isdisjoint(self.list_mentioned(one))}
        return frozenset(key for key, item in self._items.items() if others.isdisjoint(self.list_mentioned(item)))

    def keep(self, catalogue: Catalogue, definitions: Mapping[str, tree.Definition], items: Iterable[Item]) -> None:
        """Record that some items, and no others, have no mistakes beside some definitions."""
        self._catalogue, self._definitions = catalogue, definitions
        self._items = {id(item): item for item in items}


def _iterate_mentioned(item: Item) -> Iterable[str]:
    yield item.name
    for node in walk(item):
        if type(node) is tree.Call:
            yield node.callee
        elif type(node) is tree.Symbol:
            yield node.name
        elif type(node) is tree.Choice:
            yield _CHOICE

"""Items of rule files that were checked before and need not be again where other packs are laid over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..rewrite.outlines import RuleOutlines
from ..syntax import tree
from ..syntax.tree_traversal import walk

#: mentioned where there is a choice, and where an operand is given by its name
_CHOICE, _NAMED = "|", "()"

Item = tree.Rule | tree.Table | tree.Definition


class Mentions:
    """What items of rule files mention, found out once for each."""

    def __init__(self) -> None:
        self._mentioned: dict[int, tuple[Item, frozenset[str]]] = {}

    def list_names(self, item: Item) -> frozenset[str]:
        """The names that may be those of definitions, its own among them."""
        if id(item) not in self._mentioned:  # kept with the item, whose identity is nobody else's then
            self._mentioned[id(item)] = item, frozenset(_iterate_mentioned(item))
        return self._mentioned[id(item)][1]

    def has_choice(self, item: Item) -> bool:
        """Whether a choice `a | b` stands in it."""
        return _CHOICE in self.list_names(item)

    def has_named_operands(self, item: Item) -> bool:
        """Whether an operand is given by its name in it."""
        return _NAMED in self.list_names(item)


class CheckedItems:
    """Items of rule files that have no mistakes beside certain definitions, and what they stand for in outline."""

    def __init__(self, mentions: Mentions | None = None) -> None:
        self._mentions = mentions or Mentions()
        self._definitions: Mapping[str, tree.Definition] = {}
        self._items: dict[int, Item] = {}
        #: what is known in outline of those that have no mistakes
        self.outlines: RuleOutlines = {}

    def find_sound(self, definitions: Mapping[str, tree.Definition]) -> frozenset[int]:
        """The identities of the items that have no mistakes beside these definitions either."""
        names = definitions.keys() | self._definitions.keys()
        others = {name for name in names if definitions.get(name) is not self._definitions.get(name)}
        list_names, count = self._mentions.list_names, 0
        while count < len(others):  # until no further definition uses one of them
            count = len(others)
            others |= {name for name, one in definitions.items() if not others.isdisjoint(list_names(one))}
        return frozenset(key for key, item in self._items.items() if others.isdisjoint(list_names(item)))

    def keep(self, definitions: Mapping[str, tree.Definition], items: Iterable[Item]) -> None:
        """Record that some items have no mistakes beside some definitions, beside those that were sound before."""
        before = self.find_sound(definitions)
        self._definitions = definitions
        self._items = {key: item for key, item in self._items.items() if key in before}
        self.outlines = {key: found for key, found in self.outlines.items() if key in before}
        self._items |= {id(item): item for item in items}


def _iterate_mentioned(item: Item) -> Iterable[str]:
    yield item.name
    for node in walk(item):
        if type(node) is tree.Call:
            yield node.callee
        elif type(node) is tree.Symbol:
            yield node.name
        elif type(node) is tree.Choice:
            yield _CHOICE
        elif type(node) is tree.Argument and node.operand:
            yield _NAMED

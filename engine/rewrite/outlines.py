"""Rules in outline: what is known of them before they are compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..base.startup import dataclass, replace
from ..dialects.operators import Catalogue, Dialect, list_catalogue
from ..syntax import tree
from .conditions import list_conditions
from .families import list_members
from .needs import Need, list_needs
from .pattern import compile_equations, is_deep, iterate_nodes
from .stages import OF_SOURCE

Key = tuple[str, str]
#: rules in outline by the identity of the item that they are of, whose own place and rank count nothing
RuleOutlines = dict[int, tuple["Outline", ...]]


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a rule before it is compiled: where it stands, when it is tried, and at which operators.

    `member` is the position in a table or an `over` family, None for a rule that stands for itself.
    """

    name: str
    stage: str
    roots: tuple[Key, ...]
    order: tuple[int, int, int, int]
    file: int
    item: int
    member: int | None
    #: it covers more than one node
    deep: bool
    #: what its root needs: alternatives
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What rule files hold, by name: rules in outline, and where each definition stands (file and item)."""

    outlines: tuple[Outline, ...]
    definitions: Mapping[str, tuple[int, int]]

    def select(self, skip: Sequence[str], only: Sequence[str]) -> Contents:
        """The same without the rules to `skip`, or with those alone that `only` names.

        A rule that stands for several is named by itself, or one of them as `rule.member`.
        """
        if not skip and not only:
            return self

        def is_named(one: Outline, names: Sequence[str]) -> bool:
            return one.name in names or one.name.partition(".")[0] in names

        kept = (one for one in self.outlines if not is_named(one, skip) and (not only or is_named(one, only)))
        return Contents(tuple(kept), self.definitions)

    def list_names(self) -> set[str]:
        """The names by which rules may be selected."""
        return {name for one in self.outlines for name in (one.name, one.name.partition(".")[0])}


def outline_rules(files: Sequence[tree.RuleFile], catalogue: Catalogue, known: RuleOutlines | None = None) -> Contents:
    """Outline the rules of checked files: of the packs that are laid over each other the last is tried first.

    What is `known` of items beside the same definitions is not found out again, and what is found is added to it.
    """
    known = {} if known is None else known
    outlines: list[Outline] = []
    places = {
        item.name: (number, place)
        for number, file in enumerate(files)
        for place, item in enumerate(file.items)
        if isinstance(item, tree.Definition)
    }
    definitions = {one.name: one for file in files for one in file.items if isinstance(one, tree.Definition)}
    for number, file in enumerate(files):
        for place, item in enumerate(file.items):
            if isinstance(item, tree.Definition):
                continue
            if id(item) not in known:
                known[id(item)] = tuple(_outline_item(item, file, catalogue, definitions))
            for one in known[id(item)]:
                order = (-file.rank, *one.order[1:3], len(outlines))
                outlines.append(replace(one, order=order, file=number, item=place))
    return Contents(tuple(outlines), places)


def _outline_item(
    item: tree.Rule | tree.Table,
    file: tree.RuleFile,
    catalogue: Catalogue,
    definitions: Mapping[str, tree.Definition],
) -> Iterator[Outline]:
    """The rules that an item stands for, each for every stage that it has, as if the item stood alone."""
    source, target = catalogue.find_dialect(file.source), catalogue.find_dialect(file.target)
    for member, rule in list_members(item):
        reads = source if rule.stage in OF_SOURCE else target
        equations = compile_equations(rule.equations, reads, file.opsets[1])
        weight = sum(min(n.compute_weight() for n in iterate_nodes(e.value)) for e in equations)
        roots = tuple(dict.fromkeys(_list_roots(rule.equations[-1].value, reads, file.opsets)))
        deep, needs = is_deep(equations), list_needs(rule, reads, list_conditions(rule.clauses, definitions))
        for stage in (rule.stage, *rule.other_stages):
            yield Outline(rule.name, stage, roots, (0, -rule.priority, -weight, 0), 0, 0, member, deep, needs)


def _list_roots(expression: tree.Expression, reads: Dialect, opsets: tuple[int, int]) -> Iterator[Key]:
    """The operators that a pattern may match at its root, at some of the opsets."""
    if isinstance(expression, tree.Choice):
        yield from _list_roots(expression.left, reads, opsets)
        yield from _list_roots(expression.right, reads, opsets)
    elif isinstance(expression, tree.Call) and expression.wildcard:
        options = {attribute.name for attribute in expression.attributes}
        for opset in opsets:
            known = list_catalogue(reads, opset).values()
            yield from ((spec.domain, spec.name) for spec in known if options <= spec.options.keys())
    elif isinstance(expression, tree.Call):
        named = reads.operators.get(expression.callee)
        yield reads.domain if named is None else named.domain, expression.callee

"""Groups: `w[g] for g in gates` written out, one value `w_input`, `w_forget` and so on for each of several alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.errors import Diagnostic, RuleError
from ..base.startup import replace
from . import tree
from .tree_traversal import rebuild, walk

Groups = Mapping[str, tuple[str, ...]]


def expand_groups(file: tree.RuleFile, text: str) -> tree.RuleFile:
    """A file, read from a text, without groups; raises RuleError for what names none, and no member of one."""
    groups = {group.name: group.members for group in file.groups}
    items = tuple(_expand(item, groups, {}) for item in file.items) if groups else file.items
    for node in walk(items):
        name = _find_group_use(node)
        if name is not None:
            known = f"; there are {', '.join(groups)}" if groups else ": such as `group gates = [input, output]`"
            raise RuleError([Diagnostic(node.span, f"`{name}` is no group, nor in one{known}")], {node.span.file: text})
    return replace(file, items=items)


def _find_group_use(node: Any) -> str | None:
    """The name by which a node asks for a group or a member of one; what is left of them is a mistake."""
    match node:
        case tree.Argument(group=(_, name)):
            return str(name)
        case tree.Target(spread=False, count=name) | tree.Declaration(member=name):
            return name
    return None


def _expand(node: Any, groups: Groups, chosen: Mapping[str, str]) -> Any:
    """A syntax tree with its groups written out; `chosen` are the members that variables stand for."""
    if type(node) is tuple:
        return tuple(one for item in node for one in _repeat(item, groups, chosen))
    match node:
        case tree.Index(tree.Name(name), tree.Name(member), span) if _is_member(member, groups, chosen):
            return tree.Name(f"{name}_{chosen.get(member, member)}", span)
        case tree.Comprehension(item, (variable,), tree.Name(group), None, span) if group in groups:
            items = tuple(_expand(item, groups, {**chosen, variable: member}) for member in groups[group])
            return tree.ListOf(items, span)
    node = rebuild(node, lambda part: _expand(part, groups, chosen))
    match node:
        case tree.Argument(operand=str(operand)):
            return replace(node, operand=_fill(operand, chosen))
        case tree.Target(name, False, _, _, str(member)) if _is_member(member, groups, chosen):
            return replace(node, name=f"{name}_{member}", count=None)
        case tree.Declaration(name, member=str(member)) if _is_member(member, groups, chosen):
            return replace(node, name=f"{name}_{member}", member=None)
    return node


def _repeat(item: Any, groups: Groups, chosen: Mapping[str, str]) -> Iterator[Any]:
    """What stands for one of several operands or values of a test: itself, or one for each member of its group."""
    match item:
        case tree.Argument(group=(variable, group)) if group in groups:
            bare = replace(item, group=None)
            yield from (_expand(bare, groups, {**chosen, variable: member}) for member in groups[group])
        case tree.Declaration(member=str(group)) if group in groups:
            yield from (_expand(replace(item, member=member), groups, chosen) for member in groups[group])
        case _:
            yield _expand(item, groups, chosen)


def _is_member(name: str, groups: Groups, chosen: Mapping[str, str]) -> bool:
    return name in chosen or any(name in members for members in groups.values())


def _fill(operand: str, chosen: Mapping[str, str]) -> str:
    for variable, member in chosen.items():
        operand = operand.replace(f"{{{variable}}}", member)
    return operand

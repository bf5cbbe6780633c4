"""Layers that a run may pass by: what builds them in the constructor, for the extents that their weights tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import onnx_ir as ir

from ...engine.dialects.operators import get_option
from .members import Body, Member
from .printer import write_statement
from .steps import Step
from .templates import fill, make_literal, parse_template

#: extents as far as they are known
Extents = tuple[int | None, ...]


def write_builds(member: Member, body: Body, template: str) -> Iterator[str]:
    """The statements that build a layer, or a chain of these."""
    if not template or member.slot is not None:
        return
    path, steps = f"self.{member.name}", [body.steps[place] for place in member.places]
    whole = find_extents(steps[0])
    layers = [(path, whole)]
    if member.kind == "chain" and whole is None:
        layers = [(f"{path}.layers[{at}]", find_extents(step)) for at, step in enumerate(steps) if step.held]
    for layer, extents in layers:
        if extents is not None:
            names = {"layer": parse_template(layer), "shape": make_literal(extents)}
            yield from write_statement("", fill(parse_template(template), names), 2)


def find_extents(step: Step) -> Extents | None:
    """The extents of what a layer takes: of the operand, and where they are open there as its weights tell them."""
    taken = step.reads[0]
    known = None if taken is None or taken.shape is None else _list_extents(taken.shape)
    built = None if step.spec is None else step.spec.facts.python.built
    if built is None:
        return known if known and known[-1] is not None else None
    told = _compute(parse_template(built), step)
    assert isinstance(told, tuple)
    if known is None:
        return told
    told = (None,) * (len(known) - len(told)) + told
    return tuple(one if other is None else other for one, other in zip(told[-len(known) :], known, strict=True))


def _list_extents(shape: ir.Shape) -> Extents:
    return tuple(extent if isinstance(extent, int) else None for extent in shape)


def _compute(node: ast.expr, step: Step) -> int | Extents | None:
    """What an expression of extents of weights and of options comes to."""
    if isinstance(node, ast.Name) and node.id in step.held:
        tensor = step.held[node.id].const_value
        assert tensor is not None
        return tuple(int(extent) for extent in tensor.shape.numpy())
    if isinstance(node, ast.Name):
        assert step.spec is not None and step.node is not None
        number = get_option(step.node, step.spec.options[node.id])
        return int(number)
    if isinstance(node, ast.Subscript):
        whole = _compute(node.value, step)
        assert isinstance(whole, tuple)
        return whole[int(ast.literal_eval(node.slice))]
    if isinstance(node, ast.BinOp):
        left, right = _compute(node.left, step), _compute(node.right, step)
        assert isinstance(left, int) and isinstance(right, int)
        return left * right
    if isinstance(node, ast.Tuple):
        return tuple(extent for item in node.elts for extent in _spread(item, step))
    found = ast.literal_eval(node)
    assert found is None or isinstance(found, int)
    return found


def _spread(item: ast.expr, step: Step) -> Extents:
    found = _compute(item.value if isinstance(item, ast.Starred) else item, step)
    return found if isinstance(found, tuple) else (found,)

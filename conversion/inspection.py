"""What can be asked of a model that is read or converted: its layouts, a picture, why each permutation is left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx
import onnx_ir as ir

from ..engine.base.provenance import RULE
from ..engine.dialects.operators import Dialect
from .compiled_rules import Prepared, prepare
from .conversion_steps import plan_steps
from .options import DEFAULT, Options
from .subject import read_subject

if TYPE_CHECKING:
    from ..engine.passes.layout.explain import Remaining


def explain(
    model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx", target: str = DEFAULT.runtime
) -> list[Remaining]:
    """Tell of each permutation left in a model what it moves, and which two operators force it, or which rule of the
    target put it in to be quick."""
    return explain_graph(ir.from_proto(model).graph, Options(rules=_make_tuple(rules), target=target))


def explain_graph(graph: ir.Graph, options: Options) -> list[Remaining]:
    """Tell the same of a graph that a conversion with these options has made."""
    from ..engine.passes.layout.explain import explain

    prepared = prepare(options.stacked, None)
    places = [place for node in graph if (place := node.metadata_props.get(RULE)) is not None]
    speeding = find_speeding(prepared, options.runtime, places)
    purposes = {place: f"for speed, by {rule}" for place, rule in speeding.items()}
    return explain(graph, prepared.rules.target, purposes)


def find_sides(graph: ir.Graph, rules: str | Sequence[str] = "tflite2onnx") -> dict[ir.Node, str]:
    """Tell in which layout each node of a converted graph runs."""
    from ..engine.passes.layout.drawing import find_sides

    return find_sides(graph, _find_target(rules))


def draw_picture(model: onnx.ModelProto, rules: str | Sequence[str] = "tflite2onnx") -> str:
    """Draw a model as SVG, in two colours for the two layouts."""
    from ..engine.passes.layout.drawing import draw_svg

    return draw_svg(model, _find_target(rules))


def _find_target(rules: str | Sequence[str]) -> Dialect:
    return prepare(_make_tuple(rules), None).rules.target


def _make_tuple(rules: str | Sequence[str]) -> tuple[str, ...]:
    return (rules,) if isinstance(rules, str) else tuple(rules)


def find_speeding(prepared: Prepared, target: str, places: Sequence[str]) -> Mapping[str, str]:
    """Of rules by their places, those that a target has to be quick and that put in permutations, with their names."""
    if not places:
        return {}
    from .target import find_introducing

    dialect = prepared.rules.target
    return find_introducing(target, prepared.pack.files, dialect.find_role("permute").name, places)


def read_graph(
    source: str | os.PathLike[str], options: Options = DEFAULT, member: str | None = None, signature: str | None = None
) -> ir.Graph:
    """Read the graph that a conversion would begin with; raises what `rewrite` raises for what cannot be read."""
    path, options = os.fspath(source), options.replace(member=member, signature=signature)
    steps = plan_steps(path, options)
    return read_subject(path, options, prepare(steps[0].stacked, None).pack).graph

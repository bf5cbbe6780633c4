"""A model as a picture: its operators in two colours for the two layouts, the cut between them drawn."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from ..operators import Dialect
from .drawing import draw
from .region import IMPLICIT
from .tensors import Tensors

#: fills of what runs in the target's layout, in the source's, in both alike, and of the cut itself
_TARGET, _SOURCE, _EITHER, _CUT = "#cfe8ff", "#ffe1b8", "#eeeeee", "#e03131"


@dataclass(frozen=True, slots=True)
class Box:
    """One operator, input or output of the picture."""

    label: str
    fill: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, and arrows between them by their positions with what is written on each."""

    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int, str]]


def picture(model: onnx.ModelProto, dialect: Dialect) -> Picture:
    """The operators of a model, coloured by the layout that they run in."""
    graph = ir.from_proto(model).graph
    tensors = Tensors(graph, dialect, graph.opset_imports.get(dialect.domain, 0))
    colours = _colours(tensors)
    boxes: list[Box] = []
    number: dict[ir.Value, int] = {}
    arrows: list[tuple[int, int, str]] = []
    for value in graph.inputs:
        number[value] = len(boxes)
        boxes.append(Box(f"{value.name}", _SOURCE))
    for node in graph:
        perm = tensors.permutation(node)
        label = node.op_type if perm is None else f"{node.op_type} {', '.join(map(str, perm))}"
        at = len(boxes)
        boxes.append(Box(label, _CUT if perm is not None else colours.get(node, _EITHER), perm is not None))
        number.update((output, at) for output in node.outputs)
        arrows += [(number[v], at, _written(v)) for v in node.inputs if v is not None and v in number]
    for value in graph.outputs:
        if value in number:
            arrows.append((number[value], len(boxes), _written(value)))
            boxes.append(Box(f"{value.name}", _SOURCE))
    return Picture(boxes, arrows)


def svg(model: onnx.ModelProto, dialect: Dialect) -> str:
    """The picture as SVG, laid out by Graphviz where its program `dot` is installed."""
    found = picture(model, dialect)
    program = shutil.which("dot")
    if program is None:
        return draw([(b.label, b.fill, b.cut) for b in found.boxes], found.arrows)
    done = subprocess.run([program, "-Tsvg"], input=dot(found), capture_output=True, text=True, check=True)
    return done.stdout


def dot(found: Picture) -> str:
    """The picture in Graphviz's language."""
    lines = ["digraph {", '  node [shape=box style="filled,rounded" fontname=sans fontsize=10 height=0.3]']
    for number, box in enumerate(found.boxes):
        look = " fontcolor=white penwidth=2" if box.cut else ""
        lines.append(f"  {number} [label={_quoted(box.label)} fillcolor={_quoted(box.fill)}{look}]")
    for tail, head, text in found.arrows:
        look = f" color={_quoted(_CUT)} style=dashed" if found.boxes[tail].cut or found.boxes[head].cut else ""
        lines.append(f"  {tail} -> {head} [label={_quoted(text)} fontname=sans fontsize=8{look}]")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(value: ir.Value) -> str:
    return "" if value.shape is None else "x".join(str(extent) for extent in value.shape)


def _colours(tensors: Tensors) -> dict[ir.Node, str]:
    """Operators joined without a permutation run in one layout: the target's where one of them has its own."""
    colours: dict[ir.Node, str] = {}
    for start in tensors.graph:
        if start in colours or tensors.permutation(start) is not None:
            continue
        reached, pending = {start: None}, [start]
        while pending:
            for node in _joined(tensors, pending.pop()):
                if node not in reached:
                    reached[node] = None
                    pending.append(node)
        implicit = any(_implicit(tensors, node) for node in reached)
        meets = any(tensors.permutation(n) is not None for node in reached for n in _neighbours(node))
        colours.update(dict.fromkeys(reached, _TARGET if implicit else _SOURCE if meets else _EITHER))
    return colours


def _joined(tensors: Tensors, node: ir.Node) -> Iterator[ir.Node]:
    """Neighbours that share the layout: one of the two lets it through."""
    for other in _neighbours(node):
        if tensors.permutation(other) is None and (_passes(tensors, node) or _passes(tensors, other)):
            yield other


def _passes(tensors: Tensors, node: ir.Node) -> bool:
    return tensors.blocks(node) is not None or _implicit(tensors, node)


def _implicit(tensors: Tensors, node: ir.Node) -> bool:
    spec = tensors.spec(node)
    return spec is not None and spec.facts.get("layout") == IMPLICIT


def _neighbours(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.inputs:
        producer = value.producer() if value is not None else None
        if producer is not None:
            yield producer
    for output in node.outputs:
        yield from (usage.node for usage in output.uses())

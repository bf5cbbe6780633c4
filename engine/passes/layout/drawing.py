"""A model as a picture: its operators in two colours for the two layouts, the cut between them drawn."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from ...base.provenance import SOURCE
from ...base.startup import dataclass
from ...dialects.inference import read_extents
from ...dialects.operators import Dialect
from .graph_drawing import CUT, Box, draw
from .order import count_elements
from .permute_weights import Tensors
from .problem import IMPLICIT

#: fills of what runs in the target's layout, in the source's, and in both alike
_TARGET, _SOURCE, _EITHER = "#cfe8ff", "#ffe1b8", "#eeeeee"


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, arrows between them by their positions, and what the fills mean."""

    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]
    legend: Sequence[Box]


def draw_picture(model: onnx.ModelProto, dialect: Dialect) -> Picture:
    """The operators of a model that compute with its inputs, coloured by the layout that they run in."""
    graph = ir.from_proto(model).graph
    tensors = Tensors(graph, dialect, graph.opset_imports.get(dialect.domain, 0))
    colours = _choose_colours(tensors)
    boxes: list[Box] = []
    number: dict[ir.Value, int] = {}
    arrows: list[tuple[int, int]] = []
    moved = 0
    for value in graph.inputs:
        number[value] = len(boxes)
        boxes.append(Box(f"{value.name}", _format_extents(value), f"input {value.name}", _SOURCE))
    for node in graph:
        if not any(value in number for value in node.inputs):
            continue  # it computes with constants alone
        perm = tensors.read_permutation(node)
        note = _format_extents(node.outputs[0]) if node.outputs else ""
        about = f"{node.op_type} {node.name}, from {node.metadata_props.get(SOURCE, '?')}"
        at = len(boxes)
        if perm is None:
            boxes.append(Box(node.op_type, note, about, colours.get(node, _EITHER)))
        else:
            shape = read_extents(node.outputs[0]) or ()
            moved += count_elements(shape)
            label = f"{node.op_type} {' '.join(map(str, perm))}"
            boxes.append(Box(label, f"moves {count_elements(shape):,} elements", about, CUT, cut=True))
        number.update((output, at) for output in node.outputs)
        arrows += dict.fromkeys((number[v], at) for v in node.inputs if v is not None and v in number)
    for value in graph.outputs:
        if value in number:
            arrows.append((number[value], len(boxes)))
            boxes.append(Box(f"{value.name}", _format_extents(value), f"output {value.name}", _SOURCE))
    count = sum(box.cut for box in boxes)
    legend = (
        Box("in the target's layout", "channels first", "", _TARGET),
        Box("in the source's layout", "or another one", "", _SOURCE),
        Box("on no side", "nothing to move", "", _EITHER),
        Box(f"the cut: {count} permutation{'' if count == 1 else 's'}", f"{moved:,} elements", "", CUT, cut=True),
    )
    return Picture(boxes, arrows, legend)


def find_sides(graph: ir.Graph, dialect: Dialect) -> dict[ir.Node, str]:
    """The layout that each node runs in: `target`, `source`, `either`, or `cut` for a permutation between them."""
    tensors = Tensors(graph, dialect, graph.opset_imports.get(dialect.domain, 0))
    words = {_TARGET: "target", _SOURCE: "source", _EITHER: "either"}
    sides = {node: words[colour] for node, colour in _choose_colours(tensors).items()}
    return sides | {node: "cut" for node in graph if tensors.read_permutation(node) is not None}


def draw_svg(model: onnx.ModelProto, dialect: Dialect) -> str:
    """The picture as SVG, laid out by Graphviz where its program `dot` is installed."""
    found = draw_picture(model, dialect)
    program = shutil.which("dot")
    if program is None:
        return draw(found.boxes, found.arrows, found.legend)
    done = subprocess.run([program, "-Tsvg"], input=write_dot(found), capture_output=True, text=True, check=True)
    return done.stdout


def write_dot(found: Picture) -> str:
    """The picture in Graphviz's language."""
    lines = ["digraph {", '  node [shape=box style="filled,rounded" fontname=sans fontsize=10 height=0.3]']
    lines.append("  subgraph cluster_legend { label=legend fontname=sans fontsize=10")
    lines += [f"    l{number} [{_format_style(box)}]" for number, box in enumerate(found.legend)]
    lines.append("  }")
    lines += [f"  {number} [{_format_style(box)}]" for number, box in enumerate(found.boxes)]
    for tail, head in found.arrows:
        cut = found.boxes[tail].cut or found.boxes[head].cut
        lines.append(f"  {tail} -> {head}" + (f" [color={_quote(CUT)} style=dashed]" if cut else ""))
    return "\n".join([*lines, "}"]) + "\n"


def _format_style(box: Box) -> str:
    label = _quote(box.label + (f"\n{box.note}" if box.note else "")).replace("\n", "\\n")
    white = " fontcolor=white penwidth=2" if box.cut else ""
    return f"label={label} tooltip={_quote(box.about)} fillcolor={_quote(box.fill)}{white}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _format_extents(value: ir.Value) -> str:
    shape = read_extents(value)
    return "" if shape is None else " x ".join("?" if extent is None else str(extent) for extent in shape)


def _choose_colours(tensors: Tensors) -> dict[ir.Node, str]:
    """Operators joined without a permutation run in one layout: the target's where one of them has its own."""
    colours: dict[ir.Node, str] = {}
    for start in tensors.graph:
        if start in colours or tensors.read_permutation(start) is not None:
            continue
        reached, pending = {start: None}, [start]
        while pending:
            for node in _list_joined(tensors, pending.pop()):
                if node not in reached:
                    reached[node] = None
                    pending.append(node)
        implicit = any(_is_implicit(tensors, node) for node in reached)
        meets = any(tensors.read_permutation(n) is not None for node in reached for n in _iterate_neighbours(node))
        colours.update(dict.fromkeys(reached, _TARGET if implicit else _SOURCE if meets else _EITHER))
    return colours


def _list_joined(tensors: Tensors, node: ir.Node) -> Iterator[ir.Node]:
    """Neighbours that share the layout: one of the two lets it through."""
    for other in _iterate_neighbours(node):
        if tensors.read_permutation(other) is None and (_can_pass(tensors, node) or _can_pass(tensors, other)):
            yield other


def _can_pass(tensors: Tensors, node: ir.Node) -> bool:
    return tensors.find_blocks(node) is not None or _is_implicit(tensors, node)


def _is_implicit(tensors: Tensors, node: ir.Node) -> bool:
    spec = tensors.find_spec(node)
    return spec is not None and spec.facts.layout == IMPLICIT


def _iterate_neighbours(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.inputs:
        producer = value.producer() if value is not None else None
        if producer is not None:
            yield producer
    for output in node.outputs:
        yield from (usage.node for usage in output.uses())

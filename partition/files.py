"""Parts as files: a model for each step, the host's model with the parts as nodes, and the manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..engine.base.atomic_write import replacing
from ..engine.base.errors import RewriteError
from ..engine.base.startup import dataclass
from .capability import list_constants, list_read
from .model_files import SUFFIXES, ModelFiles
from .plan import Plan, Step
from .plan_drawing import draw_plan
from .units import count_bytes

#: the names of the files, that of the host's model without the ending of its format
MANIFEST, HOST, PICTURE = "manifest.json", "host", "partition.svg"


@dataclass(frozen=True, slots=True)
class Piece:
    """The nodes of a step as a graph of their own: what they read and yield beyond it, and their constants."""

    name: str
    step: Step
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    constants: tuple[ir.Value, ...]


def write(folder: Path, model: ir.Model, files: ModelFiles, plan: Plan, about: dict[str, Any]) -> dict[str, Any]:
    """Write the files of a plan to a folder, which is made where it is missing; the manifest.

    `about` stands in the manifest as it is. Raises RewriteError for a tensor between steps whose element type is not
    known, DestinationError for what the system refuses.
    """
    graph = model.graph
    pieces = _cut(graph, plan)
    for piece in pieces:
        for value in (*piece.inputs, *piece.outputs):
            if value.dtype is None:
                raise RewriteError(f"{value.name}: its element type is not known, so that it cannot leave {piece.name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RewriteError(f"{folder}: {error.strerror}") from error
    steps = []
    for piece in pieces:
        file = f"{piece.name}{files.suffix}"
        view = _view(graph, piece.inputs, piece.outputs, piece.step.nodes, piece.constants, piece.name)
        files.save(folder / file, view, model)
        steps.append(_describe(piece, file, plan))
    host = f"{HOST}{files.suffix}"
    _write_host(folder / host, model, files, pieces)
    _remove_former(folder, {host, *(step["file"] for step in steps)})
    manifest = {
        **about,
        "inputs": [_about(value) for value in graph.inputs if value.const_value is None],
        "outputs": [_about(value) for value in graph.outputs],
        "parts": len(plan.parts),
        "bytes_moved": plan.moved,
        "host_model": host,
        "steps": steps,
    }
    with replacing(folder / PICTURE) as out:
        out.write(draw_plan(graph, plan).encode())
    with replacing(folder / MANIFEST) as out:
        out.write((json.dumps(manifest, indent=2) + "\n").encode())
    return manifest


def _remove_former(folder: Path, written: set[str]) -> None:
    """Remove the steps of the partition that was in the folder before, as its manifest names them."""
    try:
        former = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {Path(name).name for name in (former["host_model"], *(step["file"] for step in former["steps"]))}
    except (OSError, ValueError, KeyError, TypeError):
        return  # there is no manifest, or none of ours
    for file in files - written:
        if Path(file).suffix in SUFFIXES:
            (folder / file).unlink(missing_ok=True)


def _cut(graph: ir.Graph, plan: Plan) -> list[Piece]:
    ends = set(graph.outputs)
    readers: dict[ir.Value, set[int]] = {}
    for number, step in enumerate(plan.steps):
        for node in step.nodes:
            for value in list_read(node):
                readers.setdefault(value, set()).add(number)
    pieces = []
    for number, step in enumerate(plan.steps):
        made = {output for node in step.nodes for output in node.outputs}
        read = dict.fromkeys(value for node in step.nodes for value in list_read(node) if value not in made)
        left = [
            output
            for node in step.nodes
            for output in node.outputs
            if output in ends or readers.get(output, set()) - {number}
        ]
        constants = dict.fromkeys(value for node in step.nodes for value in list_constants(node))
        pieces.append(Piece(step.part or f"host_{number}", step, tuple(read), tuple(left), tuple(constants)))
    given = dict.fromkeys(value for value in graph.outputs if value.const_value is not None)
    if fixed := tuple(value for value in given if not value.is_graph_input()):
        pieces.append(Piece(f"host_{len(pieces)}", Step("", ()), (), fixed, fixed))
    return pieces


def _view(
    graph: ir.Graph,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    nodes: Sequence[ir.Node],
    constants: Sequence[ir.Value],
    name: str,
) -> ir.GraphView:
    imports = dict(graph.opset_imports)
    for node in nodes:
        imports.setdefault(node.domain, node.version or 1)
    return ir.GraphView(inputs, outputs, nodes=nodes, initializers=constants, opset_imports=imports, name=name)


def _write_host(path: Path, model: ir.Model, files: ModelFiles, pieces: Sequence[Piece]) -> None:
    """The host's nodes with one node for each part, in an order in which all can run."""
    graph = model.graph
    nodes: list[ir.Node] = []
    constants: dict[ir.Value, None] = {}
    made: dict[ir.Value, ir.Value] = {}
    for piece in pieces:
        if not piece.step.part:
            nodes += piece.step.nodes
            constants.update(dict.fromkeys(piece.constants))
            continue
        call = ir.Node(
            files.domain, piece.name, piece.inputs, num_outputs=len(piece.outputs), name=piece.name, version=1
        )
        for output, value in zip(call.outputs, piece.outputs, strict=True):
            output.name, output.type, output.shape = value.name, value.type, value.shape
            output.meta.update(value.meta)
            made[value] = output
        nodes.append(call)
    outputs = [made.get(value, value) for value in graph.outputs]
    # What the host reads of a part is what the node in its place yields, for as long as the file is written.
    read = [
        (node, place, value)
        for node in nodes
        for place, value in enumerate(node.inputs)
        if value is not None and value in made
    ]
    for node, place, value in read:
        node.replace_input_with(place, made[value])
    try:
        files.save(path, _view(graph, list(graph.inputs), outputs, nodes, tuple(constants), HOST), model)
    finally:
        for node, place, value in read:
            node.replace_input_with(place, value)
        for node in nodes:
            if node.domain == files.domain and node.graph is None:
                for place in range(len(node.inputs)):
                    node.replace_input_with(place, None)


def _describe(piece: Piece, file: str, plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": piece.name,
        "on": "device" if piece.step.part else "host",
        "file": file,
        "nodes": len(piece.step.nodes),
        "inputs": [_about(value) for value in piece.inputs],
        "outputs": [_about(value) for value in piece.outputs],
    }
    if not piece.step.part:
        found["reasons"] = [
            {"node": node.name or node.outputs[0].name, "operator": node.op_type, "reason": plan.reasons[node]}
            for node in piece.step.nodes
        ]
    return found


def _about(value: ir.Value) -> dict[str, Any]:
    shape = None if value.shape is None else [n if isinstance(n, int) else n.value for n in value.shape]
    dtype = None if value.dtype is None else value.dtype.name.lower()
    return {"name": value.name, "type": dtype, "shape": shape, "bytes": count_bytes(value)}

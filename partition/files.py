"""Parts as files: a model for each step, the host's model with the parts as nodes, and the manifest."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..engine.base.atomic_write import open_folder, open_replacement, remove
from ..engine.base.errors import RewriteError
from ..engine.base.regular_files import read_text
from .bodies import list_bodies
from .host_model import write_host
from .model_files import SUFFIXES, ModelFiles
from .pieces import Piece, cut_graph, view_graph
from .plan import Plan
from .plan_drawing import draw_plan
from .units import count_bytes

#: the names of the files, that of the host's model without the ending of its format
MANIFEST, HOST, PICTURE = "manifest.json", "host", "partition.svg"


def write(
    folder: Path,
    model: ir.Model,
    files: ModelFiles,
    plans: Mapping[ir.Graph, Plan],
    about: dict[str, Any],
    functions: bool = False,
    finish: Callable[[Path], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Write the files of a plan to a folder, which is made where it is missing; the manifest.

    `plans` has the plan of the model's graph and those of bodies; `about` stands in the manifest as it is. With
    `functions` the parts are functions of the host's model. `finish` may change the file of each part in its place, and
    tells what the manifest is to say of that. Raises RewriteError for a tensor between steps whose
    element type is not known, DestinationError for what the system refuses.
    """
    graph = model.graph
    pieces = {each: cut_graph(each, divided) for each, divided in plans.items()}
    written = [piece for each in pieces for piece in pieces[each] if each is graph or piece.step.part]
    for piece in written:
        for value in (*piece.inputs, *piece.outputs):
            if value.dtype is None:
                raise RewriteError(
                    f"{value.name}: its element type is not known, so that it cannot leave {piece.name};"
                    " `rewrite --rules onnx2onnx --rules standard` writes operators of other domains in those of ONNX"
                )
    former = _list_former(folder)
    with open_folder(folder, MANIFEST) as part:
        told = _save_pieces(part, model, files, written, finish)
        write_host(part / f"{HOST}{files.suffix}", model, files, plans, HOST, functions)
        manifest = _make_manifest(model, files, plans, about, pieces)
        for step in _list_steps(manifest):
            step.update(told.get(step["name"], {}))
        with open_replacement(part / PICTURE) as out:
            out.write(draw_plan(graph, plans[graph]).encode())
        with open_replacement(part / MANIFEST) as out:
            out.write((json.dumps(manifest, indent=2) + "\n").encode())
    for file in former - {*_list_models(manifest)}:
        remove(folder / file)
    return manifest


def _save_pieces(
    folder: Path,
    model: ir.Model,
    files: ModelFiles,
    pieces: Sequence[Piece],
    finish: Callable[[Path], Mapping[str, Any]] | None,
) -> dict[str, Mapping[str, Any]]:
    """Write each piece as a model; what `finish` tells of the parts among them, by name."""
    told: dict[str, Mapping[str, Any]] = {}
    for piece in pieces:
        path = folder / f"{piece.name}{files.suffix}"
        nodes = view_graph(
            model.graph.opset_imports, piece.inputs, piece.outputs, piece.step.nodes, piece.constants, piece.name
        )
        files.save(path, nodes, model)
        if piece.step.part and finish is not None:
            told[piece.name] = finish(path)
    return told


def _make_manifest(
    model: ir.Model,
    files: ModelFiles,
    plans: Mapping[ir.Graph, Plan],
    about: Mapping[str, Any],
    pieces: Mapping[ir.Graph, Sequence[Piece]],
) -> dict[str, Any]:
    """What is told of a divided model: its interface, its steps, and the bodies that were divided."""
    graph, plan = model.graph, plans[model.graph]
    users: dict[ir.Graph, list[ir.Node]] = {each: [] for each in plans}
    for node in itertools.chain.from_iterable(plans):
        for body in list_bodies(node, files.dialect, model):
            users.setdefault(body, []).append(node)
    return {
        **about,
        "inputs": [_describe_value(value) for value in graph.inputs if value.const_value is None],
        "outputs": [_describe_value(value) for value in graph.outputs],
        "parts": len(plan.parts),
        "bytes_moved": plan.moved,
        "host_model": f"{HOST}{files.suffix}",
        "steps": [_describe(piece, files, plan) for piece in pieces[graph]],
        "bodies": [
            _describe_body(each, users[each], files, plans[each], pieces[each]) for each in plans if each is not graph
        ],
    }


def list_files(folder: Path, files: ModelFiles, plans: Mapping[ir.Graph, Plan]) -> list[Path]:
    """The files that `write` puts into a folder, and those of the partition there before, which it removes."""
    pieces = [piece.name for graph, plan in plans.items() for piece in cut_graph(graph, plan)]
    names = {*(f"{name}{files.suffix}" for name in (HOST, *pieces)), *_list_former(folder)}
    beside = [path for name in sorted(names) for path in files.list_files(folder / name)]
    return [folder / MANIFEST, folder / PICTURE, *beside]


def _list_models(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The models that a manifest names."""
    yield manifest["host_model"]
    for step in _list_steps(manifest):
        yield Path(step["file"]).name


def _list_steps(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a manifest says of each step, and of each part of a body."""
    return [*manifest["steps"], *(part for body in manifest.get("bodies", ()) for part in body["parts"])]


def _list_former(folder: Path) -> set[str]:
    """The models of the partition that is in a folder, as its manifest names them."""
    try:
        former = json.loads(read_text(folder / MANIFEST))
        names = {Path(name).name for name in _list_models(former)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()  # there is no manifest, or none of ours
    return {name for name in names if Path(name).suffix in SUFFIXES}


def _describe_body(
    graph: ir.Graph, users: Sequence[ir.Node], files: ModelFiles, plan: Plan, pieces: Sequence[Piece]
) -> dict[str, Any]:
    """A body that was divided: the nodes that have it, its parts, and why its other nodes are on the host."""
    return {
        "graph": graph.name,
        "nodes": [_name_node(node) for node in users],
        "bytes_moved": plan.moved,
        "parts": [_describe(piece, files, plan) for piece in pieces if piece.step.part],
        "reasons": [reason for piece in pieces if not piece.step.part for reason in _explain(piece, plan)],
    }


def _describe(piece: Piece, files: ModelFiles, plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": piece.name,
        "on": "device" if piece.step.part else "host",
        "file": f"{piece.name}{files.suffix}",
        "nodes": len(piece.step.nodes),
        "inputs": [_describe_value(value) for value in piece.inputs],
        "outputs": [_describe_value(value) for value in piece.outputs],
    }
    if not piece.step.part:
        found["reasons"] = _explain(piece, plan)
    return found


def _explain(piece: Piece, plan: Plan) -> list[dict[str, str]]:
    """Why each node of a step is on the host."""
    return [
        {"node": _name_node(node), "operator": node.op_type, "reason": plan.reasons[node]} for node in piece.step.nodes
    ]


def _name_node(node: ir.Node) -> str:
    return node.name or next((output.name or "" for output in node.outputs), "")


def _describe_value(value: ir.Value) -> dict[str, Any]:
    shape = None if value.shape is None else [n if isinstance(n, int) else n.value for n in value.shape]
    dtype = None if value.dtype is None else value.dtype.name.lower()
    return {"name": value.name, "type": dtype, "shape": shape, "bytes": count_bytes(value)}

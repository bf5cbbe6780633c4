"""Shapes of what a loop carries: those of the values that it begins with, where its body keeps them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from ..base.errors import ModelError
from ..dialects.inference import Extents, InferenceError, intersect, make_shape, merge, read_extents
from ..dialects.operators import OperatorSpec
from .base import Module, copy_graph, insert_first

#: how often shapes are assumed anew, each time of fewer extents or values, before nothing is; and how deep in others
#: the loop may be, as what is assumed of one is assumed anew for each trial of those around it
_ROUNDS, _DEPTH = 4, 2
#: the key of `meta` of a node under which stand the shapes that it began with when that was tried
_TRIED = "nnrewrite.carried"

#: infers what follows in a graph
Infer = Callable[[Module], None]


def settle_parameters(node: ir.Node, spec: OperatorSpec, module: Module, infer: Infer) -> None:
    """Let what the body of a loop is given have the shapes of what it begins with, where the body yields the same.

    Exporters leave them out, or say those of the first turn. What is assumed is tried on a copy of the body, as
    inference folds what it can.
    """
    for option, kinds in spec.facts.parameters.items():
        body, initial = node.attributes[option].as_graph(), node.inputs[len(kinds) :]
        parameters, results = body.inputs[len(kinds) :], body.outputs[kinds.count("bool") :]
        carried = enumerate(zip(initial, parameters, results, strict=False))
        assumed = {
            place: extents
            for place, (value, own, result) in carried
            if value is not None and _is_doubtful(own, result) and (extents := read_extents(value)) is not None
        }
        tried = [*assumed.items()]
        if not assumed or node.meta.get(_TRIED) == tried:
            continue
        node.meta[_TRIED] = tried
        kept = {} if module.depth > _DEPTH else _find_kept(body, kinds, assumed, module, infer)
        for place in assumed:
            parameters[place].shape = make_shape(kept[place]) if place in kept else None


def _is_doubtful(parameter: ir.Value, result: ir.Value) -> bool:
    """Whether a body is not said to yield what has the shape of its parameter, or nothing says that."""
    known = read_extents(parameter)
    return known is None or known != read_extents(result)


def settle_counters(node: ir.Node, spec: OperatorSpec, module: Module) -> None:
    """Let what tells the body of a loop its turn and whether it goes on be scalars, as the standard has it.

    Some exporters, tf2onnx among them, give these an axis, and runtimes go by that.
    """
    if module.source is module.target:
        return
    for option, kinds in spec.facts.parameters.items():
        body = node.attributes[option].as_graph()
        for place, own in enumerate(body.inputs[: len(kinds)]):
            if len(read_extents(own) or ()) == 1:
                body.inputs[place] = _give_axis(own, module.enter_body(body))


def _give_axis(parameter: ir.Value, module: Module) -> ir.Value:
    """A scalar that is reshaped at the beginning of a body to what a parameter was."""
    reshape = module.source.find_role("reshape")
    to = module.names.register(module.names.make_constant(np.array([1], np.int64), f"{parameter.name}/shape"))
    names = [module.names.make_name(f"{parameter.name}/{part}") for part in ("scalar", "vector")]
    scalar = ir.Value(name=names[0], type=parameter.type, shape=ir.Shape(()))
    vector = ir.Value(name=names[1], type=parameter.type, shape=ir.Shape((1,)))
    made = ir.Node(reshape.domain, reshape.name, [scalar, to], outputs=[vector], name=vector.name)
    ir.convenience.replace_all_uses_with(parameter, vector, replace_graph_outputs=True)
    insert_first(module.graph, [made])
    return scalar


def settle_results(node: ir.Node, spec: OperatorSpec) -> None:
    """Let the results of a loop have the extents of what its body yields: what is carried, and rows of what is not.

    Exporters leave them out, or give each a name of its own.
    """
    for option, kinds in spec.facts.parameters.items():
        body = node.attributes[option].as_graph()
        carried = len(node.inputs) - len(kinds)
        for place, (result, value) in enumerate(zip(node.outputs, body.outputs[kinds.count("bool") :], strict=False)):
            extents, found = read_extents(value), None
            if extents is not None and place >= carried:
                found = (None, *extents)
            elif extents is not None and (first := node.inputs[len(kinds) + place]) is not None:
                before = read_extents(first)
                found = intersect(before, extents) if before is not None and len(before) == len(extents) else None
            if found is not None:
                with contextlib.suppress(InferenceError):  # what the file says is found out again where it is read
                    result.shape = make_shape(merge(found, read_extents(result)) or found)


def _find_kept(
    body: ir.Graph, kinds: Sequence[str], assumed: dict[int, Extents], module: Module, infer: Infer
) -> dict[int, Extents]:
    """Those of some shapes of parameters, by their places, that the results in the same places have again."""
    for _ in range(_ROUNDS):
        if not assumed:
            break
        with copy_graph(module.enter_body(body), body) as trial:
            for place, extents in assumed.items():
                trial.graph.inputs[len(kinds) + place].shape = make_shape(extents)
            try:
                infer(trial)
            except ModelError:
                return {}
            found = [read_extents(value) for value in trial.graph.outputs[kinds.count("bool") :]]
        kept = {
            place: intersect(extents, after)
            for place, extents in assumed.items()
            if (after := found[place]) is not None and len(after) == len(extents)
        }
        if kept == assumed:
            return kept
        assumed = kept
    return {}

"""What classes are called: by what the source says of modules, or by what they mostly are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from .blocks import share_scope
from .identifiers import make_class_name, make_snake
from .steps import Block, Step, share_prefix
from .templates import name_call

#: names that exporters give every graph
_USUAL = ("main", "maingraph", "torchjit", "torchjitexport", "torch", "graph", "model", "tf2onnx", "tfmodel", "g")


def name_model(graph: ir.Graph) -> str:
    """The class of the whole graph: its name, where that says something."""
    name = make_class_name(graph.name or "")
    return name if name and name.lower() not in _USUAL and name[0].isalpha() else "Model"


def name_block(block: Block, sequential: str) -> str:
    """The class that the source says, or the name of the scope that a block stands for; where there is none, of what it
    mostly is."""
    scopes = [share_scope(one) for one in block.instances]
    kinds = {step.classes.get(scope) for one, scope in zip(block.instances, scopes, strict=True) for step in one}
    kinds -= {None, name_call(sequential)}
    if len(kinds) == 1 and all(scopes):
        return make_class_name(str(*kinds))
    called = {step.spec.facts.python.called for step in block.steps if step.layer and step.spec is not None}
    if not all(scopes):
        scopes = [share_prefix(list(_list_paths(one))) for one in block.instances]
    if all(any(part.isdigit() for part in scope) or (scope[-1:] and scope[-1][-1].isdigit()) for scope in scopes):
        words = {next((part for part in reversed(scope) if not part.isdigit()), "") for scope in scopes}
        words = {make_snake(word).rstrip("0123456789_") for word in words}
        if len(words) == 1 and len(word := words.pop()) > 2 and word not in (*called, *_USUAL):
            return make_class_name(_make_singular(word))
    return "ConvBlock" if "conv" in called else "LinearBlock" if "linear" in called else "Block"


def _make_singular(word: str) -> str:
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word.removesuffix("es")
    return word.removesuffix("s") if len(word) > 3 else word


def list_parts(block: Block) -> Iterator[str]:
    """The modules of the source right below that of a block in which it has steps, as far as these have names."""
    for instance in block.instances:
        length = len(share_scope(instance))
        yield from (one.scope[length] for one in instance if len(one.scope) > length and one.scope[length].isalpha())


def _list_paths(steps: Sequence[Step]) -> Iterator[list[str]]:
    for step in steps:
        yield from _list_paths(step.inner)
        for value in step.held.values():
            path = (value.name or "").split(".")
            if len(path) > 2:
                yield path[:-2]

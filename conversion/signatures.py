"""Signatures: the named ways to call a model, of which a conversion takes one."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence

import onnx_ir as ir

from ..engine.base.errors import CallError
from ..frontends.tflite_reader import Signature

#: the signature that is meant where none is named, and the word for all of them, each in a file of its own
DEFAULT, ALL = "serving_default", "all"
#: the prefix of the metadata that tells what the source calls an input or output that has its name from a signature
NAME = "nnrewrite.name"


def list_keys(model: ir.Model) -> list[str]:
    """The names of a model's signatures, in its own order."""
    return [signature.key for signature in model.meta["signatures"]]


def choose(model: ir.Model, key: str | None) -> Signature | None:
    """The signature of a model that is asked for: where none is, `serving_default` or the only one.

    None where the model has no signature, or several and none is asked for: then its first graph is meant.
    Raises CallError for a signature that the model has not got.
    """
    known: Mapping[str, Signature] = {signature.key: signature for signature in model.meta["signatures"]}
    if key is None:
        return known.get(DEFAULT) or (next(iter(known.values())) if len(known) == 1 else None)
    if key not in known:
        there = f"its signatures are {', '.join(known)}" if known else "it has none"
        raise CallError(f"the model has no signature {key}, {there}")
    return known[key]


def list_remarks(model: ir.Model, signature: Signature | None) -> tuple[str, ...]:
    """What to tell of a model's signatures where none was chosen among several."""
    known = list_keys(model)
    if signature is not None or len(known) < 2:
        return ()
    return (f"the model's signatures are {', '.join(known)}: its first graph was converted, --signature names another",)


def name_interface(graph: ir.Graph, signature: Signature | None) -> tuple[list[str], dict[str, str]]:
    """Name the inputs of a graph as a signature does; the names for its outputs, and the source's names by the new.

    A name that would stand for two things is left to the first, the other keeps that of the source, with a number where
    that one is taken.
    """
    own = {value: value.name or "" for value in (*graph.inputs, *graph.outputs)}
    if signature is None:
        return [own[value] for value in graph.outputs], {}
    given = {source: public for public, source in reversed(list(signature.inputs.items())) if public}
    yielded = {source: public for public, source in reversed(list(signature.outputs.items())) if public}
    inner = {output.name: output for node in graph for output in node.outputs}
    inner |= {value.name: value for value in graph.initializers.values()}
    ends = [(value, given) for value in graph.inputs] + [(value, yielded) for value in graph.outputs]
    taken = {own[value] for value, entries in ends if own[value] not in entries}
    names: list[str] = []
    renamed: dict[str, str] = {}
    for value, entries in ends:
        public = own[value]
        if public in entries:
            public = _find_name((entries[public], public), taken)
            taken.add(public)
        names.append(public)
        if public != own[value]:
            renamed[public] = own[value]
    for value, public in zip(graph.inputs, names, strict=False):
        if public in inner and inner[public] is not value:
            _rename(inner, public, taken)
        value.name = public
    return names[len(graph.inputs) :], renamed


def _find_name(wanted: Sequence[str], taken: Container[str]) -> str:
    """The first name that is free, the last one with a number where none is."""
    numbered = (f"{wanted[-1]}_{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain(wanted, numbered) if name not in taken)


def _rename(values: dict[str | None, ir.Value], name: str, taken: Container[str]) -> None:
    """Give an inner value another name, that nothing has."""
    value, other = values.pop(name), f"{name}_inner"
    while other in values or other in taken:
        other += "_"
    value.name = other
    values[other] = value


def describe_names(renamed: Mapping[str, str]) -> dict[str, str]:
    """The source's names as entries of a model's metadata."""
    return {f"{NAME}.{public}": source for public, source in renamed.items()}

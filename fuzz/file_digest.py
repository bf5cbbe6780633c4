"""Imprints: what a case is in a file but for the numbers it holds, so that a change of what is written can be seen.

The interpreter tells where an option is written to another place than it reads; of operators that it has no kernel for
nobody does, as what reads them back goes by the same entry of ops.yaml. Nor does it tell how a file is read that leaves
options out which kernels want to be there, or where real numbers are put between codes that stood for them as well.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from ..backends import tflite_writer
from ..engine.base.errors import RewriteError
from ..engine.base.names import Scope
from ..engine.base.quantization import KEY, read_quantization
from ..engine.dialects.operators import Catalogue, OperatorSpec, get_option
from ..engine.passes.quantize_dequantize import insert_quantize_dequantize
from ..frontends.tflite_reader import read
from .sketch import Case, make_graph

#: the digest of a case that no file can hold
_NONE = "----"
#: the opset of the quantize operators that are looked at
_OPSET = 21


def digest_file(case: Case, catalogue: Catalogue, rebatched: str = "") -> str:
    """Four hexadecimal digits of the file that a case would be with zeros for all elements and no scales but those that
    ops.yaml names, of the options that are read where a file says none, of where quantized values become real numbers,
    and of what becomes of the case with another batch."""
    dialect = catalogue.find_dialect("tflite")
    outputs = case.outputs or [replace(blank, dtype=blank.dtype or ir.DataType.FLOAT) for blank in case.unknown]
    bare = [replace(s, options={name: one for name, one in s.options.items() if one in s.graphs}) for s in case.steps]
    try:
        data = _write_file(make_graph(case.steps, outputs, dialect), catalogue)
        absent = _read_options(_write_file(make_graph(bare, outputs, dialect), catalogue), catalogue)
        views = [_list_operators(make_graph(case.steps, outputs, dialect), catalogue, plain) for plain in (False, True)]
    except RewriteError:
        return _NONE
    return f"{zlib.crc32(data + repr((absent, views, rebatched)).encode()) & 0xFFFF:04x}"


def _write_file(made: ir.Graph, catalogue: Catalogue) -> bytes:
    """The file that a graph is without numbers."""
    operators = catalogue.find_dialect("tflite").operators
    named = {id(value) for node in made.all_nodes() for value in _list_named(node, operators[node.op_type])}
    for node in made.all_nodes():
        node.version = 1  # others may depend on the interpreter that there is
        for value in (*node.inputs, *node.outputs):
            if value is not None:
                if id(value) not in named:
                    value.meta.pop(KEY, None)
                value.const_value = None if value.const_value is None else _make_zeros(value.const_value)
    return tflite_writer.write(ir.Model(made, ir_version=10), catalogue)


def _list_named(node: ir.Node, spec: OperatorSpec) -> Iterator[ir.Value]:
    """The values of a node whose scales ops.yaml names."""
    states = spec.facts.fuzz.states
    for operand, value in zip(spec.operands, node.inputs, strict=False):
        if value is not None and operand.name in states:
            yield value
    if isinstance(spec.facts.grid, dict):
        yield from node.outputs


def _read_options(data: bytes, catalogue: Catalogue) -> list[list[Any]]:
    """The options of each operator in a file, as rules read them."""
    operators = catalogue.find_dialect("tflite").operators
    nodes = (node for made in read(data, catalogue).meta["subgraphs"] for node in made)
    found = ((node, operators[node.op_type].options) for node in nodes if node.op_type in operators)
    return [[get_option(node, option) for option in options.values()] for node, options in found]


def _list_operators(made: ir.Graph, catalogue: Catalogue, plain: bool) -> list[str]:
    """The operators of a graph once what is quantized has become real numbers, where codes may stay what they are."""
    source, target = (catalogue.find_dialect(name) for name in ("tflite", "onnx"))
    if not any(read_quantization(value) for node in made.all_nodes() for value in (*node.inputs, *node.outputs)):
        return []
    portable = replace(target, facts=replace(target.facts, codes=None))
    insert_quantize_dequantize(made, source, portable, _OPSET, Scope(made), plain)
    return [
        f"{node.op_type}({[_describe_value(v) for v in node.inputs]}) {[*node.attributes.values()]}" for node in made
    ]


def _describe_value(value: ir.Value | None) -> str:
    return "" if value is None else f"{value.name} {value.dtype} {value.shape}"


def _make_zeros(held: ir.TensorProtocol) -> ir.TensorProtocol:
    elements = held.numpy()
    if held.dtype == ir.DataType.STRING:
        return ir.StringTensor([b""] * held.size, shape=ir.Shape(elements.shape), name=held.name)
    return ir.tensor(np.zeros(elements.shape, elements.dtype), dtype=held.dtype, name=held.name)

"""Codes of a graph in one type: of those of 8 bits, signed ones, or unsigned ones where weights are not centred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.names import Scope
from ..base.quantization import DEQUANTIZE_BY, QUANTIZE_BY, is_by_range, read_node_grid
from ..dialects.operators import Dialect, OperatorSpec

_SIGNED, _UNSIGNED = ir.DataType.INT8, ir.DataType.UINT8
#: from a code to that of the other type which stands for the same number
_SHIFT = 128


def unify_types(graph: ir.Graph, dialect: Dialect, scope: Scope) -> None:
    """Give all 8-bit codes within a graph one type; inputs and outputs are converted to it and back.

    Weights beside activations that a kernel quantizes by their range stay signed, as such kernels take no others.
    """
    work = _Types(graph, dialect, scope)
    wanted = _UNSIGNED if work.must_be_unsigned() else _SIGNED
    for node in list(graph):
        codes = node.outputs[0] if work.is_form(node, QUANTIZE_BY) else None
        if codes is not None and codes.dtype in (_SIGNED, _UNSIGNED) and codes.dtype != wanted:
            work.write_other(node, wanted)
    for node in list(graph):
        codes = node.inputs[0] if work.is_form(node, DEQUANTIZE_BY) and not is_by_range(node) else None
        if codes is not None and codes.dtype in (_SIGNED, _UNSIGNED) and codes.dtype != wanted:
            work.read_other(node, codes, wanted)


class _Types:
    """The forms of one graph, and what has been made of their codes."""

    def __init__(self, graph: ir.Graph, dialect: Dialect, scope: Scope) -> None:
        self._graph, self._dialect, self._scope = graph, dialect, scope
        self._made: dict[Any, ir.Value] = {}

    def is_form(self, node: ir.Node | None, role: str) -> bool:
        spec = self._dialect.find_role(role)
        return node is not None and (node.domain, node.op_type) == (spec.domain, spec.name)

    def must_be_unsigned(self) -> bool:
        """Whether codes have to be unsigned; signed ones have the faster kernels.

        They do where a weight has a zero point off the middle, which kernels take of unsigned codes alone, or where
        there are no weights and inputs and outputs are unsigned. They never do beside weights with a scale for each
        channel, whose kernels take signed codes alone.
        """
        ends = {value.dtype for value in (*self._graph.inputs, *self._graph.outputs) if self._is_code(value)}
        odd, centred, weighed = False, False, False
        for node in self._graph:
            spec = self._dialect.find_operator(node.op_type) if node.domain == self._dialect.domain else None
            for position, operand in enumerate(spec.operands if spec is not None else ()):
                if spec is None or operand.name not in spec.facts.channels or position >= len(node.inputs):
                    continue
                value = node.inputs[position]
                form = None if value is None else value.producer()
                if form is None or not self.is_form(form, DEQUANTIZE_BY) or form.inputs[0] is None:
                    continue
                if is_by_range(form):
                    continue
                known, dtype = read_node_grid(form), form.inputs[0].dtype
                middle = _SHIFT if dtype == _UNSIGNED else 0
                odd |= dtype in (_SIGNED, _UNSIGNED) and bool((known.zero_point != middle).any())
                centred, weighed = centred or known.per_axis, True
        return not centred and (odd or (not weighed and ends & {_SIGNED, _UNSIGNED} == {_UNSIGNED}))

    def _is_code(self, value: ir.Value) -> bool:
        producer = value.producer()
        if producer is not None and self.is_form(producer, QUANTIZE_BY):
            return True
        return any(self.is_form(use.node, DEQUANTIZE_BY) for use in value.uses())

    def write_other(self, node: ir.Node, wanted: ir.DataType) -> None:
        """Let what is put on a grid have codes of a type; users that are no forms get those they had."""
        codes = node.outputs[0]
        forms = [use.node for use in codes.uses()]
        inner = all(self.is_form(form, DEQUANTIZE_BY) for form in forms)
        if inner and not codes.is_graph_output():
            for form in (node, *forms):
                form.replace_input_with(2, self._make_zero(form, wanted))
            codes.type = ir.TensorType(wanted)
            return
        writes, reads = self._dialect.find_role(QUANTIZE_BY), self._dialect.find_role(DEQUANTIZE_BY)
        zero = self._make_zero(node, wanted)
        made = self._make_form(writes, [node.inputs[0], node.inputs[1], zero], node, wanted)
        real = self._make_form(reads, [made.outputs[0], node.inputs[1], zero], node, ir.DataType.FLOAT)
        self._graph.insert_before(node, [made, real])
        node.replace_input_with(0, real.outputs[0])
        for form in forms:
            if self.is_form(form, DEQUANTIZE_BY) and read_node_grid(form) == read_node_grid(node):
                form.replace_input_with(2, zero)
                form.replace_input_with(0, made.outputs[0])

    def read_other(self, node: ir.Node, codes: ir.Value, wanted: ir.DataType) -> None:
        """Let what is read off a grid come from codes of a type: those of a constant, or a copy made at the border."""
        key = codes, wanted, id(node.inputs[1]), id(node.inputs[2])
        if key not in self._made:
            self._made[key] = self._convert(node, codes, wanted)
        zero = self._make_zero(node, wanted)
        node.replace_input_with(0, self._made[key])
        node.replace_input_with(2, zero)

    def _convert(self, node: ir.Node, codes: ir.Value, wanted: ir.DataType) -> ir.Value:
        array = read_initializer(codes)
        if array is not None:
            return self._register(self._scope.make_constant(_shift_codes(array, wanted), codes.name or "codes"))
        reads, writes = self._dialect.find_role(DEQUANTIZE_BY), self._dialect.find_role(QUANTIZE_BY)
        real = self._make_form(reads, node.inputs, node, ir.DataType.FLOAT)
        made = self._make_form(writes, [real.outputs[0], node.inputs[1], self._make_zero(node, wanted)], node, wanted)
        self._graph.insert_before(node, [real, made])
        return made.outputs[0]

    def _make_form(
        self, spec: OperatorSpec, inputs: Sequence[ir.Value | None], like: ir.Node, dtype: ir.DataType
    ) -> ir.Node:
        made = ir.Node(spec.domain, spec.name, inputs, like.attributes.values(), num_outputs=1)
        made.metadata_props.update(like.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = ir.TensorType(dtype), like.outputs[0].shape
        self._scope.name_node(made, f"{like.outputs[0].name}/{dtype.name.lower()}")
        return made

    def _make_zero(self, form: ir.Node, wanted: ir.DataType) -> ir.Value:
        zero = form.inputs[2]
        array = None if zero is None else read_initializer(zero)
        assert array is not None
        return self._register(self._scope.make_constant(_shift_codes(array, wanted), "zero_point"))

    def _register(self, value: ir.Value) -> ir.Value:
        if value.graph is None:
            self._graph.register_initializer(value)
        return value


def _shift_codes(codes: np.ndarray[Any, Any], wanted: ir.DataType) -> np.ndarray[Any, Any]:
    shift = _SHIFT if wanted == _UNSIGNED else -_SHIFT
    return (codes.astype(np.int16) + shift).astype(wanted.numpy())

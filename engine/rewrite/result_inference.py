"""Types, shapes and constant results of nodes without a schema, by what rules say in ONNX that their operators compute.

A node is put into a graph of its own, and the rules that lower its dialect to ONNX are run over it: what is then known
of the results is known of the node's. No runtime is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from ..base.constants import AS_STORED, TRAINED, Elements
from ..base.errors import RewriteError
from ..base.names import Scope
from ..base.quantization import HYBRID
from ..base.startup import dataclass, replace
from ..dialects.conversions import find_named_type
from ..dialects.inference import SHAPE_DATA, Extents, make_shape, read_extents, update_extents
from ..expressions.functions import DTYPES, PAIR, is_complex
from .apply import Outcome
from .driver import Driver
from .rules import RuleSet
from .stages import LOWER, NORMALIZE

#: what is remembered of nodes that are alike, at the most
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Result:
    """What is known of one result: its type, its shape, and its elements where they are constant."""

    dtype: ir.DataType | None
    shape: Extents | None
    elements: Elements | None


class ResultInference:
    """Works out the results of nodes of one dialect by the rules that lower it to ONNX."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._known: dict[Any, list[_Result]] = {}

    def settle(self, node: ir.Node) -> Sequence[Elements] | None:
        """Let the results of a node have the types and shapes that its operands tell; their elements if constant."""
        known = all(value is None or _is_constant(value) for value in node.inputs) and bool(node.inputs)
        key = None if known else self._make_key(node)
        results = self._known.get(key) if key is not None else None
        if results is None:
            results = self._infer_results(node, known)
            if key is not None:
                if len(self._known) > _REMEMBERED:
                    self._known.clear()
                self._known[key] = results
        elements = [result.elements for result in results]
        stays = any(value is not None and AS_STORED in value.meta for value in node.inputs)
        if results and not stays and all(one is not None for one in elements):
            return [one for one in elements if one is not None]
        for output, result in zip(node.outputs, results, strict=True):
            if result.dtype is not None:
                output.type = ir.TensorType(result.dtype)
            if result.shape is not None:
                output.shape = make_shape(update_extents(read_extents(output), result.shape))
        return None

    def _make_key(self, node: ir.Node) -> Any:
        attributes = tuple(
            (a.name, tuple(a.value) if isinstance(a.value, list) else a.value) for a in node.attributes.values()
        )
        operands = tuple(None if value is None else _describe(value) for value in node.inputs)
        return node.domain, node.op_type, attributes, operands, len(node.outputs)

    def _infer_results(self, node: ir.Node, known: bool) -> list[_Result]:
        """Run the rules over a copy of the node; results about which they tell nothing have the first operand's type
        where ops.yaml names no other."""
        spec = self._rules.source.find_operator(node.op_type)
        given = None if spec is None else find_named_type(self._rules.source, spec, node)
        told = self._rules.source.schemas  # by what a node becomes, whatever is usual
        if given is None and spec is not None and len(spec.facts.yields) == 1 and not told:
            given = DTYPES.get(spec.facts.yields[0].removeprefix("q"))
        first = next((value.dtype for value in node.inputs if value is not None and value.dtype is not None), None)
        if given is None and spec is not None and HYBRID in spec.traits:  # whose weights may be codes
            given = first
        found = self._lower(node, given, known)
        if any(one.dtype is None for one in found) and given is None and not (spec and spec.facts.yields):
            again = self._lower(node, first, known) if first is not None else []
            if again and all(one.shape is not None for one in again):
                return again
        stated = () if spec is None or len(spec.facts.yields) < len(found) else spec.facts.yields[: len(found)]
        for place, name in enumerate(stated):
            if found[place].dtype is None:
                found[place] = replace(found[place], dtype=DTYPES.get(name.removeprefix("q")))
        return found

    def _lower(self, node: ir.Node, dtype: ir.DataType | None, known: bool) -> list[_Result]:
        values: dict[ir.Value, ir.Value] = {}
        inputs: list[ir.Value | None] = []
        for value in node.inputs:
            if value is not None and value not in values:
                values[value] = _copy(value, f"x{len(values)}", known)
            inputs.append(None if value is None else values[value])
        attributes = node.attributes.values()
        own = ir.Node(node.domain, node.op_type, inputs, attributes, num_outputs=len(node.outputs), name="node")
        for place, output in enumerate(own.outputs):
            output.name = f"y{place}"
        if dtype is not None:  # values, and behind them where they are
            own.outputs[0].type = ir.TensorType(dtype)
            for output in own.outputs[1:] if _has_single_results(self._rules, node) else ():
                output.type = ir.TensorType(ir.DataType.INT32)
        copies = list(values.values())
        constants = [value for value in copies if value.const_value is not None]
        arguments = [value for value in copies if value.const_value is None]
        graph = ir.Graph(arguments, own.outputs, nodes=[own], initializers=constants, name="reference")
        names = Scope(graph)
        outcome = Outcome(complex=any(map(is_complex, copies)))
        try:
            for stage in (NORMALIZE, LOWER):
                Driver(graph, self._rules, stage, names, outcome=outcome).run()
        except RewriteError:
            return [_Result(dtype if place == 0 else None, None, None) for place in range(len(node.outputs))]
        return [_read_result(value, known) for value in graph.outputs]


def _read_result(value: ir.Value, known: bool) -> _Result:
    tensor = value.const_value if value.is_initializer() and not value.is_graph_input() else None
    elements: Elements | None = None
    if known and tensor is not None and tensor.dtype != ir.DataType.STRING:
        elements = tensor if isinstance(tensor, ir.LazyTensor) else tensor.numpy()
    return _Result(value.dtype, read_extents(value), elements)


def _has_single_results(rules: RuleSet, node: ir.Node) -> bool:
    """Whether an operator has several results of one kind each, and not a list of them."""
    spec = rules.source.find_operator(node.op_type)
    return spec is not None and not any(result.variadic for result in spec.results)


def _is_constant(value: ir.Value) -> bool:
    return value.const_value is not None and not value.is_graph_input()


def _may_tell_extents(value: ir.Value) -> bool:
    """Whether extents may depend on the elements of an operand: few constants, and no real numbers where others are
    unknown."""
    tensor = value.const_value
    if tensor is None or not _is_constant(value):
        return False
    return tensor.size <= SHAPE_DATA and not tensor.dtype.is_floating_point()


def _describe(value: ir.Value) -> Any:
    """What rules may learn of an operand: its type and shape, and the elements where they are few."""
    tensor = value.const_value
    if tensor is None or not _may_tell_extents(value) or tensor.dtype == ir.DataType.STRING:
        return value.dtype, read_extents(value), is_complex(value)
    return value.dtype, tuple(tensor.shape.numpy()), tensor.tobytes()


def _copy(value: ir.Value, name: str, known: bool) -> ir.Value:
    """A value like another, with its elements where these are few, or all that is read is constant."""
    shape = read_extents(value)
    copy = ir.Value(name=name, type=value.type, shape=None if shape is None else make_shape(shape))
    if is_complex(value):
        copy.meta[PAIR] = True
    if known or _may_tell_extents(value):
        copy.const_value = value.const_value
        if TRAINED in value.meta:
            copy.meta[TRAINED] = value.meta[TRAINED]
    return copy

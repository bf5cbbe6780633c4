"""Pass `quantize-dequantize`: inserts such nodes around quantized values, so that rules see real numbers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from ..base.constants import NUMBERS, STATEFUL, defer_elements, read_initializer
from ..base.errors import RewriteError
from ..base.names import Scope
from ..base.quantization import (
    CODES,
    EXTENTS,
    HYBRID,
    KEY,
    MATCHED,
    PASSED,
    RAW,
    Quantization,
    dequantize,
    is_blockwise,
    read_quantization,
)
from ..base.startup import dataclass
from ..dialects.facts import OperatorFacts
from ..dialects.operators import Dialect, OperatorSpec
from ..dialects.opsets import BLOCKS, can_take, can_yield
from ..expressions.functions import SHORT
from ..rewrite.edits import remove_unused
from .base import Module, Visit, insert_first
from .operand_scales import find_channels, find_products, require_fit
from .quantized_nodes import (
    has_fused_activation,
    has_quantized_weights,
    has_wide_codes,
    is_about_integers,
    is_dequantizing,
    require_scales,
)

#: by bits: so much smaller a scale lets halves of codes round away from 0, also where a runtime adds the zero point
#: before it rounds, and averages of up to 127 codes not round otherwise
_NUDGES = {8: np.float32(1 - 2**-15), 16: np.float32(1 - 2**-22)}
#: types of less than a byte, and those of a byte that hold their elements
_BYTES = {
    dtype: np.dtype(np.int8 if dtype.is_signed() else np.uint8)
    for dtype in ir.DataType
    if dtype.is_integer() and dtype.bitwidth < 8
}


@dataclass(frozen=True, slots=True)
class QuantizeDequantize:
    """Put quantize and dequantize nodes around operators that compute with real numbers; see
    `insert_quantize_dequantize`."""

    plain: bool = False
    name, visits = "quantize-dequantize", Visit.FUNCTIONS_FIRST

    def run(self, module: Module) -> None:
        """Change one graph, and count the operators whose quantized results are now computed with real numbers."""
        source, target = module.source, module.target
        module.real.update(
            insert_quantize_dequantize(module.graph, source, target, module.opset, module.names, self.plain)
        )
        remove_unused(module.graph)


def insert_quantize_dequantize(
    graph: ir.Graph, source: Dialect, target: Dialect, opset: int, scope: Scope, plain: bool = False
) -> Counter[str]:
    """Let every operator that computes with real numbers take and yield them; how many have quantized results, by name.

    A quantized operand is read through the target's dequantize operator, a quantized result written through its
    quantize operator. Operators of the class `codes` move integers whatever they stand for, those of the class
    `matched` where they have eight bits bring them to one map first. Both are left alone where all their quantized
    values map to real numbers alike and no activation is fused into them, unless the target's `codes: real` in ops.yaml
    asks for the same form for all and no constant would be made real. Operators of the class `raw` mean the integers
    themselves, those of the class `extents` read no elements at all, and those of the class `passed` hand their values
    to graphs, which take and yield them as they stand.

    With `plain` no value stays quantized: constants become real numbers, and so do all others, unrounded, except those
    that operators of the class `raw` read and yield.
    """
    view = Inserter(graph, target, opset, scope, plain)
    if plain:
        view.expose_inputs()
    keep = target.facts.codes != "real"
    found: Counter[str] = Counter()
    for node in list(graph):
        if node.domain == target.domain != source.domain:
            continue  # what rules over integers have made, or an interface
        _insert_around(view, node, source, keep, found)
    if plain:
        view.insert_exits()
    if plain and source is target:
        _skip_conversions(graph, source)
    return +found


def _insert_around(view: Inserter, node: ir.Node, source: Dialect, keep: bool, found: Counter[str]) -> None:
    """Let a node compute with real numbers where it is to, and count it in `found` if its results are quantized.

    Where `keep` is set, nodes whose values map alike move codes.
    """
    plain = view.plain
    spec = source.operators.get(node.op_type)
    facts = OperatorFacts() if spec is None else spec.facts
    unknown = spec is None or spec.unsupported is not None  # what it does with numbers it does with the integers
    kind = facts.quantization or (RAW if unknown else None)
    maps = [m for m in map(read_quantization, (*node.inputs, *node.outputs)) if m is not None]
    if plain and kind == RAW:
        view.keep_codes(node)
    if not maps or kind in (RAW, EXTENTS) or (kind == PASSED and not plain):
        return
    pure = not has_fused_activation(node, spec, source) and not is_dequantizing(node)
    alike = pure and all(m == maps[0] for m in maps)
    single = alike or (pure and facts.grid == "same")  # kernels leave codes on one grid, whatever these say
    if single and not plain and facts.rounding == "away" and _nudge(node):
        view.round_halves_away(node, maps[-1])
        return
    moves = kind in (CODES, MATCHED)
    if moves and (is_about_integers(node) or (alike and not plain and (keep or has_quantized_weights(node)))):
        return
    if pure and not alike and not plain and (kind == CODES or (kind == MATCHED and has_wide_codes(node))):
        return  # kernels move these codes whatever they stand for
    if not (alike and moves):
        found[node.op_type] += any(map(read_quantization, node.outputs))
    one = maps[-1] if facts.grid == "same" and not alike and not plain and not is_dequantizing(node) else None
    require_scales(node)
    view.dequantize_operands(node, spec, one)
    view.quantize_results(node)


def _skip_conversions(graph: ir.Graph, dialect: Dialect) -> None:
    """Let those that read what no longer is codes read what it is made of."""
    names = {dialect.find_role(role).name for role in ("quantize", "dequantize")}
    for node in [node for node in graph if node.op_type in names]:
        read, made = node.inputs[0], node.outputs[0]
        if read is not None and read.dtype == made.dtype:
            ir.convenience.replace_all_uses_with(made, read, replace_graph_outputs=True)


def _nudge(node: ir.Node) -> np.float32 | None:
    dtype = node.outputs[0].dtype
    return None if dtype is None else _NUDGES.get(dtype.bitwidth)


class Inserter:
    """The conversions put into one graph; each value is dequantized once."""

    def __init__(self, graph: ir.Graph, target: Dialect, opset: int, scope: Scope, plain: bool = False) -> None:
        self._graph = graph
        self.plain = plain
        self._quantize = target.find_role("quantize", opset)
        self._dequantize = target.find_role("dequantize", opset)
        self._convert = target.find_role("convert", opset)
        #: whether nodes name the scales, and not the types of codes
        self._named = target.schemas
        self._opset = opset
        self._scope = scope
        self._reread: dict[ir.Value, ir.Value] = {}
        self._real: dict[tuple[ir.Value, int, bytes], ir.Value] = {}
        #: values that have become real: what their integers would be, and of which type
        self._were: dict[ir.Value, tuple[Quantization, ir.DataType]] = {}

    def expose_inputs(self) -> None:
        """Make the graph's inputs real, initial values included, and what kernels keep in tensors of their own."""
        kept = (one for node in self._graph for one in node.inputs if one is not None and one.meta.get(STATEFUL))
        for value in dict.fromkeys((*self._graph.inputs, *kept)):
            known = read_quantization(value)
            if known is None:
                continue
            self._make_real(value, known)
            if value.const_value is not None:
                value.const_value = ir.Tensor(dequantize(value.const_value.numpy(), known), name=value.name)

    def keep_codes(self, node: ir.Node) -> None:
        """Let a node that means the integers read them where its operands have become real, or in a type there is."""
        for position, value in enumerate(node.inputs):
            if value is not None and value.dtype in _BYTES and not can_take(self._convert, value.dtype):
                codes = read_initializer(value)
                if codes is not None:
                    wide = self._scope.register(
                        self._scope.make_constant(codes.astype(_BYTES[value.dtype]), f"{value.name}")
                    )
                    node.replace_input_with(position, wide)
            if value is None or value not in self._were:
                continue
            known, dtype = self._were[value]
            written = self._make_node(
                self._quantize, [value, *self._list_parameters(value, known, dtype)], self._make_axis(known), node
            )
            made = written.outputs[0]
            made.type, made.shape = ir.TensorType(dtype), value.shape
            made.name = self._scope.make_name(f"{value.name}/codes")
            if not self._named:
                made.meta[KEY] = known
            self._graph.insert_before(node, written)
            node.replace_input_with(position, made)

    def insert_entrance(self, value: ir.Value) -> ir.Value:
        """A real input in the place of a quantized one, which is computed from it."""
        known = read_quantization(value)
        assert known is not None and value.dtype is not None
        made = ir.Value(name=value.name, type=ir.TensorType(ir.DataType.FLOAT), shape=value.shape)
        node = ir.Node(
            self._quantize.domain,
            self._quantize.name,
            [made, *self._list_parameters(value, known, value.dtype)],
            self._make_axis(known),
            num_outputs=1,
        )
        node.name = self._scope.make_name(f"{value.name}/{self._quantize.name}")
        codes = node.outputs[0]
        codes.type, codes.shape, codes.name = value.type, value.shape, self._scope.make_name(f"{value.name}/codes")
        codes.meta.update(value.meta)
        ir.convenience.replace_all_uses_with(value, codes, replace_graph_outputs=True)
        insert_first(self._graph, [node])
        return made

    def insert_exits(self) -> None:
        """Make the graph's outputs real where they are quantized."""
        for position, value in enumerate(self._graph.outputs):
            known, producer = read_quantization(value), value.producer()
            if known is not None and producer is not None:
                self._graph.outputs[position] = self._read(producer, value, known)

    def _make_real(self, value: ir.Value, known: Quantization) -> None:
        assert value.dtype is not None
        self._were[value] = known, value.dtype
        value.meta.pop(KEY)
        value.type = ir.TensorType(ir.DataType.FLOAT)

    def dequantize_operands(self, node: ir.Node, spec: OperatorSpec | None, by: Quantization | None = None) -> None:
        """Dequantize the operands of a node, `by` another quantization where one is given."""
        products = dict(find_products(node, spec, self._find_map))
        channels = find_channels(spec)
        hybrid = spec is not None and HYBRID in spec.traits and not any(map(read_quantization, node.outputs))
        for position, value in enumerate(node.inputs):
            known = products.get(position, read_quantization(value))
            if value is None or known is None:
                continue
            if hybrid and value.dtype == ir.DataType.UINT8 and not known.zero_point.any():
                value = self._reread_signed(value)
            if known.per_axis and position in channels:
                known = replace(known, axis=channels[position])
            require_fit(node, value, known)
            node.replace_input_with(position, self._read(node, value, by or known))

    def _find_map(self, value: ir.Value | None) -> Quantization | None:
        """The quantization of a value, also that which it had before it became real."""
        known = read_quantization(value)
        return self._were[value][0] if known is None and value is not None and value in self._were else known

    def quantize_results(self, node: ir.Node, by: Quantization | None = None) -> None:
        """Quantize the results of a node, `by` another quantization where one is given."""
        for result in node.outputs:
            known = read_quantization(result)
            if known is None:
                continue
            if self.plain:
                self._make_real(result, known)
                continue
            assert result.dtype is not None
            name, uses = result.name, list(result.uses())
            parameters = self._list_parameters(result, by or known, result.dtype)
            written = self._make_node(self._quantize, [result, *parameters], self._make_axis(known), node)
            codes = written.outputs[0]
            codes.type, codes.shape, codes.name = result.type, result.shape, name
            codes.meta.update(result.meta)
            result.meta.pop(KEY)
            result.name = self._scope.make_name(f"{name}/real")
            result.type = ir.TensorType(ir.DataType.FLOAT)
            self._graph.insert_after(node, written)
            for user, position in uses:
                user.replace_input_with(position, codes)
            for position, output in enumerate(self._graph.outputs):
                if output is result:
                    self._graph.outputs[position] = codes

    def round_halves_away(self, node: ir.Node, known: Quantization) -> None:
        """Let an average see codes as such, and be written so that halves are rounded away from 0.

        An average of shifted or stretched numbers is shifted and stretched alike, so zero points can be left out on
        both sides; and with a power of two for a scale, sums of codes are exact.
        """
        power = np.exp2(np.round(np.log2(known.scale))).astype(np.float32)
        codes = replace(known, scale=power, zero_point=np.zeros_like(known.zero_point))
        for position, value in enumerate(node.inputs):
            if value is not None and read_quantization(value) is not None:
                node.replace_input_with(position, self._read(node, value, codes))
        self.quantize_results(node, replace(codes, scale=power * _nudge(node)))

    def _reread_signed(self, value: ir.Value) -> ir.Value:
        """Weights that say uint8 and hold int8: hybrid kernels of old files read the bytes so."""
        codes = read_initializer(value)
        if codes is None:
            return value
        if value not in self._reread:
            self._reread[value] = self._scope.register(self._scope.make_constant(codes.view(np.int8), f"{value.name}"))
        return self._reread[value]

    def _read(self, node: ir.Node, value: ir.Value, known: Quantization) -> ir.Value:
        key = value, known.axis, known.scale.tobytes() + known.zero_point.tobytes()
        if key not in self._real:
            self._real[key] = self._dequantize_value(node, value, known)
        return self._real[key]

    def _dequantize_value(self, node: ir.Node, value: ir.Value, known: Quantization) -> ir.Value:
        assert value.dtype is not None
        codes = read_initializer(value)
        real = None if codes is None else functools.partial(dequantize, codes, known)
        read = not self._named or can_take(self._dequantize, value.dtype, is_blockwise(value))
        if real is not None and (self.plain or not read):
            extents = value.shape.numpy() if value.shape is not None else ()
            return self._scope.make_constant(defer_elements(real, ir.DataType.FLOAT, extents), f"{value.name}/real")
        if not read:
            raise RewriteError(f"{value.name}: codes of {value.dtype} have no real numbers at opset {self._opset}")
        parameters = self._make_parameters(known, value.dtype)
        made = self._make_node(self._dequantize, [value, *parameters], self._make_axis(known), node)
        result = made.outputs[0]
        result.type, result.shape = ir.TensorType(ir.DataType.FLOAT), value.shape
        result.name = self._scope.make_name(f"{value.name}/real")
        if real is not None:
            result.meta[NUMBERS] = real
        producer = value.producer()
        if producer is not None:
            self._graph.insert_after(producer, made)
        else:
            self._graph.insert_before(self._graph[0], made)
        return result

    def _list_parameters(self, value: ir.Value, known: Quantization, dtype: ir.DataType) -> list[ir.Value]:
        kinds = " ".join(self._quantize.facts.yields).split()
        if not (can_yield(self._quantize, dtype) if self._named else f"q{SHORT.get(dtype)}" in kinds):
            at = f" at opset {self._opset}" if self._named else ""
            raise RewriteError(f"{value.name}: real numbers cannot be quantized to {dtype}{at}")
        return self._make_parameters(known, dtype)

    def _make_parameters(self, known: Quantization, dtype: ir.DataType) -> list[ir.Value]:
        if not self._named:
            return []
        shape = known.scale.shape if known.per_axis or known.block_size else ()
        scale = known.scale.astype(np.float32).reshape(shape)
        values = [self._scope.make_constant(scale, "scale")]
        if dtype != ir.DataType.INT32:  # whose zero point is always 0, and is not written down
            values.append(
                self._scope.make_constant(known.zero_point.astype(dtype.numpy()).reshape(shape), "zero_point")
            )
        return [self._scope.register(value) for value in values]

    def _make_node(
        self, spec: OperatorSpec, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr], source: ir.Node
    ) -> ir.Node:
        made = ir.Node(spec.domain, spec.name, inputs, attributes, num_outputs=1)
        made.metadata_props.update(source.metadata_props)
        made.name = self._scope.make_name(f"{source.name}/{spec.name}")
        return made

    def _make_axis(self, known: Quantization) -> list[ir.Attr]:
        if not self._named:
            return []
        if known.block_size:
            return [ir.AttrInt64("axis", known.axis), ir.AttrInt64(BLOCKS, known.block_size)]
        return [ir.AttrInt64("axis", known.axis)] if known.per_axis else []

"""Pass `integer-kernels`: what stands between operands off a grid and results put on one computes with codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import read_initializer
from ..base.quantization import (
    CODES,
    DEQUANTIZE_BY,
    HYBRID,
    KEY,
    MATCHED,
    QUANTIZE_BY,
    RAW,
    Quantization,
    is_by_range,
    read_node_grid,
    read_quantization,
)
from ..base.startup import dataclass, field
from ..dialects.literals import make_attribute
from ..dialects.operators import OperatorSpec
from ..expressions.functions import SHORT
from ..rewrite.edits import remove_unused
from .base import Module, Visit
from .code_types import unify_types
from .coded_graph import CodedGraph, are_alike, find_producer, is_allowed, is_real
from .grids import find_exact_grid, find_grids_of_channels, note_grid, round_to_grid, write_grids
from .moved_codes import hoist, lift, sink_dequantize

#: by the type of activations, the types that weights may have beside them
_WEIGHTS = {
    ir.DataType.INT8: (ir.DataType.INT8, ir.DataType.INT4),
    ir.DataType.INT16: (ir.DataType.INT8,),
    ir.DataType.UINT8: (ir.DataType.UINT8,),
}
#: what all operands of an operator are brought to one grid for
_SAME = "same"
#: what of a bias may be cut off, as a part of a step of the result
_NEGLIGIBLE = 1e-3


class IntegerKernels:
    """Let operators read and yield codes where ops.yaml says that there are kernels for them.

    The forms whose operands name a grid become the types of codes, or operators at the borders of what computes with
    real numbers. What is rounded twice may come out one step apart from what the model says.
    """

    name, visits = "integer-kernels", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Change one graph; raises RewriteError where codes of unknown extents are read by another grid than
        that they are written by."""
        if not module.target.has_role(QUANTIZE_BY):
            return
        view = _Kernels(module)
        if not any(view.find_role(node) for node in module.graph):
            return
        lift(view)
        unify_types(module.graph, module.target, module.names)
        hoist(view)
        for node in module.graph:
            if view.find_role(node) == QUANTIZE_BY:
                node.outputs[0].meta[KEY] = read_node_grid(node)  # which others may read by another one
        for node in list(module.graph):
            if node.graph is not None and view.find_role(node) is None and not view.quantize_node(node):
                sink_dequantize(view, node)
        write_grids(module.graph, module.target, module.names)
        remove_unused(module.graph)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an operator is given in the place of real operands, and the grids of its results: own and asked for."""

    operands: dict[int, ir.Value] = field(default_factory=dict)
    results: tuple[tuple[Quantization, Quantization], ...] = ()


class _Kernels(CodedGraph):
    """One graph whose operators are to compute with codes."""

    def quantize_node(self, node: ir.Node) -> bool:
        """Let a node compute with codes, where its results are put on grids and its operands are off such."""
        spec = self.find_spec(node)
        plan = None if spec is None else self._plan_node(node, spec)
        if spec is None or plan is None:
            return spec is not None and HYBRID in spec.traits and self._give_codes(node, spec)
        for position, value in plan.operands.items():
            node.replace_input_with(position, value)
        for name, value in spec.facts.coded.items():
            node.attributes[name] = make_attribute(spec.options[name], value)
        for result, (own, asked) in zip(node.outputs, plan.results, strict=True):
            forms = [use.node for use in result.uses()]
            dtype = forms[0].outputs[0].dtype
            assert dtype is not None
            result.type, result.meta[KEY] = ir.TensorType(dtype), own
            after = result if own == asked else self.requantize(result, asked, dtype, node)
            if not any(form.outputs[0].is_graph_output() for form in forms):
                after.name = forms[0].outputs[0].name
            for form in forms:
                self.replace(form, after)
        return True

    # ---- real operands beside codes

    def _give_codes(self, node: ir.Node, spec: OperatorSpec) -> bool:
        """Let a kernel that quantizes its activations by their range have its weights as codes; whether it is one."""
        given = False
        for position, operand in enumerate(spec.operands[: len(node.inputs)]):
            form = find_producer(node.inputs[position])
            if form is None or not is_by_range(form) or operand.name not in spec.facts.channels:
                continue
            _, codes = self._read(form)
            if codes is not None:
                node.replace_input_with(position, codes)
                given = True
        return given

    # ---- what an operator would read and yield

    def _plan_node(self, node: ir.Node, spec: OperatorSpec) -> _Plan | None:
        """How a node computes with codes; None where it cannot."""
        asked = [self.find_grid(result) for result in node.outputs]
        dtypes = {dtype for _, dtype in filter(None, asked)}
        if not asked or None in asked or len(dtypes) != 1 or not spec.facts.types or spec.facts.quantization == RAW:
            return None
        (dtype,) = dtypes
        wanted = [one[0] for one in asked if one is not None]
        named, places = f"q{SHORT[dtype]}", {operand.name: p for p, operand in enumerate(spec.operands)}
        if named in spec.facts.slow:
            return None
        data = [p for p, value in enumerate(node.inputs) if is_real(value)]
        sums = {places[name] for name in spec.facts.products}
        weights = {places[name]: axis for name, axis in spec.facts.channels.items()}
        one_grid = spec.facts.grid == _SAME or spec.facts.quantization in (CODES, MATCHED)
        if one_grid and (
            not are_alike(wanted) or any(self.find_role(find_producer(node.inputs[p])) is None for p in data[:1])
        ):
            return None
        fixed = spec.facts.grid.get(named) if isinstance(spec.facts.grid, dict) else None
        own = [
            Quantization(np.array([fixed[0]], np.float32), np.array([fixed[1]], np.int64)) if fixed else one
            for one in wanted
        ]
        operands = self._find_operands(
            node, spec, [p for p in data if p not in sums], weights, dtype, wanted[0] if one_grid else None
        )
        if operands is None:
            return None
        found, grids = operands
        if fixed and not all(_can_stand_for(own[0], one, dtype, spec.facts.unbounded) for one in wanted):
            return None
        if not grids or not _are_steps_in_range(own, grids.values(), spec.facts.step_ratio.get(named)):
            return None
        if spec.facts.rounding is not None and (plan := self._plan_average(node, data[0], wanted[0])) is not None:
            return plan
        found = {p: note_grid(v, grids[p], self.dialect, self.scope) for p, v in found.items()}
        if one_grid and len(grids) == 1:
            own = [next(iter(grids.values()))] * len(own)
        elif one_grid:
            found = {p: self._move_to_grid(codes, grids[p], wanted[0], dtype, node) for p, codes in found.items()}
        sums_of_codes = self._quantize_sums(node, spec, grids, dtype, float(own[0].scale.min()))
        return None if sums_of_codes is None else _Plan(found | sums_of_codes, tuple(zip(own, wanted, strict=True)))

    def _quantize_sums(
        self, node: ir.Node, spec: OperatorSpec, grids: Mapping[int, Quantization], dtype: ir.DataType, step: float
    ) -> dict[int, ir.Value] | None:
        """The codes of what is added to products, by places; None where one has none."""
        places = {operand.name: place for place, operand in enumerate(spec.operands)}
        found = dict[int, ir.Value]()
        for name, factors in spec.facts.products.items():
            position = places[name]
            bias = node.inputs[position] if position < len(node.inputs) else None
            if bias is None:
                continue
            of_factors = [grids.get(places[factor]) for factor in factors]
            codes = self._quantize_bias(spec, position, bias, of_factors, dtype, step)
            if codes is None:
                return None
            found[position] = codes
        return found

    def _find_operands(
        self,
        node: ir.Node,
        spec: OperatorSpec,
        positions: Sequence[int],
        weights: Mapping[int, int],
        dtype: ir.DataType,
        grid: Quantization | None,
    ) -> tuple[dict[int, ir.Value], dict[int, Quantization]] | None:
        """The codes of some operands and what they stand for, by the places; None where one cannot be had as codes.

        `weights` are the axes of those that have a scale for each channel. Constants are on the `grid`, if there is one
        for all.
        """
        found: dict[int, ir.Value] = {}
        grids: dict[int, Quantization] = {}
        for position in positions:
            value = node.inputs[position]
            form = find_producer(value)
            known, codes = (None, None) if form is None else self._read(form, spec.facts.rounding is None)
            if known is None and value is not None and position in weights and dtype != ir.DataType.UINT8:
                known, codes = self._encode_weights(value, weights[position])
            if known is None and value is not None:
                known, codes = self._encode(value, grid, dtype)
            if known is None or codes is None or codes.dtype is None:
                return None
            if not _can_fit(known, codes.dtype, dtype, position in weights, weights.get(position)):
                return None
            if not is_allowed(spec, position, codes.dtype):
                return None
            found[position], grids[position] = codes, known
        return found, grids

    def _plan_average(self, node: ir.Node, position: int, wanted: Quantization) -> _Plan | None:
        """Plan to average codes as such: where the grids of operand and result differ by less than half a code."""
        form = find_producer(node.inputs[position])
        codes = None if form is None else form.inputs[0]
        if form is None or codes is None or not _are_near(read_node_grid(form), wanted):
            return None
        readers = [use.node for one in node.outputs[0].uses() for use in one.node.outputs[0].uses()]
        if not readers or any(self.find_role(one) != DEQUANTIZE_BY for one in readers):
            return None
        said, known = [read_node_grid(one) for one in readers], read_quantization(codes)
        if not are_alike(said) or (known is not None and known != said[0]):
            return None
        codes.meta[KEY] = said[0]
        return _Plan({position: codes}, ((said[0], said[0]),))

    def _read(self, form: ir.Node, note: bool = True) -> tuple[Quantization | None, ir.Value | None]:
        if self.find_role(form) != DEQUANTIZE_BY or form.inputs[0] is None:
            return None, None
        if not note:
            return read_node_grid(form), form.inputs[0]
        return read_node_grid(form), note_grid(form.inputs[0], read_node_grid(form), self.dialect, self.scope)

    def _encode(
        self, value: ir.Value, wanted: Quantization | None, dtype: ir.DataType
    ) -> tuple[Quantization | None, ir.Value | None]:
        """Codes of a constant: on a grid that is asked for, else on one that holds its numbers as they are."""
        numbers = read_initializer(value)
        known = None if numbers is None else find_exact_grid(numbers, dtype) if wanted is None else wanted
        if numbers is None or known is None:
            return None, None
        return known, self.make_constant(round_to_grid(numbers, known, dtype), value, known)

    def _encode_weights(self, value: ir.Value, axis: int) -> tuple[Quantization | None, ir.Value | None]:
        """Codes of constant weights that lie on a grid as they are, one for each channel: as exporters leave those
        that they have rounded, and what a factor for each channel makes of codes."""
        numbers = read_initializer(value)
        known = None if numbers is None else find_grids_of_channels(numbers, axis)
        if numbers is None or known is None:
            return None, None
        steps = known.scale.astype(np.float64).reshape([-1 if i == axis else 1 for i in range(numbers.ndim)])
        return known, self.make_constant(np.rint(numbers / steps).astype(np.int8), value, known)

    def _quantize_bias(
        self,
        spec: OperatorSpec,
        position: int,
        bias: ir.Value,
        factors: Sequence[Quantization | None],
        dtype: ir.DataType,
        result_step: float,
    ) -> ir.Value | None:
        """A bias in the steps that sums of products have; None where it is computed, or has more than 32 bits.

        What more bits say is cut off where it is next to nothing beside a step of the result, as where all weights of a
        channel are.
        """
        numbers = read_initializer(bias)
        if numbers is None or any(one is None for one in factors):
            return None
        scale = np.ones(1, np.float32)
        for one in factors:
            scale = scale if one is None else scale * one.scale.astype(np.float32)
        steps = np.rint(numbers.astype(np.float64).reshape(-1) / scale.astype(np.float64))
        if not np.isfinite(steps).all() or scale.size not in (1, steps.size):
            return None
        held = np.clip(steps, -(2**31), 2**31 - 1)
        if (np.abs(steps - held) * scale).max(initial=0) > _NEGLIGIBLE * result_step:
            return None
        narrow = is_allowed(spec, position, ir.DataType.INT32) and not is_allowed(spec, position, ir.DataType.INT64)
        wide = dtype == ir.DataType.INT16 and not narrow
        known = Quantization(scale, np.zeros(scale.size, np.int64))
        return self.make_constant(held.astype(np.int64 if wide else np.int32), bias, known)

    # ---- making

    def _move_to_grid(
        self, codes: ir.Value, known: Quantization, wanted: Quantization, dtype: ir.DataType, node: ir.Node
    ) -> ir.Value:
        if known == wanted:
            return codes
        return self.requantize(codes, wanted, dtype, node, before=True)


def _are_steps_in_range(
    results: Iterable[Quantization], operands: Iterable[Quantization], step_ratio: int | None
) -> bool:
    """Whether the steps of operands are at most so many times those of results, and normal numbers of single precision
    beside each other, as kernels divide them by so many times a result's step, which has to be finite."""
    if step_ratio is None:
        return True
    single = np.finfo(np.float32)
    steps = [float(step) for one in operands for step in one.scale.flat]
    known = list(results)
    coarse = all(max(steps) <= step_ratio * float(one.scale.min()) for one in known)
    finite = all(2 * (step_ratio + 1) * float(one.scale.max()) <= float(single.max) for one in known)
    return coarse and finite and min(steps) >= 2 * max(steps) * float(single.tiny)


def _can_stand_for(own: Quantization, asked: Quantization, dtype: ir.DataType, unbounded: bool) -> bool:
    """Whether codes on the grid that a kernel always writes are within a step of those that are asked for: where it is
    less than twice as coarse, and holds what is asked for if results may lie beyond it."""
    if float(own.scale[0]) >= 2 * float(asked.scale.min()):
        return False
    extremes = np.array([dtype.min, dtype.max], np.float64)
    least, largest = ((extremes - own.zero_point[0]) * float(own.scale[0])).tolist()
    held = (extremes[:, None] - asked.zero_point) * asked.scale.astype(np.float64)
    step = float(own.scale[0])
    return not unbounded or bool(held.min() >= least - step and held.max() <= largest + step)


def _are_near(one: Quantization, other: Quantization) -> bool:
    """Whether two grids differ by less than half a code anywhere within eight bits, and have one zero point."""
    alike = one.scale.size == other.scale.size == 1 and np.array_equal(one.zero_point, other.zero_point)
    return alike and bool(abs(float(one.scale[0]) / float(other.scale[0]) - 1) < 1 / 512)


def _can_fit(known: Quantization, own: ir.DataType, dtype: ir.DataType, weights: bool, axis: int | None) -> bool:
    """Whether kernels whose results are of a type take codes of another, on their grid."""
    if known.block_size or (known.per_axis and (not weights or known.axis != axis)):
        return False
    if own not in (_WEIGHTS.get(dtype, ()) if weights else (dtype,)):
        return False
    centred = own.is_signed() if weights else dtype == ir.DataType.INT16
    return not (centred and known.zero_point.any())

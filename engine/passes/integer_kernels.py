"""Pass `integer-kernels`: what stands between operands off a grid and results put on one computes with codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.constants import initial_array
from ..base.names import Scope
from ..base.quantization import DEQUANTIZE_BY, KEY, QUANTIZE_BY, Quantization, dequantize, grid_of, note_numbers, quantization
from ..base.startup import dataclass, field
from ..dialects.literals import attribute
from ..dialects.operators import Dialect, OperatorSpec
from ..expressions.functions import DTYPES
from ..rewrite.edits import remove_unused
from .base import Module, Visit
from .code_types import settle_types
from .grids import exact_grid, note_grid, on_grid, write_grids
from .quantize_dequantize import CODES, MATCHED, RAW

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: by the type of activations, the types that weights may have beside them
_WEIGHTS = {
    ir.DataType.INT8: (ir.DataType.INT8, ir.DataType.INT4),
    ir.DataType.INT16: (ir.DataType.INT8,),
    ir.DataType.UINT8: (ir.DataType.UINT8,),
}
#: what all operands of an operator are brought to one grid for
_SAME = "same"
#: the trait of operators whose results have the elements of an operand, and a number beside them
_PADS = "pads"


class IntegerKernels:
    """Let operators read and yield codes where ops.yaml says that there are kernels for them.

    The forms whose operands name a grid become the types of codes, or operators at the borders of what computes with
    real numbers. Nothing is computed coarser than the model says, but for one step where two roundings follow each other.
    """

    name, visits = "integer-kernels", Visit.OUTSIDE_FIRST

    def run(self, module: Module) -> None:
        """Change one graph; raises RewriteError where codes of unknown extents are read by another grid than
        that they are written by."""
        if not module.target.has_role(QUANTIZE_BY):
            return
        view = _Codes(module)
        if not any(view.role(node) for node in module.graph):
            return
        view.lift()
        settle_types(module.graph, module.target, module.names)
        view.hoist()
        for node in module.graph:
            if view.role(node) == QUANTIZE_BY:
                node.outputs[0].meta[KEY] = grid_of(node)  # which others may read by another one
        for node in list(module.graph):
            if node.graph is not None and view.role(node) is None:
                if not view.absorb(node):
                    view.sink(node)
        write_grids(module.graph, module.target, module.names)
        remove_unused(module.graph)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an operator is given in the place of real operands, and the grids of its results: own and asked for."""

    operands: dict[int, ir.Value] = field(default_factory=dict)
    results: tuple[tuple[Quantization, Quantization], ...] = ()


class _Codes:
    """One graph of the target, in which forms say where codes begin and end."""

    def __init__(self, module: Module) -> None:
        self._graph, self._dialect, self._scope = module.graph, module.target, module.names
        self._settle = module.rules.settle
        self._quantize = self._dialect.role(QUANTIZE_BY)
        self._dequantize = self._dialect.role(DEQUANTIZE_BY)

    def role(self, node: ir.Node | None) -> str | None:
        """Whether a node is one of the two forms, and which."""
        spec = None if node is None or node.domain != self._dialect.domain else self._dialect.operator(node.op_type)
        return spec.role if spec is not None and spec.role in (QUANTIZE_BY, DEQUANTIZE_BY) else None

    def lift(self) -> None:
        """Let operators that only move codes move real numbers, where all that reads their codes reads these."""
        for node in reversed(list(self._graph)):
            spec = self._spec(node)
            if spec is None or spec.facts.quantization != CODES or len(node.outputs) != 1:
                continue
            codes = node.outputs[0]
            readers = [use.node for use in codes.uses()]
            if not readers or codes.is_graph_output() or any(self.role(one) != DEQUANTIZE_BY for one in readers):
                continue
            if not _alike([grid_of(one) for one in readers]) or grid_of(readers[0]).per_axis:
                continue
            if not _allows(spec, 0, ir.DataType.FLOAT):
                continue
            for position, value in enumerate(node.inputs):
                if value is not None and value.dtype == codes.dtype:
                    made = self._form(self._dequantize, value, readers[0], ir.DataType.FLOAT)
                    self._graph.insert_before(node, made)
                    node.replace_input_with(position, made.outputs[0])
            codes.type = ir.TensorType(ir.DataType.FLOAT)
            for one in readers:
                ir.convenience.replace_all_uses_with(one.outputs[0], codes, replace_graph_outputs=True)
                self._graph.remove(one, safe=True)

    def hoist(self) -> None:
        """Let numbers be put on a grid before operators that only move them, and that alone read them."""
        for node in reversed(list(self._graph)):
            spec = self._spec(node)
            real = [p for p, value in enumerate(node.inputs) if _is_real(value)]
            if spec is None or spec.facts.quantization != CODES or len(real) != 1 or len(node.outputs) != 1:
                continue
            value, asked = node.inputs[real[0]], self._asked(node.outputs[0])
            maker = _producer(value)
            if value is None or maker is None or asked is None or self._reads(maker) or value.is_graph_output():
                continue
            if len(value.uses()) != 1 or not _allows(spec, real[0], asked[1]) or self._has_activation(node, spec):
                continue
            forms = [use.node for use in node.outputs[0].uses()]
            made = self._form(self._quantize, value, forms[0], asked[1])
            self._graph.insert_before(node, made)
            node.replace_input_with(real[0], made.outputs[0])
            node.outputs[0].type = ir.TensorType(asked[1])
            for form in forms:
                self._replace(form, node.outputs[0])

    def absorb(self, node: ir.Node) -> bool:
        """Let a node compute with codes, where its results are put on grids and its operands are off such."""
        spec = self._spec(node)
        plan = None if spec is None else self._plan(node, spec)
        if spec is None or plan is None:
            return False
        for position, value in plan.operands.items():
            node.replace_input_with(position, value)
        for name, value in spec.facts.coded.items():
            node.attributes[name] = attribute(spec.options[name], value)
        for result, (own, asked) in zip(node.outputs, plan.results, strict=True):
            forms = [use.node for use in result.uses()]
            dtype = forms[0].outputs[0].dtype
            assert dtype is not None
            result.type, result.meta[KEY] = ir.TensorType(dtype), own
            after = result if own == asked else self._requantize(result, asked, dtype, node)
            if not any(form.outputs[0].is_graph_output() for form in forms):
                after.name = forms[0].outputs[0].name
            for form in forms:
                self._replace(form, after)
        return True

    def _replace(self, form: ir.Node, after: ir.Value) -> None:
        before = form.outputs[0]
        if before.is_graph_output() and not after.is_graph_output():
            after.name = before.name
        ir.convenience.replace_all_uses_with(before, after, replace_graph_outputs=True)
        self._graph.remove(form, safe=True)

    def sink(self, node: ir.Node) -> bool:
        """Let an operator that moves elements move codes, whose real numbers are then read behind it."""
        spec = self._spec(node)
        if spec is None or self._has_activation(node, spec):
            return False
        pads = _PADS in spec.traits
        if spec.facts.quantization not in (CODES, MATCHED) and not pads:
            return False
        real = [p for p, value in enumerate(node.inputs) if _is_real(value)]
        first = next(filter(self._reads, [_producer(node.inputs[p]) for p in real]), None)
        if first is None or first.inputs[0] is None or not all(map(_is_real, node.outputs)):
            return False
        known, dtype = grid_of(first), first.inputs[0].dtype
        if dtype is None or not all(_allows(spec, p, dtype) for p in real):
            return False
        if initial_array(first.inputs[0]) is not None:
            return self._move_constant(node, first, known)
        codes = [self._codes_on(node.inputs[p], known, dtype, pads) for p in real]
        if known.per_axis or any(one is None for one in codes):
            return False
        for position, value in zip(real, codes, strict=True):
            node.replace_input_with(position, value)
        for result in node.outputs:
            uses, outputs = list(result.uses()), result.is_graph_output()
            made = self._form(self._dequantize, result, first, ir.DataType.FLOAT)
            for user, position in uses:
                user.replace_input_with(position, made.outputs[0])
            if outputs:
                made.outputs[0].name, result.name = result.name, self._scope.fresh(f"{result.name}/codes")
                for position, value in enumerate(self._graph.outputs):
                    if value is result:
                        self._graph.outputs[position] = made.outputs[0]
            result.type, result.meta[KEY] = ir.TensorType(dtype), known
            self._graph.insert_after(node, made)
        return True

    def _reads(self, form: ir.Node | None) -> bool:
        return self.role(form) == DEQUANTIZE_BY

    def _codes_on(
        self, value: ir.Value | None, known: Quantization, dtype: ir.DataType, pads: bool
    ) -> ir.Value | None:
        """The codes that real numbers were read off a grid, or for a pad those of a number that lies on the grid."""
        form = _producer(value)
        if form is not None and self._reads(form):
            codes = form.inputs[0]
            alike = grid_of(form) == known and codes is not None and codes.dtype == dtype
            return note_grid(codes, known, self._dialect, self._scope) if alike and codes is not None else None
        numbers = None if value is None or not pads else initial_array(value)
        if value is None or numbers is None:
            return None
        codes_of = on_grid(numbers, known, dtype)
        if not np.isneginf(numbers).all() and not np.allclose(dequantize(codes_of, known), numbers, rtol=1e-5):
            return None
        return self._constant(codes_of, value, known)

    def _move_constant(self, node: ir.Node, form: ir.Node, known: Quantization) -> bool:
        """Move the codes of a constant, once; whether that is known. Where an axis goes, numbers along it tell."""
        codes = None if form.inputs[0] is None else initial_array(form.inputs[0])
        others = [value for value in node.inputs if value is not None and value.producer() is not form]
        if codes is None or self._settle is None or len(node.outputs) != 1 or any(map(_is_real, others)):
            return False
        moved = self._compute(node, form, codes)
        if moved is None:
            return False
        axis, extents = known.axis, [-1 if axis == known.axis else 1 for axis in range(codes.ndim)]
        if known.per_axis:
            along = np.broadcast_to(np.arange(known.scale.size, dtype=np.int32).reshape(extents), codes.shape)
            places = self._compute(node, form, np.ascontiguousarray(along))
            axis = -1 if places is None else _find_axis(places, known.scale.size)
            if axis < 0:
                return False
        constant = self._constant(moved, node.outputs[0], None)
        made = self._form(self._dequantize, constant, form, ir.DataType.FLOAT)
        made.attributes["axis"] = ir.AttrInt64("axis", axis)
        note_numbers(made)
        self._graph.insert_before(node, made)
        ir.convenience.replace_all_uses_with(node.outputs[0], made.outputs[0], replace_graph_outputs=True)
        return True

    def _compute(self, node: ir.Node, form: ir.Node, elements: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """What a node yields of constants, with others in the place of those that a form reads."""
        tensor = ir.Tensor(elements)
        given = ir.Value(name="given", shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
        inputs = [given if value is form.outputs[0] else value for value in node.inputs]
        copy = ir.Node(node.domain, node.op_type, inputs, node.attributes.values(), num_outputs=1)
        found = None if self._settle is None else self._settle(copy)
        copy.resize_inputs(0)
        return None if not found else found[0].numpy() if isinstance(found[0], ir.LazyTensor) else found[0]

    # ---- what an operator would read and yield

    def _plan(self, node: ir.Node, spec: OperatorSpec) -> _Plan | None:
        """How a node computes with codes; None where it cannot."""
        asked = [self._asked(result) for result in node.outputs]
        dtypes = {dtype for _, dtype in filter(None, asked)}
        if not asked or None in asked or len(dtypes) != 1 or not spec.facts.types or spec.facts.quantization == RAW:
            return None
        (dtype,) = dtypes
        wanted = [one[0] for one in asked if one is not None]
        named, places = f"q{_NAMES[dtype]}", {operand.name: p for p, operand in enumerate(spec.operands)}
        data = [p for p, value in enumerate(node.inputs) if _is_real(value)]
        sums = {places[name] for name in spec.facts.products}
        weights = {places[name]: axis for name, axis in spec.facts.channels.items()}
        one_grid = spec.facts.grid == _SAME or spec.facts.quantization in (CODES, MATCHED)
        if one_grid and (not _alike(wanted) or any(self.role(_producer(node.inputs[p])) is None for p in data[:1])):
            return None
        fixed = spec.facts.grid.get(named) if isinstance(spec.facts.grid, dict) else None
        own = [Quantization(np.float32([fixed[0]]), np.int64([fixed[1]])) if fixed else one for one in wanted]
        found: dict[int, ir.Value] = {}
        grids: dict[int, Quantization] = {}
        for position in [p for p in data if p not in sums]:
            value = node.inputs[position]
            form = _producer(value)
            known, codes = (None, None) if form is None else self._read(form, spec.facts.rounding is None)
            if known is None and value is not None:
                known, codes = self._encode(value, wanted[0] if one_grid else None, dtype)
            if known is None or codes is None or codes.dtype is None:
                return None
            if not _fits(known, codes.dtype, dtype, position in weights, weights.get(position)):
                return None
            if not _allows(spec, position, codes.dtype):
                return None
            found[position], grids[position] = codes, known
        if not grids:
            return None
        if spec.facts.rounding is not None and (plan := self._average(node, data[0], wanted[0])) is not None:
            return plan
        found = {p: note_grid(v, grids[p], self._dialect, self._scope) for p, v in found.items()}
        if one_grid and len(grids) == 1:
            own = [next(iter(grids.values()))] * len(own)
        elif one_grid:
            found = {p: self._on(codes, grids[p], wanted[0], dtype, node) for p, codes in found.items()}
        for name, factors in spec.facts.products.items():
            position = places[name]
            bias = node.inputs[position] if position < len(node.inputs) else None
            if bias is None:
                continue
            known_sums = self._bias(spec, position, bias, [grids.get(places[f]) for f in factors], dtype)
            if known_sums is None:
                return None
            found[position] = known_sums
        return _Plan(found, tuple(zip(own, wanted, strict=True)))

    def _asked(self, result: ir.Value) -> tuple[Quantization, ir.DataType] | None:
        """The grid that all that reads a result puts it on, and the type of its codes."""
        forms = [use.node for use in result.uses()]
        if not forms or result.is_graph_output() or any(self.role(form) != QUANTIZE_BY for form in forms):
            return None
        dtype = forms[0].outputs[0].dtype
        if dtype is None or not _alike([grid_of(form) for form in forms]):
            return None
        return (grid_of(forms[0]), dtype) if all(form.outputs[0].dtype == dtype for form in forms) else None

    def _average(self, node: ir.Node, position: int, wanted: Quantization) -> _Plan | None:
        """How codes are averaged as such, on whatever grid: where they are read off one and put on one that differs by
        less than half a code at the ends of the type, so that halves are rounded in one direction. Those that read the
        average say its grid."""
        form = _producer(node.inputs[position])
        codes = None if form is None else form.inputs[0]
        if form is None or codes is None or not _near(grid_of(form), wanted):
            return None
        readers = [use.node for one in node.outputs[0].uses() for use in one.node.outputs[0].uses()]
        if not readers or any(self.role(one) != DEQUANTIZE_BY for one in readers):
            return None
        said, known = [grid_of(one) for one in readers], quantization(codes)
        if not _alike(said) or (known is not None and known != said[0]):
            return None
        codes.meta[KEY] = said[0]
        return _Plan({position: codes}, ((said[0], said[0]),))

    def _read(self, form: ir.Node, note: bool = True) -> tuple[Quantization | None, ir.Value | None]:
        if self.role(form) != DEQUANTIZE_BY or form.inputs[0] is None:
            return None, None
        if not note:
            return grid_of(form), form.inputs[0]
        return grid_of(form), note_grid(form.inputs[0], grid_of(form), self._dialect, self._scope)

    def _encode(
        self, value: ir.Value, wanted: Quantization | None, dtype: ir.DataType
    ) -> tuple[Quantization | None, ir.Value | None]:
        """Codes of a constant: on a grid that is asked for, else on one that holds its numbers as they are."""
        numbers = initial_array(value)
        known = None if numbers is None else exact_grid(numbers, dtype) if wanted is None else wanted
        if numbers is None or known is None:
            return None, None
        return known, self._constant(on_grid(numbers, known, dtype), value, known)

    def _bias(
        self,
        spec: OperatorSpec,
        position: int,
        bias: ir.Value,
        factors: Sequence[Quantization | None],
        dtype: ir.DataType,
    ) -> ir.Value | None:
        """A bias in the steps that sums of products have; None where it is computed, or has more than 32 bits."""
        numbers = initial_array(bias)
        if numbers is None or any(one is None for one in factors):
            return None
        scale = np.float32(1)
        for one in factors:
            scale = scale * (np.float32(1) if one is None else one.scale.astype(np.float32))
        steps = np.rint(numbers.astype(np.float64).reshape(-1) / scale.astype(np.float64))
        if not np.isfinite(steps).all() or np.abs(steps).max(initial=0) >= 2**31 or scale.size not in (1, steps.size):
            return None
        narrow = _allows(spec, position, ir.DataType.INT32) and not _allows(spec, position, ir.DataType.INT64)
        wide = dtype == ir.DataType.INT16 and not narrow
        known = Quantization(np.atleast_1d(scale), np.zeros(scale.size, np.int64))
        return self._constant(steps.astype(np.int64 if wide else np.int32), bias, known)

    # ---- making

    def _on(
        self, codes: ir.Value, known: Quantization, wanted: Quantization, dtype: ir.DataType, node: ir.Node
    ) -> ir.Value:
        if known == wanted:
            return codes
        return self._requantize(codes, wanted, dtype, node, before=True)

    def _requantize(
        self, codes: ir.Value, wanted: Quantization, dtype: ir.DataType, node: ir.Node, before: bool = False
    ) -> ir.Value:
        """Codes brought to another grid."""
        spec = self._dialect.role("quantize")
        made = ir.Node(spec.domain, spec.name, [codes], num_outputs=1)
        made.metadata_props.update(node.metadata_props)
        result = made.outputs[0]
        result.type, result.shape, result.meta[KEY] = ir.TensorType(dtype), codes.shape, wanted
        self._scope.name_node(made, f"{codes.name}/{spec.name}")
        (self._graph.insert_before if before else self._graph.insert_after)(node, made)
        return result

    def _constant(self, elements: np.ndarray[Any, Any], like: ir.Value, known: Quantization | None) -> ir.Value:
        made = ir.Value(
            name=self._scope.fresh(f"{like.name}/codes"),
            shape=ir.Shape(elements.shape),
            type=ir.TensorType(ir.DataType.from_numpy(elements.dtype)),
            const_value=ir.Tensor(elements),
        )
        if known is not None:
            made.meta[KEY] = known
        self._graph.register_initializer(made)
        return made

    def _form(self, spec: OperatorSpec, value: ir.Value, like: ir.Node, dtype: ir.DataType) -> ir.Node:
        """A form over a value, by the grid of another."""
        made = ir.Node(spec.domain, spec.name, [value, *like.inputs[1:]], like.attributes.values(), num_outputs=1)
        made.metadata_props.update(like.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = ir.TensorType(dtype), value.shape
        self._scope.name_node(made, f"{value.name}/{spec.role}")
        return made

    def _spec(self, node: ir.Node) -> OperatorSpec | None:
        spec = self._dialect.operator(node.op_type) if node.domain == self._dialect.domain else None
        return None if spec is None or self.role(node) is not None else spec

    def _has_activation(self, node: ir.Node, spec: OperatorSpec) -> bool:
        name = self._dialect.facts.activation
        held = node.attributes.get(name or "")
        return held is not None and spec.options[held.name].default != held.value


def _producer(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()


def _is_real(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and value.dtype.is_floating_point()


def _alike(grids: Sequence[Quantization]) -> bool:
    return all(one == grids[0] for one in grids)


def _near(one: Quantization, other: Quantization) -> bool:
    """Whether two grids differ by less than half a code anywhere within eight bits, and have one zero point."""
    alike = one.scale.size == other.scale.size == 1 and np.array_equal(one.zero_point, other.zero_point)
    return alike and bool(abs(float(one.scale[0]) / float(other.scale[0]) - 1) < 1 / 512)


def _allows(spec: OperatorSpec, position: int, dtype: ir.DataType) -> bool:
    """Whether ops.yaml has an element type among those of an operand, as codes or as numbers that stand for such; where it
    names none, what moves codes moves those of all types."""
    types = spec.facts.types
    if not types:
        return spec.facts.quantization == CODES
    words = types[min(position, len(types) - 1)].split()
    name = _NAMES[dtype]
    return not {"any", name, f"q{name}"}.isdisjoint(words)


def _fits(known: Quantization, own: ir.DataType, dtype: ir.DataType, weights: bool, axis: int | None) -> bool:
    """Whether kernels whose results are of a type take codes of another, on their grid."""
    if known.block_size or (known.per_axis and (not weights or known.axis != axis)):
        return False
    if own not in (_WEIGHTS.get(dtype, ()) if weights else (dtype,)):
        return False
    centred = own.is_signed() if weights else dtype == ir.DataType.INT16
    return not (centred and known.zero_point.any())


def _find_axis(places: np.ndarray[Any, Any], count: int) -> int:
    """The axis along which numbers are those from 0 to a count, the same everywhere else; -1 where there is none."""
    for axis, extent in enumerate(places.shape):
        along = np.arange(count).reshape([-1 if i == axis else 1 for i in range(places.ndim)])
        if extent == count and (places == along).all():
            return axis
    return -1

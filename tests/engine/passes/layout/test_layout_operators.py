"""Every category in ops.yaml holds: moved operators compute the same, for random shapes, options and orders."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.reference
import onnx_ir as ir
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnrewrite.engine.base.names import Scope
from nnrewrite.engine.dialects.operators import OperatorSpec
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.packs import folders, headers, loader
from nnrewrite.engine.passes.layout.axis_groups import ATTRIBUTE, TRANSPARENT, find_blocks
from nnrewrite.engine.passes.layout.permute_weights import Tensors
from nnrewrite.engine.passes.layout.placement import Layout
from nnrewrite.engine.passes.layout.views import DEQUANTIZE, PERMUTE, QUANTIZE
from nnrewrite.engine.syntax import tree
from nnrewrite.engine.syntax.tree_traversal import walk

ONNX = load().find_dialect("onnx")
MOVABLE = sorted(n for n, s in ONNX.operators.items() if s.facts.layout in (TRANSPARENT, ATTRIBUTE))
OPSET = 22

Array = np.ndarray[Any, Any]
Draw = Callable[..., Any]


@dataclass
class Case:
    """One operator with its operands: arrays that are fed, or constants."""

    fed: list[Array]
    options: dict[str, Any] = field(default_factory=dict)
    constants: dict[int, Array] = field(default_factory=dict)
    results: int = 1


def shapes(draw: Draw, low: int = 2, high: int = 5) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 4), min_size=low, max_size=high)))


def array(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    rng = np.random.default_rng(len(shape))
    if dtype is bool:
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(1, 7, shape).astype(dtype)
    return rng.uniform(0.1, 0.9, shape).astype(dtype)


def numbers(*values: int) -> Array:
    return np.array(values, np.int64)


def operand(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    lower = draw(st.integers(0, len(shape)))
    return tuple(1 if draw(st.booleans()) else extent for extent in shape[lower:])


def elementwise(draw: Draw, name: str) -> Case:
    shape = shapes(draw)
    spec = ONNX.find_operator(name, OPSET)
    assert spec is not None
    schema = onnx.defs.get_schema(name, OPSET)
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    kinds = {"tensor(float)": np.float32, "tensor(bool)": bool, "tensor(uint32)": np.uint32, "tensor(int64)": np.int64}
    fed = []
    count = 2 if spec.operands[0].variadic else len(spec.operands)
    for position in range(count):
        parameter = schema.inputs[min(position, len(schema.inputs) - 1)]
        types = allowed.get(parameter.type_str, [parameter.type_str])
        kind = next(dtype for text, dtype in kinds.items() if text in types)
        fed.append(array(shape if position == 0 else operand(draw, shape), kind))
    options = {"BitShift": {"direction": "LEFT"}, "Mod": {"fmod": 1}, "Cast": {"to": onnx.TensorProto.INT32}}
    return Case(fed, options.get(name, {}))


def with_axis(name: str, results: int = 1) -> Callable[[Draw], Case]:
    def case(draw: Draw) -> Case:
        shape = shapes(draw)
        return Case([array(shape)], {"axis": draw(st.integers(-len(shape), len(shape) - 1))}, results=results)

    return case


def clip(draw: Draw) -> Case:
    return Case([array(shapes(draw)), np.float32(0.2), np.float32(0.6)])


def where(draw: Draw) -> Case:
    shape = shapes(draw)
    return Case([array(shape, bool), array(operand(draw, shape)), array(operand(draw, shape))])


def concat(draw: Draw) -> Case:
    shape = shapes(draw)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    other = list(shape)
    other[axis] = draw(st.integers(1, 3))
    return Case([array(shape), array(tuple(other))], {"axis": axis})


def split(draw: Draw) -> Case:
    shape = list(shapes(draw))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = 3
    return Case([array(tuple(shape))], {"axis": axis}, {1: numbers(1, 2)}, results=2)


def slices(draw: Draw) -> Case:
    shape = shapes(draw)
    rank = len(shape)
    if draw(st.booleans()):
        return Case([array(shape)], {}, {1: numbers(*[0] * rank), 2: numbers(*(max(1, n - 1) for n in shape))})
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    signed = [axis - rank if draw(st.booleans()) else axis for axis in axes]
    steps = [draw(st.sampled_from([1, 2, -1])) for _ in axes]
    starts = [-1 if step < 0 else 0 for step in steps]
    ends = [-(2**31) if step < 0 else 2**31 - 1 for step in steps]
    return Case([array(shape)], {}, dict(enumerate((numbers(*v) for v in (starts, ends, signed, steps)), 1)))


def pad(draw: Draw) -> Case:
    shape = shapes(draw)
    axes = None
    if draw(st.booleans()):
        axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    count = 2 * len(shape if axes is None else axes)
    pads = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    constants: dict[int, Array] = {1: numbers(*pads)}
    if axes is not None:
        constants |= {2: np.float32(1.5), 3: numbers(*axes)}
    return Case([array(shape)], {}, constants)


def tile(draw: Draw) -> Case:
    shape = shapes(draw)
    return Case([array(shape)], {}, {1: numbers(*(draw(st.integers(1, 2)) for _ in shape))})


def expand(draw: Draw) -> Case:
    shape = shapes(draw)
    given = operand(draw, shape) or (1,)
    return Case([array(given)], {}, {1: numbers(*shape)})


def reshape(draw: Draw) -> Case:
    """Runs of axes merged, axes split, and axes of extent 1 put in and left out."""
    before: list[int] = []
    after: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        a, b, kind = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
        before += [[a, b], [a * b], [a], [1]][kind]
        after += [[a * b], [a, b], [a], []][kind]
    shape = [*after, 1] if draw(st.booleans()) else after
    wanted = [-1 if i == 0 and draw(st.booleans()) else extent for i, extent in enumerate(shape)]
    return Case([array(tuple(before) or (1,))], {}, {1: numbers(*wanted)})


def squeeze(draw: Draw) -> Case:
    shape = shapes(draw)
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    if not ones:
        shape, ones = (*shape, 1), [len(shape)]
    if draw(st.booleans()):
        return Case([array(shape)])
    return Case([array(shape)], {}, {1: numbers(*draw(st.lists(st.sampled_from(ones), min_size=1, unique=True)))})


def unsqueeze(draw: Draw) -> Case:
    shape = shapes(draw, 2, 3)
    axes = draw(st.lists(st.integers(0, len(shape)), min_size=1, max_size=1))
    return Case([array(shape)], {}, {1: numbers(*(a - len(shape) - 1 if draw(st.booleans()) else a for a in axes))})


def reduction(draw: Draw) -> Case:
    shape = shapes(draw)
    options = {"keepdims": draw(st.integers(0, 1))}
    if draw(st.integers(0, 4)) == 0:
        return Case([array(shape)], options)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    return Case([array(shape)], options, {1: numbers(*axes)})


def arg(draw: Draw) -> Case:
    case = with_axis("")(draw)
    case.options["keepdims"] = draw(st.integers(0, 1))
    return case


def gather(draw: Draw) -> Case:
    case = with_axis("")(draw)
    index = draw(st.sampled_from([np.array(0), np.array([0, 0]), np.array([[0], [0]])])).astype(np.int64)
    case.constants[1] = index
    return case


def gather_elements(draw: Draw) -> Case:
    case = with_axis("")(draw)
    case.fed.append(np.zeros(case.fed[0].shape, np.int64))
    return case


def scatter_elements(draw: Draw) -> Case:
    case = with_axis("")(draw)
    shape = list(case.fed[0].shape)
    shape[case.options["axis"]] = 1
    case.fed += [np.zeros(shape, np.int64), array(tuple(shape))]
    return case


def cast_like(draw: Draw) -> Case:
    return Case([array(shapes(draw)), array((2,), np.int64)])


def crop_or_pad(draw: Draw) -> Case:
    shape = shapes(draw)
    axes = list(range(len(shape)))
    options = {}
    if draw(st.booleans()):
        axes = draw(st.lists(st.sampled_from(axes), min_size=1, unique=True))
        options["axes"] = [axis - len(shape) if draw(st.booleans()) else axis for axis in axes]
    return Case([array(shape)], options, {1: numbers(*(draw(st.integers(1, 5)) for _ in axes))})


def cumsum(draw: Draw) -> Case:
    shape = shapes(draw)
    return Case([array(shape)], {}, {1: np.array(draw(st.integers(0, len(shape) - 1)), np.int64)})


def topk(draw: Draw) -> Case:
    case = with_axis("", 2)(draw)
    case.constants[1] = numbers(1)
    return case


def transpose(draw: Draw) -> Case:
    shape = shapes(draw)
    return Case([array(shape)], {"perm": draw(st.permutations(range(len(shape))))})


def scaled(dtype: Any) -> Callable[[Draw], Case]:
    def case(draw: Draw) -> Case:
        shape = shapes(draw)
        axis = draw(st.integers(0, len(shape) - 1))
        if draw(st.booleans()):
            return Case([array(shape, dtype)], {}, {1: np.float32(0.1), 2: np.uint8(3)})
        scale = np.linspace(0.05, 0.1, shape[axis]).astype(np.float32)
        return Case([array(shape, dtype)], {"axis": axis}, {1: scale, 2: np.arange(shape[axis]).astype(np.uint8)})

    return case


def normalized(draw: Draw) -> Case:
    shape = shapes(draw, 4, 4)
    axes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
    return Case([array(shape)], {"axes": axes})


SPECIAL: dict[str, Callable[[Draw], Case]] = {
    "Clip": clip,
    "Where": where,
    "Concat": concat,
    "Split": split,
    "Slice": slices,
    "Pad": pad,
    "Tile": tile,
    "Expand": expand,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Softmax": with_axis("Softmax"),
    "LogSoftmax": with_axis("LogSoftmax"),
    "Hardmax": with_axis("Hardmax"),
    "LpNormalization": with_axis("LpNormalization"),
    "MeanVarianceNormalization": normalized,
    "CastLike": cast_like,
    "Dropout": lambda draw: Case([array(shapes(draw))], results=draw(st.integers(1, 2))),
    "CenterCropPad": crop_or_pad,
    "CumSum": cumsum,
    "TopK": topk,
    "Gather": gather,
    "GatherElements": gather_elements,
    "ScatterElements": scatter_elements,
    "ArgMax": arg,
    "ArgMin": arg,
    "Transpose": transpose,
    "QuantizeLinear": scaled(np.float32),
    "DequantizeLinear": scaled(np.uint8),
    **{name: reduction for name in MOVABLE if name.startswith("Reduce")},
}

#: neither ONNX Runtime nor the reference evaluator computes these at the opset of the tests
NEWER = {"BitCast", "Swish"}


def model(name: str, case: Case) -> onnx.ModelProto:
    count = max([len(case.fed), *(position + 1 for position in case.constants)])
    fed = iter(range(len(case.fed)))
    inputs = [f"c{i}" if i in case.constants else f"x{next(fed)}" for i in range(count)]
    outputs = [f"y{i}" for i in range(case.results)]
    node = onnx.helper.make_node(name, inputs, outputs, name="node", **case.options)
    of = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.helper.make_tensor_value_info(f"x{i}", of(a.dtype), a.shape) for i, a in enumerate(case.fed)],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), f"c{i}") for i, a in case.constants.items()],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)


def run(proto: onnx.ModelProto, fed: list[Array]) -> list[Array]:
    feeds = {f"x{i}": np.asarray(a) for i, a in enumerate(fed)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return [np.asarray(a) for a in onnx.reference.ReferenceEvaluator(proto).run(None, feeds)]
    return [np.asarray(a) for a in session.run(None, feeds)]


def emitted(pack: loader.Pack, read: dict[str, set[str]]) -> dict[str, str]:
    """Every operator that a rule, a table or a definition of a pack writes, with the first place.

    `read` has what was read of packs before, by place: most packs have most of their files in common.
    """
    found: dict[str, str] = {}
    dialect = pack.catalogue.find_dialect("onnx")
    for item in (item for file in pack.files for item in file.items):
        place = f"{item.span.file}:{item.span.line}"
        if place not in read:
            over = item.over if isinstance(item, tree.Rule) else item.entries if isinstance(item, tree.Table) else ()
            written = item.templates if isinstance(item, tree.Rule) else item
            calls = {call.callee for call in walk(written) if isinstance(call, tree.Call)}
            read[place] = calls | {entry.target for entry in over}
        for name in read[place]:
            if dialect.find_operator(name, pack.opsets[1]) is not None:
                found.setdefault(name, place)
    return found


@pytest.mark.thorough
def test_every_operator_that_rules_write_has_a_category() -> None:
    packs, read = [loader.load(headers.add_bases([name])) for name in folders.list_built_in()], dict[str, set[str]]()
    known = {name: spec for pack in packs for name, spec in pack.catalogue.find_dialect("onnx").operators.items()}
    written = {name: place for pack in packs for name, place in emitted(pack, read).items()}
    missing = {name: place for name, place in written.items() if category(known.get(name)) is None}
    assert not missing, (
        f"no layout is given in ops.yaml for {missing}: say `layout: transparent` for an operator that works element by"
        " element, `attribute` with what counts its axes, `implicit` for one with a layout of its own, `terminate` for"
        " any other (the comment above the operators of onnx in ops.yaml has the words; docs/layout.md tells more)"
    )
    assert len(written) > 80


def test_every_operator_of_onnx_has_a_category() -> None:
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and not s.deprecated}
    assert not [name for name in sorted(names) if category(ONNX.operators.get(name)) is None]


def category(spec: OperatorSpec | None) -> str | None:
    found = spec.facts.layout if spec is not None else None
    return found if found in (TRANSPARENT, ATTRIBUTE, "implicit", "terminate") else None


def test_every_movable_operator_can_be_tested() -> None:
    assert set(SPECIAL) <= set(MOVABLE)
    attribute = {n for n in MOVABLE if ONNX.operators[n].facts.layout == ATTRIBUTE}
    assert attribute <= set(SPECIAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in MOVABLE if n not in NEWER])
def test_an_operator_commutes_with_orders_of_its_blocks(name: str) -> None:
    moved = 0

    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal moved
        case = SPECIAL[name](data.draw) if name in SPECIAL else elementwise(data.draw, name)
        proto = model(name, case)
        graph = ir.from_proto(proto).graph
        views = ONNX.operators[name].role in (PERMUTE, QUANTIZE, DEQUANTIZE)
        tensors = (Plain if views else Tensors)(graph, ONNX, OPSET)
        blocks = tensors.find_blocks(graph[0])
        if blocks is None:
            return
        orders = list(itertools.islice(itertools.permutations(range(blocks.count)), 120))
        Layout(tensors, {graph[0]: data.draw(st.sampled_from(orders))}, Scope(graph)).apply()
        graph.sort()
        after = ir.to_proto(ir.Model(graph, ir_version=10))
        onnx.checker.check_model(after, full_check=True)
        for want, got in zip(run(proto, case.fed), run(after, case.fed), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        moved += 1

    check()
    assert moved >= 3, "hardly any case could be moved"


class Plain(Tensors):
    """Tensors without views: what permutes or scales is the operator that it also is, and has to be remapped as one."""

    def read_permutation(self, node: ir.Node) -> None:
        return None

    def find_scaling(self, node: ir.Node) -> None:
        return None


@pytest.mark.parametrize(("dtype", "extents", "moves"), [("INT32", [2, 3], True), ("INT8", [2, 3, 4], False)])
def test_bits_that_are_read_as_other_numbers_keep_their_axes_where_these_are_as_wide(
    dtype: str, extents: list[int], moves: bool
) -> None:
    spec = load().find_dialect("tflite").operators["BITCAST"]
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2, 3]))
    for source, result in ((x, (dtype, extents)), ((dtype, extents), x)):
        values = [
            one
            if isinstance(one, ir.Value)
            else ir.Value(name="y", type=ir.TensorType(ir.DataType[one[0]]), shape=ir.Shape(one[1]))
            for one in (source, result)
        ]
        node = ir.Node("tflite", "BITCAST", [values[0]], outputs=[values[1]])
        assert (find_blocks(node, spec) is not None) is moves

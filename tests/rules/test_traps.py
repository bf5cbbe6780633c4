"""Branches of rules that no draw comes upon: types of results that the file decides, extents that it does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.errors import RewriteError
from nnrewrite.engine.base.quantization import KEY, Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter

from ..engine.expressions.test_tables import value
from .test_loops import Block

Single = Callable[..., bytes]
F32 = "FLOAT32"


pytestmark = pytest.mark.usefixtures("counted")

VALID = [ir.AttrString("padding", "VALID"), ir.AttrInt64("stride_h", 1), ir.AttrInt64("stride_w", 1)]
#: steps and zero points of what a convolution reads, of weights, bias and result
GRIDS = ((0.5, 3), (0.25, 0), (0.125, 0), (14.0, -5))


def agree(interpreter: Interpreter, source: bytes, *inputs: Any, opset: int | None = None) -> None:
    """The interpreter and the converted model yield the same type, shape and, but for a last digit, elements."""
    session = onnxruntime.InferenceSession(nnrewrite.convert(source, opset=opset).SerializeToString())
    names = [one.name for one in session.get_inputs()]
    ours = session.run(None, dict(zip(names, inputs, strict=True)))
    theirs = interpreter.run(source, [inputs])[0]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "result", "shape"),
    [
        (np.array([1.5, -0.0, -3.25e-20, np.inf], np.float32), "INT32", [4]),
        (np.array([1069547520, -2147483648, 1, -8388608], np.int32), F32, [4]),
        (np.array([[1, -2], [-32768, 300]], np.int16), "INT32", [2]),
        (np.array([-2, 70000], np.int32), "INT16", [2, 2]),
        (np.array([1.5, -2.0], np.float32), "UINT8", [2, 4]),
    ],
    ids=["float to integer", "integer to float", "to wider", "to narrower", "float to bytes"],
)
def test_bits_are_taken_for_another_type(
    interpreter: Interpreter, single: Single, x: np.ndarray, result: str, shape: list[int]
) -> None:
    kind = {"float32": F32}.get(x.dtype.name, x.dtype.name.upper())
    agree(interpreter, single("BITCAST", {"x": (kind, list(x.shape))}, [(result, shape)]), x)


@pytest.mark.parametrize("axes", [[], [1]])
def test_no_axes_reduce_nothing(interpreter: Interpreter, single: Single, axes: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shape = [2] if axes else [2, 3]
    for operator in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        agree(interpreter, single(operator, {"x": (F32, [2, 3]), "axes": np.array(axes, np.int32)}, [(F32, shape)]), x)


def test_integers_multiply_to_wider_ones(interpreter: Interpreter, single: Single) -> None:
    a = np.array([[[-128, 127], [3, -4]]], np.int8)
    source = single("BATCH_MATMUL", {"a": ("INT8", [1, 2, 2]), "b": ("INT8", [1, 2, 2])}, [("INT32", [1, 2, 2])])
    agree(interpreter, source, a, a)


@pytest.mark.parametrize("stride", [1, 2])
def test_extents_that_the_file_does_not_tell_are_padded_for_at_run_time(
    interpreter: Interpreter, single: Single, stride: int
) -> None:
    """Unless what is padded is the same for all of them."""
    w = np.random.default_rng(0).uniform(-1, 1, (3, 3, 2, 2)).astype(np.float32)
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride}
    options |= {"dilation_h_factor": 2, "dilation_w_factor": 2}
    b = np.zeros(3, np.float32)
    source = single("CONV_2D", {"x": (F32, [1, None, None, 2]), "w": w, "b": b}, [(F32, [1, None, None, 3])], **options)
    model = nnrewrite.convert(source)
    assert ("Pad" in {node.op_type for node in model.graph.node}) == (stride == 2)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 7, 6, 2)).astype(np.float32)
    agree(interpreter, source, x)


def grid(scale: float, zero: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero]))


@pytest.mark.parametrize("scale", [2.4, 2.6, 10.0, 30500.0])
def test_steps_of_a_mask_are_shifted_out_of_range_by_a_softmax_of_16_bits(
    scale: float, interpreter: Interpreter, single: Single
) -> None:
    x, y = ("INT16", [2, 4], grid(scale, 0)), ("INT16", [2, 4], grid(1 / 32768, 0))
    source = single("SOFTMAX", {"x": x}, [y], beta=1.0)
    agree(interpreter, source, np.array([[-32768, 0, 1, 1], [-3, 0, -1, -7]], np.int16))


@pytest.mark.parametrize("axes", [[1], [-1, 1], [2, 1, 0]])
def test_axes_known_at_run_time_reverse_extents_known_at_run_time(
    interpreter: Interpreter, single: Single, axes: list[int]
) -> None:
    operands = {"x": (F32, [None, None, None]), "axes": ("INT32", [None])}
    source = single("REVERSE_V2", operands, [(F32, [None, None, None])])
    agree(interpreter, source, np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array(axes, np.int32))


def test_blocks_known_at_run_time_divide_extents_known_at_run_time(interpreter: Interpreter, single: Single) -> None:
    block, edge = np.array([2, 3], np.int32), np.array([[1, 0], [0, 1]], np.int32)
    operands = {"x": (F32, [None] * 4), "block": ("INT32", [None]), "edge": ("INT32", [None, 2])}
    there = single("SPACE_TO_BATCH_ND", operands, [(F32, [None] * 4)])
    agree(interpreter, there, np.arange(60, dtype=np.float32).reshape(2, 3, 5, 2), block, edge)
    back = single("BATCH_TO_SPACE_ND", operands, [(F32, [None] * 4)])
    agree(interpreter, back, np.arange(96, dtype=np.float32).reshape(12, 2, 2, 2), block, edge)


@pytest.mark.parametrize(
    ("operator", "others"),
    [("NEG", []), ("BITWISE_XOR", [77]), ("FLOOR_DIV", [7]), ("FLOOR_MOD", [7]), ("RIGHT_SHIFT", [2])],
)
def test_kernels_without_arithmetic_of_their_own_take_codes_for_numbers(
    interpreter: Interpreter, single: Single, operator: str, others: list[int]
) -> None:
    x = np.array([[5, -3, 100], [-128, 127, 0]], np.int8)
    operands: dict[str, Any] = {"x": ("INT8", [2, 3], grid(0.05, 3))}
    for other in others:
        operands["y"] = (np.full(3, other, np.int8), grid(0.05, 3))
    agree(interpreter, single(operator, operands, [("INT8", [2, 3], grid(0.02, -10))]), x)


@pytest.mark.parametrize("side", ["operand", "result"])
def test_codes_that_have_lost_their_grid_on_one_side_are_moved(
    interpreter: Interpreter, single: Single, side: str
) -> None:
    bare, known = ("INT8", [2, 3]), ("INT8", [2, 3], grid(0.05, 3))
    given, result = (bare, known) if side == "operand" else (known, bare)
    x = np.array([[5, -3, 100], [-128, 127, 0]], np.int8)
    where = np.array([[True, False, True], [False, True, True]])
    agree(interpreter, single("SELECT", {"where": where, "x": given, "y": given}, [result]), x, x[::-1].copy())


def test_places_that_nothing_is_scattered_to_hold_the_code_zero(interpreter: Interpreter, single: Single) -> None:
    at, extents = np.array([[4], [1]], np.int32), np.array([6], np.int32)
    operands = {"at": at, "updates": ("INT8", [2], grid(0.1, 7)), "extents": extents}
    agree(interpreter, single("SCATTER_ND", operands, [("INT8", [6], grid(0.1, 7))]), np.array([3, -4], np.int8))


@pytest.mark.parametrize("constant", [True, False])
def test_sizes_of_another_type_than_starts_are_refused(single: Single, constant: bool) -> None:
    begin, size = np.array([1, 0], np.int32), np.array([2, 3], np.int64)
    operands = (begin, size) if constant else (("INT32", [2]), ("INT64", [2]))
    source = single("SLICE", {"x": (F32, [4, 5]), "begin": operands[0], "size": operands[1]}, [(F32, [2, 3])])
    with pytest.raises(RewriteError, match="integers of two types"):
        nnrewrite.convert(source)


def test_one_string_is_fed_as_it_is(interpreter: Interpreter, single: Single) -> None:
    source = single("FILL", {"dims": np.array([2], np.int32), "x": ("STRING", [])}, [("STRING", [2])])
    word = np.array(b"abc", object)
    assert [list(array) for array in interpreter.run(source, [[word]])[0]] == [[b"abc", b"abc"]]
    session = onnxruntime.InferenceSession(nnrewrite.convert(source).SerializeToString())
    assert list(session.run(None, {"x": np.array("abc", object)})[0]) == ["abc", "abc"]


def test_shapes_that_the_file_leaves_out_follow_from_constants(interpreter: Interpreter, catalogue: Catalogue) -> None:
    weights = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    model = probe.make_operator_model(catalogue, "QUANTIZE", {"w": weights}, [("UINT8", [], grid(1, 8))])
    graph, codes = model.graph, model.graph.outputs[0]
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4, 3]))
    real = ir.Node("tflite", "DEQUANTIZE", [codes], name="real")
    product = ir.Node("tflite", "FULLY_CONNECTED", [x, real.outputs[0], None], name="product")
    for one, shape in ((codes, None), (real.outputs[0], None), (product.outputs[0], ir.Shape([4, 2]))):
        one.type = one.type or ir.TensorType(ir.DataType.FLOAT)
        one.shape = shape
    graph.extend([real, product])
    graph.inputs.append(x)
    graph.outputs[:] = [product.outputs[0]]
    agree(interpreter, write(model, catalogue), np.arange(12, dtype=np.float32).reshape(4, 3))


@pytest.mark.parametrize("operator", ["MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"])
def test_strides_longer_than_windows_skip_the_end_of_unknown_extents(
    interpreter: Interpreter, single: Single, operator: str
) -> None:
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 3, "filter_height": 1, "filter_width": 2}
    source = single(operator, {"x": (F32, [1, None, None, 2])}, [(F32, [1, None, None, 2])], **options)
    for height, width in ((7, 4), (4, 7), (5, 6)):
        agree(interpreter, source, np.random.default_rng(0).uniform(-1, 1, (1, height, width, 2)).astype(np.float32))


@pytest.mark.parametrize("shape", [(2, 8), (4, 4), (2, 2, 4)])
def test_rows_are_as_long_as_weights_known_at_run_time(
    interpreter: Interpreter, single: Single, shape: tuple[int, ...]
) -> None:
    operands = {"x": (F32, [None] * len(shape)), "w": (F32, [None, None]), "b": None}
    source = single("FULLY_CONNECTED", operands, [(F32, [None, None])])
    draw = np.random.default_rng(0)
    agree(interpreter, source, draw.random(shape, np.float32), draw.random((3, 4), np.float32))


def test_a_size_that_the_file_does_not_count_has_a_height_and_a_width(interpreter: Interpreter, single: Single) -> None:
    operands = {"x": (F32, [1, None, None, 2]), "size": ("INT32", [None])}
    source = single("RESIZE_BILINEAR", operands, [(F32, [1, None, None, 2])])
    agree(interpreter, source, np.random.default_rng(0).random((1, 4, 3, 2), np.float32), np.array([7, 5], np.int32))


def test_depthwise_and_volume_filters_reach_far_over_unknown_extents(interpreter: Interpreter, single: Single) -> None:
    draw = np.random.default_rng(0)
    step = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 2, "dilation_w_factor": 3}
    flat, w = draw.random((1, 7, 6, 2), np.float32), draw.random((1, 3, 2, 4), np.float32)
    operands = {"x": (F32, [1, None, None, 2]), "w": w, "b": np.zeros(4, np.float32)}
    agree(
        interpreter,
        single("DEPTHWISE_CONV_2D", operands, [(F32, [1, None, None, 4])], depth_multiplier=2, **step),
        flat,
    )
    deep, v = draw.random((1, 4, 5, 6, 2), np.float32), draw.random((2, 3, 2, 2, 3), np.float32)
    operands = {"x": (F32, [1, None, None, None, 2]), "w": v}
    result = [(F32, [1, None, None, None, 3])]
    agree(interpreter, single("CONV_3D", operands, result, stride_d=1, dilation_d_factor=2, **step), deep)


@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_an_unknown_extent_is_split_into_equal_parts(interpreter: Interpreter, single: Single, opset: int) -> None:
    operands = {"dim": np.array(1, np.int32), "x": (F32, [2, None])}
    source = single("SPLIT", operands, [(F32, [2, None])] * 3, num_splits=3)
    agree(interpreter, source, np.arange(12, dtype=np.float32).reshape(2, 6), opset=opset)


@pytest.mark.parametrize("coded", [False, True])
def test_a_convolution_in_pieces_is_one_with_holes_of_any_number_of_images(
    interpreter: Interpreter, catalogue: Catalogue, coded: bool
) -> None:
    draw, kind = np.random.default_rng(1), ir.DataType.INT8 if coded else ir.DataType.FLOAT
    block, paddings = np.array([2, 2], np.int32), np.array([[2, 3], [2, 3]], np.int32)
    known = [Quantization(np.array([step], np.float32), np.array([zero])) for step, zero in GRIDS]
    operands = {"x": ("INT8" if coded else F32, [None, 5, 5, 2], known[0]), "block": block, "paddings": paddings}
    apart = [("INT8" if coded else F32, [None, 5, 5, 2], known[0])]
    model = probe.make_operator_model(catalogue, "SPACE_TO_BATCH_ND", operands, apart)
    graph = model.graph
    w, b = (draw.integers(-99, 99, shape).astype(kind.numpy()) for shape in ((3, 3, 3, 2), 3))
    # products of bytes that no processor saturates, and sums that are large beside what is rounded twice
    constants = {"w": w, "b": b.astype(np.int32) if coded else b, "crops": np.array([[0, 1], [0, 1]], np.int32)}
    for name, array in constants.items():
        held = ir.tensor(array, name=name)
        value = ir.Value(name=name, const_value=held, type=ir.TensorType(held.dtype), shape=held.shape)
        value.meta[KEY] = {"w": known[1], "b": known[2]}.get(name)
        graph.register_initializer(value)
    given = {name: graph.initializers[name] for name in (*constants, "block")}
    conv = ir.Node("tflite", "CONV_2D", [graph.outputs[0], given["w"], given["b"]], name="conv", attributes=VALID)
    whole = ir.Node("tflite", "BATCH_TO_SPACE_ND", [conv.outputs[0], given["block"], given["crops"]], name="whole")
    for node in (conv, whole):
        node.outputs[0].type, node.outputs[0].shape = ir.TensorType(kind), None
        node.outputs[0].meta[KEY] = known[3]
        graph.append(node)
    graph.outputs[:] = [whole.outputs[0]]
    source = write(model, catalogue)
    pairs = {"DequantizeLinear", "QuantizeLinear"} if coded else set()
    assert {node.op_type for node in nnrewrite.convert(source).graph.node} == {"Transpose", "Conv"} | pairs
    agree(interpreter, source, draw.integers(-20, 20, (3, 5, 5, 2)).astype(kind.numpy()))


@pytest.mark.parametrize("coded", [False, True])
def test_a_convolution_in_pieces_is_one_with_holes_where_paddings_are_computed(
    catalogue: Catalogue, coded: bool
) -> None:
    """As TensorFlow writes it of images of any size: with slices of all, and what is padded in two parts."""
    known = [Quantization(np.array([step], np.float32), np.array([zero])) if coded else None for step, zero in GRIDS]
    model = probe.make_operator_model(
        catalogue,
        "ADD",
        {"rest": ("INT32", [2]), "last": np.array([2, 2], np.int32)},
        [("INT32", [2])],
    )
    graph = model.graph

    def hold(name: str, array: np.ndarray, grid: Quantization | None = None) -> ir.Value:
        held = ir.tensor(array, name=name)
        value = ir.Value(name=name, const_value=held, type=ir.TensorType(held.dtype), shape=held.shape)
        value.meta[KEY] = grid
        graph.register_initializer(value)
        return value

    def add(
        operator: str, operands: list[ir.Value], given: ir.Value, shape: list[int | None], *options: ir.Attr
    ) -> ir.Value:
        node = ir.Node("tflite", operator, operands, name=f"{operator}{len(graph)}", attributes=options)
        node.outputs[0].type, node.outputs[0].shape = given.type, ir.Shape(shape)
        node.outputs[0].meta[KEY] = given.meta.get(KEY)
        graph.append(node)
        return node.outputs[0]

    rest, one, pair = graph.inputs[0], ir.AttrInt64("shrink_axis_mask", 1), ir.AttrInt64("values_count", 2)
    n = [hold(f"n{i}", np.array([i], np.int32)) for i in range(3)]
    square = [hold(f"s{i}", np.array([i, i], np.int32)) for i in range(3)]

    def pack(first: int, numbers: ir.Value) -> ir.Value:
        start = hold(f"first{len(graph)}", np.array(first, np.int32))
        rows = [
            add("PACK", [start, add("STRIDED_SLICE", [numbers, n[i], n[i + 1], n[1]], rest, [], one)], rest, [2], pair)
            for i in (0, 1)
        ]
        return add(
            "STRIDED_SLICE", [add("PACK", rows, rest, [2, 2], pair), square[0], square[2], square[1]], rest, [2, 2]
        )

    paddings, crops = pack(2, graph.outputs[0]), pack(0, rest)
    x = ir.Value(
        name="x",
        type=ir.TensorType(ir.DataType.INT8 if coded else ir.DataType.FLOAT),
        shape=ir.Shape([1, None, None, 2]),
    )
    y = ir.Value(name="y", type=x.type, shape=x.shape)
    x.meta[KEY], y.meta[KEY] = known[0], known[3]
    graph.inputs.append(x)
    w = hold("w", np.ones((3, 3, 3, 2), x.type.dtype.numpy()), known[1])
    b = hold("b", np.ones(3, np.int32 if coded else np.float32), known[2])
    pieces = add("SPACE_TO_BATCH_ND", [x, square[2], paddings], x, [None, None, None, 2])
    each = add("CONV_2D", [pieces, w, b], y, [None, None, None, 3], *VALID)
    graph.outputs[:] = [add("BATCH_TO_SPACE_ND", [each, square[2], crops], y, [1, None, None, 3])]
    found = nnrewrite.convert(write(model, catalogue)).graph.node
    pairs = {"DequantizeLinear", "QuantizeLinear"} if coded else set()
    assert {node.op_type for node in found} == {"Transpose", "Conv"} | pairs


def test_images_of_any_number_have_the_height_and_width_that_they_are_resized_to(
    interpreter: Interpreter, single: Single
) -> None:
    operands = {"x": (F32, [None, 3, 4, 1]), "size": np.array([7, 9], np.int32)}
    source = single("RESIZE_BILINEAR", operands, [(F32, [2, 7, 9, 1])])
    found = nnrewrite.convert(source)
    extents = found.graph.output[0].type.tensor_type.shape.dim
    assert [extent.dim_value for extent in extents[1:]] == [7, 9, 1]
    agree(interpreter, source, np.random.default_rng(0).random((3, 3, 4, 1), np.float32))


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
def test_extents_known_at_run_time_are_told_at_run_time(interpreter: Interpreter, single: Single, kind: str) -> None:
    source = single("SHAPE", {"x": (F32, [2, None])}, [(kind, [2])], out_type=kind)
    agree(interpreter, source, np.zeros((2, 5), np.float32))


def test_a_rank_known_at_run_time_is_told_at_run_time(interpreter: Interpreter, catalogue: Catalogue) -> None:
    model = probe.make_operator_model(catalogue, "RESHAPE", {"x": (F32, [2, 6]), "to": ("INT32", [None])}, [(F32, [])])
    graph = model.graph
    rank = ir.Node("tflite", "RANK", [graph.outputs[0]], name="rank")
    graph.outputs[0].shape = None
    rank.outputs[0].type, rank.outputs[0].shape = ir.TensorType(ir.DataType.INT32), ir.Shape([])
    graph.append(rank)
    graph.outputs[:] = [rank.outputs[0]]
    x = np.zeros((2, 6), np.float32)
    agree(interpreter, write(model, catalogue), x, np.array([3, 2, 1, 2], np.int32))


@pytest.mark.parametrize("b", [None, np.array([1, -2], np.float32)], ids=["bare", "bias"])
def test_products_keep_the_axes_in_front(interpreter: Interpreter, single: Single, b: np.ndarray | None) -> None:
    w = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    source = single("FULLY_CONNECTED", {"x": (F32, [2, 2, 3]), "w": w, "b": b}, [(F32, [2, 2, 2])], keep_num_dims=True)
    agree(interpreter, source, np.arange(12, dtype=np.float32).reshape(2, 2, 3))


@pytest.mark.parametrize("opset", [13, 17, 19, 20, 21])
@pytest.mark.parametrize(("shape", "length"), [((1, 8), [1, 8]), ((4, 8), [4, 8]), ((4, 8), [2, 16])])
def test_transforms_are_the_same_at_every_opset(
    interpreter: Interpreter, single: Single, opset: int, shape: tuple[int, int], length: list[int]
) -> None:
    operands = {"x": (F32, list(shape)), "fft_length": np.array(length, np.int32)}
    source = single("RFFT2D", operands, [("COMPLEX64", [length[0], length[1] // 2 + 1])])
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    theirs = interpreter.run(source, [[x]])[0][0]
    session = onnxruntime.InferenceSession(nnrewrite.convert(source, opset=opset).SerializeToString())
    ours = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(ours[..., 0] + 1j * ours[..., 1], theirs, rtol=1e-4, atol=1e-4)


def test_extents_are_divided_and_cut_off_as_what_is_never_negative(
    interpreter: Interpreter, catalogue: Catalogue
) -> None:
    """Frames of a signal of any length, as TensorFlow counts them: whole frames of four, behind each other."""
    b = Block(value("x", "FLOAT", [None]))
    (x,) = b.inputs
    extents = b.op("SHAPE", [x], [1], "INT32", out_type="INT32")
    frames = b.op("FLOOR_DIV", [extents, b.constant([4])], [1], "INT32")
    kept = b.op("MUL", [frames, b.constant([4])], [1], "INT32")
    cut = b.op("SLICE", [x, b.constant([0]), kept], [None])
    y = b.op("RESHAPE", [cut, b.constant([-1, 4])], [None, 4])
    source = write(ir.Model(b.graph([y], "main"), ir_version=10), catalogue)
    agree(interpreter, source, np.arange(11, dtype=np.float32))
    operators = [node.op_type for node in nnrewrite.convert(source).graph.node]
    assert operators.count("Div") == 1
    assert not {"Mod", "Less", "Equal", "Where"} & {*operators}


def test_an_extent_behind_no_others_is_divided(interpreter: Interpreter, catalogue: Catalogue) -> None:
    """As extents of outer axes are put before the others by what serves any number of them."""
    b = Block(value("x", "FLOAT", [None]))
    (x,) = b.inputs
    extents = b.op("CONCATENATION", [b.constant([]), b.op("SHAPE", [x], [1], "INT32", out_type="INT32")], [1], "INT32")
    frames = b.op("FLOOR_DIV", [extents, b.constant(4)], [1], "INT32")
    agree(interpreter, write(ir.Model(b.graph([frames], "main"), ir_version=10), catalogue), np.zeros(11, np.float32))

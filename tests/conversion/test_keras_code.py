"""Generated Keras code computes what ONNX Runtime does; needs keras, torch, safetensors and onnxruntime."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from nnrewrite.backends.python_writer import Encoded
from nnrewrite.conversion import pipeline

from . import test_torch_code
from .conftest import Judge
from .loops import BRANCHES, NO_TURNS, ROWS

_RANDOM = np.random.default_rng(0)

Case = tuple[list[onnx.NodeProto], dict[str, Any], list[int]]


def real(*shape: int) -> Any:
    return (_RANDOM.standard_normal(shape) * 0.3).astype(np.float32)


RECURRENT_IN_BRANCH = {"w1": real(6, 2, 3), "b1": real(6), "w2": real(1, 16, 6), "r2": real(1, 16, 4)}


def images() -> Case:
    """Convolutions, one of them of each channel, a norm, pools, and a product of what is left."""
    nodes = [
        oh.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        oh.make_node("BatchNormalization", ["c1", "s", "b1", "m", "v"], ["n1"]),
        oh.make_node("Relu", ["n1"], ["r1"]),
        oh.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        oh.make_node("Conv", ["p1", "w2", "b1"], ["c2"], group=4, strides=[2, 2], pads=[0, 0, 1, 1]),
        oh.make_node("Add", ["c2", "c2"], ["a"]),
        oh.make_node("GlobalAveragePool", ["a"], ["g"]),
        oh.make_node("Flatten", ["g"], ["f"]),
        oh.make_node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    held = {"w1": real(4, 3, 3, 3), "b1": real(4), "s": real(4), "m": real(4), "v": np.abs(real(4)) + 0.5}
    return nodes, held | {"w2": real(4, 1, 3, 3), "w3": real(5, 4), "b3": real(5)}, [2, 3, 8, 8]


def windows() -> Case:
    """Windows that are not whole at the end, padding that is not counted, widened kernels in steps, and corners."""
    nodes = [
        oh.make_node("MaxPool", ["x"], ["m"], kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1),
        oh.make_node("AveragePool", ["m"], ["a"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        oh.make_node(
            "AveragePool", ["a"], ["e"], kernel_shape=[2, 2], strides=[1, 2], ceil_mode=1, count_include_pad=1
        ),
        oh.make_node(
            "Resize", ["e", "", "", "size"], ["r"], mode="linear", coordinate_transformation_mode="align_corners"
        ),
        oh.make_node("Conv", ["r", "w"], ["y"], strides=[2, 2], dilations=[2, 2], pads=[1, 2, 1, 2]),
    ]
    return nodes, {"w": real(4, 3, 3, 3), "size": np.array([1, 3, 11, 9], np.int64)}, [1, 3, 21, 26]


def more_channels() -> Case:
    """Channels of zeros beside those of an image, as blocks that grow have them around their layers."""
    nodes = [
        oh.make_node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1]),
        oh.make_node("Pad", ["c", "pads"], ["p"]),
        oh.make_node("Conv", ["c", "w2"], ["d"], pads=[1, 1, 1, 1]),
        oh.make_node("Add", ["p", "d"], ["y"]),
    ]
    held = {"w1": real(4, 3, 3, 3), "w2": real(6, 4, 3, 3), "pads": np.array([0, 0, 0, 0, 0, 2, 0, 0], np.int64)}
    return nodes, held, [2, 3, 5, 6]


def transposed() -> Case:
    """Transposed convolutions in groups, widened or in steps."""
    nodes = [
        oh.make_node("ConvTranspose", ["x", "w"], ["m"], group=2, dilations=[2, 1], pads=[1, 1, 1, 1]),
        oh.make_node(
            "ConvTranspose", ["m", "v", "b"], ["y"], group=2, strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1]
        ),
    ]
    return nodes, {"w": real(4, 2, 3, 3), "v": real(4, 3, 3, 3), "b": real(6)}, [1, 4, 6, 6]


def perceptron() -> Case:
    nodes = [
        oh.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        oh.make_node("Gelu", ["h"], ["a"]),
        oh.make_node("MatMul", ["a", "w2"], ["o"]),
        oh.make_node("Softmax", ["o"], ["y"], axis=-1),
    ]
    return nodes, {"w1": real(8, 6), "b1": real(8), "w2": real(8, 3)}, [4, 6]


def attention() -> Case:
    """Queries, keys and values of two heads, and a norm."""
    nodes = [oh.make_node("LayerNormalization", ["x", "s", "b"], ["n"])]
    for name in "qkv":
        nodes += [
            oh.make_node("MatMul", ["n", f"w{name}"], [f"p{name}"]),
            oh.make_node("Reshape", [f"p{name}", "heads"], [f"r{name}"]),
            oh.make_node("Transpose", [f"r{name}"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        oh.make_node("MatMul", ["q", "k"], ["scores"]),
        oh.make_node("Mul", ["scores", "half"], ["scaled"]),
        oh.make_node("Softmax", ["scaled"], ["shares"], axis=-1),
        oh.make_node("MatMul", ["shares", "v"], ["mixed"]),
        oh.make_node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]),
        oh.make_node("Reshape", ["turned", "flat"], ["joined"]),
        oh.make_node("Add", ["joined", "x"], ["y"]),
    ]
    held = {f"w{name}": real(8, 8) for name in "qkv"} | {"s": real(8), "b": real(8), "half": np.array(0.5, np.float32)}
    sizes = {"heads": np.array([2, 5, 2, 4], np.int64), "flat": np.array([2, 5, 8], np.int64)}
    return nodes, held | sizes, [2, 5, 8]


def recurrent() -> Case:
    nodes = [
        oh.make_node("LSTM", ["x", "w", "r", "b"], ["l"], hidden_size=4, direction="bidirectional"),
        oh.make_node("Transpose", ["l"], ["t"], perm=[0, 2, 1, 3]),
        oh.make_node("Reshape", ["t", "flat"], ["f"]),
        oh.make_node("GRU", ["f", "u", "v", "c"], ["y"], hidden_size=3, linear_before_reset=1),
    ]
    held = {"w": real(2, 16, 3), "r": real(2, 16, 4), "b": real(2, 32), "u": real(1, 9, 8), "v": real(1, 9, 3)}
    return nodes, held | {"c": real(1, 18), "flat": np.array([5, 2, 8], np.int64)}, [5, 2, 3]


def states_that_are_known() -> Case:
    """A layer that goes both ways and begins with numbers of the model."""
    node = oh.make_node("RNN", ["x", "w", "r", "", "", "h"], ["y"], direction="bidirectional", hidden_size=4, clip=2.0)
    return [node], {"w": real(2, 4, 3), "r": real(2, 4, 4), "h": real(2, 2, 4)}, [5, 2, 3]


def boxes_of_a_layer() -> Case:
    """Boxes that are pooled of what a layer with weights yields."""
    nodes = [
        oh.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        oh.make_node("RoiAlign", ["c", "boxes", "batch"], ["y"], output_height=2, output_width=3, sampling_ratio=2),
    ]
    boxes = np.array([[0, 0, 4, 4], [1, 2, 5, 3]], np.float32)
    return nodes, {"w": real(4, 3, 3, 3), "boxes": boxes, "batch": np.array([0, 1], np.int64)}, [2, 3, 6, 6]


def lists() -> Case:
    """A list that grows in a loop, and gives up its first value for its last."""
    moved = "some = SequenceErase(rows, first)  one = SequenceAt(rows, first)  more = SequenceInsert(some, one)"
    text = ROWS.replace("Identity(c)", "Identity(go)").replace("(rows)", "(more)")
    text = text.replace("  y = ", f"  {moved}  y = ")
    return parse_case(text)


def loop_of_no_turns() -> Case:
    return parse_case(NO_TURNS)


def branches() -> Case:
    """A layer that the first run passes by, and values of branches that are asked as truth values."""
    return parse_case(BRANCHES)


def branches_of_unknown_extents() -> Case:
    """Layers that a run passes by, of operands whose extents a run tells."""
    nodes, _, shape = parse_case("""(float[4,3] x) => (float[a,b,c] y) <float much = {1000}> {
      most = ReduceMax <keepdims = 0> (x)
      large = Greater(most, much)
      whole = Cast <to = 7> (most)
      found = Mul(whole, nothing)
      size = Add(found, sizes)
      y = If <
        then_branch = then () => (float[1,4,c] p) {
          r = Reshape(x, size)
          u = Conv <strides = [2], pads = [1, 1], group = 2> (r, w1, b1)
          t = Transpose <perm = [2, 0, 1]> (u)
          l, h, c = LSTM <hidden_size = 4> (t, w2, r2)
          s = Squeeze(l, one)
          p = Transpose <perm = [1, 2, 0]> (s)
        },
        else_branch = other () => (float[1,4,3] q) {
          v = Reshape(x, size)
          q = Neg(v)
        }> (large)
    }""")
    held = {"nothing": np.zeros(3, np.int64), "sizes": np.array([1, 4, 3]), "one": np.array([1])}
    return nodes, held | {"much": np.array(1000, np.float32)} | RECURRENT_IN_BRANCH, shape


def parse_case(text: str) -> Case:
    graph = onnx.parser.parse_graph(f"g {text}")
    return [*graph.node], {one.name: onh.to_array(one) for one in graph.initializer}, [4, 3]


#: complex numbers and packed sequences, of which Keras code has none, and smoothed images, which its backends compute
#: in several ways
LACKING = {
    *{"frames_of_both_sides", "frequencies_and_back", "magnitudes_of_frames", "smoothed"},
    *{"deformed", "of_any_extent", "patches_of_uneven_ends", "sums_of_codes"},
    *(f"{layer}_of_sequences_of_no_length" for layer in ("gru", "rnn")),
    *(f"{layer}_of_sequences_that_end_early" for layer in ("lstm", "gru", "rnn")),
}
MAKERS = (
    images,
    windows,
    more_channels,
    transposed,
    perceptron,
    attention,
    recurrent,
    states_that_are_known,
    lists,
    loop_of_no_turns,
)


def numbers(count: int) -> str:
    return ", ".join(f"{n * 37 % 23 / 11 - 1:.3f}" for n in range(count))


#: what no layer of Keras takes as it is: computed weights, parts of windows, and sizes that a run tells
WRITTEN = {
    "transposed_rows_in_large_steps": f"""(float[2,4,6] x) => (float[2,3,17] y) <float[4,3,2] w = {{{numbers(24)}}}> {{
      y = ConvTranspose <strides = [3], output_padding = [1], pads = [1, 0]> (x, w) }}""",
    "transposed_volumes_in_groups": f"""(float[1,4,3,4,5] x) => (float[1,6,a,b,c] y)
      <float[4,3,2,2,2] w = {{{numbers(96)}}}> {{
      y = ConvTranspose <strides = [2, 2, 1], pads = [1, 0, 1, 1, 0, 1], group = 2> (x, w) }}""",
    "transposed_by_computed_kernels": """(float[2,4,5,5] x, float[4,3,3,3] w, float[3] b) => (float[2,3,a,c] y) {
      y = ConvTranspose <strides = [2, 1]> (x, w, b) }""",
    "averages_of_rows": """(float[2,4,7] x) => (float[2,4,a] y, float[2,4,b] z) {
      y = AveragePool <kernel_shape = [3], strides = [2], pads = [1, 1]> (x)
      z = AveragePool <kernel_shape = [3], strides = [3], ceil_mode = 1, count_include_pad = 1, pads = [1, 1]> (x) }""",
    "averages_of_volumes": """(float[2,4,7,6,5] x) => (float[2,4,a,b,c] y) {
      y = AveragePool <kernel_shape = [3,2,2], strides = [2,2,2], pads = [1,0,1,1,0,1], ceil_mode = 1> (x) }""",
    "averages_of_images_of_any_size": """(float[1,2,h,w] x) => (float[1,2,a,b] y) {
      y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x) }""",
    "greatest_of_parts": """(float[2,4,6,5] x) => (float[2,4,a,b] y) {
      y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], pads = [0, 1, 0, 1], ceil_mode = 1> (x) }""",
    "resized_as_another": """(float[1,2,h,w] x, float[1,1,p,q] like) => (float[1,2,p,q] y, float[1,2,p,q] z)
      <int64[1] none = {0}, int64[1] two = {2}, int64[1] four = {4}> {
      s = Shape(like)  t = Shape <end = 2> (x)  u = Slice(s, two, four)  size = Concat <axis = 0> (t, u)
      y = Resize <mode = "cubic"> (x, , , size)
      z = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , , size)
    }""",
    "layers_with_computed_offsets": f"""(float[2,4,5,5] x, float[3] b) => (float[2,3,a,c] y, float[2,4,d,e] z)
      <float[3,4,1,3] w = {{{numbers(36)}}}> {{ y = Conv(x, w, b)  r = Relu(y)  z = ConvTranspose(r, w) }}""",
    "norms_by_computed_numbers": """(float[2,4,5] x, float[4] s, float[4] b) => (float[2,4,5] y, float[2,4,5] z) {
      y = InstanceNormalization(x, s, b)  z = GroupNormalization <num_groups = 2> (x, s, b) }""",
    "rows_that_see_nothing": """(float[1,2,3,4] q, float[1,2,3,4] k) => (float[1,2,3,4] y)
      <bool[3,3] m = {0, 0, 0, 1, 0, 1, 1, 1, 1}, float least = {-inf}, float none = {0}> {
      t = Transpose <perm = [0, 1, 3, 2]> (k)  s = MatMul(q, t)  w = Where(m, s, least)  p = Softmax <axis = -1> (w)
      i = IsNaN(p)  c = Where(i, none, p)  y = MatMul(c, k) }""",
}
CASES = {make.__name__: make() for make in (*MAKERS, branches, branches_of_unknown_extents)}


def write(case: Case, folder: Path) -> str:
    nodes, held, shape = case
    inputs = [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    outputs = [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = oh.make_graph(nodes, "g", inputs, outputs, [onh.from_array(one, name) for name, one in held.items()])
    return save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), folder)


def write_text(text: str, folder: Path) -> str:
    """Write a graph in ONNX's own notation, with all that it yields, and with sizes that are free."""
    return save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}'), folder)


def save(model: onnx.ModelProto, folder: Path) -> str:
    conversion = pipeline.rewrite(model.SerializeToString(), to="keras")
    assert isinstance(conversion.encoded, Encoded)
    program = conversion.encoded.program
    assert not program.placeholders
    conversion.save(folder)
    about = {"name": program.name, "inputs": [one.source for one in program.inputs]}
    (folder / "main.json").write_text(json.dumps(about))
    onnx.save(model, folder / "original.onnx")
    return program.text


@pytest.mark.slow
def test_images_have_their_channels_last(tmp_path: Path) -> None:
    text = write(CASES["images"], tmp_path)
    assert text.count("ops.transpose") == 1
    assert 'layers.Conv2D(4, 3, padding="same")' in text
    assert 'layers.DepthwiseConv2D(3, strides=2, padding="same")' in text


def test_channels_are_added_to_an_image_as_it_is(tmp_path: Path) -> None:
    text = write(CASES["more_channels"], tmp_path)
    assert "ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, 2)))" in text
    assert text.count("ops.transpose") == 2


def test_heads_and_directions_are_those_of_the_library(tmp_path: Path) -> None:
    assert "ops.dot_product_attention(" in write(CASES["attention"], tmp_path / "attention")
    text = write(CASES["recurrent"], tmp_path / "recurrent")
    assert "layers.Bidirectional(" in text
    assert "layers.GRU(3, return_sequences=True, return_state=True)" in text


def test_small_constants_are_written_and_layers_of_branches_are_built(tmp_path: Path) -> None:
    text = write(CASES["branches"], tmp_path)
    assert 'ops.convert_to_tensor(True, dtype="bool")' in text
    assert "self.dense.build((4, 3))" in text


def test_layers_of_branches_are_built_as_their_weights_tell(tmp_path: Path) -> None:
    text = write(CASES["branches_of_unknown_extents"], tmp_path)
    assert "self.conv.build((None, None, 4))" in text
    assert "self.lstm.build((None, None, 6))" in text
    assert "put in some that the model takes" not in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_model_in_double_precision_is_one_in_keras(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (double[2,3] x) => (double[2,3] y)'
        "  <double[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, double[3] b = {1, 2, 3}> {"
        " p = Gemm(x, w, b) t = Tanh(p) y = Mul(t, b) }"
    )
    conversion = pipeline.rewrite(model.SerializeToString(), to="keras")
    conversion.save(tmp_path)
    assert isinstance(conversion.encoded, Encoded)
    text = conversion.encoded.program.text
    assert 'def __init__(self, dtype="float64", **kwargs) -> None:' in text
    assert "super().__init__(dtype=dtype, **kwargs)" in text
    assert 'self.dense = layers.Dense(3, dtype="float64")' in text
    assert 'self.add_weight(shape=(3,), name="scale")' in text
    assert 'keras.random.normal((2, 3), dtype="float64")' in (tmp_path / "README.md").read_text(encoding="utf-8")


CHAIN = """c{n} = Gemm(x{n}, w{n}, b{n})  d{n} = Tanh(c{n})  e{n} = Gemm(d{n}, v{n}, b{n})  f{n} = Sigmoid(e{n})
  x{after} = Mul(f{n}, f{n})
"""


def test_chains_that_are_called_apart_are_classes() -> None:
    held = ", ".join(f"float[6,6] {name}{n} = {{{WEIGHTS}}}" for n in range(4) for name in "wv")
    offsets = ", ".join(f"float[6] b{n} = {{1, 2, 3, 4, 5, 6}}" for n in range(4))
    chains = "".join(CHAIN.format(n=n, after=n + 1) for n in range(4))
    yielded = ", ".join(f"float[n,6] f{n}" for n in range(4))
    text = encode(f"(float[n,6] x0) => ({yielded}) <{held}, {offsets}> {{ {chains} }}").program.text
    assert "class Block(keras.Sequential):" in text


def test_a_model_takes_what_its_file_says(tmp_path: Path) -> None:
    """A file of Keras has a name, a precision and whether a model is trained, which are given to the constructor."""
    text = write(CASES["perceptron"], tmp_path)
    assert "def __init__(self, **kwargs) -> None:" in text
    assert "super().__init__(**kwargs)" in text


def test_examples_of_free_sizes_say_that_these_are_to_be_chosen(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,t] x) => (float[n,t] y) { y = Tanh(x) }'
    )
    pipeline.rewrite(model.SerializeToString(), to="keras").save(tmp_path)
    assert "(1, 1))  # free sizes are 1: put in some that the model takes" in (tmp_path / "README.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.torch
def test_code_computes_what_the_runtime_does(judge_keras: Judge) -> None:
    found = judge_keras(CASES, lambda name, folder: write(CASES[name], folder))
    assert found.keys() == CASES.keys()
    assert max(one["error"] for one in found.values()) <= 1e-5
    assert not any(one["left"] for one in found.values())


@pytest.mark.torch
def test_what_pytorch_code_is_tried_on_is_equal_as_keras_code(judge_keras: Judge) -> None:
    cases = {name: case for name, case in test_torch_code.CASES.items() if name not in LACKING}
    found = judge_keras(cases, lambda name, folder: test_torch_code.write(cases[name], folder, "keras"))
    assert found.keys() == cases.keys()
    assert {name: one for name, one in found.items() if not one.get("error", 1.0) <= 1e-5 or one["left"]} == {}


@pytest.mark.torch
def test_what_no_layer_takes_is_written(judge_keras: Judge) -> None:
    found = judge_keras(WRITTEN, lambda name, folder: write_text(WRITTEN[name], folder))
    assert {name: one for name, one in found.items() if not one.get("error", 1.0) <= 1e-5 or one["left"]} == {}


def test_codes_that_a_model_yields_are_codes() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[6] x) => (uint8[6] y) <float s = {2}, uint8 z = {128}> {'
        " y = QuantizeLinear(x, s, z) }"
    )
    encoded = pipeline.rewrite(model.SerializeToString(), to="keras").encoded
    assert isinstance(encoded, Encoded)
    assert '"uint8"' in encoded.program.text


def encode(text: str) -> Encoded:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')
    encoded = pipeline.rewrite(model.SerializeToString(), to="keras").encoded
    assert isinstance(encoded, Encoded)
    return encoded


WEIGHTS = ", ".join(f"{number}" for number in range(36))
GRID = """(float[n,2,{size}] x, float[n,6] moves) => (float[n,{size},2] y)
  <int64[2] rows = {{2, 3}}, float[6,6] w = {{{weights}}}> {{
  moved = MatMul(moves, w)
  many = Shape<start = 0, end = 1>(moved)
  shape = Concat<axis = 0>(many, rows)
  theta = Reshape(moved, shape)
  size = Shape(x)
  y = AffineGrid(theta, size)
}}"""


def test_grids_of_any_number_of_images_are_products() -> None:
    program = encode(GRID.format(size="4,5", weights=WEIGHTS)).program
    assert not program.placeholders and "ops.matmul(" in program.text


def test_an_operator_without_code_takes_extents_that_others_have_too() -> None:
    program = encode(GRID.format(size="h,w", weights=WEIGHTS)).program
    assert program.placeholders == ["AffineGrid"]


BLOCK = """
  p{n} = MatMul(x{n}, w{n})
  r{n} = Reshape(p{n}, shape)
  s{n} = Softmax<axis = 1>(r{n})
  z{n} = Reshape(s{n}, size)
  e{n} = Tanh(z{n})
  m{n} = MatMul(e{n}, v{n})
  x{after} = Add(x{n}, m{n})
"""


def test_layers_are_given_numbers_by_name() -> None:
    """The heads of all samples, which follow from what the model is given and not from what a block is."""
    held = ", ".join(f"float[8,8] {name}{n} = {{{WEIGHTS}, {', '.join('1' * 28)}}}" for n in range(4) for name in "wv")
    blocks = "".join(BLOCK.format(n=n, after=n + 1) for n in range(4))
    text = encode(
        f"(float[t,b,8] x0) => (float[t,b,8] x4) <int64[1] two = {{2}}, int64[1] four = {{4}}, {held}> {{"
        "  size = Shape(x0)  many = Shape<start = 1, end = 2>(x0)  heads = Mul(many, two)"
        f"  all = Shape<start = 0, end = 1>(x0)  shape = Concat<axis = 0>(all, heads, four) {blocks} }}"
    ).program.text
    assert re.search(r"x = layer\(x, (n\d*)=n\d*\)", text) is not None

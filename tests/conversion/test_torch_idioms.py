"""Generated PyTorch code calls things as somebody who knows PyTorch does, and computes what ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from .conftest import Judge, assert_equal
from .test_torch_code import Case, convert, real, whole, write


def number(name: str, value: float) -> Any:
    return onh.from_array(np.array(value, np.float32), name)


def windows() -> Case:
    """An im2col as the exporter of TorchScript writes it: rows and columns by their places."""
    places = np.arange(3)[:, None] + np.arange(6)[None, :]
    nodes = [
        oh.make_node("Pad", ["x", "pads"], ["wide"]),
        oh.make_node("Gather", ["wide", "rows"], ["r"], axis=2),
        oh.make_node("Gather", ["r", "columns"], ["c"], axis=4),
        oh.make_node("Transpose", ["c"], ["t"], perm=[0, 1, 2, 4, 3, 5]),
        oh.make_node("Reshape", ["t", "to"], ["y"]),
    ]
    pads = whole("pads", [0, 0, 1, 1, 0, 0, 1, 1])
    return (
        nodes,
        [pads, whole("rows", places), whole("columns", places), whole("to", [2, 27, 36])],
        [("x", [2, 3, 6, 6])],
    )


def block() -> Case:
    """Some rows of each image in the place of others, each element by its place."""
    axes = np.meshgrid(np.arange(2), np.arange(1, 3), np.arange(5), indexing="ij")
    nodes = [oh.make_node("ScatterND", ["x", "places", "v"], ["y"])]
    return nodes, [whole("places", np.stack(axes, -1)), real("v", 2, 2, 5)], [("x", [2, 4, 5])]


def rolled() -> Case:
    nodes = []
    given = "x"
    for axis in (1, 2):
        nodes += [
            oh.make_node("Slice", [given, "two", "far", f"a{axis}"], [f"b{axis}"]),
            oh.make_node("Slice", [given, "zero", "two", f"a{axis}"], [f"f{axis}"]),
            oh.make_node("Concat", [f"b{axis}", f"f{axis}"], [f"y{axis}"], axis=axis),
        ]
        given = f"y{axis}"
    nodes.append(oh.make_node("Neg", ["y2"], ["y"]))
    ends = [whole("two", [2]), whole("far", [99]), whole("zero", [0]), whole("a1", [1]), whole("a2", [2])]
    return nodes, ends, [("x", [2, 5, 6])]


def gated() -> Case:
    nodes = [
        oh.make_node("Slice", ["x", "zero", "three", "one"], ["a"]),
        oh.make_node("Slice", ["x", "three", "six", "one"], ["b"]),
        oh.make_node("Sigmoid", ["b"], ["s"]),
        oh.make_node("Mul", ["a", "s"], ["y"]),
    ]
    return nodes, [whole("zero", [0]), whole("three", [3]), whole("six", [6]), whole("one", [1])], [("x", [2, 6])]


def shuffled() -> Case:
    nodes = [
        oh.make_node("Reshape", ["x", "apart"], ["a"]),
        oh.make_node("Transpose", ["a"], ["t"], perm=[0, 2, 1, 3, 4]),
        oh.make_node("Reshape", ["t", "back"], ["y"]),
    ]
    return nodes, [whole("apart", [2, 2, 3, 4, 4]), whole("back", [2, 6, 4, 4])], [("x", [2, 6, 4, 4])]


def tagger() -> Case:
    """Two layers, one on the other, as the exporter of TorchScript writes them: time first, directions apart."""
    nodes, weights = [oh.make_node("Transpose", ["x"], ["t0"], perm=[1, 0, 2])], [whole("to", [0, 0, -1])]
    for place, size in enumerate((3, 8)):
        weights += [real(f"w{place}", 2, 16, size), real(f"r{place}", 2, 16, 4), real(f"b{place}", 2, 32)]
        names = [f"t{place}", f"w{place}", f"r{place}", f"b{place}"]
        nodes += [
            oh.make_node("LSTM", names, [f"l{place}"], hidden_size=4, direction="bidirectional"),
            oh.make_node("Transpose", [f"l{place}"], [f"m{place}"], perm=[0, 2, 1, 3]),
            oh.make_node("Reshape", [f"m{place}", "to"], [f"t{place + 1}"]),
        ]
    return [*nodes, oh.make_node("Transpose", ["t2"], ["y"], perm=[1, 0, 2])], weights, [("x", [2, 5, 3])]


def row() -> Case:
    """A convolution of sequences as TensorFlow has it: of images of one row."""
    nodes = [
        oh.make_node("Unsqueeze", ["x", "two"], ["u"]),
        oh.make_node("Conv", ["u", "w", "b"], ["c"], strides=[1, 2], pads=[0, 1, 0, 1]),
        oh.make_node("Relu", ["c"], ["r"]),
        oh.make_node("Squeeze", ["r", "two"], ["y"]),
    ]
    return nodes, [whole("two", [2]), real("w", 4, 3, 1, 3), real("b", 4)], [("x", [2, 3, 8])]


def slopes() -> Case:
    """What converters make of slopes: a convolution of each channel, and what is below zero by another."""
    below = -np.abs(np.array(real_numbers(3), np.float32)).reshape(3, 1, 1, 1)
    part = np.array(real_numbers(3), np.float32).reshape(3, 1, 1, 1)
    nodes = [
        oh.make_node("Conv", ["x", "below"], ["c"], group=3),
        oh.make_node("Relu", ["c"], ["r"]),
        oh.make_node("Add", ["x", "r"], ["p"]),
        oh.make_node("Relu", ["p"], ["q"]),
        oh.make_node("Conv", ["q", "rest"], ["d"], group=3),
        oh.make_node("Conv", ["p", "part"], ["e"], group=3),
        oh.make_node("Add", ["d", "e"], ["y"]),
    ]
    weights = {"below": below, "part": part, "rest": 1 - part}
    return nodes, [onh.from_array(one, name) for name, one in weights.items()], [("x", [2, 3, 4, 4])]


def real_numbers(count: int) -> list[float]:
    return [0.1 * (place + 1) for place in range(count)]


def stacked() -> Case:
    nodes = [
        oh.make_node("Unsqueeze", ["x", "one"], ["a"]),
        oh.make_node("Exp", ["x"], ["e"]),
        oh.make_node("Unsqueeze", ["e", "one"], ["b"]),
        oh.make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    return nodes, [whole("one", [1])], [("x", [2, 3])]


def norm_of_images() -> Case:
    nodes = [
        oh.make_node("ReduceMean", ["x", "axes"], ["m"]),
        oh.make_node("Sub", ["x", "m"], ["d"]),
        oh.make_node("Mul", ["d", "d"], ["q"]),
        oh.make_node("ReduceMean", ["q", "axes"], ["v"]),
        oh.make_node("Add", ["v", "eps"], ["e"]),
        oh.make_node("Sqrt", ["e"], ["s"]),
        oh.make_node("Div", ["d", "s"], ["n"]),
        oh.make_node("Mul", ["n", "w"], ["k"]),
        oh.make_node("Add", ["k", "b"], ["y"]),
    ]
    return (
        nodes,
        [whole("axes", [-2, -1]), number("eps", 0.01), real("w", 4, 5), real("b", 4, 5)],
        [("x", [2, 3, 4, 5])],
    )


def enlarged() -> Case:
    by = onh.from_array(np.array([1, 1, 2, 3], np.float32), "by")
    nodes = [oh.make_node("Resize", ["x", "", "by"], ["y"], mode="linear")]
    return nodes, [by], [("x", [1, 2, 4, 5])]


def dense(count: int) -> Case:
    """Layers of which each is given all that the ones before it have made."""
    nodes, weights, parts = [], [], ["x"]
    for place in range(count):
        joined = parts[0] if place == 0 else f"j{place}"
        if place:
            nodes.append(oh.make_node("Concat", list(parts), [joined], axis=1))
        weights.append(real(f"w{place}", 2, 3 + 2 * place, 1))
        nodes.append(oh.make_node("Conv", [joined, f"w{place}"], [f"c{place}"]))
        nodes.append(oh.make_node("Relu", [f"c{place}"], [f"r{place}"]))
        parts.append(f"r{place}")
    return [*nodes, oh.make_node("Concat", parts, ["y"], axis=1)], weights, [("x", [1, 3, 4])]


def recurrence() -> Case:
    """A recurrence over time that was written out step by step."""
    nodes, before = [], "begin"
    for step in range(6):
        nodes += [
            oh.make_node("Gather", ["a", f"i{step}"], [f"a{step}"], axis=1),
            oh.make_node("Gather", ["b", f"i{step}"], [f"b{step}"], axis=1),
            oh.make_node("Mul", [f"a{step}", before], [f"m{step}"]),
            oh.make_node("Add", [f"m{step}", f"b{step}"], [f"h{step}"]),
            oh.make_node("Unsqueeze", [f"h{step}", "one"], [f"u{step}"]),
        ]
        before = f"h{step}"
    nodes.append(oh.make_node("Concat", [f"u{step}" for step in range(6)], ["y"], axis=1))
    places = [whole(f"i{step}", step) for step in range(6)]
    return nodes, [*places, whole("one", [1]), real("begin", 2, 3)], [("a", [2, 6, 3]), ("b", [2, 6, 3])]


def counting() -> Case:
    """A loop as TensorFlow has it: with a counter of its own, as long as that and another are below what is known."""
    body = oh.make_graph(
        [
            oh.make_node("Add", ["at", "one"], ["next"]),
            oh.make_node("Gather", ["x", "at"], ["row"]),
            oh.make_node("Add", ["sum", "row"], ["total"]),
            oh.make_node("Identity", ["total"], ["all"]),
            oh.make_node("Cast", ["i"], ["i_real"], to=onnx.TensorProto.FLOAT),
            oh.make_node("Cast", ["next"], ["next_real"], to=onnx.TensorProto.FLOAT),
            oh.make_node("Less", ["i_real", "most"], ["first"]),
            oh.make_node("Less", ["next_real", "most"], ["second"]),
            oh.make_node("And", ["first", "second"], ["on"]),
        ],
        "body",
        [
            oh.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            oh.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            oh.make_tensor_value_info("at", onnx.TensorProto.INT32, []),
            oh.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [3]),
        ],
        [
            oh.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            oh.make_tensor_value_info("next", onnx.TensorProto.INT32, []),
            oh.make_tensor_value_info("total", onnx.TensorProto.FLOAT, [3]),
            oh.make_tensor_value_info("all", onnx.TensorProto.FLOAT, [3]),
        ],
    )
    zero, one = (onh.from_array(np.array(n, np.int32), name) for n, name in ((0, "zero"), (1, "one")))
    going = onh.from_array(np.array(True), "going")
    nodes = [
        oh.make_node("Loop", ["many", "going", "zero", "begin"], ["count", "sums", "rows"], body=body),
        oh.make_node("Neg", ["rows"], ["y"]),
    ]
    return nodes, [whole("many", 9), going, zero, one, number("most", 4.0), real("begin", 3)], [("x", [5, 3])]


def rotary() -> Case:
    nodes = [
        oh.make_node("Split", ["x"], ["a", "b"], axis=-1, num_outputs=2),
        oh.make_node("Neg", ["b"], ["n"]),
        oh.make_node("Concat", ["n", "a"], ["r"], axis=-1),
        oh.make_node("Mul", ["x", "cos"], ["c"]),
        oh.make_node("Mul", ["r", "sin"], ["s"]),
        oh.make_node("Add", ["c", "s"], ["y"]),
    ]
    return nodes, [real("cos", 3, 8), real("sin", 3, 8)], [("x", [2, 3, 8])]


def parts_of_axis(count: int) -> Case:
    nodes = [oh.make_node("Gather", ["x", f"i{place}"], [f"p{place}"], axis=1) for place in range(count)]
    nodes.append(oh.make_node("Sum", [f"p{place}" for place in range(count)], ["s"]))
    nodes.append(oh.make_node("Mul", ["s", "p0"], ["y"]))
    return nodes, [whole(f"i{place}", place) for place in range(count)], [("x", [2, count, 3])]


def rows_of_one_product() -> Case:
    nodes = [
        oh.make_node("MatMul", ["x", "w"], ["p"]),
        oh.make_node("Reshape", ["p", "apart"], ["r"]),
        oh.make_node("Transpose", ["r"], ["t"], perm=[2, 0, 1, 3]),
        *(oh.make_node("Gather", ["t", f"i{place}"], [f"p{place}"], axis=0) for place in range(3)),
        oh.make_node("Mul", ["p0", "p1"], ["m"]),
        oh.make_node("Add", ["m", "p2"], ["y"]),
    ]
    places = [whole(f"i{place}", place) for place in range(3)]
    return nodes, [*places, real("w", 4, 12), whole("apart", [2, 5, 3, 4])], [("x", [2, 5, 4])]


def looked_up_in_order() -> Case:
    places = np.stack(np.meshgrid(np.arange(2), np.arange(3), indexing="ij"), -1).reshape(2, 1, 3, 2)
    return (
        [oh.make_node("GatherND", ["x", "places"], ["g"]), oh.make_node("Exp", ["g"], ["y"])],
        [whole("places", places)],
        [("x", [2, 3])],
    )


def looked_up_by_two() -> Case:
    """Places by rows and columns that are widened first, which are counted at run time."""
    nodes = [
        oh.make_node("ArgMin", ["x"], ["i"], axis=0, keepdims=0),
        oh.make_node("ArgMax", ["x"], ["j"], axis=1, keepdims=0),
        oh.make_node("Unsqueeze", ["i", "one"], ["column"]),
        oh.make_node("Unsqueeze", ["j", "first"], ["row"]),
        oh.make_node("Expand", ["column", "wide"], ["rows"]),
        oh.make_node("Expand", ["row", "wide"], ["columns"]),
        oh.make_node("Unsqueeze", ["rows", "last"], ["r"]),
        oh.make_node("Unsqueeze", ["columns", "last"], ["c"]),
        oh.make_node("Concat", ["r", "c"], ["places"], axis=-1),
        oh.make_node("GatherND", ["x", "places"], ["y"]),
    ]
    known = [whole("one", [1]), whole("first", [0]), whole("wide", [3, 2]), whole("last", [2])]
    return nodes, known, [("x", [2, 3])]


def sorted_and_back() -> Case:
    """All numbers in order, and the places from which they came."""
    nodes = [
        oh.make_node("TopK", ["x", "all"], ["v", "i"], axis=0, largest=0),
        oh.make_node("Unsqueeze", ["i", "one"], ["places"]),
        oh.make_node("ScatterND", ["zeros", "places", "range"], ["back"]),
        oh.make_node("Gather", ["v", "back"], ["same"]),
        oh.make_node("Add", ["same", "v"], ["y"]),
    ]
    known = [whole("all", [5]), whole("one", [1]), whole("zeros", [0] * 5), whole("range", range(5))]
    return nodes, known, [("x", [5])]


def bounded_twice() -> Case:
    nodes = [oh.make_node("Min", ["x", "high"], ["m"]), oh.make_node("Max", ["m", "low"], ["y"])]
    return nodes, [number("high", 0.3), number("low", -0.2)], [("x", [2, 3])]


CASES: dict[str, tuple[Case, str]] = {
    "dense": (dense(5), "x = torch.cat([x, F.relu(self.conv2(x))], dim=1)"),
    "many_dense": (dense(14), "ConvBlock(n, n + 2) for n in range(3, 31, 4)))"),
    "recurrence": (recurrence(), "for i in range(6):"),
    "counting": (counting(), "for i in range(4):"),
    "rotary": (rotary(), "apply_rotary(x, self.cos, self.sin)"),
    "two_of_axis": (parts_of_axis(2), "x, y = x.unbind(1)"),
    "three_of_axis": (parts_of_axis(3), "x, y, z = x.unbind(1)"),
    "rows_of_one_product": (rows_of_one_product(), "x, y, z = self.linear(x).chunk(3, dim=-1)"),
    "looked_up_in_order": (looked_up_in_order(), "x.unsqueeze(1).exp()"),
    "looked_up_by_two": (looked_up_by_two(), "return x[x.argmin(0).unsqueeze(1), x.argmax(1).unsqueeze(0)]"),
    "sorted_and_back": (sorted_and_back(), ".argsort()]"),
    "bounded_twice": (bounded_twice(), "return x.clamp(min=-0.2, max=0.3)"),
    "windows": (windows(), "return F.unfold(x, 3, padding=1)"),
    "block": (block(), "x.slice_scatter(self.src, dim=1, start=1, end=3)"),
    "rolled": (rolled(), "-x.roll((-2, -2), (1, 2))"),
    "gated": (gated(), "return F.glu(x, dim=1)"),
    "shuffled": (shuffled(), "return F.channel_shuffle(x, 2)"),
    "tagger": (tagger(), "nn.LSTM(8, 4, batch_first=True, bidirectional=True)"),
    "row": (row(), "nn.Conv1d(3, 4, 3, stride=2, padding=1)"),
    "slopes": (slopes(), "nn.PReLU(num_parameters=3)"),
    "stacked": (stacked(), "return torch.stack([x, x.exp()], dim=1)"),
    "norm_of_images": (norm_of_images(), "nn.LayerNorm((4, 5), eps=0.01)"),
    "enlarged": (enlarged(), 'F.interpolate(x, size=(8, 15), mode="bilinear", align_corners=False)'),
}


@pytest.mark.parametrize("name", CASES)
def test_code_says_what_is_meant(name: str) -> None:
    case, text = CASES[name]
    assert text in convert(case)


@pytest.fixture(scope="module")
def judged(judge: Judge) -> dict[str, Any]:
    return judge(CASES, lambda name, folder: write(CASES[name][0], folder))


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_code_computes_what_the_runtime_does(name: str, judged: dict[str, Any]) -> None:
    assert_equal(judged[name])

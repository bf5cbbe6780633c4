"""Generated PyTorch code calls things as somebody who knows PyTorch does, and computes what ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
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


CASES: dict[str, tuple[Case, str]] = {
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


@pytest.mark.parametrize("name", CASES)
def test_code_computes_what_the_runtime_does(name: str, judged: dict[str, Any]) -> None:
    assert_equal(judged[name])

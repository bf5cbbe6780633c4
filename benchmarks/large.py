"""Large models with random weights, written as TensorFlow Lite files: networks by their published shapes, and graphs.

    python benchmarks/large.py FOLDER [NAME...]

Without names, all of them. The weights are drawn once and read from many places, so that a file of gigabytes is written
in seconds; its size, its operators and its shapes are what is to be measured.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from nnrewrite.backends import probe, tflite
from nnrewrite.engine.operators import Catalogue, load

#: random numbers that all weights of a network are taken from
POOL = 1 << 25


class Network:
    """A graph of the dialect `tflite` under construction; methods take values and return the value computed."""

    def __init__(self, catalogue: Catalogue, inputs: Sequence[Sequence[int]]) -> None:
        self.dialect = catalogue.dialect("tflite")
        self.pool = np.random.default_rng(0).standard_normal(POOL, np.float32)
        self.scaled: dict[float, np.ndarray[Any, Any]] = {}
        self.drawn = 0
        self.nodes: list[ir.Node] = []
        self.constants: dict[Any, ir.Value] = {}
        self.inputs = [self.value(f"input_{i}", shape) for i, shape in enumerate(inputs)]

    def value(self, name: str, shape: Sequence[int], array: np.ndarray[Any, Any] | None = None) -> ir.Value:
        dtype = ir.DataType.FLOAT if array is None else ir.DataType.from_numpy(array.dtype)
        tensor = None if array is None else ir.Tensor(array, name=name)
        return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=tensor)

    def constant(self, array: np.ndarray[Any, Any]) -> ir.Value:
        """A constant, one for equal small ones."""
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 else len(self.constants)
        if key not in self.constants:
            self.constants[key] = self.value(f"constant_{len(self.constants)}", array.shape, array)
        return self.constants[key]

    def weights(self, *shape: int, fan: int | None = None) -> ir.Value:
        """Random weights that keep the variance of what they are multiplied with, of `fan` numbers each."""
        count = int(np.prod(shape))
        scale = float(np.sqrt(2.0 / (fan or int(np.prod(shape[1:])) or 1)))
        start = self.drawn % (POOL - count + 1)
        self.drawn += count
        if count < POOL // 8:
            return self.constant((self.pool[start : start + count] * np.float32(scale)).reshape(shape))
        if scale not in self.scaled:
            self.scaled[scale] = self.pool * np.float32(scale)
        return self.constant(self.scaled[scale][start : start + count].reshape(shape))

    def add(self, operator: str, operands: Sequence[ir.Value], shape: Sequence[int], **options: Any) -> ir.Value:
        spec = self.dialect.operators[operator]
        attributes = [
            made for n, v in options.items() if (made := probe.attribute(spec.options[n], v, self.dialect)) is not None
        ]
        result = self.value(f"value_{len(self.nodes)}", shape)
        self.nodes.append(ir.Node(spec.domain, operator, operands, attributes, outputs=[result]))
        return result

    def model(self, *outputs: ir.Value) -> ir.Model:
        graph = ir.Graph(
            self.inputs, outputs, nodes=self.nodes, initializers=list(self.constants.values()), name="main"
        )
        return ir.Model(graph, ir_version=10)

    # ---- layers of images, N H W C

    def conv(
        self, x: ir.Value, channels: int, kernel: int | tuple[int, int] = 1, stride: int = 1, act: str = "RELU",
        padding: str = "SAME",
    ) -> ir.Value:  # fmt: skip
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        _, h, w, c = extents(x)
        operands = [x, self.weights(channels, kh, kw, c), self.weights(channels, fan=200)]
        shape = (1, reach(h, kh, stride, padding), reach(w, kw, stride, padding), channels)
        return self.add("CONV_2D", operands, shape, padding=padding, stride_h=stride, stride_w=stride,
                        fused_activation_function=act)  # fmt: skip

    def depthwise(self, x: ir.Value, kernel: int, stride: int = 1, act: str = "RELU6") -> ir.Value:
        _, h, w, c = extents(x)
        operands = [x, self.weights(1, kernel, kernel, c, fan=kernel * kernel), self.weights(c, fan=200)]
        shape = (1, reach(h, kernel, stride), reach(w, kernel, stride), c)
        return self.add("DEPTHWISE_CONV_2D", operands, shape, padding="SAME", stride_h=stride, stride_w=stride,
                        depth_multiplier=1, fused_activation_function=act)  # fmt: skip

    def pool_2d(self, x: ir.Value, kind: str, kernel: int, stride: int, padding: str = "SAME") -> ir.Value:
        _, h, w, c = extents(x)
        shape = (1, reach(h, kernel, stride, padding), reach(w, kernel, stride, padding), c)
        return self.add(f"{kind}_POOL_2D", [x], shape, padding=padding, stride_h=stride, stride_w=stride,
                        filter_height=kernel, filter_width=kernel)  # fmt: skip

    def sum(self, a: ir.Value, b: ir.Value, act: str = "NONE") -> ir.Value:
        return self.add("ADD", [a, b], extents(a), fused_activation_function=act)

    def concat(self, *values: ir.Value) -> ir.Value:
        *rest, _ = extents(values[0])
        return self.add("CONCATENATION", values, (*rest, sum(extents(v)[-1] for v in values)), axis=-1)

    def classify(self, x: ir.Value, classes: int = 1000) -> ir.Value:
        channels = extents(x)[-1]
        mean = self.add("MEAN", [x, self.constant(np.array([1, 2], np.int32))], (1, channels), keep_dims=False)
        return self.add("SOFTMAX", [self.dense(mean, classes)], (1, classes), beta=1.0)

    # ---- layers of sequences

    def dense(self, x: ir.Value, units: int) -> ir.Value:
        *rest, c = extents(x)
        operands = [x, self.weights(units, c, fan=2 * c), self.weights(units, fan=200)]
        return self.add("FULLY_CONNECTED", operands, (*rest, units), keep_num_dims=len(rest) > 1)

    def normalized(self, x: ir.Value) -> ir.Value:
        shape = extents(x)
        axes, narrow = self.constant(np.array([-1], np.int32)), (*shape[:-1], 1)
        mean = self.add("MEAN", [x, axes], narrow, keep_dims=True)
        square = self.add("SQUARED_DIFFERENCE", [x, mean], shape)
        variance = self.add("MEAN", [square, axes], narrow, keep_dims=True)
        shifted = self.add("ADD", [variance, self.constant(np.array([1e-6], np.float32))], narrow)
        inverse = self.add("RSQRT", [shifted], narrow)
        scaled = self.add("MUL", [self.add("SUB", [x, mean], shape), inverse], shape)
        scaled = self.add("MUL", [scaled, self.constant(np.ones(shape[-1:], np.float32))], shape)
        return self.add("ADD", [scaled, self.constant(np.zeros(shape[-1:], np.float32))], shape)

    def heads(self, x: ir.Value, count: int) -> ir.Value:
        n, length, size = extents(x)
        split = (n, length, count, size // count)
        x = self.add("RESHAPE", [x, self.constant(np.array(split, np.int32))], split, new_shape=list(split))
        perm = self.constant(np.array([0, 2, 1, 3], np.int32))
        return self.add("TRANSPOSE", [x, perm], (n, count, length, size // count))


def extents(value: ir.Value) -> tuple[int, ...]:
    assert value.shape is not None
    return tuple(value.shape.numpy())


def reach(extent: int, kernel: int, stride: int, padding: str = "SAME") -> int:
    """How many places a window has along an axis."""
    return -(-extent // stride) if padding == "SAME" else (extent - kernel) // stride + 1


# ---- networks


def mobilenet_v2(catalogue: Catalogue) -> ir.Model:
    """MobileNetV2 1.0 for 224 x 224 pixels: 3.5 million weights."""
    net = Network(catalogue, [(1, 224, 224, 3)])
    x = net.conv(net.inputs[0], 32, 3, 2, "RELU6")
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for wider, channels, repeats, stride in stages:
        for i in range(repeats):
            inner = net.conv(x, extents(x)[-1] * wider, 1, 1, "RELU6") if wider > 1 else x
            inner = net.conv(net.depthwise(inner, 3, stride if i == 0 else 1), channels, 1, 1, "NONE")
            x = net.sum(x, inner) if i else inner
    return net.model(net.classify(net.conv(x, 1280, 1, 1, "RELU6")))


def resnet_152(catalogue: Catalogue) -> ir.Model:
    """ResNet-152 for 224 x 224 pixels: 60 million weights."""
    net = Network(catalogue, [(1, 224, 224, 3)])
    x = net.pool_2d(net.conv(net.inputs[0], 64, 7, 2), "MAX", 3, 2)
    for stage, repeats in enumerate((3, 8, 36, 3)):
        channels = 64 << stage
        for i in range(repeats):
            stride = 2 if stage and not i else 1
            inner = net.conv(net.conv(net.conv(x, channels, 1), channels, 3, stride), 4 * channels, 1, 1, "NONE")
            x = net.sum(inner, x if i else net.conv(x, 4 * channels, 1, stride, "NONE"), "RELU")
    return net.model(net.classify(x))


def inception_v3(catalogue: Catalogue) -> ir.Model:
    """Inception-V3 for 299 x 299 pixels: 24 million weights."""
    net = Network(catalogue, [(1, 299, 299, 3)])
    conv, pool, concat = net.conv, net.pool_2d, net.concat
    x = conv(conv(conv(net.inputs[0], 32, 3, 2, padding="VALID"), 32, 3, padding="VALID"), 64, 3)
    x = conv(conv(pool(x, "MAX", 3, 2, "VALID"), 80, 1), 192, 3, padding="VALID")
    x = pool(x, "MAX", 3, 2, "VALID")
    for last in (32, 64, 64):
        far = conv(conv(conv(x, 64), 96, 3), 96, 3)
        x = concat(conv(x, 64), conv(conv(x, 48), 64, 5), far, conv(pool(x, "AVERAGE", 3, 1), last))
    far = conv(conv(conv(x, 64), 96, 3), 96, 3, 2, padding="VALID")
    x = concat(conv(x, 384, 3, 2, padding="VALID"), far, pool(x, "MAX", 3, 2, "VALID"))
    for c in (128, 160, 160, 192):
        near = conv(conv(conv(x, c), c, (1, 7)), 192, (7, 1))
        far = conv(conv(conv(conv(conv(x, c), c, (7, 1)), c, (1, 7)), c, (7, 1)), 192, (1, 7))
        x = concat(conv(x, 192), near, far, conv(pool(x, "AVERAGE", 3, 1), 192))
    near = conv(conv(x, 192), 320, 3, 2, padding="VALID")
    far = conv(conv(conv(conv(x, 192), 192, (1, 7)), 192, (7, 1)), 192, 3, 2, padding="VALID")
    x = concat(near, far, pool(x, "MAX", 3, 2, "VALID"))
    for _ in range(2):
        near, far = conv(x, 384), conv(conv(x, 448), 384, 3)
        sides = [conv(side, 384, kernel) for side in (near, far) for kernel in ((1, 3), (3, 1))]
        x = concat(conv(x, 320), concat(*sides[:2]), concat(*sides[2:]), conv(pool(x, "AVERAGE", 3, 1), 192))
    return net.model(net.classify(x))


def nasnet_mobile(catalogue: Catalogue) -> ir.Model:
    """The cells of NASNet-A (4 @ 1056) for 224 x 224 pixels: 5 million weights, a wide graph of 850 operators."""
    net = Network(catalogue, [(1, 224, 224, 3)])

    def relu(x: ir.Value) -> ir.Value:
        return net.add("RELU", [x], extents(x))

    def separable(x: ir.Value, channels: int, kernel: int, stride: int = 1) -> ir.Value:
        x = net.conv(net.depthwise(relu(x), kernel, stride, "NONE"), channels, 1, 1, "NONE")
        return net.conv(net.depthwise(relu(x), kernel, 1, "NONE"), channels, 1, 1, "NONE")

    def cell(x: ir.Value, before: ir.Value, channels: int, stride: int) -> ir.Value:
        shrink = extents(before)[1] // extents(x)[1]
        p = net.conv(relu(before), channels, 1, shrink, "NONE")
        h = net.conv(relu(x), channels, 1, 1, "NONE")
        if stride == 1:
            parts = [
                net.sum(separable(h, channels, 3), h),
                net.sum(separable(p, channels, 3), separable(h, channels, 5)),
                net.sum(net.pool_2d(h, "AVERAGE", 3, 1), p),
                net.sum(net.pool_2d(p, "AVERAGE", 3, 1), net.pool_2d(p, "AVERAGE", 3, 1)),
                net.sum(separable(p, channels, 5), separable(p, channels, 3)),
            ]
            return net.concat(p, *parts)
        first = net.sum(separable(h, channels, 5, 2), separable(p, channels, 7, 2))
        second = net.sum(net.pool_2d(h, "MAX", 3, 2), separable(p, channels, 7, 2))
        third = net.sum(net.pool_2d(h, "AVERAGE", 3, 2), separable(p, channels, 5, 2))
        fourth = net.sum(net.pool_2d(first, "AVERAGE", 3, 1), second)
        fifth = net.sum(separable(first, channels, 3), net.pool_2d(h, "MAX", 3, 2))
        return net.concat(second, third, fourth, fifth)

    before = x = net.conv(net.inputs[0], 32, 3, 2, "NONE")
    for channels in (11, 22):
        before, x = x, cell(x, before, channels, 2)
    for stage in range(3):
        if stage:
            before, x = x, cell(x, before, 44 << stage, 2)
        for _ in range(4):
            before, x = x, cell(x, before, 44 << stage, 1)
    return net.model(net.classify(relu(x)))


def transformer(catalogue: Catalogue, size: int = 2560, layers: int = 10, length: int = 16) -> ir.Model:
    """A transformer's encoder, by default of 786 million weights: 3.1 GB."""
    net = Network(catalogue, [(1, length, size)])
    x, count = net.inputs[0], size // 64
    for _ in range(layers):
        inner = net.normalized(x)
        q, k, v = (net.heads(net.dense(inner, size), count) for _ in range(3))
        square = (1, count, length, length)
        scores = net.add("BATCH_MATMUL", [q, k], square, adj_y=True)
        scores = net.add("MUL", [scores, net.constant(np.array(0.125, np.float32))], square)
        mixed = net.add("BATCH_MATMUL", [net.add("SOFTMAX", [scores], square, beta=1.0), v], extents(v))
        perm = net.constant(np.array([0, 2, 1, 3], np.int32))
        mixed = net.add("TRANSPOSE", [mixed, perm], (1, length, count, 64))
        whole = net.constant(np.array(extents(x), np.int32))
        mixed = net.add("RESHAPE", [mixed, whole], extents(x), new_shape=list(extents(x)))
        x = net.sum(x, net.dense(mixed, size))
        inner = net.dense(net.normalized(x), 4 * size)
        x = net.sum(x, net.dense(net.add("GELU", [inner], extents(inner), approximate=False), size))
    return net.model(net.normalized(x))


# ---- graphs


def chain(catalogue: Catalogue, nodes: int = 100_000) -> ir.Model:
    """Elementwise operators, each reading the one before."""
    net = Network(catalogue, [(1, 4, 4, 8)])
    x, other = net.inputs[0], net.constant(np.full(8, 0.5, np.float32))
    for _, operator in zip(range(nodes), itertools.cycle(("ADD", "TANH", "MUL", "RELU")), strict=False):
        operands = [x, other] if operator in ("ADD", "MUL") else [x]
        x = net.add(operator, operands, extents(x))
    return net.model(x)


def wide(catalogue: Catalogue, nodes: int = 100_000) -> ir.Model:
    """Branches of four operators that all read the input, each summed up to what the others came to."""
    net = Network(catalogue, [(1, 4, 4, 8)])
    x, other = net.inputs[0], net.constant(np.full(8, 0.5, np.float32))
    ends = []
    for i in range(nodes // 5):
        own = net.constant(np.full((1, 1, 1, 8), i, np.float32))
        y = net.add("MUL", [x, own], extents(x))
        for operator in ("TANH", "ADD", "LOGISTIC"):
            y = net.add(operator, [y, other] if operator == "ADD" else [y], extents(x))
        ends.append(y)
    while len(ends) > 1:
        pairs = [ends[i : i + 2] for i in range(0, len(ends), 2)]
        ends = [net.sum(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return net.model(ends[0])


def convolutions(catalogue: Catalogue, nodes: int = 10_000) -> ir.Model:
    """A deep network whose every second operator has a layout of its own."""
    net = Network(catalogue, [(1, 8, 8, 4)])
    x = net.inputs[0]
    for _ in range(nodes // 2):
        x = net.sum(net.conv(x, 4, 1), x)
    return net.model(x)


MODELS: dict[str, Callable[[Catalogue], ir.Model]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet_152": resnet_152,
    "inception_v3": inception_v3,
    "nasnet_mobile": nasnet_mobile,
    "transformer_3gb": transformer,
    "chain_10000": lambda catalogue: chain(catalogue, 10_000),
    "chain_100000": chain,
    "wide_10000": lambda catalogue: wide(catalogue, 10_000),
    "wide_100000": wide,
    "convolutions_10000": convolutions,
    "convolutions_100000": lambda catalogue: convolutions(catalogue, 100_000),
}


def make(name: str, folder: Path) -> Path:
    """The file of one of the models, written where it is not there yet."""
    path = folder / f"{name}.tflite"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        catalogue = load()
        with part.open("wb") as file:
            for piece in tflite.parts(MODELS[name](catalogue), catalogue):
                file.write(piece)
        part.replace(path)
    return path


if __name__ == "__main__":
    for wanted in sys.argv[2:] or MODELS:
        made = make(wanted, Path(sys.argv[1]))
        print(f"{made}: {made.stat().st_size:,} bytes")

"""A network under construction, layer by layer, with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from nnrewrite.backends import probe
from nnrewrite.engine.dialects.operators import Catalogue

#: random numbers that all weights of a network are taken from
POOL = 1 << 25


class Network:
    """A graph of the dialect `tflite` under construction; methods take values and return the value computed."""

    def __init__(self, catalogue: Catalogue, inputs: Sequence[Sequence[int]]) -> None:
        self.dialect = catalogue.find_dialect("tflite")
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
            made
            for n, v in options.items()
            if (made := probe.make_attribute(spec.options[n], v, self.dialect)) is not None
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

    def attention(self, x: ir.Value, count: int) -> ir.Value:
        """A layer of an encoder with `count` heads: attention, then two dense layers, each after a normalization."""
        n, length, size = extents(x)
        inner = self.normalized(x)
        q, k, v = (self.heads(self.dense(inner, size), count) for _ in range(3))
        square = (n, count, length, length)
        scores = self.add("BATCH_MATMUL", [q, k], square, adj_y=True)
        scores = self.add("MUL", [scores, self.constant(np.array(0.125, np.float32))], square)
        mixed = self.add("BATCH_MATMUL", [self.add("SOFTMAX", [scores], square, beta=1.0), v], extents(v))
        perm = self.constant(np.array([0, 2, 1, 3], np.int32))
        mixed = self.add("TRANSPOSE", [mixed, perm], (n, length, count, size // count))
        whole = self.constant(np.array(extents(x), np.int32))
        mixed = self.add("RESHAPE", [mixed, whole], extents(x), new_shape=list(extents(x)))
        x = self.sum(x, self.dense(mixed, size))
        inner = self.dense(self.normalized(x), 4 * size)
        return self.sum(x, self.dense(self.add("GELU", [inner], extents(inner), approximate=False), size))


def extents(value: ir.Value) -> tuple[int, ...]:
    assert value.shape is not None
    return tuple(value.shape.numpy())


def reach(extent: int, kernel: int, stride: int, padding: str = "SAME") -> int:
    """How many places a window has along an axis."""
    return -(-extent // stride) if padding == "SAME" else (extent - kernel) // stride + 1

"""Graphs of any number of nodes, for how time grows with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from network import Network, extents
from nnrewrite.engine.base.quantization import KEY, Quantization
from nnrewrite.engine.dialects.operators import Catalogue

#: the numbers of nodes that are compared
SIZES = (10_000, 100_000)

#: the scale and zero point of all activations of a quantized graph, and the scale of its weights
ACTIVATIONS, ZERO, WEIGHTS = 0.05, 3, 0.01


class Integers(Network):
    """A network whose activations and weights are signed bytes, weights with a scale for each channel."""

    def value(self, name: str, shape: Sequence[int], array: np.ndarray[Any, Any] | None = None) -> ir.Value:
        if array is not None and array.dtype != np.float32:
            return super().value(name, shape, array)
        if array is None:
            made = ir.Value(name=name, type=ir.TensorType(ir.DataType.INT8), shape=ir.Shape(shape))
            made.meta[KEY] = _quantization([ACTIVATIONS], ZERO)
            return made
        bias = array.ndim == 1
        axis = len(shape) - 1 if shape[0] == 1 else 0
        scales = [WEIGHTS * (1 + channel / 8) for channel in range(shape[axis])]
        codes = (array * 40).astype(np.int32 if bias else np.int8)
        made = super().value(name, shape, codes)
        made.meta[KEY] = _quantization([ACTIVATIONS * scale for scale in scales] if bias else scales, 0, axis)
        return made


def _quantization(scales: Sequence[float], zero: int, axis: int = 0) -> Quantization:
    return Quantization(np.array(scales, np.float32), np.full(len(scales), zero, np.int64), axis)


def chain(catalogue: Catalogue, nodes: int) -> ir.Model:
    """Elementwise operators, each reading the one before."""
    net = Network(catalogue, [(1, 4, 4, 8)])
    x, other = net.inputs[0], net.constant(np.full(8, 0.5, np.float32))
    for _, operator in zip(range(nodes), itertools.cycle(("ADD", "TANH", "MUL", "RELU")), strict=False):
        operands = [x, other] if operator in ("ADD", "MUL") else [x]
        x = net.add(operator, operands, extents(x))
    return net.model(x)


def wide(catalogue: Catalogue, nodes: int) -> ir.Model:
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


def convolutions(catalogue: Catalogue, nodes: int) -> ir.Model:
    """A deep network whose every second operator has a layout of its own."""
    net = Network(catalogue, [(1, 8, 8, 4)])
    x = net.inputs[0]
    for _ in range(nodes // 2):
        x = net.sum(net.conv(x, 4, 1), x)
    return net.model(x)


def mobile(catalogue: Catalogue, nodes: int) -> ir.Model:
    """Blocks of a mobile network: a convolution, one of each channel, another convolution, and a sum."""
    return _blocks(Network(catalogue, [(1, 8, 8, 4)]), nodes)


def quantized(catalogue: Catalogue, nodes: int) -> ir.Model:
    """Blocks of a mobile network over signed bytes."""
    return _blocks(Integers(catalogue, [(1, 8, 8, 4)]), nodes)


def _blocks(net: Network, nodes: int) -> ir.Model:
    x = net.inputs[0]
    for _ in range(nodes // 4):
        x = net.sum(x, net.conv(net.depthwise(net.conv(x, 8, 1, 1, "RELU6"), 3), 4, 1, 1, "NONE"))
    return net.model(x)


def dense(catalogue: Catalogue, nodes: int) -> ir.Model:
    """Dense layers, each with an activation of its own."""
    net = Network(catalogue, [(1, 8)])
    x = net.inputs[0]
    for _ in range(nodes // 2):
        x = net.dense(x, 8)
        x = net.add("HARD_SWISH", [x], extents(x))
    return net.model(x)


def attention(catalogue: Catalogue, nodes: int) -> ir.Model:
    """Layers of an encoder, of 38 operators each."""
    net = Network(catalogue, [(1, 4, 8)])
    x = net.inputs[0]
    for _ in range(nodes // 38):
        x = net.attention(x, 2)
    return net.model(x)


GRAPHS: dict[str, Callable[[Catalogue, int], ir.Model]] = {
    function.__name__: function for function in (chain, wide, convolutions, mobile, quantized, dense, attention)
}

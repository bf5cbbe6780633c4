"""Large models with random weights, written as TensorFlow Lite files: networks by their published shapes, and graphs.

    python benchmarks/large.py FOLDER [NAME...]

Without names, all of them. The weights are drawn once and read from many places, so that a file of gigabytes is written
in seconds; its size, its operators and its shapes are what is to be measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx_ir as ir
from graphs import GRAPHS, SIZES
from network import Network, extents
from nnrewrite.backends import tflite_writer
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.dialects.ops_files import load


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
    x = net.inputs[0]
    for _ in range(layers):
        x = net.attention(x, size // 64)
    return net.model(net.normalized(x))


MODELS: dict[str, Callable[[Catalogue], ir.Model]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet_152": resnet_152,
    "inception_v3": inception_v3,
    "nasnet_mobile": nasnet_mobile,
    "transformer_3gb": transformer,
    **{f"{graph}_{nodes}": partial(build, nodes=nodes) for graph, build in GRAPHS.items() for nodes in SIZES},
}


def make(name: str, folder: Path) -> Path:
    """The file of one of the models, written where it is not there yet."""
    path = folder / f"{name}.tflite"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        catalogue = load()
        with part.open("wb") as file:
            for piece in tflite_writer.write_parts(MODELS[name](catalogue), catalogue):
                file.write(piece)
        part.replace(path)
    return path


if __name__ == "__main__":
    for wanted in sys.argv[2:] or MODELS:
        made = make(wanted, Path(sys.argv[1]))
        print(f"{made}: {made.stat().st_size:,} bytes")

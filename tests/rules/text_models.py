"""Models written as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser


def write_model(path: Path, opset: int, outputs: str, nodes: str, inputs: str = "float[n, 3, 4, 4] x") -> Path:
    """Write a model of some nodes at an opset; nothing is said of its outputs but their names."""
    declared = ", ".join(f"float[] {name}" for name in outputs.split())
    text = f'<ir_version: 8, opset_import: ["": {opset}]> net ({inputs}) => ({declared}) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.ClearField("type")
    onnx.save(model, path)
    return path


def add_weights(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Add random weights of some shapes to a model, of those that its nodes read."""
    model = onnx.load(path)
    rng = np.random.default_rng(1)
    for name, shape in shapes.items():
        array = rng.standard_normal(shape, np.float32)
        if any(name in node.input for node in model.graph.node):
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)

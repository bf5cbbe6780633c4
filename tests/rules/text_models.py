"""Models written as text."""

from __future__ import annotations

from pathlib import Path

import onnx
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

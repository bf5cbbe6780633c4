"""Count what ONNX Runtime makes of quantized models: operators in integer kernels, for both targets side by side.

    python benchmarks/kernels.py MODEL.tflite...

The runtime's own optimized graph is written out and counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import onnx
import onnxruntime
from nnrewrite.conversion.options import PORTABLE, TARGET
from nnrewrite.conversion.pipeline import rewrite

#: operators that the runtime has integer kernels for, and what those are called
INTEGER = {"Conv": ("QLinearConv",), "Gemm": ("QGemm", "QLinearMatMul"), "Add": ("QLinearAdd",)}


def count_optimized(model: onnx.ModelProto) -> Counter[str]:
    """The operators of the graph that the runtime runs."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options)
        return Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


def cell(counts: Counter[str], operator: str) -> str:
    integer = sum(counts[name] for name in INTEGER[operator])
    return f"{integer} of {integer + counts[operator] + counts[f'Fused{operator}']}"


def main(paths: list[str]) -> None:
    print("| model | target | convolutions | fully connected | additions | Dequantize and Quantize left |")
    print("|---|---|--:|--:|--:|--:|")
    for path in map(Path, paths):
        for target in (PORTABLE, TARGET):
            counts = count_optimized(rewrite(path, target=target).model)
            cells = " | ".join(cell(counts, operator) for operator in INTEGER)
            left = counts["DequantizeLinear"] + counts["QuantizeLinear"]
            print(f"| {path.stem} | {target} | {cells} | {left} |")


if __name__ == "__main__":
    main(sys.argv[1:])

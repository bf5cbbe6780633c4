"""Prints what dense layers that are quantized by ranges of a run take in TensorFlow Lite, beside ONNX Runtime.

    python benchmarks/dynamic_quantization.py [--rows N]... [--runs N]

Two layers of 768 by 3,072 numbers and back, quantized by `quantize_dynamic` of ONNX Runtime with weights of int8 and of
uint8, in ONNX Runtime, as they are converted, the same again as a control, and with `--hybrid real`. Milliseconds are
medians of runs on one thread, taken in turns; errors are beside ONNX Runtime, of the largest result.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import onnxruntime
from ai_edge_litert.interpreter import Interpreter
from onnx import numpy_helper, parser
from onnxruntime.quantization import QuantType, quantize_dynamic

INNER, OUTER = 768, 3072
WEIGHTS = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}


def write_layers(rows: int, path: Path) -> None:
    """Write the model of real numbers: two dense layers beside what they are given."""
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 17]> g (float[1, {rows}, {INNER}] x) => (float[1, {rows}, {INNER}] y) '
        "{ a = MatMul(x, w) b = Add(a, c) d = Relu(b) e = MatMul(d, v) f = Add(e, u) y = Add(f, x) }"
    )
    generator = np.random.default_rng(0)
    for name, shape in {"w": (INNER, OUTER), "c": (OUTER,), "v": (OUTER, INNER), "u": (INNER,)}.items():
        weights = (generator.normal(size=shape) * 0.02).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    onnx.save(model, path)


def open_interpreter(path: Path, x: Any, **options: str) -> Interpreter:
    """Convert a model and make it ready to run on an input."""
    interpreter = Interpreter(
        model_content=nnrewrite.rewrite(path, to="tflite", **options).encoded.encode(), num_threads=1
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter


def time_in_turns(calls: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Call all in turns; the median of each in milliseconds."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    return {name: 1000 * statistics.median(found) for name, found in seconds.items()}


def format_row(path: Path, rows: int, runs: int) -> str:
    """A row of the table: milliseconds, and the error of what is converted."""
    x = np.random.default_rng(1).normal(size=(1, rows, INNER)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    converted, control, real = (open_interpreter(path, x, **one) for one in ({}, {}, {"hybrid": "real"}))
    calls = {"original": lambda: session.run(None, {"x": x}), "converted": converted.invoke, "control": control.invoke}
    found = time_in_turns({**calls, "real": real.invoke}, runs)
    [wanted] = session.run(None, {"x": x})
    got = converted.get_tensor(converted.get_output_details()[0]["index"])
    error = float(np.abs(got - wanted).max() / np.abs(wanted).max())
    figures = " | ".join(f"{ms:.2f}" for ms in found.values())
    return f"{figures} | {found['converted'] / found['real']:.2f} | {error:.0e} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, action="append")
    arguments.add_argument("--runs", type=int, default=25)
    asked = arguments.parse_args()
    print("| rows | weights | ONNX Runtime, ms | converted | the same again | --hybrid real | ratio to that | error |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in asked.rows or (1, 16, 128):
            plain, quantized = Path(folder) / "real.onnx", Path(folder) / "quantized.onnx"
            write_layers(rows, plain)
            for name, weights in WEIGHTS.items():
                quantize_dynamic(plain, quantized, weight_type=weights)
                print(f"| {rows} | {name} | {format_row(quantized, rows, asked.runs)}")


if __name__ == "__main__":
    main()

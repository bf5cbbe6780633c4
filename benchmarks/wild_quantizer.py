"""Random networks of Keras quantized by the recipes of ai-edge-quantizer. Runs in an environment with both.

    python wild_quantizer.py FOLDER --count 100 --seed 1

Networks are those of wild_networks.py, with a fixed batch; recipes take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from ai_edge_quantizer import quantizer, recipe
from wild_children import Made, read_arguments, write_each
from wild_networks import convert, draw_network

#: the interpreter reads weights of 2 bits of convolutions as bytes, and what lies behind them: none of their recipes
RECIPES = (
    "dynamic_wi8c_afp32", "dynamic_wi4c_afp32", "dynamic_wi8c_hr_afp32", "dynamic_wi8b32_afp32",
    "dynamic_wi4b32_afp32", "dynamic_wi2b32_afp32", "dynamic_legacy_wi8_afp32",
    "static_wi8_ai8", "static_wi8_ai16", "weight_only_wi8_afp32", "weight_only_wi4_afp32",
    "dynamic_wi4c_hr_afp32", "static_wi8_ai8", "static_wi8_ai16",
)  # fmt: skip


def calibration(name: str, entry: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Eight samples in the range of what models are verified with."""
    draw = np.random.default_rng(seed)
    shape, kind = tuple(entry["shape"]), entry["dtype"]
    for _ in range(8):
        whole = kind == np.int32
        yield {name: draw.integers(0, 10, shape).astype(kind) if whole else draw.uniform(-1, 1, shape).astype(kind)}


def make(seed: int, name: str) -> Made:
    """The network of a seed, quantized by a recipe."""
    model, _ = draw_network(seed)
    content = convert(model, "float32", seed, 1, named=True)
    made = quantizer.Quantizer(bytearray(content), getattr(recipe, name)())
    ranges = None
    if made.need_calibration:
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(model_content=content).get_signature_runner("serving_default")
        ((key, entry),) = runner.get_input_details().items()
        ranges = made.calibrate({"serving_default": list(calibration(key, entry, seed))})
    return Made(bytes(made.quantize(ranges, enable_progress_report=False).quantized_model))


def main() -> None:
    asked = read_arguments(100)
    makers = {}
    for number in range(asked.count):
        seed, name = asked.seed * 100000 + 50000 + number, RECIPES[number % len(RECIPES)]
        makers[f"{name}/{seed}.tflite"] = partial(make, seed, name)
    write_each(asked.folder, makers)


if __name__ == "__main__":
    main()

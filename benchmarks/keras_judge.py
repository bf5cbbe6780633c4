"""Generated Keras code held against ONNX Runtime; runs where keras is, and needs nothing of nnrewrite.

Reads and prints lines as torch_judge.py does, which stands beside it. Keras computes with the backend that the variable
KERAS_BACKEND names, torch if it names none.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from torch_judge import construct, measure, run, run_original

os.environ.setdefault("KERAS_BACKEND", "torch")


def find(layer: Any, path: str) -> Any:
    """The weight at a path of names and places, as the README beside the code has it."""
    for name in path.split("."):
        layer = getattr(layer, "layers", layer)[int(name)] if name.isdigit() else getattr(layer, name)
    return layer


def judge(package: Path, original: Path, inputs: dict[str, Any] | None) -> dict[str, Any]:
    """What came of one model: how far its outputs are off, once its weights are all given."""
    import keras
    from safetensors.numpy import load_file

    names = json.loads((package / "main.json").read_text())["inputs"]
    given, expected = run_original(original, inputs, names)
    model = construct(package)
    values = [keras.ops.convert_to_tensor(given[name]) for name in names]
    model(*values)
    weights = load_file(package / "model.safetensors")
    for path, value in weights.items():
        find(model, path).assign(value)
    found = [keras.ops.convert_to_numpy(one) for one in run(model, values)]
    return {"error": measure(expected, found), "left": len(model.weights) - len(weights)}


def answer(line: str) -> dict[str, Any]:
    """What came of the model of one line; what is raised is what the caller asks about."""
    package, original, inputs = json.loads(line)
    try:
        return judge(Path(package), Path(original), None if inputs is None else dict(np.load(inputs)))
    except Exception as error:
        said = " ".join(f"{error}".split())
        return {"failed": f"{type(error).__name__}: {said}"[:240]}


if __name__ == "__main__":
    for asked in sys.stdin:
        print(json.dumps(answer(asked)), flush=True)

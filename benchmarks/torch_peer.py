"""How far onnx2torch comes with ONNX models; runs where it is, beside onnxruntime, and needs nothing of nnrewrite.

    python benchmarks/torch_peer.py

Reads and prints lines as torch_judge.py does, which stands beside it: the largest error of the outputs by their
magnitude, or `failed` with why there are none.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np


def try_model(path: Path, inputs: dict[str, Any] | None) -> dict[str, Any]:
    """What came of one model; what onnx2torch raises is its result."""
    import onnx2torch
    import onnxruntime
    import torch
    import torch_judge

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        given = torch_judge.draw(session) if inputs is None else inputs
        expected = torch_judge.compute(session, given)
    except Exception as error:  # whatever the runtime raises says that these inputs are none of the model
        return {"untried": _shorten(error)}
    try:
        model = onnx2torch.convert(f"{path}").eval()
        names = [one.name for one in session.get_inputs()]
        with torch.no_grad():
            made = model(*(torch.from_numpy(np.array(given[name])) for name in names))
        found = [one.numpy() for one in (made if isinstance(made, list | tuple) else [made])]
        return {"error": torch_judge.measure(expected, found)}
    except Exception as error:
        return {"failed": _shorten(error)}


def _shorten(error: Exception) -> str:
    said = " ".join(f"{error}".split())
    lacking = re.search(r"operation_type='(\w+)', version=(\d+)", said)
    return f"no converter of {lacking[1]} {lacking[2]}" if lacking else f"{type(error).__name__}: {said}"[:160]


if __name__ == "__main__":
    for asked in sys.stdin:
        _, model, drawn = json.loads(asked)
        print(json.dumps(try_model(Path(model), None if drawn is None else dict(np.load(drawn)))), flush=True)

"""How far onnx2torch comes with ONNX models; runs where it is, beside onnxruntime, and needs nothing of nnrewrite.

    python benchmarks/torch_peer.py MODEL.onnx...

prints one line for each model: the largest error of the outputs by their magnitude, or why there are none. Inputs are
those that `torch_judge.py` draws, so that free sizes are 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np


def try_model(path: Path) -> str:
    """What came of one model: `equal`, `different` or `failed`, and the error."""
    import onnx2torch
    import onnxruntime
    import torch
    import torch_judge

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        given = torch_judge.draw(session)
        expected: Any = session.run(None, given)
    except Exception as error:  # whatever the runtime raises says that these inputs are none of the model
        return f"untried: {_shorten(error)}"
    try:
        model = onnx2torch.convert(f"{path}").eval()
        with torch.no_grad():
            made = model(*(torch.from_numpy(np.array(one)) for one in given.values()))
        found = [one.numpy() for one in (made if isinstance(made, list | tuple) else [made])]
    except Exception as error:  # whatever the peer raises is its result
        return f"failed: {_shorten(error)}"
    apart = torch_judge.measure(expected, found)
    return f"{'equal' if apart <= 1e-5 else 'different'}: {apart:.1e}"


def _shorten(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(f'{error}'.split())}"[:160]


if __name__ == "__main__":
    for model in map(Path, sys.argv[1:]):
        print(model.stem, try_model(model), flush=True)

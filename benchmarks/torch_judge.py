"""Generated PyTorch code held against ONNX Runtime; runs where torch is, and needs nothing of nnrewrite.

    python torch_judge.py

reads lines `["PACKAGE", "MODEL.onnx", "INPUTS.npz" or null]` and prints one JSON object for each: the largest error of
the outputs by their magnitude, the same from ONNX Runtime without its own optimizations and of both from double
precision where it is more than 1e-5, and whether the weights go round and one step of
an optimizer lowers a loss; or `failed`, with what was raised.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: gradients by which single precision moves nothing
_VANISHED = 1e-9
#: what is tried for free sizes, until ONNX Runtime takes one
_FREE = (12, 1, 2)
#: NumPy's types by what ONNX Runtime calls them
TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def draw(session: Any, free: int, taken: Sequence[str]) -> dict[str, Any]:
    """Random inputs, also those with defaults that the code takes, with a number for free sizes."""
    random, found = np.random.default_rng(0), {}
    for one in [*session.get_inputs(), *(v for v in session.get_overridable_initializers() if v.name in taken)]:
        shape, dtype = [n if isinstance(n, int) and n > 0 else free for n in one.shape], TYPES[one.type]
        real = np.issubdtype(dtype, np.floating)
        drawn = random.standard_normal(shape) * 0.5 if real else random.integers(0, 2, shape)
        found[one.name] = np.asarray(drawn, dtype)
    return found


def compute(session: Any, given: dict[str, Any]) -> list[Any]:
    """What ONNX Runtime computes, of ones where it does not take what was drawn, as a divisor of 0."""
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    try:
        return list(session.run(None, given))
    except Fail:
        for one in given.values():
            one[...] = 1
        return list(session.run(None, given))


def construct(package: Path) -> Any:
    """The generated model as it is made, without its weights."""
    spec = importlib.util.spec_from_file_location("generated", package / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, json.loads((package / "main.json").read_text())["name"])()


def load(package: Path) -> Any:
    """The generated model with its weights; all of them, and no others."""
    from safetensors.torch import load_file

    model = construct(package)
    model.load_state_dict(load_file(package / "model.safetensors"), strict=True)
    return model.eval()


def measure(expected: list[Any], found: list[Any]) -> float:
    """The largest difference by the magnitude of its output; infinite where shapes, kinds or infinities differ."""
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
            return float("inf")
        a, b = one.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a)
        if (finite != np.isfinite(b)).any():
            return float("inf")
        if finite.any():
            worst = max(worst, float(np.abs(a - b)[finite].max() / (np.abs(a[finite]).max() or 1.0)))
    return worst


def run(model: Any, values: list[Any]) -> list[Any]:
    """The outputs as a list."""
    found = model(*values)
    return [found] if not isinstance(found, tuple) else list(found)


def train(model: Any, values: list[Any]) -> bool | None:
    """Whether one step brings outputs nearer to random ones.

    None where nothing is to be trained, or outputs are saturated, as those of a Softmax that is sure.
    """
    import torch

    parameters = [one for one in model.parameters() if one.requires_grad]

    def loss() -> Any:
        random = torch.Generator().manual_seed(0)
        found = [one.float() for one in run(model, values) if one.is_floating_point() and one.numel()]
        return sum((one - torch.rand(one.shape, generator=random)).square().mean() for one in found)

    before = loss()
    if not parameters or not torch.is_tensor(before) or not before.requires_grad:
        return None
    before.backward()
    if max((float(one.grad.abs().max()) for one in parameters if one.grad is not None), default=0.0) < _VANISHED:
        return None
    kept = [one.detach().clone() for one in parameters]
    slope = sum(float(one.grad.double().square().sum()) for one in parameters if one.grad is not None)
    parts = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # of the loss, as far as it is straight
    for rate in (*(part * before.item() / max(slope, 1e-30) for part in parts), 1e-7, 1e-9, 1e-11):
        torch.optim.SGD(parameters, lr=rate).step()
        with torch.no_grad():
            lowered = bool(loss() < before)
            for one, old in zip(parameters, kept, strict=True):
                one.copy_(old)
        if lowered:
            return True
    return False


def run_original(
    original: Path, inputs: dict[str, Any] | None, taken: Sequence[str], optimized: bool = True
) -> tuple[dict[str, Any], list[Any]]:
    """The inputs, drawn where none are given and `taken` where they have defaults, and what ONNX Runtime makes of them;
    operator by operator, as ONNX says what each computes, where it is not to optimize."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(original, options, providers=["CPUExecutionProvider"])
    if inputs is not None:
        return inputs, compute(session, inputs)
    *sizes, last = _FREE
    for size in sizes:
        given = draw(session, size, taken)
        with contextlib.suppress(Exception):  # what a size means is not said: the last one tells
            return given, compute(session, given)
    return (given := draw(session, last, taken)), compute(session, given)


def judge(package: Path, original: Path, inputs: dict[str, Any] | None) -> dict[str, Any]:
    """What came of one model."""
    import torch

    names = json.loads((package / "main.json").read_text())["inputs"]
    given, expected = run_original(original, inputs, names)
    model = load(package)
    values = [torch.from_numpy(np.array(given[name])) for name in names]
    with torch.no_grad():
        found = [one.numpy() for one in run(model, values)]
    result: dict[str, Any] = {"error": measure(expected, found)}
    again = load(package)
    again.load_state_dict(model.state_dict())
    with torch.no_grad():
        result["round_trip"] = all(
            np.array_equal(a, b.numpy(), True) for a, b in zip(found, run(again, values), strict=True)
        )
    if result["error"] > 1e-5:
        result["unoptimized"] = measure(run_original(original, given, names, False)[1], found)
        try:
            wide = [one.double() if one.is_floating_point() else one for one in values]
            torch.set_default_dtype(torch.float64)
            with torch.no_grad():
                exact = [one.numpy() for one in run(again.double(), wide)]
            result["from_double"] = {"torch": measure(exact, found), "onnxruntime": measure(exact, expected)}
        except RuntimeError:
            result["from_double"] = None
        finally:
            torch.set_default_dtype(torch.float32)
    try:
        result["step_lowers_loss"] = train(model, values)
    except RuntimeError as error:
        result["step_lowers_loss"] = f"{type(error).__name__}: {error}"[:200]
    return result


def answer(line: str) -> dict[str, Any]:
    """What came of the model of one line; what is raised is what the caller asks about."""
    package, original, inputs = json.loads(line)
    try:
        return judge(Path(package), Path(original), None if inputs is None else dict(np.load(inputs)))
    except Exception as error:
        said = f"{error}".strip().splitlines() or ["?"]
        return {"failed": f"{type(error).__name__}: {said[0]}"[:200]}


if __name__ == "__main__":
    for asked in sys.stdin:
        print(json.dumps(answer(asked)), flush=True)

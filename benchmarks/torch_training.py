"""Export models of the zoo, write them as PyTorch code, and hold the code against the models: results and training.

    python -m nnrewrite.benchmarks.torch_training NAME... [--from pt2|onnx|torchscript] [--keep FOLDER]

Prints a JSON object for each model: how far results are from the model's, by the magnitude of each output, and for
exported programs the gradients by inputs and parameters, whether a step of an optimizer lowers a loss and weights go
round, and whether torch compiles and exports the code. Every weight gets a number of its own first: gradients are
compared number by number wherever a weight came to stand (`unlike` is the part that the code has no such number of).
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import io
import json
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import torch
from torch.utils import _pytree

#: how far results may lie apart, by the magnitude of each output
EQUAL = 1e-5
#: the same of gradients
EQUAL_GRADIENTS = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--from", dest="source", choices=("pt2", "onnx", "torchscript"), default="pt2")
    parser.add_argument("--keep", type=Path, help="a folder for the code")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    from .torch_zoo import list_models

    models = list_models()
    for name in asked.names:
        with tempfile.TemporaryDirectory() as made:
            found = measure(models[name], asked.source, (asked.keep or Path(made)) / name)
        print(name, json.dumps(found), flush=True)


def measure(make: Callable[[], Any], source: str, folder: Path) -> dict[str, Any]:
    """What came of one model; what torch or the code raises is its result."""
    torch.manual_seed(0)
    try:
        model, positional, named = make()
        scatter(model.eval())
        exported = export(model, positional, named, source)
    except Exception as error:
        return {"not exported": shorten(error)}
    try:
        written = nnrewrite.rewrite(exported, to="torch")
        written.save(folder)
    except nnrewrite.RewriteError as error:
        return {"refused": shorten(error)}
    program = written.encoded.program
    result: dict[str, Any] = {"lines": len(program.lines), "to_write": sorted(set(program.placeholders))}
    values = [one for one in _pytree.tree_leaves((positional, named)) if isinstance(one, torch.Tensor)]
    if result["to_write"]:
        return result
    try:
        code = load(folder, program.name)
        return result | compare(model, positional, named, code, values, source == "pt2")
    except Exception as error:
        return result | {"failed": shorten(error)}


def scatter(model: Any) -> None:
    """Give every weight and statistic a number that no other has, near its own."""
    with torch.no_grad():
        for one in model.parameters():
            if one.is_floating_point():
                one.add_(torch.randn_like(one) * 0.01)
        for module in model.modules():
            if getattr(module, "running_var", None) is not None:
                module.running_mean.add_(torch.randn_like(module.running_mean) * 0.1)
                module.running_var.mul_(torch.rand_like(module.running_var) + 0.5)


def export(model: Any, positional: Any, named: Any, source: str) -> bytes:
    """The file that torch writes of a model."""
    stream = io.BytesIO()
    if source == "pt2":
        torch.export.save(torch.export.export(model, positional, named), stream)
    elif source == "onnx":
        written = torch.onnx.export(model, positional, kwargs=named, dynamo=True, optimize=True, verbose=False)
        assert written is not None
        stream.write(written.model_proto.SerializeToString())
    else:
        torch.onnx.export(model, positional, stream, kwargs=named, dynamo=False)
    return stream.getvalue()


def load(folder: Path, name: str) -> Any:
    """The generated model with its weights, all of them and no others."""
    from safetensors.torch import load_file

    spec = importlib.util.spec_from_file_location("generated", folder / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, name)()
    made.load_state_dict(load_file(folder / "model.safetensors"))
    return made.eval()


def compare(model: Any, positional: Any, named: Any, code: Any, values: list[Any], training: bool) -> dict[str, Any]:
    """Results, and what training needs."""
    with torch.no_grad():
        wanted, found = list_tensors(model(*positional, **named)), list_tensors(code(*values))
    result: dict[str, Any] = {"error": measure_results(wanted, found)}
    if result["error"] > EQUAL:
        result["from_double"] = compare_in_double(model, positional, named, wanted, found)
    if not training:
        return result
    result |= compare_gradients(model, positional, named, code)
    again = copy.deepcopy(code)
    again.load_state_dict(code.state_dict())
    with torch.no_grad():
        result["round_trip"] = all(map(torch.equal, found, list_tensors(again(*values))))
    result["step_lowers_loss"] = lower_loss(again, values)
    for verb, act in (("compile", compile_code), ("export", export_code)):
        try:
            with torch.no_grad():
                result[verb] = measure_results(found, list_tensors(act(code, values)))
        except Exception as error:
            result[verb] = shorten(error)
    return result


def compile_code(code: Any, values: list[Any]) -> Any:
    torch.compiler.reset()
    return torch.compile(code, backend="aot_eager")(*values)


def export_code(code: Any, values: list[Any]) -> Any:
    return torch.export.export(code, tuple(values)).module()(*values)


def compare_in_double(model: Any, positional: Any, named: Any, wanted: list[Any], found: list[Any]) -> Any:
    """How far both are from double precision; None where the model has none."""

    def widen(one: Any) -> Any:
        return one.double() if isinstance(one, torch.Tensor) and one.dtype == torch.float32 else one

    try:
        wide, arguments = copy.deepcopy(model).double(), _pytree.tree_map(widen, (positional, named))
        torch.set_default_dtype(torch.float64)
        with torch.no_grad():
            exact = list_tensors(wide(*arguments[0], **arguments[1]))
        return {"code": measure_results(exact, found), "model": measure_results(exact, wanted)}
    except Exception:
        return None
    finally:
        torch.set_default_dtype(torch.float32)


def compare_gradients(model: Any, positional: Any, named: Any, code: Any) -> dict[str, Any]:
    """How far gradients are apart, of the largest of each tensor, and the part of weights without a counterpart."""
    leaves, shape = _pytree.tree_flatten((positional, named))
    leaves = [
        one.clone().requires_grad_() if isinstance(one, torch.Tensor) and one.is_floating_point() else one
        for one in leaves
    ]
    arguments = _pytree.tree_unflatten(leaves, shape)
    for kind in (model, code):
        kind.zero_grad()
    found = list_tensors(model(*arguments[0], **arguments[1]))
    if not add_up(found).requires_grad:
        return {}
    add_up(found).backward()
    by_input = [one.grad for one in leaves if isinstance(one, torch.Tensor) and one.requires_grad]
    flat = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in leaves]
    given = [one.requires_grad_() if one.is_floating_point() else one for one in flat if isinstance(one, torch.Tensor)]
    add_up(list_tensors(code(*given))).backward()
    by_input_too = [one.grad for one in given if one.requires_grad]
    weights = np.concatenate([one.detach().flatten().numpy() for one in model.parameters()])
    gradients = np.concatenate([flatten_gradient(one) for one in model.parameters()])
    places, first, counts = np.unique(weights, return_index=True, return_counts=True)
    places, first = places[counts == 1], first[counts == 1]
    largest, worst, unlike, total = float(np.abs(gradients).max()), {"none": 0.0}, 0, 0
    for name, one in code.named_parameters():
        here, own = one.detach().flatten().numpy(), flatten_gradient(one)
        at = np.searchsorted(places, here).clip(max=len(places) - 1)
        same = places[at] == here
        total += same.size
        unlike += int(same.size - same.sum())
        if same.any():
            due = gradients[first[at[same]]]
            # That by a bias of keys is 0 but for rounding: a hundredth of the largest of all is as small as counts.
            worst[name] = float(np.abs(own[same] - due).max() / max(0.01 * largest, np.abs(due).max(), 1e-30))
    name = max(worst, key=worst.__getitem__)
    pairs = [(a, b) for a, b in zip(by_input, by_input_too, strict=True) if a is not None and b is not None]
    return {
        "gradients": worst[name],
        "by_input": measure_results([a for a, _ in pairs], [b for _, b in pairs]),
        "unlike": round(unlike / max(total, 1), 3),
    } | ({"worst": name} if worst[name] > EQUAL_GRADIENTS else {})


def flatten_gradient(one: Any) -> Any:
    return (torch.zeros_like(one) if one.grad is None else one.grad).flatten().numpy()


def add_up(found: list[Any]) -> Any:
    """A loss in which every number of the results has a weight of its own, of a size that no model changes."""
    random = torch.Generator().manual_seed(1)
    real = [one for one in found if one.is_floating_point() and one.numel()]
    return sum((torch.rand(one.shape, generator=random) * one).sum() / one.numel() for one in real)


def lower_loss(model: Any, values: list[Any]) -> bool | None:
    """Whether one step lowers the mean of squared results; None where nothing is to be trained."""
    weights = [one for one in model.parameters() if one.requires_grad]

    def loss() -> Any:
        return sum((one**2).mean() for one in list_tensors(model(*values)) if one.is_floating_point() and one.numel())

    before = loss()
    if not weights or not torch.is_tensor(before) or not before.requires_grad:
        return None
    before.backward()
    kept = [one.detach().clone() for one in weights]
    slope = sum(float(one.grad.double().square().sum()) for one in weights if one.grad is not None)
    parts = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # of the loss, as far as it is straight
    for rate in (*(part * before.item() / max(slope, 1e-30) for part in parts), 1e-7, 1e-9, 1e-11):
        torch.optim.SGD(weights, lr=rate).step()
        with torch.no_grad():
            lowered = bool(loss() < before)
            for one, old in zip(weights, kept, strict=True):
                one.copy_(old)
        if lowered:
            return True
    return False


def list_tensors(found: Any) -> list[Any]:
    return [one for one in _pytree.tree_leaves(found) if isinstance(one, torch.Tensor)]


def measure_results(wanted: list[Any], found: list[Any]) -> float:
    """The largest difference by the magnitude of its tensor; infinite where shapes or infinities differ."""
    worst = 0.0
    if len(wanted) != len(found):
        return float("inf")
    for one, other in zip(wanted, found, strict=True):
        if one.shape != other.shape:
            return float("inf")
        a, b = one.detach().double(), other.detach().double()
        finite = a.isfinite()
        if not torch.equal(finite, b.isfinite()):
            return float("inf")
        if finite.any():
            worst = max(worst, float((a - b)[finite].abs().max() / (a[finite].abs().max() or 1.0)))
    return worst


def shorten(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


if __name__ == "__main__":
    main()

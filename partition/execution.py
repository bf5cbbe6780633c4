"""The driver: runs a partition's steps one after the other, in ONNX Runtime or in LiteRT, parts and host alike."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.base.errors import CallError, ModelError
from .files import MANIFEST

Array = npt.NDArray[Any]
#: runs a part: its name, its file, and its inputs by name; its outputs by name
Device = Callable[[str, Path, Mapping[str, Array]], Mapping[str, Array]]


def run(folder: str | os.PathLike[str], inputs: Mapping[str, Array], device: Device | None = None) -> dict[str, Array]:
    """Run a partition on inputs by name; its outputs by name.

    `device` runs the parts, by default the runtime of the host does: ONNX Runtime, or LiteRT for TensorFlow Lite. What
    steps keep between calls begins anew. Raises ModelError for a folder without a
    manifest, CallError for an input that is missing.
    """
    place = Path(folder)
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{place / MANIFEST}: cannot be read: {error}") from error
    values = {name: np.asarray(array) for name, array in inputs.items()}
    for step in manifest["steps"]:
        missing = [entry["name"] for entry in step["inputs"] if entry["name"] not in values]
        if missing:
            raise CallError(f"{place}: input {missing[0]} is missing")
        feeds = {entry["name"]: values[entry["name"]] for entry in step["inputs"]}
        runs = device if device is not None and step["on"] == "device" else _run_step
        values.update(runs(step["name"], place / step["file"], feeds))
    return {entry["name"]: values[entry["name"]] for entry in manifest["outputs"]}


def _run_step(name: str, file: Path, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    return _RUNS[file.suffix](file, feeds)


def _run_onnx(file: Path, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    import onnxruntime

    session = onnxruntime.InferenceSession(os.fspath(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def _run_tflite(file: Path, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(os.fspath(file)).get_signature_runner()
    found: Mapping[str, Array] = runner(**feeds)
    return found


_RUNS: Mapping[str, Callable[[Path, Mapping[str, Array]], Mapping[str, Array]]] = {
    ".onnx": _run_onnx,
    ".tflite": _run_tflite,
}

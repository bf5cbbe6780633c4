"""The driver: runs a partition's steps one after the other, in ONNX Runtime or in LiteRT, parts and host alike."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.base.errors import CallError, ModelError
from ..engine.base.regular_files import explain_failure, read_text
from ..engine.base.startup import dataclass, field
from .files import MANIFEST

Array = npt.NDArray[Any]
#: runs a part: its name, its file, and its inputs by name; its outputs by name
Device = Callable[[str, Path, Mapping[str, Array]], Mapping[str, Array]]

#: a step that is open: its inputs by name; its outputs by name
Step = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Division:
    """A partition to run again and again: its manifest, and its steps, opened when they are first run.

    What steps keep between runs stays, as in a whole model of TensorFlow Lite; `reset` lets it begin anew.
    """

    folder: Path
    manifest: Mapping[str, Any]
    device: Device | None = None
    _steps: dict[str, Step] = field(default_factory=dict, repr=False, compare=False)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run all steps on inputs by name; the outputs by name. Raises CallError for an input that is missing."""
        values = {name: one if isinstance(one, list) else np.asarray(one) for name, one in inputs.items()}
        for step in self.manifest["steps"]:
            missing = [entry["name"] for entry in step["inputs"] if entry["name"] not in values]
            if missing:
                raise CallError(f"{self.folder}: input {missing[0]} is missing")
            feeds = {entry["name"]: values[entry["name"]] for entry in step["inputs"]}
            values.update(self._run_step(step, feeds))
        return {entry["name"]: values[entry["name"]] for entry in self.manifest["outputs"]}

    def reset(self) -> None:
        """Forget what steps keep between runs."""
        self._steps.clear()

    def _run_step(self, step: Mapping[str, Any], feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        name, file = step["name"], self.folder / step["file"]
        if self.device is not None and step["on"] == "device":
            return self._run_device(self.device, name, file, feeds, [entry["name"] for entry in step["outputs"]])
        if name not in self._steps:
            self._steps[name] = _OPENS[file.suffix](file)
        return self._steps[name](feeds)

    def _run_device(
        self, device: Device, name: str, file: Path, feeds: Mapping[str, Array], outputs: Sequence[str]
    ) -> Mapping[str, Array]:
        found = device(name, file, feeds)
        if not isinstance(found, Mapping):
            kind = type(found).__name__
            raise CallError(
                f"{self.folder}: what runs {name} returns its outputs by name, and not an object of type {kind}"
            )
        missing = [output for output in outputs if output not in found]
        if missing:
            raise CallError(f"{self.folder}: what runs {name} returns no output {missing[0]}")
        return found


def load(folder: str | os.PathLike[str], device: Device | None = None) -> Division:
    """Open a partition, to run it several times; `device` runs the parts, by default the runtime of the host does.

    That is ONNX Runtime, or LiteRT for TensorFlow Lite. Raises ModelError for a folder without a manifest.
    """
    place = Path(folder)
    try:
        manifest = json.loads(read_text(place / MANIFEST))
    except (OSError, ValueError) as error:
        raise ModelError(f"{place / MANIFEST}: cannot be read: {explain_failure(error)}") from error
    return Division(place, manifest, device)


def run(folder: str | os.PathLike[str], inputs: Mapping[str, Array], device: Device | None = None) -> dict[str, Array]:
    """Run a partition once on inputs by name; its outputs by name.

    What steps keep between runs begins anew: `load` opens a partition to run it on. Raises what `load` and its run do.
    """
    return load(folder, device).run(inputs)


def _open_onnx(file: Path) -> Step:
    import onnxruntime

    session = onnxruntime.InferenceSession(os.fspath(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run_step(feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        text = {name: _decode_text(array) for name, array in feeds.items()}
        return dict(zip(names, session.run(names, text), strict=True))

    return run_step


def _open_tflite(file: Path) -> Step:
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(os.fspath(file)).get_signature_runner()
    return lambda feeds: runner(**{name: _hold_text(array) for name, array in feeds.items()})


def _decode_text(array: Any) -> Any:
    """Strings as text: of bytes ONNX Runtime takes what Python prints of them. A list of tensors, and nothing where an
    optional one is not there, are as they are."""
    if not isinstance(array, np.ndarray) or array.dtype != object:
        return array
    items = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
    return np.array(items, dtype=object).reshape(array.shape)


def _hold_text(array: Array) -> Array:
    """One string as bytes of fixed length: of an object without axes the interpreter reads the address."""
    return np.array(array.item()) if array.dtype == object and array.ndim == 0 else array


_OPENS: Mapping[str, Callable[[Path], Step]] = {".onnx": _open_onnx, ".tflite": _open_tflite}

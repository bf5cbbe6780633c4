"""PyTorch code of real models: how long it is, and whether it computes what ONNX Runtime does.

    python -m nnrewrite.benchmarks.torch_code --torch PYTHON MODEL... [--inputs inputs.json]

PYTHON has torch, safetensors and onnxruntime. A `.tflite` model is held against what `--float` makes of it as ONNX.
`inputs.json` has for models by their names a list `inputs` of name, type and shape, and `hi`, a bound of integers.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.python_writer import Encoded
from ..conversion import pipeline
from ..engine.base.errors import RewriteError
from .torch_judge import TYPES

_JUDGES = {name: Path(__file__).with_name(f"{name}_judge.py") for name in ("torch", "keras")}
_PEER = Path(__file__).with_name("torch_peer.py")
#: the error by the magnitude of an output up to which outputs are equal
_EQUAL = 1e-5
#: how long the judge may take for a model
_SECONDS = 300


def write_package(model: Path, folder: Path, to: str = "torch", **options: Any) -> tuple[Encoded, float]:
    """Convert a model to code in a folder; what was written, and the seconds that it took."""
    began = time.perf_counter()
    conversion = pipeline.rewrite(f"{model}", to=to, **options)
    encoded = conversion.encoded
    assert isinstance(encoded, Encoded)
    conversion.save(folder)
    taken = time.perf_counter() - began
    program = encoded.program
    about = {"name": program.name, "inputs": [one.source for one in program.inputs]}
    (folder / "main.json").write_text(json.dumps(about))
    return encoded, taken


def draw(plan: dict[str, Any]) -> dict[str, Any]:
    """Inputs as a plan has them: token types are 0, masks 1, a rate of samples 16000."""
    random, found = np.random.default_rng(0), {}
    for name, kind, shape in plan["inputs"]:
        dtype, low = TYPES[kind], name.lower()
        if low in ("sr", "sample_rate"):
            found[name] = np.full(shape, 16000, dtype)
        elif "mask" in low:
            found[name] = np.ones(shape, dtype)
        elif np.issubdtype(dtype, np.floating):
            found[name] = (random.standard_normal(shape) * 0.5).astype(dtype)
        else:
            found[name] = random.integers(0, 1 if "token_type" in low else max(1, plan["hi"]), shape).astype(dtype)
    return found


class Judge:
    """The judge in another interpreter, which is started anew where a model ends it or takes too long."""

    def __init__(self, python: str, library: str = "torch", peer: str | None = None, **options: Any) -> None:
        self.library, self.options = library, options
        self.peer = None if peer is None else Judge(peer)
        self._call = [python, f"{_JUDGES[library]}"]
        if self.peer is not None:
            self.peer._call[1] = f"{_PEER}"
        self._process: subprocess.Popen[str] | None = None

    def ask(self, package: Path, original: Path, inputs: Path | None) -> dict[str, Any]:
        """What it says of a package."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([f"{package}", f"{original}", None if inputs is None else f"{inputs}"]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line:
            process.kill()
            return {"failed": "it ended the interpreter" if ready else f"it took more than {_SECONDS} seconds"}
        found: dict[str, Any] = json.loads(line)
        return found


def measure(model: Path, judge: Judge, plans: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Convert and judge one model."""
    try:
        encoded, seconds = write_package(model, folder, judge.library, **judge.options)
        original = model
        if model.suffix != ".onnx" and encoded.program.placeholders:
            return {"lines": len(encoded.program.lines), "to_write": sorted(set(encoded.program.placeholders))}
        if model.suffix != ".onnx":
            original = folder / "original.onnx"
            real = {"float_io": True} if judge.options.get("fake_quantize") else {"float": True}
            pipeline.rewrite(f"{model}", **real).save(original)
    except RewriteError as error:
        return {"refused": f"{error}".splitlines()[0][:160]}
    lines = len(encoded.program.lines)
    result = {"lines": lines, "seconds": round(seconds, 2), "to_write": sorted(set(encoded.program.placeholders))}
    inputs = None
    if model.stem in plans:
        inputs = folder / "inputs.npz"
        np.savez(inputs, **draw(plans[model.stem]))
    result |= judge.ask(folder, original, inputs)
    return result if judge.peer is None else result | {"peer": judge.peer.ask(folder, original, inputs)}


def write_row(name: str, found: dict[str, Any]) -> str:
    """A line of the table beside onnx2torch."""

    def say(one: dict[str, Any]) -> str:
        if "error" in one:
            return f"{'equal' if one['error'] <= _EQUAL else 'different'}, {one['error']:.0e}"
        if one.get("to_write"):
            return f"to be written: {', '.join(one['to_write'])}"
        return str(one.get("failed") or one.get("refused") or one.get("untried")).replace("|", "\\|")[:90]

    return f"| {name} | {found.get('lines', '')} | {say(found)} | {say(found.get('peer', {'untried': ''}))} |"


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--torch", required=True, help="a Python with torch, safetensors and onnxruntime")
    parser.add_argument("--to", choices=tuple(_JUDGES), default="torch")
    parser.add_argument("--peer", help="a Python with onnx2torch, torch and onnxruntime: a table of both is printed")
    parser.add_argument("--unfold", action="store_true")
    parser.add_argument("--fake-quantize", action="store_true")
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the code")
    asked = parser.parse_args()
    plans = json.loads(asked.inputs.read_text()) if asked.inputs is not None else {}
    judge = Judge(asked.torch, asked.to, peer=asked.peer, unfold=asked.unfold, fake_quantize=asked.fake_quantize)
    with tempfile.TemporaryDirectory() as made:
        for model in asked.models:
            folder = (asked.keep or Path(made)) / model.stem
            found = measure(model, judge, plans, folder)
            print(write_row(model.stem, found) if asked.peer else f"{model.stem} {json.dumps(found)}", flush=True)


if __name__ == "__main__":
    main()

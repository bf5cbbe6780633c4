"""Convert models with operators of other domains than the standard's, and count those that compute the same.

    python -m nnrewrite.benchmarks.domains FOLDER...

Every `.onnx` below a FOLDER is written as TensorFlow Lite and as ONNX of the standard's operators alone
(`--rules onnx2onnx --rules standard`), and both are held against the original in ONNX Runtime: language models, which
take words, a mask and a state, at the beginning of a text, in its midst and for two texts, others on random inputs.
Prints for each folder how many are equal, what came of the rest, the operators of other domains and how many models
have them. Models to try are made by learned_models.py and language_models.py beside this, in an environment of theirs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ..conversion import pipeline
from ..engine.base.errors import RewriteError
from ..fuzz.runtimes import read_bytes
from ..verify import compare_models

#: the largest of the words that inputs are
_WORDS = 200
#: rows of state and of text, and texts
_CALLS = ((0, 4, 1), (5, 3, 1), (4, 1, 2))
_STANDARD = ("", "ai.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    for folder in parser.parse_args().folders:
        paths = sorted(folder.rglob("*.onnx"))
        counts = {"TensorFlow Lite": 0, "the standard's operators": 0}
        operators: Counter[str] = Counter()
        for path in paths:
            model = onnx.load(path, load_external_data=False)
            operators.update({f"{n.domain}.{n.op_type}" for n in model.graph.node if n.domain not in _STANDARD})
            for target in counts:
                said = _compare(path, model, target)
                counts[target] += not said
                if said:
                    print(f"{path.relative_to(folder)}, {target}: {said}", flush=True)
        print(f"{folder.name}: {len(paths)} models; equal as " + ", as ".join(f"{k} {v}" for k, v in counts.items()))
        print("  " + ", ".join(f"{name} {count}" for name, count in operators.most_common()))


def _compare(path: Path, model: onnx.ModelProto, target: str) -> str:
    """What is wrong with a model written for a target; nothing where it computes the same."""
    try:
        if target == "TensorFlow Lite":
            made = read_bytes(pipeline.rewrite(f"{path}", to="tflite").encoded)
        else:
            made = read_bytes(pipeline.rewrite(f"{path}", rules=("onnx2onnx", "standard")).encoded)
        names = {one.name for one in model.graph.input}
        calls = [[_make_inputs(model, *call)] for call in _CALLS] if "attention_mask" in names else [None]
        for inputs in calls:
            verdict = compare_models(f"{path}", made, inputs=inputs, samples=1 if inputs else 8, precise=True)
            if not verdict.passed:
                return "; ".join(verdict.differences)
    except RewriteError as error:
        return " ".join(f"{error}".split())[:200]
    return ""


def _make_inputs(model: onnx.ModelProto, past: int, new: int, texts: int) -> list[npt.NDArray[Any]]:
    """The inputs, in their order, of a language model that has seen `past` words of each of some texts."""
    rng = np.random.default_rng(0)
    made: list[npt.NDArray[Any]] = []
    for one in model.graph.input:
        shape = [d.dim_value for d in one.type.tensor_type.shape.dim]
        if one.name == "input_ids":
            made.append(rng.integers(0, _WORDS, (texts, new)))
        elif one.name == "attention_mask":
            made.append(np.ones((texts, past + new), np.int64))
        elif one.name == "position_ids":
            made.append(np.tile(np.arange(past, past + new), (texts, 1)))
        else:  # what was computed of the words before
            heads, columns = shape[1], shape[3] or _find_columns(model)
            made.append(rng.normal(size=(texts, heads, past, columns)).astype(np.float32))
    return made


def _find_columns(model: onnx.ModelProto) -> int:
    """How many columns a head has: twice those of a table of angles."""
    return next((2 * t.dims[1] for t in model.graph.initializer if t.name == "cos_cache"), 16)


if __name__ == "__main__":
    main()

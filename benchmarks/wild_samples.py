"""What TensorFlow's own interpreter computes for models with operators of TensorFlow, which others do not have.

    python wild_samples.py FOLDER

Writes FOLDER/.../NAME.npz beside each NAME.tflite that has such operators and no sample: operands by `given:NUMBER`,
results by `result:NUMBER`, and as `other:NUMBER` those of other kernels. Runs in an environment with TensorFlow.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from wild_children import Made, write_each

Resolver = tf.lite.experimental.OpResolverType


def run(content: bytes, kernels: Any, given: list[Any]) -> tuple[list[Any], list[Any]]:
    """The operands, drawn where none are given, and the results of a model."""
    interpreter = tf.lite.Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    entries = interpreter.get_input_details()
    draw = np.random.default_rng(0)
    for one in entries if not given else ():
        shape = (
            [2 if extent < 0 else extent for extent in one["shape_signature"]]
            if len(one["shape_signature"])
            else one["shape"]
        )
        if one["dtype"] == np.object_:
            given.append(np.array([str(7 * n) for n in range(int(np.prod(shape)))], "S").reshape(shape))
        elif np.issubdtype(one["dtype"], np.integer):
            low, high = (-128, 128) if one["dtype"] == np.int8 else (0, 10)
            given.append(draw.integers(low, high, shape).astype(one["dtype"]))
        else:
            given.append(draw.uniform(-1, 1, shape).astype(one["dtype"]))
    for one, value in zip(entries, given, strict=True):
        interpreter.resize_tensor_input(one["index"], value.shape)
    interpreter.allocate_tensors()
    for one, value in zip(entries, given, strict=True):
        interpreter.set_tensor(one["index"], value)
    interpreter.invoke()
    return given, [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]


def make(path: Path) -> Made:
    """A model as it is, with its sample."""
    content = path.read_bytes()
    given, results = run(content, Resolver.AUTO, [])
    sample = {f"given:{at}": value for at, value in enumerate(given)}
    sample |= {
        f"result:{at}": value.astype("S") if value.dtype == object else value for at, value in enumerate(results)
    }
    try:
        others = run(content, Resolver.BUILTIN_REF, given)[1]
    except (RuntimeError, ValueError) as error:  # the reference kernels lack operators
        print(f"{path}: {error}"[:200], file=sys.stderr)
        others = []
    return Made(content, sample | {f"other:{at}": value for at, value in enumerate(others) if value.dtype != object})


def main() -> None:
    folder = Path(sys.argv[1])
    for path in sorted(folder.rglob("*.tflite")):
        if b"Flex" in path.read_bytes() and not path.with_suffix(".npz").exists():
            write_each(path.parent, {f"{path.stem}.again": partial(make, path)})
            if path.with_suffix(".again").exists():
                path.with_suffix(".again").unlink()


if __name__ == "__main__":
    main()

"""Models as tf2onnx converts them. Runs in an environment with tf2onnx.

    python wild_peer.py NAME.tflite...

Writes NAME.peer.onnx beside each that it converts; standard error says why others are not.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tf2onnx.convert
from wild_children import Made, write_each


def make(path: Path) -> Made:
    """What the converter makes of a model."""
    model, _ = tf2onnx.convert.from_tflite(str(path))
    return Made(model.SerializeToString())


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        write_each(path.parent, {f"{path.stem}.peer.onnx": partial(make, path)})


if __name__ == "__main__":
    main()

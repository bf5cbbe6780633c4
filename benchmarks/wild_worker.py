"""The worker of verification with the interpreter of TensorFlow, which has the operators of TensorFlow.

    python wild_worker.py ROOT
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path


def main(root: Path) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tensorflow.lite.python import interpreter

    sys.modules["ai_edge_litert.interpreter"] = interpreter
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "nnrewrite").symlink_to(root)
        sys.path.insert(0, home)
        importlib.import_module("nnrewrite.verify.worker").main()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

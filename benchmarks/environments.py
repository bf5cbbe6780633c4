"""Environments of their own for the tools that benchmarks compare with: what they need is not wanted beside ours."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "build" / "peers"

#: the packages of each environment
PACKAGES = {
    # the last TensorFlow whose interpreter has TensorFlow's own operators
    "tf2onnx": ("tf2onnx==1.17.0", "tensorflow-cpu==2.18.1"),
    "tflite2onnx": ("tflite2onnx==0.4.1",),
    "onnxscript": ("onnxscript==0.7.2", "onnxruntime"),
    "wild": ("tensorflow==2.21.0", "ai-edge-litert==2.3.0", "ai-edge-quantizer==0.10.0", "onnx", "lark", "pyyaml"),
    "wild-torch": (
        "torch==2.13.0",
        "litert-torch==0.10.0",
        "torchvision",
        "timm",
        "transformers",
        "onnx",
        "onnxruntime",
    ),
    "optimizers": ("onnxsim", "onnxslim", "onnxscript==0.7.2", "onnxoptimizer", "onnxruntime"),
}


def python(name: str) -> Path:
    """The interpreter of an environment, which is made where it is not there; a link to another one will do."""
    home = PEERS / "environments" / name
    found = home / "bin" / "python"
    if not found.exists():
        venv.create(home, with_pip=True)
        try:
            subprocess.run([found, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        except BaseException:
            found.unlink()  # so that the next run makes it anew
            raise
    return found

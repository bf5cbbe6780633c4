"""Generated code is held against ONNX Runtime by a Python that has the library: this one, or NNREWRITE_TORCH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from nnrewrite.engine.base.data_files import OPS

_PYTHON = os.environ.get("NNREWRITE_TORCH", sys.executable)
_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{OPS.parent / 'benchmarks'}", "KERAS_BACKEND": "torch"}
_DRIVER = (
    "import json, pathlib, sys, {judge} as judge\n"
    "root = pathlib.Path(sys.argv[1])\n"
    "print(json.dumps({{p.name: judge.judge(p, p / 'original.onnx', None) for p in root.iterdir()}}))"
)

#: what holds the code of cases by their names against the runtime, once a function has written each into its folder
Judge = Callable[[Iterable[str], Callable[[str, Path], object]], dict[str, Any]]


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Write PyTorch code and hold it against the runtime."""
    return _make_judge("torch", tmp_path_factory)


@pytest.fixture(scope="session")
def judge_keras(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Write Keras code and hold it against the runtime."""
    return _make_judge("keras", tmp_path_factory)


def _make_judge(library: str, folders: pytest.TempPathFactory) -> Judge:
    needed = ", ".join(dict.fromkeys((library, "torch", "safetensors", "onnxruntime")))
    if _call(f"import {needed}").returncode:
        pytest.skip(f"{_PYTHON} has not all of {needed}: NNREWRITE_TORCH names one that has")

    def ask(names: Iterable[str], write: Callable[[str, Path], object]) -> dict[str, Any]:
        root = folders.mktemp(library)
        for name in names:
            write(name, root / name)
        done = _call(_DRIVER.format(judge=f"{library}_judge"), f"{root}")
        assert not done.returncode, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return ask


def _call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [_PYTHON, "-c", program, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, env=_ENVIRONMENT)


def assert_equal(found: dict[str, Any]) -> None:
    """Fail where code is not equal to 1e-5, weights do not go round, or no step lowers the loss."""
    assert found["error"] <= 1e-5
    assert found["round_trip"]
    assert found["step_lowers_loss"] in (True, None)

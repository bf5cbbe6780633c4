"""Crashes of a runtime: told without an end of this process."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import onnx
import pytest
from nnrewrite.verify.crashes import find_signal
from nnrewrite.verify.interpreter import InterpreterError
from nnrewrite.verify.reference import Reference
from nnrewrite.verify.runtime import Runtime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")


def test_the_signal_is_named_that_ends_the_work() -> None:
    assert find_signal(lambda: os.kill(os.getpid(), signal.SIGFPE), 10) == "SIGFPE"


@pytest.mark.parametrize("work", [lambda: None, lambda: 1 // 0, lambda: sys.exit(3), lambda: time.sleep(60)])
def test_work_that_ends_otherwise_or_is_not_over_in_time_is_no_crash(work: object) -> None:
    assert callable(work) and find_signal(work, 0.2) == ""


def test_sizes_by_which_the_runtime_crashes_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> net (float[1, n] x) => (float[1, n] y) { y = Neg(x) }'
    model = onnx.parser.parse_model(text).SerializeToString()
    run = Runtime.run

    def crash(self: Runtime, inputs: list[np.ndarray], seconds: float | None = None) -> object:
        if inputs[0].shape[1] < 100:
            os.kill(os.getpid(), signal.SIGFPE)
        return run(self, inputs, seconds)

    monkeypatch.setattr(Runtime, "run", crash)
    reference = Reference()
    assert reference.describe(model).inputs[0].shape[1] >= 100
    with pytest.raises(InterpreterError, match="SIGFPE"):
        reference.run(model, [[np.zeros((1, 3), np.float32)]])

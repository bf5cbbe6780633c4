"""Recurrent operators: every combination of options, in step with the interpreter over several calls."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import pytest
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime
from nnrewrite.verify.streaming import run_stream

from .random_cells import Cell, integer_cell, memory_cell, real_cell, unsigned_cell

pytestmark = pytest.mark.slow

REAL = [
    "BASIC_LSTM",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "LSTM",
    "RNN",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
]
CASES = 12
#: what a hybrid kernel, which rounds activations too, may differ by where nothing amplifies it
ROUNDED = 0.1


def apart(cell: Cell, catalogue: Catalogue, interpreter: Interpreter, exact: bool = False) -> float:
    """How far both models are apart at worst, in parts of the largest output."""
    source, steps = cell.model(catalogue)
    wanted = interpreter.run(source, steps, Kernels.OPTIMIZED, keep=True)
    found = run_stream(Runtime(nnrewrite.convert(source, exact=exact).SerializeToString()), steps)
    worst = 0.0
    for want, got in zip(wanted, found, strict=True):
        for a, b in zip(want, got, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            whole = max(1.0, float(np.abs(a).max())) if a.dtype.kind == "f" else 1.0
            worst = max(worst, float(np.abs(a.astype(float) - b).max()) / whole)
    return worst


@pytest.mark.parametrize("operator", REAL)
def test_real_cells_stay_in_step(operator: str, catalogue: Catalogue, interpreter: Interpreter) -> None:
    for seed in range(CASES):
        cell = real_cell(operator, seed)
        limit = ROUNDED if cell.hybrid else 1e-4
        assert apart(cell, catalogue, interpreter) < limit, f"{operator} {seed} {cell.options}"


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("operator", ["LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"])
def test_integer_cells_are_equal_code_for_code(
    operator: str, exact: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    for seed in range(CASES // 2):
        cell = integer_cell(operator, seed)
        assert apart(cell, catalogue, interpreter, exact) == 0, f"{operator} {seed} {cell.options}"


def test_integer_cells_without_codes_are_verified(catalogue: Catalogue, interpreter: Interpreter) -> None:
    source, _ = integer_cell("UNIDIRECTIONAL_SEQUENCE_LSTM", 0).model(catalogue)
    made = nnrewrite.convert(source, float=True).SerializeToString()
    assert compare_models(source, made, interpreter=interpreter).passed


@pytest.mark.parametrize(
    "cell",
    [integer_cell("LSTM", 0), integer_cell("UNIDIRECTIONAL_SEQUENCE_LSTM", 1), memory_cell(0), unsigned_cell(0)],
    ids=lambda cell: cell.operator,
)
def test_cells_that_stay_in_tensorflow_lite_without_codes_keep_real_numbers(
    cell: Cell, catalogue: Catalogue, interpreter: Interpreter, tmp_path: Path
) -> None:
    """Kernels ask that what they keep is in tensors of their own, which no DEQUANTIZE yields."""
    source, _ = cell.model(catalogue)
    made = nnrewrite.rewrite(source, to="tflite", float=True)
    made.save(tmp_path / "real.tflite")
    assert made.report.target_operators == {cell.operator: 1}
    found = compare_models(source, tmp_path / "real.tflite", interpreter=interpreter)
    assert found.passed and found.unquantized


def test_filters_with_a_memory_of_codes_are_equal_code_for_code(catalogue: Catalogue, interpreter: Interpreter) -> None:
    for seed in range(CASES):
        assert apart(memory_cell(seed), catalogue, interpreter) == 0, f"{seed}"


def test_unsigned_cells_are_equal_code_for_code(catalogue: Catalogue, interpreter: Interpreter) -> None:
    for seed in range(CASES // 2):
        cell = unsigned_cell(seed)
        assert apart(cell, catalogue, interpreter) == 0, f"{seed}"


@pytest.mark.parametrize("time", [1, 6, 7, 11])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_cell_that_reaches_its_limit_stays_there(
    time: int, backwards: bool, catalogue: Catalogue, interpreter: Interpreter
) -> None:
    sides = ("fw", "bw") if backwards else ("",)
    cell = Cell(f"{'BI' if backwards else 'UNI'}DIRECTIONAL_SEQUENCE_LSTM", np.random.default_rng(time))
    cell.operands["x"] = ("FLOAT32", [time, 2, 3])
    for side in sides:
        cell.operands |= {f"{side}w{gate}": cell.floats(4, 3) for gate in "ifco"}
        cell.operands |= {f"{side}r{gate}": cell.floats(4, 4) for gate in "ifco"}
        cell.operands |= {f"{side}p{gate}": None for gate in "ifo"}
        # Nothing is forgotten, and much is added at each step.
        cell.operands |= {f"{side}b{gate}": cell.floats(4) + (8 if gate in "ifc" else 0) for gate in "ifco"}
        cell.operands |= {f"{side}projection": None, f"{side}bias": None}
    for side in sides:
        cell.remembers(f"{side}h", 2, 4)
        cell.remembers(f"{side}c", 2, 4)
    if backwards:
        cell.operands |= dict.fromkeys(f"beside{place}" for place in range(9))
    cell.options = {"cell_clip": 10.0, "time_major": True, "fused_activation_function": "TANH"}
    cell.results = [("FLOAT32", [time, 2, 4])] * len(sides)
    cell.steps = 40 // time
    assert apart(cell, catalogue, interpreter) < 1e-4

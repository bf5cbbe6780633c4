"""What a call of the command imports: nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nnrewrite.backends.probe import write_operator_model
from nnrewrite.engine.dialects.ops_files import load

#: each takes longer to import than a small model to convert
HEAVY = {"sympy", "rich", "hypothesis", "onnxruntime", "ai_edge_litert", "lark", "yaml", "onnx.reference"}


def imported(folder: Path, *call: str, then: str = "") -> set[str]:
    """The modules that are there after a call of the command."""
    code = f"""
import sys
from nnrewrite.cli import dispatch
sys.argv[1:] = {call!r}
try:
    dispatch.main()
except SystemExit as end:
    assert not end.code, end
{then}
open("modules", "w").write(" ".join(sys.modules))
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return set((folder / "modules").read_text().split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = write_operator_model(load(), "RELU", {"x": ("FLOAT32", (1, 4))}, [("FLOAT32", (1, 4))])
    (tmp_path / "net.tflite").write_bytes(model)
    return tmp_path


def test_help_imports_neither_onnx_nor_numpy(folder: Path) -> None:
    assert not imported(folder, "--help") & (HEAVY | {"onnx", "onnx_ir", "numpy"})


@pytest.mark.slow
def test_a_conversion_imports_nothing_heavy(folder: Path) -> None:
    first = imported(folder, "net.tflite")  # which may have to read the rules
    assert {"onnx", "onnx_ir"} <= first
    assert not imported(folder, "net.tflite") & HEAVY
    assert (folder / "net.onnx").exists()


@pytest.mark.slow
def test_symbolic_extents_can_still_be_computed_with(folder: Path) -> None:
    then = """
import onnx_ir as ir
batch = ir.Shape(["n"])[0]
assert str((batch + 1).value) == "n + 1"
bounded = ir.SymbolicDim("max(n, 3) * 2")
assert bounded.evaluate({"n": 7}) == 14
import sympy
assert isinstance(batch._expr, sympy.Symbol)
"""
    assert "sympy" in imported(folder, "net.tflite", then=then)


@pytest.mark.slow
def test_a_conversion_by_the_library_imports_nothing_heavy_either(folder: Path) -> None:
    code = """
import sys, nnrewrite
for _ in range(2):  # the first may have to read the rules
    nnrewrite.rewrite("net.tflite").save("net.onnx")
open("modules", "w").write(" ".join(sys.modules))
"""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    assert not {*(folder / "modules").read_text().split()} & HEAVY


def test_the_process_that_runs_the_interpreter_imports_no_more_than_numpy(tmp_path: Path) -> None:
    code = 'import sys, nnrewrite.verify.worker; open("modules", "w").write(" ".join(sys.modules))'
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert not {*(tmp_path / "modules").read_text().split()} & (HEAVY | {"onnx", "onnx_ir"})

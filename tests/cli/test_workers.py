"""Several models at once: the same files and words as one after the other, and an account of where time goes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nnrewrite.backends.probe import write_operator_model
from nnrewrite.cli import dispatch, workers
from nnrewrite.engine.dialects.ops_files import load

pytestmark = pytest.mark.slow

OPERATORS = ("ABS", "EXP", "NEG", "RELU", "SIN", "TANH")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a folder of models, one of them malformed."""
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    for operator in OPERATORS:
        model = write_operator_model(load(), operator, {"x": ("FLOAT32", (1, 4, 4, 2))}, [("FLOAT32", (1, 4, 4, 2))])
        Path(f"models/{operator}.tflite").write_bytes(model)
    Path("models/NAN.tflite").write_bytes(b"no model, but long enough to be read as one")
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(dispatch.app, ["models", *arguments], prog_name="rewrite")


def words(result: Result) -> tuple[str, str]:
    """What was printed, but for times and the folder written to."""
    return tuple(re.sub(r"\d+\.\d+ s|one/|two/", "", text) for text in (result.stdout, result.stderr))  # type: ignore[return-value]


@pytest.mark.parametrize("more", [("--keep-going",), ("--keep-going", "--quiet"), ("--keep-going", "--verify")])
def test_workers_write_and_say_what_one_process_does(folder: Path, more: tuple[str, ...]) -> None:
    one, two = call("-d", "one", *more), call("-d", "two", "--jobs", "3", *more)
    assert one.exit_code == two.exit_code == 1
    assert words(one) == words(two)
    names = [f"{operator}.onnx" for operator in OPERATORS]
    assert sorted(path.name for path in Path("one").iterdir()) == sorted(path.name for path in Path("two").iterdir())
    for name in names:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_the_first_failure_ends_a_call_of_several_workers(folder: Path) -> None:
    result = call("-d", "out", "--jobs", "2")
    assert result.exit_code == 1
    assert "2 of 7 models converted" in result.stdout and "4 not tried" in result.stdout
    assert result.stderr.startswith("rewrite: error: models/NAN.tflite")
    assert not [path for path in Path("out").iterdir() if path.suffix != ".onnx"]


def test_a_worker_that_the_system_ends_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "attempt", lambda *arguments: os._exit(9))
    result = call("-d", "out", "--jobs", "2")
    assert result.exit_code == 1
    assert "models/ABS.tflite: the system ended a process" in result.stderr


def test_a_trace_and_workers_exclude_each_other(folder: Path) -> None:
    result = call("-d", "out", "--jobs", "2", "--trace")
    assert result.exit_code == 2 and "--trace" in result.stderr


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_profile_counts_what_each_rule_was_tried_on(folder: Path, count: str) -> None:
    Path("models/NAN.tflite").unlink()
    result = call("-d", "out", "--profile", "--jobs", count)
    assert result.exit_code == 0, result.output
    assert re.search(r"^part +ms +share$", result.stdout, re.MULTILINE)
    for part in ("reading", "lower", "layout", "checking", "writing", "all else"):
        assert re.search(rf"^{part} +\d+\.\d +\d+%$", result.stdout, re.MULTILINE), part
    assert re.search(r"^unary\.NEG +lower +1 +1 +\d+\.\d +\d+%$", result.stdout, re.MULTILINE)


def test_nothing_is_measured_unless_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnrewrite.engine.rewrite.profile.perf_counter", lambda: pytest.fail("the clock was asked"))
    Path("models/NAN.tflite").unlink()
    result = call("-d", "out")
    assert result.exit_code == 0 and "all else" not in result.stdout

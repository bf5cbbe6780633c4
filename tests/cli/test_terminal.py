"""The command between a terminal, pipes and signals: colours, output that finds no room, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from nnrewrite.cli import console

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals are those of POSIX")

PROGRAM = [sys.executable, "-m", "nnrewrite"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: Callable[..., bytes]) -> Path:
    """A folder with a model, which is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    return tmp_path


# ---- colours ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_want_them(folder: Path, environment: dict[str, str], coloured: bool) -> None:
    import pty

    main, terminal = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [*PROGRAM, "net.tflite", "gone.tflite", "--keep-going"],
        stdout=terminal,
        stderr=subprocess.STDOUT,
        env={**inherited, "TERM": "xterm", **environment},
        timeout=120,
    )
    os.close(terminal)
    shown = os.read(main, 1 << 16)
    os.close(main)
    assert done.returncode == 1
    assert b"net.onnx" in shown and b"gone.tflite: No such file" in shown
    assert (b"\x1b[3" in shown or b"\x1b[1;3" in shown) == coloured


# ---- waiting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminal", "quiet", "seconds", "told"),
    [(True, False, 0.3, True), (True, False, 0.0, False), (True, True, 0.3, False), (False, False, 0.3, False)],
)
def test_a_wait_is_announced_at_a_terminal_where_it_is_long(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
    quiet: bool,
    seconds: float,
    told: bool,
) -> None:
    monkeypatch.setattr(console, "_PATIENCE", 0.1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with console.show_wait("rules are read", quiet):
        time.sleep(seconds)
    assert capsys.readouterr().err == ("rules are read\r\x1b[2K" if told else "")


# ---- output that finds no room ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("net.tflite",), ("--help",), ("ops", "--json"), ("help", "fmt")])
def test_a_full_device_is_told_in_one_line(folder: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "rewrite: error: the output cannot be written: No space left on device\n",
    )


@pytest.mark.slow
def test_a_pipe_that_is_closed_ends_the_command_in_silence(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROGRAM, "ops"], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# ---- interruptions ---------------------------------------------------------------------------------------------------

#: a program that converts at once what is called `fast`, and takes its time, with a file half written, for all else
SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests in the background inherit as ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and those that go on without a terminal
from nnrewrite.conversion import pipeline
from nnrewrite.cli import dispatch
from nnrewrite.engine.base.atomic_write import open_replacement
real = pipeline.rewrite

def rewrite(source, *rest, **named):
    if not source.name.startswith("fast"):
        with open_replacement(source.with_suffix(".onnx")) as file:
            file.write(b"half")
            time.sleep(60)
    return real(source, *rest, **named)

pipeline.rewrite = rewrite
sys.argv[1:] = {arguments!r}
dispatch.main()
"""


def interrupted(folder: Path, workers: str, number: signal.Signals, *more: str) -> tuple[int, str, str]:
    """The status, output and errors of a call that is interrupted with two of five models converted."""
    names = ["fast1", "fast2", "slow1", "slow2", "slow3"]
    for name in names:
        Path(f"{name}.tflite").write_bytes(Path("net.tflite").read_bytes())
    script = SLOW.format(arguments=[*(f"{name}.tflite" for name in names), "--jobs", workers, *more])
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 100
    while len(list(folder.glob(".rewrite-*.part"))) < int(workers) or not Path("fast2.onnx").exists():
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)  # until the parent knows of what was finished
    # A terminal interrupts all processes of a group, `kill` the one that it names.
    (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
    output, errors = process.communicate(timeout=30)
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".tflite") == ["fast1.onnx", "fast2.onnx"]
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    return process.returncode, output, errors


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 130, "rewrite: error: interrupted: 2 of 5 models converted\n"),
        (signal.SIGTERM, 143, ""),
        (signal.SIGHUP, 129, ""),
    ],
)
def test_an_interruption_says_how_many_models_were_converted(
    folder: Path, workers: str, number: signal.Signals, status: int, said: str
) -> None:
    found, _, errors = interrupted(folder, workers, number)
    assert (found, errors) == (status, said)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_document_of_an_interrupted_call_has_what_was_finished(folder: Path, workers: str) -> None:
    status, output, _ = interrupted(folder, workers, signal.SIGINT, "--json")
    document = json.loads(output)
    assert (status, document["ok"]) == (130, False)
    assert [(one["source"], one["ok"]) for one in document["results"]] == [
        ("fast1.tflite", True),
        ("fast2.tflite", True),
    ]
    [told] = document["diagnostics"]
    assert (told["kind"], told["message"]) == ("Interrupted", "interrupted: 2 of 5 models converted")


@pytest.mark.slow
def test_a_trace_that_nobody_reads_on_ends_without_a_word(tmp_path: Path, single: Callable[..., bytes]) -> None:
    (tmp_path / "net.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    begun = subprocess.Popen(
        [sys.executable, "-u", "-m", "nnrewrite", "--trace=ABS_0", "net.tflite"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert begun.stdout is not None
    begun.stdout.close()
    _, told = begun.communicate(timeout=60)
    assert b"internal error" not in told and not (tmp_path / "net.onnx").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interruption_that_comes_as_an_object_goes_is_not_lost(number: signal.Signals, status: int) -> None:
    code = f"""
import signal, sys, time, os, weakref, click
signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests in the background inherit as ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and those that go on without a terminal
from nnrewrite.cli import dispatch

class Thing: pass

@click.command("check")
def command():
    thing = Thing()
    held = weakref.ref(thing, lambda gone: [os.kill(os.getpid(), {int(number)}), time.sleep(0.01)])
    del thing
    for _ in range(200):
        time.sleep(0.05)

dispatch._import_command = lambda module: command
sys.argv[1:] = ["check"]
dispatch.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    assert done.stderr == ("rewrite: error: interrupted\n" if number is signal.SIGINT else "")

"""Pipes that nobody writes to, where a file is looked for: they are told, and nobody waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes"),
    pytest.mark.slow,  # each runs a command, which is to end by itself
]

MODEL = '<ir_version: 8, opset_import: ["": 17]> net (float[2] x) => (float[2] y) { y = Erf(x) }'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(MODEL), "net.onnx")
    Path("place").mkdir()


@pytest.mark.parametrize(
    ("pipe", "arguments", "message"),
    [
        ("x.rules", ["check", "place"], "place/x.rules: cannot be read: not a regular file"),
        ("x.rules", ["fmt", "place"], "place/x.rules: cannot be read: not a regular file"),
        ("x.rules", ["net.onnx", "--rules", "place", "-o", "o.onnx"], "place/x.rules: cannot be read: not a regular"),
        ("one.json", ["coverage", "place"], "place/one.json: cannot be read: not a regular file"),
        ("README.md", ["net.onnx", "--to", "torch", "-o", "place/"], "README.md: was not written by nnrewrite"),
        ("x.onnx", ["place/x.onnx", "-o", "o.onnx"], "place/x.onnx: not a regular file, which models are read from"),
        (
            "x.npz",
            ["fuzz", "--replay", "place/x.onnx"],
            "place/x.npz: no inputs of a saved failure: not a regular file",
        ),
        ("manifest.json", ["partition", "net.onnx", "--target", "tensorrt", "-d", "place"], "cannot be replaced"),
    ],
)
def test_a_pipe_is_not_waited_for(pipe: str, arguments: list[str], message: str) -> None:
    os.mkfifo(f"place/{pipe}")
    if pipe == "x.npz":
        Path("place/x.onnx").touch()
    before = {*Path("place").iterdir()}
    command = [sys.executable, "-m", "nnrewrite", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert message in done.stderr and "internal" not in done.stderr
    assert done.returncode in (1, 2)
    assert {*Path("place").iterdir()} == before


@pytest.mark.parametrize("text", ["[]", "{", '{"templates": 3}', '{"templates": {}}', '{"templates": {"a": {"b": 1}}}'])
def test_what_is_no_record_of_rules_is_told(text: str) -> None:
    Path("place/one.json").write_text(text)
    command = [sys.executable, "-m", "nnrewrite", "coverage", "place"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "rewrite: error: place/one.json: is no record of which rules fired\n"
    assert done.returncode == 1

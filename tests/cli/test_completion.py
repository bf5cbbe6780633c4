"""What a shell is offered for a line that is not finished."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import COMMANDS, app


def offered(line: str) -> list[str]:
    """The completions of the last word of a line, each as `kind,text`."""
    words = line.split(" ")
    env = {"_REWRITE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": f"{len(words) - 1}"}
    result = CliRunner().invoke(app, [], env=env, prog_name="rewrite", catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout.split()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plain(*words: str) -> list[str]:
    return [f"plain,{word}" for word in words]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_prints_what_a_shell_loads(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from nnrewrite.cli.dispatch import main; main()"],
        env={**os.environ, "_REWRITE_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert f"_REWRITE_COMPLETE={shell}_complete" in done.stdout.replace("env ", "")


def test_commands_are_offered_first_and_files_beside_them() -> None:
    Path("cat.tflite").write_bytes(b"")
    Path("folder").mkdir()
    assert offered("rewrite ") == plain(*sorted(COMMANDS), "cat.tflite", "folder")
    assert offered("rewrite c") == plain("check", "convert", "coverage", "cat.tflite")
    assert offered("rewrite x") == ["file,x"]


def test_no_command_is_offered_after_an_option_or_a_model() -> None:
    for line in ("rewrite --verify c", "rewrite net.tflite c", "rewrite convert c"):
        assert offered(line) == ["file,c"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rewrite --keep-", ["--keep-float16", "--keep-going", "--keep-custom"]),
        ("rewrite verify --per", ["--per-layer"]),
        ("rewrite --state ", ["external", "internal"]),
        ("rewrite convert --activations ", ["int8", "uint8"]),
        ("rewrite --layout ", ["source", "target"]),
        ("rewrite --batch d", ["dynamic"]),
        (
            "rewrite --target ",
            [
                "edge-tpu",
                "ethos-u",
                "litert",
                "onnxruntime",
                "onnxruntime-avx2",
                "onnxruntime-small",
                "portable",
                "tensorrt",
                "tflm",
                "xnnpack",
                "xnnpack-litert",
            ],
        ),
        ("rewrite bench --target p", ["portable"]),
        ("rewrite --rules tf", ["tflite2onnx", "tflite2tflite", "tflm"]),
        (
            "rewrite check on",
            ["onnx", "onnx2onnx", "onnx2tflite", "onnx2torch", "onnxruntime", "onnxruntime-avx2", "onnxruntime-small"],
        ),
        ("rewrite ops --format m", ["markdown"]),
        ("rewrite ops conv_2", ["CONV_2D"]),
        ("rewrite fuzz --op SOFTM", ["SOFTMAX"]),
        ("rewrite fuzz --rule conv_2", ["conv_2d"]),
        ("rewrite help fu", ["fuzz"]),
    ],
)
def test_values_are_offered(line: str, words: list[str]) -> None:
    assert sorted(offered(line)) == sorted(plain(*words))


def test_folders_are_offered_where_no_name_fits() -> None:
    assert offered("rewrite --rules ./p") == offered("rewrite --target ./p") == ["dir,./p"]


def test_models_in_a_bundle_are_offered(single: Callable[..., bytes]) -> None:
    with zipfile.ZipFile("net.task", "w") as bundle:
        bundle.writestr("first.tflite", single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    assert offered("rewrite net.task --member ") == plain("first.tflite")
    assert offered("rewrite gone.task --member ") == []


def test_signatures_are_offered_beside_all_of_them(single: Callable[..., bytes]) -> None:
    Path("net.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    assert offered("rewrite net.tflite --signature ") == plain("all")

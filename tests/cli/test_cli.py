"""The command as a user meets it: names of outputs, whole files, exit statuses, what is printed."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from nnrewrite.backends.probe import write_operator_model
from nnrewrite.cli import dispatch, flags
from nnrewrite.cli.jobs import Job, plan_jobs
from nnrewrite.conversion import pipeline
from nnrewrite.conversion.converted_model import Conversion
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base.atomic_write import open_replacement
from nnrewrite.engine.base.errors import CallError, DestinationError, ModelError
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.packs import loader


@pytest.fixture(scope="module")
def relu() -> bytes:
    """A TensorFlow Lite model of one operator."""
    return write_operator_model(load(), "RELU", {"x": (np.float32, [1, 16])}, [(np.float32, [1, 16])])


def none_inside(path: Path) -> Sequence[str]:
    return ()


def call(*arguments: str | Path) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(dispatch.app, [str(argument) for argument in arguments], prog_name="rewrite")


# ---- outputs ---------------------------------------------------------------------------------------------------------


def test_the_output_is_named_after_the_model_in_the_current_folder() -> None:
    (job,) = plan_jobs([Path("some/where/face.tflite")], None, None, None, none_inside)
    assert job == Job(Path("some/where/face.tflite"), None, Path("face.onnx"))


def test_several_outputs_lie_in_the_folder_asked_for() -> None:
    jobs = plan_jobs([Path("a.tflite"), Path("b.bin")], None, Path("out"), None, none_inside)
    assert [job.target for job in jobs] == [Path("out/a.onnx"), Path("out/b.onnx")]


def test_a_bundle_gives_a_file_for_each_model_inside() -> None:
    jobs = plan_jobs([Path("pose.task")], None, None, None, lambda path: ["pose_detector.tflite", "extra/a.b.tflite"])
    assert [(job.member, job.target.name) for job in jobs] == [
        ("pose_detector.tflite", "pose.pose_detector.onnx"),
        ("extra/a.b.tflite", "pose.extra.a.b.onnx"),
    ]


def test_one_member_of_a_bundle_may_be_asked_for() -> None:
    (job,) = plan_jobs([Path("pose.task")], None, None, "b.tflite", lambda path: ["a.tflite", "b.tflite"])
    assert job == Job(Path("pose.task"), "b.tflite", Path("pose.b.onnx"))


def test_a_folder_stands_for_the_models_below_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.tflite", "deep/b.tflite", "a.TFLITE", "readme.md"):
        (tmp_path / name).write_bytes(b"")
    jobs = plan_jobs([tmp_path], None, Path("out"), None, none_inside)
    assert [job.target.as_posix() for job in jobs] == ["out/a.onnx", "out/b.onnx", "out/deep/b.onnx"]


def test_a_folder_of_models_in_the_format_to_write_stands_for_these(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"")
    (job,) = plan_jobs([tmp_path], None, Path("out"), None, none_inside)
    assert job.target == Path("out/a.onnx")


def test_a_folder_without_models_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"no \.tflite"):
        plan_jobs([tmp_path], None, None, None, none_inside)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(CallError, match="in this folder: it is a SavedModel of TensorFlow"):
        plan_jobs([tmp_path], None, None, None, none_inside)


def test_two_models_with_one_output_are_refused() -> None:
    with pytest.raises(CallError, match=r"(?s)same file.*a/m.tflite, b/m.tflite"):
        plan_jobs([Path("a/m.tflite"), Path("b/m.tflite")], None, None, None, none_inside)


def test_an_output_file_is_for_one_model() -> None:
    with pytest.raises(CallError, match="2 models"):
        plan_jobs([Path("a.tflite"), Path("b.tflite")], Path("c.onnx"), None, None, none_inside)
    with pytest.raises(CallError, match="give one"):
        plan_jobs([Path("a.tflite")], Path("c.onnx"), Path("out"), None, none_inside)


def test_a_model_that_is_read_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").touch()
    with pytest.raises(CallError, match="is read"):
        plan_jobs([tmp_path / "a.tflite"], tmp_path / "." / "a.tflite", None, None, none_inside)


def test_that_a_model_is_missing_is_told_when_it_is_read() -> None:
    [job] = plan_jobs([Path("a.onnx")], None, None, None, none_inside)
    assert job.source == job.target == Path("a.onnx")


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    for target in (Path(os.devnull), tmp_path):
        with pytest.raises(CallError, match="not a regular file"):
            plan_jobs([Path("a.tflite")], target, None, None, none_inside)


def test_a_bundle_that_cannot_be_read_is_left_for_its_conversion_to_tell() -> None:
    def broken(path: Path) -> Sequence[str]:
        raise ModelError(f"{path}: no such file")

    (job,) = plan_jobs([Path("gone.task")], None, None, None, broken)
    assert job.member is None


# ---- whole files -----------------------------------------------------------------------------------------------------


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "made" / "model.onnx"
    with open_replacement(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["model.onnx"]
    assert target.read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "model.onnx"
    target.write_bytes(b"before")
    with pytest.raises(error), open_replacement(target) as file:
        file.write(b"half")
        raise error
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_what_the_system_refuses_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / "file" / "model.onnx"
    with pytest.raises(DestinationError, match=f"{target}: cannot be written"), open_replacement(target):
        pass


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.onnx").write_bytes(b"before")
    (tmp_path / "link.onnx").symlink_to("real.onnx")
    with open_replacement(tmp_path / "link.onnx") as file:
        file.write(b"after")
    assert (tmp_path / "link.onnx").is_symlink()
    assert (tmp_path / "real.onnx").read_bytes() == b"after"


# ---- whole calls -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_conversion_writes_the_model_and_tells_what_it_did(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call("--rules", "tflite2onnx", "net.tflite")
    assert (result.exit_code, result.stderr) == (0, "")
    assert files(folder) == ["net.onnx", "net.tflite"]
    onnx.checker.check_model(onnx.load("net.onnx"), full_check=True)
    size = Path("net.onnx").stat().st_size
    for fact in ("net.tflite -> net.onnx", "RELU 1", "Relu 1", "Transposes left 0", f"{len(relu):,} in, {size:,} out"):
        assert fact in result.stdout
    assert "\x1b" not in result.stdout


def test_quiet_prints_nothing(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite", "--quiet", "--verify", "-o", "deep/out.onnx")
    assert (result.exit_code, result.output) == (0, "")
    assert files(folder) == ["deep/out.onnx", "net.tflite"]


def test_the_opset_is_the_one_asked_for(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    assert call("net.tflite", "--opset", "15").exit_code == 0
    assert [entry.version for entry in onnx.load("net.onnx").opset_import if entry.domain == ""] == [15]


@pytest.mark.parametrize("content", [None, b"", b"this is no model"])
def test_bad_input_is_one_line_that_names_the_file(folder: Path, content: bytes | None) -> None:
    if content is not None:
        Path("bad.tflite").write_bytes(content)
    result = call("bad.tflite", "--quiet")
    assert result.exit_code == 1
    assert result.stderr.startswith("rewrite: error: bad.tflite")
    assert result.stderr.count("\n") == 1
    assert files(folder) == (["bad.tflite"] if content is not None else [])


def test_without_keep_going_the_first_failure_is_the_last_model(folder: Path, relu: bytes) -> None:
    for name in ("a", "c"):
        Path(f"{name}.tflite").write_bytes(relu)
    result = call("a.tflite", "b.tflite", "c.tflite", "-d", "out")
    assert result.exit_code == 1
    assert files(folder / "out") == ["a.onnx"]
    assert "1 of 3 models converted" in result.stdout
    assert "1 not tried" in result.stdout


def test_with_keep_going_the_other_models_are_converted(folder: Path, relu: bytes) -> None:
    for name in ("a", "c"):
        Path(f"{name}.tflite").write_bytes(relu)
    result = call("a.tflite", "b.tflite", "c.tflite", "-d", "out", "--keep-going")
    assert result.exit_code == 1
    assert files(folder / "out") == ["a.onnx", "c.onnx"]
    assert [text for text in result.stdout.splitlines() if text.startswith("out/")][1].startswith("out/c.onnx: 1 -> 1")
    assert "2 of 3 models converted" in result.stdout
    assert "1 failed" in result.stdout


@pytest.mark.parametrize("more", [("--keep-going",), (), ("--json",)])
def test_a_mistake_of_ours_is_one_line_and_costs_one_model(
    folder: Path, relu: bytes, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    real = pipeline.rewrite

    def failing(source: Path, *rest: Any, **named: Any) -> Any:
        return real(source, *rest, **named) if source.name != "a.tflite" else {}["operator"]

    monkeypatch.setattr(pipeline, "rewrite", failing)
    for name in ("a", "b"):
        Path(f"{name}.tflite").write_bytes(relu)
    result = call("a.tflite", "b.tflite", *more, "-d", "out")
    assert result.exit_code == 1
    said = "internal error: what is done with the converted model: KeyError: 'operator'"
    assert f"a.tflite: {said}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    if "--keep-going" in more:
        assert files(folder / "out") == ["b.onnx"]
    if "--json" in more:
        [told] = json.loads(result.stdout)["diagnostics"]
        assert (told["kind"], told["file"], said in told["message"]) == ("InternalError", "a.tflite", True)


def test_a_mistake_of_ours_in_a_command_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        return {}["pack"]

    monkeypatch.setattr(loader, "read", failing)
    result = call("check", "onnx", "--json")
    assert result.exit_code == 1
    assert result.stderr.startswith("rewrite: error: internal error: rewrite check: KeyError: 'pack'")
    assert len(result.stderr.splitlines()) == 1
    assert [one["kind"] for one in json.loads(result.stdout)["diagnostics"]] == ["InternalError"]


def test_outputs_that_clash_are_refused_before_anything_is_written(folder: Path, relu: bytes) -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(f"{name}/net.tflite").write_bytes(relu)
    result = call("a/net.tflite", "b/net.tflite", "-d", "out")
    assert result.exit_code == 2
    assert "same file" in result.stderr
    assert files(folder) == ["a/net.tflite", "b/net.tflite"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("--no-such-option",), ("net.tflite", "--opset", "many"), ("net.tflite", "--rules", "no_such_rules")],
)
def test_a_wrong_call_exits_with_two(folder: Path, relu: bytes, arguments: tuple[str, ...]) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stderr
    assert files(folder) == ["net.tflite"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("net.tflite", "-o", "-"), "there is no writing to standard output"),
        (("net.tflite", "-o", "net.tflite"), "net.tflite: the output would replace a model that is read: name another"),
        (("chek", "pack"), "there is no file or command chek; did you mean `rewrite check`?"),
        (("net.tflite", "--opset", "9"), "opset 9 is none of 13 to 25"),
        (
            ("net.tflite", "--target", "nowhere"),
            "no target nowhere: it is neither edge-tpu, ethos-u, litert, onnxruntime, onnxruntime-avx2,",
        ),
        (("help", "chek"), "there is no command chek; did you mean check?"),
        (("--quiet", "check"), "a command stands first: rewrite check ..."),
        (("https://example.org/net.tflite",), "https://example.org/net.tflite is a URL: download it first"),
        (("verify", "http://example.org/net.tflite", "net.tflite"), "is a URL: download it first"),
        (("net.tflite", "-o", "s3://bucket/net.onnx"), "s3://bucket/net.onnx is a URL: files are written to this"),
        (("net.tflite", "-d", "gs://bucket"), "gs://bucket is a URL: files are written to this machine"),
        (("-",), "- is no file: what is read has to be a file, not standard input"),
        (("explain", "-"), "- is no file: what is read has to be a file, not standard input"),
        (("",), "an empty name is none of a file"),
        (("check", ""), "an empty name is none of a pack"),
        (("net.tflite", "--target", ""), "an empty name is none of a pack"),
        (("coverage", ""), "an empty name is none of a file"),
        (("net.tflite", "-o", ""), "an empty name is none of a file"),
        (("net.tflite", "-o", "."), ".: a folder is not a regular file, as -o names one: use -d"),
        (("net.tflite", "-o", "net.tosa"), "net.tosa: no format has the ending .tosa: --to says which one is to be"),
        (("net.tflite", "-d", "net.tflite"), "'net.tflite' is a file"),
        ((), "Missing argument MODEL: a .tflite, .onnx or .pt2 file, a .task bundle or a folder."),
        (("fuzz", "--rules", "onnx", "--op", "NONE"), "no rule with a test is about NONE"),
        (
            ("fuzz", "--rules", "standard", "--rule", "trained_sign"),
            "cannot be tried: runtimes have no kernel for it",
        ),
        (("fuzz", "--rules", "standard", "--rule", "trained_sgn"), "no rule with a test is called trained_sgn"),
        (("fuzz", "--op", "ADD", "--op", "SOFTMACKS"), "is about SOFTMACKS; did you mean SOFTMAX?"),
    ],
)
def test_a_wrong_call_says_what_would_be_right(
    folder: Path, relu: bytes, arguments: tuple[str, ...], message: str
) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert files(folder) == ["net.tflite"]


def test_convert_is_the_verb_of_the_command_without_one(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    with_verb, without = call("convert", "net.tflite", "-o", "a.onnx"), call("net.tflite", "-o", "b.onnx")
    assert with_verb.exit_code == without.exit_code == 0
    assert Path("a.onnx").read_bytes() == Path("b.onnx").read_bytes()
    seconds = re.compile(r"seconds .*")
    assert seconds.sub("", with_verb.stdout).replace("a.onnx", "b.onnx") == seconds.sub("", without.stdout)
    assert call("convert", "--help").stdout.startswith("Usage: rewrite convert [OPTIONS] MODEL...")


def test_help_is_a_command() -> None:
    assert call("help").stdout == call("--help").stdout
    assert call("help", "fmt").stdout == call("fmt", "--help").stdout
    for name, (_, line) in dispatch.COMMANDS.items():
        assert re.search(rf"^ +{name} +{re.escape(line)}$", call("help").stdout, re.MULTILINE)


@pytest.mark.parametrize("name", ["", *dispatch.COMMANDS])
def test_help_tells_ranges_and_defaults(name: str) -> None:
    module = dispatch.COMMANDS[name][0] if name else dispatch.DEFAULT
    command = importlib.import_module(module).command
    said = " ".join(call(*name.split(), "--help").stdout.split())
    for option in command.params:
        if not isinstance(option, click.Option) or option.is_flag or not option.opts[0].startswith("-"):
            continue
        if isinstance(option.default, str | int | float | Path | tuple) and option.default != ():
            default = ", ".join(option.default) if isinstance(option.default, tuple) else f"{option.default}"
            assert re.search(rf"\[default: {re.escape(default)}(; |\])", said), option.opts
        if isinstance(option.type, click.IntRange | click.FloatRange):
            assert option.type._describe_range() in said, option.opts


def test_help_names_the_opsets_that_there_are() -> None:
    pack = loader.load(Options().stacked)
    (low, high), (first, _) = pack.opsets, loader.load(Options(rules=("onnx2onnx",)).stacked).opsets
    newest = f"{first} to the newest of the installed onnx"
    said = f"The ONNX opset to write: {low} to {high}, or {newest} where the model is ONNX already. [default: "
    assert f"{said}{pack.default_opset}, or" in " ".join(call("--help").stdout.split())


def test_counts_of_one_have_no_plural(folder: Path, single: Callable[..., bytes]) -> None:
    operands = {"x": ("FLOAT32", (1, 2, 2, 3)), "axes": np.array([0, 3, 1, 2], np.int32)}
    Path("net.tflite").write_bytes(single("TRANSPOSE", operands, [("FLOAT32", (1, 3, 2, 2))]))
    Path("same.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", (1, 1))}, [("FLOAT32", (1, 1))]))
    lines = call("net.tflite", "same.tflite").stdout.splitlines()
    assert lines[0].startswith("net.onnx: 1 -> 1 operator, 1 Transpose, ")
    assert lines[1].startswith("same.onnx: 1 -> 1 operator, 0 Transposes, ")


def test_an_opset_that_no_rule_is_for_exits_with_two(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite", "--opset", "3")
    assert result.exit_code == 2
    assert "opset" in result.stderr
    assert files(folder) == ["net.tflite"]


@pytest.mark.slow
def test_mistakes_in_rules_are_printed_with_their_places(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    Path("pack").mkdir()
    Path("pack/own.rules").write_text("ruleset own : tflite -> onnx opset 13..25\nrule half { y = RELU(x\n}\n")
    result = call("net.tflite", "--rules", "pack", "--keep-going")
    assert result.exit_code == 2
    assert "own.rules:3:1: error: " in result.stderr.splitlines()[0]
    assert files(folder) == ["net.tflite", "pack/own.rules"]


def test_the_models_of_a_bundle_are_converted(folder: Path, relu: bytes) -> None:
    with zipfile.ZipFile("net.task", "w") as bundle:
        bundle.writestr("first.tflite", relu)
        bundle.writestr("second.tflite", relu)
        bundle.writestr("metadata.txt", b"nothing")
    result = call("net.task", "-d", "all", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    assert call("net.task", "-d", "one", "--member", "second.tflite").exit_code == 0
    assert files(folder) == ["all/net.first.onnx", "all/net.second.onnx", "net.task", "one/net.second.onnx"]


def test_a_member_that_is_not_there_is_told(folder: Path, relu: bytes) -> None:
    with zipfile.ZipFile("net.task", "w") as bundle:
        bundle.writestr("first.tflite", relu)
    result = call("net.task", "--member", "third.tflite")
    assert result.exit_code == 1
    assert "third.tflite" in result.stderr
    assert files(folder) == ["net.task"]


def test_verification_shows_what_it_found(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "outputs are equal" in result.stdout
    assert "seed 0, 1 sample" in result.stdout


def with_operator(conversion: Conversion, name: str) -> Conversion:
    """A conversion whose first node has become another."""
    graph = onnx.GraphProto.FromString(conversion.encoded.graph)
    graph.node[0].op_type = name
    return dataclasses.replace(
        conversion, encoded=dataclasses.replace(conversion.encoded, graph=graph.SerializeToString())
    )


@pytest.mark.slow
def test_a_difference_is_an_error_and_the_file_stays(
    folder: Path, relu: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pipeline.rewrite

    def wrong(*arguments: Any, **named: Any) -> Any:
        return with_operator(real(*arguments, **named), "Neg")

    monkeypatch.setattr(pipeline, "rewrite", wrong)
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite", "--verify")
    assert result.exit_code == 1
    assert "DIFFERENT" in result.stdout
    assert result.stderr.startswith("rewrite: error: net.tflite: differs from the original: ")
    assert result.stderr.count("\n") == 1
    assert Path("net.onnx").exists()
    assert call("net.tflite", "--verify", "--quiet", "-o", "quiet.onnx").output == result.stderr


def test_what_cannot_be_verified_is_not_called_converted_in_vain(
    folder: Path, relu: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pipeline.rewrite

    def refused(*arguments: Any, **named: Any) -> Any:
        return with_operator(real(*arguments, **named), "NoSuchOperator")

    monkeypatch.setattr(pipeline, "rewrite", refused)
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite", "--verify")
    assert result.exit_code == 1
    assert "net.tflite: converted, but not verified: ONNX Runtime refuses the model" in result.stderr


def test_an_interruption_leaves_nothing(folder: Path, relu: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    Path("net.tflite").write_bytes(relu)
    result = call("net.tflite")
    assert result.exit_code == 130
    assert result.stderr == "rewrite: error: interrupted\n"
    assert files(folder) == ["net.tflite"]


# ---- the program -----------------------------------------------------------------------------------------------------


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a program of its own."""
    return subprocess.run([sys.executable, "-m", "nnrewrite", *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_program_exits_with_the_status(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    assert program("net.tflite").returncode == 0
    missing = program("gone.tflite")
    assert missing.returncode == 1
    assert missing.stderr.startswith("rewrite: error: gone.tflite")
    assert program().returncode == 2


def test_help_names_the_options_and_imports_nothing_heavy() -> None:
    done = program("--help")
    assert done.stdout.startswith("Usage: rewrite [OPTIONS] MODEL...")
    assert "--keep-going" in done.stdout
    script = (
        "import sys; from nnrewrite.cli.dispatch import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'onnx', 'onnx_ir', 'lark', 'rich', 'yaml', 'onnxruntime'} & set(sys.modules)\n"
        "sys.exit(f'{heavy} imported' if heavy else 0)"
    )
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (imported.returncode, imported.stderr) == (0, "")


@pytest.mark.slow
def test_a_conversion_does_not_import_what_only_verification_needs(folder: Path, relu: bytes) -> None:
    Path("net.tflite").write_bytes(relu)
    script = (
        "import sys; from nnrewrite.cli.dispatch import app\n"
        "app(['net.tflite', '--quiet'], standalone_mode=False)\n"
        "sys.exit('imported' if {'onnxruntime', 'ai_edge_litert', 'rich'} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_several_models_have_a_progress_bar_on_a_terminal(folder: Path, relu: bytes) -> None:
    import pty

    for name in ("a", "b"):
        Path(f"{name}.tflite").write_bytes(relu)
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "nnrewrite", "a.tflite", "b.tflite"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
        timeout=120,
    )
    os.close(terminal)
    drawn = os.read(main, 1 << 16).decode()
    os.close(main)
    assert done.returncode == 0
    assert "100%" in drawn
    assert done.stdout.decode().splitlines()[0].startswith("a.onnx: 1 -> 1 operator,")
    assert b"\x1b" not in done.stdout


def test_every_field_of_options_is_an_option_of_the_command_line() -> None:
    @click.command()
    @flags.take_options
    def command(**asked: Any) -> None:
        pass

    assert [one.name for one in command.params] == [field.name for field in dataclasses.fields(Options)]


def test_weights_go_into_a_second_file_when_asked(folder: Path) -> None:
    weights = np.ones((64, 64), np.float32)
    model = write_operator_model(
        load(), "FULLY_CONNECTED", {"x": ("FLOAT32", (1, 64)), "w": weights}, [("FLOAT32", (1, 64))]
    )
    Path("net.tflite").write_bytes(model)
    result = call("net.tflite", "--external-data", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    sizes = [Path(name).stat().st_size for name in ("net.onnx", "net.onnx.data")]
    assert sizes[1] == weights.nbytes
    assert f"{len(model):,} in, {sum(sizes):,} out" in result.stdout


def test_the_summary_of_several_models_counts_those_within_the_spread(capsys: pytest.CaptureFixture[str]) -> None:
    from types import SimpleNamespace

    from nnrewrite.cli.console import Console

    def result(spread: bool) -> Any:
        verification = SimpleNamespace(passed=True, within_spread=("y",) if spread else ())
        return SimpleNamespace(verification=verification, unverified="", passed=True, report=SimpleNamespace(told=()))

    Console(3).summarize([result(False), result(True), result(True)], 0, 3, 1.0)
    assert "3 of 3 verified, 2 of them within the spread of the interpreter's kernels" in capsys.readouterr().out

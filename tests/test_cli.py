"""The command as a user meets it: names of outputs, whole files, exit statuses, what is printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nnrewrite import cli
from nnrewrite.destination import DestinationError, replacing
from nnrewrite.engine.errors import ModelError
from nnrewrite.jobs import CallError, Job, plan


def none_inside(path: Path) -> Sequence[str]:
    return ()


def call(*arguments: str | Path) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], prog_name="rewrite")


# ---- outputs ---------------------------------------------------------------------------------------------------------


def test_the_output_is_named_after_the_model_in_the_current_folder() -> None:
    (job,) = plan([Path("some/where/face.tflite")], None, None, None, none_inside)
    assert job == Job(Path("some/where/face.tflite"), None, Path("face.onnx"))


def test_several_outputs_lie_in_the_folder_asked_for() -> None:
    jobs = plan([Path("a.tflite"), Path("b.bin")], None, Path("out"), None, none_inside)
    assert [job.target for job in jobs] == [Path("out/a.onnx"), Path("out/b.onnx")]


def test_a_bundle_gives_a_file_for_each_model_inside() -> None:
    jobs = plan([Path("pose.task")], None, None, None, lambda path: ["pose_detector.tflite", "extra/a.b.tflite"])
    assert [(job.member, job.target.name) for job in jobs] == [
        ("pose_detector.tflite", "pose.pose_detector.onnx"),
        ("extra/a.b.tflite", "pose.extra.a.b.onnx"),
    ]


def test_one_member_of_a_bundle_may_be_asked_for() -> None:
    (job,) = plan([Path("pose.task")], None, None, "b.tflite", lambda path: ["a.tflite", "b.tflite"])
    assert job == Job(Path("pose.task"), "b.tflite", Path("pose.b.onnx"))


def test_a_folder_stands_for_the_models_below_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.tflite", "deep/b.tflite", "a.TFLITE", "readme.md"):
        (tmp_path / name).write_bytes(b"")
    jobs = plan([tmp_path], None, Path("out"), None, none_inside)
    assert [job.target.as_posix() for job in jobs] == ["out/a.onnx", "out/b.onnx", "out/deep/b.onnx"]


def test_a_folder_without_models_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"no \.tflite"):
        plan([tmp_path], None, None, None, none_inside)


def test_two_models_with_one_output_are_refused() -> None:
    with pytest.raises(CallError, match=r"(?s)same file.*a/m.tflite, b/m.tflite"):
        plan([Path("a/m.tflite"), Path("b/m.tflite")], None, None, None, none_inside)


def test_an_output_file_is_for_one_model() -> None:
    with pytest.raises(CallError, match="2 models"):
        plan([Path("a.tflite"), Path("b.tflite")], Path("c.onnx"), None, None, none_inside)
    with pytest.raises(CallError, match="give one"):
        plan([Path("a.tflite")], Path("c.onnx"), Path("out"), None, none_inside)


def test_a_model_that_is_read_is_not_replaced() -> None:
    with pytest.raises(CallError, match="is read"):
        plan([Path("a.tflite")], Path("./a.tflite"), None, None, none_inside)


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    for target in (Path(os.devnull), tmp_path):
        with pytest.raises(CallError, match="not a regular file"):
            plan([Path("a.tflite")], target, None, None, none_inside)


def test_a_bundle_that_cannot_be_read_is_left_for_its_conversion_to_tell() -> None:
    def broken(path: Path) -> Sequence[str]:
        raise ModelError(f"{path}: no such file")

    (job,) = plan([Path("gone.task")], None, None, None, broken)
    assert job.member is None


# ---- whole files -----------------------------------------------------------------------------------------------------


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "made" / "model.onnx"
    with replacing(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["model.onnx"]
    assert target.read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "model.onnx"
    target.write_bytes(b"before")
    with pytest.raises(error), replacing(target) as file:
        file.write(b"half")
        raise error
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_what_the_system_refuses_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / "file" / "model.onnx"
    with pytest.raises(DestinationError, match=f"{target}: cannot be written"), replacing(target):
        pass


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.onnx").write_bytes(b"before")
    (tmp_path / "link.onnx").symlink_to("real.onnx")
    with replacing(tmp_path / "link.onnx") as file:
        file.write(b"after")
    assert (tmp_path / "link.onnx").is_symlink()
    assert (tmp_path / "real.onnx").read_bytes() == b"after"

"""Files take their places when they are whole."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from nnrewrite.engine.base.atomic_write import open_folder


def test_a_link_of_a_folder_may_lead_to_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "model").write_text("old")
    (folder / "model").symlink_to(other / "model")
    replace = Path.replace

    def replace_within(path: Path, target: Path) -> Path:
        if (path.parents[1] == folder) != (Path(target).parent == folder):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_within)
    with open_folder(folder, "last") as part:
        for name in ("model", "last"):
            (part / name).write_text("new")
    assert (other / "model").read_text() == (folder / "last").read_text() == "new"
    assert (folder / "model").is_symlink()
    assert {path.name for path in (*folder.iterdir(), *other.iterdir())} == {"model", "last"}

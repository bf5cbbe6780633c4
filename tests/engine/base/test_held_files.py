"""Files that are held are read once, and anew afterwards."""

from __future__ import annotations

import threading
from pathlib import Path

from nnrewrite.engine.base.held_files import hold_files, read_once


@read_once
def read(file: Path) -> str:
    return file.read_text()


def test_a_file_is_read_once_while_it_is_held_and_anew_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with hold_files():
        assert read(file) == "before"
        file.write_text("after")
        assert read(file) == "before"
        with hold_files():
            assert read(file) == "before"
    assert read(file) == "after"


def test_what_one_thread_holds_another_reads_anew(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    found: list[str] = []
    with hold_files():
        assert read(file) == "before"
        file.write_text("after")
        other = threading.Thread(target=lambda: found.append(read(file)))
        other.start()
        other.join()
    assert found == ["after"]

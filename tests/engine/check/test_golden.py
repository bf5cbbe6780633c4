"""What is told of mistakes in rule files, word for word.

After a change of wording, `NNREWRITE_GOLDEN=write pytest tests/engine/check/test_golden.py` writes the texts anew; read
the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnx.defs
import pytest
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.check.checker import check
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.syntax.parser import parse

GOLDEN = Path(__file__).parent / "golden"


def files(folder: str) -> list[Path]:
    return sorted((GOLDEN / folder).glob("*.rules"))


def compare(path: Path, text: str) -> None:
    kept = path.with_suffix(".txt")
    if os.environ.get("NNREWRITE_GOLDEN") == "write":
        kept.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", files("checker"), ids=lambda path: path.stem)
def test_mistakes_of_meaning_are_told(path: Path, catalogue: Catalogue) -> None:
    text = path.read_text(encoding="utf-8")
    found = check([parse(text, path.name)], catalogue)
    told = "\n\n".join(d.render({path.name: text}) for d in found)
    newest = f"opsets 7..{onnx.defs.onnx_opset_version()}"  # which each version of onnx has of its own
    compare(path, told.replace(newest, "opsets 7..NEWEST"))


@pytest.mark.parametrize("path", files("parser"), ids=lambda path: path.stem)
def test_text_that_cannot_be_parsed_is_told(path: Path) -> None:
    with pytest.raises(RuleError) as caught:
        parse(path.read_text(encoding="utf-8"), path.name)
    compare(path, str(caught.value))


def test_the_golden_files_hold_many_mistakes() -> None:
    texts = [path.read_text(encoding="utf-8") for path in GOLDEN.rglob("*.txt")]
    assert sum(text.count(": error: ") for text in texts) >= 200

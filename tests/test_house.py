"""What keeps the house what it is: operators are data, and modules can be read at once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx.defs
import pytest
from nnrewrite.conversion.options import DEFAULT, Options
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.packs import loader
from nnrewrite.engine.rewrite.families import write_out

ROOT = OPS.parent
#: the rooms of the program
FOLDERS = ("engine", "frontends", "backends", "conversion", "partition", "verify", "page", "fuzz", "cli")
#: words of the rule language that are also names of operators
WORDS = {"IF"}
#: what is a word there: functions of SymPy, by which exported programs say sizes, what summaries count, an argument
OTHER_WORDS = {
    "frontends/pt2_extents.py": {"Add", "Mul", "Pow", "Mod"},
    "conversion/summary.py": {"Transpose"},
    "cli/console.py": {"Transpose"},
    "cli/flags.py": {"PACK"},
}


def sources(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield file.relative_to(ROOT), ast.parse(file.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_no_python_names_an_operator(catalogue: Catalogue) -> None:
    names = set(catalogue.find_dialect("tflite").operators)
    names |= {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    named = [
        f"{file}:{node.lineno}: {node.value}"
        for file, module in sources(*FOLDERS)
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and node.value in names - WORDS - OTHER_WORDS.get(file.as_posix(), set())
    ]
    assert not named


def test_the_operators_that_the_check_looks_for_are_found_where_they_stand() -> None:
    module = ast.parse('spec = "CONV_2D"')
    assert any(isinstance(node, ast.Constant) and node.value == "CONV_2D" for node in ast.walk(module))


def test_no_rule_speaks_of_scales_or_zero_points() -> None:
    words = re.compile(r"\b(scale|zero_point)\b")
    spoken = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted((ROOT / "rules" / "tflite2onnx").glob("*.rules"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line.split("#")[0])
    ]
    assert not spoken


@pytest.mark.slow
def test_modules_are_of_a_size_to_be_read_at_once() -> None:
    long = {str(file): len((ROOT / file).read_text().splitlines()) for file, _ in sources(*FOLDERS)}
    assert not {file: lines for file, lines in long.items() if lines > 400}


@pytest.mark.slow
def test_rules_that_options_lay_over_each_other_have_names_of_their_own() -> None:
    for options in Options(rules=DEFAULT.rules).variants:
        names = Counter(rule.name for _, rule in write_out(loader.load(options.stacked).files))
        assert not {name for name, count in names.items() if count > 1}, options.stacked

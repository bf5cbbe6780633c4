"""The pages say what is there: the language, the commands with their options, the examples, the counts.

After a change, `NNREWRITE_GOLDEN=write pytest tests/test_documentation.py` writes the generated parts anew.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nnrewrite.cli.dispatch import COMMANDS, DEFAULT
from nnrewrite.engine.base.data_files import BUILT_IN
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.expressions.functions import CONSTANTS, DTYPES, FUNCTIONS
from nnrewrite.engine.rewrite.stages import STAGES
from nnrewrite.engine.syntax.parser import GRAMMAR
from nnrewrite.engine.syntax.syntax_errors import RESERVED

ROOT = Path(__file__).parent.parent
LANGUAGE = [ROOT / "docs" / name for name in ("language.md", "language-reference.md")]
PAGE = ROOT / "docs" / "functions.md"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SYNTAX = ROOT / "editors" / "vscode" / "syntaxes" / "rules.tmLanguage.json"
_BEGIN, _END = "<!-- functions: written by tests/test_documentation.py -->\n", "<!-- end of functions -->"


def functions() -> str:
    lines = ["| Function | |", "|---|---|"]
    for name, function in sorted(FUNCTIONS.items()):
        parameters = [
            f"{p.name}..." if p.kind is p.VAR_POSITIONAL else p.name if p.default is p.empty else f"[{p.name}]"
            for p in inspect.signature(function.call).parameters.values()
        ]
        lines.append(f"| `{name}({', '.join(parameters)})` | {' '.join(function.doc.split())} |")
    return "\n".join(lines) + "\n"


def test_the_list_of_functions_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    listed, after = rest.split(_END)
    if os.environ.get("NNREWRITE_GOLDEN") == "write":
        PAGE.write_text(before + _BEGIN + functions() + _END + after, encoding="utf-8")
        listed = functions()
    assert listed == functions()


def test_every_stage_word_constant_and_element_type_is_described() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in LANGUAGE)
    words = set(re.findall(r"\w+", text))
    assert set(STAGES) | RESERVED | set(CONSTANTS) | set(DTYPES) <= words


def test_the_page_stays_plain_text_of_even_width() -> None:
    lines = [line for page in LANGUAGE for line in page.read_text(encoding="utf-8").splitlines()]
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120


# ---- colours in editors


def patterns() -> dict[str, dict[str, str]]:
    return dict(json.loads(SYNTAX.read_text(encoding="utf-8"))["repository"])


def words(pattern: str) -> set[str]:
    """The words between which a pattern chooses."""
    found = re.search(r"\(\?:([\w|]+)\)", pattern)
    assert found is not None
    return set(found.group(1).split("|"))


def test_the_colours_know_every_word_of_the_grammar() -> None:
    grammar = GRAMMAR.read_text(encoding="utf-8")
    keywords = set(re.findall(r'"([a-z]+)"', grammar)) | RESERVED
    known = patterns()
    coloured = words(known["keywords"]["match"]) | words(known["logic"]["match"]) | words(known["literals"]["match"])
    assert coloured == keywords


def test_the_colours_know_every_function() -> None:
    known = {*FUNCTIONS, "trait"}
    if os.environ.get("NNREWRITE_GOLDEN") == "write":
        syntax = json.loads(SYNTAX.read_text(encoding="utf-8"))
        syntax["repository"]["functions"]["match"] = rf"\b(?:{'|'.join(sorted(known))})\b(?=\s*\()"
        SYNTAX.write_text(json.dumps(syntax, indent=2) + "\n", encoding="utf-8")
    assert words(patterns()["functions"]["match"]) == known


def test_the_colours_read_strings_numbers_and_names_as_the_grammar_does() -> None:
    known = patterns()
    grammar = dict(re.findall(r"^([A-Z]+)(?:\.\d)?:\s+/(.*)/$", GRAMMAR.read_text(encoding="utf-8"), re.MULTILINE))
    assert known["strings"]["match"] == grammar["STRING"]
    assert known["operators"]["match"].strip("\\b") == grammar["OP"].strip("\\b")
    assert known["packs"]["match"].endswith(rf"\s+({grammar['PACKNAME']})")
    for text in ("1", "2.5", "1e-6", "13"):
        assert re.fullmatch(known["numbers"]["match"], text)
    assert re.fullmatch(known["comments"]["match"], "# a comment")


def test_every_pattern_of_the_colours_is_used() -> None:
    syntax = json.loads(SYNTAX.read_text(encoding="utf-8"))
    used = {entry["include"].removeprefix("#") for entry in syntax["patterns"]}
    assert used == set(syntax["repository"])


def test_the_traits_that_the_page_names_are_there() -> None:
    traits = {trait for dialect in load().dialects.values() for s in dialect.operators.values() for trait in s.traits}
    assert {"commutative", "output_activation"} <= traits


# ---- what the other pages say


PAGES = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_pages_show_exist_with_their_options(page: Path) -> None:
    for line in re.findall(
        r"`(rewrite [^`\n]*)|^ {4}(rewrite .*)|^\$ (rewrite .*)", page.read_text("utf-8"), re.MULTILINE
    ):
        words = "".join(line).partition(" #")[0].split()[1:]
        subcommand = words[0] if words and words[0] in COMMANDS else ""
        known = {name for names in app_options(subcommand) for name in names}
        shown = re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(words))
        assert set(shown) <= known | {"--help"}, line


def app_options(subcommand: str) -> list[list[str]]:
    """The spellings of each option of a subcommand, of the default command where it is empty."""
    module = importlib.import_module(COMMANDS[subcommand][0] if subcommand else DEFAULT)
    return [[*option.opts, *option.secondary_opts] for option in module.command.params]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_of_make_that_pages_show_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = re.findall(r"`make ([a-z-]+)|^ {4}make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"".join(names) for names in shown} <= known


def test_the_readme_lists_every_option_of_a_conversion() -> None:
    synopsis = README.split("    rewrite [--rules PACK] MODEL...")[1].split("\n\n")[0]
    shown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", synopsis)) | {"--rules", "--version"}
    assert [names for names in app_options("") if names[0].startswith("-") and not shown & set(names)] == []


def test_the_rule_that_the_readme_shows_is_the_one_in_use() -> None:
    shown = next(block for block in README.split("```\n") if block.startswith(("rule ", "fragment ")))
    assert shown in (BUILT_IN / "tflite2onnx" / "convolution.rules").read_text(encoding="utf-8")


def test_the_readme_counts_operators_as_their_page_does() -> None:
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    counts = re.search(
        r"(\d+) operators: (\d+) supported in every case, (\d+) as state of the model, (\d+) in part", page
    )
    assert counts is not None
    total, *supported = map(int, counts.groups())
    assert f"| {sum(supported)} | {total} |" in README


@pytest.mark.slow
def test_the_python_that_the_readme_shows_runs(
    single: Callable[..., bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]))
    scope: dict[str, Any] = {}
    exec(README.split("```python\n")[1].split("```")[0], scope)
    assert scope["result"].passed
    assert (tmp_path / "model.onnx").exists()

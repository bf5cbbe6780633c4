"""The pages about the language say what the language is.

After a change, `NNREWRITE_GOLDEN=write pytest tests/test_documentation.py` writes the generated parts anew.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

from nnrewrite.engine.functions import CONSTANTS, DTYPES, FUNCTIONS
from nnrewrite.engine.language.complaint import RESERVED
from nnrewrite.engine.language.parser import GRAMMAR
from nnrewrite.engine.operators import load
from nnrewrite.engine.rules import STAGES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "language.md"
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
    text = PAGE.read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert set(STAGES) | RESERVED | set(CONSTANTS) | set(DTYPES) <= words


def test_the_page_stays_plain_text_of_even_width() -> None:
    prose = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120


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

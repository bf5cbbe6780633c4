"""Syntax trees as text, in the layout of `ruff format`."""

from __future__ import annotations

import ast
import shutil
import subprocess

import pytest
from nnrewrite.backends.python_code.printer import quote, write_expression, write_statement

EXPRESSIONS = (
    "a + b * c",
    "(a + b) * c",
    "a - (b - c)",
    "a**2",
    "(-a) ** 2",
    "a.f() ** 2",
    "a @ b @ c",
    "-(a + b)",
    "~(a & b) | c",
    "(a < b) & (c == 1)",
    "x[:, 1:, ..., ::2]".replace("..., ", ""),
    "x[a + 1 :, : b.c]",
    "x[(y < 0)]".replace("(", "").replace(")", ""),
    "f(a, *b, c=(1,), d=[x, y])",
    "f(*(g(1) for _ in range(3)))",
    "x << 2 >> y",
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_read_back_as_it_was(text: str) -> None:
    tree = ast.parse(text, mode="eval").body
    assert ast.dump(ast.parse(write_expression(tree), mode="eval").body) == ast.dump(tree)


@pytest.mark.parametrize(
    "text",
    ["", "plain", 'a"b', "a'b", "a'\"b", "\\", "\\'", "\n", "\r\0\x1b", "é\u2028\U0001f600", '"""', "{x}", "\\N{DASH}"],
)
def test_a_text_is_a_literal_that_is_read_back(text: str) -> None:
    written = quote(text)
    assert ast.literal_eval(written) == text
    assert written.isascii() and written.isprintable()


def test_a_long_call_has_its_arguments_on_lines_of_their_own() -> None:
    call = ast.parse(f"f({', '.join(f'argument_{n}=1234567' for n in range(6))})", mode="eval").body
    lines = list(write_statement("self.value = ", call, 2))
    assert lines[0] == "        self.value = f(" and lines[-1] == "        )"
    assert all(len(line) <= 100 for line in lines) and len(lines) == 8


def test_a_long_sum_has_its_terms_on_lines_of_their_own() -> None:
    terms = [f"first_of_{place}(given) * second_of_{place}" for place in range(4)]
    node = ast.parse(" + ".join(terms), mode="eval").body
    lines = list(write_statement("x = ", node, 1))
    assert lines == ["    x = (", f"        {terms[0]}", *(f"        + {term}" for term in terms[1:]), "    )"]


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
def test_the_layout_is_that_of_ruff() -> None:
    lines = [line for text in EXPRESSIONS for line in write_statement("v = ", ast.parse(text, mode="eval").body, 0)]
    text = "\n".join([*lines, ""])
    done = subprocess.run(
        ["ruff", "format", "--line-length", "100", "--isolated", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == text

"""The text that stands beside generated code: how to load, evaluate and train it, and what its source did not say."""

from __future__ import annotations

from collections import Counter

from ...engine.dialects.operators import Dialect
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions import is_float
from .program import Input, Program


def describe(program: Program, dialect: Dialect, code: str, tensors: str) -> str:
    """The text, of which the dialect has what is about its library."""
    python = dialect.facts.python
    assert python is not None
    lacking = [f"* `{name}`, {count} times" for name, count in sorted(Counter(program.placeholders).items())]
    missing = (
        [
            "## What is to be written",
            "",
            "For these operators there is no code: each is a method that raises, with a comment that says what it is",
            "given and what it is to yield.",
            "",
            *lacking,
            "",
        ]
        if lacking
        else []
    )
    names = ", ".join(one.name for one in program.inputs)
    makers = "\n".join(f"{one.name} = {_make(one, python)}" for one in program.inputs)
    text = python.readme.format(name=program.name, code=code, tensors=tensors, inputs=names, examples=makers)
    return "\n".join([text.rstrip(), "", *missing])


def _make(one: Input, python: DialectPython) -> str:
    """An example of an input; free sizes are 1."""
    kind = "float" if is_float(one.dtype) else "bool" if one.dtype == "bool" else "integer"
    kind = "other_float" if kind == "float" and one.dtype != "f32" and "other_float" in python.examples else kind
    return python.examples[kind].format(shape=one.shape, dtype=python.types[one.dtype])

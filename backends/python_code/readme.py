"""The text that stands beside generated code: how to load, evaluate and train it, and what its source did not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...engine.dialects.operators import Dialect
from ...engine.dialects.python_facts import DialectPython
from ...engine.expressions.functions import is_float
from .program import Program
from .program_inputs import Input

#: what is said of an example whose sizes nobody knows
_FREE = "  # free sizes are 1: put in some that the model takes"


def describe(
    program: Program, dialect: Dialect, code: str, tensors: str, results: Sequence[str], state: Mapping[str, str]
) -> str:
    """Write the README of a program; what it says of the library is in the dialect.

    `results` are the names of the program's results. `state` maps inputs to the results to give them at the next call.
    """
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
    makers = "\n".join(f"{one.name} = {_make(one, python)}{_FREE if one.free else ''}" for one in program.inputs)
    text = python.readme.format(name=program.name, code=code, tensors=tensors, inputs=names, examples=makers)
    return "\n".join([text.rstrip(), "", *_describe_state(program, results, state), *missing])


def _describe_state(program: Program, results: Sequence[str], state: Mapping[str, str]) -> list[str]:
    """How what a model remembers is given back to it."""
    kept = {state[one.source]: one.name for one in program.inputs if one.source in state}
    if not kept:
        return []
    given = ", ".join(one.name for one in program.inputs)
    others = [name for name in results if name not in kept]
    called = {name: "output" if len(others) == 1 else f"output{place}" for place, name in enumerate(others, 1)}
    yielded = ", ".join(kept.get(name) or called[name] for name in results)
    return [
        "## State",
        "",
        f"The model remembers {', '.join(f'`{name}`' for name in kept.values())}: what one call yields is given to the",
        "next; the first begins as above.",
        "",
        "```python",
        f"{yielded} = model({given})",
        "```",
        "",
    ]


def _make(one: Input, python: DialectPython) -> str:
    """An example of an input, or what it is at first; free sizes are 1."""
    if one.begin is not None and "begin" in python.examples:
        return python.examples["begin"].format(shape=one.shape, dtype=python.types[one.dtype], number=one.begin)
    kind = "float" if is_float(one.dtype) else "bool" if one.dtype == "bool" else "integer"
    kind = "other_float" if kind == "float" and one.dtype != "f32" and "other_float" in python.examples else kind
    return python.examples[kind].format(shape=one.shape, dtype=python.types[one.dtype])

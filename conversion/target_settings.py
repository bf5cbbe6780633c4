"""The `target.yaml` of a pack: its mistakes, each with its place, before anything is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..engine.base.errors import CallError, Diagnostic, Note
from ..engine.passes.layout.interface import Interface
from ..engine.syntax.diagnostics import join_words, spell, suggest
from ..engine.syntax.yaml_documents import compose, make_span
from .option_values import ACTIVATIONS, HYBRID

#: what a target says: a few words about it, options, the target that leaves constants as they are stored, and what a
#: partition is judged by
ABOUT, SETS, SMALL, PARTITION = "about", "options", "small", "partition"
#: the gain of a node on the target and the cost of a part, in bytes, and the fewest nodes that make a part
PRICES = ("gain", "part", "least")
#: the options that a target may set, with what their values are
OPTIONS: Mapping[str, type] = {
    "opset": int,
    "layout": list,
    "activations": str,
    "float": bool,
    "float_io": bool,
    "keep_float16": bool,
    "exact": bool,
    "hybrid": str,
}

_TAKES = {int: "a number", bool: "true or false", str: "a word", list: "a list of words"}
_WORDS: Mapping[str, Sequence[str]] = {"activations": ACTIVATIONS, "hybrid": HYBRID}
_ENTRIES = (ABOUT, SETS, SMALL, PARTITION)
_FORM = f"it has `{ABOUT}:` with a few words, and `{SETS}:` with options and their values"


def find_mistakes(path: Path, text: str, opsets: tuple[int, int] | None = None) -> list[Diagnostic]:
    """Find the mistakes of a pack's `target.yaml`; `opsets` are the lowest and the highest that rules can write."""
    root, wrong = compose(str(path), text)
    found = wrong if wrong or root is None else _check_document(str(path), root, opsets)
    return sorted(found, key=lambda one: (one.span.line, one.span.column))


def _check_document(file: str, root: yaml.Node, opsets: tuple[int, int] | None) -> Iterator[Diagnostic]:
    if not isinstance(root, yaml.MappingNode):
        yield Diagnostic(
            make_span(file, root), f"expected `{ABOUT}` and `{SETS}`, each option with its value", (), _FORM
        )
        return
    for key, node in root.value:
        if key.value not in _ENTRIES:
            help = suggest(key.value, _ENTRIES) or _FORM
            if key.value in OPTIONS:
                help = f"options stand below `{SETS}:`"
            yield Diagnostic(
                make_span(file, key), f"there is no entry `{key.value}`, only {join_words(_ENTRIES, 'and')}", (), help
            )
        elif key.value == SETS and not isinstance(node, yaml.MappingNode):
            yield Diagnostic(make_span(file, node), f"`{SETS}` has options with their values, such as `opset: 17`")
        elif key.value == SMALL and not isinstance(node, yaml.ScalarNode):
            yield Diagnostic(make_span(file, node), f"`{SMALL}` is the name of a target")
        elif key.value == SETS:
            yield from _check_options(file, node, opsets)
        elif key.value == PARTITION:
            yield from _check_prices(file, node)


def _check_options(file: str, node: yaml.MappingNode, opsets: tuple[int, int] | None) -> Iterator[Diagnostic]:
    places: dict[str, yaml.Node] = {}
    values: dict[str, Any] = {}
    for key, given in node.value:
        name = key.value
        if name not in OPTIONS:
            help = suggest(name, OPTIONS) or f"it may set {join_words(OPTIONS, 'and')}"
            yield Diagnostic(make_span(file, key), f"a target sets no option `{name}`", (), help)
            continue
        if name in places:
            note = Note("it is set here", make_span(file, places[name]))
            yield Diagnostic(make_span(file, key), f"`{name}` is set twice", (note,))
        places[name] = key
        values[name] = yaml.SafeLoader("").construct_object(given, deep=True)
        message = _find_mistake(name, values[name], opsets)
        if message:
            yield Diagnostic(make_span(file, given), message)
    if values.get("exact") is True and values.get("float") is True:
        yield Diagnostic(make_span(file, places["exact"]), "`exact` keeps the integers that `float` does away with")


def _check_prices(file: str, node: yaml.Node) -> Iterator[Diagnostic]:
    form = f"`{PARTITION}` has {join_words(PRICES, 'and')}, each a number of at least 0"
    if not isinstance(node, yaml.MappingNode):
        yield Diagnostic(make_span(file, node), form)
        return
    for key, given in node.value:
        if key.value not in PRICES:
            yield Diagnostic(make_span(file, key), f"there is no `{key.value}`", (), suggest(key.value, PRICES) or form)
            continue
        value = yaml.SafeLoader("").construct_object(given, deep=True)
        if type(value) is not int or value < 0:
            yield Diagnostic(
                make_span(file, given), f"`{key.value}` is {spell(value)}, it takes a number of at least 0"
            )


def _find_mistake(name: str, value: object, opsets: tuple[int, int] | None) -> str:
    """What is wrong with the value of an option; nothing where all is well."""
    wanted = OPTIONS[name]
    words = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if type(value) is not wanted or (wanted is list and not words):
        said = repr(value) if isinstance(value, str) else spell(value)
        return f"`{name}` is {said}, it takes {_TAKES[wanted]}"
    if name in _WORDS and value not in _WORDS[name]:
        return f"`{name}` is {value!r}, it takes {join_words(_WORDS[name])}"
    if isinstance(value, int) and name == "opset" and opsets is not None and not opsets[0] <= value <= opsets[1]:
        return f"opset {value} is none of {opsets[0]} to {opsets[1]}, which the rules can write"
    if isinstance(value, list):
        try:
            Interface.parse(value)
        except CallError as error:
            return f"{error}"
    return ""

"""Rule text to syntax tree."""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import lark
from lark.exceptions import UnexpectedInput

from ..base import file_cache
from ..base.errors import Diagnostic, RuleError, Span
from . import tree
from .diagnostics import ParseError
from .fragments import expand_fragments
from .groups import expand_groups
from .local_definitions import lift_definitions
from .loops import expand_loops
from .syntax_errors import explain_error
from .tree_builder import TreeBuilder

#: how deep expressions may nest
_DEPTH = 100

#: how many characters a file may have, long lists of numbers left out
_LONGEST = 400_000
_LISTS = re.compile(r"\[[\d\s.,eE+-]{64,}+\]")

GRAMMAR = Path(__file__).parent / "grammar.lark"


def parse(text: str, file: str) -> tree.RuleFile:
    """Parse one rule file, its groups, fragments, loops and local definitions written out.

    Where it names fragments of other packs, loops and local definitions are left for when these are put in. Raises
    RuleError with the place of the first text that cannot be read.
    """
    result = expand_fragments(expand_groups(read(text, file), text), text)
    return result if result.awaited else lift_definitions(expand_loops(result, text), text)


def read(text: str, file: str) -> tree.RuleFile:
    """Parse one rule file as it is written; raises RuleError with the place of the first text that cannot be read."""
    plain = len(text) - sum(len(found.group()) for found in _LISTS.finditer(text))
    if plain > _LONGEST:
        span = Span(file, 1, 1, 1, 2)
        message = f"a file of more than {_LONGEST:,} characters"
        raise RuleError([Diagnostic(span, message, (), "long lists of plain numbers do not count")], {file: text})
    try:
        parsed = _load_grammar().parse(text)
    except UnexpectedInput as error:
        raise RuleError([explain_error(error, text, file, _load_grammar())], {file: text}) from error
    deep = _find_too_deep(parsed, _DEPTH)
    if deep is not None:
        span = Span(file, deep.line, deep.column, deep.end_line, deep.end_column)
        message = f"this stands more than {_DEPTH} levels deep in an expression"
        help = "give a part of it a name, by `let` or an equation of its own"
        raise RuleError([Diagnostic(span, message, (), help)], {file: text})
    try:
        result = TreeBuilder(file).transform(parsed)
    except ParseError as error:
        raise RuleError([error.diagnostic], {file: text}) from error
    assert isinstance(result, tree.RuleFile)
    return result


def _find_too_deep(parsed: lark.Tree[Any], most: int) -> Any:
    """The place of what stands deeper in a tree than so many levels, None where nothing does."""
    left = [(parsed, 0)]
    while left:
        node, depth = left.pop()
        below = [child for child in node.children if isinstance(child, lark.Tree)]
        # Each operator of a row is a level of the tree that is built of it.
        depth += len(node.children) - len(below) if node.data == "operation" else 1
        if depth > most and not node.meta.empty:
            return node.meta
        left += [(child, depth) for child in below]
    return None


class _PlainData(pickle.Unpickler):
    """Reads lists, numbers and text, and nothing that could run; lark before 1.3 marks text as tokens."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (lark.Token.__module__, lark.Token.__qualname__):
            return lark.Token
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


@functools.cache
def _load_grammar() -> lark.Lark:
    """The parser, from the tables that an earlier run kept: to make them takes 0.8 seconds, to read them 0.02."""
    text = GRAMMAR.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{lark.__version__} {sys.version}\0{text}".encode()).hexdigest()
    kept = file_cache.fetch(key)
    if kept is not None:
        return lark.Lark.load(_PlainData(io.BytesIO(kept)).load())
    made, tables = lark.Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True), io.BytesIO()
    made.save(tables)
    file_cache.keep(key, tables.getvalue())
    return made

"""YAML documents of packs, read with the place of every node, so that mistakes have places."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from ..base.errors import Diagnostic, Note, Span

Node = yaml.Node

#: how many things a document may say, its aliases followed
_MOST = 200_000


def compose(file: str, text: str) -> tuple[Node | None, list[Diagnostic]]:
    """The nodes of a document, which know their places, or its mistakes; neither where it is empty."""
    try:
        root = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        line, column = text.count("\n", 0, error.position) + 1, error.position - text.rfind("\n", 0, error.position)
        place = Span(file, line, column, line, column + 1)
        return None, [Diagnostic(place, f"this is not YAML: {error.reason}")]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        place = Span(file, line, column, line, column + 1)
        before = text.splitlines()[line - 1 : line] or [""]
        problem = f"{error.problem or error.context}"
        help = "lines are indented by spaces, not by tabs" if "\t" in before[0][:column] else _advise(problem)
        return None, [Diagnostic(place, f"this is not YAML: {problem}", tuple(_note_beginning(file, error)), help)]
    except RecursionError:
        return None, [Diagnostic(Span(file, 1, 1, 1, 2), "this nests too deep")]
    if root is None:
        return None, []
    if _count_nodes(root) > _MOST:
        message = f"with its aliases followed this says more than {_MOST:,} things"
        return None, [Diagnostic(make_span(file, root), message)]
    odd = [key for key in _iterate_keys(root) if not isinstance(key, yaml.ScalarNode)]
    return root, [Diagnostic(make_span(file, key), "a key is a word") for key in odd]


def make_span(file: str, node: Node) -> Span:
    """Where a node stands."""
    start, end = node.start_mark, node.end_mark
    return Span(file, start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _note_beginning(file: str, error: yaml.MarkedYAMLError) -> Iterator[Note]:
    """Where the mapping or list begins inside which the mistake is."""
    mark, problem = error.context_mark, error.problem_mark
    if mark and error.context and problem and (mark.line, mark.column) != (problem.line, problem.column):
        span = Span(file, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
        yield Note(f"{error.context.removeprefix('while parsing ')} begins here", span)


def _advise(problem: str) -> str | None:
    """What to do about what libyaml says."""
    if "expected key" in problem or "block end" in problem or "mapping values" in problem:
        return "the entries of one mapping begin in the same column, each `name: what it is`"
    if "undefined alias" in problem:
        return "`*name` repeats what `&name` has marked before; a text that begins with `*` stands in quotes"
    if "',' or" in problem:
        return "what `{` or `[` opens is closed by `}` or `]`, and has `,` between its entries"
    return None


def _count_nodes(root: Node) -> int:
    """How many things a document says, each as often as aliases repeat it; one that holds itself says too many."""
    known: dict[int, int] = {}
    waiting = [root]
    open_: set[int] = set()
    while waiting:
        node = waiting[-1]
        parts = (
            []
            if isinstance(node, yaml.ScalarNode)
            else [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        )
        missing = [part for part in parts if id(part) not in known]
        if id(node) in open_ and missing:
            return _MOST + 1
        if missing:
            open_.add(id(node))
            waiting += missing
            continue
        waiting.pop()
        known[id(node)] = min(1 + sum(known[id(part)] for part in parts), _MOST + 1)
    return known[id(root)]


def _iterate_keys(root: Node) -> Iterator[Node]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        for entry in node.value:
            if isinstance(entry, tuple):
                yield entry[0]
            waiting += entry if isinstance(entry, tuple) else (entry,)

"""The `ops.yaml` of a pack: its mistakes, each with its place, before anything is made of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import yaml

from ..base.errors import Diagnostic, Note
from ..expressions.functions import DTYPES
from ..syntax.diagnostics import join_words, suggest
from ..syntax.yaml_documents import compose, span

_OPERAND = re.compile(r"[A-Za-z_]\w*(\?|\.\.\.|!|\?\.\.\.)?")
_TYPES = frozenset({"bool", "float", "string", "bytes", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"})
_PLAIN: dict[str, tuple[type, ...]] = {"bool": (bool,), "float": (int, float), "string": (str,), "bytes": (str, bytes)}
_FIELDS = frozenset(
    {"code", "operands", "results", "options", "traits", "role", "infix", "domain", "types", "unsupported"}
)

_TEXT = "tag:yaml.org,2002:str"

Node = yaml.Node


def mistakes(path: Path, text: str, known: Mapping[str, Mapping[str, Any]]) -> list[Diagnostic]:
    """Find the mistakes of a pack's `ops.yaml`, which is laid over the entries that are known already."""
    return list(_Reader(str(path), known).document(text))


class _Reader:
    """Walks the nodes of a document, which know their places."""

    def __init__(self, file: str, known: Mapping[str, Mapping[str, Any]]) -> None:
        self._file, self._known = file, known

    def document(self, text: str) -> Iterator[Diagnostic]:
        root, wrong = compose(self._file, text)
        if wrong or root is None:
            yield from wrong
            return
        if not isinstance(root, yaml.MappingNode):
            yield self._error(root, "an `ops.yaml` is a mapping from dialects to what they have")
            return
        for name, entry in root.value:
            yield from self._dialect(name, entry)

    # ---- dialects and operators

    def _dialect(self, name: yaml.ScalarNode, entry: Node) -> Iterator[Diagnostic]:
        if not isinstance(entry, yaml.MappingNode):
            yield self._error(entry, f"dialect `{name.value}` is a mapping: `operators:` and what else it has")
            return
        yield from self._keys(entry)
        keys = {key.value: value for key, value in entry.value}
        known = self._known.get(name.value)
        if known is None:
            if "domain" not in keys:
                help = suggest(name.value, self._known, "the dialects")
                yield self._error(name, f"there is no dialect `{name.value}`, and a new one needs a `domain`", help)
                return
            known = {}
        for key, _ in entry.value:
            names = known.keys() | {"operators", "domain", "types", "enums", "tables", "schemas"}
            yield from self._misspelt(key, names, "a dialect")
        enums = {**known.get("enums", {}), **_plain(keys.get("enums"))}
        tables = {**known.get("tables", {}), **_plain(keys.get("tables"))}
        seen: dict[str, yaml.Node] = {}
        operators = keys.get("operators")
        if operators is not None and not isinstance(operators, yaml.MappingNode):
            yield self._error(operators, "`operators` is a mapping from names to what they are")
            return
        for operator, fields in operators.value if operators is not None else ():
            if operator.value in seen:
                note = Note("it is described here", span(self._file, seen[operator.value]))
                yield Diagnostic(span(self._file, operator), f"`{operator.value}` is described twice", (note,))
            seen[operator.value] = operator
            yield from self._operator(operator, fields, name.value, known, enums, set(tables))

    def _operator(
        self,
        name: yaml.ScalarNode,
        fields: Node,
        dialect: str,
        known: Mapping[str, Any],
        enums: Mapping[str, Any],
        tables: set[str],
    ) -> Iterator[Diagnostic]:
        if not re.fullmatch(r"[A-Z]\w*", name.value):
            help = "rules tell operators from functions by it"
            yield self._error(name, f"the name of an operator begins with a capital letter: `{name.value}`", help)
        if not isinstance(fields, yaml.MappingNode):
            yield self._error(fields, f"`{name.value}` is a mapping: operands, results, options and what else it has")
            return
        others = known.get("operators", {})
        names = _FIELDS | {key for entry in others.values() for key in entry or ()}
        yield from self._keys(fields)
        given = {key.value: value for key, value in fields.value}
        for key, _ in fields.value:
            yield from self._misspelt(key, names, "an operator")
        for key in ("operands", "results"):
            yield from self._operands(key, given.get(key), name, known=bool(known.get("schemas")))
        if known.get("identifier") and name.value not in others and "code" not in given:
            custom = f"{known.get('domain', dialect)}.custom"
            domain = given.get("domain")
            if domain is None or domain.value != custom:
                yield self._error(
                    domain or name,
                    f"`{name.value}` is no operator of the format, so that no file could hold it",
                    f"custom operators say `domain: {custom}`",
                )
        yield from self._options(given.get("options"), enums, tables)
        reason = given.get("unsupported")
        if reason is not None and not (isinstance(reason, yaml.ScalarNode) and reason.tag == _TEXT and reason.value):
            yield self._error(reason, "`unsupported` says in words why no rule is about the operator")
        yield from self._types(given.get("types"), others)
        code = given.get("code")
        if code is not None and not (isinstance(code, yaml.ScalarNode) and str(code.value).isdigit()):
            yield self._error(code, "`code` is the number that the format gives the operator")
        traits = given.get("traits")
        if traits is not None and not isinstance(traits, yaml.SequenceNode):
            yield self._error(traits, "`traits` is a list of words")

    def _types(self, node: Node | None, others: Mapping[str, Any]) -> Iterator[Diagnostic]:
        if node is None:
            return
        if not isinstance(node, yaml.SequenceNode):
            yield self._error(node, "`types` is a list: for each operand the names of its types, `[f32 i32, i32]`")
            return
        known = {word for entry in others.values() for text in (entry or {}).get("types", ()) for word in text.split()}
        for item in node.value:
            for word in item.value.split() if isinstance(item, yaml.ScalarNode) else ["[]"]:
                if word not in known | DTYPES.keys():
                    help = (
                        suggest(word, DTYPES) or f"the types are {', '.join(DTYPES)}, after a `q` where they are codes"
                    )
                    yield self._error(item, f"there is no element type `{word}`", help)

    def _keys(self, node: yaml.MappingNode) -> Iterator[Diagnostic]:
        """Take in what `<<` merges, and tell keys that are no words or stand there twice."""
        yaml.SafeLoader("").flatten_mapping(node)
        merged = {id(key) for key, _ in node.value if key.start_mark.index < node.start_mark.index}
        seen: dict[str, Node] = {}
        for key, _ in node.value:
            if id(key) not in merged:
                first = seen.setdefault(key.value, key)
                if first is not key:
                    note = Note("it is said here", span(self._file, first))
                    yield Diagnostic(span(self._file, key), f"`{key.value}` is said twice", (note,))

    def _misspelt(self, key: Node, names: Set[str], what: str) -> Iterator[Diagnostic]:
        """Tell a key that is almost another one; packs may say more than the program knows of."""
        if key.value not in names and difflib.get_close_matches(key.value, names, 1, 0.8):
            yield self._error(key, f"{what} has no `{key.value}`", suggest(key.value, names))

    def _operands(self, key: str, node: Node | None, name: Node, known: bool) -> Iterator[Diagnostic]:
        if node is None:
            if not known:
                yield self._error(name, f"nothing is said of the `{key}` of `{name.value}`", f"such as `{key}: [x]`")
            return
        if not isinstance(node, yaml.SequenceNode):
            yield self._error(node, f"`{key}` is a list of names, such as `[x, bias?, rest...]`")
            return
        seen: set[str] = set()
        for item in node.value:
            word = str(item.value).rstrip("?.!")
            if word in seen:
                yield self._error(item, f"two of the `{key}` are called `{word}`")
            seen.add(word)
            if not isinstance(item, yaml.ScalarNode) or not _OPERAND.fullmatch(str(item.value)):
                yield self._error(item, "an operand is a name, with `?` where it may be left out or `...` for several")

    # ---- options

    def _options(self, node: Node | None, enums: Mapping[str, Any], tables: set[str]) -> Iterator[Diagnostic]:
        if node is None:
            return
        if isinstance(node, yaml.ScalarNode):
            if node.value not in tables:
                help = suggest(node.value, tables)
                yield self._error(node, f"there is no table of options `{node.value}`", help)
            return
        if not isinstance(node, yaml.MappingNode):
            yield self._error(node, "`options` is a mapping from names to types, such as `{alpha: [float, 1.0]}`")
            return
        yield from self._keys(node)
        for name, row in node.value:
            yield from self._option(name, row, enums)

    def _option(self, name: Node, row: Node, enums: Mapping[str, Any]) -> Iterator[Diagnostic]:
        form = f"an option is its type and its default: `{name.value}: [float, 1.0]`"
        if not isinstance(row, yaml.SequenceNode) or not 1 <= len(row.value) <= 2:
            yield self._error(row, form)
            return
        kind = row.value[0].value
        if not isinstance(kind, str):
            inner = kind[0].value if len(kind) == 1 else "int32"
            yield self._error(row.value[0], form, f'a list is written in quotes: `"[{inner}]"`')
            return
        base = kind.removeprefix("[").removesuffix("]")
        if base not in _TYPES and base not in enums:
            help = suggest(base, _TYPES | enums.keys()) or f"types are {join_words(sorted(_TYPES))}, or an enumeration"
            yield self._error(row.value[0], f"there is no type `{kind}`", help)
            return
        if len(row.value) == 2:
            default = yaml.SafeLoader("").construct_object(row.value[1], deep=True)
            if not _fits(default, kind, enums):
                yield self._error(row.value[1], f"`{default}` is no default of type {kind}")

    # ---- places

    def _error(self, node: Node, message: str, help: str | None = None) -> Diagnostic:
        return Diagnostic(span(self._file, node), message, (), help)


def _plain(node: Node | None) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    found = yaml.SafeLoader("").construct_document(node)
    return found if isinstance(found, dict) else {}


def _fits(value: Any, kind: str, enums: Mapping[str, Any]) -> bool:
    if value is None:
        return True
    if kind.startswith("["):
        return isinstance(value, list) and all(_fits(item, kind[1:-1], enums) for item in value)
    if kind in enums:
        members = enums[kind]
        return isinstance(members, str) or value in members
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
    bits, signed = int(kind.lstrip("uint") or 64), kind.startswith("int")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

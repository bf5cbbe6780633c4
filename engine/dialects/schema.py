"""The `ops.yaml` of a pack: its mistakes, each with its place, before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import yaml

from ..base.errors import Diagnostic, Note
from ..expressions.functions import DTYPES
from ..syntax.diagnostics import join_words, suggest
from ..syntax.yaml_documents import compose, make_span
from .facts import OTHER_TYPES
from .keys import list_homes
from .node_types import Misfit, list_members, list_misfits, list_unknown
from .onnx_schemas import list_names
from .operators import FORM

_OPERAND = re.compile(r"[A-Za-z_]\w*(\?|\.\.\.|!|\?\.\.\.)?")
_TYPES = frozenset(
    {"bool", "float", "string", "bytes", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "subgraph"}
)
_PLAIN: dict[str, tuple[type, ...]] = {"bool": (bool,), "float": (int, float), "string": (str,), "bytes": (str, bytes)}
#: keys of operators and of dialects that are looked at by more than the types of what they hold
_OPERATORS = "operators"
_LOOKED_AT = frozenset({"operands", "results", "options", "types", "yields", "unsupported"})

_TEXT = "tag:yaml.org,2002:str"

Node = yaml.Node


def find_mistakes(path: Path, text: str, known: Mapping[str, Mapping[str, Any]]) -> list[Diagnostic]:
    """Find the mistakes of a pack's `ops.yaml`, which is laid over the entries that are known already."""
    return list(_Reader(str(path), known).check_document(text))


class _Reader:
    """Walks the nodes of a document, which know their places."""

    def __init__(self, file: str, known: Mapping[str, Mapping[str, Any]]) -> None:
        self._file, self._known = file, known

    def check_document(self, text: str) -> Iterator[Diagnostic]:
        root, wrong = compose(self._file, text)
        if wrong or root is None:
            yield from wrong
            return
        if not isinstance(root, yaml.MappingNode):
            yield self._make_error(root, "an `ops.yaml` is a mapping from dialects to what they have")
            return
        for name, entry in root.value:
            yield from self._check_dialect(name, entry)

    # ---- dialects and operators

    def _check_dialect(self, name: yaml.ScalarNode, entry: Node) -> Iterator[Diagnostic]:
        if not isinstance(entry, yaml.MappingNode):
            yield self._make_error(entry, f"dialect `{name.value}` is a mapping: `operators:` and what else it has")
            return
        yield from self._check_keys(entry)
        yield from self._check_section(entry, "a dialect", {_OPERATORS})
        keys = {key.value: value for key, value in entry.value}
        known = self._known.get(name.value)
        if known is None:
            if "domain" not in keys:
                home = [home.place for home in list_homes() if name.value in home.keys]
                help = f"it belongs to {join_words(home)}" if home else suggest(name.value, self._known, "the dialects")
                yield self._make_error(
                    name, f"there is no dialect `{name.value}`, and a new one needs a `domain`", help
                )
                return
            known = {key: _read_value(keys[key]) for key in keys.keys() & {"domain", "schemas", "identifier"}}
        enums = {**known.get("enums", {}), **_read_mapping(keys.get("enums"))}
        tables = {**known.get("tables", {}), **_read_mapping(keys.get("tables"))}
        seen: dict[str, yaml.Node] = {}
        operators = keys.get("operators")
        if operators is not None and not isinstance(operators, yaml.MappingNode):
            yield self._make_error(operators, "`operators` is a mapping from names to what they are")
            return
        for operator, fields in operators.value if operators is not None else ():
            if operator.value in seen:
                note = Note("it is described here", make_span(self._file, seen[operator.value]))
                yield Diagnostic(make_span(self._file, operator), f"`{operator.value}` is described twice", (note,))
            seen[operator.value] = operator
            yield from self._check_operator(operator, fields, name.value, known, enums, tables)

    def _check_operator(
        self,
        name: yaml.ScalarNode,
        fields: Node,
        dialect: str,
        known: Mapping[str, Any],
        enums: Mapping[str, Any],
        tables: Mapping[str, Any],
    ) -> Iterator[Diagnostic]:
        keys = {key.value for key, _ in fields.value} if isinstance(fields, yaml.MappingNode) else set()
        if not re.fullmatch(r"[A-Z]\w*", name.value) and "unsupported" not in keys:
            help = "rules tell operators from functions by it"
            yield self._make_error(name, f"the name of an operator begins with a capital letter: `{name.value}`", help)
        if not isinstance(fields, yaml.MappingNode):
            yield self._make_error(
                fields, f"`{name.value}` is a mapping: operands, results, options and what else it has"
            )
            return
        others = known.get("operators", {})
        yield from self._check_keys(fields)
        yield from self._check_section(fields, "an operator", _LOOKED_AT)
        given = {key.value: value for key, value in fields.value}
        for key in ("operands", "results"):
            yield from self._check_operands(key, given.get(key), name, known=bool(known.get("schemas")))
        if known.get("identifier") and name.value not in others:
            yield from self._check_identifier(name, given, f"{known.get('domain', dialect)}.custom")
        yield from self._check_options(given.get("options"), enums, tables)
        described = {**others.get(name.value, {}), **_read_mapping(fields)}
        members = _list_members(described, tables) or (list_names(name.value) if known.get("schemas") else set())
        yield from self._check_members(name.value, fields, members)
        reason = given.get("unsupported")
        if reason is not None and not (isinstance(reason, yaml.ScalarNode) and reason.tag == _TEXT and reason.value):
            yield self._make_error(reason, "`unsupported` says in words why no rule is about the operator")
        for key in ("types", "yields"):
            yield from self._check_types(key, given.get(key))

    def _check_identifier(self, name: yaml.ScalarNode, given: Mapping[str, Node], custom: str) -> Iterator[Diagnostic]:
        """Tell an operator that no file of the format can name, as neither a code nor the domain `custom` does."""
        traits, domain = given.get("traits"), given.get("domain")
        form = isinstance(traits, yaml.SequenceNode) and any(word.value == FORM for word in traits.value)
        if "code" not in given and not form and (domain is None or domain.value != custom):
            yield self._make_error(
                domain or name,
                f"`{name.value}` is no operator of the format, so that no file could hold it",
                f"custom operators say `domain: {custom}`",
            )

    def _check_members(self, name: str, fields: yaml.MappingNode, known: Set[str]) -> Iterator[Diagnostic]:
        """Tell names that keys speak of where the operator has no such operand, result or option."""
        home = next(home for home in list_homes() if home.place == "an operator")
        for key, value in fields.value if known else ():
            for member in list_members(value, home.keys[key.value].type) if key.value in home.keys else ():
                if member.value not in known:
                    said = f"`{name}` has no operand, result or option `{member.value}`"
                    yield self._make_error(member, said, suggest(member.value, known))

    def _check_types(self, key: str, node: Node | None) -> Iterator[Diagnostic]:
        if node is None:
            return
        if not isinstance(node, yaml.SequenceNode):
            yield self._make_error(
                node, f"`{key}` is a list: for each a text with the names of its types, `[f32 i32, i32]`"
            )
            return
        for item in node.value:
            for word in item.value.split() if isinstance(item, yaml.ScalarNode) else ["[]"]:
                if word.removeprefix("q") not in DTYPES and word not in OTHER_TYPES:
                    help = (
                        suggest(word, DTYPES) or f"the types are {', '.join(DTYPES)}, after a `q` where they are codes"
                    )
                    yield self._make_error(item, f"there is no element type `{word}`", help)

    def _check_section(self, node: yaml.MappingNode, place: str, apart: Set[str]) -> Iterator[Diagnostic]:
        """Tell the keys that a place has not, and what of the others is not of its type, but for those `apart`."""
        home = next(home for home in list_homes() if home.place == place)
        yield from self._make_errors(list_unknown(node, home.keys, place))
        for key, value in node.value:
            if key.value in home.keys and key.value not in apart:
                if isinstance(value, yaml.MappingNode):
                    yield from self._check_keys(value)
                yield from self._make_errors(list_misfits(value, home.keys[key.value].type, key.value))

    def _check_keys(self, node: yaml.MappingNode) -> Iterator[Diagnostic]:
        """Take in what `<<` merges, and tell keys that are no words or stand there twice."""
        yaml.SafeLoader("").flatten_mapping(node)
        merged = {id(key) for key, _ in node.value if key.start_mark.index < node.start_mark.index}
        seen: dict[str, Node] = {}
        for key, _ in node.value:
            if id(key) not in merged:
                first = seen.setdefault(key.value, key)
                if first is not key:
                    note = Note("it is said here", make_span(self._file, first))
                    yield Diagnostic(make_span(self._file, key), f"`{key.value}` is said twice", (note,))

    def _check_operands(self, key: str, node: Node | None, name: Node, known: bool) -> Iterator[Diagnostic]:
        if node is None:
            if not known:
                yield self._make_error(
                    name, f"nothing is said of the `{key}` of `{name.value}`", f"such as `{key}: [x]`"
                )
            return
        if not isinstance(node, yaml.SequenceNode):
            yield self._make_error(node, f"`{key}` is a list of names, such as `[x, bias?, rest...]`")
            return
        seen: set[str] = set()
        for item in node.value:
            word = str(item.value).rstrip("?.!")
            if word in seen:
                yield self._make_error(item, f"two of the `{key}` are called `{word}`")
            seen.add(word)
            if not isinstance(item, yaml.ScalarNode) or not _OPERAND.fullmatch(str(item.value)):
                yield self._make_error(
                    item, "an operand is a name, with `?` where it may be left out or `...` for several"
                )

    # ---- options

    def _check_options(
        self, node: Node | None, enums: Mapping[str, Any], tables: Mapping[str, Any]
    ) -> Iterator[Diagnostic]:
        if node is None:
            return
        if isinstance(node, yaml.ScalarNode):
            if node.value not in tables:
                help = suggest(node.value, tables)
                yield self._make_error(node, f"there is no table of options `{node.value}`", help)
            return
        if not isinstance(node, yaml.MappingNode):
            yield self._make_error(node, "`options` is a mapping from names to types, such as `{alpha: [float, 1.0]}`")
            return
        yield from self._check_keys(node)
        for name, row in node.value:
            yield from self._check_option(name, row, enums)

    def _check_option(self, name: Node, row: Node, enums: Mapping[str, Any]) -> Iterator[Diagnostic]:
        form = f"an option is its type and its default: `{name.value}: [float, 1.0]`"
        if not isinstance(row, yaml.SequenceNode) or not 1 <= len(row.value) <= 2:
            yield self._make_error(row, form)
            return
        kind = row.value[0].value
        if not isinstance(kind, str):
            inner = kind[0].value if len(kind) == 1 else "int32"
            yield self._make_error(row.value[0], form, f'a list is written in quotes: `"[{inner}]"`')
            return
        base = kind.removeprefix("[").removesuffix("]")
        if base not in _TYPES and base not in enums:
            help = suggest(base, _TYPES | enums.keys()) or f"types are {join_words(sorted(_TYPES))}, or an enumeration"
            yield self._make_error(row.value[0], f"there is no type `{kind}`", help)
            return
        if len(row.value) == 2:
            default = _read_value(row.value[1])
            if not _can_fit(default, kind, enums):
                yield self._make_error(row.value[1], f"`{default}` is no default of type {kind}")

    # ---- places

    def _make_errors(self, found: Iterable[Misfit]) -> Iterator[Diagnostic]:
        return (self._make_error(node, message, help) for node, message, help in found)

    def _make_error(self, node: Node, message: str, help: str | None = None) -> Diagnostic:
        return Diagnostic(make_span(self._file, node), message, (), help)


def _list_members(described: Mapping[str, Any], tables: Mapping[str, Any]) -> set[str]:
    """The names of what an entry says that an operator has; none where the entry does not say all of it."""
    operands, results, options = (described.get(key) for key in ("operands", "results", "options"))
    if not isinstance(operands, list) or not isinstance(results, list):
        return set()
    named = tables.get(options, {}) if isinstance(options, str) else options or {}
    return {str(item).rstrip("?.!") for item in (*operands, *results)} | {*named}


def _read_value(node: Node) -> Any:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def _read_mapping(node: Node | None) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    found = yaml.SafeLoader("").construct_document(node)
    return found if isinstance(found, dict) else {}


def _can_fit(value: Any, kind: str, enums: Mapping[str, Any]) -> bool:
    if value is None:
        return True
    if kind.startswith("["):
        return isinstance(value, list) and all(_can_fit(item, kind[1:-1], enums) for item in value)
    if kind in enums:
        members = enums[kind]
        return isinstance(members, str) or value in members
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
    bits, signed = int(kind.lstrip("uint") or 64), kind.startswith("int")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

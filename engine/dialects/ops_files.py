"""ops.yaml and the files in ops/, and the ops.yaml of each pack over them, read as dialects with their operators."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.data_files import OPERATORS
from ..base.errors import RewriteError, RuleError
from ..base.regular_files import explain_failure, read_text
from .dialect_facts import DialectFacts
from .facts import OperatorFacts
from .operators import Catalogue, Dialect, Operand, OperatorSpec, Option
from .python_facts import DialectPython, OperatorPython
from .trial_facts import DialectTrials, OperatorTrials

#: keys that are sections of keys of their own
_SECTIONS = ("fuzz", "python")
_ZERO = {"bool": False, "float": 0.0, "string": "", "bytes": b"", "subgraph": None}


def load(paths: Iterable[Path] = ()) -> Catalogue:
    """Read the program's files and, over them, those of packs; raises RuleError with the mistakes of a pack's.

    For files that say what they said before, the catalogue is the same.
    """
    over = tuple(paths)
    return _load(over, tuple(map(_read_text, (*OPERATORS, *over))))


def _read_text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise RewriteError(f"{path}: {explain_failure(error)}") from error


@functools.lru_cache(8)  # each set of packs has its own
def _load(paths: tuple[Path, ...], texts: tuple[str, ...]) -> Catalogue:
    own = dict[str, dict[str, Any]]()
    for path, text in zip(OPERATORS, texts, strict=False):
        own |= _read_document(path, text)
    over = zip(paths, texts[len(OPERATORS) :], strict=True)
    merged: dict[str, dict[str, Any]] = {}
    for document in (own, *(_read_checked(path, text, own) for path, text in over)):
        for name, entry in document.items():
            known = merged.setdefault(name, {})
            for key, value in (entry or {}).items():
                known[key] = {**known.get(key, {}), **value} if isinstance(value, dict) else value
    return Catalogue({name: _read_dialect(name, entry) for name, entry in merged.items()})


def _read_checked(path: Path, text: str, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The operators of a pack; raises RuleError with the mistakes in them."""
    from .schema import find_mistakes

    found = find_mistakes(path, text, own)
    if found:
        raise RuleError(found, {str(path): text})
    return {} if _parse_document(text) is None else _read_document(path, text)


def _read_document(path: Path, text: str) -> dict[str, dict[str, Any]]:
    import yaml  # what is read stays in the cache of packs

    try:
        document = _parse_document(text)
    except yaml.YAMLError as error:
        raise RewriteError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise RewriteError(f"{path}: expected dialects, each a mapping")
    return document


@functools.lru_cache(32)  # the program's files, read anew for each set of packs that lies over them
def _parse_document(text: str) -> Any:
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _read_dialect(name: str, entry: Mapping[str, Any]) -> Dialect:
    enums = {enum: _read_enumeration(values, entry) for enum, values in entry.get("enums", {}).items()}
    tables = entry.get("tables", {})
    domain = entry.get("domain", name)
    seen: dict[str, OperatorFacts] = {}
    operators = {
        operator: _read_operator(name, domain, operator, fields or {}, tables, enums, seen)
        for operator, fields in entry.get("operators", {}).items()
    }
    facts = DialectFacts(
        **_list_said(DialectFacts, entry),
        fuzz=DialectTrials(**_list_said(DialectTrials, entry.get("fuzz", {}))),
        python=DialectPython(**_list_said(DialectPython, entry["python"])) if "python" in entry else None,
    )
    found = Dialect(name, domain, entry.get("types", {}), enums, operators, facts, bool(entry.get("schemas")))
    _require_own_codes(operators.values())
    return found


def _require_own_codes(operators: Iterable[OperatorSpec]) -> None:
    """Raise RewriteError where two operators have one code, and no option tells them apart."""
    known: dict[int, OperatorSpec] = {}
    for spec in operators:
        if spec.code is not None and not spec.when and (first := known.setdefault(spec.code, spec)) is not spec:
            raise RewriteError(f"ops.yaml: {first.name} and {spec.name} have the same code, {spec.code}")


def _read_enumeration(values: Any, entry: Mapping[str, Any]) -> dict[str, int]:
    """Read a mapping, a list numbered from 0, or the name of a section of the dialect whose entries have a `code`."""
    if isinstance(values, str):
        return {name: fields["code"] for name, fields in entry[values].items()}
    return dict(values) if isinstance(values, dict) else {value: code for code, value in enumerate(values)}


def _read_operator(
    dialect: str,
    domain: str,
    name: str,
    fields: Mapping[str, Any],
    tables: Mapping[str, Any],
    enums: Mapping[str, Mapping[str, int]],
    seen: dict[str, OperatorFacts],
) -> OperatorSpec:
    options = fields.get("options", {})
    table = options if isinstance(options, str) else None
    rows = tables.get(table, {}) if table else options
    when = fields.get("when", {})  # what tells an operator from another of its number is its default
    made = OperatorFacts(
        **_list_said(OperatorFacts, fields),
        python=OperatorPython(**_list_said(OperatorPython, fields.get("python", {}))),
        fuzz=OperatorTrials(**_list_said(OperatorTrials, fields.get("fuzz", {}))),
    )
    return OperatorSpec(
        dialect,
        fields.get("domain", domain),
        name,
        tuple(Operand.parse(o) for o in fields.get("operands", ())),
        tuple(Operand.parse(o) for o in fields.get("results", ())),
        {
            key: _read_option(key, [*row[:2], when[key]] if key in when else row, enums, slotted=table is not None)
            for key, row in rows.items()
        },
        fields.get("code"),
        table,
        frozenset(fields.get("traits", ())),
        fields.get("role"),
        fields.get("infix"),
        fields.get("unsupported"),
        seen.setdefault(repr(made), made),  # many say the same
    )


def _list_said(kind: type[Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a kind that an entry has, but for those in sections of their own, and their names."""
    names = tuple(key for key in entry if key in kind.__slots__)
    return {"said": names, **{key: _freeze(entry[key]) for key in names if key not in _SECTIONS}}


def _freeze(value: Any) -> Any:
    """A value whose lists are tuples."""
    if isinstance(value, dict):
        return {key: _freeze(one) for key, one in value.items()}
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _read_option(name: str, row: Sequence[Any], enums: Mapping[str, Mapping[str, int]], slotted: bool) -> Option:
    """Read `[slot, type, default]` of a table or `[type, default]` of a custom operator."""
    slot, (kind, *default) = (row[0], row[1:]) if slotted else (None, row)
    if default:
        value = default[0]
    elif kind.startswith("["):
        value = []
    elif kind in enums:
        value = next((key for key, code in enums[kind].items() if code == 0), None)
    else:
        value = _ZERO.get(kind, 0)
    return Option(name, kind, value, slot)

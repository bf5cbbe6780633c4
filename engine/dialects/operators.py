"""ops.yaml as data: what every operator of every dialect takes, yields, and is called."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx.defs
import onnx.helper
import onnx_ir as ir

from ..base.data_files import OPS
from ..base.errors import RewriteError, RuleError
from ..base.startup import dataclass, field

#: the trait of operators that no file has: forms that rules give others before they lower them
FORM = "form"
#: the trait of operators that mean nothing without others beside them in the model
CONTEXT = "context"
#: the key of an entry of ops.yaml that says why the interpreter cannot be asked about an operator
UNTRIED = "untried"

_ZERO = {"bool": False, "float": 0.0, "string": "", "bytes": b""}


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand or result of an operator: its name and how often it may stand."""

    name: str
    optional: bool = False
    variadic: bool = False
    mutable: bool = False

    @classmethod
    def parse(cls, text: str) -> Operand:
        """Read `name`, `name?` (optional), `name...` (variadic) or `name!` (written to by the operator)."""
        name = text.rstrip("?.!")
        mark = text[len(name) :]
        return cls(name, "?" in mark, "..." in mark, "!" in mark)


@dataclass(frozen=True, slots=True)
class Option:
    """One option (attribute) of an operator: type, default, and the table slot it is stored in, if any.

    `type` is `bool`, `float`, `string`, `bytes`, `subgraph`, an integer type such as `int32`, the name of an
    enumeration of the dialect, or one of these in brackets for a list. `default` is None where there is none.
    """

    name: str
    type: str
    default: Any
    slot: int | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """All that passes may know of an operator; they ask for a trait or a role, never for its name."""

    dialect: str
    domain: str
    name: str
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    options: Mapping[str, Option]
    code: int | None = None
    table: str | None = None
    traits: frozenset[str] = frozenset()
    role: str | None = None
    infix: str | None = None
    #: why no rule is about it, where ops.yaml says so
    unsupported: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def when(self) -> Mapping[str, Any]:
        """The options by which a node shows that it is of this operator and not of another one with the same code."""
        when: Mapping[str, Any] = self.facts.get("when", {})
        return when

    @property
    def yields(self) -> tuple[Operand, ...]:
        """What a node of it yields: its results, then what becomes of each mutable operand."""
        return (*self.results, *(o for o in self.operands if o.mutable))

    def has(self, options: Iterable[str]) -> bool:
        """Whether it has all of some options."""
        return all(name in self.options for name in options)

    def arity(self) -> tuple[int, int | None]:
        """How many operands it takes: least and most, None for no limit."""
        least = sum(not (o.optional or o.variadic) for o in self.operands)
        return least, None if any(o.variadic for o in self.operands) else len(self.operands)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A set of operators with one file format: its types, enumerations, tables and operators.

    `facts` holds the remaining keys of the dialect in ops.yaml, for the frontend and backend of the format.
    """

    name: str
    domain: str
    types: Mapping[str, Any]
    enums: Mapping[str, Mapping[str, int]]
    operators: Mapping[str, OperatorSpec]
    facts: Mapping[str, Any]
    #: named by onnx.defs, so that operators without an entry in ops.yaml exist too
    schemas: bool = False

    def operator(self, name: str, opset: int | None = None) -> OperatorSpec | None:
        """Find an operator by name; with `opset`, as its schema stood there. None where there is no such operator."""
        known = self.operators.get(name)
        if not self.schemas or (known is not None and known.domain != self.domain):
            return known
        return _from_schema(self, name, opset or onnx.defs.onnx_opset_version())

    def by_code(self, code: int) -> OperatorSpec | None:
        """Find an operator by the number its file format gives it."""
        return _codes(self).get(code)

    def form(self, spec: OperatorSpec, options: Mapping[str, Any]) -> OperatorSpec:
        """The operator that a node is with these options: some share a number, and are told apart by an option."""
        for form in _forms(self).get(-1 if spec.code is None else spec.code, ()):
            if all(options.get(name) == value for name, value in form.when.items()):
                return form
        return spec

    def role(self, role: str) -> OperatorSpec:
        """The operator that plays a role (such as `permute`) in this dialect.

        Raises RewriteError when ops.yaml gives the role to no operator.
        """
        spec = _roles(self).get(role)
        if spec is None:
            raise RewriteError(f"ops.yaml: no operator of dialect {self.name} has the role {role}")
        return spec

    def infix(self, symbol: str) -> str | None:
        """The operator that an infix symbol of the rule language stands for."""
        return _infixes(self).get(symbol)

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The dialects of ops.yaml, and of the packs laid over it."""

    dialects: Mapping[str, Dialect]

    def dialect(self, name: str) -> Dialect:
        """Find a dialect; raises RewriteError when ops.yaml has none of that name."""
        if name not in self.dialects:
            raise RewriteError(f"ops.yaml: there is no dialect {name}; there are {', '.join(self.dialects)}")
        return self.dialects[name]

    def spec(self, node: ir.Node, opset: int | None = None) -> OperatorSpec | None:
        """The spec of a node of the graph, found by its domain and operator type."""
        for dialect in self.dialects.values():
            if dialect.domain == node.domain:
                return dialect.operator(node.op_type, opset)
        for dialect in self.dialects.values():
            spec = dialect.operators.get(node.op_type)
            if spec is not None and spec.domain == node.domain:
                return spec
        return None


@functools.cache
def _codes(dialect: Dialect) -> dict[int, OperatorSpec]:
    found: dict[int, OperatorSpec] = {}
    for spec in dialect.operators.values():
        if spec.code is not None and not spec.when and (first := found.setdefault(spec.code, spec)) is not spec:
            raise RewriteError(f"ops.yaml: {first.name} and {spec.name} have the same code, {spec.code}")
    return found


@functools.cache
def _forms(dialect: Dialect) -> dict[int, list[OperatorSpec]]:
    forms: dict[int, list[OperatorSpec]] = {}
    for spec in dialect.operators.values():
        if spec.code is not None and spec.when:
            forms.setdefault(spec.code, []).append(spec)
    return forms


@functools.cache
def _roles(dialect: Dialect) -> dict[str, OperatorSpec]:
    return {spec.role: spec for spec in dialect.operators.values() if spec.role is not None}


@functools.cache
def _infixes(dialect: Dialect) -> dict[str, str]:
    return {spec.infix: spec.name for spec in dialect.operators.values() if spec.infix is not None}


@functools.cache
def list_catalogue(dialect: Dialect, opset: int) -> Mapping[str, OperatorSpec]:
    """All operators of a dialect by name, those of onnx.defs as they stand at an opset."""
    if not dialect.schemas:
        return dialect.operators
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == dialect.domain}
    found = {name: dialect.operator(name, opset) for name in sorted(names | dialect.operators.keys())}
    return {name: spec for name, spec in found.items() if spec is not None}


@functools.cache
def schema(name: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The ONNX schema of an operator at an opset, None where it does not exist there."""
    try:
        found = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None
    return None if found.deprecated else found


@functools.cache
def _from_schema(dialect: Dialect, name: str, opset: int) -> OperatorSpec | None:
    found = schema(name, opset, dialect.domain)
    if found is None:
        return None
    known = dialect.operators.get(name)
    kinds = onnx.defs.OpSchema.FormalParameterOption

    def operands(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[Operand, ...]:
        return tuple(Operand(p.name, p.option == kinds.Optional, p.option == kinds.Variadic) for p in parameters)

    options = {a.name: _attribute(a) for a in found.attributes.values()}
    return OperatorSpec(
        dialect.name,
        dialect.domain,
        name,
        operands(found.inputs),
        operands(found.outputs),
        options,
        traits=known.traits if known else frozenset(),
        role=known.role if known else None,
        infix=known.infix if known else None,
        facts=known.facts if known else {},
    )


#: what ONNX calls the type of an attribute; a list of such has an S after it
_KINDS = {"INT": "int64", "FLOAT": "float", "STRING": "string", "GRAPH": "subgraph"}


def _attribute(attribute: onnx.defs.OpSchema.Attribute) -> Option:
    kind = str(attribute.type).rpartition(".")[2]
    one = _KINDS.get(kind) or _KINDS.get(kind.removesuffix("S"))
    default = attribute.default_value
    value = onnx.helper.get_attribute_value(default) if default.type else None
    return Option(
        attribute.name,
        "tensor" if one is None else one if kind in _KINDS else f"[{one}]",
        value.decode() if isinstance(value, bytes) else value,
        required=attribute.required,
    )


def option_value(node: ir.Node, option: Option) -> Any:
    """The value of an option on a node, its default where the node does not say.

    Enumerants are strings, lists are Python lists, truth values are bool.
    """
    attribute = node.attributes.data.get(option.name)
    if attribute is None:
        return option.default
    value = attribute.value
    if option.type == "bool":
        return bool(value)
    return list(value) if option.type.startswith("[") else value


def load(paths: Iterable[Path] = ()) -> Catalogue:
    """Read ops.yaml and, over it, the same file of each pack; raises RuleError with the mistakes of a pack's."""
    documents = [_yaml(OPS), *(_yaml(path, checked=True) for path in paths)]
    merged: dict[str, dict[str, Any]] = {}
    for document in documents:
        for name, entry in document.items():
            known = merged.setdefault(name, {})
            for key, value in (entry or {}).items():
                known[key] = {**known.get(key, {}), **value} if isinstance(value, dict) else value
    dialects = {name: _dialect(name, entry) for name, entry in merged.items()}
    for dialect in dialects.values():
        _codes(dialect)  # raises where two operators have one
    return Catalogue(dialects)


def _yaml(path: Path, checked: bool = False) -> dict[str, dict[str, Any]]:
    import yaml  # what is read stays in the cache of packs

    try:
        text = path.read_text(encoding="utf-8")
        if checked:
            from .schema import mistakes

            found = mistakes(path, text, _yaml(OPS))
            if found:
                raise RuleError(found, {str(path): text})
        document = _document(text)
    except (OSError, yaml.YAMLError) as error:
        raise RewriteError(f"{path}: {error}") from error
    if document is None and checked:
        return {}
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise RewriteError(f"{path}: expected dialects, each a mapping")
    return document


@functools.lru_cache(8)
def _document(text: str) -> Any:
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _dialect(name: str, entry: Mapping[str, Any]) -> Dialect:
    enums = {enum: _enumeration(values, entry) for enum, values in entry.get("enums", {}).items()}
    tables = entry.get("tables", {})
    domain = entry.get("domain", name)
    operators = {
        operator: _operator(name, domain, operator, fields or {}, tables, enums)
        for operator, fields in entry.get("operators", {}).items()
    }
    known = {"domain", "types", "enums", "operators", "schemas"}
    return Dialect(
        name,
        domain,
        entry.get("types", {}),
        enums,
        operators,
        {key: value for key, value in entry.items() if key not in known},
        bool(entry.get("schemas")),
    )


def _enumeration(values: Any, entry: Mapping[str, Any]) -> dict[str, int]:
    """Read a mapping, a list numbered from 0, or the name of a section of the dialect whose entries have a `code`."""
    if isinstance(values, str):
        return {name: fields["code"] for name, fields in entry[values].items()}
    return dict(values) if isinstance(values, dict) else {value: code for code, value in enumerate(values)}


_KEYS = {"code", "operands", "results", "options", "traits", "role", "infix", "domain", "unsupported"}


def _operator(
    dialect: str,
    domain: str,
    name: str,
    fields: Mapping[str, Any],
    tables: Mapping[str, Any],
    enums: Mapping[str, Mapping[str, int]],
) -> OperatorSpec:
    options = fields.get("options", {})
    table = options if isinstance(options, str) else None
    rows = tables.get(table, {}) if table else options
    when = fields.get("when", {})  # what tells an operator from another of its number is its default
    return OperatorSpec(
        dialect,
        fields.get("domain", domain),
        name,
        tuple(Operand.parse(o) for o in fields.get("operands", ())),
        tuple(Operand.parse(o) for o in fields.get("results", ())),
        {
            key: _option(key, [*row[:2], when[key]] if key in when else row, enums, slotted=table is not None)
            for key, row in rows.items()
        },
        fields.get("code"),
        table,
        frozenset(fields.get("traits", ())),
        fields.get("role"),
        fields.get("infix"),
        fields.get("unsupported"),
        {key: value for key, value in fields.items() if key not in _KEYS},
    )


def _option(name: str, row: Sequence[Any], enums: Mapping[str, Mapping[str, int]], slotted: bool) -> Option:
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

"""Operators and dialects: what every operator takes, yields, and is called, as ops.yaml and onnx.defs say."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx_ir as ir

from ..base.errors import RewriteError
from ..base.startup import dataclass, field, replace
from .dialect_facts import DialectFacts, ElementType
from .facts import OperatorFacts, Role, Trait
from .onnx_schemas import Signature, find_last_version, find_schema, make_signature, read_signature

#: the trait of operators that no file has: forms that rules give others before they lower them
FORM = "form"
#: the trait of operators that mean nothing without others beside them in the model
CONTEXT = "context"

#: how an operand or a result is written down: the pattern of its text
Written = Annotated[str, r"^[A-Za-z_]\w*(\?|\.\.\.|!|\?\.\.\.)?$"]


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
    """All that passes may know of an operator; they ask for a trait or a role, never for its name.

    What has a text in its annotation is a key of an entry of ops.yaml, and so is each of the facts.
    """

    dialect: str
    domain: Annotated[str, "The domain of nodes of it, where it is not that of the dialect"]
    name: str
    operands: Annotated[
        tuple[Operand, ...],
        "Names of what it takes: `name?` may be left out, `name...` stands for any number, `name!` is state that it"
        " writes to",
        tuple[Written, ...],
    ]
    results: Annotated[tuple[Operand, ...], "Names of what it yields, written as operands are", tuple[Written, ...]]
    options: Annotated[
        Mapping[str, Option],
        "The name of a table of the dialect, or options with their types and defaults: `{alpha: [float, 1.0]}`",
        str | Mapping[str, tuple[Any, ...]],
    ]
    code: Annotated[int | None, "The number that the format gives it"] = None
    table: str | None = None
    traits: Annotated[frozenset[str], "Words that passes and rules may ask for", tuple[Trait, ...]] = frozenset()
    role: Annotated[str | None, "What passes need the one operator of the dialect for that has it", Role | None] = None
    infix: Annotated[str | None, "The sign that stands for it in rules"] = None
    unsupported: Annotated[str | None, "In words, why no rule is about it"] = None
    facts: OperatorFacts = field(default_factory=OperatorFacts)
    #: the last operands, where they are options of a node at an opset: each with its option
    stored: Mapping[str, Option] = field(default_factory=dict)
    #: the types of what it takes and yields, where it has a schema at an opset
    schema: Signature | None = None

    @property
    def when(self) -> Mapping[str, Any]:
        """The options by which a node shows that it is of this operator and not of another one with the same code."""
        return self.facts.when

    @property
    def words(self) -> frozenset[str]:
        """What rules may ask for: its traits and its layout."""
        return self.traits if self.facts.layout is None else self.traits | {self.facts.layout}

    @property
    def yields(self) -> tuple[Operand, ...]:
        """What a node of it yields: its results, then what becomes of each mutable operand."""
        return (*self.results, *(o for o in self.operands if o.mutable))

    def list_inputs(self, node: ir.Node) -> Sequence[ir.Value | None]:
        """What a node takes, what it stores as options of operands that came later among it."""
        if not self.stored:
            return node.inputs
        places = len(self.operands) - len(self.stored)
        found = [*node.inputs, *[None] * (places - len(node.inputs))]
        found += [_store_option(node, option) for option in self.stored.values()]
        while found and found[-1] is None:
            found.pop()
        return found

    def find_operand(self, name: str) -> int | None:
        """The place of the operand of a name; None where there is none."""
        return next((place for place, operand in enumerate(self.operands) if operand.name == name), None)

    def has(self, options: Iterable[str]) -> bool:
        """Whether it has all of some options."""
        return all(name in self.options for name in options)

    def count_operands(self) -> tuple[int, int | None]:
        """How many operands it takes: least and most, None for no limit."""
        least = sum(not (o.optional or o.variadic) for o in self.operands)
        return least, None if any(o.variadic for o in self.operands) else len(self.operands)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A set of operators with one file format: its types, enumerations, tables and operators.

    What has a text in its annotation is a key of a dialect in ops.yaml, and so is each of the facts, which are for the
    frontend and the backend of the format.
    """

    name: str
    domain: Annotated[str, "The domain of its nodes"]
    types: Annotated[Mapping[str, ElementType], "Element types of its files, by their names there"]
    enums: Annotated[
        Mapping[str, Mapping[str, int]],
        "Enumerations: values with their numbers, values numbered from 0, or the section whose entries have a `code`",
        Mapping[str, Mapping[str, int] | tuple[str, ...] | str],
    ]
    operators: Annotated[Mapping[str, OperatorSpec], "Its operators by their names"]
    facts: DialectFacts
    schemas: Annotated[bool, "Whether onnx.defs has its operators, of which those without an entry exist too"] = False

    def list_enumerants(self, operator: str, option: str) -> Sequence[str | bool]:
        """The enumerants of an option of an operator, or false and true; none where it has other values."""
        spec = self.find_operator(operator)
        found = None if spec is None else spec.options.get(option)
        if found is None or found.type == "bool":
            return () if found is None else (False, True)
        return tuple(self.enums.get(found.type, ()))

    def find_operator(self, name: str, opset: int | None = None) -> OperatorSpec | None:
        """Find an operator by name; with `opset`, as its schema stood there. None where there is no such operator."""
        known = self.operators.get(name)
        if not self.schemas or (known is not None and known.domain != self.domain and known.operands):
            return known
        if known is not None and known.domain != self.domain:  # of another domain with schemas, whose last form counts
            return _read_schema(self, name, find_last_version(name, known.domain))
        found = _read_schema(self, name, opset or onnx.defs.onnx_opset_version())
        return known if found is None and known is not None and known.operands else found  # only runtimes have it

    def find_by_code(self, code: int) -> OperatorSpec | None:
        """Find an operator by the number its file format gives it."""
        return next((one for one in self.operators.values() if one.code == code and not one.when), None)

    def find_form(self, spec: OperatorSpec, options: Mapping[str, Any]) -> OperatorSpec:
        """The operator that a node is with these options: some share a number, and are told apart by an option."""
        forms = _map_forms(self).get(spec.code, ())
        return next((form for form in forms if form.when.items() <= options.items()), spec)

    def find_role(self, role: str, opset: int | None = None) -> OperatorSpec:
        """The operator that plays a role (such as `permute`); with `opset`, as its schema stood there, if it was there.

        Raises RewriteError when ops.yaml gives the role to no operator.
        """
        spec = _find_role(self, role)
        if spec is None:
            raise RewriteError(f"ops.yaml: no operator of dialect {self.name} has the role {role}")
        return spec if opset is None else self.find_operator(spec.name, opset) or spec

    def has_role(self, role: str) -> bool:
        """Whether an operator of this dialect plays a role."""
        return _find_role(self, role) is not None

    def find_infix(self, symbol: str) -> str | None:
        """The operator that an infix symbol of the rule language stands for."""
        return next((one.name for one in self.operators.values() if one.infix == symbol), None)

    def __hash__(self) -> int:
        return id(self)


@functools.lru_cache(maxsize=256)
def _find_role(dialect: Dialect, role: str) -> OperatorSpec | None:
    return next((one for one in dialect.operators.values() if one.role == role), None)


@functools.lru_cache(maxsize=256)
def _map_forms(dialect: Dialect) -> Mapping[int | None, list[OperatorSpec]]:
    """The operators that share a number with others and are told apart by an option, by the number."""
    found: dict[int | None, list[OperatorSpec]] = {}
    for one in dialect.operators.values():
        if one.code is not None and one.when:
            found.setdefault(one.code, []).append(one)
    return found


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The dialects of ops.yaml, and of the packs laid over it."""

    dialects: Mapping[str, Dialect]

    def find_dialect(self, name: str) -> Dialect:
        """Find a dialect; raises RewriteError when ops.yaml has none of that name."""
        if name not in self.dialects:
            raise RewriteError(f"ops.yaml: there is no dialect {name}; there are {', '.join(self.dialects)}")
        return self.dialects[name]

    def find_spec(self, node: ir.Node, opset: int | None = None) -> OperatorSpec | None:
        """The spec of a node of the graph, found by its domain and operator type."""
        for dialect in self.dialects.values():
            if dialect.domain == node.domain:
                return dialect.find_operator(node.op_type, opset)
        for dialect in self.dialects.values():
            spec = dialect.operators.get(node.op_type)
            if spec is not None and spec.domain == node.domain:
                return spec
        return None


@functools.lru_cache(maxsize=16)
def map_called(dialect: Dialect) -> Mapping[tuple[str, str], str]:
    """The names in rules of operators that files call otherwise, by the domain and the name in files."""
    return {(one.domain, one.facts.called): one.name for one in dialect.operators.values() if one.facts.called}


@functools.lru_cache(maxsize=256)
def list_catalogue(dialect: Dialect, opset: int) -> Mapping[str, OperatorSpec]:
    """All operators of a dialect by name, those of onnx.defs as they stand at an opset."""
    if not dialect.schemas:
        return dialect.operators
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == dialect.domain}
    found = {name: dialect.find_operator(name, opset) for name in sorted(names | dialect.operators.keys())}
    return {name: spec for name, spec in found.items() if spec is not None}


def describe_operator(spec: OperatorSpec) -> Signature:
    """What an operator without a schema takes, as ops.yaml says: operands of the same types are of one type."""
    names = tuple([operand.name for operand in spec.operands])
    return make_signature(names, spec.count_operands()[1] is None, spec.facts.types)


@functools.cache
def _read_schema(dialect: Dialect, name: str, opset: int) -> OperatorSpec | None:
    known = dialect.operators.get(name)
    domain = dialect.domain if known is None else known.domain
    found = find_schema(name, opset, domain)
    if found is None:
        return None
    if found.since_version < opset:  # one object for all opsets at which it stands so
        return _read_schema(dialect, name, found.since_version)
    kinds = onnx.defs.OpSchema.FormalParameterOption

    def read_operands(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[Operand, ...]:
        return tuple(Operand(p.name, p.option == kinds.Optional, p.option == kinds.Variadic) for p in parameters)

    # Those that ops.yaml has as well are of a former version of a domain with versions of its own.
    options = {} if known is None else dict(known.options)
    options |= {a.name: _read_attribute(a) for a in found.attributes.values()}
    taken = read_operands(found.inputs)
    facts = OperatorFacts() if known is None else _find_facts(known, dialect, opset)
    stored = _list_stored(taken, options, read_operands(onnx.defs.get_schema(name, domain).inputs), facts.former)
    taken += tuple(Operand(name, not option.required) for name, option in stored.items())
    made = OperatorSpec(
        dialect.name,
        domain,
        name,
        taken,
        read_operands(found.outputs),
        options,
        stored=stored,
        facts=facts,
        schema=read_signature(found),
    )
    if known is None:
        return made
    return replace(made, traits=known.traits, role=known.role, infix=known.infix, unsupported=known.unsupported)


def _find_facts(known: OperatorSpec, dialect: Dialect, opset: int) -> OperatorFacts:
    """What ops.yaml says of an operator at an opset: of the older form, where it meant another thing there."""
    former = next((name for last, name in sorted(known.facts.older.items()) if opset <= last), None)
    return known.facts if former is None else replace(dialect.operators[former].facts, older=known.facts.older)


def _list_stored(
    taken: Sequence[Operand], options: Mapping[str, Option], newest: Sequence[Operand], former: Mapping[str, str]
) -> dict[str, Option]:
    """Of the operands that an operator has in its newest form, those behind others that are options still."""
    found: dict[str, Option] = {}
    for operand in newest[len(taken) :]:
        option = options.get(former.get(operand.name, operand.name))
        if option is None:
            break
        found[operand.name] = option
    return found


def _store_option(node: ir.Node, option: Option) -> ir.Value | None:
    """An option as the constant that it would be as an operand, the same one each time; None where it is not given."""
    given = node.attributes.data.get(option.name)
    number = get_option(node, option)
    if number is None:
        return None
    key = f"stored {option.name}"
    known: tuple[ir.Attr | None, ir.Value] | None = node.meta.get(key)
    if known is not None and known[0] is given:
        return known[1]
    first = node.inputs[0] if node.inputs else None
    dtype = ir.DataType.INT64
    if "float" in option.type:
        own = None if first is None else first.dtype
        dtype = own if own is not None and own.is_floating_point() else ir.DataType.FLOAT
    array = np.asarray(number, dtype.numpy())
    value = ir.Value(shape=ir.Shape(array.shape), type=ir.TensorType(dtype), const_value=ir.Tensor(array))
    node.meta[key] = given, value
    return value


#: what ONNX calls the type of an attribute; a list of such has an S after it
_KINDS = {"INT": "int64", "FLOAT": "float", "STRING": "string", "GRAPH": "subgraph"}


def _read_attribute(attribute: onnx.defs.OpSchema.Attribute) -> Option:
    kind = str(attribute.type).rpartition(".")[2]
    one = _KINDS.get(kind) or _KINDS.get(kind.removesuffix("S"))
    default = attribute.default_value
    value = onnx.helper.get_attribute_value(default) if default.type else None
    return Option(
        attribute.name,
        "tensor" if one is None else one if kind in _KINDS else f"[{one}]",
        _decode(value),
        required=attribute.required,
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def get_option(node: ir.Node, option: Option) -> Any:
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


def leave_out_empty(nodes: Iterable[ir.Node], dialect: Dialect, opset: int) -> None:
    """Leave out constant operands without elements that mean no more than that, where an opset lets them."""
    for node in nodes:
        known = dialect.operators.get(node.op_type) if node.domain == dialect.domain else None
        if known is None or not known.facts.none_if_empty:
            continue
        spec = dialect.find_operator(node.op_type, opset)
        for place, (value, operand) in enumerate(zip(node.inputs, spec.operands if spec else (), strict=False)):
            constant = None if value is None else value.const_value
            mentioned = operand.optional and operand.name in known.facts.none_if_empty
            if mentioned and constant is not None and 0 in constant.shape.numpy():
                node.replace_input_with(place, None)

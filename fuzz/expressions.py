"""Expressions of the target dialect, enumerated node by node over known values and computed in ONNX Runtime."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnx.defs
import onnx.helper

from ..engine.base.errors import VerificationError
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import Dialect
from ..verify.frames import Array
from ..verify.runtime import Runtime

#: how many nodes are computed in one model
_BATCH = 1500
#: how many values of a level the next one is built on
_KEPT = 400
#: how many operands a node may have
_OPERANDS = 3

#: an attribute: its name, how a rule writes it, and its value in each draw
Attribute = tuple[str, str, tuple[float | int | tuple[int, ...], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value and what it is in each draw: a leaf with its text, or the first result of a node.

    `depends` says whether it comes of an operand that is not constant; `index`, whether it is a constant of integers.
    """

    arrays: tuple[Array, ...]
    text: str = ""
    operator: str = ""
    operands: tuple[Value, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    depends: bool = True
    index: bool = False

    def list_nodes(self) -> list[Value]:
        """The nodes that compute it, each once, operands before those that read them."""
        found: dict[int, Value] = {}
        for operand in self.operands:
            found.update({id(one): one for one in operand.list_nodes()})
        return [*found.values(), *([self] if self.operator else [])]


@dataclass(frozen=True, slots=True)
class Form:
    """An operator of the target with attributes, and the element types that each of its operands may have.

    `variables` are the type variables of its operands: those with one variable have one type.
    """

    operator: str
    attributes: tuple[Attribute, ...]
    variables: tuple[str, ...]
    types: tuple[frozenset[str], ...]

    def can_take(self, operands: Sequence[Value], main: str) -> bool:
        """Whether it may read such operands; an index goes only where numbers of the type `main` do not."""
        bound: dict[str, str] = {}
        for variable, types, value in zip(self.variables, self.types, operands, strict=True):
            kind = _name_type(value.arrays[0])
            counts = value.arrays[0].dtype.kind in "iu" and kind != main
            if kind not in types or bound.setdefault(variable, kind) != kind or (counts and main in types):
                return False
        # A division of integers by zero ends the process.
        return not any(
            v.arrays[0].dtype.kind in "iu" and not a.all() for v in operands if not v.index for a in v.arrays
        )


def _name_type(array: Array) -> str:
    return _NAMES.get(array.dtype, "")


_NAMES = {
    np.dtype(kind): f"tensor({name})"
    for kind, name in (
        *((kind, kind) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")),
        *(("float16", "float16"), ("float32", "float"), ("float64", "double")),
    )
}


def list_forms(dialect: Dialect, opset: int, symbols: Sequence[Attribute], draws: int) -> list[Form]:
    """Each pure operator of one to three tensors at an opset, with its defaults and with one attribute at a time.

    `symbols` are values of the source that attributes of their type may take.
    """
    names = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    found = []
    for name in sorted(names):
        try:
            schema = onnx.defs.get_schema(name, opset)
        except onnx.defs.SchemaError:
            continue  # it came after the opset
        kinds = onnx.defs.OpSchema.AttrType
        graph = any(one.type in (kinds.GRAPH, kinds.GRAPHS) for one in schema.attributes.values())
        determinism = getattr(schema, "node_determinism", None)  # the stubs of onnx do not have it
        pure = determinism != onnx.defs.OpSchema.NodeDeterminism.NonDeterministic
        if graph or schema.deprecated or not pure or not schema.inputs or not schema.outputs:
            continue
        if not all(kind.startswith("tensor(") for kind in schema.outputs[0].types):
            continue
        spec = dialect.find_operator(name, opset)
        tried = spec.facts.fuzz.tried if spec is not None else {}
        variadic = schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
        formals = [*schema.inputs, schema.inputs[-1]] if variadic else list(schema.inputs)
        for count in range(max(1, schema.min_input), min(_OPERANDS, len(formals)) + 1):
            given = formals[:count]
            variables = tuple(one.type_str for one in given)
            types = tuple(frozenset(one.types) for one in given)
            for attributes in _list_attributes(schema, tried, symbols, draws):
                found.append(Form(name, attributes, variables, types))
    return found


def _list_attributes(
    schema: onnx.defs.OpSchema, tried: Mapping[str, Sequence[int]], symbols: Sequence[Attribute], draws: int
) -> Iterator[tuple[Attribute, ...]]:
    required = [name for name, one in schema.attributes.items() if one.required]
    if not required:
        yield ()
    if len(required) > 1:
        return
    kinds = onnx.defs.OpSchema.AttrType
    for name in required or schema.attributes:
        kind = schema.attributes[name].type
        wanted = {kinds.FLOAT: float, kinds.INT: int, kinds.INTS: tuple}.get(kind)
        for _, text, values in symbols:
            if wanted is not None and isinstance(values[0], wanted):
                yield ((name, text, values),)
        for value in tried.get(name, ()) if kind == kinds.INT else ():
            yield ((name, f"{value}", (value,) * draws),)


class Search:
    """The values that nodes compute, level by level; equal values are kept once, in the order of their size.

    `goal` is what is looked for, in each draw; nothing is computed after `deadline`, a time of `time.monotonic`.
    """

    def __init__(
        self, forms: Sequence[Form], leaves: Sequence[Value], goal: Sequence[Array], opset: int, deadline: float
    ) -> None:
        self._forms, self._leaves, self._goal, self._deadline = forms, leaves, goal[0], deadline
        self._wanted = make_fingerprint(goal)
        self._opset = opset
        self._main = _name_type(next(one for one in leaves if one.depends).arrays[0])
        self._classes: dict[tuple[object, ...], tuple[np.dtype[np.generic], tuple[int, ...]] | None] = {}
        self._seen = {make_fingerprint(one.arrays) for one in leaves}

    def iterate_levels(self, most: int) -> Iterator[Value]:
        """Yield each new value with up to so many nodes as soon as it is computed; few nodes come first.

        Of what is looked for each way to compute it is yielded: one may fail on other draws, or in fuzzing.
        """
        levels: list[list[Value]] = [list(self._leaves)]
        for level in range(1, most + 1):
            fresh: list[Value] = []
            last = level == most
            candidates = self._pick_admissible(self._iterate_candidates(levels), last and level > 1)
            while batch := list(itertools.islice(candidates, _BATCH)):
                for value in self._compute(batch):
                    yield value
                    if len(fresh) < _KEPT and not last and make_fingerprint(value.arrays) != self._wanted:
                        fresh.append(value)
                if self._is_over():
                    return
            levels.append(fresh)

    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def _iterate_candidates(self, levels: Sequence[Sequence[Value]]) -> Iterator[tuple[Form, tuple[Value, ...]]]:
        """Nodes over the newest values: alone, with themselves, with leaves; and over two nodes side by side."""
        newest, leaves = levels[-1], self._leaves
        for count in range(1, _OPERANDS + 1):
            forms = [form for form in self._forms if len(form.variables) == count]
            for operands in self._iterate_tuples(newest, leaves, count, len(levels) == 1):
                if self._is_over():
                    return
                if any(one.depends for one in operands):
                    for form in forms:
                        if form.can_take(operands, self._main):
                            yield form, operands
        if len(levels) > 2:
            forms = [form for form in self._forms if len(form.variables) == 2]
            for operands in itertools.product(levels[1], repeat=2):
                if self._is_over():
                    return
                for form in forms:
                    if operands[0] is not operands[1] and form.can_take(operands, self._main):
                        yield form, operands

    def _iterate_tuples(
        self, newest: Sequence[Value], leaves: Sequence[Value], count: int, first: bool
    ) -> Iterator[tuple[Value, ...]]:
        if first:
            yield from itertools.product(leaves, repeat=count)
            return
        for value in newest:
            for others in itertools.product([value, *leaves], repeat=count - 1):
                for place in range(count):
                    if all(one is not value for one in others[:place]):
                        yield (*others[:place], value, *others[place:])

    def _pick_admissible(
        self, candidates: Iterable[tuple[Form, tuple[Value, ...]]], narrow: bool
    ) -> Iterator[tuple[Form, tuple[Value, ...]]]:
        """Leave out what the runtime does not take: one of each form over operands of such types and shapes is run."""
        for form, operands in candidates:
            key = (id(form), *(id(o) if o.index else (o.arrays[0].dtype, o.arrays[0].shape) for o in operands))
            if key not in self._classes:
                if self._is_over():
                    return
                found = _run([(form, operands)], 0, self._opset)[0]
                plain = found is not None and found.dtype in _NAMES and 0 < found.size <= 4096
                self._classes[key] = (found.dtype, found.shape) if found is not None and plain else None
            kind = self._classes[key]
            if kind is not None and (not narrow or kind == (self._goal.dtype, self._goal.shape)):
                yield form, operands

    def _compute(self, batch: Sequence[tuple[Form, tuple[Value, ...]]]) -> Iterator[Value]:
        draws = len(self._leaves[0].arrays)
        for (form, operands), arrays in zip(
            batch, zip(*(_run(batch, draw, self._opset) for draw in range(draws)), strict=True), strict=True
        ):
            whole = tuple(array for array in arrays if array is not None)
            if len(whole) < draws or not any(np.isfinite(array).any() for array in whole):
                continue
            mark = make_fingerprint(whole)
            if mark not in self._seen or mark == self._wanted:
                self._seen.add(mark)
                yield Value(whole, "", form.operator, operands, form.attributes)


def _run(batch: Sequence[tuple[Form, tuple[Value, ...]]], draw: int, opset: int) -> list[Array | None]:
    """What nodes compute in a draw, in one model; None for those that the runtime does not take."""
    feeds = {id(one): one.arrays[draw] for _, operands in batch for one in operands}
    nodes = []
    for place, (form, operands) in enumerate(batch):
        node = onnx.helper.make_node(form.operator, [f"v{id(one)}" for one in operands], [f"r{place}"])
        node.attribute.extend(onnx.helper.make_attribute(name, values[draw]) for name, _, values in form.attributes)
        nodes.append(node)
    element = onnx.helper.np_dtype_to_tensor_dtype
    inputs = [onnx.helper.make_tensor_value_info(f"v{key}", element(a.dtype), a.shape) for key, a in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=f"r{place}") for place in range(len(batch))]
    graph = onnx.helper.make_graph(nodes, "candidates", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    try:
        found = Runtime(model.SerializeToString(), threads=1, optimized=False).evaluate(
            {f"v{key}": array for key, array in feeds.items()}
        )
    except VerificationError:
        if len(batch) == 1:
            return [None]
        half = len(batch) // 2
        return [*_run(batch[:half], draw, opset), *_run(batch[half:], draw, opset)]
    return [found[f"r{place}"] for place in range(len(batch))]


def make_fingerprint(arrays: Sequence[Array]) -> bytes:
    """Bytes that are the same for values that are equal but for rounding."""
    parts = []
    for array in arrays:
        parts.append(f"{array.dtype}{array.shape}".encode())
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                codes = (array.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
            parts.append(np.where(np.isnan(array), -1, (codes + 512) >> 10).tobytes())
        else:
            parts.append(np.ascontiguousarray(array).tobytes())
    return b"|".join(parts)

"""Rules suggested: an operator's results, as the interpreter computes them, looked for among small target templates."""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.defs
import onnx_ir as ir

from ..backends.probe import write_operator_model
from ..conversion import pipeline
from ..conversion.options import Options
from ..engine.base.errors import RewriteError, RuleError, VerificationError
from ..engine.base.startup import dataclass
from ..engine.dialects.operators import OperatorSpec
from ..engine.expressions.functions.registry import DTYPES, FUNCTIONS, SHORT
from ..engine.packs import loader
from ..verify.comparison import compare
from ..verify.frames import Array
from ..verify.interpreter import Interpreter, InterpreterError, Kernels, Tensor
from ..verify.runtime import Runtime
from .expressions import Attribute, Search, Value, list_forms
from .oracle import Oracle
from .profiles import PROFILES
from .runner import examine
from .subjects import list_subjects

#: the shape of models to search with, and those of further ones to verify with
_SHAPE = (2, 3, 4)
_SHAPES = ((4, 2, 3), (3, 5), (2, 3, 4))
#: standard deviations of numbers drawn, one model after the other
_SCALES = (4.0, 1.0, 12.0)
#: numbers that templates are tried with
_NUMBERS = (0.0, 1.0, 2.0, 0.5, -1.0, 6.0)
#: how many nodes a template has at most
_NODES = 3
#: types of options that are drawn; others keep their defaults
_DRAWN = ("float", "int32", "bool")
#: element types in the order in which they are preferred
_TYPES = ("f32", "bool", "i32", "i64")

#: makes a constant of integers for an operand of some extents
Indices = Callable[[random.Random, tuple[int, ...]], Array]


@dataclass(frozen=True, slots=True)
class Draw:
    """A model of the operator: its operands, which of them are constant, its options, and the result."""

    model: bytes
    operands: tuple[Array, ...]
    constant: tuple[bool, ...]
    options: dict[str, Any]
    result: Array

    @property
    def fed(self) -> list[Array]:
        """The operands that are inputs of the model."""
        return [array for array, fixed in zip(self.operands, self.constant, strict=True) if not fixed]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A checked and fuzzed rule that gave the interpreter's results on `models` models; `nodes` counts its template."""

    rule: str
    text: str
    nodes: int
    models: int


def suggest(
    rules: Sequence[str], operator: OperatorSpec, interpreter: Interpreter, seconds: float, seed: int
) -> Suggestion | None:
    """Look for a template of up to three nodes that computes what an operator does; None where none is found in time.

    Whatever rules there are about the operator are not looked at.
    """
    deadline = time.monotonic() + seconds
    pack = loader.load(rules)
    opset = pack.default_opset
    plans = list(_iterate_plans(operator, pack, interpreter, seed))
    for place, (draws, fresh) in enumerate(plans):
        now = time.monotonic()
        share = now + (deadline - now) / (len(plans) - place)
        for value in _iterate_matches(draws, operator, pack, opset, share):
            rule = _write_rule(value, operator, draws)
            header = f"over {rules[-1]} : {pack.source} -> {pack.target}"
            first = _find_first_opset(value, pack.opsets[0])
            text = f"ruleset suggested {header} opset {first}..{pack.opsets[1]} default {opset}"
            if is_sound(f"{text}\n\n{rule}", _name_rule(operator), [*draws, *fresh], interpreter, seed):
                return Suggestion(_name_rule(operator), rule, len(value.list_nodes()), len(draws) + len(fresh))
            if time.monotonic() > share:
                break
    return None


def _iterate_plans(
    operator: OperatorSpec, pack: loader.Pack, interpreter: Interpreter, seed: int
) -> Iterator[tuple[list[Draw], list[Draw]]]:
    """Ways to draw models of the operator that the interpreter takes: to search with, and to verify with."""
    if any(one.variadic or one.mutable for one in operator.operands) or len(operator.results) != 1:
        return
    said = [str(types).split() for types in operator.facts.types]
    listed = [set(_TYPES if "any" in types else types) & set(_TYPES) for types in said]
    if len(listed) != len(operator.operands) or not all(listed):
        return
    integers = [types <= {"i32", "i64"} for types in listed]
    kinds = [next(kind for kind in _TYPES if kind in types) for types in listed]
    indices = _INDICES if any(integers) and not all(integers) else _INDICES[:1]
    constant = tuple(one and not all(integers) for one in integers)
    for make, drawn in itertools.product(indices, (True, False)):
        rng = random.Random(seed)
        if drawn and not any(one.type in _DRAWN for one in operator.options.values()):
            continue
        draws = []
        for scale in _SCALES:
            draws.append(_draw(operator, pack, interpreter, rng, (kinds, constant, make, drawn), _SHAPE, scale))
        whole = [one for one in draws if one is not None]
        if len(whole) < len(_SCALES):
            continue
        more = [
            _draw(operator, pack, interpreter, rng, (kinds, constant, make, drawn), shape, scale)
            for shape, scale in zip(_SHAPES, _SCALES, strict=True)
        ]
        if fresh := [one for one in more if one is not None]:
            yield whole, fresh


def _draw_permutation(rng: random.Random, shape: tuple[int, ...]) -> Array:
    return np.array(rng.sample(range(len(shape)), len(shape)), np.int32)


def _draw_extents(rng: random.Random, shape: tuple[int, ...]) -> Array:
    split = rng.randrange(1, len(shape)) if len(shape) > 1 else 1
    return np.array([int(np.prod(shape[split:])), int(np.prod(shape[:split]))], np.int32)


def _draw_axes(rng: random.Random, shape: tuple[int, ...]) -> Array:
    return np.array([rng.randrange(len(shape))], np.int32)


def _draw_axis(rng: random.Random, shape: tuple[int, ...]) -> Array:
    return np.array(rng.randrange(len(shape)), np.int32)


#: constants of integers that count axes or extents, one kind after the other
_INDICES: tuple[Indices, ...] = (_draw_permutation, _draw_extents, _draw_axes, _draw_axis)


def _draw(
    operator: OperatorSpec,
    pack: loader.Pack,
    interpreter: Interpreter,
    rng: random.Random,
    plan: tuple[Sequence[str], tuple[bool, ...], Indices, bool],
    shape: tuple[int, ...],
    scale: float,
) -> Draw | None:
    """One model and what the interpreter computes for it; None where it does not take the model."""
    kinds, constant, make, drawn = plan
    limits = operator.facts.fuzz.limits
    arrays = []
    for operand, kind, fixed in zip(operator.operands, kinds, constant, strict=True):
        array = make(rng, shape) if fixed else _fill(rng, kind, shape, scale)
        arrays.append(
            np.where(array == 0, array.dtype.type(1), array) if limits.get(operand.name) == "nonzero" else array
        )
    options = _draw_options(rng, operator, len(shape)) if drawn else {}
    inputs = {
        one.name: array if fixed else (array.dtype.type, array.shape)
        for one, array, fixed in zip(operator.operands, arrays, constant, strict=True)
    }
    fed = [array for array, fixed in zip(arrays, constant, strict=True) if not fixed]
    for kind in dict.fromkeys((kinds[-1] if kinds[0] == "bool" else kinds[0], *_TYPES)):
        try:
            model = write_operator_model(pack.catalogue, operator.name, inputs, [(DTYPES[kind], shape)], **options)
            (result,) = interpreter.run(model, [fed], Kernels.OPTIMIZED)[0]
        except (InterpreterError, RewriteError):
            continue
        if not result.size:
            continue
        model = write_operator_model(
            pack.catalogue, operator.name, inputs, [(result.dtype.type, result.shape)], **options
        )
        return Draw(model, tuple(arrays), constant, options, result)
    return None


def _draw_options(rng: random.Random, operator: OperatorSpec, rank: int) -> dict[str, Any]:
    """Numbers and truth values for the options of an operator; all others keep their defaults."""
    options: dict[str, Any] = {}
    for name, option in operator.options.items():
        if option.type == "float":
            options[name] = float(np.float32(round(rng.uniform(0.05, 0.95), 2)))
        elif option.type == "int32":
            options[name] = rng.randrange(rank)
        elif option.type == "bool":
            options[name] = rng.random() < 0.5
    return options


def _fill(rng: random.Random, kind: str, shape: tuple[int, ...], scale: float) -> Array:
    """Numbers of both signs, some of them whole or halves; integers are not zero."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    drawn = numbers.normal(0, scale, shape)
    if kind == "f32":
        return np.where(numbers.random(shape) < 0.3, np.round(drawn * 2) / 2, drawn).astype(np.float32)
    if kind == "bool":
        return drawn > 0
    whole = np.round(drawn)
    return np.where(whole == 0, 1, whole).astype(DTYPES[kind].numpy())


# ---- the search


def _iterate_matches(
    draws: Sequence[Draw], operator: OperatorSpec, pack: loader.Pack, opset: int, deadline: float
) -> Iterator[Value]:
    """Templates that compute the results of all draws, few nodes first and those with few operands first."""
    leaves: list[Value] = []
    symbols: list[Attribute] = []
    for place, operand in enumerate(operator.operands):
        arrays = tuple(draw.operands[place] for draw in draws)
        if not draws[0].constant[place]:
            leaves.append(Value(arrays, _name_variable(operand.name)))
            continue
        values = tuple(a.item() if not a.ndim else tuple(a.tolist()) for a in arrays)
        name = _name_variable(operand.name)
        symbols.append((name, f"int({name})" if not arrays[0].ndim else name, values))
        text = name if not arrays[0].ndim else f"[n for n in {name}]"
        whole = tuple(array.astype(np.int64) for array in arrays)
        leaves.append(Value(whole, text, depends=False, index=True))
    kind = next(one for one in leaves if one.depends).arrays[0].dtype
    main = next((d.dtype for d in draws[0].operands if d.dtype.kind == "f"), kind)
    if main.kind == "f":
        leaves += [Value((np.array(number, main),) * len(draws), f"{number}", depends=False) for number in _NUMBERS]
    for name in draws[0].options:
        options = tuple(draw.options[name] for draw in draws)
        symbols.append((name, name, options))
        if main.kind == "f":
            given = tuple(np.array(option, main) for option in options)
            leaves.append(Value(given, name, depends=False))
    forms = list_forms(pack.catalogue.find_dialect(pack.target), opset, symbols, len(draws))
    wanted = [draw.result for draw in draws]
    for value in Search(forms, leaves, wanted, opset, deadline).iterate_levels(_NODES):
        if all(map(_is_equal, wanted, value.arrays)):
            yield value


def _is_equal(want: Array, got: Array) -> bool:
    """Whether a result is the interpreter's, within the tolerance of `rewrite verify` and `rewrite fuzz`."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return False
    tensor = Tensor("result", want.dtype.name, want.shape, want.shape)
    return compare(tensor, want, got, Kernels.OPTIMIZED).verdict.passed


def is_sound(text: str, rule: str, draws: Sequence[Draw], interpreter: Interpreter, seed: int) -> bool:
    """Whether rule files with such a text have no mistakes, convert models to the same results, and pass fuzzing."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suggested.rules").write_text(text, encoding="utf-8")
        try:
            pack = loader.load((folder,))
            for draw in draws:
                conversion = pipeline.rewrite(draw.model, Options(rules=(folder,)))
                (got,) = Runtime(conversion.model.SerializeToString()).run(draw.fed)
                if not conversion.report.rules.get(rule) or not _is_equal(draw.result, got):
                    return False
        except (RuleError, RewriteError, VerificationError):
            return False  # the next template may do
        subject = next(one for one in list_subjects(pack) if one.name == rule)
        oracle = Oracle(interpreter, pack.catalogue, (folder,))
        tally = examine(subject, oracle, PROFILES["quick"].examples, seed, shrinking=0)
        return bool(tally.fired[rule]) and not tally.explain_problem()


def _find_first_opset(value: Value, least: int) -> int:
    """The first opset, from `least` on, that has all operators of a template."""
    first = dict[str, int]()
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            first[schema.name] = min(schema.since_version, first.get(schema.name, schema.since_version))
    return max(least, *(first[node.operator] for node in value.list_nodes()))


# ---- the rule in words


def _name_rule(operator: OperatorSpec) -> str:
    return f"suggested_{operator.name.lower()}"


def _name_variable(name: str) -> str:
    """The variable for an operand: its name, or another where a function of the language has that."""
    return f"{name}_" if name in FUNCTIONS else name


def _write_rule(value: Value, operator: OperatorSpec, draws: Sequence[Draw]) -> str:
    """The rule that makes a template of an operator, with its test, as text."""
    names = [_name_variable(one.name) for one in operator.operands]
    constant = draws[0].constant
    result = next(name for name in ("y", "result", "output") if name not in names)
    nodes = value.list_nodes()
    readers = [id(operand) for node in nodes for operand in node.operands]
    shared = {id(node): f"t{i}" for i, node in enumerate(nodes) if node is not value and readers.count(id(node)) > 1}
    equations = [f"{shared[id(node)]} = {_write(node, shared)}" for node in nodes if id(node) in shared]
    equations.append(f"{result} = {_write(value, shared)}")
    used = {text for node in nodes for _, text, _ in node.attributes}
    used |= {operand.text for node in nodes for operand in node.operands}
    options = ", ".join(name if name in used else f"{name}: _" for name in draws[0].options)
    operands = ", ".join(f"const {name}" if fixed else name for name, fixed in zip(names, constant, strict=True))
    typed = [
        (name, SHORT[ir.DataType.from_numpy(array.dtype)], array.shape)
        for name, array, fixed in zip(names, draws[0].operands, constant, strict=True)
        if not fixed
    ]
    chosen = [
        f"{name} in [{', '.join(f'{draw.operands[place].tolist()}' for draw in draws)}]"
        for place, (name, fixed) in enumerate(zip(names, constant, strict=True))
        if fixed
    ]
    chosen += [f"{name} in {[round(d.options[name], 6) for d in draws]}" for name in draws[0].options if name in used]
    guards = " and ".join(f'dtype({name}) == "{kind}"' for name, kind, _ in typed)
    drawn = ", ".join(f"{name}: {kind}[{', '.join(map(str, shape))}]" for name, kind, shape in typed)
    return "\n".join(
        [
            f"rule {_name_rule(operator)} {{",
            f"  {result} = {operator.name}({operands})" + (f" {{{options}}}" if options else ""),
            f"  where {guards}",
            "  => " + "\n     ".join(equations),
            f"  test {drawn}" + (f" for {', '.join(chosen)}" if chosen else ""),
            "}",
            "",
        ]
    )


def _write(value: Value, shared: dict[int, str]) -> str:
    """A node as a rule writes it, with the nodes inside that have no name of their own."""
    operands = ", ".join(
        one.text if not one.operator else shared.get(id(one)) or _write(one, shared) for one in value.operands
    )
    attributes = ", ".join(name if name == text else f"{name}: {text}" for name, text, _ in value.attributes)
    return f"{value.operator}({operands})" + (f" {{{attributes}}}" if attributes else "")

"""Generates the left side of a rule step by step, from its `test` clause and ops.yaml."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from ..engine.dialects.operators import OperatorSpec
from ..engine.expressions.functions import DTYPES
from ..engine.rewrite.pattern import Absent, AnyOf, Defined, NodePattern, Number, Operand, Variable, list_names
from ..engine.syntax import tree
from ..verify.frames import Array
from . import generate_body, perturb, results
from .choices import Choices
from .compatibility import are_alike, are_exchangeable, has_type, is_within
from .element_types import Admitted, cast_number, fit_types, is_bare, pick_type, read_admitted, read_schema, vary_types
from .elements import draw_elements, draw_indices, restrict_elements
from .finding import Grids, Rejected
from .node_options import draw_options
from .quantization_parameters import StepQuantization
from .sketch import Step, Value
from .subjects import Subject
from .unknown import choose_absence, draw_extent, forget_extents

#: the most operands drawn for a variadic one
_MOST = 4
#: the most values that the number of a list's values stands for
_FEW = 2
#: in so many of a hundred draws; what is computed is what a graph reads, of what it is given
_UNKNOWN_EXTENTS, _CONSTANT, _COMPUTED = 16, 30, 50
#: in so many an operand whose elements are named is fed all the same; in so many its type is usual if nothing tells it
_FED, _SELDOM_FED, _USUAL = 40, 12, 80
#: in so many of a hundred draws the operands of a node with two are exchanged: what fires then must hold then
_EXCHANGED = 12
#: in so many a rule over the target is tried on elements of another type
_STRANGE, _STRANGERS = 8, ("f16", "f64", "i32", "i64")

#: finds the results of a step: how many, of which types and grids to try
Settle = Callable[[Step, Sequence[int], Sequence[ir.DataType], Grids], Step]


@dataclass(slots=True)
class CaseBuilder:
    """One case in the making: what the test names and what has been drawn so far.

    `given` are values of earlier steps that operands may take instead of new ones, `position` how many steps there are;
    with `free` the first operand may have another rank than the test declares; what is `varied` is drawn otherwise.
    """

    choices: Choices
    settle: Settle
    subject: Subject
    test: tree.Test
    opset: int
    given: Sequence[Value] = ()
    position: int = 0
    free: bool = False
    varied: str | None = None
    widened: bool = False
    made: list[Step] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    named: dict[str, Any] = field(default_factory=dict)
    longer: dict[str, int] = field(default_factory=dict)
    extents: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    definers: dict[str, Defined] = field(default_factory=dict)
    types: tuple[str, str] = ("", "")
    listed: set[ir.DataType] = field(default_factory=set)
    unknown: bool = False
    bare: bool = False
    absent: int = 0
    named_values: int = 0
    #: how many values the pattern's counts stand for
    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    #: how names begin in the graph that steps are added to, what it is given, and whether its steps depend on that
    within: str = ""
    parameters: Sequence[Value] = ()
    moving: bool = False
    shapes: dict[tuple[tree.Dimension, ...], tuple[int, ...]] = field(default_factory=dict)

    def build_steps(self) -> tuple[Step, ...]:
        """Build the left side, operands before users; raises Rejected where the interpreter does not take it."""
        equations = self.subject.compile_pattern(self.opset)
        self.definers = {target.name: equation for equation in equations for target in equation.targets}
        self.named = perturb.draw_named(self.choices, self.subject, self.test, self.varied)
        self.longer = {} if self.given else perturb.choose_longer(self.choices, self.subject, self.test, self.named)
        self.unknown = not self.given and self.subject.of_source and self.choices.draw_chance(_UNKNOWN_EXTENTS)
        self.widened |= self.unknown or self.varied is not None or bool(self.longer)
        self.absent = choose_absence(self.choices, self.test)
        for equation in reversed(equations):  # the root first
            if equation.repeated:
                generate_body.build_siblings(self, equation, self.choices.draw_int(1, _MOST))
            elif not any(target.name in self.values for target in equation.targets):
                self.build_node(equation.value, equation)
        return tuple(self.made)

    # ---- nodes

    def build_node(self, pattern: Operand, equation: Defined | None) -> list[Value]:
        if isinstance(pattern, AnyOf):
            return self.build_node(self.choices.pick(pattern.alternatives), equation)
        assert isinstance(pattern, NodePattern)
        spec = self._choose_operator(pattern)
        of_schema = self.subject.of_source and self.subject.reads.schemas
        kinds = read_schema(spec, self.opset) if of_schema else read_admitted(spec)
        self._choose_types(pattern, spec, kinds)
        quantities = StepQuantization(self.choices, spec)
        operands: list[Value | None] = []
        for position, (operand, wanted) in enumerate(self._pair_operands(pattern, spec)):
            operands.append(self._build_operand(operand, wanted, spec, position, kinds, quantities, operands))
        free = len(operands) == 2 and not quantities.limited and are_exchangeable(*operands)
        if free and self.choices.draw_chance(_EXCHANGED):
            operands.reverse()
            self.widened = True
        options, widened = draw_options(self.choices, self.subject, pattern, spec, operands, self.named)
        self.widened |= widened
        options |= generate_body.draw_graphs(self, pattern, spec, operands, options)
        # Some kernels count their operands, those left out as well.
        operands += [None] * (len(spec.operands) - len(operands) if spec.facts.fuzz.padded else 0)
        while operands and operands[-1] is None and not spec.facts.fuzz.padded:
            operands.pop()
        step = Step(spec, tuple(operands), options)
        targets = () if equation is None else equation.targets
        types = results.list_types(self.choices, self.subject, step, kinds)
        step = self.settle(step, results.list_counts(step, targets), types, quantities.list_result_grids)
        # What depends on positions known at run time only has extents that no file could tell.
        if any(value is not None and value.fed and kinds.is_index(p) for p, value in enumerate(step.operands)):
            unknown = self.choices.draw_chance(60)
            step = step.set_results([replace(value, open=value.open or unknown) for value in step.results])
        found = self.add(step)
        if equation is not None:
            self.values |= results.name_results(equation, found, self.counts)
        return found

    def add(self, step: Step) -> list[Value]:
        """Take in a step, whose results have names of their own then."""
        stem = f"{self.within}{step.operator.name}_{self.position + len(self.made)}"
        names = [stem] if len(step.results) == 1 else [f"{stem}_{place}" for place in range(len(step.results))]
        step = step.set_results([replace(value, name=name) for value, name in zip(step.results, names, strict=True)])
        self.made.append(step)
        return list(step.results)

    def _choose_operator(self, pattern: NodePattern) -> OperatorSpec:
        if pattern.wildcard and pattern.wildcard in self.named:
            return pattern.specs[self.named[pattern.wildcard]]
        if not pattern.specs:
            raise Rejected(f"the rule names an operator that opset {self.opset} does not have")
        return self.choices.pick(sorted(pattern.specs.values(), key=lambda spec: spec.name))

    # ---- operands

    def _pair_operands(self, pattern: NodePattern, spec: OperatorSpec) -> list[tuple[Operand, tree.Declaration | None]]:
        """The patterns of operands with their declarations, a variadic one as often as is drawn."""
        declared = {declaration.name: declaration for declaration in self.test.declarations}
        found: list[tuple[Operand, tree.Declaration | None]] = []
        for operand in pattern.operands:
            if isinstance(operand, NodePattern) and operand.spread:
                found += [(operand, None)] * self.choices.draw_int(1, _MOST)
            elif not isinstance(operand, Variable) or not operand.spread:
                found.append((operand, declared.get(operand.name) if isinstance(operand, Variable) else None))
            elif operand.name in self.definers:  # results of a node that is made before this one
                if operand.name not in self.values:
                    self.build_node(self.definers[operand.name].value, self.definers[operand.name])
                self.places[operand.name] = len(found)
                found += [(operand, None)] * len(self.values.get(operand.name, ()))
            elif operand.count is not None and operand.name in declared:
                if operand.count not in self.counts:
                    self.counts[operand.count] = self.choices.draw_int(0, _FEW)
                found += [(operand, declared[operand.name])] * self.counts[operand.count]
            elif operand.name in self.named:
                self.places[operand.name] = len(found)
                found += [(operand, None)] * len(self.named[operand.name])
            elif operand.name in declared:
                least, most = spec.count_operands()
                others = len(pattern.operands) - 1
                count = self.choices.draw_int(max(least - others, not others), _MOST if most is None else most - others)
                found += [(operand, declared[operand.name])] * count
            else:  # a table, whose tests give the operands in order
                found += [(operand, declaration) for declaration in self.test.declarations]
        return found

    def _build_operand(
        self,
        pattern: Operand,
        declaration: tree.Declaration | None,
        spec: OperatorSpec,
        position: int,
        kinds: Admitted,
        quantities: StepQuantization,
        before: Sequence[Value | None],
    ) -> Value | None:
        if isinstance(pattern, Absent):
            return None
        if isinstance(pattern, Number):
            given = [(place, one.dtype) for place, one in enumerate(before) if one is not None]
            opset = self.opset if self.subject.reads.schemas else None
            return self._make_constant(cast_number(pattern.value, spec, position, given, opset))
        if not isinstance(pattern, Variable):
            for name in list_names(pattern) if pattern.spread else ():  # of another operand before
                self.values.pop(name, None)
            return self.build_node(pattern, None)[0]
        if pattern.spread and pattern.name in self.values:
            made: Value = self.values[pattern.name][position - self.places[pattern.name]]
            return made
        if pattern.name in self.definers and pattern.name not in self.values:
            self.build_node(self.definers[pattern.name].value, self.definers[pattern.name])
        if pattern.name in self.values and not pattern.spread:
            if self.values[pattern.name] is not None:
                quantities.take(position, self.values[pattern.name])
            return cast("Value | None", self.values[pattern.name])
        mutable = position < len(spec.operands) and spec.operands[position].mutable
        if declaration is not None:
            if pattern.optional and self.choices.draw_chance(self.absent):
                value = None
            else:
                value = self._draw_declared(pattern, declaration, spec, position, kinds, quantities, before, mutable)
        elif pattern.name in self.named:
            listed, out = self.named[pattern.name], pattern.optional and self.choices.draw_chance(self.absent)
            if pattern.spread:  # the elements of each of its values
                listed = listed[position - self.places[pattern.name]]
            value = None if out or listed is None else self._draw_listed(pattern, listed, position, spec, kinds, before)
        elif pattern.optional:
            value = None
        else:
            raise Rejected(f"the test says nothing about {pattern.name}")
        if self.moving and value is not None and not value.constant and self.choices.draw_chance(_COMPUTED):
            value = generate_body.add_computed(self, value)
        if not pattern.spread:
            self.values[pattern.name] = value
        return value

    def _draw_declared(
        self,
        pattern: Variable,
        declaration: tree.Declaration,
        spec: OperatorSpec,
        position: int,
        kinds: Admitted,
        quantities: StepQuantization,
        before: Sequence[Value | None],
        mutable: bool,
    ) -> Value:
        first, other = self.types
        name = declaration.type
        if name == first and first != other:
            name = kinds.find_closest(position, other, name) if self.subject.of_source else other
        if self.bare and (name.startswith("q") or kinds.sum_like(position)):
            name = "f32"
        quantized = name.startswith("q")
        dtype = DTYPES[name.removeprefix("q")]
        index = dtype.is_integer() and not quantized and kinds.is_index(position) and not mutable
        limit = quantities.find_limit(position)
        reused = None if index or quantities.is_free(position) else self._reuse(declaration, dtype, quantized, position)
        if reused is not None:
            quantities.take(position, reused)
            return reused
        shape = [*[1] * self.longer.get(declaration.name, 0), *self.draw_shape(declaration)]
        if declaration.name == self.varied:
            shape = perturb.change_shape(self.choices, shape)
            if pattern.layout is not None and len(shape) != len(pattern.layout):
                raise Rejected(f"{pattern.name} has no such rank")
        if mutable:
            zeros = np.zeros(shape, dtype.numpy())
            known = quantities.draw_state(position, dtype) if quantized else None
            return Value(self.make_name(pattern.name), dtype, zeros, variable=True, grid=known)
        often = index or not self.subject.of_source  # rules over the target fold much, so they look for constants
        held = spec.facts.fuzz.scratch is not None and before and before[0] is not None and before[0].grid is not None
        constant = pattern.const or held or self.choices.draw_chance(_CONSTANT * (1 + often) if index or before else 0)
        if quantized or quantities.is_sum(position):
            made = quantities.draw_operand(position, dtype, shape, pattern.layout, before)
            if made is not None:
                content, grid, weights = made
                codes = quantities.store_type(dtype, content)
                value = Value(self.make_name(pattern.name), codes, content, bool(constant or weights), grid)
                return forget_extents(self.choices, value, not before) if self.unknown else value
        if index:
            content = draw_indices(self.choices, dtype, shape, self.sizes, limit)
        else:
            content = draw_elements(self.choices, dtype, shape, limit, self.subject.landmarks.numbers)
        self.sizes += [extent for extent in shape if extent not in self.sizes]
        value = Value(self.make_name(pattern.name), dtype, content, bool(constant))
        return forget_extents(self.choices, value, not before) if self.unknown and not index else value

    def _reuse(self, declaration: tree.Declaration, dtype: ir.DataType, quantized: bool, position: int) -> Value | None:
        """A value of an earlier step in place of a new one, of the type and rank that the test declares."""
        # A list with an entry for each axis goes with the rank that is declared, any list with the extents.
        lists = [listed for listed in self.named.values() if isinstance(listed, list)]
        rank = len(declaration.shape)
        free = self.free and not any(len(listed) == rank for listed in lists)
        fit = [
            value
            for value in self.given
            if value.dtype == dtype
            and (value.grid is not None) == quantized
            and (rank == value.content.ndim or (free and not position and value.content.ndim > rank))
            and value.content.size
        ]
        if position:
            shape = self.draw_shape(declaration)
            fit = [value for value in fit if list(value.content.shape) == shape]
        elif lists and not free:
            fit = [value for value in fit if all(map(is_within, declaration.shape, value.content.shape))]
        fit = [value for value in fit if are_alike(declaration.shape, value.content.shape)]
        if not fit or (position and self.choices.draw_chance(40)):
            return None
        value = self.choices.pick(fit[::-1])
        self.shapes[declaration.shape] = value.content.shape
        for dimension, extent in zip(declaration.shape, value.content.shape, strict=False):
            for said in (dimension.low, dimension.name):
                if said is not None and said != 1:
                    self.extents.setdefault(f"{said}", extent)
        self.sizes += [extent for extent in value.content.shape if extent not in self.sizes]
        return value

    def _draw_listed(
        self,
        pattern: Variable,
        value: Any,
        position: int,
        spec: OperatorSpec,
        kinds: Admitted,
        before: Sequence[Value | None],
    ) -> Value:
        """An operand whose elements the test names: a constant, or fed where the rule lets it be."""
        try:
            array = np.array(value)
        except ValueError as error:  # what is varied may have rows of different length
            raise Rejected(f"{value}: {error}") from error
        limits = spec.facts.fuzz.limits if pattern.name == self.varied else {}
        limit = limits.get(spec.operands[: position + 1][-1].name)
        array = restrict_elements(np.char.encode(array) if array.dtype.kind == "U" else array, limit)
        given = [(place, value.dtype) for place, value in enumerate(before) if value is not None]
        opset = self.opset if spec.schema is not None else None
        if not (fit := fit_types(array, spec, position, kinds, given, opset)):
            raise Rejected(f"{spec.name} takes no {array.tolist()} at opset {self.opset}")
        like = [name for name in fit if DTYPES[name] in self.listed]  # lists that are joined are of one type
        if not given and "f32" in fit and self.choices.draw_chance(_USUAL):  # so are what it is joined with
            fit = ["f32"]
        dtype = DTYPES[self.choices.pick(like if len(fit) > 1 and like and self.choices.draw_chance(60) else fit)]
        self.widened |= bool(like) and dtype not in self.listed  # the test does not say that lists are of several types
        self.listed.add(dtype)
        # Rules over the target ask what constants hold; cases that are recorded are drawn as they were.
        fed = _FED if self.subject.of_source or not self.choices.free else _SELDOM_FED
        constant = pattern.const or not self.choices.draw_chance(fed)
        with np.errstate(over="ignore"):  # what a short type cannot hold is infinite
            return Value(self.make_name(pattern.name), dtype, array.astype(dtype.numpy()), constant)

    def _make_constant(self, array: Array) -> Value:
        self.named_values += 1
        return Value(f"number_{self.position}_{self.named_values}", ir.DataType.from_numpy(array.dtype), array, True)

    def make_name(self, stem: str) -> str:
        """A name that no other value has."""
        self.named_values += 1
        return f"{stem}_{self.position}_{self.named_values}"

    def draw_shape(self, declaration: tree.Declaration) -> list[int]:
        """The extents that a test declares, or those of the operand of an earlier step that was declared alike."""
        known = self.shapes.get(declaration.shape)
        if known is not None:
            return list(known)
        return [draw_extent(self.choices, dimension, self.extents) for dimension in declaration.shape]

    def _choose_types(self, pattern: NodePattern, spec: OperatorSpec, kinds: Admitted) -> None:
        """Decide on another element type for all operands that are declared alike, where ops.yaml admits one."""
        if self.types[0]:
            return
        places = [
            (position, declaration.type)
            for position, (_, declaration) in enumerate(self._pair_operands(pattern, spec))
            if declaration is not None and not kinds.is_index(position) and not kinds.sum_like(position)
        ]
        self.bare = self.subject.of_source and not self.given and is_bare(self.choices, kinds, places)
        self.widened |= self.bare
        # Operands that are declared with quantized types of their own go together as they are.
        if not places or len({name for _, name in places if name.startswith("q")}) > 1:
            return
        first = places[0][1]
        if not self.subject.of_source:
            strange = self.choices.draw_chance(_STRANGE) and not first.startswith("q")
            own = self.subject.landmarks.types if self.choices.free else ()
            self.types = first, self.choices.pick([*_STRANGERS, *own]) if strange else first
            return
        if any(name.startswith("q") and name != first for _, name in places):
            self.types = first, first  # codes of several types are what the test is about
            return
        others = vary_types(kinds, [position for position, name in places if name == first], first)
        if wanted := [name for name in others if any(has_type(value, name) for value in self.given)]:
            self.types = first, self.choices.pick(wanted)
            return
        position = places[0][0]
        other = pick_type(self.choices, kinds, position, first, others)
        self.widened |= other.removeprefix("q") != first
        self.types = first, other

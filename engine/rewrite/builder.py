"""Builder of templates: the nodes of a rule's right side, made beside the graph and put into it when whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..base.budget import Budget
from ..base.constants import AS_STORED, NUMBERS, Elements
from ..base.errors import Span
from ..base.names import Scope, permute_constant, permute_dequantized
from ..base.quantization import DEQUANTIZE_BY, is_dropping_grid, note_numbers, read_quantization
from ..dialects.contents import note_fill
from ..dialects.conversions import name_type
from ..dialects.extents import complete, note_rank
from ..dialects.folding import fold
from ..dialects.inference import InferenceError, describe, infer, make_shape, require_within
from ..dialects.kernels import find_widenings
from ..dialects.onnx_schemas import pair_types
from ..dialects.operators import Dialect, OperatorSpec, describe_operator
from ..dialects.permutations import make_permutation
from ..expressions.compile import Frame, evaluate
from ..expressions.functions import DTYPES, EvaluationError
from ..syntax import tree
from ..syntax.tree_traversal import iterate_tails
from .clone import Cloner
from .complex_numbers import inherit_part_type
from .operands import make_operands, make_option, split_attributes
from .pattern import name_rest
from .pattern_search import SEARCHED
from .replacement import MalformedError
from .rules import Settle
from .subgraphs import (
    Body,
    count_yielded,
    detach,
    detach_bodies,
    find_bodies,
    generalize,
    make_copy,
    make_parameter,
    make_slice,
    stack_types,
)
from .variadics import assign_places


class Builder:
    """Makes the nodes of one template; `nodes` has them, `discard` undoes them."""

    __slots__ = (
        "_budget",
        "_counts",
        "_dialects",
        "_opset",
        "_parameters",
        "_permuted",
        "_root",
        "_scope",
        "_settle",
        "nodes",
        "ungrids",
        "widens",
    )

    def __init__(
        self,
        scope: Scope,
        root: ir.Node,
        dialects: Sequence[Dialect],
        opset: int,
        budget: Budget | None = None,
        settle: Settle | None = None,
    ) -> None:
        self._scope, self._root, self._dialects, self._opset = scope, root, dialects, opset
        self._budget, self._settle = budget or Budget(), settle
        self._counts: dict[int, int] = {}
        self._parameters: set[ir.Value] = set()
        self._permuted: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}
        self.nodes: list[ir.Node] = []
        self.ungrids = False  # something is computed of codes, of which nothing says what it stands for
        self.widens = False  # something is computed in another type than its own, for which there is no kernel

    def discard(self) -> None:
        """Undo what was built, so that no value of the graph has a use outside it."""
        for node in reversed(self.nodes):
            detach_bodies(node, [self._root])
            detach(node)
        self.nodes.clear()

    def evaluate_equation(self, equation: tree.Equation, frame: Frame) -> None:
        """Evaluate one equation of a template and bind its targets; raises MalformedError where results are too few."""
        targets = equation.targets
        lists = {target.name: target for target in targets if target.spread}
        known = {name: found for name in lists if isinstance(found := frame.values.get(name), list)}
        said = [frame.values[one.count] for name, one in lists.items() if one.count and name not in known]
        more = sum(map(len, known.values())) + sum(said)
        for call in iterate_tails(equation.value):
            self._counts[id(call)] = len(targets) - len(lists) + more
        result = evaluate(equation.value, frame)
        # One name takes the whole of a list; several names, or one with `...`, take its items.
        several = isinstance(result, list) and (len(targets) > 1 or bool(lists))
        results = result if several else [result]
        if not lists:
            results = results[: len(targets)]
        divided = next(assign_places(targets, len(results), known if len(lists) > 1 else {}), None)
        if divided is None:
            raise MalformedError(equation.span, f"{len(targets)} results are named, {len(results)} are there")
        for target, place in zip(targets, divided[0], strict=True):
            value: Any = results[place] if target.spread else results[place][0]
            frame.values[target.name] = value
            if target.layout:
                frame.layouts = {**frame.layouts, target.name: target.layout}
            elif target.name in frame.layouts:
                frame.layouts = {key: layout for key, layout in frame.layouts.items() if key != target.name}

    # ---- what expressions ask for

    def emit(self, frame: Frame, call: tree.Call, operator: Any, operands: list[Any], options: dict[str, Any]) -> Any:
        """Make a node of the operator that a call names; its result, or a list where several are asked for.

        A graph that an option of the source named is put in the place of the call. Raises EvaluationError where the
        name stands for neither.
        """
        if isinstance(operator, Body):
            results = self._inline(call.span, operator, operands)
            return results if self._counts.get(id(call), 1) != 1 else results[0]
        if not isinstance(operator, str):
            raise EvaluationError(f"`{call.callee}` is no graph, so it cannot be called")
        spec = self._find_spec(operator)
        kept = frame.values.get(name_rest(call.callee), self._root) if call.rest else None
        if kept is not None:
            stored = {option.name for option in spec.stored.values()}
            options = {**{name: one for name, one in kept.attributes.items() if name not in stored}, **options}
        attributes = [
            a for k, v in options.items() if (a := make_option(call.span, spec, k, v, self._opset)) is not None
        ]
        count = self._counts.get(id(call), 1) or count_yielded(spec, attributes) or len(kept.outputs if kept else ())
        results = self.make(call.span, spec, operands, attributes, count)
        return results if count != 1 else results[0]

    def find_place(self, frame: Frame, call: tree.Call, result: str) -> int:
        """The position of a result that is named; what the call makes next has it and those that must be there."""
        spec = self._find_spec(frame.values.get(call.callee, call.callee))
        place = [one.name for one in spec.results].index(result)
        self._counts[id(call)] = max(place + 1, sum(not one.optional for one in spec.results))
        return place

    def make_graph(
        self,
        frame: Frame,
        expression: tree.GraphOf,
        operator: str,
        option: str,
        operands: list[Any],
        options: Mapping[str, Any],
    ) -> Any:
        """Build the graph that is an attribute of an operator; its parameters stand for the operator's operands.

        Parameters without an operand have the types that ops.yaml gives the operator's graph; where it says `slices`,
        the last operands, as many as that option counts, are given to the graph slice by slice.
        """
        spec = self._find_spec(operator)
        slices = options.get(spec.facts.slices or "", 0)
        axes, whole = options.get(spec.facts.slice_axes or "", [0] * slices), len(operands) - slices
        make = self._scope.make_constant
        read = [one if type(one) is ir.Value else make(np.asarray(one), "sequence") for one in operands[whole:]]
        operands = [*operands[:whole], *map(make_slice, read, axes)]
        old = Cloner(frame.values.get(SEARCHED, ()), self._scope, expression.span)
        values = dict(frame.values)
        inputs = self._declare_inputs(expression, operands, spec.facts.parameters.get(option, ()), values, old)
        inner = Frame(values, dict(frame.layouts), frame.definitions, frame.traits, self, frame.budget)
        outer, self.nodes = self.nodes, []
        try:
            outputs = self._make_body(expression, frame, inner, old, spec)
            nodes = self.nodes
        finally:
            self.nodes = outer
        # A graph names what has no name, by numbers that are those of the graphs around it too.
        for node in nodes:
            self._scope.name_node(node, f"{option}/{node.op_type}")
        graph = ir.Graph(inputs, outputs, nodes=nodes, name=self._scope.make_name(option))
        if old.nodes:
            graph.sort()
        return graph

    def _declare_inputs(
        self,
        expression: tree.GraphOf,
        operands: Sequence[Any],
        kinds: Sequence[str],
        values: dict[str, Any],
        old: Cloner,
    ) -> list[ir.Value]:
        """The inputs of a graph, each like the operand that it stands for; `values` gets them by their names."""
        inputs: list[ir.Value] = []
        for parameter in expression.parameters:
            position = len(inputs)
            like = operands[position:] if parameter.spread else operands[position : position + 1]
            was = values.get(parameter.name)
            if parameter.spread and isinstance(was, list):
                like = was  # as many as the graph of the pattern has, and like them
            elif old.is_old(was):
                like = [was]
            kind = kinds[position] if position < len(kinds) else None
            made = [make_parameter(self._scope.make_name("parameter"), value, kind) for value in like]
            self._parameters.update(made)
            inputs += made
            values[parameter.name] = made if parameter.spread else made[0]
        return inputs

    def _make_body(self, body: tree.GraphOf, frame: Frame, own: Frame, old: Cloner, op: OperatorSpec) -> list[ir.Value]:
        """Make the nodes of a graph of an operator, copies of those that the pattern found among them; its outputs."""
        for equation in body.equations:
            self.evaluate_equation(equation, own)
        results: list[ir.Value] = []
        for argument in body.results:
            found = evaluate(argument.value, own)
            results += found if argument.spread else [found]
        old.note_names(frame.values, own.values)
        for node in self.nodes:
            for place, value in enumerate(node.inputs):
                if old.is_old(value):
                    node.replace_input_with(place, old.find_value(value))
        results = [old.find_value(value) for value in results]
        self.nodes += old.nodes
        return self._yield_outputs(results, op)

    def _yield_outputs(self, results: list[Any], op: OperatorSpec) -> list[ir.Value]:
        """The outputs of a graph: each is a node's own result, and stands there once."""
        own = {output for node in self.nodes for output in node.outputs}
        outputs: list[ir.Value] = []
        for result in results:
            if result not in own or result in outputs:
                spec = next(one for one in self._dialects if one.name == op.dialect).find_role("copy", self._opset)
                self.nodes.append(made := make_copy(spec, result))
                result = made.outputs[0]
            outputs.append(result)
        return outputs

    def _inline(self, span: Span, body: Body, operands: list[Any]) -> list[ir.Value]:
        if len(operands) != len(body.graph.inputs):
            raise MalformedError(span, f"{len(operands)} operands for a graph of {len(body.graph.inputs)} inputs")
        for operand, inner in zip(operands, body.graph.inputs, strict=True):
            if operand in self._parameters:
                generalize(operand, inner)
        nodes, results = body.copy_nodes(operands, self._scope)
        self.nodes += nodes
        return results

    def make_infix(self, frame: Frame, symbol: str, left: Any, right: Any) -> Any:
        """Make the node that an infix operator on run-time values stands for; raises EvaluationError for another."""
        target = self._dialects[-1]
        operator = target.find_infix(symbol)
        if operator is None:
            raise EvaluationError(f"{symbol} on run-time values has no operator in dialect {target.name}")
        return self.make(None, self._find_spec(operator), [left, right], [], 1)[0]

    def arrange(self, frame: Frame, name: str, layout: str) -> Any:
        """The value of a variable in a layout, through a permutation where it has another."""
        value, has = frame.values[name], frame.layouts.get(name)
        if value is None or has is None or has == layout:
            return value
        perm = [has.index(axis) for axis in layout]
        return self.permute(value, perm) if isinstance(value, ir.Value) else np.transpose(value, perm)

    def permute(self, value: ir.Value, perm: Sequence[int]) -> ir.Value:
        """A value with its axes in another order."""
        if list(perm) == sorted(perm):
            return value
        key = value, tuple(perm)
        if key not in self._permuted:
            self._permuted[key] = self._permute(value, perm)
        return self._permuted[key]

    def _permute(self, value: ir.Value, perm: Sequence[int]) -> ir.Value:
        if NUMBERS in value.meta:
            self.nodes.append(made := permute_dequantized(value, perm, self._scope))
            return made.outputs[0]
        if (constant := permute_constant(value, perm, self._scope)) is not None:
            return constant
        spec = self._dialects[-1].find_role("permute", self._opset)
        return self.make(None, spec, *make_permutation(spec, value, perm, self._scope), 1)[0]

    # ---- nodes

    def _find_spec(self, operator: str) -> OperatorSpec:
        for dialect in self._dialects:
            spec = dialect.find_operator(operator, self._opset)
            if spec is not None:
                return spec
        raise EvaluationError(f"operator {operator} does not exist at opset {self._opset}")

    def make(
        self, span: Span | None, spec: OperatorSpec, operands: list[Any], attributes: Sequence[ir.Attr], count: int
    ) -> list[ir.Value]:
        """Make a node, or what it computes where all that it reads is constant; its results.

        Raises MalformedError where its operands do not go together.
        """
        self._budget.spend_node()
        target = self._dialects[-1]
        operands, moved = split_attributes(spec, operands, self._opset)
        attributes = [*moved, *attributes]
        inputs = make_operands(spec, operands, self._scope)
        wider = find_widenings(target, spec, inputs) if spec.dialect == target.name else {}
        if wider:
            return self._compute_wider(span, spec, inputs, list(attributes), count, wider)
        node = ir.Node(spec.domain, spec.name, inputs, attributes, num_outputs=count)
        self.nodes.append(node)
        if (graphs := find_bodies(node)) or spec.schema is None:
            if graphs:
                stack_types(node, spec)
            coded = self._inherit(node) and any(map(read_quantization, node.inputs))
            found = None if not self._settle or graphs or coded else self._settle(node)
            if found is None and spec.role == DEQUANTIZE_BY:
                note_numbers(node)
            note_rank(node, spec)
            return list(node.outputs) if found is None else self._put_constants(node, found)
        try:
            require_within(node, spec.facts.within)
            inferred = infer(node, self._opset)
            if spec.facts.scaled_by:
                inferred = complete(node, spec, self._opset, inferred)
        except InferenceError as error:
            raise MalformedError(span or Span("", 0, 0, 0, 0), f"{spec.name}: {error}") from error
        folded = fold(node, spec, self._opset, inferred)
        if folded is not None and spec.role == "convert" and inputs[0] is not None and AS_STORED in inputs[0].meta:
            node.outputs[0].meta[NUMBERS] = lambda: folded[0]
        elif folded is not None:
            return self._put_constants(node, folded)
        describe(node, [(one.dtype, None if one.shape is None else make_shape(one.shape)) for one in inferred])
        note_fill(node, spec)
        return list(node.outputs)

    def _put_constants(self, node: ir.Node, results: Sequence[Elements]) -> list[ir.Value]:
        """Constants in the place of the node that was made last, which computes them."""
        self.nodes.pop()
        base = next((v.name for v in node.inputs if v is not None and v.name), node.op_type)
        made = [self._scope.make_computed_constant(array, base, node.inputs) for array in results]
        treated = self._find_spec(node.op_type).facts.quantization
        self.ungrids = self.ungrids or is_dropping_grid(node.inputs, made, treated)
        node.resize_inputs(0)
        return made

    def _compute_wider(
        self,
        span: Span | None,
        spec: OperatorSpec,
        inputs: list[ir.Value | None],
        attributes: list[ir.Attr],
        count: int,
        wider: Mapping[str, str],
    ) -> list[ir.Value]:
        """A node whose own types have no kernel: computed in wider ones, between two conversions."""
        self.widens = True
        found = spec.schema or describe_operator(spec)
        pairs = [*pair_types(inputs, found.operands)]  # of one type, but for numbers that a rule gave
        types = {variable: DTYPES[name] for variable, name in wider.items()}
        own = {
            variable: value.dtype
            for value, variable in reversed(pairs)
            if value is not None and value.dtype != types.get(variable)
        }
        operands = [
            self._convert(value, DTYPES[wider[variable]]) if value is not None and variable in wider else value
            for value, variable in pair_types(inputs, found.operands)
        ]
        results = self.make(span, spec, operands, attributes, count)
        if not found.results:  # ops.yaml does not say which results are of the type of an operand
            back = {DTYPES[wider[variable]]: own[variable] for variable in wider}
            kept = not spec.facts.yields
            if kept and len(back) == len(results) == 1 and results[0].type is None:
                results[0].type = ir.TensorType(*back)
            return [
                self._convert(value, back[t]) if kept and (t := value.dtype) in back else value for value in results
            ]
        return [
            self._convert(value, own[variable]) if variable in wider else value
            for value, variable in pair_types(results, found.results)
            if value is not None
        ]

    def _convert(self, value: ir.Value, dtype: ir.DataType | None) -> ir.Value:
        spec = self._dialects[-1].find_role("convert", self._opset)
        return self.make(None, spec, [value], [name_type(self._dialects[-1], spec, dtype)], 1)[0]

    def _inherit(self, node: ir.Node) -> bool:
        """A rebuilt node has the type of that which it replaces, its shape where rules infer it; whether it is one."""
        rebuilt = (node.domain, node.op_type) == (self._root.domain, self._root.op_type) and not any(find_bodies(node))
        if rebuilt and not inherit_part_type(node, self._root):
            settled = self._settle is not None and node.domain == self._dialects[-1].domain
            for output, old in zip(node.outputs, self._root.outputs, strict=False):
                output.type, output.shape = old.type, old.shape if settled else None
                output.meta.update(old.meta)
        return rebuilt

"""Application of one rule at one node: match, guards, build, check, replace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx_ir as ir

from ..base.budget import Budget, Exhausted, TooManyError, limit_attempts
from ..base.constants import ELEMENTS, FILL
from ..base.errors import InternalError, Reason, RewriteError, RewriteFailure, Span
from ..base.provenance import RULE, SCOPE, SOURCE, find_source_operator, name_source, note_source_operator
from ..base.quantization import QUANTIZE_BY, inherit, read_quantization
from ..base.startup import dataclass, field
from ..expressions.compile import Frame, Located, evaluate, read_truth
from ..expressions.functions import EvaluationError, Unsupported
from ..syntax import tree
from . import coverage
from .builder import Builder
from .clauses import Refused, check_clauses, choose_template, explain_no_template, list_remarks
from .clone import Unreachable, find_graph
from .code_grids import carry_grids_over, has_lost_grid, is_changing_grid
from .complex_numbers import is_about_complex, is_complex_node
from .conditions import Guard
from .edits import Edits
from .failures import explain_failure
from .pattern_search import SEARCHED, Bindings, Made, Then
from .profile import get_profile
from .replacement import MalformedError, check, has_another_shape, make_known_result, note_extents
from .rules import Rule, RuleSet, Settle
from .stages import INTEGERS, OPTIONAL
from .trace import Subject, get_trace
from .traversal import walk_nodes

#: a value and what takes its place
Pair = tuple[ir.Value, ir.Value]


@dataclass(slots=True)
class Outcome:
    """What came of rules: how often each fired, why one refused a node, and what is odd about the source.

    `fired` has rules by name, or by place where a rule that is tried before has the name. `remarks` are sentences about
    extents of the source that its own operators contradict. `bounded` counts the nodes that a rule was not tried on to
    its end, by the sentence that says which and why, `told` those of the result that rules of the target remark upon,
    by what they say. `complex` says that some values are complex, each a pair of real
    ones, of which most rules know nothing, `inferred` that ranks became known when what comes before was rewritten.
    """

    fired: Counter[str] = field(default_factory=Counter)
    refused: dict[ir.Node, Reason] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    bounded: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    complex: bool = False
    inferred: bool = False


class Applier:
    """Applies rules to nodes of one graph, and notes what comes of it."""

    def __init__(
        self,
        rules: RuleSet,
        subgraphs: Sequence[ir.Graph],
        edits: Edits,
        outcome: Outcome,
        settle: Settle | None = None,
    ) -> None:
        self._settle, self.outcome = settle or rules.settle, outcome
        self._rules, self._opset, self._subgraphs, self._edits = rules, rules.opset, subgraphs, edits
        self._gridded = rules.target.has_role(QUANTIZE_BY)
        profile = get_profile()
        self._try = self._attempt if profile is None else profile.time_attempts(self._attempt)

    def apply(self, rule: Rule, node: ir.Node) -> list[ir.Node] | None:
        """Rewrite at a node and tell whoever watches; the nodes made, None where the rule does not apply.

        Raises RewriteFailure or ModelError where what the rule makes is ill-formed, InternalError for all else that
        goes wrong.
        """
        trace = get_trace()
        try:
            if trace is None:
                return self._try(rule, node)
            subject = Subject.describe(node)
            made = self._try(rule, node)
        except RewriteFailure as failure:
            raise explain_failure(failure, node, self._rules.source) from failure
        except (RewriteError, MemoryError):
            raise
        except Exception as error:
            raise InternalError(f"rule {rule.place} on {node.name or node.op_type}", error) from error
        if made is not None:
            trace.report_fired(rule.stage, rule.place, subject, made)
        elif trace.is_watching(subject):
            trace.report_missed(
                rule.stage, rule.place, subject, self.outcome.refused.get(node) or self.explain_miss(rule, node)
            )
        return made

    def _attempt(self, rule: Rule, node: ir.Node) -> list[ir.Node] | None:
        if self.outcome.complex and is_complex_node(node) and not is_about_complex(rule):
            return None
        budget = self._make_budget(node)

        def accept(bindings: Bindings) -> list[ir.Node] | None:
            frame = self._make_frame(rule, bindings, budget)
            template = choose_template(rule, frame) if check_clauses(rule, frame, None) else None
            return None if template is None else self._rewrite(rule, node, template, frame)

        def is_met(guard: Guard, bindings: Bindings) -> bool:
            try:
                return read_truth(evaluate(guard.expression, self._make_frame(rule, bindings, budget)))
            except Located:
                return False  # as for a clause, which would be asked when all is bound

        try:
            return rule.matcher.search(node, accept, self._opset, self._subgraphs, budget, is_met)
        except Refused as refusal:
            self.outcome.refused[node] = Reason(rule.name, refusal.span, str(refusal))
        except TooManyError as error:
            self.outcome.bounded[f"{rule.place}: {error}"] += 1
        except Exhausted as error:
            raise RewriteFailure(rule.span, rule.name, node.name or node.op_type, str(error)) from error
        except RecursionError as error:
            raise RewriteFailure(rule.span, rule.name, node.name or node.op_type, "nests too deep") from error
        return None

    def _make_budget(self, root: ir.Node) -> Budget:
        return Budget(attempts=limit_attempts(len(self._edits.graph) + len(root.inputs)))

    def _make_frame(self, rule: Rule, bindings: Bindings, budget: Budget) -> Frame:
        return Frame(bindings, dict(rule.layouts), self._rules.definitions, self._rules.list_traits, budget=budget)

    def _rewrite(self, rule: Rule, root: ir.Node, template: tree.Template, frame: Frame) -> list[ir.Node] | None:
        old = {
            name: frame.values[name] for e in template.equations for name in _iterate_names(e) if name in rule.results
        }
        builder = Builder(self._edits.scope, root, rule.builds, self._opset, frame.budget, self._settle)
        frame.emitter = builder

        def build() -> list[Pair]:
            for equation in template.equations:
                builder.evaluate_equation(equation, frame)
            pairs: list[Pair] = []
            for name, values in old.items():
                new = frame.values[name]
                wanted, has = rule.layouts.get(name), frame.layouts.get(name)
                if wanted and has and wanted != has:
                    if isinstance(values, ir.Value) and isinstance(new, ir.Value):
                        note_extents(values, new, [wanted.index(axis) for axis in has])
                    new = builder.permute(new, [has.index(axis) for axis in wanted])
                pairs += self._pair_values(template.span, values, new)
            return pairs

        beside = [frame.values[name] for name in rule.beside if name not in old]
        stays = [value for one in beside for value in (one if isinstance(one, list) else [one])]
        pairs = self._build_checked(rule, root, template.span, builder, build, frame.values.get(SEARCHED, ()), stays)
        if pairs is None:
            return None
        if coverage.active is not None:
            coverage.active.count_rule(rule, template.span, frame.values)
        return self._commit(rule, root, builder.nodes, pairs)

    def _build_checked(
        self,
        rule: Rule,
        root: ir.Node,
        span: Span,
        builder: Builder,
        build: Callable[[], list[Pair]],
        graphs: Sequence[ir.Graph] = (),
        stays: Sequence[ir.Value] = (),
    ) -> list[Pair] | None:
        """Build the replacement of each result and compare its type and shape with the result's; None for no rewrite.

        That is where the replacement would read what it replaces, or where the rule is optional (a stage that only
        improves) and the replacement is worse, as `_is_worse` says. `graphs` are the bodies that the pattern looked
        into: nothing outside may read their values. `stays` are values of other matched nodes that may be read.
        """
        try:
            pairs = build()
            if rule.stage in OPTIONAL and self._is_worse(builder, pairs):
                builder.discard()
                return None
            for before, after in pairs:
                remark = check(span, before, after)
                if remark is not None:
                    self.outcome.remarks.append(remark)
        except Located as error:
            builder.discard()
            if isinstance(error.cause, EvaluationError | Unsupported):
                raise Refused(error.span, str(error)) from error
            raise
        except MalformedError as error:
            builder.discard()
            where = error.span if error.span.file else span
            raise RewriteFailure(where, rule.name, root.name or root.op_type, str(error)) from error
        except Unreachable:
            builder.discard()
            return None
        if not _is_leaking(builder.nodes, pairs, graphs) and self._edits.can_replace(root, builder.nodes, pairs, stays):
            return pairs
        builder.discard()
        return None

    def _is_worse(self, builder: Builder, pairs: Sequence[Pair]) -> bool:
        """Whether a node that may as well stay should: for another shape, for want of a kernel, or for codes that stand
        for nothing, or for other numbers."""
        return (
            builder.widens
            or any(has_another_shape(before, after) for before, after in pairs)
            or (self._gridded and (builder.ungrids or has_lost_grid(builder.nodes, pairs, self._rules)))
            or (self._gridded and is_changing_grid(builder.nodes, pairs, self._rules))
        )

    def _pair_values(self, span: Span, old: Any, new: Any) -> Iterator[Pair]:
        olds, news = (old, new) if isinstance(old, list) else ([old], [new])
        if len(olds) != len(news):
            raise MalformedError(span, f"yields {len(news)} values where there were {len(olds)}")
        for before, after in zip(olds, news, strict=True):
            if before is None:
                continue
            if type(after) is not ir.Value:
                after = make_known_result(self._edits.scope, span, before, after)
            yield before, after

    def _commit(self, rule: Rule, root: ir.Node, made: list[ir.Node], pairs: list[Pair]) -> list[ir.Node]:
        fresh = {output for node in made for output in node.outputs}
        for before, after in pairs:
            if after in fresh and after.name is None:
                self._edits.scope.reserve([before.name])  # which no value of the graph has until the nodes are in it
                before.name, after.name = None, before.name
        source, operator = name_source(root), find_source_operator(root)
        scope = root.metadata_props.get(SCOPE)
        stem = next((output.name for output in root.outputs if output.name), None) or next(
            (after.name for _, after in pairs if after.name), root.op_type
        )
        for node in made:  # what is in their graphs may have been there before
            note_source_operator(node, operator)
        for node in walk_nodes(made):
            self._edits.scope.name_node(node, f"{stem}/{node.op_type}")
            for value in node.inputs:
                self._edits.register(value)
            node.metadata_props.setdefault(RULE, rule.place)
            node.metadata_props.setdefault(SOURCE, source)
            if scope is not None:
                node.metadata_props.setdefault(SCOPE, scope)
        for before, after in pairs:
            if rule.stage == INTEGERS or (before.dtype == after.dtype and read_quantization(after) is None):
                inherit(before, after)
            if ELEMENTS in before.meta:
                after.meta.setdefault(ELEMENTS, before.meta[ELEMENTS])
            if FILL in before.meta and before.dtype == after.dtype and read_quantization(before) is None:
                after.meta.setdefault(FILL, before.meta[FILL])
        # what other rules make of another dialect is put on grids later
        if rule.stage == INTEGERS or self._rules.source is self._rules.target:
            carry_grids_over(made, self._rules)
        self._edits.put(root, made, pairs)
        for before, _ in pairs:
            self._name_unread(before, stem)
        self.outcome.fired[rule.called] += 1
        return made

    def _name_unread(self, value: ir.Value, base: str) -> None:
        """Name a result that nobody reads any more, of a node whose other results are read, unless it may be absent."""
        node = value.producer()
        if node is None or node.graph is None or value.name is not None:
            return
        spec = self._rules.source.find_operator(node.op_type, self._opset)
        place = node.outputs.index(value)
        if spec is None or place >= len(spec.results) or not spec.results[place].optional:
            value.name = self._edits.scope.make_name(f"{base}/unread")

    def find_refusal(self, rule: Rule, node: ir.Node) -> Reason | None:
        """Why a rule that only says what is taken does not take a node; None where it does, or is not about it.

        What it remarks upon is noted in the outcome, once for a node.
        """
        told: set[str] = set()

        def ask(bindings: Bindings) -> None:
            frame = self._make_frame(rule, bindings, Budget())
            if check_clauses(rule, frame, None):
                told.update(list_remarks(rule, frame))

        refusal = self._ask(rule, node, ask)
        if refusal is None:
            self.outcome.told.update(told)
        return refusal

    def find_covered(self, rule: Rule, node: ir.Node) -> tuple[ir.Node, ...] | Reason | None:
        """The nodes that the pattern of a rule covers, its root at a node; why it does not take them; None where it is
        about others."""

        def ask(bindings: Bindings) -> tuple[ir.Node, ...] | None:
            frame = self._make_frame(rule, bindings, Budget())
            return _list_covered(rule, node, bindings) if check_clauses(rule, frame, None) else None

        return self._ask(rule, node, ask)

    def _ask(self, rule: Rule, node: ir.Node, ask: Then[Made]) -> Made | Reason | None:
        """What is first found where the pattern of a rule fits at a node, or why the rule does not take the node."""
        try:
            return rule.matcher.search(node, ask, self._opset, self._subgraphs, self._make_budget(node))
        except Refused as refusal:
            return Reason(rule.name, refusal.span, str(refusal))
        except TooManyError as error:
            return Reason(rule.name, rule.span, str(error))
        except Exhausted as error:
            raise RewriteFailure(rule.span, rule.name, node.name or node.op_type, str(error)) from error

    def explain_miss(self, rule: Rule, node: ir.Node) -> Reason | None:
        """Why a rule does not take a node, from the place where it got furthest."""
        if self.outcome.complex and is_complex_node(node) and not is_about_complex(rule):
            why = "the node computes with complex numbers, the rule with real ones, as it asks no `is_complex(x)`"
            return Reason(rule.name, rule.span, why)
        misses: list[Reason] = []
        further: list[Reason] = []  # where the whole pattern fits, which it may do in one order of operands alone

        def note_miss(span: Span, text: str) -> None:
            misses.append(Reason(rule.name, span, text))

        def ask(bindings: Bindings) -> None:
            frame = self._make_frame(rule, bindings, Budget())
            if check_clauses(rule, frame, further):
                none = choose_template(rule, frame) is None
                unfit = "what it makes would be computed from itself, of another shape or type, or codes of no scale"
                why = explain_no_template(rule, frame) if none else unfit
                further.append(Reason(rule.name, rule.span, why))

        try:
            rule.matcher.search(node, ask, self._opset, self._subgraphs, self._make_budget(node), note=note_miss)
        except TooManyError as error:
            further.append(Reason(rule.name, rule.span, str(error)))
        reached = further or misses
        return reached[-1] if reached else None


def _list_covered(rule: Rule, root: ir.Node, bindings: Bindings) -> tuple[ir.Node, ...]:
    """The nodes between a root and what the variables of a pattern stand for."""
    ends: set[object] = set()
    for name, value in bindings.items():
        if name not in rule.results:
            ends.update(value if isinstance(value, list) else [value] if isinstance(value, ir.Value) else [])
    covered, work = {root: None}, [root]
    while work:
        for operand in work.pop().inputs:
            producer = None if operand is None or operand in ends else operand.producer()
            if producer is not None and producer not in covered:
                covered[producer] = None
                work.append(producer)
    return tuple(covered)


def _is_leaking(made: list[ir.Node], pairs: list[Pair], graphs: Sequence[ir.Graph]) -> bool:
    """Whether values of graphs that a pattern looked into would be read outside of them."""
    if not graphs:
        return False
    read = (value for node in walk_nodes(made) for value in node.inputs if value is not None)
    return any(find_graph(value) in graphs for value in (*read, *(after for _, after in pairs)))


def _iterate_names(equation: tree.Equation) -> Iterator[str]:
    return (target.name for target in equation.targets)

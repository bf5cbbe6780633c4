"""The driver: the rules of one stage run over one graph, until nothing more applies."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence

import onnx_ir as ir

from ..base.errors import ModelError, Reason, RewriteError
from ..base.names import Scope
from ..base.provenance import name_source
from ..dialects.folding import fold
from ..dialects.inference import SHAPE_DATA, InferenceError, infer, make_shape, read_extents, update_extents
from ..dialects.symbols import UNNAMED
from .apply import Applier, Outcome
from .edits import Edits
from .rules import Rule, RuleSet, Settle
from .stages import INTEGERS, NORMALIZE, ONCE
from .subgraphs import find_bodies
from .trace import get_trace
from .traversal import drain, list_neighbours

#: firings a node, beyond which a stage is taken to run in circles
_PATIENCE = 64
#: nodes that a firing may make without counting for more than one
_LARGE = 16


class Driver:
    """The rules of one stage over one graph.

    `names` are those of the graph, or of the graph around it where it is `inner`, the body of a node. `functions` are
    the graphs that nodes of the source call by their numbers. `settle` is called with each node that a template makes.
    """

    def __init__(
        self,
        graph: ir.Graph,
        rules: RuleSet,
        stage: str,
        names: Scope,
        functions: Sequence[ir.Graph] = (),
        outcome: Outcome | None = None,
        inner: bool = False,
        settle: Settle | None = None,
    ) -> None:
        self._graph, self._rules, self._stage = graph, rules, stage
        self._edits = Edits(graph, names, rules.target.find_role("copy"), inner)
        self._firing = Applier(rules, functions, self._edits, outcome or Outcome(), settle)

    def run(self) -> None:
        """Go once over each node, or on until no rule applies, as the stage has it.

        Raises RewriteError where the rules run in circles.
        """
        if self._stage not in self._rules.list_stages():
            return
        if self._stage in ONCE:
            self._run_once()
        else:
            self._run_until_done()
        self._edits.sweep()

    def rewrite_nodes(self, nodes: Sequence[ir.Node]) -> list[ir.Node]:
        """Let the first rule that takes each of some nodes rewrite it; the nodes made, which are left as they are."""
        made = [one for node in nodes for one in self._apply_first(node, self._list_candidates(node))]
        self._edits.sweep()
        return made

    def explain_misses(self, node: ir.Node, general: bool = False) -> tuple[Reason, ...]:
        """Tell why each rule about a node's operator does not take it, from where it got furthest.

        `general` asks for rules about any operator that their conditions admit too; else these say little of one.
        """
        candidates = self._rules.list_candidates(self._stage, node.domain, node.op_type)
        about = (rule for rule in candidates if general or not rule.general)
        misses = [self._firing.explain_miss(rule, node) for rule in about]
        return tuple(miss for miss in misses if miss is not None)

    def refuse(self, node: ir.Node) -> Reason | None:
        """Tell why a rule that says what is taken does not take a node; None where all do, or none is about it.

        What the rules remark upon is noted in the outcome.
        """
        candidates = self._rules.iterate_candidates(self._stage, node)
        return next((why for rule in candidates if (why := self._firing.find_refusal(rule, node)) is not None), None)

    def find_covered(self, node: ir.Node) -> tuple[ir.Node, ...] | Reason | None:
        """The nodes that the first rule which takes a node covers together with it, those of several nodes first.

        Why none takes it, in the words of the first that says so; None where none is about it.
        """
        reason: Reason | None = None
        for deep in (True, False):
            for rule in self._list_candidates(node, deep):
                found = self._firing.find_covered(rule, node)
                if isinstance(found, tuple):
                    return found
                reason = reason or found
        return reason

    def _run_once(self) -> None:
        """Patterns of several nodes go first, from the outputs on; then each node, operands before users.

        Over integers, those of several nodes come once more where rules about single ones have taken nodes away.
        """
        before = self._edits.list_nodes()[::-1]
        self._apply_deep_rules(before)
        work = self._edits.list_nodes()[::-1]
        made: Sequence[ir.Node]
        while work:
            node = work.pop()
            if node.graph is None:
                continue
            if node.domain == self._rules.target.domain != self._rules.source.domain:
                if self._fold(node):
                    continue
                self._refresh(node)
            made = self._apply_first(node, self._list_candidates(node, deep=False))
            # The graph of a call that was put in its place holds operators of the source; what rules over integers
            # make of the source is left to later stages.
            if self._stage != INTEGERS:
                work += [other for other in reversed(made) if other.domain != self._rules.target.domain]
        if self._stage == INTEGERS and any(node.graph is None for node in before):
            self._apply_deep_rules(before)

    def _apply_deep_rules(self, nodes: Sequence[ir.Node]) -> None:
        """Rewrite each of some nodes by the first rule of several nodes that takes it.

        Over integers, what is left of them is tried again until no rule takes one away: what one makes of the source
        is part of a larger pattern, as the slices and paddings beside a convolution in pieces are.
        """
        taken = True
        while taken:
            there = [node for node in nodes if node.graph is not None]
            for node in there:
                if node.graph is not None:
                    self._apply_first(node, self._list_candidates(node, deep=True))
            taken = self._stage == INTEGERS and any(node.graph is None for node in there)

    def _fold(self, node: ir.Node) -> bool:
        """Compute a node that was made before the few numbers that it reads were constant; whether it is gone."""
        known = [value.const_value for value in node.inputs if value is not None]
        if not known or any(tensor is None or tensor.size > SHAPE_DATA for tensor in known):
            return False
        spec = self._rules.target.find_operator(node.op_type, self._rules.opset)
        if spec is None or spec.schema is None or not spec.facts.fold:
            return False
        try:
            found = fold(node, spec, self._rules.opset, infer(node, self._rules.opset))
        except InferenceError:
            return False  # who refreshes it tells
        if found is None:
            return False
        scope = self._edits.scope
        made = [scope.make_computed_constant(elements, node.op_type, node.inputs) for elements in found]
        self._edits.put(node, [], list(zip(node.outputs, made, strict=True)))
        return True

    def _refresh(self, node: ir.Node) -> None:
        """Infer anew what a node of the target yields where it is open: what it reads may be known better by now."""
        if all(result.shape is not None and result.shape.is_static() for result in node.outputs):
            return
        if any(find_bodies(node)):
            return
        if self._rules.settle is not None:
            self._rules.settle(node)
            return
        try:
            found = infer(node, self._rules.opset)
        except InferenceError as error:
            raise ModelError(
                f"{name_source(node)}: what the model says of its operands does not fit: {error}"
            ) from error
        for result, inferred in zip(node.outputs, found, strict=True):
            if inferred.shape is not None:
                result.shape = make_shape(update_extents(read_extents(result), inferred.shape))

    def _infer_open(self, node: ir.Node) -> None:
        """Infer the results of a node of a standard that were unknown: what it reads may have been rewritten since."""
        known = all(value is None or (value.shape is not None and value.dtype is not None) for value in node.inputs)
        if not known or node.domain != self._rules.source.domain or not self._rules.source.schemas:
            return
        try:
            found = infer(node, self._rules.opset)
        except InferenceError:
            return  # who lowers it tells
        for result, inferred in zip(node.outputs, found, strict=True):
            if inferred.shape is not None and inferred.dtype is not None:
                # Extents that nothing tells get names, as where the whole graph is inferred: no two are equal.
                extents = [f"{UNNAMED}{result.name}_{i}" if n is None else n for i, n in enumerate(inferred.shape)]
                result.shape, result.type = make_shape(tuple(extents)), ir.TensorType(inferred.dtype)
                self._firing.outcome.inferred = True

    def _run_until_done(self) -> None:
        first = self._edits.list_nodes()
        again: deque[ir.Node] = deque()
        waiting = set(first)  # what is still ahead is not queued again
        left = _PATIENCE * (len(first) + 16)
        recent: deque[Rule] = deque(maxlen=16)
        for node in itertools.chain(first, drain(again)):
            waiting.discard(node)
            if node.graph is not self._graph:  # it is gone, or belongs to the graph of another node
                continue
            if self._stage == NORMALIZE and any(output.shape is None for output in node.outputs):
                self._infer_open(node)
            for rule in self._list_candidates(node):
                made = self._firing.apply(rule, node)
                if made is None:
                    continue
                recent.append(rule)
                left -= max(1, len(made) // _LARGE)
                if left < 0:
                    cycle = " -> ".join(dict.fromkeys(r.place for r in recent))
                    advice = "what is made there matches there again, which a `where` has to prevent"
                    raise RewriteError(f"stage {self._stage} does not end: {cycle}: {advice}")
                for neighbour in (*made, *list_neighbours(made), *self._list_single_use_nodes()):
                    if neighbour not in waiting and neighbour.graph is not None:
                        waiting.add(neighbour)
                        again.append(neighbour)
                break

    def _list_single_use_nodes(self) -> list[ir.Node]:
        """The producers and the users of values that were left with one use since it was asked last."""
        values, self._edits.single_use = self._edits.single_use, []
        ends = [(value.producer(), *(usage.node for usage in value.uses())) for value in values]
        return [node for several in ends for node in several if node is not None]

    def _list_candidates(self, node: ir.Node, deep: bool | None = None) -> Iterable[Rule]:
        """The rules to try on a node; all about its operator where somebody watches what does not fit."""
        if get_trace() is None:
            return self._rules.iterate_candidates(self._stage, node, deep)
        rules = self._rules.list_candidates(self._stage, node.domain, node.op_type)
        return [rule for rule in rules if deep in (None, rule.deep)]

    def _apply_first(self, node: ir.Node, rules: Iterable[Rule]) -> list[ir.Node]:
        """Apply the first rule that takes a node; the nodes made."""
        for rule in rules:
            if node in self._firing.outcome.refused:
                break
            made = self._firing.apply(rule, node)
            if made is not None:
                return made
        return []

"""Rules run over a graph, stage by stage, until no source operator is left and nothing more applies."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

import onnx_ir as ir

from .builder import Settle
from .edits import Edits
from .errors import ModelError, Reason, Refusal, RewriteError, UnsupportedError
from .firing import RULE, SOURCE, Firing
from .inference import InferenceError, extents, infer, merge, shaped
from .operators import Catalogue
from .pairs import pair
from .profile import staged, timed
from .quantization import in_blocks
from .rules import ACCEPT, ADAPT, INTEGERS, LOWER, MEANING, NORMALIZE, RECOVER, SIMPLIFY, Rule, RuleSet
from .scope import Scope
from .sharing import share
from .subgraphs import bodies, called
from .view import expose
from .walks import around, ordered, taken, within

#: the options of a custom operator as they stand in its file, among the facts about a node and as an attribute
_OPTIONS = "custom_options"

#: firings a node, beyond which a stage is taken to run in circles
_PATIENCE = 64
#: nodes that a firing may make without counting for more than one
_LARGE = 16
#: how deep graphs of nodes may nest; a model whose graphs call themselves has no bottom
_DEPTH = 32


class Rewriter:
    """One graph on its way from the source dialect to the target's."""

    def __init__(
        self,
        graph: ir.Graph,
        rules: RuleSet,
        catalogue: Catalogue,
        opset: int,
        subgraphs: Sequence[ir.Graph] = (),
        parent: Rewriter | None = None,
        plain: bool = False,
        keep: bool = False,
        settle: Settle | None = None,
    ) -> None:
        self.graph = graph
        self._rules = rules
        self._catalogue = catalogue
        self._opset = opset
        self._subgraphs = subgraphs
        #: whether no value is to stay quantized
        self._plain = plain
        #: whether custom operators that no rule is about stay as they are
        self._keep: bool = keep if parent is None else parent._keep
        self._depth: int = 0 if parent is None else parent._depth + 1
        self._scope: Scope = Scope(graph) if parent is None else parent._scope
        self._children: list[Rewriter] = []
        self._edits = Edits(graph, self._scope, rules.target.role("copy"), inner=self._depth > 0)
        self._firing = Firing(rules, opset, subgraphs, self._edits, settle)
        #: operators that compute with the real numbers of quantized values, by name
        self.viewed: Counter[str] = Counter()

    @property
    def fired(self) -> Counter[str]:
        """How often each rule fired."""
        return self._firing.fired

    @property
    def remarks(self) -> list[str]:
        """What is odd about the source, in words."""
        return self._firing.remarks

    @property
    def bounded(self) -> Counter[str]:
        """How many nodes a rule was not tried on to its end, by the sentence that says which and why."""
        return self._firing.bounded

    def mean(self) -> None:
        """Put what operators mean in their places, in other operators of the source, where rules say so.

        Raises UnsupportedError with the nodes of which rules say what they mean, and none of them here.
        """
        nodes = [node for node in self._edits.nodes() if self._candidates(MEANING, node)]
        for node in nodes:
            self._first(node, self._candidates(MEANING, node))
        refusals = [self._refusal(MEANING, node) for node in nodes if node.graph is not None]
        if refusals:
            raise UnsupportedError(refusals)
        self._edits.sweep()

    def run(self, arrange: Callable[[Scope], None] | None = None) -> None:
        """Run all stages, and `arrange` before the first that simplifies, on the graph and on those of its nodes.

        Raises UnsupportedError with every source node that no rule took.
        """
        for graph in called(self.graph, self._rules.source, self._subgraphs) if self._subgraphs else ():
            other = Rewriter(graph, self._rules, self._catalogue, self._opset, self._subgraphs, plain=self._plain)
            other._firing.inherit(self._firing)
            other._expose()
            self.viewed += other.viewed
            self._firing.complex = other._firing.complex
            other._fixpoint(NORMALIZE)
        self._expose()
        refusals = self._convert()
        if refusals:
            raise UnsupportedError(refusals)
        self._improve(arrange)

    def accept(self) -> None:
        """Hold the result against what the target takes; raises UnsupportedError with every node that it does not."""
        if ACCEPT not in self._rules.stages():
            return
        refusals = [found for node in within(self.graph) if (found := self._unaccepted(node)) is not None]
        if refusals:
            raise UnsupportedError(refusals, "cannot be run by the target")

    def _unaccepted(self, node: ir.Node) -> Refusal | None:
        for rule in self._rules.candidates(ACCEPT, node.domain, node.op_type):
            reason = self._firing.refusal(rule, node)
            if reason is not None:
                output = next((value.name for value in node.outputs if value.name), node.name)
                source, maker = node.metadata_props.get(SOURCE), node.metadata_props.get(RULE)
                origin = f" (made of {source} by {maker})" if source and maker else ""
                return Refusal(node.op_type, f"{output}{origin}", (reason,))
        return None

    def _expose(self) -> None:
        """Let rules see real numbers where values are quantized, after those over integers, and pairs for complex."""
        if self._rules.source is self._rules.target:
            return
        if not self._plain:
            self._lower(INTEGERS)
        self._firing.complex = pair(self.graph) or self._firing.complex
        with timed("quantization"):
            source, target = self._rules.source, self._rules.target
            self.viewed += expose(self.graph, source, target, self._opset, self._scope, self._plain)
        self._edits.changed()

    def _convert(self) -> list[Refusal]:
        """Rewrite the source's operators, those in graphs of nodes as well; the nodes that no rule took."""
        if self._depth > _DEPTH:
            raise RewriteError(f"graphs of nodes nest deeper than {_DEPTH}: {self.graph.name}")
        self._fixpoint(NORMALIZE)
        self._lower(LOWER)
        refusals: list[Refusal] = []
        target = self._rules.target
        plain: dict[str, bool] = {}  # whether an operator of the target has no graphs among its attributes
        for node in self._edits.nodes():
            if node.domain != target.domain:
                if self._rules.source is not target and not (self._keep and self._kept(LOWER, node)):
                    refusals.append(self._refusal(LOWER, node))
            elif (operator := node.op_type) not in plain:
                spec = target.operator(operator, self._opset)
                plain[operator] = spec is not None and all(o.type != "subgraph" for o in spec.options.values())
            elif plain[operator]:
                continue
            for body in bodies(node):
                child = self._child(body)
                self._children.append(child)
                refusals += child._convert()
        return refusals

    def _improve(self, arrange: Callable[[Scope], None] | None) -> None:
        """Run the stages over the target's own operators; a graph on which no rule fires stays as it is."""
        if self.fired or RECOVER in self._rules.stages():
            self._share()
        if self._depth == 0:
            self._recover()
        for stage in (SIMPLIFY, ADAPT):
            if stage == SIMPLIFY and arrange is not None:
                arrange(self._scope.inner(self.graph) if self._depth else self._scope)
                self._edits.changed()
            self._fixpoint(stage)
        if self.fired:
            self._share(constants=True)
        for child in self._children:
            child._improve(arrange)
        if (self.fired or arrange is not None) and not ordered(self.graph):
            with timed("sorting"):
                self.graph.sort()

    def _recover(self) -> None:
        """Find larger layers, in the graphs of nodes first: what a graph computes tells what its node does."""
        for child in self._children:
            child._recover()
        self._fixpoint(RECOVER)
        known = {child.graph: child for child in self._children}
        self._children = []
        for body in (body for node in self._edits.nodes() for body in bodies(node)):
            self._children.append(known.get(body) or self._child(body))

    def _child(self, body: ir.Graph) -> Rewriter:
        child = Rewriter(body, self._rules, self._catalogue, self._opset, self._subgraphs, self)
        child._firing.inherit(self._firing)
        return child

    def _share(self, constants: bool = False) -> None:
        """Let equal nodes over equal operands be one."""
        if self._depth == 0:
            share(self.graph, self._rules.target, constants)

    # ---- the shapes that stages have

    @staged
    def _lower(self, stage: str) -> None:
        """Patterns of several nodes go first, from the outputs on; then each node, operands before users."""
        if stage not in self._rules.stages():
            return
        work = self._edits.nodes()[::-1]
        for node in work:
            if node.graph is not None:
                self._first(node, self._candidates(stage, node, deep=True))
        work = self._edits.nodes()[::-1]
        made: Sequence[ir.Node]
        while work:
            node = work.pop()
            if node.graph is None:
                continue
            if node.domain == self._rules.target.domain != self._rules.source.domain:
                self._refresh(node)
            made = self._first(node, self._candidates(stage, node, deep=False))
            # The graph of a call that was put in its place holds operators of the source.
            work += [other for other in reversed(made) if other.domain != self._rules.target.domain]
        self._edits.sweep()

    def _refresh(self, node: ir.Node) -> None:
        """Infer anew what a node of the target yields, as what it reads may be known better by now."""
        if any(bodies(node)):
            return
        try:
            found = infer(node, self._opset)
        except InferenceError as error:
            where = node.metadata_props.get(SOURCE, node.name or node.op_type)
            raise ModelError(f"{where}: what the model says of its operands does not fit: {error}") from error
        for result, inferred in zip(node.outputs, found, strict=True):
            if inferred.shape is None:
                continue
            try:
                result.shape = shaped(merge(extents(result), inferred.shape) or ())
            except InferenceError:
                result.shape = shaped(inferred.shape)

    @staged
    def _fixpoint(self, stage: str) -> None:
        """Rewrite until no rule of the stage applies; raises RewriteError where the rules run in circles."""
        first = self._edits.nodes() if stage in self._rules.stages() else []
        again: deque[ir.Node] = deque()
        waiting: set[ir.Node] = set()
        left = _PATIENCE * (len(first) + 16)
        recent: deque[Rule] = deque(maxlen=16)
        for node in itertools.chain(first, taken(again)):
            waiting.discard(node)
            if node.graph is not self.graph:  # it is gone, or belongs to the graph of another node
                continue
            for rule in self._candidates(stage, node):
                made = self._firing.apply(rule, node)
                if made is None:
                    continue
                recent.append(rule)
                left -= max(1, len(made) // _LARGE)
                if left < 0:
                    cycle = " -> ".join(dict.fromkeys(r.place for r in recent))
                    raise RewriteError(f"stage {stage} does not end: {cycle}")
                for neighbour in (*made, *around(made)):
                    if neighbour not in waiting and neighbour.graph is not None:
                        waiting.add(neighbour)
                        again.append(neighbour)
                break
        self._edits.sweep()

    def _candidates(self, stage: str, node: ir.Node, deep: bool | None = None) -> tuple[Rule, ...]:
        """The rules to try on a node."""
        if stage == INTEGERS and any(map(in_blocks, node.inputs)):
            return ()  # functions tell one scale, or one for each index
        return self._rules.candidates(stage, node.domain, node.op_type, deep)

    def _first(self, node: ir.Node, rules: Iterable[Rule]) -> list[ir.Node]:
        """Apply the first rule that takes a node; the nodes made."""
        for rule in rules:
            if node in self._firing.refused:
                break
            made = self._firing.apply(rule, node)
            if made is not None:
                return made
        return []

    # ---- what is left over

    def _kept(self, stage: str, node: ir.Node) -> bool:
        """Whether a node may stay: a custom operator's that no rule is about. Options of another form become bytes."""
        if node.domain == self._rules.source.domain or self._rules.candidates(stage, node.domain, node.op_type):
            return False
        raw = node.meta.get(_OPTIONS)
        if raw and not node.attributes:
            node.attributes.add(ir.AttrTensor(_OPTIONS, ir.tensor(list(raw), dtype=ir.DataType.UINT8)))
        return True

    def _refusal(self, stage: str, node: ir.Node) -> Refusal:
        spec = self._rules.source.operator(node.op_type)
        custom = "give one by --rules, or leave the node as it is by --keep-custom"
        why = f"no pack of rules describes {node.op_type}: {custom}" if spec is None else spec.unsupported or ""
        return Refusal(node.op_type, node.name or "", self._reasons(stage, node), why)

    def _reasons(self, stage: str, node: ir.Node) -> tuple[Reason, ...]:
        """Why each candidate rule said no, from the place where it got furthest."""
        if node in self._firing.refused:
            return (self._firing.refused[node],)
        candidates = self._rules.candidates(stage, node.domain, node.op_type)
        misses = [self._firing.miss(rule, node) for rule in candidates]
        return tuple(miss for miss in misses if miss is not None)


__all__ = ["RULE", "SOURCE", "Rewriter"]

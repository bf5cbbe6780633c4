"""Rules run over a graph, stage by stage, until no source operator is left and nothing more applies."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import onnx_ir as ir

from . import coverage
from .builder import Builder
from .edits import Edits
from .errors import Reason, Refusal, RewriteError, RewriteFailure, Span, UnsupportedError
from .expressions import Frame, Located
from .functions import EvaluationError, Unsupported
from .guards import Refused, admits, chosen
from .inference import InferenceError, extents, infer, merge, shaped
from .language import tree
from .matcher import Matcher
from .operators import Catalogue
from .pairs import minds, pair, paired
from .profile import profiling, staged, timed
from .quantization import inherit
from .replacement import Ill, check, computed
from .rules import INTEGERS, LOWER, NORMALIZE, STAGES, Rule, RuleSet
from .scope import Scope
from .sharing import share
from .subgraphs import bodies, called
from .trace import Subject, watching
from .view import expose
from .walks import around, ordered, taken, within

#: keys of `metadata_props` that say where a node comes from
RULE, SOURCE = "nnrewrite.rule", "nnrewrite.source"

#: the options of a custom operator as they stand in its file, among the facts about a node and as an attribute
_OPTIONS = "custom_options"

_RECOVER, _SIMPLIFY = "recover", "simplify"

#: firings a node, beyond which a stage is taken to run in circles
_PATIENCE = 64
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
    ) -> None:
        self.graph = graph
        self.fired: Counter[str] = Counter()
        #: extents of the source that its own operators contradict
        self.remarks: list[str] = []
        self._rules = rules
        self._catalogue = catalogue
        self._opset = opset
        self._subgraphs = subgraphs
        profile = profiling()
        self._try = self._attempt if profile is None else profile.measured(self._attempt)
        #: whether no value is to stay quantized
        self._plain = plain
        #: whether custom operators that no rule is about stay as they are
        self._keep: bool = keep if parent is None else parent._keep
        self._depth: int = 0 if parent is None else parent._depth + 1
        self._scope: Scope = Scope(graph) if parent is None else parent._scope
        self._children: list[Rewriter] = []
        self._refused: dict[ir.Node, Reason] = {}
        self._complex = False
        self._edits = Edits(graph, self._scope, rules.target.role("copy"), inner=self._depth > 0)

    def run(self, arrange: Callable[[Scope], None] | None = None) -> None:
        """Run all stages, and `arrange` before the first that simplifies, on the graph and on those of its nodes.

        Raises UnsupportedError with every source node that no rule took.
        """
        for graph in called(self.graph, self._rules.source, self._subgraphs) if self._subgraphs else ():
            other = Rewriter(graph, self._rules, self._catalogue, self._opset, self._subgraphs, plain=self._plain)
            other.fired, other.remarks = self.fired, self.remarks
            other._expose()
            self._complex = self._complex or other._complex
            other._fixpoint(NORMALIZE)
        self._expose()
        refusals = self._convert()
        if refusals:
            raise UnsupportedError(refusals)
        self._improve(arrange)

    def _expose(self) -> None:
        """Let rules see real numbers where values are quantized, after those over integers, and pairs for complex."""
        if self._rules.source is self._rules.target:
            return
        if not self._plain:
            self._lower(INTEGERS)
        self._complex = pair(self.graph) or self._complex
        with timed("quantization"):
            expose(self.graph, self._rules.source, self._rules.target, self._opset, self._scope, self._plain)

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
                child = Rewriter(body, self._rules, self._catalogue, self._opset, self._subgraphs, self)
                child.fired, child.remarks, child._complex = self.fired, self.remarks, self._complex
                self._children.append(child)
                refusals += child._convert()
        return refusals

    def _improve(self, arrange: Callable[[Scope], None] | None) -> None:
        """Run the stages over the target's own operators; a graph on which no rule fires stays as it is."""
        if self.fired or _RECOVER in self._rules.stages():
            self._share()
        for stage in STAGES[STAGES.index(_RECOVER) :]:
            if stage == _SIMPLIFY and arrange is not None:
                arrange(self._scope)
                self._edits.changed()
            self._fixpoint(stage)
        if self.fired:
            self._share()
        for child in self._children:
            child._improve(arrange)
        if (self.fired or arrange is not None) and not ordered(self.graph):
            with timed("sorting"):
                self.graph.sort()

    def _share(self) -> None:
        """Let equal nodes over equal operands be one."""
        if self._depth == 0:
            share(self.graph, self._rules.target)

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
        for result, inferred in zip(node.outputs, infer(node, self._opset), strict=True):
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
            if node.graph is None:
                continue
            for rule in self._candidates(stage, node):
                made = self._apply(rule, node)
                if made is None:
                    continue
                recent.append(rule)
                left -= 1
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
        """The rules to try on a node; whoever watches sees those too that its operands rule out at a glance."""
        domain, operator = node.domain, node.op_type
        found = self._rules.candidates(stage, domain, operator, deep)
        if not found or not self._rules.choosy(stage, domain, operator, deep) or watching() is not None:
            return found
        producers = [value.producer() for value in node.inputs if value is not None]
        beneath = frozenset([producer.op_type for producer in producers if producer is not None])
        return self._rules.candidates(stage, domain, operator, deep, beneath)

    def _first(self, node: ir.Node, rules: Iterable[Rule]) -> list[ir.Node]:
        """Apply the first rule that takes a node; the nodes made."""
        for rule in rules:
            if node in self._refused:
                break
            made = self._apply(rule, node)
            if made is not None:
                return made
        return []

    # ---- one rule at one node

    def _apply(self, rule: Rule, node: ir.Node) -> list[ir.Node] | None:
        """Rewrite at a node and tell whoever watches; the nodes made, None where the rule does not apply."""
        trace = watching()
        if trace is None:
            return self._try(rule, node)
        subject = Subject.of(node)
        made = self._try(rule, node)
        if made is not None:
            trace.fired(rule.stage, rule.place, subject, made)
        elif trace.watches(subject):
            trace.missed(rule.stage, rule.place, subject, self._refused.get(node) or self._miss(rule, node))
        return made

    def _attempt(self, rule: Rule, node: ir.Node) -> list[ir.Node] | None:
        if self._complex and paired(node) and not minds(rule):
            return None
        for bindings in Matcher(rule.equations, self._opset, None, self._subgraphs).matches(node):
            frame = self._frame(rule, dict(bindings))
            try:
                if not admits(rule, frame, None):
                    continue
                template = chosen(rule, frame)
                if template is not None:
                    return self._rewrite(rule, node, template, frame)
            except Refused as refusal:
                self._refused[node] = Reason(rule.name, refusal.span, str(refusal))
                return None
        return None

    def _frame(self, rule: Rule, bindings: dict[str, Any]) -> Frame:
        return Frame(bindings, dict(rule.layouts), self._rules.definitions, self._traits)

    def _traits(self, operator: str) -> frozenset[str]:
        for dialect in (self._rules.source, self._rules.target):
            spec = dialect.operator(operator)
            if spec is not None:
                return spec.traits
        return frozenset()

    def _rewrite(self, rule: Rule, root: ir.Node, template: tree.Template, frame: Frame) -> list[ir.Node]:
        old = {name: frame.values[name] for e in template.equations for name in _names(e) if name in rule.results}
        builder = Builder(self._scope, root, rule.builds, self._opset)
        frame.emitter = builder
        pairs: list[tuple[ir.Value, ir.Value]] = []
        try:
            for equation in template.equations:
                builder.equation(equation, frame)
            for name, values in old.items():
                new = frame.values[name]
                wanted, has = rule.layouts.get(name), frame.layouts.get(name)
                if wanted and has and wanted != has:
                    new = builder.permute(new, [has.index(axis) for axis in wanted])
                pairs += self._pairs(template.span, values, new)
            for before, after in pairs:
                remark = check(template.span, before, after)
                if remark is not None:
                    self.remarks.append(remark)
        except Located as error:
            builder.discard()
            if isinstance(error.cause, EvaluationError | Unsupported):
                raise Refused(error.span, str(error)) from error
            raise
        except Ill as error:
            builder.discard()
            span = error.span if error.span.file else template.span
            raise RewriteFailure(span, rule.name, root.name or root.op_type, str(error)) from error
        if coverage.active is not None:
            coverage.active.note(rule, template, frame.values)
        return self._commit(rule, root, builder.nodes, pairs)

    def _pairs(self, span: Span, old: Any, new: Any) -> Iterator[tuple[ir.Value, ir.Value]]:
        olds, news = (old, new) if isinstance(old, list) else ([old], [new])
        if len(olds) != len(news):
            raise Ill(span, f"yields {len(news)} values where there were {len(olds)}")
        for before, after in zip(olds, news, strict=True):
            if before is None:
                continue
            if type(after) is not ir.Value:
                after = computed(self._scope, span, before, after)
            yield before, after

    def _commit(
        self, rule: Rule, root: ir.Node, made: list[ir.Node], pairs: list[tuple[ir.Value, ir.Value]]
    ) -> list[ir.Node]:
        fresh = {output for node in made for output in node.outputs}
        for before, after in pairs:
            if after in fresh and after.name is None:
                before.name, after.name = None, before.name
        source = root.metadata_props.get(SOURCE, root.name or root.op_type)
        stem = next((output.name for output in root.outputs if output.name), None) or next(
            (after.name for _, after in pairs if after.name), root.op_type
        )
        for node in within(made):
            self._scope.christen(node, f"{stem}/{node.op_type}")
            for value in node.inputs:
                self._edits.register(value)
            node.metadata_props[RULE] = rule.place
            node.metadata_props.setdefault(SOURCE, source)
        if rule.stage == INTEGERS:
            for before, after in pairs:
                inherit(before, after)
        self._edits.put(root, made, pairs)
        self.fired[rule.name] += 1
        return made

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
        if node in self._refused:
            return (self._refused[node],)
        candidates = self._rules.candidates(stage, node.domain, node.op_type)
        misses = [self._miss(rule, node) for rule in candidates]
        return tuple(miss for miss in misses if miss is not None)

    def _miss(self, rule: Rule, node: ir.Node) -> Reason | None:
        if self._complex and paired(node) and not minds(rule):
            return Reason(rule.name, rule.span, "the node computes with complex numbers, the rule with real ones alone")
        misses: list[Reason] = []

        def note(span: Span, text: str) -> None:
            misses.append(Reason(rule.name, span, text))

        matcher = Matcher(rule.equations, self._opset, note, self._subgraphs)
        for bindings in matcher.matches(node):
            if admits(rule, self._frame(rule, dict(bindings)), misses):
                misses.append(Reason(rule.name, rule.span, "no template is for this opset"))
        return misses[-1] if misses else None


def _names(equation: tree.Equation) -> Iterator[str]:
    return (target.name for target in equation.targets)


__all__ = ["RULE", "SOURCE", "Rewriter"]

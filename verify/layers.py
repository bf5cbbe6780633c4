"""Layers: each tensor of a model that its rewritten form has too, computed by both from the same numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ..engine.base.errors import ModelError
from .adapter import Adapter
from .comparison import Comparison, Verdict, compare, differ, distance, worst
from .cuts import Segment, Wiring
from .forms import Form, apart, forms
from .frames import Array
from .inputs import draw
from .interpreter import Interpreter, Kernels, Source
from .original import Known, Original, read
from .reals import real_form
from .runtime import Runtime
from .verification import ORDER

#: so often is thought over what stands for what; a chain of tensors in unlikely orders takes a round for each
_ROUNDS = 60
#: a value stands for a tensor where it comes about as close to it as any other of its name does
_AS_CLOSE, _CLOSE = 2.0, 0.01
#: so many steps may come of a step in the middle of several operators
_STEPS = 4.0
#: the trait of operators that move elements, in ops.yaml
_MOVES = "moves"
#: from the best verdict to the worst
_RANKS = tuple(Verdict)
#: what is not known yet to be computed by any nodes
_NONE = Segment((), frozenset())


@dataclass(frozen=True, slots=True)
class Step:
    """One tensor compared: the operator that yields it in the original, and how far apart both sides are.

    `nodes` compute it in the rewritten model, from tensors that are compared before, the first to be suspected in
    front.
    """

    operator: str
    comparison: Comparison
    nodes: tuple[onnx.NodeProto, ...] = ()


@dataclass(slots=True, eq=False)
class Stand:
    """A value of the rewritten model that may stand for a tensor; the forms that it may have, the likeliest first."""

    known: Known
    name: str
    forms: list[Form]
    output: bool = False
    segment: Segment = _NONE
    #: what both sides come to, from the same numbers
    comparison: Comparison | None = None
    #: whether its readers are right where they read the original's numbers in its place, and it holds others
    blamed: bool = False

    @property
    def passed(self) -> bool:
        """Whether it holds what it stands for."""
        return self.comparison is not None and self.comparison.verdict.passed


def compare_layers(
    source: Source, target: Source, interpreter: Interpreter, seed: int = 0, inputs: Sequence[Array] | None = None
) -> list[Step]:
    """Run both models on one sample and compare each tensor that both have, in the order of the original.

    Each is computed from the original's numbers for those before it, so that no difference is passed on. Raises
    VerificationError where one side does not run, ModelError for what is no model.
    """
    model, runtime = _parse(target), Runtime(target)
    described = interpreter.describe(source)
    samples = [inputs] if inputs is not None else [sample for (sample,) in draw(described.inputs, seed)]
    if runtime.unquantized:
        samples = [Adapter(runtime, described).feed(sample) for sample in samples]
        source = real_form(source)
    original = read(source, interpreter, samples)
    feeds = runtime.feeds(Adapter(runtime, original.signature).feed(original.sample))
    trial = _Trial(original, Wiring(model), feeds)
    trial.begin(runtime.outputs, {name for name in runtime.outputs if runtime.turned(name)})
    trial.settle()
    trial.acquit()
    return list(trial.steps())


def first_divergence(steps: Sequence[Step]) -> Step | None:
    """The first tensor that differs, None where all agree."""
    return next((step for step in steps if not step.comparison.verdict.passed), None)


def _parse(target: Source) -> onnx.ModelProto:
    try:
        return onnx.load_from_string(target) if isinstance(target, bytes) else onnx.load(target)
    except Exception as error:  # the parser's exceptions have no common root but this
        raise ModelError(f"{target if isinstance(target, str) else 'the model'}: {error}") from error


class _Trial:
    """The values that stand for tensors, and what they come to where each is computed from the original's numbers."""

    def __init__(self, original: Original, wiring: Wiring, feeds: Mapping[str, Array]) -> None:
        self._original, self._wiring, self._feeds = original, wiring, feeds
        self._stands: dict[str, Stand] = {}
        self._known: dict[object, Comparison] = {}

    def begin(self, outputs: Sequence[str], turned: Collection[str] = ()) -> None:
        """Find what may stand for which tensor: outputs for outputs, other values for those that they are named after.

        The likeliest form of each is that in which it is closest to the original where nothing is replaced. Outputs
        have the original's axes in their order, but for those that are `turned`.
        """
        known = {f"{one.value.name}": one for one in self._original.known}
        exits = zip(outputs, (f"{value.name}" for value in self._original.model.graph.outputs), strict=False)
        ends = {name: known[output] for name, output in exits if output in known and name in self._wiring.values}
        named = {name: one for name in self._wiring.values if (one := _namesake(name, known)) is not None}
        pairs = {**named, **ends}
        found = self._wiring.run(self._feeds, pairs, {})
        likely: defaultdict[Known, list[tuple[float, Stand]]] = defaultdict(list)
        for name, one in pairs.items():
            ranked = self._ranked(one, found[name])
            if name in ends and name not in turned:
                ranked = [(far, form) for far, form in ranked if form.plain]
            if name not in ends and any(form.exceeded(found[name]) for _, form in ranked[:1]):
                continue  # what codes cannot hold cannot be replaced by them
            if ranked or name in ends:
                stand = Stand(one, name, [form for _, form in ranked], name in ends)
                likely[one].append((ranked[0][0] if ranked else 0.0, stand))
        for stands in likely.values():
            least = min(far for far, _ in stands)
            close = [stand for far, stand in stands if stand.output or far <= _AS_CLOSE * least + _CLOSE]
            self._stands.update((stand.name, stand) for stand in close)

    def _ranked(self, known: Known, found: Array) -> list[tuple[float, Form]]:
        """The forms in which a value may hold a tensor, the closest first."""
        tried = forms(known.tensor, known.content, found, self._original.alike(known))
        ranked = [(apart(known.content, form.decode(found)), form) for form in tried]
        return sorted(ranked, key=lambda entry: entry[0])

    def settle(self) -> None:
        """Compare all values, until each stands in a form that its readers understand or is left out."""
        for _ in range(_ROUNDS):
            self._compare()
            if not self._revise():
                return

    def acquit(self) -> None:
        """Leave out values that do not hold the tensor they are named after, and do not have to.

        Their readers are right with what is there: those that hold the same tensor, or compute others from it.
        """
        for stand in [stand for stand in self._stands.values() if stand.blamed]:
            before = [one for one in self._stands.values() if one.known is stand.known and not one.output]
            before = [one for one in before if one.name in stand.segment.begins]
            if before and next(found for one, _, found in self._compared(before) if one is stand).verdict.passed:
                stand.blamed = False
                for one in before:
                    del self._stands[one.name]
        blamed = [stand for stand in self._stands.values() if stand.blamed and not stand.output]
        for group in [blamed, *([stand] for stand in blamed)]:
            for stand in self._harmless([stand for stand in group if stand.name in self._stands]):
                del self._stands[stand.name]
        self._compare()

    def steps(self) -> Iterator[Step]:
        """The tensors that some value stands for, each by the value that is furthest off."""
        stands: defaultdict[Known, list[Stand]] = defaultdict(list)
        for stand in self._stands.values():
            stands[stand.known].append(stand)
        for known in self._original.known:
            compared = [(stand.comparison, stand) for stand in stands[known] if stand.comparison is not None]
            if compared:
                comparison = worst([one for one, _ in compared])
                first = next(stand for one, stand in compared if one is comparison)
                places = [place for stand in _onwards(first, stands[known]) for place in stand.segment.nodes]
                if not comparison.verdict.passed:
                    places += self._holding(first)
                yield Step(known.operator, comparison, tuple(self._wiring.nodes[p] for p in dict.fromkeys(places)))

    def _holding(self, stand: Stand) -> Iterator[int]:
        """The nodes that hold what a value is computed from in another way, which may be none that it understands."""
        operators = self._original.catalogue.dialect("onnx").operators
        for name in stand.segment.begins:
            begin = self._stands[name]
            if self._is_recoded(begin):
                yield from begin.segment.nodes
            last = begin.segment.nodes[-1]
            spec = operators.get(self._wiring.nodes[last].op_type)
            if spec is not None and _MOVES in spec.traits:
                yield last

    def _compare(self) -> None:
        for stand, segment, comparison in self._compared(()):
            stand.segment, stand.comparison = segment, comparison

    def _compared(self, freed: Collection[Stand]) -> list[tuple[Stand, Segment, Comparison]]:
        """What all values come to where all but some are replaced for their readers."""
        replaced = {name: stand for name, stand in self._stands.items() if stand.forms and stand not in freed}
        segments = {name: self._wiring.segment(name, replaced) for name in self._stands}

        def key(stand: Stand) -> object:
            begins = frozenset((name, replaced[name].forms[0]) for name in segments[stand.name].begins)
            return stand.name, stand.forms[0] if stand.forms else None, begins

        asked = [stand for stand in self._stands.values() if key(stand) not in self._known]
        if asked:
            numbers = {name: stand.forms[0].encode(stand.known.content) for name, stand in replaced.items()}
            found = self._wiring.run(self._feeds, [stand.name for stand in asked], numbers)
            for stand in asked:
                given = frozenset(self._stands[name].known for name in segments[stand.name].begins)
                self._known[key(stand)] = self._judged(stand, found[stand.name], given)
        return [(stand, segments[name], self._known[key(stand)]) for name, stand in self._stands.items()]

    def _judged(self, stand: Stand, found: Array, given: frozenset[Known]) -> Comparison:
        """Compare a value with what the interpreter's kernels make of the same numbers, each set, and their spread."""
        tensor, want = stand.known.tensor, stand.known.content
        got = stand.forms[0].decode(found) if stand.forms else found
        own = self._original.kernels
        comparison = compare(tensor, want, got, own)
        if stand.known in given:  # the same numbers held in another way, without any rounding
            return comparison if comparison.verdict is Verdict.EQUAL or not tensor.scales else differ(comparison)
        if comparison.verdict.passed:
            return comparison
        spread = 0.0
        for kernels in ORDER:
            content = self._original.recompute(stand.known, given, kernels)
            if content is None:
                continue
            other = compare(tensor, content, got, kernels)
            if other.verdict.passed:
                return other
            if kernels is Kernels.DEFAULT:
                spread = distance(tensor, want, content)
                # Reference kernels are slow: they are asked where nothing else explains what is there.
                if (within := compare(tensor, want, got, own, spread)).verdict.passed:
                    return within
        return compare(tensor, want, got, own, max(spread, self._rounding(stand.known, given)))

    def _rounding(self, known: Known, given: frozenset[Known]) -> float:
        """Measure what it makes that the original rounds to codes between some tensors and another.

        A rewritten model may do so elsewhere or not at all: kernels with integer weights round real activations, and a
        step in the middle of several operators may be some steps at their end. More than that is not rounding.
        """
        content = self._original.recompute(known, given, Kernels.DEFAULT, real=True)
        held = [] if content is None else forms(known.tensor, known.content, content)
        if content is None or not held:
            return 0.0
        found = distance(known.tensor, known.content, held[0].decode(content))
        return found if not known.tensor.scales or found <= _STEPS else 0.0

    def _revise(self) -> bool:
        """Blame values that differ while their readers are right, try others in another form; whether any changed."""
        readers: defaultdict[str, list[Stand]] = defaultdict(list)
        for stand in self._stands.values():
            for name in stand.segment.begins:
                readers[name].append(stand)

        def understood(stand: Stand) -> bool:
            """Whether somebody who goes on from a value is right; another form of the same tensor says nothing."""
            return any(
                reader.passed and (reader.known is not stand.known or understood(reader))
                for reader in readers[stand.name]
            )

        while True:
            front = [stand for stand in self._stands.values() if self._is_front(stand)]
            right = [stand for stand in front if stand.output or understood(stand)]
            if not right:
                break
            for stand in right:
                stand.blamed = True
        for stand in front:
            stand.forms = stand.forms[1:]
            if not stand.forms:
                del self._stands[stand.name]
        return bool(front)

    def _is_front(self, stand: Stand) -> bool:
        """Whether a value is the first to differ on its way, and nobody knows why yet."""
        if stand.passed or stand.blamed:
            return False
        return all(one.passed or one.blamed for one in (self._stands[name] for name in stand.segment.begins))

    def _harmless(self, freed: Sequence[Stand]) -> list[Stand]:
        """Those of some values that no reader goes wrong on where they are not replaced."""
        names, harmful = {stand.name for stand in freed}, set[str]()
        for stand, _, found in self._compared(freed):
            if stand in freed or not stand.passed or stand.comparison is None:
                continue
            if _RANKS.index(found.verdict) <= _RANKS.index(stand.comparison.verdict):
                continue
            work, seen = list(stand.segment.begins & names), set[str]()
            while work:
                name = work.pop()
                if name not in seen:
                    seen.add(name)
                    work += self._stands[name].segment.begins & names
            # Where numbers are only held in another way nothing is rounded, and no reader becomes less exact.
            harmful |= {name for name in seen if not found.verdict.passed or self._is_recoded(self._stands[name])}
        return [stand for stand in freed if stand.name not in harmful]

    def _is_recoded(self, stand: Stand) -> bool:
        """Whether a value is computed from another that holds the same tensor."""
        before = (self._stands.get(name) for name in stand.segment.begins)
        return any(one is not None and one.known is stand.known for one in before)


def _onwards(first: Stand, stands: Sequence[Stand]) -> list[Stand]:
    """A value, and those that hold the same tensor and are computed from it."""
    found = [first]
    for stand in stands:  # in the order in which they are computed
        if stand not in found and any(one.name in stand.segment.begins for one in found):
            found.append(stand)
    return found


def _namesake(name: str, known: Mapping[str, Known]) -> Known | None:
    """The tensor that a value is named after: by the same name, or one that goes on behind a slash."""
    while name not in known:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return known[name]

"""Layers: each tensor of a model that its rewritten form has too, computed by both from the same numbers."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from .adapter import Adapter
from .comparison import Comparison, Verdict, choose_worst, compare, measure_distance, reject
from .cuts import Segment, Wiring, read_wiring
from .first_runs import ORDER
from .forms import Form, estimate_distance, list_forms
from .frames import Array
from .inputs import draw
from .interpreter import Interpreter, Kernels, Source
from .layouts import read_layouts
from .original import Known, Original, read
from .reals import write_real_form
from .runtime import Runtime
from .saturation import explain_saturation

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
    front. Where it `saturates`, products of bytes were kept from that: as this processor computes them it differs.
    """

    operator: str
    comparison: Comparison
    nodes: tuple[onnx.NodeProto, ...] = ()
    saturates: bool = False


@dataclass(slots=True, eq=False)
class Candidate:
    """A value of the rewritten model that may stand for a tensor; the forms that it may have, the likeliest first."""

    known: Known
    name: str
    forms: list[Form]
    output: bool = False
    segment: Segment = _NONE
    #: what both sides come to, from the same numbers
    comparison: Comparison | None = None
    #: whether its readers are right where they read the original's numbers in its place, and it holds others
    suspect: bool = False

    @property
    def passed(self) -> bool:
        """Whether it holds what it stands for."""
        return self.comparison is not None and self.comparison.verdict.passed


def compare_layers(
    source: Source, target: Source, interpreter: Interpreter, seed: int = 0, inputs: Sequence[Array] | None = None
) -> list[Step]:
    """Run a TensorFlow Lite and an ONNX model, one made of the other, on one sample and compare each tensor that both
    have, in the order of the first, the original here.

    Each is computed from the original's numbers for those before it, so that no difference is passed on. Raises
    VerificationError where one side does not run, ModelError for what is no model.
    """
    target = os.fspath(target) if not isinstance(target, bytes) else target
    wiring, runtime = read_wiring(target), Runtime(target)
    described = interpreter.describe(source)
    samples = [inputs] if inputs is not None else [sample for (sample,) in draw(described.inputs, seed)]
    if runtime.unquantized:
        samples = [Adapter(runtime, described).convert_inputs(sample) for sample in samples]
        source = write_real_form(source)
    original = read(source, interpreter, samples)
    layouts, signature = read_layouts(described.metadata), original.signature
    sample = [layouts.restore(one.name, array) for one, array in zip(signature.inputs, original.sample, strict=True)]
    feeds = runtime.make_feeds(Adapter(runtime, signature).convert_inputs(sample))
    layers = _LayerComparison(original, wiring, feeds, lambda: explain_saturation(target) != "")
    ends = zip(runtime.outputs, signature.outputs, strict=False)
    turned = {name for name, one in ends if runtime.is_turned(name) or layouts.is_turned(one.name)}
    layers.find_candidates(runtime.outputs, turned)
    layers.choose_forms()
    layers.drop_harmless()
    return list(layers.list_steps())


def find_divergence(steps: Sequence[Step]) -> Step | None:
    """The first tensor that differs, None where all agree."""
    return next((step for step in steps if not step.comparison.verdict.passed), None)


def find_suspect(steps: Sequence[Step]) -> Step | None:
    """The tensor that is off by most of what it may be, None where all are equal.

    That is more than the tolerance where the interpreter's own kernels differ by as much, and else the tolerance, of
    which the mean error is a share. Where outputs differ and no tensor does, a mistake may hide there.
    """

    def share(step: Step) -> tuple[int, float]:
        one = step.comparison
        if one.verdict is Verdict.SPREAD:
            return 1, (one.differing or one.absolute or 0.0) / one.spread
        magnitude = one.absolute / one.relative if one.absolute and one.relative else 0.0
        return 0, (one.mean_relative or 0.0) * magnitude / one.tolerance

    return max((step for step in steps if step.comparison.verdict is not Verdict.EQUAL), key=share, default=None)


class _LayerComparison:
    """The values that stand for tensors, and what they come to where each is computed from the original's numbers."""

    def __init__(
        self, original: Original, wiring: Wiring, feeds: Mapping[str, Array], may_saturate: Callable[[], bool]
    ) -> None:
        self._original, self._wiring, self._feeds = original, wiring, feeds
        self._may_saturate = functools.cache(may_saturate)
        self._entries: dict[str, Candidate] = {}
        self._known: dict[object, Comparison] = {}
        #: values that are right where no product of bytes saturates, and only there
        self._saturating: set[str] = set()

    def find_candidates(self, outputs: Sequence[str], turned: Collection[str] = ()) -> None:
        """Find what may stand for which tensor: outputs for outputs, other values for those that they are named after.

        The likeliest form of each is that in which it is closest to the original where nothing is replaced. Outputs
        have the original's axes in their order, but for those that are `turned`.
        """
        known: dict[str, Known | None] = {f"{one.value.name}": one for one in self._original.known}
        read = (value for node in self._original.model.graph for value in node.inputs)
        names = (f"{value.name}" for value in read if value is not None and value.producer() is None)
        known = {**dict.fromkeys(names), **known}
        exits = zip(outputs, (f"{value.name}" for value in self._original.model.graph.outputs), strict=False)
        ends = {
            name: one
            for name, output in exits
            if (one := known.get(output)) is not None and name in self._wiring.values
        }
        named = {name: one for name in self._wiring.values if (one := _find_named(name, known)) is not None}
        pairs = {**named, **ends}
        found = self._wiring.run(self._feeds, pairs, {})
        likely: defaultdict[Known, list[tuple[float, Candidate]]] = defaultdict(list)
        for name, one in pairs.items():
            ranked = self._rank_forms(one, found[name])
            if name in ends and name not in turned:
                ranked = [(far, form) for far, form in ranked if form.plain]
            if name not in ends and any(form.is_exceeded(found[name]) for _, form in ranked[:1]):
                continue  # what codes cannot hold cannot be replaced by them
            if ranked or name in ends:
                entry = Candidate(one, name, [form for _, form in ranked], name in ends)
                likely[one].append((ranked[0][0] if ranked else 0.0, entry))
        for entries in likely.values():
            least = min(far for far, _ in entries)
            close = [entry for far, entry in entries if entry.output or far <= _AS_CLOSE * least + _CLOSE]
            self._entries.update((entry.name, entry) for entry in close)

    def _rank_forms(self, known: Known, found: Array) -> list[tuple[float, Form]]:
        """The forms in which a value may hold a tensor, the closest first."""
        tried = list_forms(known.tensor, known.content, found, self._original.list_shapes(known))
        ranked = [(estimate_distance(known.content, form.decode(found)), form) for form in tried]
        return sorted(ranked, key=lambda entry: entry[0])

    def choose_forms(self) -> None:
        """Compare all values, until each stands in a form that its readers understand or is left out."""
        for _ in range(_ROUNDS):
            self._compare()
            if not self._revise():
                return

    def drop_harmless(self) -> None:
        """Leave out values that do not hold the tensor they are named after, and do not have to.

        Their readers are right with what is there: those that hold the same tensor, or compute others from it.
        """
        for entry in [entry for entry in self._entries.values() if entry.suspect]:
            before = [one for one in self._entries.values() if one.known is entry.known and not one.output]
            before = [one for one in before if one.name in entry.segment.begins]
            if before and next(found for one, _, found in self._compare_all(before) if one is entry).verdict.passed:
                entry.suspect = False
                for one in before:
                    del self._entries[one.name]
        for group in list(self._list_surrounded()):
            if all(entry.name in self._entries for entry in group) and len(self._list_harmless(group)) == len(group):
                for entry in group:
                    del self._entries[entry.name]
        self._compare()
        suspect = [one for one in self._entries.values() if one.suspect and not one.passed and not one.output]
        for group in [suspect, *([entry] for entry in suspect)]:
            for entry in self._list_harmless([entry for entry in group if entry.name in self._entries]):
                del self._entries[entry.name]
        self._compare()

    def _list_surrounded(self) -> Iterator[list[Candidate]]:
        """Values that are right between some that are not, with those before: all may be held on another scale."""
        inner = [entry for entry in self._entries.values() if not entry.output]
        for entry in inner:
            before = [one for one in inner if one.suspect and one.name in entry.segment.begins]
            after = any(one.suspect and entry.name in one.segment.begins for one in self._entries.values())
            if before and after and not entry.suspect:
                yield [*before, entry]

    def list_steps(self) -> Iterator[Step]:
        """The original's tensors that have a counterpart, each compared with the one that is furthest off."""
        entries: defaultdict[Known, list[Candidate]] = defaultdict(list)
        for entry in self._entries.values():
            entries[entry.known].append(entry)
        for known in self._original.known:
            compared = [(entry.comparison, entry) for entry in entries[known] if entry.comparison is not None]
            if compared:
                comparison = choose_worst([one for one, _ in compared])
                first = next(entry for one, entry in compared if one is comparison)
                places = [place for entry in _find_later(first, entries[known]) for place in entry.segment.nodes]
                if not comparison.verdict.passed:
                    places += self._find_holders(first)
                nodes = tuple(self._wiring.nodes[place] for place in dict.fromkeys(places))
                saturates = any(entry.name in self._saturating for entry in entries[known])
                yield Step(known.operator, comparison, nodes, saturates)

    def _find_holders(self, entry: Candidate) -> Iterator[int]:
        """The nodes that hold what a value is computed from in another way, which may be none that it understands."""
        operators = self._original.catalogue.find_dialect("onnx").operators
        reshaped = entry.comparison is not None and entry.comparison.absolute is None
        work, seen = list(entry.segment.begins), set[str]()
        while work:
            if (name := work.pop()) in seen:
                continue
            seen.add(name)
            begin = self._entries[name]
            if reshaped and begin.forms and not begin.forms[0].plain:  # others have passed the order of axes on
                work += begin.segment.begins
            if self._is_recoded(begin):
                yield from begin.segment.nodes
            last = begin.segment.nodes[-1]
            spec = operators.get(self._wiring.nodes[last].op_type)
            if spec is not None and _MOVES in spec.traits:
                yield last

    def _compare(self) -> None:
        for entry, segment, comparison in self._compare_all(()):
            entry.segment, entry.comparison = segment, comparison

    def _compare_all(self, freed: Collection[Candidate]) -> list[tuple[Candidate, Segment, Comparison]]:
        """What all values come to where all but some are replaced for their readers."""
        replaced = {name: entry for name, entry in self._entries.items() if entry.forms and entry not in freed}
        segments = {name: self._wiring.segment(name, replaced) for name in self._entries}

        def make_key(entry: Candidate) -> object:
            begins = frozenset((name, replaced[name].forms[0]) for name in segments[entry.name].begins)
            return entry.name, entry.forms[0] if entry.forms else None, begins

        asked = [entry for entry in self._entries.values() if make_key(entry) not in self._known]
        if asked:
            numbers = {name: entry.forms[0].encode(entry.known.content) for name, entry in replaced.items()}
            found = self._wiring.run(self._feeds, [entry.name for entry in asked], numbers)
            given = {one.name: frozenset(self._entries[n].known for n in segments[one.name].begins) for one in asked}
            for entry in asked:
                self._known[make_key(entry)] = self._judge(entry, found[entry.name], given[entry.name])
            wrong = [entry for entry in asked if not self._known[make_key(entry)].verdict.passed]
            if wrong and self._may_saturate():
                found = self._wiring.run(self._feeds, [entry.name for entry in wrong], numbers, precise=True)
                for entry in wrong:
                    precise = self._judge(entry, found[entry.name], given[entry.name])
                    if precise.verdict.passed:
                        self._known[make_key(entry)] = precise
                        self._saturating.add(entry.name)
        return [(entry, segments[name], self._known[make_key(entry)]) for name, entry in self._entries.items()]

    def _judge(self, entry: Candidate, found: Array, given: frozenset[Known]) -> Comparison:
        """Compare a value with what the interpreter's kernels make of the same numbers, each set, and their spread."""
        tensor, want = entry.known.tensor, entry.known.content
        got = entry.forms[0].decode(found) if entry.forms else found
        own = self._original.kernels
        comparison = compare(tensor, want, got, own)
        if entry.known in given:  # the same numbers held in another way, without any rounding
            return comparison if comparison.verdict is Verdict.EQUAL or not tensor.scales else reject(comparison)
        if comparison.verdict.passed:
            return comparison
        spread = 0.0
        for kernels in ORDER:
            content = self._original.recompute(entry.known, given, kernels)
            if content is None:
                continue
            other = compare(tensor, content, got, kernels)
            if other.verdict.passed:
                return other
            if kernels is Kernels.DEFAULT:
                spread = measure_distance(tensor, want, content)
                # Reference kernels are slow: they are asked where nothing else explains what is there.
                if (within := compare(tensor, want, got, own, spread)).verdict.passed:
                    return within
        return compare(tensor, want, got, own, max(spread, self._measure_rounding(entry.known, given)))

    def _measure_rounding(self, known: Known, given: frozenset[Known]) -> float:
        """Measure what it makes that the original rounds to codes between some tensors and another.

        A rewritten model may do so elsewhere or not at all: kernels with integer weights round real activations, and a
        step in the middle of several operators may be some steps at their end. More than that is not rounding.
        """
        content = self._original.recompute(known, given, Kernels.DEFAULT, real=True)
        held = [] if content is None else list_forms(known.tensor, known.content, content)
        if content is None or not held:
            return 0.0
        found = measure_distance(known.tensor, known.content, held[0].decode(content))
        return found if not known.tensor.scales or found <= _STEPS else 0.0

    def _revise(self) -> bool:
        """Suspect values that differ while their readers are right, try others in another form; whether any changed."""
        readers: defaultdict[str, list[Candidate]] = defaultdict(list)
        for entry in self._entries.values():
            for name in entry.segment.begins:
                readers[name].append(entry)

        def is_understood(entry: Candidate) -> bool:
            """Whether somebody who goes on from a value is right; another form of the same tensor says nothing."""
            return any(
                reader.passed and (reader.known is not entry.known or is_understood(reader))
                for reader in readers[entry.name]
            )

        while True:
            front = [entry for entry in self._entries.values() if self._is_front(entry)]
            right = [entry for entry in front if entry.output or is_understood(entry)]
            if not right:
                break
            for entry in right:
                entry.suspect = True
        for entry in front:
            entry.forms = entry.forms[1:]
            if not entry.forms:
                del self._entries[entry.name]
        return bool(front)

    def _is_front(self, entry: Candidate) -> bool:
        """Whether a value is the first to differ on its way, and nobody knows why yet."""
        if entry.passed or entry.suspect:
            return False
        return all(one.passed or one.suspect for one in (self._entries[name] for name in entry.segment.begins))

    def _list_harmless(self, freed: Sequence[Candidate]) -> list[Candidate]:
        """The values whose readers agree with the original though these were not replaced."""
        names, harmful = {entry.name for entry in freed}, set[str]()
        for entry, _, found in self._compare_all(freed):
            if entry in freed or not entry.passed or entry.comparison is None:
                continue
            if _RANKS.index(found.verdict) <= _RANKS.index(entry.comparison.verdict):
                continue
            work, seen = list(entry.segment.begins & names), set[str]()
            while work:
                name = work.pop()
                if name not in seen:
                    seen.add(name)
                    work += self._entries[name].segment.begins & names
            # Where numbers are only held in another way nothing is rounded, and no reader becomes less exact.
            harmful |= {name for name in seen if not found.verdict.passed or self._is_recoded(self._entries[name])}
        return [entry for entry in freed if entry.name not in harmful]

    def _is_recoded(self, entry: Candidate) -> bool:
        """Whether a value is computed from another that holds the same tensor."""
        before = (self._entries.get(name) for name in entry.segment.begins)
        return any(one is not None and one.known is entry.known for one in before)


def _find_later(first: Candidate, entries: Sequence[Candidate]) -> list[Candidate]:
    """A value, and those that hold the same tensor and are computed from it."""
    found = [first]
    for entry in entries:  # in the order in which they are computed
        if entry not in found and any(one.name in entry.segment.begins for one in found):
            found.append(entry)
    return found


def _find_named(name: str, known: Mapping[str, Known | None]) -> Known | None:
    """The tensor that a value is named after: by the same name, or one that goes on behind a slash.

    None for what is named after a constant or an input, of which nothing is known.
    """
    while name not in known:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return known[name]

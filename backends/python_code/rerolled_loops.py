"""Rounds that a source wrote out one after another, as those of a scan over time, put together again as a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from ...engine.base.startup import dataclass, field, replace
from .steps import EXTENT, PLAIN, Roll, Slot, Step, hold, is_constant

#: the least rounds of a loop, and the least steps of a round
_ROUNDS, _STEPS = 4, 2


@dataclass(slots=True, eq=False)
class _Search:
    """A search for the rounds of a loop, backwards from the step that joins their results."""

    #: the step that computes each value
    made: dict[ir.Value, Step]
    #: how many rounds there are
    count: int
    #: corresponding steps, one of each round; a round's last step is in the first row
    rows: list[list[Step]] = field(default_factory=list)
    #: the round and the row of each step
    place: dict[Step, tuple[int, int]] = field(default_factory=dict)
    #: what the second round reads of the first, and what the first reads in its place
    carried: dict[ir.Value, ir.Value] = field(default_factory=dict)
    #: literals that count rounds: their row, and their place in a step
    counts: set[tuple[int, Slot]] = field(default_factory=set)

    def take(self, values: Sequence[ir.Value | None]) -> bool:
        """Whether values, one of each round, are computed alike, from here backwards."""
        if values[0] is values[1]:
            return all(value is values[0] for value in values) and self._is_outside(values[0])
        steps = [None if value is None else self.made.get(value) for value in values]
        places = [None if step is None else self.place.get(step) for step in steps]
        if places[1] is not None and places[0] is None:
            return self._carry(values, steps, places)
        if places[0] is not None:
            return all(found == (at, places[0][1]) for at, found in enumerate(places)) and _are_alike(values, steps)
        if not _are_alike(values, steps) or len({*steps}) < self.count:
            return False
        row = [step for step in steps if step is not None]
        number = len(self.rows)
        self.rows.append(row)
        self.place |= {step: (at, number) for at, step in enumerate(row)}
        runs = [_list_run(step) for step in row]
        same = len({len(run) for run in runs}) == 1
        return same and self._count_literals(number) and all(map(self.take, zip(*runs, strict=True)))

    def _carry(
        self,
        values: Sequence[ir.Value | None],
        steps: Sequence[Step | None],
        places: Sequence[tuple[int, int] | None],
    ) -> bool:
        """Whether each value but the first is of the round before."""
        first = places[1]
        rest = all(found == (at, first[1]) for at, found in enumerate(places[1:]) if first is not None)
        if first is None or not rest or not _are_alike(values[1:], steps[1:]) or values[0] is None:
            return False
        assert values[1] is not None
        return self.carried.setdefault(values[1], values[0]) is values[0]

    def _is_outside(self, value: ir.Value | None) -> bool:
        return value is None or not (value.meta.get(EXTENT) or self.made.get(value) in self.place)

    def _count_literals(self, number: int) -> bool:
        row = self.rows[number]
        literals = [{slot: value for slot, value in step.literals.items() if slot[0] in step.operands} for step in row]
        if any(one.keys() != literals[0].keys() for one in literals):
            return False
        for slot, first in literals[0].items():
            found = [one[slot] for one in literals]
            if found == list(range(self.count)) and type(first) is int:
                self.counts.add((number, slot))
            elif any(type(one) is not type(first) or one != first for one in found):
                return False
        return True


def fold_rounds(steps: list[Step], outputs: Sequence[ir.Value]) -> list[Step]:
    """The steps with a loop in the place of rounds that are alike, and that a step joins the results of."""
    made = {value: step for step in steps for value in step.writes}
    order = {step: place for place, step in enumerate(steps)}
    gone: set[Step] = set()
    rolled: dict[Step, Step] = {}
    for step in steps:
        operands = [] if step.spec is None else step.spec.operands
        if len(step.reads) < _ROUNDS or [one.variadic for one in operands] != [True]:
            continue
        search = _Search(made, len(step.reads))
        if search.take(step.reads) and len(search.rows) >= _STEPS and search.carried and not gone & search.place.keys():
            loop = _make_loop(search, step, steps, outputs, order)
            if loop is not None:
                rolled[step] = loop
                gone |= search.place.keys()
    left = [rolled.get(step, step) for step in steps if step not in gone]
    loose = dict.fromkeys(value for step in rolled.values() for value in step.inputs if is_constant(value))
    return [*(hold(value) for value in loose if value not in made), *left]


def _make_loop(
    search: _Search, join: Step, steps: Sequence[Step], outputs: Sequence[ir.Value], order: dict[Step, int]
) -> Step | None:
    """The step that is a loop; None where what a round computes is read elsewhere."""
    ends = {before: search.rows[row][-1].writes[0] for before in search.carried for row in [_find_row(search, before)]}
    inside = {value for one in search.place for value in one.writes}
    read = {value for one in steps if one not in search.place and one is not join for value in one.inputs} | {*outputs}
    late = all(
        order[one] > order[join]
        for one in steps
        if not {*ends.values()}.isdisjoint(one.inputs) and one not in search.place and one is not join
    )
    if not (read & inside) <= {*ends.values()} or not late or any(_is_bound(one) for one in search.place):
        return None
    counter, rows = ir.Value(name="i"), ir.Value(name="rows")
    counter.meta[PLAIN] = True
    second = sorted((row[1] for row in search.rows), key=lambda step: order[step])
    template = [_count(step, search, counter) for step in second]
    carried = [
        (begin, before, search.rows[_find_row(search, before)][1].writes[0]) for before, begin in search.carried.items()
    ]
    finals = [ends[before] for before in search.carried]
    reads = dict.fromkeys(value for one in template for value in one.reads if value is not counter)
    own = inside | {*search.carried}
    whole = [value for value in [*(begin for begin, _, _ in carried), *reads] if value is not None and value not in own]
    numbers = tuple(sorted(search.counts))
    said = tuple((one.key, tuple(sorted(one.literals.items(), key=repr))) for one in template)
    wires = tuple(_list_wires(one, template, whole, [before for _, before, _ in carried]) for one in template)
    key = ("rounds", search.count, join.key, numbers, said, wires)
    roll = Roll(search.count, template, counter, carried, finals, search.rows[0][1].writes[0], rows, join)
    return Step(
        key,
        [*dict.fromkeys(whole)],
        [*join.writes, *(value for value in finals if value in read)],
        roll=roll,
        scope=join.scope,
        classes=join.classes,
    )


def _find_row(search: _Search, value: ir.Value) -> int:
    return search.place[search.made[value]][1]


def _is_bound(step: Step) -> bool:
    """Whether a step holds what a loop has no place for."""
    return step.layer or bool(step.graphs) or len(step.writes) > 1


def _count(step: Step, search: _Search, counter: ir.Value) -> Step:
    """A step with the number of the round in the place of literals that are it."""
    number = search.place[step][1]
    slots = [slot for row, slot in search.counts if row == number]
    operands = {name: list(values) for name, values in step.operands.items()}
    for name, at in slots:
        operands[name][at] = counter
    literals = {slot: value for slot, value in step.literals.items() if slot not in slots}
    made = replace(step, operands=operands, literals=literals, own={})
    return replace(made, reads=_list_run(made))


def _list_wires(
    step: Step, template: Sequence[Step], whole: Sequence[ir.Value], before: Sequence[ir.Value]
) -> tuple[tuple[str, int], ...]:
    """What a step reads: of which step of the round, of which value from outside, of which of the round before."""

    def find(value: ir.Value | None) -> Iterator[tuple[str, int]]:
        yield from (("made", at) for at, one in enumerate(template) if value in one.writes)
        yield from (("before", at) for at, one in enumerate(before) if value is one)
        yield from (("outside", at) for at, one in enumerate(dict.fromkeys(whole)) if value is one)

    return tuple(next(find(value), ("none", 0)) for value in step.reads)


def _list_run(step: Step) -> list[ir.Value | None]:
    """The operands of a step that are no literals, in their order; constants of its own as well."""
    places = ((name, at, value) for name, values in step.operands.items() for at, value in enumerate(values))
    return [value for name, at, value in places if (name, at) not in step.literals]


def _are_alike(values: Sequence[ir.Value | None], steps: Sequence[Step | None]) -> bool:
    """Whether values are the same result of steps that are written alike, but for where their operands come from."""
    first, value = steps[0], values[0]
    if first is None or first.spec is None or value is None or len(first.writes) != 1:
        return False
    return all(step is not None and _describe_operator(step) == _describe_operator(first) for step in steps)


def _describe_operator(step: Step) -> tuple[object, ...]:
    return step.key[0], step.key[1], *step.key[3:5]

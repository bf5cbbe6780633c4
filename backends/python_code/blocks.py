"""Repeated parts of a program: runs of steps that are alike, each of which becomes a class of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ...engine.base.startup import dataclass
from .arguments import name_parameters
from .class_sizes import find_sizes, list_inputs
from .steps import Block, Slot, Step, count_reads, share_prefix

#: lines that a class takes beside what it computes, and that a class must spare to be one
_CLASS, _LEAST = 6.0, 3.0
#: lines from which on a module of the source is a class in any case, and what that may cost
_LARGE, _LEAST_OF_LARGE = 15.0, -6.0
#: the least lines that a class computes, but for what sums are off
_BODY = 2.5 - 1e-6
#: lines of a layer (made and called), of any other step, and of a call of a block
_LAYER, _OTHER, _CALL = 1.7, 0.6, 1.9
#: a call of a block in a chain of layers
_CHAINED = 1.0
#: the most values that a block takes, and that it yields
_INPUTS, _OUTPUTS = 10, 3
#: lines that a value is worth: that each instance reads and another does not, that all read, that each yields
_READ, _SHARED, _YIELDED = 2.5, 1.2, 4.0
#: a class that begins with a layer: of a cycle that turn reads best
_BEGUN = 0.5
#: arguments of a class that cost nothing, and the least instances of which one may be left out for its arguments
_ARGUMENTS, _MANY = 3, 4
#: how much a run is worth that is a module of the source, and one that cuts through modules
_MODULE, _CUT = 1.2, 0.6
#: longer runs are not searched for repeats within them
_TURNS = 40
#: programs of more steps are searched for shorter repeats alone
_STEPS, _LONGEST = 3000, 300


@dataclass(frozen=True, slots=True)
class _Candidate:
    length: int
    starts: tuple[int, ...]
    results: tuple[tuple[int, int], ...]
    saving: float


def find_blocks(steps: list[Step], outputs: Sequence[ir.Value]) -> tuple[list[Step], list[Block]]:
    """Put calls of blocks in the place of repeated steps, as long as that spares lines; inner blocks come first."""
    blocks: list[Block] = []
    while (best := _find_best(steps, outputs)) is not None:
        instances = [steps[start : start + best.length] for start in best.starts]
        block = Block(instances, list(best.results))
        name_parameters(block)
        blocks.append(block)
        replaced: list[Step] = []
        position = 0
        for place, start in enumerate(best.starts):
            replaced += steps[position:start]
            replaced.append(_make_call(block, place))
            position = start + best.length
        steps = [*replaced, *steps[position:]]
    return steps, blocks


def _make_call(block: Block, place: int) -> Step:
    inner = block.instances[place]
    literals: dict[Slot, Any] = {
        (name, 0): inner[slots[0][0]].literals[slots[0][1]] for name, slots in block.parameters.items()
    }
    writes = [inner[step].writes[result] for step, result in block.results]
    reads: list[ir.Value | None] = [*list_inputs(inner)]
    classes = {path: kind for step in inner for path, kind in step.classes.items()}
    step = Step(("block", id(block)), reads, writes, literals, block=block, inner=inner, classes=classes)
    step.scope = share_scope(inner)
    return step


# ---- repeats


def _estimate_cost(step: Step, reads: Mapping[ir.Value, int]) -> float:
    if step.block is not None:
        return _CHAINED if all(reads.get(one, 0) == 1 for one in (*step.inputs, *step.writes)) else _CALL
    if step.roll is not None:
        return _OTHER * len(step.roll.steps) + _LAYER
    return _LAYER if step.layer or step.own else _OTHER if step.constant is None else 0.0


def _find_best(steps: list[Step], outputs: Sequence[ir.Value]) -> _Candidate | None:
    """The repeat that spares the most lines.

    Windows of a length get numbers so that equal ones are alike in their steps and in what each reads of the others;
    the numbers of longer windows follow from those of shorter ones.
    """
    wires = _trace_wires(steps)
    codes: dict[Any, int] = {}
    reads = count_reads(steps, outputs)
    costs = [_estimate_cost(step, reads) for step in steps]
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    last = _find_last_uses(steps, outputs)
    number = dict.fromkeys(range(len(steps)), -1)
    longest = len(steps) // 2 if len(steps) <= _STEPS else _LONGEST
    best: _Candidate | None = None
    for length in range(1, longest + 1):
        groups: dict[int, list[int]] = {}
        for start, before in number.items():
            if start + length <= len(steps):
                code = before, _encode_step(steps[start + length - 1], wires[start + length - 1], length - 1)
                groups.setdefault(codes.setdefault(code, len(codes)), []).append(start)
        groups = {code: starts for code, starts in groups.items() if len(starts) > 1}
        if not groups:
            break
        number = {start: code for code, starts in groups.items() for start in starts}
        for starts in groups.values():
            body = sums[starts[0] + length] - sums[starts[0]]
            if body < _BODY or (best is not None and (len(starts) - 1) * body < best.saving):
                continue
            found = _judge(steps, last, starts, length, body, -math.inf if best is None else best.saving)
            if found is not None and (best is None or found.saving > best.saving + 1e-9):
                best = found
    return best


#: of each operand: how many steps before its value was computed and as which result, how many before it was last read
_Wire = tuple[tuple[int, int, int, int], ...]


def _trace_wires(steps: Sequence[Step]) -> list[_Wire]:
    computed: dict[ir.Value, tuple[int, int]] = {}
    read: dict[ir.Value, tuple[int, int]] = {}
    found: list[_Wire] = []
    far = len(steps) + 1
    for position, step in enumerate(steps):
        wires = []
        for place, value in enumerate(step.reads):
            if value is None:
                wires.append((-1, -1, -1, -1))
                continue
            made, result = computed.get(value, (position - far, 0))
            was, slot = read.get(value, (position - far, 0))
            wires.append((position - made, result, position - was, slot))
            read[value] = position, place
        for result, value in enumerate(step.writes):
            computed[value] = position, result
        found.append(tuple(wires))
    return found


def _encode_step(step: Step, wires: _Wire, offset: int) -> tuple[Any, ...]:
    """What a step is within a window in which it has `offset` steps before it."""
    seen = []
    for made, result, was, slot in wires:
        if 0 <= made <= offset:
            seen.append(("inner", made, result))
        elif 0 <= was <= offset:
            seen.append(("again", was, slot))
        else:
            seen.append(("none" if made < 0 else "outer", 0, 0))
    return step.key, tuple(seen)


def _find_last_uses(steps: Sequence[Step], outputs: Sequence[ir.Value]) -> Mapping[ir.Value, int]:
    """The last step that reads each value; beyond all steps for what is yielded."""
    found = {value: position for position, step in enumerate(steps) for value in step.inputs}
    return found | {value: len(steps) for value in outputs}


def _judge(
    steps: Sequence[Step], last: Mapping[ir.Value, int], starts: Sequence[int], length: int, body: float, least: float
) -> _Candidate | None:
    """What the windows at some starts would spare, overlapping ones left out; None where that is too little."""
    first = steps[starts[0] : starts[0] + length]
    if _has_repeats(first):
        return None  # a chain of equal blocks is no block, and what repeats within one is found first
    chosen: list[int] = []
    for start in starts:
        if (not chosen or start >= chosen[-1] + length) and not _is_cutting_chain(steps, last, start, start + length):
            chosen.append(start)
    if not any(step.scope for step in first):
        return _weigh(steps, last, chosen, length, body, least, 1.0)
    modules = [start for start in chosen if _is_module(steps, start, length)]
    whole = _weigh(steps, last, modules, length, body, least, _MODULE)
    if whole is not None or len(modules) == len(chosen):
        return whole
    return _weigh(steps, last, chosen, length, body, least, _CUT)


def _has_repeats(steps: Sequence[Step]) -> bool:
    """Whether steps are a chain of equal blocks, or a run of a block and others stands twice in a row among them."""
    calls = [step.block is not None for step in steps]
    if len(steps) > 1 and all(calls) and len({step.key for step in steps}) == 1:
        return True
    if len(steps) > _TURNS or not any(calls):
        return False
    keys = [step.key for step in steps]
    return any(
        keys[start : start + period] == keys[start + period : start + 2 * period] and any(calls[start : start + period])
        for period in range(2, len(keys) // 2 + 1)
        for start in range(len(keys) - 2 * period + 1)
    )


def _is_cutting_chain(steps: Sequence[Step], last: Mapping[ir.Value, int], start: int, end: int) -> bool:
    """Whether a chain of equal blocks goes on where some steps begin or end."""

    def is_going_on(place: int) -> bool:
        before, step = steps[place - 1], steps[place]
        same = before.block is not None and before.block is step.block
        return same and before.writes[0] in step.reads and last[before.writes[0]] == place

    return end - start > 1 and any(is_going_on(place) for place in (start, end) if 0 < place < len(steps))


def _is_module(steps: Sequence[Step], start: int, length: int) -> bool:
    """Whether a run is all that the source has in a module, as far as its neighbours tell."""
    scope = share_scope(steps[start : start + length])
    before = next((steps[place].scope for place in range(start - 1, -1, -1) if steps[place].scope), ())
    after = next((steps[place].scope for place in range(start + length, len(steps)) if steps[place].scope), ())
    return bool(scope) and before[: len(scope)] != scope and after[: len(scope)] != scope


def share_scope(steps: Sequence[Step]) -> tuple[str, ...]:
    """The innermost module that steps are in together, of those of which the source says one."""
    return share_prefix([step.scope for step in steps if step.scope])


def _weigh(
    steps: Sequence[Step],
    last: Mapping[ir.Value, int],
    chosen: Sequence[int],
    length: int,
    body: float,
    least: float,
    factor: float,
) -> _Candidate | None:
    enough = _LEAST_OF_LARGE if factor == _MODULE and body >= _LARGE else _LEAST
    most = (len(chosen) - 1) * body - _CLASS
    if len(chosen) < 2 or most < enough or (most + _BEGUN) * factor <= least:
        return None
    results = _list_results(steps, last, chosen, length)  # first, as it is soon known where there are too many
    if not 1 <= len(results) <= _OUTPUTS:
        return None
    read = [list_inputs(steps[start : start + length]) for start in chosen]
    if not 1 <= len(read[0]) <= _INPUTS or any(len(one) != len(read[0]) for one in read):
        return None
    first, *others = (
        find_sizes(steps[start : start + length], inputs) for start, inputs in zip(chosen, read, strict=True)
    )
    if first is None or any(one != first for one in others):
        return None
    shared = sum(len(set(values)) == 1 for values in zip(*read, strict=True))
    own = max(len(read[0]) - shared - 1, 0)
    runs = sum(before + length != start for before, start in zip([-length, *chosen], chosen, strict=False))
    calls = _CALL * runs + 0.9 * (len(chosen) - runs) if len(read[0]) + len(results) > 2 else _CHAINED * len(chosen)
    more = _SHARED * shared + _READ * own + _YIELDED * (len(results) - 1)
    saving = most - calls - more * (1 + 0.2 * len(chosen))
    if is_layer(steps[chosen[0]]):
        saving += _BEGUN
    if saving < enough or saving * factor <= least:
        return None
    kinds = _list_differences(steps, chosen, length)
    saving -= _compute_price(len(set(kinds)), len(chosen))
    if len(chosen) >= _MANY and (fewer := _leave_out(kinds, len(chosen))) is not None:
        rest = [start for place, start in enumerate(chosen) if place != fewer]
        without = _weigh(steps, last, rest, length, body, max(saving * factor, least), factor)
        if without is not None:
            return without
    saving *= factor
    return None if saving < enough else _Candidate(length, tuple(chosen), tuple(sorted(results)), saving)


def _list_results(
    steps: Sequence[Step], last: Mapping[ir.Value, int], chosen: Sequence[int], length: int
) -> set[tuple[int, int]]:
    """What is read behind the run at any start: a step of it and the result; not all once they are too many."""
    found: set[tuple[int, int]] = set()
    for start in chosen:
        for place in range(length):
            for result, value in enumerate(steps[start + place].writes):
                if last.get(value, -1) >= start + length:
                    found.add((place, result))
            if len(found) > _OUTPUTS:
                return found
    return found


def _compute_price(arguments: int, instances: int) -> float:
    """Lines that arguments are worth; those of which not all fit on a line take one of each call."""
    return max(0, arguments - _ARGUMENTS) * (1 + 0.1 * instances) + max(0, arguments - 2 * _ARGUMENTS) * instances


def _list_differences(steps: Sequence[Step], chosen: Sequence[int], length: int) -> list[tuple[Any, ...]]:
    """The literals that differ between instances: what each has."""
    found = []
    for place in range(length):
        for slot in steps[chosen[0] + place].literals:
            vector = tuple(steps[start + place].literals[slot] for start in chosen)
            if any(one != vector[0] for one in vector):
                found.append(vector)
    return found


def _leave_out(kinds: Sequence[tuple[Any, ...]], count: int) -> int | None:
    """The instance for which alone several arguments are needed, if there is one."""
    alone = [0] * count
    for vector in set(kinds):
        odd = [place for place, one in enumerate(vector) if vector.count(one) == 1]
        if len(odd) == 1 and len(set(vector)) == 2:
            alone[odd[0]] += 1
    return alone.index(max(alone)) if max(alone) > 1 else None


def is_layer(step: Step) -> bool:
    """Whether a step is a layer with weights or a block of such."""
    return step.layer or step.block is not None

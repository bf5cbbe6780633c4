"""Repeated parts of a program: runs of steps that are alike, each of which becomes a class of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ...engine.base.startup import dataclass
from .steps import Block, Slot, Step

#: lines that a class takes beside what it computes, and that a class must spare to be one
_CLASS, _LEAST = 6.0, 4.0
#: lines of a layer (made and called), of any other step, and of a call of a block
_LAYER, _OTHER, _CALL = 1.7, 0.6, 1.9
#: the most values that a block takes, and that it yields
_INPUTS, _OUTPUTS = 6, 3
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
        _name_parameters(block)
        blocks.append(block)
        replaced: list[Step] = []
        position = 0
        for place, start in enumerate(best.starts):
            replaced += steps[position:start]
            replaced.append(_call(block, place))
            position = start + best.length
        steps = [*replaced, *steps[position:]]
    return steps, blocks


def list_inputs(steps: Sequence[Step]) -> list[ir.Value]:
    """The values that steps read and do not compute, in the order in which they are read first."""
    own = {value for step in steps for value in step.writes}
    return list(dict.fromkeys(value for step in steps for value in step.inputs if value not in own))


def _call(block: Block, place: int) -> Step:
    inner = block.instances[place]
    literals: dict[Slot, Any] = {
        (name, 0): inner[slots[0][0]].literals[slots[0][1]] for name, slots in block.parameters.items()
    }
    writes = [inner[step].writes[result] for step, result in block.results]
    reads: list[ir.Value | None] = [*list_inputs(inner)]
    return Step(("block", id(block)), reads, writes, literals, block=block, inner=inner)


def _name_parameters(block: Block) -> None:
    """Find the literals that differ between instances; those that always agree are one."""
    groups: dict[tuple[Any, ...], list[tuple[int, Slot]]] = {}
    for place, step in enumerate(block.steps):
        for slot in step.literals:
            if not block.fixed(place, slot):
                vector = tuple((type(one[place].literals[slot]), one[place].literals[slot]) for one in block.instances)
                groups.setdefault(vector, []).append((place, slot))
    for slots in groups.values():
        base = _base_name(block.steps[slots[0][0]], slots[0][1])
        name, count = base, 2
        while name in block.parameters:
            name, count = f"{base}{count}", count + 1
        block.parameters[name] = slots


def _base_name(step: Step, slot: Slot) -> str:
    return slot[0].rstrip("0123456789") or "size"


# ---- repeats


def _cost(step: Step) -> float:
    if step.block is not None:
        return _CALL
    return _LAYER if step.layer or step.own else _OTHER if step.constant is None else 0.0


def _find_best(steps: list[Step], outputs: Sequence[ir.Value]) -> _Candidate | None:
    """The repeat that spares the most lines.

    Windows of a length get numbers so that equal ones are alike in their steps and in what each reads of the others;
    the numbers of longer windows follow from those of shorter ones.
    """
    wires = _wire(steps)
    codes: dict[Any, int] = {}
    costs = [_cost(step) for step in steps]
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    last = _last_uses(steps, outputs)
    number = dict.fromkeys(range(len(steps)), -1)
    longest = len(steps) // 2 if len(steps) <= _STEPS else _LONGEST
    best: _Candidate | None = None
    for length in range(1, longest + 1):
        groups: dict[int, list[int]] = {}
        for start, before in number.items():
            if start + length <= len(steps):
                code = before, _code(steps[start + length - 1], wires[start + length - 1], length - 1)
                groups.setdefault(codes.setdefault(code, len(codes)), []).append(start)
        groups = {code: starts for code, starts in groups.items() if len(starts) > 1}
        if not groups:
            break
        number = {start: code for code, starts in groups.items() for start in starts}
        for starts in groups.values():
            body = sums[starts[0] + length] - sums[starts[0]]
            if body < 2.5 or (best is not None and (len(starts) - 1) * body < best.saving):
                continue
            found = _judge(steps, last, starts, length, body)
            if found is not None and (best is None or found.saving > best.saving + 1e-9):
                best = found
    return best


#: of each operand: how many steps before its value was computed and as which result, how many before it was last read
_Wire = tuple[tuple[int, int, int, int], ...]


def _wire(steps: Sequence[Step]) -> list[_Wire]:
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


def _code(step: Step, wires: _Wire, offset: int) -> tuple[Any, ...]:
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


def _last_uses(steps: Sequence[Step], outputs: Sequence[ir.Value]) -> Mapping[ir.Value, int]:
    """The last step that reads each value; beyond all steps for what is yielded."""
    found = {value: position for position, step in enumerate(steps) for value in step.inputs}
    return found | {value: len(steps) for value in outputs}


def _judge(
    steps: Sequence[Step], last: Mapping[ir.Value, int], starts: Sequence[int], length: int, body: float
) -> _Candidate | None:
    """What the windows at some starts would spare, those left out that overlap others."""
    chosen: list[int] = []
    for start in starts:
        if not chosen or start >= chosen[-1] + length:
            chosen.append(start)
    if len(chosen) < 2 or (len(chosen) - 1) * body - _CLASS < _LEAST:
        return None
    taken = len(list_inputs(steps[chosen[0] : chosen[0] + length]))
    if not 1 <= taken <= _INPUTS:
        return None
    results = sorted(
        {
            (place, result)
            for start in chosen
            for place, step in enumerate(steps[start : start + length])
            for result, value in enumerate(step.writes)
            if last.get(value, -1) >= start + length
        }
    )
    if not 1 <= len(results) <= _OUTPUTS:
        return None
    runs = sum(before + length != start for before, start in zip([-length, *chosen], chosen, strict=False))
    calls = _CALL * runs + 0.9 * (len(chosen) - runs)
    more = 1.2 * (taken - 1) + 1.5 * (len(results) - 1)
    saving = (len(chosen) - 1) * body - _CLASS - calls - more * (1 + 0.2 * len(chosen))
    if is_layer(steps[chosen[0]]):
        saving += 0.5  # of a cycle the turn that begins with a layer reads best
    if saving < _LEAST:
        return None
    return _Candidate(length, tuple(chosen), tuple(results), saving)


def is_layer(step: Step) -> bool:
    """Whether a step is a layer with weights or a block of such."""
    return step.layer or step.block is not None

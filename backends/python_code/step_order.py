"""The steps of a graph in the order in which they are written, and the constants that several read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from ...engine.dialects.operators import Dialect
from .steps import Step, count_reads, describe_kind, describe_step, hold, is_constant, is_truth, share_prefix

#: constants of as many bytes are not shared by the layers that read them: each has its own
_OWN = 64
#: readers of a value that is computed as early as it can be
_MANY = 3


def list_steps(graph: ir.Graph, dialect: Dialect) -> list[Step]:
    """The steps of a graph in order, before them the constants that several read."""
    steps = _hoist([describe_step(node, dialect) for node in graph], graph.outputs)
    _lift_shared(steps)
    holders = Counter(value for step in steps for value in step.held.values())
    for step in steps:
        step.tied = frozenset(name for name, value in step.held.items() if holders[value] > 1)
    readers: dict[ir.Value, list[Step]] = {}
    for step in steps:
        for value in step.own.values():
            readers.setdefault(value, []).append(step)
    shared = {value for value, who in readers.items() if len(who) > 1 and _count_bytes(value) > _OWN}
    shared |= {value for value in graph.outputs if is_constant(value) and not is_truth(value)}
    made: dict[ir.Value, Step] = {}
    for step in steps:
        for slot, value in list(step.own.items()):
            if value in shared:
                made.setdefault(value, hold(value))
                del step.own[slot]
                step.reads.append(value)
        for (operand, place), value in step.own.items():
            step.literals[f"{operand}_shape", place] = tuple(_read_extents(value))
        if step.own or shared:
            step.key = (*step.key, tuple(sorted((slot, describe_kind(value)) for slot, value in step.own.items())))
    held = [hold(value) for value in graph.outputs if value in shared and value not in made]
    return [*made.values(), *steps, *held]


def _hoist(steps: list[Step], outputs: Sequence[ir.Value]) -> list[Step]:
    """The steps in an order in which what many read, and no layer computes, stands as early as it can.

    A mask that all layers share is then not in the midst of the first of them.
    """
    reads = count_reads(steps, outputs)
    common = _find_common(steps, reads)
    # A step that moves has the place of what it reads last, and its own behind it.
    places: dict[Step, tuple[int, ...]] = {}
    made: dict[ir.Value, Step] = {}
    for place, step in enumerate(steps):
        many = any(reads.get(value, 0) >= _MANY for value in step.writes) or step in common
        places[step] = (place,)
        if many and place and not _is_running(step) and not step.graphs:
            step.scope = ()  # it serves several modules
            before = [places[made[value]] for value in step.inputs if value in made]
            places[step] = (*max(before, default=(-1,)), place)
        made |= dict.fromkeys(step.writes, step)
    return sorted(steps, key=lambda step: places[step])


def _list_readers(steps: Sequence[Step]) -> dict[ir.Value, list[Step]]:
    """The steps that read each value that a run yields."""
    readers: dict[ir.Value, list[Step]] = {}
    for step in steps:
        for value in step.inputs:
            readers.setdefault(value, []).append(step)
    return readers


def _find_common(steps: Sequence[Step], reads: Mapping[ir.Value, int]) -> set[Step]:
    """The steps whose results are shared, to be computed once before all layers, and those that only these read.

    A step is shared if it depends on no layer and is read by many steps, or outside of its own module: the mask of all
    layers is, and a table of relative positions that only the mask reads goes with it.
    """
    readers = _list_readers(steps)
    behind: set[ir.Value] = set()
    found, before = set(), []
    for step in steps:
        if _is_running(step) or any(value in behind for value in step.inputs):
            behind |= {*step.writes}
            continue
        before.append(step)
        scopes = [one.scope for value in step.writes for one in readers.get(value, ())]
        many = any(reads.get(value, 0) >= _MANY for value in step.writes)
        if many or (len(scopes) > 1 and any(one[: len(step.scope)] != step.scope for one in scopes)):
            found.add(step)
    for step in reversed(before):
        who = [one for value in step.writes for one in readers.get(value, ())]
        if who and all(one in found for one in who):
            found.add(step)
    return found


def _lift_shared(steps: Sequence[Step]) -> None:
    """Move steps out to the module around theirs where their own module neither feeds them nor is their only reader.

    In a dense block, results are joined for one layer and all behind it: the join belongs to the block. Layers stay.
    """
    made = {value: step for step in steps for value in step.writes}
    readers = _list_readers(steps)
    for step in steps:
        who = [one.scope for value in step.writes for one in readers.get(value, ()) if one.scope]
        around = share_prefix([step.scope, *who])
        before = [share_prefix([step.scope, made[value].scope]) for value in step.inputs if value in made]
        if len(who) > 1 and not step.layer and not step.graphs and all(len(one) <= len(around) for one in before):
            step.scope = around


def _is_running(step: Step) -> bool:
    """Whether a step is a layer that computes with more than constants, as one that looks up known rows does not."""
    return step.layer and any(True for _ in step.inputs)


def _count_bytes(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.nbytes


def _read_extents(value: ir.Value) -> Sequence[int]:
    assert value.const_value is not None
    return list(value.const_value.shape.numpy())

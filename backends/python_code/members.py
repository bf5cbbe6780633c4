"""What a class holds: layers, chains of layers, blocks and tensors, each with a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir

from ...engine.base.constants import CALLED, TRAINED
from ...engine.base.startup import dataclass, field
from ...engine.dialects.operators import Dialect
from .blocks import share_scope
from .class_sizes import Size
from .identifiers import Names, find_own_name, make_identifier, make_snake
from .small_constants import is_written_in_place
from .step_order import list_steps
from .steps import Block, Slot, Step, count_reads, share_prefix
from .templates import list_arguments, name_call

#: what a layer's own tensor is called, whatever the layer is
_WEIGHT = "weight"
#: the least steps of a chain that is one layer
_CHAIN = 3


@dataclass(slots=True, eq=False)
class Member:
    """One thing that a class holds: a step's layer or tensor, or several steps as a chain or a list.

    `places` are the steps that it stands for; `slot` is the operand, where it is a tensor. A "list" is looped over, of
    "numbered" blocks each is called by its number.
    """

    name: str
    places: list[int]
    kind: str = "layer"  # "layer", "chain", "list", "numbered", "tensor"
    slot: Slot | None = None


@dataclass(slots=True, eq=False)
class Body:
    """The steps of a class or of a block of statements, what comes in and goes out, and what it holds.

    `inner` are blocks of statements, by the step that they belong to and its option, `sizes` the extents that are read
    from what comes in.
    """

    steps: list[Step]
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    block: Block | None = None
    members: list[Member] = field(default_factory=list)
    of_step: dict[int, Member] = field(default_factory=dict)
    tensors: dict[tuple[int, Slot], Member] = field(default_factory=dict)
    inner: dict[tuple[int, str], Body] = field(default_factory=dict)
    sizes: list[Size] = field(default_factory=list)

    @property
    def is_chain(self) -> bool:
        """Whether it is a block that is one chain of layers and nothing else."""
        whole = len(self.members) == 1 and self.members[0].kind == "chain" and self.block is not None
        return whole and len(self.members[0].places) == len(self.steps)

    def read_tensor(self, member: Member) -> ir.Value:
        """The constant that a member is."""
        assert member.slot is not None
        return self.steps[member.places[0]].read_tensor(member.slot)


def is_read_as_number(body: Body, step: Step) -> bool:
    """Whether what a step yields is only read where numbers of Python may stand."""
    result = step.writes[0]
    users = [one for one in body.steps if result in one.reads]
    slots = [(one, name) for one in users for name, values in one.operands.items() if result in values]
    numbers = [one.spec is not None and name in one.spec.facts.python.numbers for one, name in slots]
    return result not in body.outputs and not any(one.graphs for one in users) and all(numbers)


def plan_body(
    steps: list[Step],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    block: Block | None,
    names: Names,
    dialect: Dialect,
    block_inputs: Mapping[Block, Sequence[str]] = MappingProxyType({}),
) -> Body:
    """Decide what a class holds and what that is called; `block_inputs` are what classes call what they are given."""
    body = Body(steps, list(inputs), list(outputs), block)
    _widen(steps)
    reads = count_reads(steps, outputs)
    chained = _find_chained(steps, reads, outputs, block)
    wishes = _list_preferred_names(body, chained, dialect, block_inputs)
    often = Counter(wish for wish, _ in wishes)
    for wish, member in wishes:
        member.name = names.give(wish) if often[wish] == 1 or wish[-1].isdigit() else names.number_name(wish)
        body.members.append(member)
        for place in member.places:
            if member.slot is None:
                body.of_step[place] = member
            else:
                body.tensors[place, member.slot] = member
    for place, step in enumerate(steps):
        for option, graph in step.graphs.items():
            own = list_steps(graph, dialect)
            body.inner[place, option] = plan_body(own, graph.inputs, graph.outputs, None, names, dialect)
    return body


def _find_chained(
    steps: Sequence[Step], reads: Mapping[ir.Value, int], outputs: Sequence[ir.Value], block: Block | None
) -> dict[int, tuple[str, list[int]]]:
    """The steps that one member holds with others: its kind, or the name that they have by number, and their places."""
    found: dict[int, tuple[str, list[int]]] = {}
    for kind, places in (*_find_chains(steps, reads, outputs, block is not None), *_find_loops(steps, reads, outputs)):
        if not any(place in found for place in places):
            found |= dict.fromkeys(places, (kind, places))
    for name, places in _find_numbered(steps, found, block):
        found |= dict.fromkeys(places, (name, places))
    return found


def _list_preferred_names(
    body: Body,
    chained: Mapping[int, tuple[str, list[int]]],
    dialect: Dialect,
    block_inputs: Mapping[Block, Sequence[str]],
) -> list[tuple[str, Member]]:
    """What a class is to hold, in the order of its steps, each with the name that it would best have."""
    steps, block = body.steps, body.block
    python = dialect.facts.python if block is None else None  # instances of a block have numbers of their own
    wishes: list[tuple[str, Member]] = []
    for place, step in enumerate(steps):
        if place in chained:
            kind, places = chained[place]
            if places[0] == place and kind in ("chain", "list"):
                wishes.append((_name_chain(steps, places, kind), Member("", places, kind)))
            elif places[0] == place:
                wishes.append((kind, Member("", places, "numbered")))
        elif step.layer or step.block is not None:
            wishes.append((_name_everywhere(place, step, block), Member("", [place])))
        for slot, value in step.own.items():
            if is_written_in_place(value, python):
                continue
            stored = {} if step.spec is None else step.spec.facts.python.stored
            wishes.append((_name_tensor(value, stored.get(slot[0], slot[0])), Member("", [place], "tensor", slot)))
        if step.constant is not None and not is_written_in_place(step.constant, python):
            called = _name_operand(step.constant, steps, block_inputs)
            wishes.append((_name_tensor(step.constant, called), Member("", [place], "tensor", ("", -1))))
    return wishes


def _widen(steps: Sequence[Step]) -> None:
    """Let a step that is all that its module holds stand for the module, and so on outwards."""
    count = Counter(step.scope[:length] for step in steps for length in range(len(step.scope) + 1))
    least = len(share_scope(steps)) + 1
    for step in steps:
        length = len(step.scope)
        while length > least and count[step.scope[: length - 1]] == 1:
            length -= 1
        step.scope = step.scope[:length]


def has_module(step: Step) -> bool:
    """Whether a step can be a layer of a chain: one value in, one out, and nothing else that is computed."""
    if len(step.reads) != 1 or step.reads[0] is None or len(step.writes) != 1 or step.own:
        return False
    if step.block is not None:
        return True
    python = None if step.spec is None else step.spec.facts.python
    if python is None or python.module is None or python.call is not None:
        return False
    if not step.layer and python.held:
        return False
    known = {*list_arguments(python.module), *python.held}
    said = set() if step.node is None else set(step.node.attributes)
    return said <= known and (step.layer or not step.literals)


def _find_chains(
    steps: Sequence[Step], reads: Mapping[ir.Value, int], outputs: Sequence[ir.Value], whole: bool
) -> list[tuple[str, list[int]]]:
    """Runs of layers each of which reads what the one before yields, and nobody else does.

    A layer whose weights have a name of its own, as `conv1.weight`, keeps it, and stands alone. Where the steps are a
    `whole` class, two layers are a run.
    """
    fits = [has_module(step) and not (step.layer and find_own_name(step)) for step in steps]
    made = {step.writes[0]: place for place, step in enumerate(steps) if fits[place]}
    follows: dict[int, int] = {}
    for place, step in enumerate(steps):
        value = step.reads[0] if fits[place] else None
        alone = value in made and reads[value] == 1 and value not in outputs
        if alone and value is not None and not _is_apart(steps[made[value]], step):
            follows[made[value]] = place
    found = []
    for place in sorted(set(made.values()) - set(follows.values())):
        chain = [place]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        same = len(chain) > 1 and len({id(steps[one].block) for one in chain} - {id(None)}) == 1
        layers = sum(steps[one].layer or steps[one].block is not None for one in chain)
        numbered = layers > 1 and len({_find_group(steps[one]) for one in chain} - {()}) == 1
        if (
            (len(chain) >= _CHAIN and layers > 1)
            or (whole and len(chain) == len(steps) and len(chain) > 1)
            or numbered
            or (same and all(steps[one].block is not None for one in chain))
        ):
            found.append(("chain", chain))
    return found


def _is_apart(before: Step, step: Step) -> bool:
    """Whether a block and what is before or behind it are numbered in different modules."""
    if before.block is None and step.block is None:
        return False
    one, other = _find_group(before), _find_group(step)
    return one[: len(other)] != other[: len(one)] or bool(one) != bool(other)


def _find_loops(
    steps: Sequence[Step], reads: Mapping[ir.Value, int], outputs: Sequence[ir.Value]
) -> list[tuple[str, list[int]]]:
    """Runs of calls of one block, each with the result of the one before in one place and the same beside it."""
    found: list[tuple[str, list[int]]] = []
    run: list[int] = []
    for place, step in enumerate(steps):
        if step.block is None or len(step.writes) != 1:
            continue
        if run and _can_continue(steps[run[-1]], step, reads, outputs, run, steps):
            run.append(place)
            continue
        if len(run) > 1:
            found.append(("list", run))
        run = [place]
    if len(run) > 1:
        found.append(("list", run))
    return found


def _find_numbered(
    steps: Sequence[Step], chained: Mapping[int, object], block: Block | None
) -> list[tuple[str, list[int]]]:
    """Calls of one block by modules that the source numbers from 0 on, `layers_0` and so on: their name, and where."""
    found: dict[tuple[str, Block], list[int]] = {}
    for place, step in enumerate(steps):
        name, _, number = (
            _name_everywhere(place, step, block).rpartition("_") if step.block is not None else ("", "", "")
        )
        if step.block is not None and place not in chained and name and number.isdigit():
            places = found.setdefault((name, step.block), [])
            if len(places) == int(number):
                places.append(place)
    return [(name, places) for (name, _), places in found.items() if len(places) > 1]


def _can_continue(
    before: Step,
    step: Step,
    reads: Mapping[ir.Value, int],
    outputs: Sequence[ir.Value],
    run: Sequence[int],
    steps: Sequence[Step],
) -> bool:
    value = before.writes[0]
    if step.block is not before.block or step.reads.count(value) != 1 or reads[value] != 1 or value in outputs:
        return False
    place = step.reads.index(value)
    others = [one for at, one in enumerate(step.reads) if at != place]
    if others != [one for at, one in enumerate(before.reads) if at != place]:
        return False
    return len(run) == 1 or steps[run[0]].writes[0] is steps[run[1]].reads[place]


def _name_everywhere(place: int, step: Step, block: Block | None) -> str:
    """What a layer is called; without the number where the instances of its block number it."""
    names = {_name_layer(step)} | {_name_layer(one[place]) for one in ([] if block is None else block.instances)}
    name = _name_layer(step)
    return name if len(names) == 1 else name.rstrip("0123456789_") or name


def _name_layer(step: Step) -> str:
    if step.block is not None:
        words = step.scope
        last = next((at for at in reversed(range(len(words))) if not words[at].isdigit()), len(words))
        return make_snake("_".join(words[last:])) or make_snake(step.block.name) or "block"
    assert step.spec is not None
    python = step.spec.facts.python
    return find_own_name(step) or python.called or make_identifier(name_call(python.module or "")) or "layer"


def _find_group(step: Step) -> tuple[str, ...]:
    """The module that a layer is numbered in, as `layer1` of `layer1.0`; nothing where it has a name of its own."""
    if not step.scope or not step.scope[-1][-1].isdigit():
        return ()
    return step.scope[:-1]


def _name_chain(steps: Sequence[Step], places: Sequence[int], kind: str) -> str:
    groups = [group for place in places if (group := _find_group(steps[place]))]
    group = share_prefix(groups)
    if group and not group[-1].isdigit() and make_snake(group[-1]):
        return make_snake(group[-1])
    blocks = {steps[place].block for place in places}
    if len(blocks) == 1 and None not in blocks:
        return "blocks"
    return "layers" if kind == "list" or len(places) > 3 else "head" if places[-1] == len(steps) - 1 else "stem"


def _name_operand(value: ir.Value, steps: Sequence[Step], block_inputs: Mapping[Block, Sequence[str]]) -> str:
    """What a constant is to the first step that has a word for it."""
    for step in steps:
        stored = {} if step.spec is None else step.spec.facts.python.stored
        words = [stored.get(name, name) for name, values in step.operands.items() if value in values]
        if step.block is not None:
            words = [
                name for one, name in zip(step.reads, block_inputs.get(step.block, ()), strict=False) if one is value
            ]
        for word in words:
            if len(word.rstrip("0123456789")) > 2:
                return word
    return "constant"


def _name_tensor(value: ir.Value, operand: str) -> str:
    name = value.name or ""
    called = {} if value.graph is None else value.graph.meta.get(CALLED, {})
    path = [part for part in str(value.meta.get(TRAINED) or called.get(name, name)).split(".") if part]
    alone = len(path) == 1 and path[0].replace("_", "").isalpha() and "_" in path[0]  # as exporters call nothing
    word = make_identifier(path[-1]) if len(path) > 1 or alone else ""
    if len(path) > 1 and word == _WEIGHT and not path[-2].isdigit():  # of a layer that is none here
        word = make_identifier("_".join(path[-2:]) if operand == _WEIGHT else path[-2])
    return word or (operand if len(operand) > 2 else "constant")

"""What values are called: as the operand that they are of an operator, or the result, where that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from .identifiers import make_identifier
from .members import Body
from .steps import Block, Step

#: letters of an operand that has no name but a letter, as `x` or `xs`
_LETTERS = 2
#: letters of a result of the source whose name says something
_LEAST = 4


def find_preferred_names(body: Body, block_inputs: Mapping[Block, Sequence[str]]) -> Mapping[ir.Value, str]:
    """The names that values of a class ask for.

    An operand's comes first, as `query`, then a result's, as `indices`, that which a block has for what it is given,
    and that which the source has for one of several results.
    """
    found: dict[ir.Value, str] = {}
    steps = list(_walk(body))
    for step in steps:
        for value, name in _list_operands(step):
            found.setdefault(value, name)
    for step in steps:
        for value, name in _list_results(step):
            found.setdefault(value, name)
    for step in steps:
        names = block_inputs.get(step.block, ()) if step.block is not None else ()
        for read, name in zip(step.reads, names, strict=False):
            if read is not None and len(name.rstrip("0123456789")) > _LETTERS:
                found.setdefault(read, name)
    if body.block is None and len(body.outputs) > 1:
        for value in body.outputs:
            name = make_identifier(value.name or "")
            if len(name) >= _LEAST and not any(letter.isdigit() for letter in name):
                found.setdefault(value, name)
    return found


def _list_operands(step: Step) -> Iterator[tuple[ir.Value, str]]:
    for name, values in step.operands.items():
        if step.spec is not None and len(name) > _LETTERS and len(values) == 1 and name not in step.held:
            yield from ((value, name) for value in values if value is not None and value in step.reads)


def _list_results(step: Step) -> Iterator[tuple[ir.Value, str]]:
    if step.spec is not None:
        for result, value in zip(step.spec.results, step.writes, strict=False):
            if len(result.name) > _LETTERS:
                yield value, result.name


def _walk(body: Body) -> Iterator[Step]:
    for step in body.steps:
        yield from [step] if step.roll is None else step.roll.steps
    for inner in body.inner.values():
        yield from _walk(inner)

"""Pass `fold`: infers types and shapes anew, and computes what is known without a run."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..base.constants import ELEMENTS, Elements
from ..base.errors import ModelError
from ..base.provenance import RULE, name_source
from ..base.quantization import read_quantization
from ..base.startup import dataclass, field, replace
from ..dialects.contents import compute_elements, compute_fill, infer_with_elements, note_fill
from ..dialects.extents import complete
from ..dialects.folding import FILLED, GROWTH, count_bytes, fold
from ..dialects.inference import (
    InferenceError,
    Inferred,
    find_version,
    infer,
    make_shape,
    merge,
    read_extents,
    require_within,
)
from ..dialects.operators import OperatorSpec
from ..rewrite.rules import Settle
from ..rewrite.subgraphs import find_bodies
from .base import Module, Visit
from .branches import choose_graph, inline, merge_results
from .carried_shapes import settle_counters, settle_parameters, settle_results
from .known import Known

#: constants of so many bytes take the place of what computes them, whatever that reads
_SMALL = 4096
#: constants of strings are left alone
_NUMBERS = "biufc"
#: the part of its constants by which a large model may grow
_PART = 1 << 6
#: what a constant may take without being counted: about what its node does
_NODE = 1 << 8
#: under this name a node keeps what its results followed from when they were found to be no constants
_SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Fold:
    """Let results have the types and shapes that follow from the inputs, and be constants where they are known.

    Extents that are free get a name, so that it shows which are equal; integers computed from extents are followed as
    polynomials over such names, and are constants where no name is left.

    All constants together may take `growth` bytes more than those that they make superfluous; where that is None, as
    usual or a 64th of all that there are, and as much as these where the target is another dialect: its rules look for
    constants that operators of the source compute, such as the weights of a layer. Nodes have the forms of
    `opset`, as a rule of that of the rules.
    """

    growth: int | None = None
    opset: int | None = None
    name, visits = "fold", Visit.MAIN

    def run(self, module: Module) -> None:
        """Go over the nodes of a graph in their order, and over those of their graphs on the way."""
        held = sum(v.const_value.nbytes for v in module.graph.initializers.values() if v.const_value is not None)
        if self.opset is not None:
            module = replace(module, forms=self.opset)
        part = _PART if module.rules.source is module.rules.target else 1
        self._run(module, Known(module), _Growth(max(GROWTH, held // part) if self.growth is None else self.growth))

    def _run(self, module: Module, known: Known, growth: _Growth) -> None:
        for value in module.graph.inputs:
            known.note_value(value)
        dialect = module.schematic
        work = list(reversed(module.graph))
        while work:
            node = work.pop()
            spec = dialect.find_operator(node.op_type, module.opset) if node.domain == dialect.domain else None
            if spec is None or spec.schema is None:
                if spec is not None and _is_closed(node, spec):
                    _replace(node, _evaluate(node, module), module)
                elif spec is None and (settle := _find_settle(node, module)) is not None and _is_open(node):
                    settle(node)
                continue
            if spec.facts.chooses:
                chosen = choose_graph(node, spec)
                if chosen is not None:
                    work += reversed(inline(node, chosen, module))
                    continue
            if inner := find_bodies(node):
                self._run_inside(node, spec, inner, module, known, growth)
                continue
            settled = _is_settled(node, module.opset)
            inferred = None if settled else _infer(node, spec, module)
            if inferred is not None:
                _describe(node, inferred)
                found = _compute(node, spec, module, inferred, growth)
                _replace(node, found, module)
                varies = any(value is not None and value.const_value is None for value in node.inputs)
                if varies and all(one is None for one in found):
                    node.meta[_SETTLED] = _list_facts(node, module.opset)
            if settled or inferred is not None:
                equal = known.find(node, spec, module)
                if equal is not None and not node.outputs[0].is_graph_output():
                    ir.convenience.replace_all_uses_with(node.outputs[0], equal)
                    continue
                note_fill(node, spec)
            for output in node.outputs:
                known.note_value(output)

    def _run_inside(
        self,
        node: ir.Node,
        spec: OperatorSpec,
        inner: Sequence[ir.Graph],
        module: Module,
        known: Known,
        growth: _Growth,
    ) -> None:
        """Go over the graphs of a node: what they yield tells what it does, and the nodes behind it need to know."""
        settle_counters(node, spec, module)
        settle_parameters(node, spec, module, lambda body: self._run(body, Known(body, known), replace(growth)))
        for graph in inner:
            body = module.enter_body(graph)
            self._run(body, Known(body, known), growth)
        merge_results(node, spec)
        settle_results(node, spec)


def _list_facts(node: ir.Node, opset: int) -> list[object]:
    """All that types, shapes and elements of results follow from, and what they are."""
    facts: list[object] = [find_version(node, opset), *node.attributes.values()]
    for value in (*node.inputs, *node.outputs):
        facts += (
            [value] if value is None else [value, value.dtype, value.shape, value.const_value, value.meta.get(ELEMENTS)]
        )
    return facts


def _is_settled(node: ir.Node, opset: int) -> bool:
    """Whether nothing has changed since it was found that the results of a node are no constants."""
    before = node.meta.get(_SETTLED)
    facts = _list_facts(node, opset) if before is not None else []
    return before is not None and len(facts) == len(before) and all(map(operator.is_, facts, before))


@dataclass(slots=True)
class _Growth:
    """How many bytes constants may still take beside those that they are made of, of all that they may."""

    left: int
    most: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.left

    def measure(self, node: ir.Node, spec: OperatorSpec, inferred: Sequence[Inferred]) -> int | None:
        """What the results of a node over constants would take; None where that is too much."""
        filled = spec.facts.fills is not None or (bool(spec.facts.rearranges) and compute_fill(node, spec) is not None)
        made = sum(map(count_bytes, inferred))
        if made <= _NODE or spec.role == "copy":  # equal constants are one
            return 0
        added = int(made) - sum(_share(value) for value in {*node.inputs} if value is not None)
        return None if added > (self.most // FILLED if filled else self.left) else added


def _share(value: ir.Value) -> int:
    """What one reader of a constant sets free when it is computed; nothing where somebody still needs the constant.

    That there are more readers than bytes is found out first, as looking at all readers takes time by their number.
    """
    held, uses = 0 if value.const_value is None else value.const_value.nbytes, value.uses()
    if held < len(uses) or not _is_passing(value):
        return 0
    return held // max(1, len({usage.node for usage in uses}))  # one may read it in several places


def _is_passing(value: ir.Value) -> bool:
    """Whether all that read a constant read constants alone, and are constants themselves."""
    return not value.is_graph_output() and all(
        one is None or one.const_value is not None for usage in value.uses() for one in usage.node.inputs
    )


def _find_settle(node: ir.Node, module: Module) -> Settle | None:
    """What tells the results of a node without a schema: one that a rule has written, or one of another domain."""
    if node.domain == module.target.domain:
        return module.rules.settle
    return None if node.domain == module.source.domain else module.rules.settle_others


def _is_open(node: ir.Node) -> bool:
    """Whether the ranks of a node's operands are known, and those of its results are not all."""
    known = all(value is None or value.shape is not None for value in node.inputs)
    return known and any(output.shape is None for output in node.outputs)


def _is_closed(node: ir.Node, spec: OperatorSpec) -> bool:
    """Whether a node without a schema computes with constants alone, none of which stands for other numbers."""
    known = [value for value in node.inputs if value is not None]
    plain = not any(map(read_quantization, (*known, *node.outputs))) and spec.facts.pure and spec.facts.fold
    constant = all(value.const_value is not None and not value.is_graph_input() for value in known)
    return bool(known) and plain and constant and not any(find_bodies(node))


def _evaluate(node: ir.Node, module: Module) -> Sequence[Elements | None]:
    """The results of a node of constants, by the rules of its operator's meaning; none where they would take more
    bytes than the constants do, small ones excepted."""
    types = [(output.type, output.shape) for output in node.outputs]
    found = module.rules.settle(node) if module.rules.settle is not None else None
    for output, (dtype, shape) in zip(node.outputs, types, strict=True):
        output.type, output.shape = dtype, shape
    read = sum(value.const_value.nbytes for value in node.inputs if value is not None and value.const_value is not None)
    made = sum(one.nbytes for one in found or ())
    return found if found is not None and made <= max(read, _SMALL) else ()


def _infer(node: ir.Node, spec: OperatorSpec, module: Module) -> list[Inferred] | None:
    try:
        require_within(node, spec.facts.within)
        found = infer(node, module.opset)
    except InferenceError:
        if _is_run_as_given(node, module):
            _require_fit(node, module.opset)
        return None
    if not spec.facts.scaled_by and all(one.shape is not None and None not in one.shape for one in found):
        return found
    more = infer_with_elements(node, module.opset, module.schematic)
    for place, one in enumerate(more or ()):
        try:
            found[place] = Inferred(one.dtype or found[place].dtype, merge(found[place].shape, one.shape))
        except InferenceError:
            continue
    return complete(node, spec, module.opset, found)


def _is_run_as_given(node: ir.Node, module: Module) -> bool:
    """Whether a node is one of a model with schemas that is run in any case, and reads tensors: a branch that does not
    fit may never be taken, and of sequences not all is described."""
    tensors = all(value is None or isinstance(value.type, ir.TensorType) for value in node.inputs)
    return module.depth == 0 and module.source.schemas and RULE not in node.metadata_props and tensors


def _require_fit(node: ir.Node, opset: int) -> None:
    """Raise ModelError where types and shapes do not fit; of elements, runtimes take more than the standard admits."""
    try:
        infer(node, opset, elements=False)
    except InferenceError as error:
        raise ModelError(f"{name_source(node)} does not fit its operator at opset {opset}: {error}") from error


def _describe(node: ir.Node, inferred: Sequence[Inferred]) -> None:
    """Give results what was inferred; what is open gets a name of its own."""
    for output, one in zip(node.outputs, inferred, strict=False):
        if one.dtype is not None and one.dtype != output.dtype:
            output.type = ir.TensorType(one.dtype)
        if one.shape is None:
            continue
        known = read_extents(output)
        if known is None or len(known) != len(one.shape):
            known = (None,) * len(one.shape)
        extents = tuple(
            [
                extent if extent is not None else old if isinstance(old, str) else f"{output.name}.{axis}"
                for axis, (extent, old) in enumerate(zip(one.shape, known, strict=True))
            ]
        )
        if extents != known or output.shape is None:
            output.shape = make_shape(extents)


def _compute(
    node: ir.Node, spec: OperatorSpec, module: Module, inferred: Sequence[Inferred], growth: _Growth
) -> Sequence[Elements | None]:
    """The constants that results are; None for one that is none."""
    if not any(value is not None and value.const_value is None for value in node.inputs):
        added = growth.measure(node, spec, inferred)
        folded = None if added is None else fold(node, spec, module.opset, inferred, max(growth.left, GROWTH))
        if folded is not None:
            growth.left -= added or 0
            return folded
        if added is None:
            return ()
    elif (folded := fold(node, spec, module.opset, inferred)) is not None:
        return folded
    return _follow(node, spec, module, inferred)


def _follow(
    node: ir.Node, spec: OperatorSpec, module: Module, inferred: Sequence[Inferred]
) -> Sequence[Elements | None]:
    """The constants that follow from extents; None for one that is none."""
    if not spec.facts.fold or not spec.facts.pure:
        return ()
    found: list[Elements | None] = []
    for output, known in zip(node.outputs, compute_elements(node, spec, module.opset, inferred) or (), strict=False):
        found.append(None)
        if known is None:
            continue
        items = known.ravel().tolist()
        if output.dtype is not None and not any(one is None or isinstance(one, str) for one in items):
            found[-1] = known.astype(output.dtype.numpy())
        elif any(one is not None for one in items):
            output.meta[ELEMENTS] = known
    return found


def _replace(node: ir.Node, constants: Sequence[Elements | None], module: Module) -> None:
    for output, elements in zip(node.outputs, constants, strict=False):
        if elements is None or not output.uses():
            continue
        if isinstance(elements, np.ndarray) and elements.dtype.kind not in _NUMBERS:
            continue
        made = module.names.make_computed_constant(elements, output.name or node.op_type, node.inputs)
        value = module.names.register(made)
        for usage in tuple(output.uses()):  # a graph that yields it goes on to do so
            usage.node.replace_input_with(usage.idx, value)

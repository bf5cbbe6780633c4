"""Which passes a conversion has, in which order: the table of contents of a conversion."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..pairs import Complex
from ..rules import ADAPT, INTEGERS, LOWER, NORMALIZE, RECOVER, SIMPLIFY, RuleSet
from ..scope import Scope
from ..sharing import CommonSubexpressions
from ..view import QuantizeDequantize
from .base import Module, Pass, Visit, run_passes
from .rules import Rules
from .sort import Sort
from .supported import Supported


def list_passes(
    rules: RuleSet, before: Sequence[Pass] = (), layout: Sequence[Pass] = (), plain: bool = False, keep: bool = False
) -> list[Pass]:
    """The passes from the source dialect of some rules to their target.

    `before` prepares the source's graph, `layout` places permutations. With `plain` nothing stays quantized; with
    `keep` custom operators that no rule is about stay as they are.
    """
    quantization: list[Pass] = [Complex(), QuantizeDequantize(plain)]
    if not plain:
        quantization.insert(0, Rules(INTEGERS, Visit.FUNCTIONS_FIRST))
    if rules.source is rules.target:
        quantization = []
    return [
        *before,
        *quantization,
        Rules(NORMALIZE, Visit.FUNCTIONS_FIRST),
        Rules(LOWER, Visit.OUTSIDE_FIRST),
        Supported(LOWER, Visit.OUTSIDE_FIRST, keep),
        CommonSubexpressions(),
        Rules(RECOVER, Visit.INSIDE_FIRST),
        *layout,
        Rules(SIMPLIFY, Visit.OUTSIDE_FIRST),
        Rules(ADAPT, Visit.OUTSIDE_FIRST),
        CommonSubexpressions(constants=True),
        Sort(),
    ]


def convert_graph(graph: ir.Graph, rules: RuleSet, functions: Sequence[ir.Graph] = ()) -> Module:
    """Run the passes on a graph that is a model by itself, and keep its layouts; raises UnsupportedError."""
    module = Module(graph, rules, Scope(graph), functions)
    run_passes(list_passes(rules), module)
    return module

"""Names that dialects know: operators and traits, for suggestions and for lookups of words."""

from __future__ import annotations

import onnx.defs

from ..dialects.operators import Dialect
from ..expressions.opset_range import Opsets


def list_operators(dialect: Dialect, opsets: Opsets = frozenset()) -> frozenset[str]:
    """The names of all operators that a dialect has, at some of the opsets where there are any."""
    names = set(dialect.operators)
    if dialect.schemas:
        known = {found.name for found in onnx.defs.get_all_schemas_with_history() if found.domain == dialect.domain}
        names |= known
        if opsets:
            names = {name for name in names if any(dialect.find_operator(name, opset) for opset in opsets)}
    return frozenset(names)


def list_traits(dialect: Dialect) -> frozenset[str]:
    """All that `trait` may ask of operators of a dialect."""
    return frozenset(word for spec in dialect.operators.values() for word in spec.words)

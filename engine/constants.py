"""What is known of a value at conversion time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

#: the key under which a dequantized constant holds a function that computes its real numbers
NUMBERS = "numbers"
#: the key under which a constant says that it is to stay as it is stored
KEPT = "kept"


def keep(graph: ir.Graph, dtype: ir.DataType) -> None:
    """Let the constants of an element type stay as they are stored, and be converted where the model runs."""
    for value in graph.initializers.values():
        if value.dtype == dtype:
            value.meta[KEPT] = True


def stored(value: ir.Value) -> np.ndarray[Any, Any] | None:
    """The elements of an initializer; a graph input with an initial value is none."""
    if value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def constant(value: ir.Value) -> np.ndarray[Any, Any] | None:
    """The elements of a value that is known at conversion time, also where it is stored as quantized integers."""
    found = stored(value)
    if found is None and NUMBERS in value.meta:
        real: np.ndarray[Any, Any] = value.meta[NUMBERS]()
        return real
    return found

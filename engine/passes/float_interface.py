"""Pass `float-interface`: quantized inputs and outputs become real numbers."""

from __future__ import annotations

from ..base.names import Scope
from ..base.quantization import read_quantization
from .base import Module, Visit
from .quantize_dequantize import Inserter


class FloatInterface:
    """Let the inputs and outputs be real numbers: quantized on their way in, dequantized on their way out.

    Inputs with an initial value, which are state and no interface, stay as they are.
    """

    name, visits = "float-interface", Visit.MAIN

    def run(self, module: Module) -> None:
        """Put the conversions into the main graph."""
        view = Inserter(module.graph, module.target, module.opset, Scope(module.graph))
        for position, value in enumerate(list(module.graph.inputs)):
            if value.const_value is None and read_quantization(value) is not None:
                module.graph.inputs[position] = view.insert_entrance(value)
        view.insert_exits()

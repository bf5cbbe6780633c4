"""Pass `keep-float16`: constants of half precision stay as they are stored."""

from __future__ import annotations

import onnx_ir as ir

from ..base.constants import keep_stored
from .base import Module, Visit


class KeepFloat16:
    """Let constants of float16 stay so, to be converted where the model runs."""

    name, visits = "keep-float16", Visit.MAIN

    def run(self, module: Module) -> None:
        """Mark the constants of the main graph."""
        keep_stored(module.graph, ir.DataType.FLOAT16)

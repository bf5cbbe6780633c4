"""Pass `fix-defaults`: what callers may override is what it is by default, where a later step has no such inputs."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from ..base.startup import dataclass
from .base import Module, Visit
from .keep_state import find_state


@dataclass(frozen=True, slots=True)
class FixDefaults:
    """Let inputs with a default be constants, but for those that are given what the call before yielded."""

    outputs: tuple[str, ...] = ()
    name, visits = "fix-defaults", Visit.MAIN

    def run(self, module: Module) -> None:
        """Change the inputs of the main graph; the state that an earlier step has noted is not to be known by names."""
        found = find_state(module.graph, self.outputs)
        fix_inputs(module.graph, {*module.state, *(begun.name or "" for begun, _ in found)})


def fix_inputs(graph: ir.Graph, kept: Collection[str]) -> None:
    """Let inputs with a default be constants, but for some."""
    for value in [value for value in graph.inputs if value.const_value is not None]:
        if value.name not in kept:
            graph.inputs.remove(value)
            graph.register_initializer(value)

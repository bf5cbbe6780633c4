"""A model from its file to its parts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..compiled_rules import prepare
from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.rewrite.rules import SUPPORT
from ..frontends import onnx_reader
from ..frontends.source import Source, accept
from ..options import Options
from ..pipeline import rewrite
from ..target import prices
from .capability import find_supported
from .files import write
from .plan import Plan, Prices, plan

#: the dialect whose models are divided; others become that first
_DIALECT = "onnx"


@dataclass(frozen=True, slots=True)
class Partition:
    """A model divided for a target: its graph, which belongs to `model`, and the plan."""

    target: str
    model: ir.Model
    plan: Plan

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write one file for each step, the host's model and the manifest; the manifest."""
        version = max(self.model.ir_version or 0, 8)
        return write(Path(folder), self.model.graph, self.plan, version, {"target": self.target})


def partition(source: Source, target: str, options: Options | None = None) -> Partition:
    """Divide a model for a target that takes a part of it; other formats than ONNX are converted first.

    Raises CallError for a target without rules of the stage `support`, and what `rewrite` raises.
    """
    asked = (options or Options()).but(target=target)
    conversion = rewrite(accept(source), asked)
    encoded = conversion.model.SerializeToString()
    prepared = prepare((_DIALECT, target), conversion.report.opset)
    if SUPPORT not in prepared.rules.stages():
        raise CallError(f"target {target} has no rules of the stage {SUPPORT}, which say what it takes of a model")
    model = onnx_reader.read(encoded, prepared.pack.catalogue)
    for value in [value for value in model.graph.inputs if value.const_value is not None]:
        model.graph.inputs.remove(value)  # a default that callers may override: what is divided computes with it
    supported = find_supported(model.graph, prepared.rules)
    return Partition(target, model, plan(model.graph, supported, Prices(**prices(target))))

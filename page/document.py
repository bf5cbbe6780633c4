"""What a page shows of a conversion, as data that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from .. import summary
from ..engine.base.errors import UnsupportedError
from ..engine.base.startup import dataclass
from .graph_nodes import cut, describe_graph

if TYPE_CHECKING:
    from ..engine.base.errors import RewriteError
    from ..engine.passes.layout.explain import Remaining
    from ..engine.rewrite.profile import Profile
    from ..report import Report

#: so many rows of a table
_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one model: its report, or the error that it was refused with.

    `sides` has the layout that nodes of `after` run in. Sizes are in bytes; `layers` has rows of the plot of errors,
    `verdict` what verification says.
    """

    name: str
    before: ir.Graph | None = None
    after: ir.Graph | None = None
    sides: Mapping[ir.Node, str] | None = None
    report: Report | None = None
    error: RewriteError | None = None
    explained: Sequence[Remaining] = ()
    profile: Profile | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    peak: int = 0
    verdict: str = ""
    layers: Sequence[Mapping[str, Any]] = ()
    layers_note: str = "Not measured: --verify compares each layer."


def collect(outcome: Outcome) -> dict[str, Any]:
    """Collect what the page of an outcome shows."""
    report, error = outcome.report, outcome.error
    refusals = error.refusals if isinstance(error, UnsupportedError) else ()
    parts = outcome.profile.parts if outcome.profile is not None else {}
    return {
        "title": cut(outcome.name),
        "verdict": "refused" if error is not None else outcome.verdict or "converted",
        "facts": _facts(outcome),
        "operators_in": dict(report.source_operators) if report is not None else {},
        "operators_out": dict(report.target_operators) if report is not None else {},
        "constants": {name: list(sizes) for name, sizes in report.constants.items()} if report is not None else {},
        "rules": dict(report.rules) if report is not None else {},
        "transposes": [
            {
                "name": cut(one.name),
                "perm": list(one.perm),
                "elements": one.elements,
                "before": cut(one.before),
                "after": cut(one.after),
                "purpose": one.purpose,
            }
            for one in outcome.explained[:_ROWS]
        ],
        "parts": [[name, cost.seconds] for name, cost in parts.items()],
        "layers": [{key: _finite(value) for key, value in row.items()} for row in outcome.layers[:_ROWS]],
        "layers_note": outcome.layers_note,
        "message": f"{error}"[:100_000] if error is not None else "",
        "refusals": [
            {
                "operator": one.operator,
                "node": cut(one.node),
                "reasons": [f"{r.span}: rule {r.rule}: {r.message}" for r in one.reasons] or [one.why or one.what],
            }
            for one in refusals[:_ROWS]
        ],
        "before": None
        if outcome.before is None
        else describe_graph(outcome.before, refused={one.node for one in refusals}),
        "after": None if outcome.after is None else describe_graph(outcome.after, outcome.sides),
    }


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    facts = [("model", cut(outcome.name))]
    for name, graph in (("before", outcome.before), ("after", outcome.after)):
        if graph is not None:
            facts += [
                (f"inputs {name}", _describe_values(graph.inputs)),
                (f"outputs {name}", _describe_values(graph.outputs)),
            ]
    report = outcome.report
    if report is not None:
        moved = "" if report.moved is None else f", moving {report.moved:,} elements"
        facts += [
            ("operators", summary.operators(report)),
            ("Transposes left", f"{report.permutations}{moved}"),
            *([] if report.opset is None else [("opset", f"{report.opset} {report.opset_reason}".rstrip())]),
            ("size", f"{summary.measure(outcome.bytes_in)} -> {summary.measure(outcome.bytes_out)}"),
            ("time", f"{outcome.seconds:.3f} s"),
            ("peak memory of the process", summary.measure(outcome.peak)),
        ]
        facts += [("remark", cut(remark)) for remark in report.remarks]
    return facts


def _describe_values(values: Sequence[ir.Value]) -> str:
    shown = (
        f"{cut(v.name or '')} {'?' if v.shape is None else list(map(str, v.shape))}".replace("'", "")
        for v in values[:20]
    )
    return ", ".join(shown) + (f" and {len(values) - 20} more" if len(values) > 20 else "")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

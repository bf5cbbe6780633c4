"""What a page shows of a conversion, as data that JSON can hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from ..conversion import summary
from ..engine.base.errors import UnsupportedError
from ..engine.base.startup import dataclass, field
from .graph_nodes import Texts, describe_graph, describe_interface, shorten
from .rule_texts import read_rules

if TYPE_CHECKING:
    from ..conversion.report import Report
    from ..engine.base.errors import Refusal, RewriteError
    from ..engine.passes.layout.explain import Remaining
    from ..engine.rewrite.profile import Profile

#: so many rows of a table
_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Latencies: rows of a table (name, median and least milliseconds, multiple of the first), and kernels.

    A kernel has its node, its operator and milliseconds of one run.
    """

    sides: Sequence[tuple[str, float, float, float]] = ()
    kernels: Sequence[tuple[str, str, float]] = ()
    note: str = "Not measured: rewrite bench MODEL --report FILE.html times each operator."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one model: its report, or the error that it was refused with.

    `sides` has the layout that nodes of `after` run in. Sizes are in bytes; `layers` has rows of the plot of errors,
    `verdict` what verification says, which is `passed` or not where it took place.
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
    passed: bool | None = None
    layers: Sequence[Mapping[str, Any]] = ()
    layers_note: str = "Not measured: --verify compares each layer."
    timing: Timing = field(default_factory=Timing)


def collect(outcome: Outcome) -> dict[str, Any]:
    """Collect what the page of an outcome shows."""
    report, error = outcome.report, outcome.error
    refusals = error.refusals if isinstance(error, UnsupportedError) else ()
    refused = {one.source or one.node for one in refusals}
    texts = Texts()
    before = None if outcome.before is None else describe_graph(outcome.before, texts, refused=refused)
    after = None if outcome.after is None else describe_graph(outcome.after, texts, outcome.sides)
    return {
        "title": shorten(outcome.name),
        "verdict": "refused" if error is not None else outcome.verdict or "converted",
        "state": _name_state(outcome),
        "cards": _list_cards(outcome),
        "facts": _list_facts(outcome),
        "interface": _list_interface(outcome),
        "operators": [_count(before, outcome.before), _count(after, outcome.after)],
        "constants": {name: list(sizes) for name, sizes in report.constants.items()} if report is not None else {},
        "rules": _list_rules(outcome),
        "texts": texts.rows,
        "rule_texts": {} if after is None else read_rules({texts.rows[node[2]]: None for node in after["nodes"]}),
        "transposes": [_describe_permutation(one) for one in outcome.explained[:_ROWS]],
        "parts": [[name, cost.seconds] for name, cost in outcome.profile.parts.items()] if outcome.profile else [],
        "layers": [
            {k: shorten(v) if isinstance(v, str) else _drop_infinite(v) for k, v in row.items()}
            for row in outcome.layers[:_ROWS]
        ],
        "layers_note": outcome.layers_note,
        "latency": {
            "note": outcome.timing.note,
            "sides": [[shorten(one[0]), *map(_drop_infinite, one[1:])] for one in outcome.timing.sides],
            "kernels": _list_kernels(outcome),
        },
        "message": f"{error}"[:100_000] if error is not None else "",
        "advice": error.advice if isinstance(error, UnsupportedError) else "",
        "refusals": [_describe_refusal(one) for one in refusals[:_ROWS]],
        "before": before,
        "after": after,
    }


def _name_state(outcome: Outcome) -> str:
    if outcome.error is not None:
        return "refused"
    return {None: "converted", True: "agrees", False: "differs"}[outcome.passed]


def _list_cards(outcome: Outcome) -> list[tuple[str, str, str]]:
    """The figures that stand above all: what, how much, and a note below it."""
    report = outcome.report
    if report is None:
        return []
    into, out = sum(report.source_operators.values()), sum(report.target_operators.values())
    change = f"{(out - into) / into:+.0%}" if into else ""
    grown = f"{outcome.bytes_out / outcome.bytes_in - 1:+.0%}" if outcome.bytes_in else ""
    return [
        ("operators", f"{into:,} → {out:,}", change),
        ("Transposes left", f"{report.permutations:,}", f"{report.moved:,} elements moved" if report.moved else ""),
        ("size", f"{summary.measure(outcome.bytes_in)} → {summary.measure(outcome.bytes_out)}", grown),
        ("time", f"{outcome.seconds:.2f} s", "read, rewritten, written"),
        ("peak memory", summary.measure(outcome.peak), "of the process") if outcome.peak else ("", "", ""),
        ("", "", "") if report.opset is None else ("opset", f"{report.opset}", shorten(report.opset_reason)),
    ]


def _list_facts(outcome: Outcome) -> list[tuple[str, str]]:
    report = outcome.report
    facts = [("model", shorten(outcome.name))]
    if report is None:
        return facts
    layouts = ", ".join((report.layout, *(f"{name} {axes}" for name, axes in report.layouts.items())))
    facts += [("made for", report.runtime), ("layout of inputs and outputs", shorten(layouts))]
    facts += [("signature", shorten(report.signature))] if report.signature else []
    if report.inexact:
        facts.append(("not exact", ", ".join(f"{name} {count}" for name, count in report.inexact.items())))
    return facts + [("remark", shorten(remark)) for remark in report.remarks]


def _list_interface(outcome: Outcome) -> list[list[str]]:
    """Rows of inputs and outputs: which, name, type and shape before, and what is another one after."""
    before, after = outcome.before, outcome.after
    if before is None:
        return []
    rows: list[list[str]] = []
    for kind in ("inputs", "outputs"):
        old = describe_interface(getattr(before, kind))
        new = describe_interface(getattr(after, kind)) if after is not None else old
        for one, other in itertools.zip_longest(old, new):
            changed = "" if other == one else "none" if other is None else " ".join(other)
            rows.append([kind.removesuffix("s"), *(one or ["", "", ""]), changed or "the same"])
    return rows


def _count(drawn: Mapping[str, Any] | None, graph: ir.Graph | None) -> list[tuple[str, int]]:
    """How often each operator stands in a graph, the most frequent first."""
    if drawn is None or graph is None:
        return []
    return Counter(shorten(node.op_type) for node in graph).most_common(_ROWS)


def _list_rules(outcome: Outcome) -> list[list[Any]]:
    """Rules that fired: name, how often, how often tried, seconds."""
    if outcome.report is None:
        return []
    spent: dict[str, tuple[int, float]] = {}
    for (_, name), cost in (outcome.profile.rules if outcome.profile else {}).items():
        attempts, seconds = spent.get(name, (0, 0.0))
        spent[name] = attempts + cost.attempts, seconds + cost.seconds
    fired = sorted(outcome.report.rules.items(), key=lambda item: -item[1])[:_ROWS]
    return [[shorten(name), count, *spent.get(name, (None, None))] for name, count in fired]


def _list_kernels(outcome: Outcome) -> list[list[Any]]:
    """Kernels of the runtime: its node, or that of the model whose name it made longer by words, operator and time."""
    known = set() if outcome.after is None else {node.name for node in outcome.after}
    rows: list[list[Any]] = []
    for node, operator, time in outcome.timing.kernels[:_ROWS]:
        name = node
        while name and name not in known:
            name = name.rpartition("_")[0]
        rows.append([shorten(name or node), shorten(operator), time])
    return rows


def _describe_permutation(one: Remaining) -> dict[str, Any]:
    return {
        "name": shorten(one.name),
        "perm": " ".join(map(str, one.perm)),
        "elements": one.elements,
        "before": shorten(one.before),
        "after": shorten(one.after),
        "purpose": one.purpose,
    }


def _describe_refusal(one: Refusal) -> dict[str, Any]:
    return {
        "operator": shorten(one.operator),
        "node": shorten(one.node),
        "source": shorten(one.source or one.node),
        "reasons": [shorten(f"{r.span}: rule {r.rule}: {r.message}") for r in one.reasons]
        or [one.why or f"no rule is about {shorten(one.operator)}"],
    }


def _drop_infinite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

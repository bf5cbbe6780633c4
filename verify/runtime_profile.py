"""What ONNX Runtime spends a model's latency on, by its own profile."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .frames import Array
from .interpreter import Source
from .runtime import Runtime

_INTEGERS = frozenset({"int8", "uint8"})
#: how the runtime names the event of a node, behind the node's name
_EVENT = "_kernel_time"


@dataclass(frozen=True, slots=True)
class Kernel:
    """All nodes of one operator: how many there are, how many compute on 8-bit integers, milliseconds of one run."""

    operator: str
    nodes: int
    integer: int
    milliseconds: float
    integer_milliseconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The operators of the graph that the runtime made, the slowest first.

    `nodes_spent` has each node by its name in that graph: its operator, and milliseconds of one run.
    """

    kernels: tuple[Kernel, ...]
    nodes_spent: tuple[tuple[str, str, float], ...] = ()

    @property
    def milliseconds(self) -> float:
        """What the kernels take together."""
        return sum(kernel.milliseconds for kernel in self.kernels)

    @property
    def nodes(self) -> int:
        """How many kernels there are."""
        return sum(kernel.nodes for kernel in self.kernels)

    @property
    def integer(self) -> int:
        """How many kernels compute on 8-bit integers."""
        return sum(kernel.integer for kernel in self.kernels)

    @property
    def integer_milliseconds(self) -> float:
        """What those take together."""
        return sum(kernel.integer_milliseconds for kernel in self.kernels)


def profile_run(model: Source, inputs: Sequence[Array], threads: int = 2, runs: int = 10) -> Profile:
    """Run a model with the runtime's profile on.

    A node counts with its median, times how often it ran in each run; kernels inside a loop count once more in the
    loop's own time.
    """
    with tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(model, threads, profile=Path(folder))
        feeds = runtime.make_feeds(inputs)
        runtime.time(feeds, runs + 1)
        events: list[dict[str, Any]] = json.loads(Path(runtime.end_profile()).read_text(encoding="utf-8"))
    # The first run pays for memory that the others find there.
    starts = [event["ts"] for event in events if event["name"] == "model_run"]
    second = sorted(starts)[1]
    return _sum_events([e for e in events if e["name"].endswith(_EVENT) and e["ts"] >= second], runs)


def _sum_events(events: Iterable[dict[str, Any]], runs: int) -> Profile:
    micros: dict[tuple[str, str], list[int]] = {}
    integer: set[tuple[str, str]] = set()
    for event in events:
        told = event["args"]
        node: tuple[str, str] = told["op_name"], event["name"]
        micros.setdefault(node, []).append(event["dur"])
        if _is_integer_kernel(told):
            integer.add(node)
    found: dict[str, Kernel] = {}
    spent: list[tuple[str, str, float]] = []
    for node, taken in micros.items():
        known = found.get(node[0], Kernel(node[0], 0, 0, 0.0, 0.0))
        own = statistics.median(taken) * len(taken) / runs / 1e3
        spent.append((node[1].removesuffix(_EVENT), node[0], own))
        found[node[0]] = Kernel(
            node[0],
            known.nodes + 1,
            known.integer + (node in integer),
            known.milliseconds + own,
            known.integer_milliseconds + own * (node in integer),
        )
    slowest = sorted(found.values(), key=lambda kernel: -kernel.milliseconds)
    return Profile(tuple(slowest), tuple(sorted(spent, key=lambda one: -one[2])))


def _is_integer_kernel(told: dict[str, Any]) -> bool:
    """Whether a kernel reads tensors of 8-bit integers, and besides them numbers and vectors alone.

    Integer kernels have the scale and the zero point of each operand among theirs; what moves integers has none, what
    converts them has no more than one of each.
    """
    operands = [(kind, shape) for entry in told["input_type_shape"] for kind, shape in entry.items()]
    large = [kind for kind, shape in operands if len(shape) > 1]
    return bool(large) and set(large) <= _INTEGERS and len(operands) > 3

"""Latency: a model in the TFLite interpreter and its rewritten forms in ONNX Runtime, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..engine.base.errors import VerificationError
from .adapter import Adapter
from .frames import Array
from .inputs import draw
from .interpreter import Interpreter, InterpreterError, Source
from .runtime import Runtime
from .runtime_profile import Profile, profile_run

#: seconds that one side runs before it is the other's turn, and the least and most runs of a turn
_TURN, _FEWEST, _MOST = 0.04, 1, 200
#: seconds between turns, in which the threads of the side that ran come to rest instead of spinning
_REST = 0.01


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one run takes, in milliseconds: the median over all rounds, the least, and the median of each round."""

    median: float
    least: float
    rounds: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]]) -> Latency:
        """From the seconds of each run of each round."""
        runs = [1e3 * seconds for turn in rounds for seconds in turn]
        return cls(statistics.median(runs), min(runs), tuple(1e3 * statistics.median(turn) for turn in rounds))

    def over(self, other: Latency) -> float:
        """The latency as a multiple of another's, as the median over the rounds that both ran in."""
        return statistics.median(a / b for a, b in zip(self.rounds, other.rounds, strict=True))


@dataclass(frozen=True, slots=True)
class Bench:
    """The interpreter's latency, and for each ONNX model its latency and what the runtime spends it on."""

    source: Latency
    targets: Mapping[str, Latency]
    profiles: Mapping[str, Profile]


def bench(
    source: Source,
    targets: Mapping[str, Source],
    threads: int = 2,
    rounds: int = 10,
    seed: int = 0,
    inputs: Sequence[Array] | None = None,
    interpreter: Interpreter | None = None,
) -> Bench:
    """Time a TFLite model with the interpreter's default kernels and ONNX models, named, in ONNX Runtime.

    Rounds are interleaved: in each every side runs for a moment, so that what else the machine does meets all alike.
    All sides are fed the same seeded inputs, or `inputs`, and compute with `threads` threads. Raises
    VerificationError where one side does not run.
    """
    if interpreter is None:
        with Interpreter() as worker:
            return bench(source, targets, threads, rounds, seed, inputs, worker)
    signature = interpreter.describe(source)
    feed = _load(interpreter, source, threads, draw(signature.inputs, seed) if inputs is None else [[list(inputs)]])
    runtimes = {name: Runtime(target, threads) for name, target in targets.items()}
    fed = {name: Adapter(runtime, signature).feed(feed) for name, runtime in runtimes.items()}
    feeds = {name: runtime.feeds(fed[name]) for name, runtime in runtimes.items()}
    first = interpreter.time(1)[0]
    counts = {name: _count(runtime.time(feeds[name], 3)) for name, runtime in runtimes.items()}
    own = _count([first, *interpreter.time(_count([first]))])
    taken: dict[str, list[list[float]]] = {name: [] for name in runtimes}
    taken_by_source: list[list[float]] = []
    for _ in range(rounds):
        time.sleep(_REST)
        taken_by_source.append(interpreter.time(own))
        for name, runtime in runtimes.items():
            time.sleep(_REST)
            taken[name].append(runtime.time(feeds[name], counts[name]))
    profiles = {name: profile_run(target, fed[name], threads, counts[name]) for name, target in targets.items()}
    return Bench(Latency.of(taken_by_source), {n: Latency.of(rounds) for n, rounds in taken.items()}, profiles)


def _load(
    interpreter: Interpreter, source: Source, threads: int, draws: Iterable[Sequence[list[Array]]]
) -> list[Array]:
    """Load a model into the worker together with the first of some inputs that it runs on; these inputs."""
    failure: InterpreterError | None = None
    for (feed,) in draws:
        try:
            interpreter.load(source, feed, threads)
            return feed
        except InterpreterError as error:
            failure = failure or error
    raise failure or VerificationError("there are no inputs to run the model on")


def _count(seconds: Sequence[float]) -> int:
    return max(_FEWEST, min(_MOST, round(_TURN / max(min(seconds), 1e-7))))

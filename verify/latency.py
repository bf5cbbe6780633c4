"""Latency: a model and its rewritten forms side by side, each in the runtime of its format."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..engine.base.errors import VerificationError
from .adapter import Adapter
from .formats import REFERENCE, find_format
from .frames import Array
from .inputs import draw
from .interpreted import Interpreted
from .interpreter import Interpreter, Signature, Source
from .reference import Reference
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
    def summarize(cls, rounds: Sequence[Sequence[float]]) -> Latency:
        """From the seconds of each run of each round."""
        runs = [1e3 * seconds for turn in rounds for seconds in turn]
        return cls(statistics.median(runs), min(runs), tuple(1e3 * statistics.median(turn) for turn in rounds))

    def compute_ratio(self, other: Latency) -> float:
        """The latency as a multiple of another's, as the median over the rounds that both ran in."""
        return statistics.median(a / b for a, b in zip(self.rounds, other.rounds, strict=True))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The latency of the original and of each model made of it, and what ONNX Runtime spends it on in those it runs."""

    source: Latency
    targets: Mapping[str, Latency]
    profiles: Mapping[str, Profile]


class Side(Protocol):
    """A model that is loaded together with what it is fed."""

    def time(self, runs: int) -> list[float]:
        """Run the model several times; the seconds of each run."""


@dataclass(frozen=True, slots=True)
class _Session:
    """A model in ONNX Runtime."""

    runtime: Runtime
    feeds: Mapping[str, Array]

    def time(self, runs: int) -> list[float]:
        return self.runtime.time(self.feeds, runs)


def run_benchmark(
    source: Source,
    targets: Mapping[str, Source],
    threads: int = 2,
    rounds: int = 10,
    seed: int = 0,
    inputs: Sequence[Array] | None = None,
    interpreter: Interpreter | None = None,
) -> Benchmark:
    """Time a model and those made of it, named; each is a TFLite model, run by the interpreter's default kernels, or an
    ONNX model, run by ONNX Runtime.

    Rounds are interleaved: in each every side runs for a moment, so that what else the machine does meets all alike.
    All sides are fed the same seeded inputs, or `inputs`, and compute with `threads` threads. `interpreter` is a worker
    to use for the original and leave running. Raises VerificationError where one side does not run.
    """
    with contextlib.ExitStack() as stack:
        worker = None
        if find_format(source) != REFERENCE:
            worker = stack.enter_context(Interpreter()) if interpreter is None else interpreter
        signature = (worker or Reference()).describe(source)
        draws = draw(signature.inputs, seed) if inputs is None else [[list(inputs)]]
        original, feed = _open_original(source, threads, draws, worker)
        sides: dict[str, Side] = {}
        fed: dict[str, list[Array]] = {}
        for name, target in targets.items():
            sides[name], fed[name] = _open(target, threads, signature, feed, stack)
        counts = {name: _count(side.time(3)) for name, side in sides.items()}
        first = original.time(1)[0]
        own = _count([first, *original.time(_count([first]))])
        taken_by_source, taken = _time_in_turns(original, own, sides, counts, rounds)
        profiles = {
            name: profile_run(target, fed[name], threads, counts[name])
            for name, target in targets.items()
            if isinstance(sides[name], _Session)
        }
    return Benchmark(
        Latency.summarize(taken_by_source), {n: Latency.summarize(rounds) for n, rounds in taken.items()}, profiles
    )


def _time_in_turns(
    original: Side, own: int, sides: Mapping[str, Side], counts: Mapping[str, int], rounds: int
) -> tuple[list[list[float]], dict[str, list[list[float]]]]:
    """The seconds of each run, round by round, of the original and of each side; in a round all run in turn."""
    taken: dict[str, list[list[float]]] = {name: [] for name in sides}
    taken_by_source: list[list[float]] = []
    for _ in range(rounds):
        time.sleep(_REST)
        taken_by_source.append(original.time(own))
        for name, side in sides.items():
            time.sleep(_REST)
            taken[name].append(side.time(counts[name]))
    return taken_by_source, taken


def _open_original(
    source: Source, threads: int, draws: Iterable[Sequence[list[Array]]], worker: Interpreter | None
) -> tuple[Side, list[Array]]:
    """Load the original, in the worker or else in ONNX Runtime, together with the first of some inputs that it runs on;
    these inputs. Raises VerificationError where it runs on none."""
    failure: VerificationError | None = None
    runtime = Runtime(source, threads) if worker is None else worker
    for (feed,) in draws:
        try:
            if isinstance(runtime, Interpreter):
                runtime.load(source, feed, threads)
                return runtime, feed
            session = _Session(runtime, runtime.make_feeds(feed))
            session.time(1)
            return session, feed
        except VerificationError as error:
            failure = failure or error
    raise failure or VerificationError("there are no inputs to run the model on")


def _open(
    target: Source, threads: int, signature: Signature, feed: Sequence[Array], stack: contextlib.ExitStack
) -> tuple[Side, list[Array]]:
    """Load a model made of the original, fed what the original is in the form that it takes."""
    if find_format(target) == REFERENCE:
        runtime = Runtime(target, threads)
        fed = Adapter(runtime, signature).convert_inputs(feed)
        return _Session(runtime, runtime.make_feeds(fed)), fed
    worker = stack.enter_context(Interpreter())
    interpreted = Interpreted(target, worker)
    fed = interpreted.make_sample(Adapter(interpreted, signature).convert_inputs(feed))
    worker.load(target, fed, threads)
    return worker, fed


def _count(seconds: Sequence[float]) -> int:
    return max(_FEWEST, min(_MOST, round(_TURN / max(min(seconds), 1e-7))))

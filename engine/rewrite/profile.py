"""Profile of a conversion: its time by part and by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import perf_counter
from typing import TypeVar

import onnx_ir as ir

from ..base.startup import dataclass, field
from .rules import Rule

Subject = TypeVar("Subject")
Made = TypeVar("Made")


@dataclass(slots=True)
class Cost:
    """How often something was tried, how often that came to something, and the seconds it took."""

    attempts: int = 0
    matches: int = 0
    seconds: float = 0.0

    def add(self, other: Cost) -> None:
        """Take in another cost of the same thing."""
        self.attempts += other.attempts
        self.matches += other.matches
        self.seconds += other.seconds


@dataclass(slots=True)
class Profile:
    """The costs of each part of a conversion, none of which contains another, and of each rule of each stage.

    Of a part, attempts are how often it was entered.
    """

    parts: dict[str, Cost] = field(default_factory=dict)
    rules: dict[tuple[str, str], Cost] = field(default_factory=dict)

    def time_attempts(self, attempt: Callable[[Rule, ir.Node], Made]) -> Callable[[Rule, ir.Node], Made]:
        """Let what tries a rule on a node be timed as that rule's; it matched where something but None came of it."""

        def time_attempt(rule: Rule, node: ir.Node) -> Made:
            started = perf_counter()
            made = attempt(rule, node)
            cost = Cost(1, int(made is not None), perf_counter() - started)
            self.rules.setdefault((rule.stage, rule.name), Cost()).add(cost)
            return made

        return time_attempt

    def add(self, other: Profile) -> None:
        """Take in what was noted elsewhere."""
        for part, cost in other.parts.items():
            self.parts.setdefault(part, Cost()).add(cost)
        for rule, cost in other.rules.items():
            self.rules.setdefault(rule, Cost()).add(cost)


_ACTIVE: ContextVar[Profile | None] = ContextVar("profile", default=None)


def get_profile() -> Profile | None:
    """The profile that is being taken, None where there is none."""
    return _ACTIVE.get()


@contextmanager
def note_costs(profile: Profile | None) -> Iterator[None]:
    """Let costs be noted in a profile."""
    token = _ACTIVE.set(profile)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def time_part(part: str) -> AbstractContextManager[None]:
    """Note the time of a part of a conversion, where somebody asked."""
    profile = _ACTIVE.get()
    return _NOTHING if profile is None else _time_part(profile, part)


@contextmanager
def _time_part(profile: Profile, part: str) -> Iterator[None]:
    started = perf_counter()
    try:
        yield
    finally:
        profile.parts.setdefault(part, Cost()).add(Cost(1, 1, perf_counter() - started))


#: what is entered where nobody asked: each conversion does so some twenty times
_NOTHING = nullcontext()

"""Choices that a case is drawn by: Hypothesis makes them, and a seed those of the cases that are recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

T = TypeVar("T")


class Choices:
    """Choices out of finite ranges, each made by `integer`, which has both its ends and 0 for the simplest.

    `made` lists them as distances from the least that each could be. `turn` is the place among cases that are to differ
    by more than chance, where there are such. `free` ones may differ from run to run: those of recorded cases may not.
    """

    __slots__ = ("_integer", "free", "made", "turn")

    def __init__(self, integer: Callable[[int, int], int], turn: int | None = None, free: bool = True) -> None:
        self._integer = integer
        self.turn = turn
        self.free = free
        self.made: list[int] = []

    @classmethod
    def make_seeded(cls, seed: int | str, turn: int | None = None) -> Self:
        """Those of a seed, which are the same with every version of Hypothesis, as the record needs them."""
        return cls(random.Random(seed).randint, turn, free=False)

    def draw_int(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        choice = self._integer(0, high - low)
        self.made.append(choice)
        return low + choice

    def pick(self, items: Sequence[T], wanted: int | None = None) -> T:
        """One of some items, the simplest of which stands first; one wanted by its place, noted as if by chance."""
        made = self.draw_int(0, len(items) - 1)
        if wanted is not None:
            self.made[-1] = made = wanted % len(items)
        return items[made]

    def draw_chance(self, percent: int, wanted: bool | None = None) -> bool:
        """True in so many of a hundred, or what is wanted, recorded as if it had been drawn."""
        made = self.draw_int(0, 99) >= 100 - percent
        if wanted is None or made == wanted:
            return made
        self.made[-1] = 99 if wanted else 0
        return wanted

    def draw_seed(self) -> int:
        """A seed for a generator of many numbers."""
        return self.draw_int(0, 1 << 20)

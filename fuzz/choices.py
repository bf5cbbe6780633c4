"""Random choices that a case is drawn by, recorded so that they can be made again and made smaller."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices out of finite ranges: those given first, then random ones of a seed, or the least where there is none.

    `choices` records each as the distance from the least that it could be, so smaller numbers make simpler cases.
    `turn` is the place among cases that are to differ by more than chance, where there are such.
    """

    __slots__ = ("_given", "_random", "choices", "turn")

    def __init__(self, seed: int | str | None = None, given: Sequence[int] = (), turn: int | None = None) -> None:
        self._random = None if seed is None else random.Random(seed)
        self.turn = turn
        self._given = given
        self.choices: list[int] = []

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        place = len(self.choices)
        if place < len(self._given):
            choice = min(self._given[place], high - low)
        else:
            choice = 0 if self._random is None else self._random.randint(0, high - low)
        self.choices.append(choice)
        return low + choice

    def pick(self, items: Sequence[T], wanted: int | None = None) -> T:
        """One of some items, the simplest of which stands first; one wanted by its place, recorded as if by chance."""
        made = self.number(0, len(items) - 1)
        if wanted is not None:
            self.choices[-1] = made = wanted % len(items)
        return items[made]

    def chance(self, percent: int, wanted: bool | None = None) -> bool:
        """True in so many of a hundred, or what is wanted, recorded as if it had come by chance."""
        made = self.number(0, 99) >= 100 - percent
        if wanted is None or made == wanted:
            return made
        self.choices[-1] = 99 if wanted else 0
        return wanted

    def seed(self) -> int:
        """A seed for a generator of many numbers."""
        return self.number(0, 1 << 20)


def shrink(choices: Sequence[int], fails: Callable[[Sequence[int]], Sequence[int] | None]) -> list[int]:
    """Make choices smaller, one after the other, while what they draw still fails.

    `fails` draws anew and returns the choices that were made where that failed, None where it did not; it may raise to
    end the search. What is shorter is smaller; of two equally long, the one whose first different choice is.
    """
    best = list(choices)
    improved = True
    while improved:
        improved = False
        for place in range(len(best)):
            if place >= len(best):
                break
            for candidate in _smaller(best, place):
                made = fails(candidate)
                if made is not None and (len(made), list(made)) < (len(best), best):
                    best, improved = list(made), True
                    break
    return best


def _smaller(choices: list[int], place: int) -> list[list[int]]:
    """Variants to try: without a few choices at a place, or with a smaller one there."""
    found = [choices[:place] + choices[place + width :] for width in (4, 1)]
    value = choices[place]
    found += [[*choices[:place], other, *choices[place + 1 :]] for other in dict.fromkeys((0, value // 2, value - 1))]
    return [variant for variant in found if variant != choices and min(variant, default=0) >= 0]

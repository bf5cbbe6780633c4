"""Profiles of fuzzing: how much is tried where options say nothing else."""

from __future__ import annotations

from typing import NamedTuple


class Profile(NamedTuple):
    """Cases for each rule, and seconds in all."""

    examples: int
    seconds: float


PROFILES = {"quick": Profile(8, 5.0), "default": Profile(24, 15.0), "thorough": Profile(400, 7200.0)}

__all__ = ["PROFILES", "Profile"]

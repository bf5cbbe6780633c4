"""Partition: what a target takes of a model, cut where it is cheapest, and the rest."""

from __future__ import annotations

from .execution import Division, load, run
from .partitioning import Partition, partition

__all__ = ["Division", "Partition", "load", "partition", "run"]

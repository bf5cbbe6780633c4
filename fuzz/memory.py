"""What the interpreter was found to take and to refuse, by which the results of further steps are sought."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir


@dataclass(slots=True)
class Memory:
    """The types of results by operator and operands that were taken, and what no other results ever helped."""

    known: dict[tuple[object, ...], tuple[ir.DataType, ...]] = field(default_factory=dict)
    hopeless: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> Memory:
        """The same, which stays as it is."""
        return Memory(dict(self.known), set(self.hopeless))

    @contextmanager
    def recall(self, past: Memory) -> Iterator[None]:
        """Know no more than in the past meanwhile; what is found to be taken is known afterwards."""
        before, self.known, self.hopeless = self.known, dict(past.known), set(past.hopeless)
        try:
            yield
        finally:
            self.known = {**before, **self.known}


__all__ = ["Memory"]

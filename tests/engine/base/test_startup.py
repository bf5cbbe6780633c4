"""Dataclasses made when they are wanted: what they do, beside what the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base import startup
from nnrewrite.engine.base.errors import Span

SPAN = Span("a.rules", 1, 2, 3, 4)


def both(**options: Any) -> list[type[Any]]:
    """One class made by either decorator."""

    def one(made: Any, field: Any) -> type[Any]:
        @made(slots=True, **options)
        class Example:
            """An example."""

            first: int
            second: str = "two"
            third: list[int] = field(default_factory=list)
            kept: int = field(default=0, repr=False, compare=False)

            def __post_init__(self) -> None:
                assert self.first >= 0, "negative"

        return Example  # type: ignore[no-any-return]

    return [one(startup.dataclass, startup.field), one(dataclasses.dataclass, dataclasses.field)]


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"frozen": True, "eq": False}, {"kw_only": True}])
def test_a_class_does_what_the_standard_library_has_it_do(options: dict[str, Any]) -> None:
    def told(make: type[Any]) -> list[Any]:
        one, same, other = make(first=1), make(first=1, kept=5), make(first=1, third=[2])
        found: list[Any] = [one == same, one == other, one == 1, one.third is same.third, make.__match_args__]
        found += [[(f.name, f.init, f.compare) for f in dataclasses.fields(make)], make.__slots__, make.__doc__]
        found += [dataclasses.replace(one, second="x").second, copy.deepcopy(one).third, hasattr(one, "__dict__")]
        if options.get("eq", True):
            found.append(repr(other).rsplit(".", 1)[1])
        for wrong in (
            lambda: make(-1), make, lambda: make(first=-1), lambda: make(first=1, fourth=2),
            lambda: setattr(one, "first", 3), lambda: delattr(one, "second"), lambda: hash(one) and None,
        ):  # fmt: skip
            try:
                found.append(wrong())
            except Exception as error:
                found.append((type(error), f"{error}".rsplit(".", 1)[-1]))
        return found

    ours, theirs = map(told, both(**options))
    assert ours == theirs


def test_objects_are_hashed_pickled_and_frozen() -> None:
    assert {SPAN: 1}[Span("a.rules", 1, 2, 3, 4)] == 1
    assert pickle.loads(pickle.dumps(SPAN)) == SPAN
    assert dataclasses.asdict(Options(opset=17))["opset"] == 17
    with pytest.raises(dataclasses.FrozenInstanceError):
        SPAN.line = 2  # type: ignore[misc]


def test_a_class_compiles_nothing_before_its_first_object() -> None:
    ours, _ = both(frozen=True)
    before = ours.__init__
    ours(1)
    assert ours.__init__ is not before and ours.__init__.__name__ == "__init__"

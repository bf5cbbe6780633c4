"""Every mistake of rule files that can be found before a model is read."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Diagnostic
from ..operators import Catalogue
from . import tree


def check(files: Sequence[tree.RuleFile], catalogue: Catalogue) -> list[Diagnostic]:
    """All mistakes of some rule files that are used together."""
    return []

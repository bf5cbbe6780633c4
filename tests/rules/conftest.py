"""Tests of rules hold them against the interpreter: each is about how a version of that computes."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them so, where they do not say more themselves; `rewrite fuzz` tells which rules another version changes."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("runtime_fact") is None:
            item.add_marker(pytest.mark.runtime_fact("ai-edge-litert", "rewrite fuzz"))

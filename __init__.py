"""Rule-based rewriting of neural networks: declarative rules turn a model of one dialect into another's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.errors import CallError, InternalError, ModelError, RewriteError, RuleError, UnsupportedError
    from .options import Options
    from .pipeline import Conversion, Report, convert, members, rewrite

__all__ = [
    "CallError",
    "Conversion",
    "InternalError",
    "ModelError",
    "Options",
    "Report",
    "RewriteError",
    "RuleError",
    "UnsupportedError",
    "convert",
    "members",
    "rewrite",
]

#: where a name is that is neither an error nor in the pipeline
_OTHERS = {"Options": ".options"}


def __getattr__(name: str) -> Any:
    """Import what is asked for and no more, so that `rewrite --help` does not wait for onnx."""
    import importlib

    if name in __all__:
        module = ".engine.errors" if name.endswith("Error") else _OTHERS.get(name, ".pipeline")
        return getattr(importlib.import_module(module, __name__), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")

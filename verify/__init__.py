"""Verification: reference runtimes, comparison, and reports on both."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import Comparison, Verdict, compare
    from .interpreter import Interpreter, InterpreterError, Kernels, Signature, Tensor
    from .runtime import Runtime
    from .verification import Verification, compare_models

__all__ = [
    "Comparison",
    "Interpreter",
    "InterpreterError",
    "Kernels",
    "Runtime",
    "Signature",
    "Tensor",
    "Verdict",
    "Verification",
    "compare",
    "compare_models",
]

#: where a name is that is not the interpreter's
_OTHERS = {
    "Comparison": ".comparison",
    "Runtime": ".runtime",
    "Verdict": ".comparison",
    "Verification": ".verification",
    "compare": ".comparison",
    "compare_models": ".verification",
}

if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        # Found when first asked for: the worker is a module of this package, and needs none of them.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(_OTHERS.get(name, ".interpreter"), __name__), name)
        globals()[name] = found
        return found

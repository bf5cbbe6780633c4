"""Verification: reference runtimes, comparison, and reports on both."""

from __future__ import annotations

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

"""Rule-based rewriting of neural networks: declarative rules turn a model of one dialect into another's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversion.converted_model import Conversion
    from .conversion.options import Options, OptionsDict
    from .conversion.pipeline import convert, rewrite
    from .conversion.report import Report
    from .conversion.subject import members
    from .engine.base.errors import (
        CallError,
        DestinationError,
        InternalError,
        ModelError,
        RewriteError,
        RuleError,
        UnsupportedError,
        VerificationError,
    )

    __version__: str

__all__ = [
    "CallError",
    "Conversion",
    "DestinationError",
    "InternalError",
    "ModelError",
    "Options",
    "OptionsDict",
    "Report",
    "RewriteError",
    "RuleError",
    "UnsupportedError",
    "VerificationError",
    "__version__",
    "convert",
    "members",
    "rewrite",
]

#: where a name is that is neither an error nor in the pipeline
_OTHERS = {
    "Conversion": ".conversion.converted_model",
    "Options": ".conversion.options",
    "OptionsDict": ".conversion.options",
    "Report": ".conversion.report",
    "members": ".conversion.subject",
}


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """Import what is asked for and no more, so that `rewrite --help` does not wait for onnx."""
        import importlib

        if name == "__version__":
            from importlib.metadata import version

            return version("nnrewrite")
        if name in __all__:
            if name.endswith("Error"):
                return getattr(importlib.import_module(".engine.base.errors", __name__), name)
            from .engine.base.startup import import_onnx_ir

            import_onnx_ir()
            return getattr(importlib.import_module(_OTHERS.get(name, ".conversion.pipeline"), __name__), name)
        raise AttributeError(f"module {__name__} has no attribute {name!r}")

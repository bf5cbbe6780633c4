"""Idle options: those that would have no effect on a conversion, as they are about models of other formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..backends.writers import Writer
from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.packs.headers import read_pair
from ..engine.passes.layout import SOURCE_INTERFACE, Interface
from ..frontends.readers import Reader
from .options import DEFAULT, REAL_PACKS, Options

_TFLITE, _ONNX, _TORCH = "tflite", "onnx", "torch"
_REAL = ", ".join(REAL_PACKS)


@dataclass(frozen=True, slots=True)
class _Route:
    """The dialects that each step of a conversion leads from and to, its rule sets, and whether the last makes code."""

    pairs: tuple[tuple[str, str], ...]
    names: frozenset[str]
    code: bool

    @property
    def crosses(self) -> bool:
        """Whether models become those of another dialect."""
        return any(source != target for source, target in self.pairs)

    @property
    def begins_elsewhere(self) -> bool:
        """Whether models become those of another dialect that were none of ONNX."""
        return self.crosses and self.pairs[0][0] != _ONNX

    @property
    def is_within(self) -> bool:
        """Whether a step reads models whose constants are computed: of ONNX, or of the dialect that it writes."""
        return any(source in (_ONNX, target) for source, target in self.pairs)

    @property
    def makes_onnx(self) -> bool:
        """Whether ONNX models are written."""
        return self.pairs[-1][1] == _ONNX

    def has(self, *pairs: tuple[str, str]) -> bool:
        """Whether one of some pairs is that of a step, of models that stay quantized."""
        return not self.code and any(pair in self.pairs for pair in pairs)


#: what each option is about, and whether it is about a route; of others it depends on the model
_ABOUT: Mapping[str, tuple[str, Callable[[_Route], bool]]] = {
    "opset": ("models that are written as ONNX", lambda route: route.makes_onnx),
    "float": (
        f"models that change their format or are of another than ONNX, and ONNX models by the rules of {_REAL}",
        lambda route: route.crosses or route.pairs[0][0] != _ONNX or not route.names.isdisjoint(REAL_PACKS),
    ),
    "activations": (
        "models of other formats that are written as ONNX",
        lambda route: route.makes_onnx and route.crosses,
    ),
    "exact": ("TensorFlow Lite models that are written as ONNX", lambda route: route.has((_TFLITE, _ONNX))),
    "hybrid": (
        "TensorFlow Lite models that are written as ONNX, and models that become TensorFlow Lite",
        lambda route: route.has((_TFLITE, _ONNX), (_ONNX, _TFLITE)),
    ),
    "fake_quantize": ("models that are written as PyTorch code", lambda route: route.pairs[-1][1] == _TORCH),
    "keep_custom": (
        "models that are written in another format, and not as code",
        lambda route: route.crosses and not route.code,
    ),
    "max_folded_bytes": ("ONNX models and those that keep their format", lambda route: route.is_within),
    "state": ("models of other formats than ONNX that are written in another", lambda route: route.begins_elsewhere),
    "layout": (
        "ONNX models and those that are written in another format",
        lambda route: route.crosses or route.makes_onnx,
    ),
}


def check_options(options: Options, reader: Reader, writer: Writer, route: Sequence[tuple[str, ...]]) -> None:
    """Raise CallError for an option that has no effect on models of a format, on a route to that which is written."""
    for name in list_idle(options, writer, route):
        about, _ = _ABOUT[name]
        raise CallError(
            f"--{name.replace('_', '-')} is about {about}: it has no effect on {reader.name} models that are written"
            f" as {writer.name}"
        )


def list_idle(options: Options, writer: Writer, route: Sequence[tuple[str, ...]]) -> list[str]:
    """The names of options that have no effect on a route to a format that is written.

    Where the user names rule sets, the opset is that which these are asked for, whatever they write.
    """
    asked = [name for name in _ABOUT if getattr(options, name) != getattr(DEFAULT, name)]
    if options.rules != DEFAULT.rules:
        asked = [name for name in asked if name != "opset"]
    if not asked or any(read_pair(names[0]) is None for names in route):
        return []
    pairs = tuple(pair for names in route if (pair := read_pair(names[0])) is not None)
    taken = _Route(pairs, frozenset(name for names in route for name in names), writer.folder)
    idle = [name for name in asked if not _ABOUT[name][1](taken)]
    return [name for name in idle if name != "layout" or Interface.parse(options.layout) != SOURCE_INTERFACE]

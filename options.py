"""Options: what a conversion is asked for beside its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .engine.errors import CallError
from .engine.records import dataclass

#: the runtime that models are made for where the user names none, and the word for none in particular
TARGET, PORTABLE = "onnxruntime", "portable"

#: who keeps what a model remembers between calls: who calls it, or nobody
EXTERNAL, INTERNAL = "external", "internal"
#: what the inner values of a quantized model may be turned into
ACTIVATIONS = ("int8", "uint8")
#: what kernels with real activations and integer weights compute with
HYBRID = ("integers", "real")
#: the rule sets of integer arithmetic, and of hybrid kernels
_EXACT, _HYBRID = "exact", "hybrid"
#: what rule sets bring along: rules for quantized operators that real numbers do not describe to one step
_ALONG = {"tflite2onnx": "kernels"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a conversion is asked for; the command line has an option of the same name for each field.

    `rules` are rule sets that are laid over each other, `opset` the version to write (None: what the rules name).
    `target` is the runtime to make the model for, or `portable`; where an option here is not set, that of the target's
    `target.yaml` holds. `layout` has `source` (inputs and outputs keep their
    order of axes, as when it is empty), `target` (channels come first wherever that saves a permutation) or
    `NAME=NHWC:NCHW` for one input or output. `input_shape` has `NAME=1,224,224,3` for inputs of another shape than the
    file says, `batch` is a number or `dynamic` for another first extent. `member` is one model of a bundle,
    `signature` one of the named ways to call a model (None: `serving_default`, or the only one). `state` is `external`
    (what a model keeps between calls is an input and an output of it) or `internal` (each call begins anew).

    `float_io` makes quantized inputs and outputs real numbers, `float` everything that is quantized, `keep_float16`
    leaves constants of half precision as they are stored. `activations` is `int8` or `uint8`, for the inner values of
    a quantized model (None: what the target has most integer kernels for). `exact` computes quantized operators with
    integers, bit for bit as the reference kernels of the source's runtime do, where there are rules for that.

    `hybrid` is `integers` or `real`: whether products of real activations and integer weights quantize the
    activations in each run, as the kernels of the source's runtime do, or compute with real numbers (None: what the
    target asks for).

    `keep_custom` leaves custom operators that no rule is about as nodes of their own domain, with their options as
    attributes, for a runtime that has kernels for them.
    """

    rules: Sequence[str] = ("tflite2onnx",)
    opset: int | None = None
    target: str = TARGET
    layout: Sequence[str] = ()
    input_shape: Sequence[str] = ()
    batch: int | str | None = None
    float: bool = False
    float_io: bool = False
    keep_float16: bool = False
    activations: str | None = None
    exact: bool = False
    hybrid: str | None = None
    keep_custom: bool = False
    state: str = EXTERNAL
    signature: str | None = None
    member: str | None = None

    def but(self, **changes: Any) -> Options:
        """These options with some fields changed, a single string where several are held; raises TypeError for a
        name that is no field."""
        several = {name: (value,) for name, value in changes.items() if name in _SEVERAL and isinstance(value, str)}
        return replace(self, **(changes | several))

    @property
    def stacked(self) -> tuple[str, ...]:
        """The rule sets of the conversion: those asked for, and on them what other options add.

        Raises CallError for options that exclude each other.
        """
        asked = self.settled
        if asked.exact and asked.float:
            raise CallError("--exact keeps the integers that --float does away with")
        along = () if asked.float else tuple(_ALONG[name] for name in asked.rules if name in _ALONG)
        added = (
            *along,
            _HYBRID if along and asked.hybrid == HYBRID[0] else None,
            _EXACT if asked.exact else None,
            None if asked.target == PORTABLE else asked.target,
            None if asked.float else asked.activations,
        )
        return tuple(dict.fromkeys(name for name in (*asked.rules, *added) if name is not None))

    @property
    def variants(self) -> tuple[Options, ...]:
        """These options, and those with which other rule sets are laid over the same rules."""
        if not any(name in _ALONG for name in self.rules) or self.settled.float:
            return (self,)
        return self, self.but(exact=True), *(self.but(activations=name) for name in ACTIVATIONS)

    @property
    def settled(self) -> Options:
        """These options with what the target sets, wherever nothing was asked for.

        Raises CallError for an unknown target.
        """
        if self.target == PORTABLE:
            return self
        from .target import defaults

        unsaid = {name: value for name, value in defaults(self.target).items() if getattr(self, name) in _UNSAID}
        return replace(self, **unsaid) if unsaid else self


#: what is asked for by one who asks for nothing in particular
DEFAULT = Options()

#: what an option is that nobody set
_UNSAID: tuple[object, ...] = (None, False, ())
_SEVERAL = frozenset(("rules", "layout", "input_shape"))

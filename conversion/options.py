"""Options: what a conversion is asked for beside its model."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypedDict, Unpack

from ..engine.base.errors import CallError, suggest_nearest
from ..engine.base.startup import dataclass
from ..engine.packs.folders import find_built_in, read_packs_once
from .option_values import ACTIVATIONS, HYBRID

#: the runtime that models are made for where neither the user nor the rule sets name one, and the word for none in
#: particular
TARGET, PORTABLE = "onnxruntime", "portable"

#: who keeps what a model remembers between calls: who calls it, or nobody
EXTERNAL, INTERNAL = "external", "internal"
#: the rule set of integer arithmetic
_EXACT = "exact"
#: the rule sets of hybrid kernels, by the rule sets that they lie over
HYBRID_PACKS = {"tflite2onnx": "hybrid", "onnx2tflite": "dynamic-range"}
#: what rule sets bring along: rules for quantized operators that real numbers do not describe to one step
_ALONG = {"tflite2onnx": "kernels"}
#: what they bring along where products of real activations and integer weights need not be real
_DYNAMIC = {"onnx2tflite": "dynamic_quantization"}
#: what they bring along where all that is quantized is to be real numbers
REAL_PACKS = {"onnx2onnx": "real"}
#: what stands for the rule sets that lead from a model's format to that of the result, and where no model is at hand
_RULES = ("tflite2onnx",)
#: the dialect that rules write where nobody says
_DIALECT = "onnx"
#: the dialects whose models are made for targets, each with the target where nobody names one
_TARGETS = {_DIALECT: TARGET, "tflite": "litert"}

#: a name or a path, and one or several of them
Name: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = Name | Sequence[Name]


class OptionsDict(TypedDict, total=False):
    """The fields of Options as keyword arguments of a function, for type checkers: `**options: Unpack[OptionsDict]`."""

    rules: Names
    opset: int | None
    target: Name | None
    to: str | None
    layout: Names
    input_shape: Names
    batch: int | str | None
    float: bool
    float_io: bool
    unfold: bool
    fake_quantize: bool
    keep_float16: bool
    activations: str | None
    exact: bool
    hybrid: str | None
    keep_custom: bool
    max_folded_bytes: int | None
    state: str
    signature: str | None
    inputs: Names
    outputs: Names
    skip: Names
    only: Names
    alone: bool
    member: str | None


def has_built_in_packs(options: Options) -> bool:
    """Whether all rule sets that options name come with the program."""
    names = options.rules if options.target is None else (*options.rules, options.target)
    return None not in map(find_built_in, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a conversion is asked for; the command line has an option of the same name for each field.

    `rules` are rule sets that are laid over each other (empty: those that lead from the model's format to that of the
    result), `opset` the version to write (None: what the rules name). `to` is the format to write, by the ending of
    its files (None: `onnx`).
    `target` is the runtime to make the model for, or `portable` (None: what the rules are for); where an option here
    is not set, that of the target's `target.yaml` holds. `layout` has `source` (inputs and outputs keep their
    order of axes, as when it is empty), `target` (channels come first wherever that saves a permutation) or
    `NAME=NHWC:NCHW` for one input or output. `input_shape` has `NAME=1,224,224,3` for inputs of another shape than the
    file says, `batch` is a number or `dynamic` for another first extent. `member` is one model of a bundle,
    `signature` one of the named ways to call a model (None: `serving_default`, or the only one). `state` is `external`
    (what a model keeps between calls is an input and an output of it) or `internal` (each call begins anew).

    `float_io` makes quantized inputs and outputs real numbers, `float` everything that is quantized, `keep_float16`
    leaves constants of half precision as they are stored. `activations` is `int8` or `uint8`, for the inner values of
    a quantized model (None: what the target has most integer kernels for). `exact` computes quantized operators with
    integers, bit for bit as the reference kernels of the source's runtime do, where there are rules for that.

    `unfold` puts a batch normalization that changes nothing behind layers of source code into which one may have been
    folded, `fake_quantize` lets that code round what was quantized to the grid of its codes.

    `hybrid` is `integers` or `real`: whether products of real activations and integer weights quantize the
    activations in each run, as the kernels of the source's runtime do, or compute with real numbers (None: what the
    target asks for).

    `inputs` and `outputs` are names of values between which a part of the model is converted (empty: the model's own).
    `skip` names rules that are left out, `only` those that alone are tried, each by its name in the rule files. `alone`
    applies them to the model as it is, without the step that a rule set's header puts before its own.

    `keep_custom` leaves custom operators that no rule is about as nodes of their own domain, with their options as
    attributes, for a runtime that has kernels for them. `max_folded_bytes` is how many bytes more than what they are
    made of all constants together may take that are computed in an ONNX model (None: 65,536, or a 64th of all that
    there are).
    """

    rules: Sequence[str] = _RULES
    opset: int | None = None
    target: str | None = None
    to: str | None = None
    layout: Sequence[str] = ()
    input_shape: Sequence[str] = ()
    batch: int | str | None = None
    float: bool = False
    float_io: bool = False
    unfold: bool = False
    fake_quantize: bool = False
    keep_float16: bool = False
    activations: str | None = None
    exact: bool = False
    hybrid: str | None = None
    keep_custom: bool = False
    max_folded_bytes: int | None = None
    state: str = EXTERNAL
    signature: str | None = None
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    skip: Sequence[str] = ()
    only: Sequence[str] = ()
    alone: bool = False
    member: str | None = None

    def __post_init__(self) -> None:
        """Take a path for its text and a single text where several are held; raises CallError for a wrong value."""
        for name, kind in Options.__annotations__.items():
            object.__setattr__(self, name, _convert_value(name, kind, getattr(self, name)))
        if not self.rules:
            object.__setattr__(self, "rules", _RULES)

    def replace(self, **changes: Unpack[OptionsDict]) -> Options:
        """These options with some fields changed; raises CallError for a name that is no field, and a wrong value."""
        for name in changes:
            if name not in Options.__annotations__:
                raise CallError(f"there is no option {name}{suggest_nearest(name, Options.__annotations__)}")
        named: dict[str, Any] = {**changes}
        known = ((getattr(self, name), value) for name, value in named.items())
        if all(type(old) is type(new) and old == new for old, new in known):
            return self
        return replace(self, **named)

    @property
    @partial(read_packs_once, is_built_in=has_built_in_packs)
    def stacked(self) -> tuple[str, ...]:
        """The rule sets of the conversion: those asked for, and on them what other options add.

        Raises CallError for options that exclude each other, and for an unknown rule set.
        """
        asked = self.settled
        if asked.exact and asked.float:
            raise CallError("--exact keeps the integers that --float does away with")
        rules = asked._based
        along = () if asked.float else tuple(_ALONG[name] for name in rules if name in _ALONG)
        hybrid = asked.hybrid == HYBRID[0] and not asked.float
        dynamic = asked.hybrid != HYBRID[1] and not asked.float
        added = (
            *along,
            *(REAL_PACKS[name] for name in rules if name in REAL_PACKS and asked.float),
            *(_DYNAMIC[name] for name in rules if name in _DYNAMIC and dynamic),
            *(HYBRID_PACKS[name] for name in rules if name in HYBRID_PACKS and hybrid),
            _EXACT if asked.exact else None,
            *asked._aimed,
        )
        return tuple(dict.fromkeys(name for name in (*rules, *added) if name is not None))

    @property
    def runtime(self) -> str:
        """The target: the one that is asked for, else the one that the rule sets make models for."""
        if self.target is not None:
            return self.target
        from ..engine.packs.headers import find_pair

        source, written = find_pair(self.rules) or (None, _DIALECT)
        unchanged = source == written == _DIALECT
        return PORTABLE if unchanged or written not in _TARGETS else _TARGETS[written]

    @property
    def _aimed(self) -> Sequence[str | None]:
        """The rule sets of the target, and of the signedness that it asks for where values are quantized anew."""
        from ..engine.packs.headers import find_pair, read_pair

        source, written = find_pair(self.rules) or (None, _DIALECT)
        made = None if self.target is None else (read_pair(self.target) or (None, _DIALECT))[1]
        if made not in (None, written):
            raise CallError(f"target {self.target} is for {made} models, the rules write {written}")
        if written not in _TARGETS:
            return ()
        signed = self.float or source == written or written != _DIALECT
        return self.runtime, None if signed else self.activations

    @property
    def _based(self) -> Sequence[str]:
        """The rule sets asked for, with those that they lie over: these bring along what they bring by themselves."""
        if all(name in _ALONG for name in self.rules):
            return self.rules
        from ..engine.packs import headers

        return headers.add_bases(self.rules)

    @property
    def variants(self) -> tuple[Options, ...]:
        """These options, and those with which other rule sets are laid over the same rules."""
        if not any(name in _ALONG for name in self._based) or self.settled.float:
            return (self,)
        from .target import list_extensions

        others = (self.replace(target=name) for name in list_extensions(self.runtime))
        return self, self.replace(exact=True), *(self.replace(activations=name) for name in ACTIVATIONS), *others

    @property
    @partial(read_packs_once, is_built_in=has_built_in_packs)
    def settled(self) -> Options:
        """These options with what the target sets, wherever nothing was asked for.

        Raises CallError for an unknown target.
        """
        from .target import read_defaults

        unsaid = {name: value for name, value in read_defaults(self.runtime).items() if getattr(self, name) in _UNSAID}
        return replace(self, **unsaid) if unsaid else self


def _convert_value(name: str, kind: str, value: Any) -> Any:
    """A value as a field of a kind, which is its annotation, holds it; raises CallError where it cannot."""
    wanted, convert = _KINDS[kind.removesuffix(" | None")]
    if value is None and kind.endswith(" | None"):
        return None
    try:
        found = convert(value)
    except TypeError:
        raise CallError(f"{name} takes {wanted}, got {_describe_value(value)}") from None
    known = _KNOWN.get(name, (found,))
    if found not in known:
        raise CallError(
            f"{name} takes {' or '.join(known)}, got {_describe_value(value)}{suggest_nearest(found, known)}"
        )
    return found


def _check_integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _check_text(value: Any) -> str:
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError
    return text


def _check_truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _check_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple | list):  # which takes long to tell of abstract classes
        if isinstance(value, str | os.PathLike):
            return (_check_text(value),)
        if not isinstance(value, Sequence):
            raise TypeError
    return tuple(_check_text(one) for one in value)


def _describe_value(value: Any) -> str:
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, bool) or value is None:
        return f"{value}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return f"{value!r:.60}" if isinstance(value, Sequence) else f"an object of type {type(value).__name__}"


#: what a field takes, in words, and how a value becomes that, by the field's annotation; TypeError where it cannot
_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Sequence[str]": ("a text or a sequence of texts", _check_texts),
    "int": ("an integer", _check_integer),
    "int | str": ("an integer or a text", lambda value: value if isinstance(value, str) else _check_integer(value)),
    "str": ("a text", _check_text),
    "bool": ("True or False", _check_truth),
}
#: the values of fields that have a few
_KNOWN = {"activations": ACTIVATIONS, "hybrid": HYBRID, "state": (EXTERNAL, INTERNAL)}

#: what is asked for by one who asks for nothing in particular
DEFAULT = Options()

#: what an option is that nobody set
_UNSAID: tuple[object, ...] = (None, False, ())

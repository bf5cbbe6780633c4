"""Options: those that a test names, and others that ops.yaml lets an operator have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from ..engine.dialects.operators import OperatorSpec, Option
from ..engine.expressions.compile import Frame, evaluate
from ..engine.expressions.functions import DTYPES, convert_to_python
from ..engine.rewrite.pattern import NodePattern, OptionPattern
from .choices import Choices
from .sketch import Value
from .subjects import Subject

#: in so many of a hundred draws an option that the rule reads, and one that it does not mention, is not its default
_OTHER, _UNMENTIONED = 40, 6
#: in so many an option that names an element type names one of which the rule speaks
_NAMED = 60
#: the same for an enumeration that the rule does not mention, which others may deal with
_UNMENTIONED_WORD = 16
#: in so many an option that the test names is left out of the file, which is how its default is read
_LEFT_OUT = 5
#: so many of the fixed cases are without no option, and after so many more each option has been left out of one
_WHOLE, _TURNS = 3, 7
#: numbers for an option of which 0 is all that is known
_COUNTING = (1, 2, 4)
#: element types that hold all that is drawn: what becomes of other numbers is not said anywhere
_WIDE = frozenset({"bool", "f16", "f32", "f64", "i32", "i64"})
#: the role of operators whose required option is an element type, and such types
_CONVERT, _TYPES = "convert", (int(ir.DataType.INT64), int(ir.DataType.INT32), int(ir.DataType.FLOAT))
#: in so many an option is given a value that ops.yaml names, or one beside a default that no schema tells more of
_NAMED_OTHER = 25
#: the axes of an image in front of those that a window has a number for: batch and channels
_BEFORE_WINDOW = 2


def draw_options(
    choices: Choices,
    subject: Subject,
    pattern: NodePattern,
    spec: OperatorSpec,
    operands: Sequence[Value | None],
    named: dict[str, Any],
) -> tuple[dict[str, Any], bool]:
    """Draw the options of a node, and tell whether one was drawn that the test does not name.

    `named` holds what the test names, and takes in what the pattern's variables stand for; the node has these
    `operands`. An option that is left out has its default.
    """
    drawing = _Drawing(choices, subject, spec, operands, named)
    found = drawing.found
    patterns = {option.name: option for option in pattern.options}
    lacking = _choose_absent(choices, subject, spec, patterns, named)
    counts = spec.facts.fuzz.counts
    stands_in = _is_evaluated(spec, patterns, named)
    for name, option in spec.options.items():
        wanted = patterns.get(name)
        if wanted is not None and wanted.graph is not None:
            continue
        variable = wanted.variable if wanted is not None else None
        if name in named or variable in named:
            drawing.take_named(name, option, variable, None if choices.turn is None else name in lacking)
        elif wanted is not None and variable is None:
            found[name] = convert_to_python(evaluate(wanted.value, Frame(named)))
        elif counts.get(name) in {operand.name for operand in spec.operands}:
            found[name] = len(operands)
        else:
            drawing.draw_unnamed(name, option, variable, stands_in)
        if variable not in (None, "_") and name in found:
            named[str(variable)] = found[name]
    return {name: value for name, value in found.items() if value is not None}, drawing.widened


@dataclass(slots=True)
class _Drawing:
    """The options of a node as far as they are `found`, and whether one is `widened`: drawn beyond what is named."""

    choices: Choices
    subject: Subject
    spec: OperatorSpec
    operands: Sequence[Value | None]
    named: dict[str, Any]
    found: dict[str, Any] = field(default_factory=dict)
    widened: bool = False

    def take_named(self, name: str, option: Option, variable: str | None, is_left_out: bool | None) -> None:
        """Give an option what is named for it, or at times another type, or nothing, as is wished in some turns."""
        choices, subject, named = self.choices, self.subject, self.named
        self.found[name] = named[name if name in named else str(variable)]
        types = [one for one in subject.landmarks.types if one in _WIDE] if choices.free else []
        if (
            name == self.spec.facts.names_type
            and option.type not in subject.reads.enums
            and types
            and choices.draw_chance(_NAMED)
        ):
            self.found[name] = int(DTYPES[choices.pick(types)])
            named |= dict.fromkeys({name, str(variable or name)} & named.keys(), self.found[name])
            self.widened = True
        if _may_lack(option, subject, self.spec) and choices.draw_chance(_LEFT_OUT, is_left_out):
            del self.found[name]
            self.widened = True
            named |= dict.fromkeys({name, str(variable or name)} & named.keys(), option.default)

    def draw_unnamed(self, name: str, option: Option, variable: str | None, stands_in: bool) -> None:
        """Give an option that nothing is named for another value than its default, more often where rules read it."""
        choices, subject, spec = self.choices, self.subject, self.spec
        if variable == "_" and option.required and spec.role == _CONVERT:
            self.found[name] = choices.pick(_TYPES)
            return
        read = variable not in (None, "_")
        stays = name in spec.facts.fuzz.stays
        others = [] if stays else _list_others(option, subject)
        word = option.type in subject.reads.enums and not read
        often = _OTHER if read else _UNMENTIONED_WORD if word else _UNMENTIONED
        counting = spec.table is not None and option.type == "int32" and option.default == 0
        if counting and read and not stays and not others:
            others, often = list(_COUNTING), _UNMENTIONED  # masks, axes
        if not others and read and not stays and choices.free and not stands_in:
            others, often = _list_beside(choices, option, spec, subject, self.operands), _NAMED_OTHER
        if others and choices.draw_chance(often):
            self.found[name] = choices.pick(others)
            self.widened = True


def _may_lack(option: Option, subject: Subject, spec: OperatorSpec) -> bool:
    """Whether a file may say nothing of an option: numbers in tables of the format, whatever a custom operator has."""
    numbers = option.type in ("bool", "float", *subject.reads.enums) or option.type.startswith("int")
    return subject.of_source and (spec.table is None or numbers)


def _choose_absent(
    choices: Choices,
    subject: Subject,
    spec: OperatorSpec,
    patterns: Mapping[str, OptionPattern],
    named: Mapping[str, Any],
) -> list[str]:
    """The options that a fixed case is without: each of those that the test names has its turn, the first have none."""
    if choices.turn is None or choices.turn < _WHOLE:
        return []
    told = {name for name in spec.options if name in named or (name in patterns and patterns[name].variable in named)}
    found = [name for name, option in spec.options.items() if name in told and _may_lack(option, subject, spec)]
    return found[choices.turn - _WHOLE :: _TURNS]


def _list_others(option: Option, subject: Subject) -> list[Any]:
    """Values that an option may have besides its default; none where nothing is known of it."""
    enumeration = subject.reads.enums.get(option.type)
    if option.type == "bool":
        return [not option.default]
    if enumeration is not None and option.type != "TensorType":
        unheeded = subject.reads.facts.fuzz.unheeded.get(option.type, ())
        return [name for name in enumeration if name != option.default and name not in unheeded]
    if subject.of_source and subject.reads.schemas and option.default == 1:
        return [0]  # most are switches
    if option.type.startswith("int") and isinstance(option.default, int) and option.default > 0:
        return [option.default + 1, option.default - 1 if subject.reads.schemas else option.default + 2]
    return []


def _is_evaluated(spec: OperatorSpec, patterns: Mapping[str, OptionPattern], named: Mapping[str, Any]) -> bool:
    """Whether the evaluator of the onnx package is asked, which reads past some options, and not the runtime."""
    for name in spec.facts.fuzz.reference:
        wanted = patterns.get(name)
        if wanted is None or wanted.graph is not None:
            continue
        if wanted.variable is not None or evaluate(wanted.value, Frame(dict(named))) != spec.options[name].default:
            return True
    return False


def _list_beside(
    choices: Choices, option: Option, spec: OperatorSpec, subject: Subject, operands: Sequence[Value | None]
) -> list[Any]:
    """Values that ops.yaml names for an option that its schema tells nothing of, or some number beside its default.

    No recorded case has one.
    """
    trials = subject.reads.facts.fuzz
    if option.name in trials.others:
        return [value for value in trials.others[option.name] if value != option.default]
    if option.name in trials.windows and operands and operands[0] is not None:
        numbers = [choices.pick(trials.windows[option.name]) for _ in operands[0].content.shape[_BEFORE_WINDOW:]]
        pairs = [number if isinstance(number, tuple) else (number,) for number in numbers]
        return [[number for numbers in zip(*pairs, strict=True) for number in numbers]] if pairs else []
    if isinstance(option.default, float):
        return [option.default + 0.5, 2 * option.default + 0.25]
    number = option.type.startswith("int") and type(option.default) is int
    return [1] if number and option.default == 0 and (spec.schema is not None or spec.table is None) else []

"""Habits from Python and other languages in rule files, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

#: what stands after a dot elsewhere, and is a function here
_MEMBERS = {
    "shape": "shape({0})",
    "ndim": "rank({0})",
    "rank": "rank({0})",
    "dim": "rank({0})",
    "dtype": "dtype({0})",
    "type": "dtype({0})",
    "size": "size({0})",
    "value": "value({0})",
    "data": "value({0})",
    "numpy": "value({0})",
    "scale": "scale({0})",
    "zero_point": "zero_point({0})",
    "op": "producer({0})",
    "users": "users({0})",
}
_CLIP = "of numbers it is `max(low, min(high, n))`"
_POWER = "of numbers it is `n * n`, `1 << n` or `exp(n * log(a))`"
#: what to write for `a ** b`
POWER = f"there is no power: {_POWER}, of values of the graph an operator"
#: functions of other languages, and how to say the same
_FUNCTIONS = {
    "clamp": _CLIP,
    "clip": _CLIP,
    "pow": _POWER,
    "power": _POWER,
    "round": "the nearest integer to a number is `floor(n + 0.5)`",
    "all": "that it holds for all is written `len([n for n in ns if not n > 0]) == 0`",
    "map": "a list is computed from another by `[f(n) for n in ns]`",
    "filter": "some items of a list are `[n for n in ns if n > 0]`",
    "list": "a list is written `[a, b]`",
    "tuple": "a list is written `[a, b]`",
    "set": "the items of a list without repeats are `unique(ns)`",
    "str": 'a message puts a value in by its name, `"not {n}"`',
    "isinstance": '`dtype(x)` is the element type of a value, such as `"f32"`; `is_float(dtype(x))` asks for a kind',
    "type": '`dtype(x)` is the element type of a value, such as `"f32"`',
    "numel": "`size(x)` is the number of elements of a value",
    "ndim": "`rank(x)` is the number of dimensions of a value",
}
_MODULES = frozenset({"math", "np", "numpy", "onnx", "operator", "tf", "torch"})
#: functions that an operator may be called like, besides those that have its name
_ALIASES = {"clamp": "clip", "power": "pow"}
#: words that begin what rules say in another way
_WORDS = {
    "if": "a rule applies where a clause says so: write `where` for `if`",
    "elif": "each case is a rule of its own, with a clause `where`; an expression is `a if c else b`",
    "assert": '`where condition` lets a rule apply, `require condition, "why not"` refuses the model',
    "return": "a template ends with the equation of what it yields, `y = ...`",
    "lambda": "a function is a definition beside the rules, `def twice(n) = n * 2`",
    "import": "rules call the functions of the language, and definitions of their own",
}


def suggest_for_member(name: str, written: str) -> str | None:
    """What to write for `x.shape` and the like."""
    form = _MEMBERS.get(written)
    return None if form is None else f"write `{form.format(name)}`"


def suggest_for_function(name: str, operators: Iterable[str]) -> str | None:
    """What to write for a function that is not there: another form, or one of the `operators` of the graph."""
    plain = _ALIASES.get(name, name.replace("_", ""))
    same = next(
        (f"of values of the graph it is the operator `{one}`" for one in operators if one.lower() == plain), None
    )
    return ", ".join(said for said in (_FUNCTIONS.get(name), same) if said) or None


def suggest_for_module(name: str) -> str | None:
    """What to write for a module that functions or constants are asked of."""
    return "there are no modules: functions and constants stand alone, `sqrt(n)`, `PI`" if name in _MODULES else None


def suggest_for_word(name: str) -> str | None:
    """What to write for a keyword of another language that begins a statement."""
    return _WORDS.get(name)

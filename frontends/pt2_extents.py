"""Symbolic sizes of exported programs as names of dimensions: `Mul(Integer(2), Symbol('s77', ...))` is `2*s77`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

#: how functions of SymPy are written between their arguments
_INFIX = {"Add": "+", "Mul": "*", "Pow": "**", "FloorDiv": "//", "Mod": "%", "CleanDiv": "//"}
#: longer than any name of a dimension should be
_LENGTH = 200


def read_extent(size: Mapping[str, Any]) -> int | str | None:
    """A size as the file has it: a number, the name of one, or None for one that cannot be said in short; raises
    ValueError for what is none."""
    if "as_int" in size:
        number = size["as_int"]
        if type(number) is not int or number < 0:
            raise ValueError(f"an extent is {number!r:.40}")
        return number
    text = size["as_expr"]["expr_str"]
    if not isinstance(text, str) or len(text) > _LENGTH * 10:
        return None
    try:
        name = _write(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, ValueError):
        return None
    if name.isdecimal():
        return int(name)
    return name if len(name) <= _LENGTH else None


def _write(node: ast.expr) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{_write(node.operand)}"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return f"{node.value}"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
        raise ValueError("no expression of sizes")
    kind, first = node.func.id, node.args[0]
    if kind == "Symbol" and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    if kind == "Integer":
        return _write(first)
    operands = [_write(one) for one in node.args]
    if kind not in _INFIX:
        return f"{kind}({', '.join(operands)})"
    return _INFIX[kind].join(one if one.isidentifier() or one.isdecimal() else f"({one})" for one in operands)

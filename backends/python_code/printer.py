"""Python's syntax trees as text: one style of layout, that of `ruff format`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

#: columns of a line
WIDTH = 100
_INDENT = "    "

_BINARY: dict[type[ast.operator], tuple[str, int]] = {
    ast.BitOr: ("|", 6),
    ast.BitXor: ("^", 7),
    ast.BitAnd: ("&", 8),
    ast.LShift: ("<<", 9),
    ast.RShift: (">>", 9),
    ast.Add: ("+", 10),
    ast.Sub: ("-", 10),
    ast.Mult: ("*", 11),
    ast.Div: ("/", 11),
    ast.FloorDiv: ("//", 11),
    ast.Mod: ("%", 11),
    ast.MatMult: ("@", 11),
    ast.Pow: ("**", 13),
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_UNARY: dict[type[ast.unaryop], tuple[str, int]] = {
    ast.Not: ("not ", 4),
    ast.USub: ("-", 12),
    ast.Invert: ("~", 12),
    ast.UAdd: ("+", 12),
}
_TEST, _COMPARISON, _UNARY_LEVEL, _ATOM = 1, 5, 12, 15


def write_expression(node: ast.expr, level: int = 0) -> str:
    """An expression on one line, in parentheses where what is around it binds tighter than `level`."""
    text, own = _write(node)
    return f"({text})" if own < level else text


def _write(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Constant(value=value) if value is ...:
            return "...", _ATOM
        case ast.Constant(value=str() as text):
            return quote(text), _ATOM
        case ast.Constant(value=value):
            return _format_number(value), _ATOM
        case ast.Name(id=name):
            return name, _ATOM
        case ast.Attribute(value=value, attr=attr):
            return f"{write_expression(value, _ATOM)}.{attr}", _ATOM
        case ast.Call(func=function):
            return f"{write_expression(function, _ATOM)}({', '.join(_format_arguments(node))})", _ATOM
        case ast.Tuple(elts=[one]):
            return f"({write_expression(one)},)", _ATOM
        case ast.Tuple(elts=items):
            return f"({', '.join(map(write_expression, items))})", _ATOM
        case ast.List(elts=[ast.Starred(value=ast.GeneratorExp() as each)]):
            return f"[{write_expression(each)[1:-1]}]", _ATOM
        case ast.List(elts=items):
            return f"[{', '.join(map(write_expression, items))}]", _ATOM
        case ast.Starred(value=value):
            return f"*{write_expression(value, _TEST)}", 0
        case ast.Subscript(value=value, slice=places):
            items = places.elts if isinstance(places, ast.Tuple) and places.elts else [places]
            return f"{write_expression(value, _ATOM)}[{', '.join(map(_format_place, items))}]", _ATOM
        case ast.UnaryOp(op=op, operand=operand):
            sign, own = _UNARY[type(op)]
            return f"{sign}{write_expression(operand, own)}", own
        case ast.BinOp():
            return _format_binary(node)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            both = write_expression(left, _COMPARISON + 1), write_expression(right, _COMPARISON + 1)
            return f"{both[0]} {_COMPARE[type(op)]} {both[1]}", _COMPARISON
        case ast.IfExp(test=test, body=body, orelse=other):
            return (
                f"{write_expression(body, _TEST)} if {write_expression(test, _TEST)} else {write_expression(other)}",
                0,
            )
        case ast.GeneratorExp(elt=item, generators=[each]):
            return (
                f"({write_expression(item)} for {write_expression(each.target)} in {write_expression(each.iter)})",
                _ATOM,
            )
    raise TypeError(f"{type(node).__name__} is not written")


def _format_arguments(call: ast.Call) -> list[str]:
    if len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp) and not call.keywords:
        return [write_expression(call.args[0])[1:-1]]
    keywords = (f"{_write_keyword(keyword)}{write_expression(keyword.value)}" for keyword in call.keywords)
    return [*map(write_expression, call.args), *keywords]


def _format_binary(node: ast.BinOp) -> tuple[str, int]:
    sign, own = _BINARY[type(node.op)]
    power = isinstance(node.op, ast.Pow)
    left = write_expression(node.left, own + 1 if power else own)
    right = write_expression(node.right, _UNARY_LEVEL if power else own + 1)
    if power and _is_simple(node.left) and _is_simple(node.right):
        return f"{left}**{right}", own
    return f"{left} {sign} {right}", own


def _is_simple(node: ast.expr) -> bool:
    """Whether a power of it is written without blanks."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name | ast.Attribute) and _is_simple(node.value)
    return isinstance(node, ast.Name | ast.Constant)


def _format_place(node: ast.expr) -> str:
    if not isinstance(node, ast.Slice):
        return write_expression(node)
    parts = [node.lower, node.upper, *([node.step] if node.step is not None else [])]
    texts = ["" if part is None else write_expression(part) for part in parts]
    plain = all(
        part is None
        or isinstance(part, ast.Name | ast.Constant)
        or (isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant | ast.Name))
        for part in parts
    )
    if plain:
        return ":".join(texts)
    text = texts[0]
    for part in texts[1:]:
        text += f"{' ' if text else ''}:{' ' if part else ''}{part}"
    return text


def quote(text: str) -> str:
    """A string literal; no text ends it early."""
    mark = "'" if '"' in text and "'" not in text else '"'
    return mark + "".join(_escape(letter, mark) for letter in text) + mark


def _escape(letter: str, mark: str) -> str:
    if letter in (mark, "\\"):
        return f"\\{letter}"
    return letter if letter.isascii() and letter.isprintable() else letter.encode("unicode_escape").decode()


def _format_number(value: object) -> str:
    return repr(value).replace("e+", "e") if isinstance(value, float) else repr(value)


def _write_keyword(keyword: ast.keyword) -> str:
    """What stands before the value of an argument by name, or before several."""
    return "**" if keyword.arg is None else f"{keyword.arg}="


def write_head(method: str, taken: Sequence[str], kind: str) -> Iterator[str]:
    """The lines with which a method within a class begins, `taken` beside `self`; nothing is said of no `kind`."""
    arrow = f" -> {kind}" if kind else ""
    joined = ", ".join(["self", *taken])
    line = f"{_INDENT}def {method}({joined}){arrow}:"
    if len(line) <= WIDTH:
        yield line
        return
    inner = _INDENT * 2
    yield f"{_INDENT}def {method}("
    yield from [inner + joined] if len(inner + joined) <= WIDTH else (f"{inner}{one}," for one in ("self", *taken))
    if len(f"{_INDENT}){arrow}:") <= WIDTH:
        yield f"{_INDENT}){arrow}:"
        return
    outer, _, items = kind.removesuffix("]").partition("[")
    yield f"{_INDENT}) -> {outer}["
    yield from (f"{inner}{item}," for item in items.split(", "))
    yield f"{_INDENT}]:"


def write_statement(prefix: str, node: ast.expr, depth: int, comment: str = "") -> Iterator[str]:
    """The lines of a statement that ends in an expression: on one line, or what is in its brackets on lines of its own.

    The comment is left out where it does not fit.
    """
    yield from _lay_out(_INDENT * depth + prefix, node, depth, "", comment)


def write_return(node: ast.expr, depth: int) -> Iterator[str]:
    """The lines of a statement that returns; several results have no brackets where they fit on one line."""
    line = f"{_INDENT * depth}return {write_expression(node)[1:-1]}"
    if isinstance(node, ast.Tuple) and len(node.elts) > 1 and len(line) + 2 <= WIDTH:
        yield line
    else:
        yield from write_statement("return ", node, depth)


def _lay_out(head: str, node: ast.expr, depth: int, tail: str, comment: str = "") -> Iterator[str]:
    line = f"{head}{write_expression(node)}{tail}"
    open_wide = isinstance(node, ast.Call) and _has_layers(node)
    if len(line) <= WIDTH and not open_wide:
        remark = f"  # {comment}" if comment else ""
        yield line + remark if len(line + remark) <= WIDTH else line
        return
    opened = _open(node)
    if opened is None:
        yield from _lay_out_terms(head, node, depth, tail) if isinstance(node, ast.BinOp) else [line]
        return
    before, items, after = opened
    yield f"{head}{before}"
    inner = _INDENT * (depth + 1)
    flat = ", ".join(f"{name}{write_expression(item)}" for name, item in items)
    if not open_wide and isinstance(node, ast.Call) and len(inner + flat) <= WIDTH:
        yield inner + flat
    else:
        for name, item in items:
            yield from _lay_out(f"{inner}{name}", item, depth + 1, ",")
    yield f"{_INDENT * depth}{after}{tail}"


def _lay_out_terms(head: str, node: ast.BinOp, depth: int, tail: str) -> Iterator[str]:
    """A sum or a product with each term on a line of its own, in brackets."""
    own, inner = _BINARY[type(node.op)][1], _INDENT * (depth + 1)
    lines: list[str] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and _BINARY[type(left.op)][1] == own and not isinstance(left.op, ast.Pow):
        lines.append(f"{_BINARY[type(left.op)][0]} {write_expression(left.right, own + 1)}")
        left = left.left
    yield f"{head}("
    yield from (f"{inner}{line}" for line in [write_expression(left, own), *reversed(lines)])
    yield f"{_INDENT * depth}){tail}"


def _open(node: ast.expr) -> tuple[str, Sequence[tuple[str, ast.expr]], str] | None:
    if isinstance(node, ast.Call):
        items = [("", one) for one in node.args]
        items += [(_write_keyword(keyword), keyword.value) for keyword in node.keywords]
        return f"{write_expression(node.func, _ATOM)}(", items, ")"
    if isinstance(node, ast.Tuple | ast.List):
        marks = "()" if isinstance(node, ast.Tuple) else "[]"
        return marks[0], [("", one) for one in node.elts], marks[1]
    return None


def _has_layers(call: ast.Call) -> bool:
    """Whether a call takes several layers, each of which gets a line: calls of classes, which begin with a capital."""

    def is_layer(one: ast.expr) -> bool:
        function = one.func if isinstance(one, ast.Call) else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return isinstance(one, ast.Starred) or name[:1].isupper()

    return len(call.args) > 1 and all(map(is_layer, call.args))

"""What lark makes of a rule file turned into our syntax tree: one method for each rule of the grammar."""

from __future__ import annotations

import ast
from typing import Any

import lark

from ..base.errors import Span
from ..base.startup import replace
from . import tree
from .diagnostics import ParseError
from .precedence import build_expression, locate_token

#: how many digits an integer may be written with
_DIGITS = 1000


class TreeBuilder(lark.Transformer[lark.Token, Any]):
    """Turns lark's tree, leaves first, into ours: one method a grammar rule."""

    def __init__(self, file: str) -> None:
        super().__init__(visit_tokens=False)
        self._file = file

    def _call_userfunc(self, subtree: lark.Tree[Any], new_children: list[Any] | None = None) -> Any:
        children = subtree.children if new_children is None else new_children
        meta = subtree.meta
        span = Span(self._file, 1, 1, 1, 1)
        if not meta.empty:
            span = Span(self._file, meta.line, meta.column, meta.end_line, meta.end_column)
        return getattr(self, subtree.data)(span, children)

    def _locate_token(self, token: lark.Token) -> Span:
        return locate_token(token, self._file)

    def _unquote(self, token: lark.Token) -> str:
        try:
            text = ast.literal_eval(token)
        except (SyntaxError, ValueError) as error:
            help = "a backslash stands before a quote, a backslash, `n` or `t`"
            raise ParseError(self._locate_token(token), "this string has an escape that there is not", help) from error
        assert isinstance(text, str)
        return text

    # ---- files, tables, definitions

    def start(self, span: Span, children: list[Any]) -> tree.RuleFile:
        (name, beneath, after, source, target, low, high, default), *rest = children
        items = tuple(item for item in rest if isinstance(item, tree.Rule | tree.Table | tree.Definition))
        groups = tuple(item for item in rest if isinstance(item, tree.Group))
        fragments = tuple(item for item in rest if isinstance(item, tree.Fragment))
        uses, reverses = (
            tuple(one for item in rest if isinstance(item, tuple) and item[0] == word for one in item[1])
            for word in ("use", "reverse")
        )
        opset = None if default is None else int(default)
        header = Span(self._file, span.line, span.column, span.line, span.column + len("ruleset"))
        opsets = int(low), int(high)
        base, *without = beneath or (None,)
        return tree.RuleFile(
            str(name),
            str(source),
            str(target),
            opsets,
            opset,
            items,
            header,
            base,
            tuple(without),
            groups=groups,
            fragments=fragments,
            uses=uses,
            reverses=reverses,
            after=tuple(after or ()),
        )

    def use(self, span: Span, children: list[Any]) -> tuple[str, list[tree.Use]]:
        pack, *names = children
        return "use", [tree.Use(str(pack), str(name), str(called or name), span) for name, called in names]

    def reverse(self, span: Span, children: list[Any]) -> tuple[str, list[tree.Use]]:
        pack, *names = children
        return "reverse", [tree.Use(str(pack), str(name), str(name), span) for name in names]

    def used(self, span: Span, children: list[Any]) -> list[Any]:
        return children

    def fragment(self, span: Span, children: list[Any]) -> tree.Fragment:
        name, *parameters, body = children
        return tree.Fragment(
            str(name), tuple(str(p) for p in parameters if p is not None), body, self._locate_token(name)
        )

    def options(self, span: Span, children: list[Any]) -> tree.Fragment:
        name, *parts = children
        attributes = tuple(part for part in parts if isinstance(part, tree.Attribute))
        clauses = tuple(part for part in parts if not isinstance(part, tree.Attribute))
        return tree.Fragment(str(name), (), attributes, self._locate_token(name), clauses)

    def group(self, span: Span, children: list[Any]) -> tree.Group:
        name, *members = children
        return tree.Group(str(name), tuple(str(member) for member in members), self._locate_token(name))

    def header(self, span: Span, children: list[Any]) -> list[Any]:
        return children

    def pack(self, span: Span, children: list[Any]) -> list[str]:
        return [str(child) for child in children if child is not None]

    def table(self, span: Span, children: list[Any]) -> tree.Table:
        name, *rest = children
        entries = tuple(item for item in rest if isinstance(item, tree.Entry))
        tests = tuple(item for item in rest if isinstance(item, tree.Test))
        return tree.Table(str(name), entries, tests, self._locate_token(name))

    def entry(self, span: Span, children: list[Any]) -> tree.Entry:
        source, arrow, target = children
        return tree.Entry(str(source), str(target), arrow == "<=>", span)

    def __default__(self, data: str, children: list[Any], meta: Any) -> Any:
        raise AssertionError(f"grammar rule {data} has no method")

    # `def` is a Python keyword and `list` a type, so their methods are installed under their names below the class.
    def _definition(self, span: Span, children: list[Any]) -> tree.Definition:
        name, *parameters, body = children
        return tree.Definition(
            str(name), tuple(str(p) for p in parameters if p is not None), body, self._locate_token(name)
        )

    # ---- rules

    def rule(self, span: Span, children: list[Any]) -> tree.Rule:
        name, *parts = children
        modifiers: dict[str, Any] = {}
        for key, value in (part for part in parts if isinstance(part, tuple)):
            if key in modifiers:
                raise ParseError(self._locate_token(name), f"rule `{name}` says its `{key}` twice")
            modifiers[key] = value

        def select(*kinds: type) -> tuple[Any, ...]:
            return tuple(part for part in parts if isinstance(part, kinds))

        stage, *other_stages = modifiers.get("stage", ("lower",))
        return tree.Rule(
            str(name),
            stage,
            modifiers.get("priority", 0),
            modifiers.get("over", ()),
            select(tree.Equation),
            select(tree.Where, tree.Require, tree.Remark, tree.Let),
            select(tree.Template),
            select(tree.Test),
            self._locate_token(name),
            select(tree.Definition),
            tuple(other_stages),
        )

    def stage(self, span: Span, children: list[Any]) -> tuple[str, tuple[str, ...]]:
        return "stage", tuple(map(str, children))

    def priority(self, span: Span, children: list[Any]) -> tuple[str, int]:
        return "priority", int(children[0])

    def over(self, span: Span, children: list[Any]) -> tuple[str, tuple[tree.Entry, ...]]:
        return "over", tuple(children)

    def where(self, span: Span, children: list[Any]) -> tree.Where:
        condition, message = children
        return tree.Where(condition, None if message is None else self._unquote(message), span)

    def require(self, span: Span, children: list[Any]) -> tree.Require:
        return tree.Require(children[0], self._unquote(children[1]), span)

    def remark(self, span: Span, children: list[Any]) -> tree.Remark:
        return tree.Remark(self._unquote(children[0]), span)

    def let(self, span: Span, children: list[Any]) -> tree.Let:
        return tree.Let(str(children[0]), children[1], self._locate_token(children[0]))

    def lets(self, span: Span, children: list[Any]) -> tree.Let:
        return tree.Let(str(children[0]), tree.Name(str(children[0]), span), self._locate_token(children[0]), True)

    def template(self, span: Span, children: list[Any]) -> tree.Template:
        arrow, condition, *equations = children
        return tree.Template(condition, tuple(equations), span, arrow == "<=>")

    def equation(self, span: Span, children: list[Any]) -> tree.Equation:
        *targets, value, spread = children
        return tree.Equation(tuple(targets), value, span, spread is not None)

    def loop(self, span: Span, children: list[Any]) -> tree.Equation:
        return tree.Equation((), children[0], span)

    def carry(self, span: Span, children: list[Any]) -> tree.Carried:
        name, const, first, following, last = children
        start = tree.Argument(first, const is not None, False, False, None, first.span)
        then = tree.Argument(following, False, False, False, None, following.span)
        return tree.Carried(str(name), start, then, str(last), span)

    def others(self, span: Span, children: list[Any]) -> tree.Carried:
        return tree.Carried(str(children[0]), None, None, None, span)

    def collect(self, span: Span, children: list[Any]) -> tree.Carried:
        value, last = children
        return tree.Carried(None, None, tree.Argument(value, False, False, False, None, value.span), str(last), span)

    def target(self, span: Span, children: list[Any]) -> tree.Target:
        name, count, spread, layout = children
        layout, count = (None if part is None else str(part) for part in (layout, count))
        return tree.Target(str(name), spread is not None, layout, span, count)

    # ---- tests

    def test(self, span: Span, children: list[Any]) -> tree.Test:
        declarations = tuple(c for c in children if isinstance(c, tree.Declaration))
        generators = tuple(c for c in children if isinstance(c, tree.Generator))
        return tree.Test(declarations, generators, span)

    def decl(self, span: Span, children: list[Any]) -> tree.Declaration:
        name, member, (kind, shape) = children
        return tree.Declaration(str(name), kind, shape, span, None if member is None else str(member))

    def gen(self, span: Span, children: list[Any]) -> tree.Generator:
        name, domain = children
        return tree.Generator(str(name), domain, span)

    def type(self, span: Span, children: list[Any]) -> tuple[str, tuple[tree.Dimension, ...]]:
        name, *dimensions = children
        return str(name), tuple(d for d in dimensions if d is not None)

    def dim(self, span: Span, children: list[Any]) -> tree.Dimension:
        low = children[0]
        if low.type == "NAME":
            return tree.Dimension(None, None, str(low))
        return tree.Dimension(int(low), int(children[-1]), None)

    # ---- expressions

    def ternary(self, span: Span, children: list[Any]) -> tree.Conditional:
        then, condition, other = children
        return tree.Conditional(then, condition, other, span)

    def operation(self, span: Span, children: list[Any]) -> tree.Expression:
        return build_expression(children, self._file)

    def parentheses(self, span: Span, children: list[Any]) -> tree.Expression:
        inside: tree.Expression = replace(children[0], span=span)
        return inside

    def name(self, span: Span, children: list[Any]) -> tree.Name:
        return tree.Name(str(children[0]), span)

    def symbol(self, span: Span, children: list[Any]) -> tree.Symbol:
        return tree.Symbol(str(children[0]), span)

    def literal(self, span: Span, children: list[Any]) -> tree.Literal:
        token = children[0]
        if token.type == "KEYWORD":
            return tree.Literal({"none": None, "true": True, "false": False}[token], span)
        if token.type == "STRING":
            return tree.Literal(self._unquote(token), span)
        if token.type == "INT" and len(token) > _DIGITS:
            raise ParseError(span, f"an integer of more than {_DIGITS} digits")
        return tree.Literal(int(token) if token.type == "INT" else float(token), span)

    def member(self, span: Span, children: list[Any]) -> tree.Member:
        return tree.Member(children[0], str(children[1]), span)

    def index(self, span: Span, children: list[Any]) -> tree.Index:
        return tree.Index(children[0], children[1], span)

    def _list(self, span: Span, children: list[Any]) -> tree.ListOf:
        return tree.ListOf(tuple(c for c in children if c is not None), span)

    def numbers(self, span: Span, children: list[Any]) -> tree.Numbers:
        return tree.Numbers(str(children[0]), span)

    def comprehension(self, span: Span, children: list[Any]) -> tree.Comprehension:
        item, *middle = children
        split = next(i for i, c in enumerate(middle) if isinstance(c, lark.Token) and c.type == "IN")
        names = tuple(str(n) for n in middle[:split] if n is not None)
        source, condition = middle[split + 1 :]
        return tree.Comprehension(item, names, source, condition, span)

    def fold(self, span: Span, children: list[Any]) -> tree.Fold:
        total, start, *middle = children
        split = next(i for i, c in enumerate(middle) if isinstance(c, lark.Token) and c.type == "IN")
        names = tuple(str(n) for n in middle[:split] if n is not None)
        source, body = middle[split + 1 :]
        return tree.Fold(str(total), start, names, source, body, span)

    def call(self, span: Span, children: list[Any]) -> tree.Call:
        (callee, wildcard), *rest = children
        attributes = tuple(c for c in rest if isinstance(c, tree.Attribute))
        arguments = tuple(c for c in rest if isinstance(c, tree.Argument))
        return tree.Call(
            str(callee), wildcard, arguments, attributes, any(c == ".." for c in rest), span, self._locate_token(callee)
        )

    def callee(self, span: Span, children: list[Any]) -> tuple[lark.Token, bool]:
        return children[-1], len(children) == 2

    def arg(self, span: Span, children: list[Any]) -> tree.Argument:
        operand, const, value, mark, layout, variable, _, group = children
        kind = None if mark is None else mark.type
        return tree.Argument(
            value,
            const is not None,
            kind == "OPTIONAL",
            kind == "SPREAD",
            None if layout is None else str(layout),
            span,
            None if operand is None else str(operand),
            None if group is None else (str(variable), str(group)),
        )

    def graph(self, span: Span, children: list[Any]) -> tree.GraphOf:
        def select(kind: type) -> tuple[Any, ...]:
            return tuple(child for child in children if isinstance(child, kind))

        return tree.GraphOf(
            select(tree.Target), select(tree.Equation), select(tree.Argument), span, select(tree.Carried)
        )

    def attribute(self, span: Span, children: list[Any]) -> tree.Attribute:
        return tree.Attribute(str(children[0]), children[1], span)

    def pun(self, span: Span, children: list[Any]) -> tree.Attribute:
        return tree.Attribute(str(children[0]), tree.Name(str(children[0]), span), span)

    def spread(self, span: Span, children: list[Any]) -> tree.Attribute:
        return tree.Attribute(str(children[0]), tree.Name(str(children[0]), span), span, True)

    def rest(self, span: Span, children: list[Any]) -> str:
        return ".."


setattr(TreeBuilder, "def", TreeBuilder._definition)
setattr(TreeBuilder, "list", TreeBuilder._list)  # noqa: B010

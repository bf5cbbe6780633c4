"""Templates of expressions: names that stand for something, and arguments that are left out."""

from __future__ import annotations

import ast
import math

import pytest
from nnrewrite.backends.python_code.printer import write_expression
from nnrewrite.backends.python_code.templates import fill, list_arguments, make_literal, parse_template

X, Y = ast.Name("x0"), ast.Name("y0")


def write(template: str, **names: object) -> str:
    filled = {
        name: value if isinstance(value, ast.expr | list | None) else make_literal(value)
        for name, value in names.items()
    }
    return write_expression(fill(parse_template(template), filled))


def test_an_argument_with_its_default_is_left_out() -> None:
    template = "F.pad(x, pad, mode='constant', value=0.0)"
    assert write(template, x=X, pad=(0, 1), mode="constant", value=0.0) == "F.pad(x0, (0, 1))"
    assert write(template, x=X, pad=(0, 1), mode="reflect", value=None) == 'F.pad(x0, (0, 1), mode="reflect")'


def test_false_is_not_the_default_zero() -> None:
    assert write("f(x, n=0)", x=X, n=False) == "f(x0, n=False)"


def test_an_argument_whose_default_is_a_name_always_stands() -> None:
    assert write("F.softmax(x, dim=dim)", x=X, dim=-1) == "F.softmax(x0, dim=-1)"


def test_several_values_are_spread() -> None:
    assert write("x.reshape(*sizes)", x=X, sizes=[ast.Constant(2), ast.Constant(-1)]) == "x0.reshape(2, -1)"
    assert write("torch.cat([*xs], dim=dim)", xs=[X, Y], dim=1) == "torch.cat([x0, y0], dim=1)"


@pytest.mark.parametrize(
    ("axes", "begin", "end", "text"),
    [(0, None, 3, "x0[:3]"), (2, 1, None, "x0[:, :, 1:]"), (1, -2, -1, "x0[:, -2:-1]")],
)
def test_a_starred_number_is_so_many_whole_axes(axes: int, begin: int | None, end: int | None, text: str) -> None:
    slots = {name: None if value is None else make_literal(value) for name, value in (("a", begin), ("b", end))}
    assert write("x[*dims, a:b:c]", x=X, dims=axes, c=None, **slots) == text


def test_an_operator_keeps_what_binds_less_in_parentheses() -> None:
    total = fill(parse_template("x + y"), {"x": X, "y": Y})
    assert write("x * y", x=total, y=Y) == "(x0 + y0) * y0"
    assert write("x - y", x=X, y=total) == "x0 - (x0 + y0)"
    assert write("x.abs()", x=total) == "(x0 + y0).abs()"
    assert write("-x", x=total) == "-(x0 + y0)"


def test_a_tuple_with_something_left_out_is_left_out() -> None:
    assert write("layer(x, (h, c))", layer=ast.Name("f"), x=X, h=None, c=None) == "f(x0)"


def test_arguments_are_told_with_their_defaults() -> None:
    assert list_arguments("nn.Conv2d(channels, stride=1, bias=True)") == {"channels": ..., "stride": 1, "bias": True}


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_numbers_without_a_literal_are_made_of_text(number: float) -> None:
    found = eval(write_expression(make_literal(number)))
    assert found == number or math.isnan(found)


def test_what_is_no_literal_is_refused() -> None:
    with pytest.raises(TypeError):
        make_literal(object())


def test_a_list_that_has_a_name_stands_as_it_is() -> None:
    template = parse_template("cat([*xs])")
    rows, more = ast.Starred(ast.Name("rows")), ast.Name("more")
    assert write_expression(fill(template, {"xs": [rows]})) == "cat(rows)"
    assert write_expression(fill(template, {"xs": [rows, more]})) == "cat([*rows, more])"

"""Messages of guards and refusals: the names they put in."""

from __future__ import annotations

import re

from ..base.errors import Span
from ..syntax.diagnostics import suggest
from .scope import Context


def check_placeholders(message: str, span: Span, context: Context) -> None:
    """Check that whatever stands in braces in a message is the name of a variable in scope."""
    for name in re.findall(r"\{([^{}]*)\}", message):
        if not re.fullmatch(r"\w+", name):
            help = f"name the value: `let a = {name.strip() or 'x'}`, and `{{a}}` in the message"
            context.report(span, f"`{{{name}}}` in the message is no name of a variable", help)
            continue
        variable = context.scope.get(name)
        if variable is None:
            known = suggest(name, context.scope, "the variables here")
            context.report(span, f"the message names `{name}`, and there is no such variable here", known)
        else:
            variable.used = True

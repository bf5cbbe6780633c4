"""Messages of guards and refusals: the names they put in."""

from __future__ import annotations

import re

from ..base.errors import Span
from ..syntax.diagnostics import suggest
from .scope import Context


def check_placeholders(message: str, span: Span, context: Context) -> None:
    """Check that every `{name}` of a message is a variable in scope."""
    for name in re.findall(r"\{(\w+)\}", message):
        variable = context.scope.get(name)
        if variable is None:
            known = suggest(name, context.scope, "the variables here")
            context.report(span, f"the message names `{name}`, and there is no such variable here", known)
        else:
            variable.used = True

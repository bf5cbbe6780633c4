"""`python -m nnrewrite` is the command `rewrite`."""

from __future__ import annotations

from .cli.dispatch import main

main()

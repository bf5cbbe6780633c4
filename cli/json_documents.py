"""Documents: the JSON that every command prints with --json, in one form, which docs/json.md describes."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import click

from ..engine.base.errors import RewriteError, RewriteFailure, RuleError, Span, UnsupportedError

#: the version of the form; a change that readers have to know of counts it up
SCHEMA = 1


def show(
    command: str, ok: bool, results: Iterable[Any] = (), diagnostics: Iterable[Mapping[str, Any]] = (), **summary: Any
) -> None:
    """Print the document of a call: whether all went well, an object for each result, and what is to be told."""
    document = {
        "schema": SCHEMA,
        "command": command,
        "ok": ok,
        "results": results,
        "summary": summary,
        "diagnostics": diagnostics,
    }
    click.echo(json.dumps(make_plain(document), indent=2, allow_nan=False))


def make_plain(value: Any) -> Any:
    """A value as JSON can say it: objects by their fields, paths as text, null for numbers that are not finite."""
    if isinstance(value, Enum):
        return make_plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, PurePath):
        return f"{value}"
    if isinstance(value, Mapping):
        return {f"{key}": make_plain(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: make_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [make_plain(one) for one in value]


def make_diagnostic(
    message: str, kind: str = "", severity: str = "error", span: Span | None = None, file: object = None, **more: Any
) -> dict[str, Any]:
    """What is to be told, as an object: with the place in a rule file, or the model's file, where it has one.

    `kind` is the name that the error has in Python; `more` may have `hint` and `notes`.
    """
    return {
        "severity": severity,
        "kind": kind,
        "message": message,
        "file": span.file if span is not None else None if file is None else f"{file}",
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "hint": None,
        "notes": [],
        **more,
    }


def diagnose(error: Exception, file: object = None) -> list[dict[str, Any]]:
    """An error as diagnostics: one for each mistake in a rule file, and for each operator that was refused."""
    kind = _find_kind(error)
    if isinstance(error, RuleError):
        return [
            make_diagnostic(
                one.message,
                kind,
                one.severity,
                one.span,
                hint=one.help,
                notes=[_make_note(note.message, note.span) for note in one.notes],
            )
            for one in error.diagnostics
        ]
    if isinstance(error, UnsupportedError):
        return [
            make_diagnostic(
                f"{one.node} cannot be converted: {one.why or f'no rule takes {one.operator}'}",
                kind,
                file=file,
                notes=[_make_note(f"rule {reason.rule}: {reason.message}", reason.span) for reason in one.reasons],
            )
            for one in error.refusals
        ]
    if isinstance(error, RewriteFailure):
        return [make_diagnostic(f"rule {error.rule} on {error.node}: {error.message}", kind, span=error.span)]
    return [make_diagnostic(f"{error}", kind, file=file)]


def _find_kind(error: Exception) -> str:
    """The name of an error's class, of the public one where it has a more special."""
    known = (one.__name__ for one in type(error).__mro__ if one.__module__ == RewriteError.__module__)
    return next(known, "InternalError")


def _make_note(message: str, span: Span) -> dict[str, Any]:
    return {"message": message, "file": span.file, "line": span.line, "column": span.column}

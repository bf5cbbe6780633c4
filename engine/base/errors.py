"""Every error a user can meet, and the one way each is worded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from .startup import dataclass, field

#: how like a known name an unknown one has to be: at the usual 0.6, three letters of `nope` are enough for `copied`
_LIKE = 0.65


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one most like it, or nothing."""
    import difflib  # takes longer than a small conversion

    close = difflib.get_close_matches(name, list(known), 1, _LIKE)
    return f"; did you mean {close[0]}?" if close else ""


def quote_name(name: str) -> str:
    """A name out of a file, fit to stand in one line of a message."""
    return json.dumps(name if len(name) <= 80 else f"{name[:77]}...")


def join_lines(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(f"{error}".split())


def format_count(count: int, noun: str) -> str:
    """A number with its noun: `1 operand`, `2 operands`, `20,000 operands`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a rule file: one-based lines and columns, the end column exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark with a place of its own that belongs to a diagnostic."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a rule file: where, what, and how to mend it."""

    span: Span
    message: str
    notes: tuple[Note, ...] = ()
    help: str | None = None
    severity: str = "error"

    def render(self, sources: dict[str, str]) -> str:
        """Word the diagnostic as `file:line:col: error: message` with the source line and a caret."""
        lines = [f"{self.span}: {self.severity}: {self.message}", *quote_source(self.span, sources)]
        for note in self.notes:
            lines += [f"{note.span}: note: {note.message}", *quote_source(note.span, sources)]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)


def quote_source(span: Span, sources: dict[str, str]) -> list[str]:
    """Quote the source line of a span with a caret under it; nothing where the text is not at hand."""
    text = sources.get(span.file, "").splitlines()
    if not 1 <= span.line <= len(text):
        return []
    line = text[span.line - 1]
    end = span.end_column if span.end_line == span.line else len(line) + 1
    return [f"  {line}", "  " + " " * (span.column - 1) + "^" * max(1, end - span.column)]


class RewriteError(Exception):
    """The root of all errors that are told to the user without a traceback."""


class CallError(RewriteError):
    """A call that cannot be carried out as it stands: an unknown rule set, an opset out of range, clashing outputs."""


class ModelError(RewriteError):
    """A model file that cannot be read: names the file and what is wrong with it."""


class DestinationError(RewriteError):
    """A file that cannot be written: names it and what the system says."""


class VerificationError(RewriteError):
    """A verification that could not be carried out: a missing package, or a runtime that refused the model."""


class InternalError(RewriteError):
    """A mistake of this program, told in one line: what was being done, what Python raised, and where.

    It is a RewriteError, so that a loop over many models goes on; `__cause__` has the traceback.
    """

    def __init__(self, doing: str, error: BaseException) -> None:
        import traceback  # nobody needs it otherwise

        home = Path(__file__).parent.parent.parent
        frames = [f for f in traceback.extract_tb(error.__traceback__) if home in Path(f.filename).parents]
        ours = [f for f in frames if "site-packages" not in Path(f.filename).relative_to(home).parts]
        at = f" at {Path(ours[-1].filename).relative_to(home)}:{ours[-1].lineno}" if ours else ""
        said = " ".join(f"{type(error).__name__}: {error}".split())
        super().__init__(
            f"internal error: {doing}: {said}{at}; this is a mistake of nnrewrite, not of yours: "
            "please report this line, with the model if you may"
        )


class RuleError(RewriteError):
    """Rule files with mistakes: all of them, each with its place."""

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: dict[str, str]) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = sources
        super().__init__("\n".join(d.render(sources) for d in self.diagnostics))


class RewriteFailure(RewriteError):
    """A rule that fired and produced something ill-formed: a mistake in the rule, named with its place."""

    def __init__(self, span: Span, rule: str, node: str, message: str) -> None:
        self.span, self.rule, self.node, self.message = span, rule, node, message
        super().__init__(f"{span}: error: rule {rule} on {node}: {message}")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one candidate rule did not take a node."""

    rule: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """One node that no rule took; `why` says why no rule is about its operator, where that is known.

    `what` says what cannot be done with it, `source` which node of the source it stems from, where that is known. One
    that `follows` reads what is not known as another was refused that yields it.
    """

    operator: str
    node: str
    reasons: tuple[Reason, ...] = field(default=())
    why: str = ""
    what: str = "cannot be converted"
    source: str = ""
    follows: bool = False


class UnsupportedError(RewriteError):
    """All nodes of a model that could not be converted, grouped by operator and reason; `advice` says what to do."""

    def __init__(self, refusals: Sequence[Refusal], advice: str | None = None) -> None:
        self.refusals = tuple(refusals)
        self.advice = advice or ""
        groups: dict[tuple[str, tuple[Reason, ...], str], list[str]] = {}
        first = [refusal for refusal in self.refusals if not refusal.follows]
        for refusal in first:
            groups.setdefault((refusal.operator, refusal.reasons, refusal.why), []).append(refusal.node)
        operators = len({refusal.operator for refusal in first})
        counts = format_count(operators, "operator"), format_count(len(first), "node")
        lines = [f"{counts[0]} {first[0].what} ({counts[1]}):"]
        for (operator, reasons, why), nodes in groups.items():
            shown = ", ".join(nodes[:4]) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
            lines.append(f"  {operator} x {len(nodes)}: {shown}")
            lines += [f"    {reason.span}: rule {reason.rule}: {reason.message}" for reason in reasons]
            if not reasons:
                lines.append(f"    {why or f'no rule is about {operator}'}")
        behind = Counter(refusal.operator for refusal in self.refusals if refusal.follows)
        if behind:
            listed = ", ".join(f"{operator} x {count}" for operator, count in behind.most_common())
            lines.append(f"  what {format_count(behind.total(), 'node')} behind them read is not known: {listed}")
        lines += [f"help: {advice}"] if advice else []
        super().__init__("\n".join(lines))

"""Coverage of rules: which templates were used and which values options had, as code coverage counts lines.

Rules are told apart by their names and files, as packs of several people may have rules of one name.

Nothing is noted unless the environment names a folder, so that a conversion pays one comparison for each rule.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..base.data_files import BUILT_IN
from ..base.errors import RewriteError, Span
from ..base.regular_files import explain_failure, read_text
from ..base.startup import dataclass, field
from ..expressions.functions import convert_to_python
from .pattern import AnyOf, NodePattern, Operand, iterate_nodes
from .rules import Rule

#: the folder to which each process adds a file of what it noted
FOLDER = "NNREWRITE_COVERAGE"
#: values of an option that are told apart, at most
_VALUES = 8


@dataclass(slots=True)
class Coverage:
    """How often each template of each rule was used (by its line), and the values that options had.

    Rules are called as `make_key` does.
    """

    templates: dict[str, dict[int, int]] = field(default_factory=dict)
    options: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def count(self, rule: Rule, template: Span) -> None:
        """Count that a rule was applied by one of its templates, again to a node of the same options."""
        lines = self.templates.setdefault(make_key(rule.name, rule.span.file), {})
        lines[template.line] = lines.get(template.line, 0) + 1

    def count_rule(self, rule: Rule, template: Span, values: Mapping[str, Any]) -> None:
        """Note that a rule was applied by one of its templates, and which values options had."""
        self.count(rule, template)
        options = self.options.setdefault(make_key(rule.name, rule.span.file), {})
        for equation in rule.equations:
            for name in list_variables(equation.value):
                seen = options.setdefault(name, set())
                if name in values and len(seen) < _VALUES:
                    seen.add(str(convert_to_python(values[name])))

    def add(self, other: Coverage) -> None:
        """Take in what another process noted."""
        for rule, lines in other.templates.items():
            mine = self.templates.setdefault(rule, {})
            for line, count in lines.items():
                mine[line] = mine.get(line, 0) + count
        for rule, options in other.options.items():
            known = self.options.setdefault(rule, {})
            for name, seen in options.items():
                known.setdefault(name, set()).update(seen)


@functools.cache
def make_key(rule: str, file: str) -> str:
    """A name for a rule that holds whatever folder the file of its pack is named from."""
    return f"{rule} ({file if (BUILT_IN / file).is_file() else Path(file).resolve()})"


def list_variables(pattern: Operand) -> Iterable[str]:
    """The names that a pattern binds options to, those it ignores left out."""
    for node in iterate_nodes(pattern) if isinstance(pattern, NodePattern | AnyOf) else ():
        yield from (str(option.variable) for option in node.options if option.variable not in (None, "_"))
        for operand in node.operands:
            yield from list_variables(operand)


#: what this process notes; None where nobody asked
active: Coverage | None = Coverage() if os.environ.get(FOLDER) else None


def save() -> None:
    """Add what this process noted to the folder; nothing where nobody asked."""
    folder = os.environ.get(FOLDER)
    if active is None or not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    options = {rule: {name: sorted(seen) for name, seen in known.items()} for rule, known in active.options.items()}
    text = json.dumps({"templates": active.templates, "options": options})
    (Path(folder) / f"{uuid.uuid4().hex}.json").write_text(text, encoding="utf-8")
    active.templates.clear()
    active.options.clear()


def load(folder: Path) -> Coverage:
    """Read what all processes noted; raises RewriteError for a file that cannot be read or is no record."""
    found = Coverage()
    for file in sorted(folder.glob("*.json")):
        try:
            document = json.loads(read_text(file))
            templates = {rule: {int(n): c for n, c in lines.items()} for rule, lines in document["templates"].items()}
            options = {rule: {n: set(seen) for n, seen in known.items()} for rule, known in document["options"].items()}
        except OSError as error:
            raise RewriteError(f"{file}: cannot be read: {explain_failure(error)}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RewriteError(f"{file}: is no record of which rules fired") from error
        found.add(Coverage(templates, options))
    return found

"""Pages of the reference that follow from the program: commands with their options, and operators with their rules."""

from __future__ import annotations

import html
import importlib
import inspect
import json
from pathlib import Path

import click
from click.testing import CliRunner
from nnrewrite.cli.commands.ops import command as ops
from nnrewrite.cli.dispatch import COMMANDS, DEFAULT

#: rule sets of the table, from where to where; of some that have thousands, operators without a rule are left out
PACKS = {
    "tflite2onnx": ("TensorFlow Lite", "ONNX", True),
    "onnx2tflite": ("ONNX", "TensorFlow Lite", True),
    "aten2onnx": ("PyTorch", "ONNX", False),
    "onnx2torch": ("ONNX", "PyTorch code", True),
    "torch2keras": ("PyTorch code", "Keras code", True),
}


def generate(folder: Path) -> None:
    """Write the pages into a folder, where they have changed."""
    for name, text in (("commands.md", write_commands()), ("operator_table.md", write_operators())):
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def write_commands() -> str:
    """Each command: what it does, its arguments and its options."""
    parts = ["# Commands", "Every command prints one JSON document with `--json` ([its form](../json.md))."]
    for name in ["", *(name for name in COMMANDS if name not in ("convert", "help"))]:
        module = importlib.import_module(COMMANDS[name][0] if name else DEFAULT)
        parts.append(_describe(f"rewrite {name}".strip(), module.command))
    return "\n\n".join(parts) + "\n"


def _describe(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## {name}", f"```text\n{name} {usage}\n```"]
    lines += [_escape(part) for part in inspect.cleandoc(command.help or "").split("\n\n")]
    rows = [record for one in command.params if (record := one.get_help_record(context)) is not None]
    lines.append(
        "\n".join(["| option | |", "|---|---|", *(f"| `{_cell(a)}` | {_cell(_escape(b))} |" for a, b in rows)])
    )
    return "\n\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*").replace("_", "\\_")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write_operators() -> str:
    """A table of operators that can be searched: from where, to where, whether supported, and the limits."""
    rows = []
    for pack, (source, target, whole) in PACKS.items():
        done = CliRunner().invoke(ops, ["--rules", pack, "--json"], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        for one in json.loads(done.output)["results"]:
            if not whole and one["supported"] == "no":
                continue
            files = sorted({f"{rule['file']}:{rule['line']}" for rule in one["rules"] if rule["stage"] == "lower"})
            files = [file.removeprefix(f"{pack}/") for file in files]
            limits = "; ".join(one["limits"]).replace("`", "")
            cells = (one["name"], source, target, one["supported"], limits, ", ".join(files[:3]))
            rows.append(
                f'<tr data-pack="{pack}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            )
    heads = "".join(f"<th>{head}</th>" for head in ("operator", "from", "to", "supported", "limits", "rule"))
    return f"""# Operators, searched

{len(rows):,} operators, made from the rules. [Operators](../operators.md) describes those of TensorFlow Lite one by
one, with types and opsets, as `rewrite ops OPERATOR` does. Of PyTorch's operators those without a rule are left out.

```{{raw}} html
<p><input id="filter" type="search" placeholder="operator, format, limit or rule" aria-label="Search the table">
<select id="supported" aria-label="Supported">
<option value="">all</option><option>yes</option><option>in part</option><option>as state</option><option>no</option>
</select>
<output id="count" for="filter supported"></output></p>
<div class="operators"><table id="operators"><thead><tr>{heads}</tr></thead><tbody>
{chr(10).join(rows)}
</tbody></table></div>
<script src="../_static/operators.js"></script>
```
"""

"""The command `rewrite partition`: what a target takes of a model, cut where it is cheapest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from .. import completion, flags

#: so many reasons are told, the others are in the manifest
_TOLD = 8


@click.command("rewrite partition", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", metavar="MODEL", type=flags.File(exists=True))
@click.option(
    "--target",
    required=True,
    metavar="TARGET",
    shell_complete=completion.offer_targets,
    help="What takes a part of the model: a pack with rules of the stage `support`.",
)
@click.option(
    "-d",
    "--directory",
    "folder",
    type=flags.File(files=False, folders=True, written=True),
    metavar="DIR",
    help="The folder to write to, made where it is missing. [default: the model's name with the ending .parts]",
)
@click.option(
    "--functions",
    is_flag=True,
    help="Make the parts functions of host.onnx, which then runs as it is; else they are nodes without a meaning.",
)
@click.option(
    "--report",
    "page",
    type=flags.File(written=True),
    metavar="FILE.html",
    help="Write a page to look at: the picture of the cut, the steps, and why nodes are on the host.",
)
@flags.input_shape
@flags.batch
@flags.as_json
def command(
    model: Path,
    target: str,
    folder: Path | None,
    functions: bool,
    page: Path | None,
    input_shape: tuple[str, ...],
    batch: str | None,
    as_json: bool,
) -> None:
    """Divide a MODEL into parts that a target takes and what stays on the host, and write one file for each.

    The folder has a model for each step, `host.onnx` with the parts as nodes of the domain nnrewrite.part, and
    manifest.json: the steps in their order, what goes in and out of each, and why each node of the host is there.
    `nnrewrite.partition.run(DIR, inputs)` runs them all.

    Exit status: 0 written; 1 the model cannot be divided; 2 the call is wrong.
    """
    from ...conversion.options import Options
    from ...partition import partition
    from ..jobs import check_files
    from ..json_documents import show

    found = partition(f"{model}", target, Options(input_shape=input_shape, batch=batch))
    place = folder if folder is not None else Path(f"{model.stem}.parts")
    files = [("-d", path) for path in found.list_files(place)]
    check_files([*files, *([("--report", page)] if page is not None else [])], [model])
    manifest = found.save(place, functions=functions)
    if page is not None:
        from ...engine.base.atomic_write import open_replacement
        from ...page import render_partition
        from ...partition.files import PICTURE

        with open_replacement(page) as out:
            out.write(render_partition(f"{model}", manifest, (place / PICTURE).read_text(encoding="utf-8")).encode())
    if as_json:
        show("partition", True, [{"source": model, "folder": place, **manifest}])
        return
    _print_manifest(manifest, f"{model}", place)


def _print_manifest(manifest: dict[str, Any], model: str, folder: Path) -> None:
    host = [step for step in manifest["steps"] if step["on"] == "host"]
    device = [step for step in manifest["steps"] if step["on"] == "device"]
    taken, left = (sum(step["nodes"] for step in steps) for steps in (device, host))
    click.echo(f"{click.style(model, bold=True)} -> {click.style(f'{folder}', bold=True)}")
    share = f"{taken:,} of {_count(taken + left, 'node')} in {_count(len(device), 'part')}"
    click.echo(f"  on {manifest['target']}: {share if device else 'nothing'}")
    click.echo(f"  on the host: {_count(left, 'node') + ' in ' + _count(len(host), 'step') if host else 'nothing'}")
    inner = [part for body in manifest["bodies"] for part in body["parts"]]
    if inner:
        nodes = _count(sum(part["nodes"] for part in inner), "node")
        click.echo(f"  in bodies of loops and branches: {nodes} in {_count(len(inner), 'part')}")
    click.echo(f"  bytes between both: {manifest['bytes_moved']:,}")
    why = Counter((entry["operator"], entry["reason"]) for step in host for entry in step["reasons"])
    for (operator, reason), count in why.most_common(_TOLD):
        click.echo(f"    {operator} x {count}: {reason}")
    if len(why) > _TOLD:
        click.echo(f"    and {_count(len(why) - _TOLD, 'more reason')}, in {folder / 'manifest.json'}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

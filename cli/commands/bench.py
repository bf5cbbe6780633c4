"""`rewrite bench`: the latency of a model and of those made of it, side by side, each in the runtime of its format."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import completion, flags

if TYPE_CHECKING:
    from ...page import Timing
    from ...verify.latency import Benchmark, Latency
    from ...verify.runtime_profile import Profile

_MODEL = flags.File(exists=True)
#: operators of a profile that are shown, the slowest first
SHOWN = 12


@click.command("rewrite bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", metavar="MODEL", type=_MODEL)
@click.argument("models", metavar="[MADE...]", nargs=-1, type=_MODEL)
@click.option(
    "--threads", metavar="N", type=click.IntRange(1), default=2, show_default=True, help="Threads for each side."
)
@click.option(
    "--rounds", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="How often each side is timed."
)
@flags.seed
@click.option("--inputs", "path", type=_MODEL, metavar="FILE.npz", help="Inputs by name.")
@flags.rules
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=("onnxruntime", "portable"),
    show_default=True,
    metavar="TARGET",
    shell_complete=completion.offer_targets,
    help="What to convert to ONNX for, where no other model is given. May be repeated.",
)
@click.option(
    "--report",
    "page",
    type=flags.File(written=True),
    metavar="FILE.html",
    help="Write a page with the latency of each operator, of the first target.",
)
@flags.as_json
def command(
    source: Path,
    models: tuple[Path, ...],
    threads: int,
    rounds: int,
    seed: int,
    path: Path | None,
    rules: tuple[str, ...],
    targets: tuple[str, ...],
    page: Path | None,
    as_json: bool,
) -> None:
    """Time a model and those made of it, .tflite files in the interpreter and .onnx files in ONNX Runtime.

    Without others, the model is converted to ONNX for each target. The models run in turns, so that other load on the
    machine affects all of them alike; ratios are medians over the rounds. The interpreter runs its default kernels.
    The second table shows where ONNX Runtime's own profile puts the time, and the share of integer kernels.

    Exit status: 0 all models were timed; 1 one of them does not run.
    """
    from ...conversion.options import Options
    from ...engine.base.errors import CallError
    from ...verify.latency import run_benchmark
    from ..jobs import check_files
    from ..json_documents import show

    if page is not None and models:
        raise CallError("--report shows a conversion: leave out the ONNX models, so that the model is converted")
    if models:
        flags.refuse_idle(("rules", "targets"), "is about a conversion, and models are given that are made already")
    if page is not None:
        check_files([("--report", page)], [source, *([path] if path is not None else [])])
    named: dict[str, Path | bytes] = {f"{model}": model for model in models}
    for target in () if models else targets:
        named[target] = _convert(source, rules, target)
    found = run_benchmark(source, named, threads, rounds, seed, None if path is None else _read_inputs(path, source))
    if page is not None:
        from ..pages import write_timed

        write_timed(
            page, source, Options(rules=rules, target=targets[0], to="onnx"), _describe_time(found, source, targets[0])
        )
    if as_json:
        show("bench", True, _iterate_entries(found, source), source=source, threads=threads)
    else:
        _print_table(found, source, threads)


def _describe_time(found: Benchmark, source: Path, target: str) -> Timing:
    """What was measured, as a page shows it."""
    from ...page import Timing

    rows = {source.name: found.source, **found.targets}
    sides = [(name, one.median, one.least, one.compute_ratio(found.source)) for name, one in rows.items()]
    return Timing(sides, found.profiles[target].nodes_spent)


def _iterate_entries(found: Benchmark, source: Path) -> Iterator[dict[str, Any]]:
    """Everything measured, the original's first, as objects of a document; times are in milliseconds."""
    from ...verify.formats import find_format

    yield {"name": find_format(source), "ratio": 1.0, "latency": found.source}
    for name, latency in found.targets.items():
        entry = {"name": name, "ratio": latency.compute_ratio(found.source), "latency": latency}
        profile = found.profiles.get(name)
        yield (
            entry
            if profile is None
            else entry
            | {
                "integer_kernels": _count_integers(profile),
                "operators": profile.kernels,
            }
        )


def _count_integers(profile: Profile) -> dict[str, float]:
    return {
        "kernels": profile.integer,
        "of": profile.nodes,
        "milliseconds": profile.integer_milliseconds,
        "of_milliseconds": profile.milliseconds,
    }


def _convert(source: Path, rules: tuple[str, ...], target: str) -> bytes:
    from ...conversion.pipeline import convert

    data: bytes = convert(source, rules=rules, target=target, to="onnx").SerializeToString()
    return data


def _read_inputs(path: Path, source: Path) -> list[Any]:
    from ...verify.formats import find_worker
    from ...verify.interpreter import Interpreter
    from .verify import read_inputs

    with Interpreter() as interpreter:
        return read_inputs(path, find_worker(source, interpreter), source)[0]


def _print_table(found: Benchmark, source: Path, threads: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    # In a pipe there is no width to keep to.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    title = f"{source.name}, {threads} thread{'s' * (threads > 1)}"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("", "median ms", "least ms", "times that", "integer kernels"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=bool(heading))
    table.add_row(source.name, *_format_times(found.source), "1.00", "")
    for name, latency in found.targets.items():
        ratio = latency.compute_ratio(found.source)
        shown = f"[{'green' if ratio <= 1 else 'yellow' if ratio <= 2 else 'red'}]{ratio:.2f}[/]"
        table.add_row(name, *_format_times(latency), shown, _share(found.profiles.get(name)))
    console.print(table)
    if found.profiles:
        console.print(_make_operator_table(found.profiles))


def _format_times(latency: Latency) -> tuple[str, str]:
    return f"{latency.median:.3f}", f"{latency.least:.3f}"


def _share(profile: Profile | None) -> str:
    if profile is None or not profile.integer:
        return "" if profile is None else "none"
    share = profile.integer_milliseconds / profile.milliseconds if profile.milliseconds else 0.0
    return f"{profile.integer} of {profile.nodes}, {share:.0%} of the time"


def _make_operator_table(profiles: Mapping[str, Profile]) -> Any:
    """The runtime's profiles side by side: for each operator how many nodes and how long."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="ms by operator (nodes)", title_justify="left")
    table.add_column("")
    for name in profiles:
        table.add_column(name, justify="right", overflow="fold")
    kernels = {name: {one.operator: one for one in profile.kernels} for name, profile in profiles.items()}
    slowest: dict[str, float] = {}
    for found in kernels.values():
        for operator, one in found.items():
            slowest[operator] = max(slowest.get(operator, 0.0), one.milliseconds)
    order = sorted(slowest, key=lambda operator: -slowest[operator])
    for operator in order[:SHOWN]:
        cells = [found.get(operator) for found in kernels.values()]
        table.add_row(operator, *("" if one is None else f"{one.milliseconds:.3f} ({one.nodes})" for one in cells))
    if order[SHOWN:]:
        rest = [[one for name, one in found.items() if name in order[SHOWN:]] for found in kernels.values()]
        sums = [f"{sum(o.milliseconds for o in ones):.3f} ({sum(o.nodes for o in ones)})" for ones in rest]
        table.add_row(f"{len(order) - SHOWN} others", *sums)
    return table

"""The default command: `rewrite --rules tflite2onnx MODEL...` converts models, one process for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, flags
from .dispatch import explain_unknown, list_commands, print_error
from .outcome import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backends.writers import Writer
    from ..conversion.compiled_rules import Prepared
    from ..conversion.options import Options
    from ..engine.passes.base import Observer
    from ..engine.rewrite.rules import Override, RuleSet
    from .jobs import Job


def _print_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"rewrite {version('nnrewrite')}")
        ctx.exit()


@click.command(
    "rewrite",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=list_commands(),
)
@click.argument(
    "models", metavar="MODEL...", nargs=-1, type=flags.File(folders=True), shell_complete=completion.offer_models
)
@flags.take_options
@click.option(
    "-o",
    "--output",
    type=flags.File(folders=True, written=True),
    metavar="FILE",
    help="The file to write, for one model. [default: the model's name with the ending .onnx]",
)
@click.option(
    "-d",
    "--directory",
    "folder",
    type=flags.File(files=False, folders=True, written=True),
    metavar="DIR",
    help="The folder to write to, made where it is missing. [default: the current one]",
)
@click.option("--explain-layout", is_flag=True, help="Tell of each Transpose left which two operators force it.")
@click.option(
    "--layout-svg",
    type=flags.File(written=True),
    metavar="FILE",
    help="Draw the graph in two colours for the two layouts, for one model.",
)
@click.option(
    "--report",
    "page",
    type=flags.File(folders=True, written=True),
    metavar="FILE.html",
    help="Write a page to look at: both graphs, layouts, errors per layer with --verify, time; a folder, PAGES/, for"
    " several models.",
)
@click.option("--keep-going", is_flag=True, help="Go on with the other models when one cannot be converted.")
@click.option("--verify", is_flag=True, help="Run both models on the same inputs and compare their outputs.")
@click.option(
    "--trace",
    is_flag=False,
    flag_value="",
    metavar="[NODE]",
    help="Show each match; with =NODE, the name of a node or of a value, every rule tried on it and where it stopped.",
)
@click.option("--print-after", metavar="PASS", help="Print the graph as a pass left it; `all` after each.")
@click.option(
    "--external-data",
    is_flag=True,
    help="Put weights into a second file, FILE.data, as is done without asking above 2 GB.",
)
@click.option(
    "-j",
    "--jobs",
    "workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Convert N models at once, each in a process of its own.",
)
@click.option("--profile", is_flag=True, help="Show how long each part took, and each rule with its attempts.")
@flags.as_json
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print errors only, and what --trace, --print-after, --explain-layout and --profile show.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    models: tuple[Path, ...],
    output: Path | None,
    folder: Path | None,
    explain_layout: bool,
    layout_svg: Path | None,
    page: Path | None,
    keep_going: bool,
    verify: bool,
    trace: str | None,
    print_after: str | None,
    external_data: bool,
    workers: int,
    profile: bool,
    as_json: bool,
    quiet: bool,
    **asked: Any,
) -> None:
    """Rewrite neural networks by rules: convert each MODEL, as ONNX where -o or --to name no other format.

    MODEL is a .tflite, .onnx or .pt2 file, a .task bundle (each model inside is converted) or a folder (every model
    below it that is not of the format to write, or all where there is no other). The output is named like the model,
    with the ending of its format.

    Exit status: 0 all done; 1 a model was not converted, or --verify found a difference; 2 the call or a rule file is
    wrong.
    """
    from ..conversion.conversion_steps import find_writer
    from ..conversion.options import Options

    models, trace = _separate_models(ctx, models, trace)
    # Every other option of the command is a field of Options, by its name.
    options = _choose_format(Options(**asked), output, f"{flags.FOLDER}.output" in ctx.meta)
    written = find_writer(options)
    _refuse_other_format("--external-data is about", external_data, written)
    jobs, options = _plan_jobs(models, output, folder, options, written)
    prepared = _prepare_all(jobs, options, quiet)
    _check_ends(options)
    _check_drawing(layout_svg, jobs, written)
    paged = page is not None and (f"{flags.FOLDER}.page" in ctx.meta or page.is_dir())
    jobs = _choose_files(jobs, written, page, paged, layout_svg)
    _refuse_lines((("--trace", trace), ("--print-after", print_after)), workers, as_json)
    observers = [] if print_after is None else [_make_printer(print_after, [each.rules for each in prepared])]
    if verify:
        _require_runtime(written)
    call = Call(
        options,
        verify,
        keep_going,
        quiet,
        explain_layout,
        layout_svg,
        external_data,
        profile,
        workers,
        as_json,
        page if paged else None,
    )
    overrides = tuple(dict.fromkeys(one for each in prepared for one in each.pack.overrides))
    ctx.exit(0 if _run_watched(jobs, call, overrides, trace, observers) else 1)


def _separate_models(
    ctx: click.Context, models: tuple[Path, ...], trace: str | None
) -> tuple[tuple[Path, ...], str | None]:
    """The models, and what `--trace` names: `--trace MODEL` is the option before a model, of which it takes no value.

    Raises UsageError where there is no model, CallError where the first is a mistyped command.
    """
    from ..engine.base.atomic_write import read_mode
    from ..engine.base.errors import CallError

    if trace and (not models or read_mode(trace)):
        models, trace = (Path(trace), *models), ""
    if not models:
        raise click.UsageError(
            "Missing argument MODEL: a .tflite, .onnx or .pt2 file, a .task bundle or a folder.", ctx
        )
    if not models[0].exists() and (unknown := explain_unknown(f"{models[0]}")):
        raise CallError(unknown)
    return models, trace


def _choose_format(options: Options, output: Path | None, folder: bool) -> Options:
    """Options that say which format to write where -o does, by its ending or as it names a folder."""
    from ..backends.writers import find_writer
    from ..conversion.options import DEFAULT
    from ..engine.base.errors import CallError

    if output is not None and find_writer(output.name) is not None:
        raise CallError(f"{output}: is an ending without a name before it")
    if options.to is None and output is not None and output.suffix:
        if find_writer(output.suffix) is not None:
            return options.replace(to=output.suffix)
        if options.rules == DEFAULT.rules:
            raise CallError(f"{output}: no format has the ending {output.suffix}: --to says which one is to be written")
    return options.replace(to="/") if options.to is None and folder else options


def _refuse_other_format(said: str, asked: object, written: Writer) -> None:
    """Raise CallError for an option that is only about ONNX models where others are written; `said` begins with it."""
    from ..engine.base.errors import CallError

    if asked and written.dialect != "onnx":
        raise CallError(f"{said} ONNX models: what is written is {written.name}")


def _plan_jobs(
    models: Sequence[Path], output: Path | None, folder: Path | None, options: Options, written: Writer
) -> tuple[list[Job], Options]:
    """What is to be converted, one job for each signature where all are asked for, and the options of each job."""
    from ..conversion.signatures import ALL
    from ..conversion.subject import list_signatures, members
    from .jobs import plan_jobs, split_signatures

    jobs = plan_jobs(models, output, folder, options.member, members, written.suffixes[0], written.folder)
    if options.signature != ALL:
        return jobs, options
    return split_signatures(jobs, list_signatures, written.folder), options.replace(signature=None)


def _prepare_all(jobs: Sequence[Job], options: Options, quiet: bool) -> list[Prepared]:
    """The rules of all steps: those that cannot be had concern no single model, and are told before the first is read,
    and once."""
    from ..conversion.compiled_rules import prepare
    from ..conversion.conversion_steps import plan_steps
    from .console import show_wait

    steps = {step for job in jobs for step in plan_steps(f"{job.source}", options.replace(member=job.member))}
    with show_wait("rules are read for the first time; they are kept for the next", quiet):
        return [prepare(step.stacked, step.opset) for step in steps]


def _check_ends(options: Options) -> None:
    """Raise CallError for layouts and extents of inputs and outputs that are none."""
    from ..engine.passes.layout import Interface
    from ..engine.passes.resize import RequestedShapes

    Interface.parse(options.layout)
    RequestedShapes.parse(options.input_shape, options.batch)


def _check_drawing(drawing: Path | None, jobs: Sequence[Job], written: Writer) -> None:
    """Raise CallError where layouts are to be drawn, and not of a single model of ONNX."""
    from ..engine.base.errors import CallError

    _refuse_other_format("--layout-svg draws", drawing is not None, written)
    if drawing is not None and len(jobs) != 1:
        raise CallError(f"--layout-svg draws one model, {len(jobs)} are given")


def _choose_files(
    jobs: Sequence[Job], written: Writer, page: Path | None, paged: bool, drawing: Path | None
) -> list[Job]:
    """The jobs with the pages to write; raises CallError where a file is to be written twice, or over a source."""
    from .jobs import assign_pages, check_files, list_files

    assigned = [*jobs] if page is None else assign_pages(jobs, page, paged)
    files = list_files(assigned, written)
    files += [("--report", page / "index.html")] if page is not None and paged else []
    files += [("--layout-svg", drawing)] if drawing is not None else []
    check_files(files, [job.source for job in assigned])
    return assigned


def _refuse_lines(shown: Sequence[tuple[str, str | None]], workers: int, as_json: bool) -> None:
    """Raise CallError for options that print lines, where several processes would, or a document is asked for."""
    from ..engine.base.errors import CallError

    for name, said in shown:
        if workers > 1 and said is not None:
            raise CallError(f"{name} shows one thing after the other: leave out --jobs")
        if as_json and said is not None:
            raise CallError(f"{name} prints lines and --json a document: leave out one of them")


def _require_runtime(written: Writer) -> None:
    """Raise CallError where what is written cannot be run to be verified."""
    from ..engine.base.errors import CallError
    from ..verify.interpreter import require

    if not written.runtime:
        how = "is run by its own README" if written.folder else "is compiled into a program first"
        raise CallError(f"--verify runs a model's file: what is written as {written.name} {how}")
    require("onnxruntime")


def _make_printer(name: str, rules: Sequence[RuleSet]) -> Observer:
    """An observer that prints the graph after a pass; raises CallError where there is none of that name."""
    from ..engine.base.errors import CallError, suggest_nearest
    from ..engine.passes.observers import print_after
    from ..engine.passes.pass_list import list_names

    known = [*dict.fromkeys(found for each in rules for found in list_names(each)), "all"]
    if name not in known:
        raise CallError(f"there is no pass {name}{suggest_nearest(name, known)}; there are {', '.join(known)}")
    return print_after(name, click.echo)


def _run_watched(
    jobs: list[Job], call: Call, overrides: Sequence[Override], trace: str | None, observers: Sequence[Observer]
) -> bool:
    """Convert all models while what was asked for is shown of them, and tell whether all went well."""
    from ..engine.passes.base import observe
    from ..engine.rewrite.trace import Trace, trace_rules
    from .model_runs import convert_models

    watcher = None if trace is None else Trace(click.echo, trace or None)
    with trace_rules(watcher), observe(*observers):
        done = convert_models(jobs, call, overrides)
    if watcher is not None and (unmet := watcher.explain_silence()):
        print_error(f"--trace: {unmet}")
        return False
    return done

"""The default command: `rewrite --rules tflite2onnx MODEL...` converts models, one process for all of them."""

from __future__ import annotations

import contextlib
import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, flags
from .dispatch import Told, explain_unknown, format_interruption, list_commands, print_error
from .outcome import Call, attempt, start_interpreter
from .result import Failure, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..backends.writers import Writer
    from ..conversion.compiled_rules import Prepared
    from ..conversion.options import Options
    from ..engine.passes.base import Observer
    from ..engine.rewrite.rules import Override, RuleSet
    from ..verify import Interpreter
    from .console import Console
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
    below it that is not of the format to write). The output is named like the model, with the ending of its format.

    Exit status: 0 all done; 1 a model was not converted, or --verify found a difference; 2 the call or a rule file is
    wrong.
    """
    from ..conversion.conversion_steps import find_writer
    from ..conversion.options import Options
    from ..conversion.signatures import ALL
    from ..conversion.subject import list_signatures, members
    from ..engine.base.atomic_write import read_mode
    from ..engine.base.errors import CallError
    from ..engine.passes.base import observe
    from ..engine.passes.layout import Interface
    from ..engine.passes.resize import RequestedShapes
    from ..engine.rewrite.trace import Trace, trace_rules
    from .jobs import assign_pages, check_files, list_files, plan_jobs, split_signatures

    if trace and (not models or read_mode(trace)):
        # `--trace MODEL`: the option stands before what it takes no value of
        models, trace = (Path(trace), *models), ""
    if not models:
        raise click.UsageError(
            "Missing argument MODEL: a .tflite, .onnx or .pt2 file, a .task bundle or a folder.", ctx
        )
    if not models[0].exists() and (unknown := explain_unknown(f"{models[0]}")):
        raise CallError(unknown)
    # Every other option of the command is a field of Options, by its name.
    options = _choose_format(Options(**asked), output, f"{flags.FOLDER}.output" in ctx.meta)
    written = find_writer(options)
    if external_data and written.dialect != "onnx":
        raise CallError(f"--external-data is about ONNX models: what is written is {written.name}")
    jobs = plan_jobs(models, output, folder, options.member, members, written.suffixes[0], written.folder)
    if options.signature == ALL:
        jobs, options = split_signatures(jobs, list_signatures, written.folder), options.replace(signature=None)
    prepared = _prepare_all(jobs, options, quiet)
    Interface.parse(options.layout)
    RequestedShapes.parse(options.input_shape, options.batch)
    if layout_svg is not None and written.dialect != "onnx":
        raise CallError(f"--layout-svg draws ONNX models: what is written is {written.name}")
    if layout_svg is not None and len(jobs) != 1:
        raise CallError(f"--layout-svg draws one model, {len(jobs)} are given")
    paged = page is not None and (f"{flags.FOLDER}.page" in ctx.meta or page.is_dir())
    if page is not None:
        jobs = assign_pages(jobs, page, paged)
    files = list_files(jobs, written)
    files += [("--report", page / "index.html")] if page is not None and paged else []
    files += [("--layout-svg", layout_svg)] if layout_svg is not None else []
    check_files(files, [job.source for job in jobs])
    _refuse_lines((("--trace", trace), ("--print-after", print_after)), workers, as_json)
    observers = [] if print_after is None else [_make_printer(print_after, [each.rules for each in prepared])]
    if verify:
        _require_runtime(written)
    watcher = None if trace is None else Trace(click.echo, trace or None)
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
    with trace_rules(watcher), observe(*observers):
        done = run(jobs, call, overrides)
    if watcher is not None and (unmet := watcher.explain_silence()):
        print_error(f"--trace: {unmet}")
        done = False
    ctx.exit(0 if done else 1)


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


def _prepare_all(jobs: Sequence[Job], options: Options, quiet: bool) -> list[Prepared]:
    """The rules of all steps: those that cannot be had concern no single model, and are told before the first is read,
    and once."""
    from ..conversion.compiled_rules import prepare
    from ..conversion.conversion_steps import plan_steps
    from .console import show_wait

    steps = {step for job in jobs for step in plan_steps(f"{job.source}", options.replace(member=job.member))}
    with show_wait("rules are read for the first time; they are kept for the next", quiet):
        return [prepare(step.stacked, step.opset) for step in steps]


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


def run(jobs: list[Job], call: Call, overrides: Sequence[Override] = ()) -> bool:
    """Convert all models, print what came of each, and tell whether all went well.

    `overrides` are told of where their operators occur. Raises KeyboardInterrupt with how many models were converted.
    """
    from .console import Console

    if len(jobs) > 1 or call.verify:
        gc.enable()
    console = Console(len(jobs), call.quiet, overrides, call.as_json)
    started = time.perf_counter()
    results: list[Result] = []
    failures: list[Failure] = []
    try:
        with _convert_all(jobs, call, console) as outcomes, console:
            for outcome in outcomes:
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                    console.report_failure(outcome.job, outcome.message)
                    if not call.keep_going:
                        break
                else:
                    results.append(outcome)
                    console.show(outcome)
                console.advance()
    except KeyboardInterrupt as interruption:
        if len(jobs) == 1:
            raise
        if interruption.args:  # what workers have finished, and nobody was told of yet
            results = [one for one in interruption.args[0] if isinstance(one, Result)]
            failures = [one for one in interruption.args[0] if isinstance(one, Failure)]
        said = f"{len(results)} of {len(jobs)} models {'converted and verified' if call.verify else 'converted'}"
        if not call.as_json:
            raise KeyboardInterrupt(said) from None
        from .result_documents import show_conversions

        spent = time.perf_counter() - started
        show_conversions(results, failures, len(jobs), spent, overrides, format_interruption(said))
        raise Told(said) from None
    seconds = time.perf_counter() - started
    if call.pages is not None:
        from .pages import write_index

        write_index(call.pages, results, failures)
    if call.as_json:
        from .result_documents import show_conversions

        show_conversions(results, failures, len(jobs), seconds, overrides)
        return not failures and all(one.passed for one in results)
    if len(jobs) > 1:
        console.summarize(results, len(failures), len(jobs), seconds)
    if call.profile:
        console.print_times(results)
    return not failures and all(one.passed for one in results)


@contextlib.contextmanager
def _convert_all(jobs: list[Job], call: Call, console: Console) -> Iterator[Iterator[Result | Failure]]:
    """Convert one model after the other, or several at once; what came of each, in the order of the models."""
    if min(call.workers, len(jobs)) > 1:
        from .workers import start_workers

        with start_workers(jobs, call) as outcomes:
            yield outcomes
        return
    with start_interpreter(call) as interpreter:
        yield _convert_in_turn(jobs, call, console, interpreter)


def _convert_in_turn(
    jobs: list[Job], call: Call, console: Console, interpreter: Interpreter | None
) -> Iterator[Result | Failure]:
    for job in jobs:
        console.start(job)
        yield attempt(job, call, interpreter)

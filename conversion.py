"""The default command: `rewrite --rules tflite2onnx MODEL...` converts models, one process for all of them."""

from __future__ import annotations

import contextlib
import gc
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import flags
from .cli import commands_help, complain, no_command
from .engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .console import Console
    from .engine.layout.explain import Remaining
    from .engine.profile import Profile
    from .jobs import Job
    from .options import Options
    from .pipeline import Report
    from .verify import Interpreter, Verification


@dataclass(frozen=True, slots=True)
class Call:
    """What a call asks for: the options of every conversion, and what is done beside it."""

    options: Options
    verify: bool
    keep_going: bool
    quiet: bool
    explain: bool = False
    picture: Path | None = None
    external_data: bool = False
    profile: bool = False
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """One model converted: sizes in bytes, time in seconds without that of verification.

    `explained` has each Transpose that is left, where they were asked for. `unverified` says why a
    verification that was asked for could not be carried out.
    """

    job: Job
    report: Report
    bytes_in: int
    bytes_out: int
    seconds: float
    verification: Verification | None = None
    unverified: str = ""
    explained: tuple[Remaining, ...] = ()
    profile: Profile | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing that was asked for came out badly."""
        return not self.unverified and (self.verification is None or self.verification.passed)


@dataclass(frozen=True, slots=True)
class Failure:
    """A model that was not converted, and why."""

    job: Job
    message: str


def _version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"rewrite {version('nnrewrite')}")
        ctx.exit()


@click.command(
    "rewrite",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=commands_help(),
)
@click.argument("models", metavar="MODEL...", nargs=-1, type=click.Path(path_type=Path))
@flags.asked
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write, for one model."
)
@click.option(
    "-d",
    "--directory",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder to write to, made where it is missing. [default: the current one]",
)
@click.option("--explain-layout", is_flag=True, help="Tell of each Transpose left which two operators force it.")
@click.option(
    "--layout-svg",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the graph in two colours for the two layouts, for one model.",
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
    metavar="N",
    help="Convert N models at once, each in a process of its own. [default: 1]",
)
@click.option("--profile", is_flag=True, help="Show how long each part took, and each rule with its attempts.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    models: tuple[Path, ...],
    output: Path | None,
    folder: Path | None,
    explain_layout: bool,
    layout_svg: Path | None,
    keep_going: bool,
    verify: bool,
    trace: str | None,
    external_data: bool,
    workers: int,
    profile: bool,
    quiet: bool,
    **asked: Any,
) -> None:
    """Rewrite neural networks by rules: convert each MODEL and write it as ONNX.

    MODEL is a .tflite file, a .task bundle (each model inside is converted) or a folder (every model below it). The
    output is named like the model, with the ending .onnx.

    Exit status: 0 all done; 1 a model was not converted, or --verify found a difference; 2 the call or a rule file is
    wrong.
    """
    from .engine.errors import CallError
    from .engine.extents import Asked
    from .engine.layout import Interface
    from .engine.trace import Trace, traced
    from .jobs import plan, signed
    from .options import Options
    from .pipeline import members, prepare
    from .pipeline import signed as names
    from .signatures import ALL

    if trace and (not models or Path(trace).exists()):
        models, trace = (
            (Path(trace), *models),
            "",
        )  # `--trace MODEL`: the option stands before what it takes no value of
    if not models:
        raise click.MissingParameter(ctx=ctx, param_hint="MODEL...", param_type="argument")
    if not models[0].exists() and (unknown := no_command(f"{models[0]}")):
        complain(unknown)
        ctx.exit(2)
    # Every other option of the command is a field of Options, by its name.
    options = Options(**asked)
    try:
        options = options.settled
        jobs = plan(models, output, folder, options.member, members)
        if options.signature == ALL:
            jobs, options = signed(jobs, names), options.but(signature=None)
        # Rules that cannot be had concern no single model: they are told before the first is read, and once.
        prepared = prepare(options.stacked, options.opset)
        Interface.parse(options.layout)
        Asked.parse(options.input_shape, options.batch)
        if layout_svg is not None and len(jobs) != 1:
            raise CallError(f"--layout-svg draws one model, {len(jobs)} are given")
        if workers > 1 and trace is not None:
            raise CallError("--trace shows one match after the other: leave out --jobs")
    except CallError as error:
        complain(f"{error}")
        ctx.exit(2)
    if verify:
        from .verify.interpreter import require

        require("ai_edge_litert", "onnxruntime")
    if not quiet:
        for override in prepared.pack.overrides:
            click.echo(f"rewrite: note: {override.rule} takes the place of {override.instead_of}", err=True)
    watcher = None if trace is None else Trace(click.echo, trace or None)
    call = Call(options, verify, keep_going, quiet, explain_layout, layout_svg, external_data, profile, workers)
    with traced(watcher):
        done = run(jobs, call)
    if watcher is not None and (unmet := watcher.unmet()):
        complain(f"--trace: {unmet}")
        done = False
    ctx.exit(0 if done else 1)


def original(job: Job) -> Path | bytes:
    """Find what was converted, for the interpreter to run: the file, or a member's bytes."""
    if job.member is None:
        return job.source
    from .frontends.bundle import open_member

    return bytes(open_member(job.source, job.member))


def run(jobs: list[Job], call: Call) -> bool:
    """Convert all models, print what came of each, and tell whether all went well."""
    from .console import Console

    if len(jobs) > 1 or call.verify:
        gc.enable()
    console = Console(len(jobs), call.quiet)
    started = time.perf_counter()
    results: list[Result] = []
    failures = 0
    with _converting(jobs, call, console) as outcomes, console:
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                failures += 1
                console.complain(outcome.job, outcome.message)
                if not call.keep_going:
                    break
            else:
                results.append(outcome)
                console.show(outcome)
            console.advance()
    seconds = time.perf_counter() - started
    if len(jobs) > 1:
        console.summarize(results, failures, len(jobs), seconds)
    if call.profile:
        console.account(results)
    return not failures and all(one.passed for one in results)


@contextlib.contextmanager
def _converting(jobs: list[Job], call: Call, console: Console) -> Iterator[Iterator[Result | Failure]]:
    """Convert one model after the other, or several at once; what came of each, in the order of the models."""
    if min(call.workers, len(jobs)) > 1:
        from .workers import working

        with working(jobs, call) as outcomes:
            yield outcomes
        return
    with interpreting(call) as interpreter:
        yield _in_turn(jobs, call, console, interpreter)


def _in_turn(
    jobs: list[Job], call: Call, console: Console, interpreter: Interpreter | None
) -> Iterator[Result | Failure]:
    for job in jobs:
        console.begin(job)
        yield attempt(job, call, interpreter)


def convert(job: Job, call: Call, interpreter: Interpreter | None = None) -> Result:
    """Convert one model, write it, and verify it where there is an interpreter to do so with."""
    from .destination import replacing
    from .engine.profile import Profile, profiled
    from .pipeline import explain, picture, rewrite

    profile = Profile() if call.profile else None
    started = time.perf_counter()
    with profiled(profile):
        signature = job.signature or call.options.signature
        conversion = rewrite(job.source, call.options, member=job.member, signature=signature)
        written = conversion.save(job.target, call.external_data)
    seconds = time.perf_counter() - started
    source = original(job)
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    options = call.options
    explained = tuple(explain(conversion.sketch, options.rules, options.target)) if call.explain else ()
    if call.picture is not None:
        with replacing(call.picture) as file:
            file.write(picture(conversion.sketch, call.options.rules).encode())
    result = Result(job, conversion.report, size, written, seconds, explained=explained, profile=profile)
    return _verified(result, source, interpreter) if interpreter is not None else result


def interpreting(call: Call) -> contextlib.AbstractContextManager[Interpreter | None]:
    """One worker verifies all models of a call."""
    if not call.verify:
        return contextlib.nullcontext()
    from .verify import Interpreter

    return Interpreter()


def _verified(result: Result, source: Path | bytes, interpreter: Interpreter) -> Result:
    from .engine.errors import VerificationError
    from .verify import compare_models

    signature = result.report.signature

    try:
        return replace(
            result, verification=compare_models(source, result.job.target, interpreter=interpreter, signature=signature)
        )
    except VerificationError as error:
        return replace(result, unverified=f"{error}")


def attempt(job: Job, call: Call, interpreter: Interpreter | None) -> Result | Failure:
    """Convert one model; raises RuleError, as a mistake in a rule concerns all models."""
    from .engine.errors import RewriteError, RuleError

    try:
        return convert(job, call, interpreter)
    except RuleError:
        raise
    except RewriteError as error:
        return Failure(job, f"{error}")
    except Exception as error:
        # A mistake of ours: on its own it is shown whole, among many models it must not cost the others.
        if not call.keep_going:
            raise
        return Failure(job, f"internal error: {type(error).__name__}: {error}")

"""One model converted, written and verified as a call asks for it, and what came of that."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.base.startup import dataclass
from .result import Failure, Result

if TYPE_CHECKING:
    from ..conversion.options import Options
    from ..engine.base.errors import RewriteError
    from ..verify import Interpreter
    from .jobs import Job


@dataclass(frozen=True, slots=True)
class Call:
    """What a call asks for: the options of every conversion, and what is done beside it.

    `pages` is the folder of a page for each model, where they get a list of them all.
    """

    options: Options
    verify: bool
    keep_going: bool
    quiet: bool
    explain: bool = False
    picture: Path | None = None
    external_data: bool = False
    profile: bool = False
    workers: int = 1
    as_json: bool = False
    pages: Path | None = None


def find_original(job: Job) -> Path | bytes:
    """Find what was converted, for the interpreter to run: the file, or a member's bytes."""
    if job.member is None:
        return job.source
    from ..frontends.bundle import open_member

    return bytes(open_member(job.source, job.member))


def convert(job: Job, call: Call, interpreter: Interpreter | None = None) -> Result:
    """Convert one model, write it, and verify it where there is an interpreter to do so with."""
    from ..conversion.inspection import draw_picture, explain_graph
    from ..conversion.pipeline import rewrite
    from ..engine.base.atomic_write import open_replacement
    from ..engine.rewrite.profile import Profile, note_costs

    profile = Profile() if call.profile or job.page is not None else None
    started = time.perf_counter()
    with note_costs(profile):
        signature = job.signature or call.options.signature
        conversion = rewrite(job.source, call.options, member=job.member, signature=signature)
        written = conversion.save(job.target, external_data=call.external_data)
    seconds = time.perf_counter() - started
    source = find_original(job)
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    explained = tuple(explain_graph(conversion.graph, conversion.options)) if call.explain or job.page else ()
    if call.picture is not None:
        with open_replacement(call.picture) as file:
            file.write(draw_picture(conversion.sketch, call.options.rules).encode())
    result = Result(job, conversion.report, size, written, seconds, explained=explained, profile=profile)
    with contextlib.ExitStack() as stack:
        if interpreter is not None:
            result, source = _verify(result, call, source, interpreter, stack)
        if job.page is not None:
            from .pages import write_result

            write_result(job.page, call.options, result, conversion, source, interpreter)
            # What only the page asked for is not printed.
            shown, times = explained if call.explain else (), profile if call.profile else None
            result = replace(result, explained=shown, profile=times)
    return result


def start_interpreter(call: Call) -> contextlib.AbstractContextManager[Interpreter | None]:
    """One worker verifies all models of a call."""
    if not call.verify:
        return contextlib.nullcontext()
    from ..verify import Interpreter

    return Interpreter()


def _verify(
    result: Result, call: Call, source: Path | bytes, interpreter: Interpreter, stack: contextlib.ExitStack
) -> tuple[Result, Path | bytes]:
    """Compare a result with its original: the model, or the part of it asked for, a file until the stack is closed;
    and which."""
    from ..engine.base.errors import RewriteError
    from ..verify import compare_models

    job, options, signature = result.job, call.options, result.report.signature
    try:
        if options.inputs or options.outputs:
            from ..conversion.part_file import write_part

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            asked = options.replace(member=job.member, signature=job.signature or options.signature)
            source, signature = write_part(job.source, asked, folder), None
        verification = compare_models(source, job.target, interpreter=interpreter, signature=signature)
        return replace(result, verification=verification), source
    except RewriteError as error:
        return replace(result, unverified=f"{error}"), source


def attempt(job: Job, call: Call, interpreter: Interpreter | None) -> Result | Failure:
    """Convert one model; raises RuleError, as a mistake in a rule concerns all models."""
    from ..engine.base.errors import InternalError, RewriteError, RuleError

    try:
        return convert(job, call, interpreter)
    except (RuleError, BrokenPipeError):
        raise
    except RewriteError as error:
        return _fail(job, call, error)
    except Exception as error:
        return _fail(job, call, InternalError("what is done with the converted model", error))


def _fail(job: Job, call: Call, error: RewriteError) -> Failure:
    from ..engine.base.errors import InternalError, RewriteError

    told: dict[str, RewriteError] = {f"{error}": error}
    if job.page is not None:
        from .pages import write_refusal

        try:
            write_refusal(job.page, call.options, job, error)
        except RewriteError as other:
            told.setdefault(f"{other}", other)
        except Exception as other:
            mistake = InternalError("the page of a model that was refused", other)
            told[f"{mistake}"] = mistake
    message = "\n".join(told)
    if not call.as_json:
        return Failure(job, message)
    from .json_documents import diagnose

    return Failure(job, message, tuple(found for one in told.values() for found in diagnose(one, job.name)))

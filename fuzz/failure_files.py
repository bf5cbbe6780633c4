"""Files of a failure: model, inputs, outputs and a report that anybody can look at and run again."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..conversion.options import DEFAULT, PORTABLE, Options
from ..engine.base import regular_files
from ..engine.base.atomic_write import open_replacement
from ..engine.base.errors import RewriteError, VerificationError
from ..engine.packs.folders import find_folders
from ..verify.comparison import check_equal
from ..verify.formats import INTERPRETED, find_format
from ..verify.frames import Array
from ..verify.interpreter import Interpreter, Kernels
from ..verify.runtime import Runtime
from ..verify.verification import Verification, compare_models
from .baseline import format_left
from .finding import Finding
from .rule_sets import RuleSets
from .runtimes import encode_case, is_interpreted, read_bytes
from .sketch import Case

#: where the interpreter has no kernel: the model of what the operators mean
_MEANING = ".meaning"


class Saved(NamedTuple):
    """What there is of a failure: the report, and the command that runs it again."""

    report: Path
    command: str


def save(
    case: Case,
    finding: Finding,
    folder: Path,
    places: Mapping[str, str],
    of_source: bool,
    stack: RuleSets,
    options: Options,
    drawn: tuple[str, ...] = (),
) -> Saved:
    """Write the model, its inputs, the outputs of both sides and a report into a folder; raises OSError.

    A case of the source dialect becomes a `.tflite` or `.onnx` file, beside it what its operators mean where the
    interpreter has no kernels for them; a case over the target alone is told in the report only. The command that runs
    it again works from any folder, and names the rules and the target asked for in `options`, or the rules of the stack
    where others are laid over them; where the case has to be drawn anew, `drawn` are the options that say which it is.
    """
    catalogue, opset = stack.pack.catalogue, case.opset or stack.pack.default_opset
    text = case.describe()
    digest = hashlib.sha256(f"{text}{finding.reason}".encode()).hexdigest()[:8]
    stem = folder / f"{re.sub(r'[^A-Za-z0-9_]+', '-', case.rule)}-{digest}"
    _save_arrays(case, finding, stem, stack.exact)
    lines = [f"# {places.get(case.rule, case.rule)}", "", finding.reason, "", "```", text, "```", ""]
    lines += ["Rules that fired:", "", *(f"- {places.get(name, name)}" for name in finding.fired), ""]
    try:
        stored = encode_case(case, catalogue, opset) if of_source else None
    except RewriteError as error:
        stored = None
        lines += [f"No file can hold it: {error}", ""]
    again = ["--rule", case.rule, *drawn]
    if stored is not None:
        model = stem.with_suffix(".tflite" if is_interpreted(case, catalogue) else ".onnx")
        _write(model, stored)
        if any(step.meaning for step in case.steps):
            meant = encode_case(case.as_run, catalogue, opset)
            _write(stem.with_suffix(f"{_MEANING}{model.suffix}"), meant)
        if not finding.recorded or finding.most is not None:
            again = ["--replay", f"{model.resolve()}"]
    command = shlex.join(["rewrite", "fuzz", *_name_packs(stack, options), *again])
    lines += ["Run it again:", "", f"    {command}", ""]
    report = stem.with_suffix(".md")
    _write(report, "\n".join(lines).encode())
    return Saved(report, command)


def _name_packs(stack: RuleSets, options: Options) -> list[str]:
    """The options by which the command has the same rules, in any folder."""
    asked = () if options.rules == DEFAULT.rules else options.rules
    named = asked if stack.rules == options.stacked else stack.rules
    packs = [word for name in named for word in ("--rules", _make_absolute(name))]
    return packs + (["--target", _make_absolute(options.runtime)] if options.runtime != DEFAULT.runtime else [])


def _save_arrays(case: Case, finding: Finding, stem: Path, exact: bool) -> None:
    """Write the inputs and the outputs of both sides, and what `replay` needs to know of the case."""
    arrays: dict[str, Array] = {f"input_{place}": value.content for place, value in enumerate(case.inputs)}
    arrays |= {f"expected_{place}": array for place, array in enumerate(finding.expected)}
    arrays |= {f"actual_{place}": array for place, array in enumerate(finding.actual)}
    most = -1 if finding.most is None else finding.most
    about: dict[str, Any] = {"opset": case.opset or 0, "exact": exact, "most": most}
    with open_replacement(stem.with_suffix(".npz")) as file:
        np.savez(file, **about, **_pack_texts(arrays))


def _pack_texts(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Arrays as they are saved: of texts, which would be pickled, the bytes one behind the other and their lengths."""
    saved: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype != object:
            saved[name] = array
            continue
        texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.ravel()]
        saved[name] = np.frombuffer(b"".join(texts), np.uint8)
        saved[f"{name}_lengths"] = np.array([len(text) for text in texts], np.int64).reshape(array.shape)
    return saved


def _read_array(saved: Mapping[str, Array], name: str) -> Array:
    """An array as `_pack_texts` has saved it."""
    lengths = saved.get(f"{name}_lengths")
    if lengths is None:
        return saved[name]
    content = io.BytesIO(saved[name].tobytes())
    texts = [content.read(length) for length in lengths.ravel().tolist()]
    return np.array(texts, dtype=object).reshape(lengths.shape)


def _write(path: Path, content: bytes) -> None:
    with open_replacement(path) as file:
        file.write(content)


def _make_absolute(name: str) -> str:
    """A pack as any folder knows it."""
    return f"{Path(name).resolve()}" if name != PORTABLE and find_folders([name]) == [Path(name)] else name


def replay(path: Path, rules: tuple[str, ...]) -> Verification:
    """Convert a saved model again and compare it on the saved inputs; raises what a conversion raises."""
    from ..conversion import pipeline

    try:
        with np.load(io.BytesIO(regular_files.read_bytes(path.with_suffix(".npz")))) as saved:
            opset, exact = int(saved["opset"]) or None, "exact" in saved.files and bool(saved["exact"])
            most = int(saved["most"]) if "most" in saved.files else -1
            count = sum(bool(re.fullmatch(r"input_\d+", name)) for name in saved.files)
            feeds = [_read_array(saved, f"input_{place}") for place in range(count)]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        why = regular_files.explain_failure(error) if isinstance(error, OSError | ValueError) else "damaged"
        raise VerificationError(f"{path.with_suffix('.npz')}: no inputs of a saved failure: {why}") from error
    interpreted = find_format(str(path)) == INTERPRETED
    target = PORTABLE if interpreted else None
    conversion = pipeline.rewrite(path, rules=rules, opset=opset, target=target, alone=True)
    model, operators = read_bytes(conversion.encoded), sum(conversion.report.target_operators.values())
    meaning = path.with_suffix(f"{_MEANING}{path.suffix}")
    asked = meaning if meaning.exists() else path
    with Interpreter() as interpreter:
        found = compare_models(asked, model, inputs=[feeds], interpreter=interpreter, precise=True)
        if 0 <= most < operators:
            found = replace(found, problems=(*found.problems, format_left(operators, most)))
        if not exact:
            return found
        (want,) = interpreter.run(asked, [feeds], Kernels.REFERENCE)
    names = [one.name for one in found.comparisons]
    wrong = tuple(filter(None, map(check_equal, names, want, Runtime(model, precise=True).run(feeds))))
    return replace(found, problems=(*found.problems, *wrong))

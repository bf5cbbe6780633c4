"""Part files: the part of a model that is asked for, as it is, in the format of the model."""

from __future__ import annotations

import os
from pathlib import Path

from ..backends import writers
from ..engine.base.errors import CallError
from ..engine.passes.part import Part
from .compiled_rules import prepare
from .conversion_steps import plan_steps
from .options import Options
from .subject import find_reader, read_subject


def write_part(source: str | os.PathLike[str], options: Options, folder: Path) -> Path:
    """Write the part of a model that options ask for into a folder, by no rules; the file.

    It is what a conversion of the part is held against. Raises ModelError for a file that is no model, CallError for
    names that no value has, for a part that needs other inputs, and for a format that nothing writes.
    """
    source = os.fspath(source)
    step = plan_steps(source, options)[0]
    pack = prepare(step.stacked, None).pack
    subject = read_subject(source, options, pack)
    dialect = pack.catalogue.find_dialect(pack.source)
    writer = writers.find_dialect_writer(dialect.name)
    if writer is None:
        raise CallError(f"there is no writing a part of a {find_reader(source, options).name} model as it is")
    Part(tuple(options.inputs), tuple(options.outputs)).extract(subject.graph, dialect)
    output = writers.Output(subject.graph, subject.outputs, dialect, subject.opset or 1, origin=subject.model)
    path = folder / f"part{writer.suffixes[0]}"
    writer.encode(output).save(path, external_data=False)
    return path

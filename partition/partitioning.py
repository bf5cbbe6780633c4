"""A model from its file to its parts."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..backends import tflite_file
from ..backends.replaced_files import check_replaced
from ..conversion.compiled_rules import Prepared, prepare
from ..conversion.conversion_steps import ask_for_target
from ..conversion.options import Options
from ..conversion.pipeline import rewrite
from ..conversion.target import read_prices
from ..engine.base.atomic_write import accept_destination, check_replaceable
from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.packs.folders import UnknownPackError, list_built_in
from ..engine.packs.headers import has_stage, read_pair
from ..engine.passes.fix_defaults import fix_inputs
from ..engine.rewrite.stages import JUDGING, MEANING, SUPPORT
from ..frontends import readers
from ..frontends.source import Source, accept
from .bodies import list_bodies
from .capability import find_supported
from .computed_constants import fold_shape_arithmetic, fold_stored
from .files import list_files, write
from .model_files import DIALECTS, ModelFiles, find_files
from .plan import Plan, Prices, plan_graph


@dataclass(frozen=True, slots=True)
class Partition:
    """A model divided for a target: its graphs, which belong to `model`, their plans, and what its files are.

    `plans` begins with the main graph; the others are bodies of loops and branches that stay on the host.
    """

    target: str
    model: ir.Model
    plans: Mapping[ir.Graph, Plan]
    files: ModelFiles
    #: the target has rules besides those that say what it takes
    rewrites: bool = False
    #: the file that the model was read from, None for bytes
    source: Path | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the main graph."""
        return self.plans[self.model.graph]

    def list_files(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The files that `save` writes into a folder, and those of an earlier partition there, which give way."""
        return list_files(Path(folder), self.files, self.plans)

    def save(self, folder: str | os.PathLike[str], *, functions: bool = False) -> dict[str, Any]:
        """Write one file for each step, the host's model and the manifest; the manifest.

        Where the target has rules of its own each part is rewritten by them, with a layout pass of its own. With
        `functions` the parts are functions of the host's model, as they were before that, and it runs as it is. Raises
        CallError for that where the format has none, DestinationError where the source would be replaced, and what
        `rewrite` raises.
        """
        if functions and not self.files.functions:
            raise CallError(f"{self.files.suffix} files have no functions, parts are custom operators there")
        place = accept_destination(folder)
        files = self.list_files(place)
        check_replaced(place, files, () if self.source is None else [self.source])
        for file in files:
            check_replaceable(file)  # before the first is written
        finish = self._rewrite if self.rewrites else None
        return write(place, self.model, self.files, self.plans, {"target": self.target}, functions, finish)

    def _rewrite(self, path: Path) -> dict[str, Any]:
        """Rewrite the file of a part by the target's rules, between the same inputs and outputs; what came of it."""
        conversion = rewrite(path, Options(target=self.target, to=self.files.suffix, layout=("source",)))
        conversion.save(path)
        told = conversion.report
        moved = {"transposes": told.permutations, "transposed_elements": told.moved}
        return {"rules": dict(sorted(told.rules.items())), **moved}


def partition(source: Source, target: str, options: Options | None = None) -> Partition:
    """Divide a model for a target that takes a part of it; one of another dialect than the target's rules are about is
    converted first.

    Raises CallError for a target without rules of the stage `support`, or for a dialect that no parts are written of,
    and what `rewrite` raises.
    """
    held, target = accept(source), os.fspath(target)
    try:
        pair = read_pair(target)
    except UnknownPackError as error:
        raise CallError(f"there is no target {target}; {_advise()}") from error
    if pair is None or pair[0] not in DIALECTS:
        about = "it has no rules" if pair is None else f"its rules are about {pair[0]}"
        raise CallError(f"target {target} cannot be divided for: {about}, parts are of {' or '.join(DIALECTS)}")
    own = prepare((target,), None).rules.list_stages()
    if SUPPORT not in own:
        lack = f"target {target} has no rules of the stage {SUPPORT}, which say what it takes of a model"
        raise CallError(f"{lack}; {_advise()}")
    model, prepared = _read(held, pair[0], target, options or Options())
    fix_inputs(model.graph, ())  # which callers may override: what is divided computes with their defaults
    if not prepared.rules.source.schemas:
        fold_stored(model.graph, prepared.rules.source)
        fold_shape_arithmetic(model.graph, prepared.rules)
    plans = _plan_graphs(model, prepared, Prices(**read_prices(target)))
    files, rewrites = find_files(prepared.rules.source), bool(own - {*JUDGING, MEANING})
    return Partition(target, model, plans, files, rewrites, Path(held) if isinstance(held, str) else None)


def _advise() -> str:
    """The targets that come with the program and take a part of a model."""
    packs = [name for name in list_built_in() if (read_pair(name) or ("",))[0] in DIALECTS]
    found = [name for name in packs if has_stage(name, SUPPORT)]
    return f"models can be divided for {', '.join(found)}, or for a folder of rules"


def _plan_graphs(model: ir.Model, prepared: Prepared, judged: Prices) -> dict[ir.Graph, Plan]:
    """Plans of the main graph and of the bodies of what stays on the host; no two parts have one name."""
    numbers = itertools.count()
    plans: dict[ir.Graph, Plan] = {}
    work = [model.graph]
    for graph in work:
        if graph in plans:
            continue
        plans[graph] = plan_graph(graph, find_supported(graph, prepared.rules), judged, numbers)
        for step in plans[graph].steps:
            for node in step.nodes if not step.part else ():
                work += list_bodies(node, prepared.rules.source, model)
    return plans


def _read(source: str | bytes, dialect: str, target: str, options: Options) -> tuple[ir.Model, Prepared]:
    """A model as a graph of a dialect, with a target's rules; as it stands where no rule set has its name."""
    reader = next(one for one in readers.READERS if one.dialect == dialect)
    if dialect in list_built_in():
        conversion = rewrite(source, ask_for_target(source, options, target))
        prepared = prepare((dialect, target), conversion.report.opset)
        return reader.read(conversion.model.SerializeToString(), prepared.pack.catalogue), prepared
    prepared = prepare((target,), None)
    if readers.find_reader(source).dialect != dialect or options != Options():
        encoded = rewrite(source, options.replace(to=reader.suffixes[0])).encoded
        assert isinstance(encoded, tflite_file.Encoded)
        source = encoded.encode()
    return reader.read(source, prepared.pack.catalogue), prepared

"""Rule sets, loaded and compiled for an opset, once for each while their files stay as they are."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx_ir as ir

from ..engine.base.constants import Elements
from ..engine.base.errors import CallError, RuleError
from ..engine.base.startup import dataclass
from ..engine.packs import loader
from ..engine.rewrite.result_inference import ResultInference
from ..engine.rewrite.rules import RuleSet


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rule packs, compiled for one opset."""

    pack: loader.Pack
    rules: RuleSet
    opset: int


@functools.lru_cache(maxsize=8)
def _pack(rules: tuple[str, ...], stamp: tuple[str, ...]) -> loader.Pack | RuleError:
    """Packs, or their mistakes: neither is looked for again before a file changes."""
    try:
        return loader.load(rules)
    except RuleError as error:
        return error


def prepare(
    rules: tuple[str, ...], opset: int | None, skip: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Prepared:
    """Load rule sets and compile them for an opset, by default the one that they name.

    Rules to `skip` are left out, or all but those that `only` names. Raises RuleError for mistakes in rule files,
    CallError for an unknown rule set or rule, sets that cannot lie over each other, or an opset out of range.
    """
    return _prepare(rules, opset, skip, only, loader.make_stamp(rules))


@functools.lru_cache(maxsize=64)  # as many as there are opsets, for a few sets of packs
def _prepare(
    rules: tuple[str, ...], opset: int | None, skip: tuple[str, ...], only: tuple[str, ...], stamp: tuple[str, ...]
) -> Prepared:
    pack = _pack(rules, stamp)
    if isinstance(pack, RuleError):
        raise RuleError(pack.diagnostics, pack.sources)
    pack.require_stackable()
    low, high = pack.opsets
    version = pack.default_opset if opset is None else opset
    if not low <= version <= high:
        raise CallError(f"opset {version} is none of {low} to {high}, which the rules of {', '.join(rules)} can write")
    contents = pack.contents.select(skip, only)
    facts = pack.catalogue.find_dialect(pack.target).facts
    settle = None if facts.reference is None else _infer_by(facts.reference).settle
    others = None if facts.others is None else functools.partial(_settle_by, facts.others)
    read = pack.catalogue.find_dialect(pack.source).facts.reference
    source = None if read is None else functools.partial(_settle_by, read)
    return Prepared(pack, RuleSet(pack.files, pack.catalogue, version, contents, settle, others, source), version)


@functools.cache
def _infer_by(rules: str) -> ResultInference:
    """The results of nodes by a rule set that comes with the program."""
    return ResultInference(prepare((rules,), None).rules)


def _settle_by(rules: str, node: ir.Node) -> Sequence[Elements] | None:
    """Settle a node by a rule set, which is not read before there is one: most models have none."""
    return _infer_by(rules).settle(node)

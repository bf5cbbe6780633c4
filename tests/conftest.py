"""What tests share: the catalogue, the folder of real models, and small models made on the spot."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
from hypothesis import settings
from nnrewrite.backends import probe
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.engine.rewrite import coverage
from nnrewrite.verify import Interpreter


def pytest_configure() -> None:
    """Look at old objects seldom: rules that are loaded stay, millions of them, and are looked at for nothing; and let
    examples take what time they take."""
    gc.set_threshold(200_000, 20, 100)
    # What an example takes tells of the machine's other work.
    settings.register_profile("tests", deadline=None)
    settings.load_profile("tests")


def pytest_sessionfinish() -> None:
    """Look at old objects no more: pytest does so several times before it ends."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Whole models are slow."""
    for item in items:
        if "models_folder" in item.fixturenames:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Tell of a fact about a runtime that is not so what it was taken from, and what takes it anew."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    mark = item.get_closest_marker("runtime_fact")
    if mark is not None and report.failed:
        report.sections.append(("a fact about a runtime", _fact(*mark.args)))


def _fact(package: str, command: str) -> str:
    """What a fact about a runtime was taken from, what is installed, and the command that takes it anew."""
    taken = next(d.facts.measured[package] for d in load().dialects.values() if package in d.facts.measured)
    return (
        f"ops.yaml says it of {package} {taken[0]} to {taken[1]}; {metadata.version(package)} is installed.\n"
        f"If that is another one, `{command}` takes the fact anew."
    )


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """The folder of real models: $NNREWRITE_MODELS, or `shared/models` beside the repository."""
    folder = Path(os.environ.get("NNREWRITE_MODELS") or OPS.parent.parent / "shared" / "models")
    if not folder.is_dir():
        pytest.skip(f"no folder of real models: {folder} is not there, and NNREWRITE_MODELS names no other")
    return folder


@pytest.fixture(scope="session")
def models(models_folder: Path) -> list[Path]:
    """All real models, in a fixed order."""
    return sorted(models_folder.rglob("*.tflite"))


@pytest.fixture(scope="session")
def single(catalogue: Catalogue) -> Callable[..., bytes]:
    """Write a model of one operator: `single("ADD", {"x": (type, shape), "y": array}, [(type, shape)], option=...)`."""
    return functools.partial(probe.write_operator_model, catalogue)


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    pytest.importorskip("ai_edge_litert")
    with Interpreter() as client:
        yield client


@pytest.fixture(scope="module")
def counted() -> Iterator[None]:
    """The rules that a module tries count where coverage is asked for."""
    yield
    coverage.save()


@pytest.fixture(scope="session")
def described() -> Callable[[ir.Model], Any]:
    """All that a model says as plain data, to compare two."""
    return _described


def _described(model: ir.Model) -> Any:
    graphs = [
        {
            "name": graph.name,
            "inputs": [_value(value) for value in graph.inputs],
            "outputs": [_value(value) for value in graph.outputs],
            "nodes": [
                {
                    "operator": (node.domain, node.op_type, node.version),
                    "inputs": [_value(value) for value in node.inputs],
                    "outputs": [_value(value) for value in node.outputs],
                    "options": {name: (a.type, a.value) for name, a in node.attributes.items()},
                    "meta": {name: kept for name, kept in node.meta.items() if name != "intermediates"},
                    "intermediates": [_value(value) for value in node.meta.get("intermediates", ())],
                }
                for node in graph
            ],
        }
        for graph in model.meta.get("subgraphs", [model.graph])
    ]
    # What a model made in memory does not say, a file says by leaving it empty.
    extra = {name: model.meta.get(name) or None for name in ("signatures", "description", "metadata")}
    return {"graphs": graphs, **extra}


def _value(value: ir.Value | None) -> Any:
    if value is None:
        return None
    meta = dict(value.meta)
    sparsity = meta.pop("sparsity", None)
    if sparsity is not None:
        meta["stored"] = (sparsity.order, sparsity.blocks, sparsity.stored.tobytes())
    shape = None if value.shape is None else [n if isinstance(n, int) else str(n) for n in value.shape]
    return {"name": value.name, "type": value.dtype, "shape": shape, "meta": meta, "content": _content(value)}


def _content(value: ir.Value) -> Any:
    content = value.const_value
    if content is None:
        return None
    if isinstance(content, ir.StringTensor):
        return content.dtype, list(content.string_data())
    return content.dtype, content.tobytes()

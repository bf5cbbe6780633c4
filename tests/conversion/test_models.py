"""Real models, converted and compared with the interpreter; skipped where the folder of models is not at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import nnrewrite
import pytest
from nnrewrite.verify import Interpreter, compare_models

#: float32 networks of these tiers are to convert; the others of the folder are single operators and vendors' blobs
TIERS = {"core", "model"}
#: of the networks above, those that cannot be converted yet, and why
NOT_YET = {
    "dummy_sp_text_embedder.tflite": "text operators of a runtime extension",
}
LEAST = 40


@pytest.fixture(scope="session")
def networks(models_folder: Path) -> list[Path]:
    """The float32 and float16 networks of the folder that run in the interpreter."""
    with (models_folder / "MANIFEST.tsv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    wanted = [row for row in rows if row["kind"] in ("float32", "float16 weights") and row["tier"] in TIERS]
    return [models_folder / row["path"] for row in wanted if row["runs"].startswith("yes")]


def test_float_networks_convert_and_agree_with_the_interpreter(networks: list[Path], interpreter: Interpreter) -> None:
    verified, failed = 0, {}
    for path in networks:
        if path.name in NOT_YET:
            continue
        try:
            model = nnrewrite.convert(path)
        except nnrewrite.RewriteError as error:
            failed[path.name] = str(error)
            continue
        result = compare_models(path, model.SerializeToString(), interpreter=interpreter)
        if result.passed:
            verified += 1
        else:
            failed[path.name] = "; ".join(result.differences)
    assert not failed
    assert verified >= LEAST


def test_bundles_convert_model_by_model(models_folder: Path, tmp_path: Path) -> None:
    import zipfile

    models = sorted(models_folder.rglob("iris.tflite"))[:1] + sorted(models_folder.rglob("xor_model.tflite"))[:1]
    bundle = tmp_path / "two.task"
    with zipfile.ZipFile(bundle, "w") as archive:
        for path in models:
            archive.write(path, path.name)
    bundle.write_bytes(b"stray" + bundle.read_bytes())
    names = nnrewrite.members(bundle)
    assert sorted(names) == sorted(path.name for path in models)
    for path in models:
        converted = nnrewrite.convert(bundle, member=path.name)
        assert converted.graph.node == nnrewrite.convert(path).graph.node

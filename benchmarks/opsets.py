"""Node tests of the onnx package in other opsets: by rules, and by onnx.version_converter.

`python -m nnrewrite.benchmarks.opsets [OPSET ...] [--write]` prints, for each opset, how many of the node tests that
ONNX Runtime passes as they came still pass when they are written in that opset; with `--write` docs/optimize.md gets
the table.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from nnrewrite import RewriteError, convert
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

_OPSETS = (11, 13, 17, 21)
_PAGE = Path(__file__).parents[1] / "docs/optimize.md"
_TABLE = re.compile(
    r"(<!-- benchmarks/opsets.py writes what follows -->\n).*?(<!-- end of the table of opsets -->)", re.DOTALL
)

Case = tuple[str, onnx.ModelProto, list[tuple[dict[str, np.ndarray], list[np.ndarray]]]]


def list_cases(pattern: str = "", folder: Path | None = None) -> Iterator[Case]:
    """The node tests of tensors alone that ONNX Runtime passes as they came: name, model, inputs and outputs.

    They are those of the installed package, or of a folder `onnx/backend/test/data/node` of another release.
    """
    own_tests: list[Any] = [] if folder is not None else collect_testcases("")
    found = _read_folder(folder) if folder is not None else ((t.name, t.model, t.data_sets) for t in own_tests)
    for name, model, sets in found:
        own = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
        if not re.search(pattern, name) or len(own) != len(model.opset_import) or own < [7]:
            continue
        arrays = [item for given, wanted in sets for item in (*given, *wanted)]
        if not all(isinstance(item, np.ndarray | np.generic) for item in arrays):
            continue
        names = [value.name for value in model.graph.input]
        pairs = [(dict(zip(names, given, strict=False)), [*wanted]) for given, wanted in sets]
        if pairs and passes(model, pairs):
            yield name, model, pairs


def _read_folder(folder: Path) -> Iterator[tuple[str, onnx.ModelProto, list[tuple[list[Any], list[Any]]]]]:
    for path in sorted(folder.glob("*/model.onnx")):
        model = onnx.load(path)
        kinds = [value.type.WhichOneof("value") for value in (*model.graph.input, *model.graph.output)]
        if any(kind != "tensor_type" for kind in kinds):
            continue
        folders = sorted(path.parent.glob("test_data_set_*"))
        try:
            sets = [(_read(one, "input"), _read(one, "output")) for one in folders]
        except UnicodeDecodeError:  # a string that is no text, as a release had one
            continue
        yield path.parent.name, model, sets


def _read(folder: Path, kind: str) -> list[Any]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in files]


def passes(model: onnx.ModelProto, sets: Sequence[tuple[dict[str, np.ndarray], list[np.ndarray]]]) -> bool:
    """Whether ONNX Runtime computes what a test expects."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        known = {value.name for value in session.get_inputs()}
        for feeds, wanted in sets:
            found = session.run(None, {name: value for name, value in feeds.items() if name in known})
            if len(found) != len(wanted) or not all(map(_agree, found, wanted)):
                return False
    except Exception:  # whatever the runtime raises is a model that it does not run
        return False
    return True


def _agree(found: np.ndarray, wanted: np.ndarray) -> bool:
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, wanted))
    return bool(np.allclose(found, wanted, 1e-3, 1e-2 if found.dtype.itemsize == 2 else 1e-5, equal_nan=True))


def by_rules(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """A model in another opset by the rules of the program."""
    return convert(model.SerializeToString(), to="onnx", opset=opset)


def by_converter(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """A model in another opset by the onnx package."""
    return onnx.version_converter.convert_version(model, opset)


def main() -> None:
    """Print the table, or with --list what fails by the rules."""
    parser = argparse.ArgumentParser()
    parser.add_argument("opsets", nargs="*", type=int, default=_OPSETS)
    parser.add_argument("--only", default="", help="names of tests, as a regular expression")
    parser.add_argument("--list", action="store_true", help="say of each test what came of it by the rules")
    parser.add_argument("--write", action="store_true", help="write the table into docs/optimize.md")
    parser.add_argument("--folder", type=Path, help="node tests of another release")
    arguments = parser.parse_args()
    tried: Counter[tuple[int, str]] = Counter()
    equal: Counter[tuple[int, str, str]] = Counter()
    for name, model, sets in list_cases(arguments.only, arguments.folder):
        own = next(one.version for one in model.opset_import)
        for opset in arguments.opsets:
            if opset == own:
                continue
            way = "up" if opset > own else "down"
            tried[opset, way] += 1
            for called, make in (("rules", by_rules), ("onnx", by_converter)):
                said = "other results"
                try:
                    made = make(model, opset)
                    fine = next(one.version for one in made.opset_import if not one.domain) == opset
                    fine = fine and passes(made, sets)
                except (RewriteError, RuntimeError, ValueError) as error:
                    fine, said = False, f"{error}"
                equal[opset, way, called] += fine
                if arguments.list and called == "rules" and not fine:
                    print(f"{name}: {own} to {opset}: {' '.join(said.split())[:200]}", flush=True)
    lines = ["| to opset | from | tests | by rules | by `onnx.version_converter` |", "|--:|---|--:|--:|--:|"]
    for opset in arguments.opsets:
        for way, word in (("down", "newer ones"), ("up", "older ones")):
            if tried[opset, way]:
                counts = tried[opset, way], equal[opset, way, "rules"], equal[opset, way, "onnx"]
                lines.append(f"| {opset} | {word} | {' | '.join(map(str, counts))} |")
    table = "\n".join(lines) + "\n"
    sys.stdout.write(table)
    if arguments.write:
        page = _PAGE.read_text()
        _PAGE.write_text(_TABLE.sub(lambda found: found[1] + table + found[2], page))


if __name__ == "__main__":
    main()

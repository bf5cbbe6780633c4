"""Models that were given a batch, or another layout, are compared with originals as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nnrewrite
import numpy as np
import onnx.parser
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter, Kernels, Tensor, compare_models
from nnrewrite.verify.batch import Batch, find_batch
from nnrewrite.verify.interpreter import Signature

pytestmark = pytest.mark.slow

F32 = "FLOAT32"
Single = Callable[..., bytes]


def floats(*shape: int) -> Tensor:
    return Tensor("x", "float32", shape, shape)


def test_a_batch_is_what_all_inputs_with_other_extents_have() -> None:
    one, several = floats(1, 3), floats(4, 3)
    assert find_batch(Signature((one, one), ()), Signature((several, one), ())) == Batch(4, (1, None))
    assert find_batch(Signature((floats(2, 3),), ()), Signature((several,), ())) == Batch(2, (2,))
    assert find_batch(Signature((floats(3, 3),), ()), Signature((several,), ())) is None
    assert find_batch(Signature((one,), ()), Signature((one,), ())) is None
    assert find_batch(Signature((one,), ()), Signature((floats(4, 5),), ())) is None
    assert find_batch(Signature((one, one), ()), Signature((several, floats(2, 3)), ())) is None


@pytest.mark.parametrize("to", [[1, 6], [1, -1]], ids=["does not run", "puts samples together"])
def test_an_original_without_a_form_for_several_samples_is_run_for_each(single: Single, to: list[int]) -> None:
    pytest.importorskip("ai_edge_litert")
    source = single("RESHAPE", {"x": (F32, [1, 2, 3]), "to": np.array(to, np.int32)}, [(F32, [1, 6])])
    made = read_bytes(nnrewrite.rewrite(source, batch=2).encoded)
    assert compare_models(source, made).passed
    wide = single("RESHAPE", {"x": (F32, [2, 2, 3]), "to": np.array([2, 6], np.int32)}, [(F32, [2, 6])])
    assert compare_models(source, read_bytes(nnrewrite.rewrite(wide).encoded)).passed
    negated = single("NEG", {"x": (F32, [2, 2, 3])}, [(F32, [2, 2, 3])])
    assert not compare_models(source, read_bytes(nnrewrite.rewrite(negated).encoded)).passed


@pytest.mark.parametrize("target", [".tflite", ".onnx"])
def test_results_in_another_layout_are_compared_as_the_original_has_them(tmp_path: Path, target: str) -> None:
    pytest.importorskip("ai_edge_litert")
    text = """<ir_version: 8, opset_import: ["": 18]> net (float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y)
      { y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x) }"""
    source = onnx.parser.parse_model(text).SerializeToString()
    made = tmp_path / f"made{target}"
    nnrewrite.rewrite(source, to=target, layout="target").save(made)
    assert compare_models(source, made).passed


@pytest.mark.parametrize("kernels", list(Kernels))
def test_samples_of_several_sizes_are_run_one_after_the_other(
    interpreter: Interpreter, single: Single, kernels: Kernels
) -> None:
    source = single("ABS", {"x": (F32, [None, 3])}, [(F32, [None, 3])])
    samples = [[np.full((count, 3), -count, np.float32)] for count in (1, 4, 4, 2)]
    found = interpreter.run(source, samples, kernels)
    assert [[array.tolist() for array in one] for one in found] == [[(-sample).tolist()] for [sample] in samples]

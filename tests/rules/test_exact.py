"""Rules that work with integers, tried on cases drawn from their tests: equal to the kernels, bit for bit.

Those of `exact` are compared with the reference kernels, those of `kernels` with the default ones.

`NNREWRITE_EXAMPLES` says how many cases each rule is tried on, `NNREWRITE_SEED` which ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import nnrewrite
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("onnxruntime")

from nnrewrite.engine.base.errors import UnsupportedError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.packs import loader
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.finding import Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.sketch import encode
from nnrewrite.fuzz.subjects import Subject, list_subjects
from nnrewrite.verify import Interpreter, InterpreterError, Kernels
from nnrewrite.verify.inputs import draw as draw_inputs
from nnrewrite.verify.runtime import Runtime

pytestmark = pytest.mark.slow

RULES = ("tflite2onnx", "kernels", "exact")
EXAMPLES = int(os.environ.get("NNREWRITE_EXAMPLES", "2"))
SEED = int(os.environ.get("NNREWRITE_SEED", "0"))
#: draws for each case wanted: the interpreter takes some only, and other rules may be for their types
PATIENCE = 30

#: rules for scales that are seldom drawn, and where they are tested instead
ELSEWHERE = ("shifted_sum_of_codes.ADD", "shifted_sum_of_codes.SUB")
ALL = [one for one in list_subjects(loader.load(RULES)) if one.tests]
SUBJECTS = [one for one in ALL if one.span.file.split("/")[0] in ("kernels", "exact")]


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Interpreter(timeout=20) as interpreter:
        yield Oracle(interpreter, loader.load(RULES).catalogue, RULES)


@pytest.mark.parametrize(
    "subject", [one for one in SUBJECTS if one.name not in ELSEWHERE], ids=lambda subject: subject.name
)
def test_outputs_equal_those_of_the_kernels(subject: Subject, oracle: Oracle, interpreter: Interpreter) -> None:
    tried, exact = 0, subject.span.file.startswith("exact")
    for attempt in range(EXAMPLES * PATIENCE):
        try:
            case = draw(Choices.make_seeded(f"{subject.name}{SEED + attempt}"), subject, oracle)
        except Rejected:
            continue
        source = encode(case, oracle.catalogue)
        try:
            conversion = nnrewrite.rewrite(source, exact=exact, target="portable")
        except UnsupportedError:  # options may be drawn that no rule takes together
            continue
        if not conversion.report.rules.get(subject.name):
            continue
        feeds = [value.content for value in case.inputs]
        try:
            [wanted] = interpreter.run(source, [feeds], Kernels.REFERENCE if exact else Kernels.DEFAULT)
        except InterpreterError:  # the delegate refuses what other kernels take
            continue
        found = Runtime(conversion.model.SerializeToString(), threads=1, precise=True).run(feeds)
        for want, got in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=case.describe())
        tried += 1
        if tried == EXAMPLES:
            break
    assert tried


@pytest.mark.parametrize("operator", ["ADD", "SUB"])
@pytest.mark.parametrize("scales", [(2**-12, 2**-10, 2**-10), (2**-9, 2**-9, 2**-9), (2**-8, 2**-11, 2**-8)])
def test_scales_that_are_powers_of_two_are_shifts(
    single: Callable[..., bytes], interpreter: Interpreter, operator: str, scales: tuple[float, float, float]
) -> None:
    a, b, y = (("INT16", [500], Quantization(np.array([scale], np.float32), np.zeros(1, np.int64))) for scale in scales)
    source = single(operator, {"a": a, "b": b}, [y], pot_scale_int16=True, fused_activation_function="RELU6")
    conversion = nnrewrite.rewrite(source, exact=True)
    assert f"shifted_sum_of_codes.{operator}" in conversion.report.rules
    feeds = [np.random.default_rng(seed).integers(-32768, 32768, 500, dtype=np.int16) for seed in (0, 1)]
    [[want]] = interpreter.run(source, [feeds], Kernels.REFERENCE)
    [got] = Runtime(conversion.model.SerializeToString(), threads=1, precise=True).run(feeds)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axes", [[], [1], [1, 2], [1, 3]])
def test_products_of_one_factor_are_copies_of_codes(
    single: Callable[..., bytes], interpreter: Interpreter, axes: list[int]
) -> None:
    x, y = (Quantization(np.array([s], np.float32), np.array([z])) for s, z in ((0.75, 5), (2.0, -3)))
    out = [extent for axis, extent in enumerate((2, 1, 1, 3)) if axis not in axes]
    source = single(
        "REDUCE_PROD", {"x": ("INT8", [2, 1, 1, 3], x), "axes": np.array(axes, np.int32)}, [("INT8", out, y)]
    )
    conversion = nnrewrite.rewrite(source)
    assert "product_of_codes" in conversion.report.rules
    codes = np.arange(-3, 3, dtype=np.int8).reshape((2, 1, 1, 3))
    [[want]] = interpreter.run(source, [[codes]], Kernels.DEFAULT)
    [got] = Runtime(conversion.model.SerializeToString(), threads=1, precise=True).run([codes])
    np.testing.assert_array_equal(got, want)
    assert np.array_equal(got.ravel(), codes.ravel()) == (3 not in axes)


@pytest.mark.parametrize("name", ["micro_kws_m_quantized", "CNN_full_quantized", "mnist_resnet_q", "image_example1"])
def test_networks_equal_the_reference_kernels(models: list[Path], interpreter: Interpreter, name: str) -> None:
    path = next(path for path in models if path.stem == name)
    [sample] = next(draw_inputs(interpreter.describe(path).inputs))
    [want] = interpreter.run(path, [sample], Kernels.REFERENCE)
    model = nnrewrite.convert(path, exact=True)
    for expected, got in zip(want, Runtime(model.SerializeToString(), precise=True).run(sample), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_float_and_exact_exclude_each_other(single: Callable[..., bytes]) -> None:
    source = single("RELU", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    with pytest.raises(nnrewrite.RewriteError, match="--exact"):
        nnrewrite.convert(source, exact=True, float=True)

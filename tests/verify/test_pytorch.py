"""Programs of PyTorch as originals, run by torch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import pytest
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.frontends.source import accept
from nnrewrite.verify import Interpreter, Kernels, compare_models
from nnrewrite.verify.interpreter import ModelTimeoutError
from nnrewrite.verify.perturbed_programs import perturb_program
from nnrewrite.verify.pytorch import PyTorch, load_program

PROGRAMS = Path(__file__).parent.parent / "frontends" / "pt2"
NAMES = ["views", "loops", "recurrent", "attention", "codes", "figures", "waves", "waves_core", "image", "image_core"]

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: `make test-torch` has it"
)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed here")
def test_where_torch_is_missing_that_is_said() -> None:
    model = nnrewrite.convert(PROGRAMS / "views.pt2").SerializeToString()
    with pytest.raises(VerificationError, match="run by torch, which is not installed: pip install torch"):
        compare_models(PROGRAMS / "views.pt2", model)


def export(module: Any, *inputs: Any, **options: Any) -> Any:
    """A module as a program; its buffers begin as they are."""
    import torch

    return torch.export.export(module.eval(), inputs, **options)


def make_module(forward: Any) -> Any:
    """A module that calls a function."""
    import torch

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            return forward(*inputs)

    return Module()


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    """Programs by their names, as torch saves them."""
    from ..frontends.pt2_programs import make_programs

    return {name: accept(make()[0]) for name, make in make_programs().items()}


@needs_torch
@pytest.mark.torch
@pytest.mark.parametrize("to", ["onnx", "tflite"])
@pytest.mark.parametrize("name", NAMES)
def test_a_program_agrees_with_what_is_made_of_it(programs: dict[str, Any], name: str, to: str, tmp_path: Path) -> None:
    nnrewrite.rewrite(programs[name], to=to).save(tmp_path / f"net.{to}")
    assert compare_models(programs[name], tmp_path / f"net.{to}").passed


@needs_torch
@pytest.mark.torch
def test_another_function_differs() -> None:
    import torch

    x = torch.ones(2, 3)
    model = nnrewrite.convert(export(make_module(torch.sin), x)).SerializeToString()
    assert compare_models(export(make_module(torch.sin), x), model).passed
    assert not compare_models(export(make_module(torch.cos), x), model).passed


@needs_torch
@pytest.mark.torch
def test_sizes_numbers_and_forms_are_called_as_exported() -> None:
    import torch

    def compute(x: Any, pair: Any, times: int, kind: str) -> Any:
        scaled = x * times if kind == "times" else x
        return {"scaled": scaled, "rest": [pair["a"] + 1, x.shape[0], None]}

    free = ({0: torch.export.Dim("batch")}, {"a": None}, torch.export.Dim.DYNAMIC, None)
    program = export(
        make_module(compute),
        torch.ones(2, 3),
        {"a": torch.ones(4, dtype=torch.int64)},
        5,
        "times",
        dynamic_shapes=(free,),
    )
    found = compare_models(program, nnrewrite.convert(program).SerializeToString())
    assert found.passed and [one.name for one in found.comparisons][2] == "sym_size_int_1"


@needs_torch
@pytest.mark.torch
def test_complex_results_are_pairs() -> None:
    import torch

    program = export(make_module(lambda x: torch.fft.rfft(x).conj()), torch.ones(2, 8))
    found = compare_models(program, nnrewrite.convert(program).SerializeToString())
    assert found.passed and found.comparisons[0].shape == (2, 5, 2)


@needs_torch
@pytest.mark.torch
def test_buffers_begin_anew_with_each_sample(programs: dict[str, Any]) -> None:
    runs = PyTorch().run(programs["views"], [[np.load(PROGRAMS / "views.npz")["input_0"]]] * 2)
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


@needs_torch
@pytest.mark.torch
def test_buffers_are_variables_of_tensorflow_lite(tmp_path: Path) -> None:
    import torch

    class Count(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.full((3,), 4.0))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x, x + self.count, self.count

    program = export(Count(), torch.ones(3))
    nnrewrite.rewrite(program, to="tflite").save(tmp_path / "net.tflite")
    assert compare_models(program, tmp_path / "net.tflite").passed
    with Interpreter() as interpreter:
        steps = interpreter.run(tmp_path / "net.tflite", [[np.ones(3, np.float32)]] * 2, keep=True)
    assert [[result[0] for result in step] for step in steps] == [[1, 6, 5], [1, 7, 6]]


@needs_torch
@pytest.mark.torch
def test_inputs_that_a_program_asserts_are_those_of_its_example() -> None:
    import torch

    def compute(x: Any) -> Any:
        torch._assert(x.shape[0] == 2, "two")
        torch.ops.aten._assert_async.msg((x > 5).all(), "five at least")
        return x - 5

    program = export(make_module(compute), torch.full((2, 3), 6.0))
    model = nnrewrite.convert(export(make_module(lambda x: x - 5), torch.full((2, 3), 6.0))).SerializeToString()
    found = compare_models(program, model)
    assert found.passed and found.comparisons[0].low == 1.0


LOADS = """
import sys, nnrewrite
from nnrewrite.verify.pytorch import PyTorch
try:
    PyTorch().describe(sys.argv[1])
    print("loaded")
except nnrewrite.RewriteError as error:
    print(error)
"""


@needs_torch
@pytest.mark.torch
@pytest.mark.parametrize(
    ("own", "said"),
    [(False, "loaded\n"), (True, "torch cannot load the program: We failed to resolve torch.ops.own.f")],
)
def test_operators_that_come_with_torch_are_known_and_others_are_named(own: bool, said: str, tmp_path: Path) -> None:
    """In another process, where nobody has registered them yet, and without a word beside the message."""
    import torch
    import torch.ao.quantization.fx._decomposed  # which registers those of quantized programs

    torch.library.custom_op("own::f", lambda x: x + 0.0, mutates_args=(), schema="(Tensor x) -> Tensor").register_fake(
        torch.empty_like
    )
    codes = torch.ops.quantized_decomposed.quantize_per_tensor.default
    module = make_module(lambda x: torch.ops.own.f(x) if own else codes(x, 0.5, 0, -128, 127, torch.int8))
    torch.export.save(export(module, torch.ones(2)), tmp_path / "m.pt2")
    done = subprocess.run(
        [sys.executable, "-c", LOADS, tmp_path / "m.pt2"], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.startswith(said) and not done.stderr


@needs_torch
@pytest.mark.torch
def test_what_torch_cannot_load_or_run_is_told(programs: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="torch cannot load the program"):
        PyTorch().describe(b"PK\x03\x04")
    with pytest.raises(VerificationError, match="torch fails to run the program"):
        PyTorch().run(programs["views"], [[np.zeros((1, 1), np.float32)]])
    with pytest.raises(VerificationError, match="torch has no other kernels"):
        PyTorch().run(programs["views"], [], Kernels.REFERENCE)


@needs_torch
@pytest.mark.torch
def test_a_program_that_takes_too_long_is_given_up() -> None:
    import torch

    def multiply(x: Any) -> Any:
        for _ in range(300):
            x = x @ x
        return x

    program = accept(export(make_module(multiply), torch.eye(400)))
    with pytest.raises(VerificationError, match=r"torch did not load the program in 0\.01 s"):
        PyTorch(0.01).describe(program)
    worker = PyTorch()
    worker.describe(program)
    worker.seconds = 0.01
    for kernels in (Kernels.DEFAULT, Kernels.OPTIMIZED):
        with pytest.raises(ModelTimeoutError, match=r"torch did not end the program in 0\.01 s"):
            worker.run(program, [[np.eye(400, dtype=np.float32)]], kernels)
    assert torch.is_grad_enabled() and torch.backends.mkldnn.enabled
    worker.seconds = 60
    [[found]] = worker.run(program, [[np.eye(400, dtype=np.float32)]])
    assert np.array_equal(found, np.eye(400))


@needs_torch
@pytest.mark.torch
@pytest.mark.parametrize("to", ["onnx", "tflite"])
@pytest.mark.parametrize("kind", ["float32", "float64", "uint8"])
def test_a_loop_along_any_axis_keeps_the_type_of_what_it_collects(kind: str, to: str, tmp_path: Path) -> None:
    import torch

    x = (torch.rand(3, 4, 2) * 9).to(getattr(torch, kind))
    program = export(make_module(lambda x: tuple(torch.cummax(x, 1))), x)
    nnrewrite.rewrite(program, to=to).save(tmp_path / f"net.{to}")
    assert compare_models(program, tmp_path / f"net.{to}").passed


def quantize(x: Any) -> Any:
    """Codes with steps of one, as numbers."""
    import torch

    codes = torch.ops.quantized_decomposed
    grid = 1.0, 0, -128, 127, torch.int8
    return codes.dequantize_per_tensor(codes.quantize_per_tensor(x, *grid), *grid)


@needs_torch
@pytest.mark.torch
def test_a_number_between_two_codes_may_become_either() -> None:
    import torch
    import torch.ao.quantization.fx._decomposed  # which registers what `quantize` calls

    sample = [np.arange(16, dtype=np.float32) + 0.5]  # of which kernels round up what torch rounds to the even one
    program = accept(export(make_module(quantize), torch.ones(16)))
    for other, passed in ((lambda x: quantize(x * 1.0000002), True), (lambda x: quantize(x + 3), False)):
        model = nnrewrite.convert(export(make_module(other), torch.ones(16))).SerializeToString()
        found = compare_models(program, model, inputs=[sample])
        assert found.passed is passed and found.is_sensitive is passed


@needs_torch
@pytest.mark.torch
def test_numbers_of_a_program_are_off_by_a_part_of_a_step_where_they_become_codes() -> None:
    import torch
    import torch.ao.quantization.fx._decomposed  # which registers what `quantize` calls

    def compute(x: Any) -> Any:
        return quantize(x), torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -128, 127), x + 1

    program = accept(export(make_module(compute), torch.ones(3)))
    numbers = [np.array([100.499, 50.2, 20.0], np.float32)]
    runs = [PyTorch().run(one, [numbers])[0] for seed in range(4) if (one := perturb_program(program, seed))]
    found = [{tuple(run[place].tolist()) for run in runs} for place in range(3)]
    assert found[0] == {(100.0, 50.0, 20.0), (101.0, 50.0, 20.0)}
    assert found[1] == {(63.5, 50.0, 20.0)}
    assert found[2] == {tuple((numbers[0] + 1).tolist())}


@needs_torch
@pytest.mark.torch
def test_weights_of_a_program_are_off_in_their_last_places() -> None:
    import torch

    weights = torch.nn.Linear(16, 16)
    program = perturb_program(accept(export(weights, torch.ones(1, 16))), 0)
    assert program is not None
    found = load_program(program).state_dict["weight"].detach().numpy()
    wanted = weights.weight.detach().numpy()
    assert np.all(found != wanted) and np.allclose(found, wanted, rtol=2.0**-21)
    assert perturb_program(accept(export(make_module(torch.sin), torch.ones(2))), 0) is None


@needs_torch
def test_programs_of_bfloat16_are_held_against_both_formats(tmp_path: Path) -> None:
    import torch

    program = export(
        torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU()).bfloat16(), torch.randn(2, 8).bfloat16()
    )
    torch.export.save(program, tmp_path / "model.pt2")
    for to in ("onnx", "tflite"):
        made = tmp_path / f"model.{to}"
        nnrewrite.rewrite(tmp_path / "model.pt2", to=to).save(made)
        verdict = compare_models(tmp_path / "model.pt2", made.read_bytes())
        assert verdict.passed, (to, verdict.differences)

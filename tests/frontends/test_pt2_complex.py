"""Programs of PyTorch that compute with complex numbers, against torch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnrewrite
import numpy as np
import onnxruntime
import pytest
from nnrewrite.fuzz.runtimes import read_bytes
from nnrewrite.verify import Interpreter

torch = pytest.importorskip("torch", reason="torch is not installed: `make test-torch` has it")
pytestmark = pytest.mark.torch

Function = Callable[[Any, Any], Any]


def write_slices(x: Any, y: Any) -> Any:
    z = torch.zeros(3, 6, dtype=torch.cfloat)
    z[:, :4] = x
    z[1:, 1:3] = y[1:, :2] * 2
    z[:, 5] = y[:, 0]
    z[0] = 3.0
    z[:, [2, 4]] += 1j
    return z


ALONE = [
    *("tanh", "sin", "cos", "sinh", "cosh", "exp", "log", "sqrt", "reciprocal", "sigmoid"),
    *("square", "neg", "sgn", "angle", "isnan", "abs"),
]
#: of complex numbers x and y of 3 by 4
FUNCTIONS: dict[str, Function] = {
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x)
        for name in ALONE
    },
    "sums": lambda x, y: x + y * 2 - 1.5 - (1.5 - y) + y.real,
    "difference": lambda x, y: torch.sub(x, y, alpha=2) + (y.real - x),
    "products": lambda x, y: x * y * (1 + 2j) * y.real * 3,
    "of a real number": lambda x, y: y.real * x,
    "quotients": lambda x, y: x / y + 1.0 / x + x / (1 + 2j) + y.real / x,
    "powers": lambda x, y: x**2 + x**3,
    "comparison": lambda x, y: (x == torch.where(x.real > 0, x, y)) & (x != y),
    "matrices": lambda x, y: (x @ y.mT) @ torch.bmm(y[None], x.T[None])[0],
    "vectors": lambda x, y: torch.outer(x @ y[0], y[1]) * torch.dot(x[0], y[0]),
    "einsum": lambda x, y: torch.einsum("ij,kj,lj->ikl", x, y, x) + torch.einsum("ij->ji", x)[:3, :3],
    "einsum of integers": lambda x, y: torch.einsum("i,j->ij", torch.arange(3), y.real[0]),
    "tensordot": lambda x, y: torch.tensordot(x, y, dims=([1], [1])),
    "shifts": lambda x, y: torch.roll(x, 1, 1) + y.flip(1) + torch.fft.fftshift(x) + torch.fft.ifftshift(y, dim=-1),
    "padded": lambda x, y: torch.nn.functional.pad(x, (1, 2)) + torch.nn.functional.pad(y, (1, 2), value=3.0),
    "sums over": lambda x, y: x.sum() + x.sum(1) + y.mean() + y.mean(1) + x.cumsum(1)[:, 0],
    "repeated": lambda x, y: torch.cat([x.repeat(2, 1), torch.tile(y, (2, 1))]),
    "parts": lambda x, y: x.unbind(0)[1] + y.split(2, 1)[1].sum() + x.chunk(2, 1)[0].mean() + torch.stack([x, y])[1, 1],
    "masked": lambda x, y: x.masked_fill(x.real > 0, 2.0) + torch.tril(y) + torch.triu(y),
    "moved": lambda x, y: x.t().movedim(0, 1) + torch.diagonal(y).sum() + x.unflatten(1, (2, 2)).swapaxes(1, 2).sum(),
    "gathered": lambda x, y: torch.gather(x, 1, torch.tensor([[0, 1], [1, 0], [2, 3]])) + y[:, [0, 2]],
    "along": lambda x, y: torch.take_along_dim(x, torch.tensor([[0], [1], [2]]), 1),
    "filled": lambda x, y: torch.zeros_like(x) + torch.ones_like(x) * torch.full((3, 4), 2 + 1j) + y.new_ones(4),
    "identity": lambda x, y: x @ torch.eye(4, dtype=torch.cfloat) + torch.full((3, 4), 2.0, dtype=torch.cfloat),
    "norms": lambda x, y: x / torch.linalg.vector_norm(x, dim=1, keepdim=True) + y / torch.linalg.norm(y),
    "written": write_slices,
    "transform cut off": lambda x, y: torch.fft.irfftn(torch.stack([x, y]), s=(2, 5), dim=(1, 2), norm="ortho"),
    "transform filled up": lambda x, y: torch.fft.irfft2(torch.stack([x, y]), s=(5, 6)),
    "hermitian": lambda x, y: torch.fft.hfft(x) + torch.fft.hfft(y, n=6, norm="forward"),
    "hermitian of planes": lambda x, y: torch.fft.hfft2(x, s=(3, 5)) + torch.fft.hfftn(y, (3, 5), (0, 1), "ortho"),
    "half of an inverse": lambda x, y: torch.fft.ihfft(x.real) + torch.fft.ihfft2(y.imag)
    + torch.fft.ihfftn(x.imag, norm="ortho"),
    "transforms of integers": lambda x, y: torch.fft.fft(x.real.int()) + torch.fft.ihfft((y.real > 0).int(), n=6),
    "layers": lambda x, y: torch.nn.functional.linear(x, y, y[:, 0]) + torch.nn.functional.linear(x, y),
    "convolutions": lambda x, y: torch.nn.functional.conv1d(x, y[:2, :3].reshape(2, 3, 1), y[:2, 3], padding=1)
    + torch.nn.functional.conv_transpose1d(x, y.t()[:, :2].reshape(4, 2, 1)[:3], padding=0)[:, :1],
    "put": lambda x, y: x.index_add(0, torch.tensor([0, 2]), y[:2]) + x.index_copy(1, torch.tensor([3]), y[:, :1])
    + torch.scatter(x, 1, torch.tensor([[1], [0], [3]]), y) + x.scatter_add(0, torch.tensor([[0, 1, 0, 1]]), y),
    "stacked": lambda x, y: torch.hstack([x, y]) + torch.vstack([x, y]).view(3, 8)
    + torch.block_diag(x[0], y[0]).reshape(2, 8)[:1],
    "broadcast": lambda x, y: sum(torch.broadcast_tensors(x[:1], y)) + x[:, :1] * y[:1]
    + sum(torch.meshgrid(x[:, 0], y[0], indexing="ij")),
    "shapes of others": lambda x, y: x.view_as(y) + x.t().reshape_as(y) + x.expand_as(y) + x[:1].broadcast_to(3, 4),
}  # fmt: skip


class Computed(torch.nn.Module):  # type: ignore[misc]
    """A function of two tensors of pairs, which yields pairs where it yields complex numbers."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: Any, b: Any) -> Any:
        found = self.function(torch.view_as_complex(a), torch.view_as_complex(b))
        return torch.view_as_real(found) if found.is_complex() else found


class Fourier(torch.nn.Module):  # type: ignore[misc]
    """A layer of a Fourier neural operator: products of its lowest frequencies with weights."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.rand(2, width, width, modes, modes, dtype=torch.cfloat))
        self.modes = modes

    def forward(self, x: Any) -> Any:
        n, spectrum = self.modes, torch.fft.rfft2(x)
        kept = torch.zeros_like(spectrum)
        kept[:, :, :n, :n] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :n, :n], self.weights[0])
        kept[:, :, -n:, :n] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -n:, :n], self.weights[1])
        return torch.fft.irfft2(kept, s=x.shape[-2:])


def run(program: Any, *inputs: Any) -> Any:
    model = nnrewrite.convert(program)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = zip((one.name for one in session.get_inputs()), inputs, strict=True)
    return session.run(None, {name: tensor.numpy() for name, tensor in feeds})[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_numbers_are_computed_by_their_parts(name: str) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, 2), torch.randn(3, 4, 2)
    computed = Computed(FUNCTIONS[name])
    found, wanted = run(torch.export.export(computed, (a, b), strict=False), a, b), computed(a, b).numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("free", [False, True])
def test_a_layer_of_a_fourier_neural_operator(free: bool) -> None:
    torch.manual_seed(0)
    layer, x = Fourier(3, 4), torch.randn(2, 3, 16, 12)
    sizes = ({0: torch.export.Dim("batch", min=1, max=8)},) if free else None
    program = torch.export.export(layer, (x,), dynamic_shapes=sizes)
    for given in [x, torch.cat([x, x + 1])] if free else [x]:
        np.testing.assert_allclose(run(program, given), layer(given).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_it_runs_in_the_interpreter_of_tensorflow_lite_as_well(interpreter: Interpreter) -> None:
    torch.manual_seed(0)
    layer, x = Fourier(3, 4), torch.randn(2, 3, 16, 12)
    made = read_bytes(nnrewrite.rewrite(torch.export.export(layer, (x,)), to="tflite").encoded)
    [[found]] = interpreter.run(made, [[x.numpy()]])
    np.testing.assert_allclose(found, layer(x).detach().numpy(), rtol=1e-4, atol=1e-5)

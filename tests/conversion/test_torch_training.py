"""Generated PyTorch code trains as the module that it comes from: gradients, steps, weights, compilers; needs torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nnrewrite.backends.python_writer import Encoded
from nnrewrite.conversion import pipeline

torch = pytest.importorskip("torch", reason="torch is not installed: `make test-torch` has it")
safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed: `make test-torch` has it")
pytestmark = pytest.mark.torch

#: how far gradients may lie apart, of the largest number among them
TOLERANCE = 1e-4


def encoder() -> tuple[Any, Any]:
    """Attention, norms and a feed-forward part, twice, and a head."""

    class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8)
            self.q, self.k, self.v, self.out = (torch.nn.Linear(8, 8) for _ in range(4))
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

        def forward(self, x: Any) -> Any:
            y = self.norm1(x)
            q, k, v = (layer(y).view(2, 5, 2, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 5, 8)
            x = x + self.out(y)
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))

    return torch.nn.Sequential(Layer(), Layer(), torch.nn.Linear(8, 3)), torch.randn(2, 5, 8)


def image() -> tuple[Any, Any]:
    """Convolutions with norms, which are trained as layers of their own."""
    layers = [
        torch.nn.Conv2d(2, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.SiLU(),
        torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=4),
        torch.nn.GroupNorm(2, 8),
        torch.nn.Hardswish(),
        torch.nn.MaxPool2d(2),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(4, 3),
    ]
    return torch.nn.Sequential(*layers), torch.randn(2, 2, 12, 12)


def perceptron() -> tuple[Any, Any]:
    """Linear layers between bends."""
    layers = [torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)]
    return torch.nn.Sequential(*layers), torch.randn(4, 6)


def sharing() -> tuple[Any, Any]:
    """A weight that two layers share, a table of which rows are looked up again and again, one behind a function."""

    class Sharing(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.again = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8, bias=False)
            self.again.weight = self.up.weight
            self.table, self.log = torch.nn.Embedding(5, 8), torch.nn.Parameter(torch.randn(8))
            self.register_buffer("rows", (torch.arange(6) - 2).clamp(-1, 2) + 1)
            self.down = torch.nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.up(x)) + self.table(self.rows)
            return self.down(self.again(x) * -self.log.exp())

    return Sharing(), torch.randn(2, 6, 8)


def load(folder: Path, name: str) -> Any:
    """The generated class with the weights of its file."""
    spec = importlib.util.spec_from_file_location("generated", folder / "model.py")
    assert spec is not None and spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    made = getattr(code, name)()
    made.load_state_dict(safetensors.load_file(folder / "model.safetensors"))
    return made


@pytest.fixture(scope="module", params=[encoder, image, perceptron, sharing], ids=lambda make: str(make.__name__))
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Callable[[], Any], Any]:
    """The source module, what makes the generated one anew, and an input."""
    torch.manual_seed(0)
    source, x = request.param()
    folder = tmp_path_factory.mktemp("training")
    torch.export.save(torch.export.export(source.eval(), (x,)), folder / "source.pt2")
    conversion = pipeline.rewrite(f"{folder / 'source.pt2'}", to="/")
    assert isinstance(conversion.encoded, Encoded)
    program = conversion.encoded.program
    assert not program.placeholders
    conversion.save(folder / "code")
    return source, lambda: load(folder / "code", program.name), x


def gradients(model: Any, x: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """The gradient of a loss by the input, and each parameter with its own."""
    model.eval().zero_grad()
    given = x.clone().requires_grad_()
    (model(given) * torch.linspace(-1, 1, 3)).pow(2).sum().backward()
    return given.grad, [(one.detach(), one.grad) for one in model.parameters()]


def is_near(found: Any, wanted: Any, magnitude: float = 0.0) -> bool:
    return bool((found - wanted).abs().max() <= TOLERANCE * max(magnitude, float(wanted.abs().max())))


def test_gradients_are_those_of_the_source(pair: tuple[Any, Callable[[], Any], Any]) -> None:
    source, make, x = pair
    (by_input, wanted), (by_input_too, found) = gradients(source, x), gradients(make(), x)
    assert is_near(by_input_too, by_input)
    # That by a bias of the keys is zero but for rounding: 1% of the largest of all is as small as counts.
    magnitude = 0.01 * max(float(gradient.abs().max()) for _, gradient in wanted)
    for weight, gradient in wanted:
        # A bias may have come to stand behind a transposition, as a column.
        same = [
            other.flatten()
            for one, other in found
            if one.numel() == weight.numel() and torch.equal(one.flatten(), weight.flatten())
        ]
        assert any(is_near(one, gradient.flatten(), magnitude) for one in same), tuple(weight.shape)


def test_the_generated_module_has_as_many_trained_numbers(pair: tuple[Any, Callable[[], Any], Any]) -> None:
    source, make, _ = pair
    counts = [sum(one.numel() for one in model.parameters() if one.requires_grad) for model in (source, make())]
    assert counts[0] == counts[1]


def test_one_step_lowers_the_loss(pair: tuple[Any, Callable[[], Any], Any]) -> None:
    _, make, x = pair
    model = make().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    before = model(x).pow(2).mean()
    before.backward()
    optimizer.step()
    assert model(x).pow(2).mean() < before


def test_weights_go_to_a_file_and_back(pair: tuple[Any, Callable[[], Any], Any], tmp_path: Path) -> None:
    _, make, x = pair
    model, other = make().eval(), make().eval()
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(1.5)
        safetensors.save_model(model, tmp_path / "trained.safetensors")  # which knows weights that are shared
        assert not torch.equal(model(x), other(x))
        safetensors.load_model(other, tmp_path / "trained.safetensors")
        assert torch.equal(model(x), other(x))


def test_the_code_is_compiled_in_one_graph(pair: tuple[Any, Callable[[], Any], Any]) -> None:
    source, make, x = pair
    compiled = torch.compile(make().eval(), backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), source(x), rtol=1e-4, atol=1e-5)


def test_the_code_is_exported_again(pair: tuple[Any, Callable[[], Any], Any]) -> None:
    source, make, x = pair
    program = torch.export.export(make().eval(), (x,))
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x), source(x), rtol=1e-4, atol=1e-5)

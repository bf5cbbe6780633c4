"""Small models of torch by litert-torch, of real numbers and quantized. Runs in an environment with litert-torch.

    python wild_torch.py FOLDER --seed 1

Models have random weights, and sizes drawn from the seed.
"""

# The table has several models a line.
# ruff: noqa: E501
from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import litert_torch
import numpy as np
import torch
from litert_torch.quantize import pt2e_quantizer
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e import quantize_pt2e
from wild_children import Made, read_arguments, write_each
from wild_modules import MODULES

Called = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Functional(nn.Module):
    """A function as a module, with modules that it calls."""

    def __init__(self, function: Callable[..., Any], *modules: nn.Module) -> None:
        super().__init__()
        self.function, self.modules_ = function, nn.ModuleList(modules)

    def forward(self, *xs: torch.Tensor) -> Any:
        return self.function(*self.modules_, *xs)


def image(c: int, h: int, w: int) -> torch.Tensor:
    return torch.rand(1, c, h, w) * 2 - 1


def sequence(n: int, c: int) -> torch.Tensor:
    return torch.rand(1, n, c) * 2 - 1


def convolutions(c: int, n: int) -> Called:
    body = [nn.Conv2d(3, c, 3, 2, 1), nn.BatchNorm2d(c), nn.Hardswish(), nn.Conv2d(c, c, 3, padding=1, groups=c), nn.GELU(), nn.MaxPool2d(2),
        nn.Conv2d(c, 2 * c, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * c, 10)]  # fmt: skip
    return nn.Sequential(*body), (image(3, 4 * n, 4 * n),)


def decoder(c: int, n: int) -> Called:
    body = [
        nn.ConvTranspose2d(4, c, 4, 2, 1),
        nn.PReLU(),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(c, 12, 3, padding=1),
        nn.PixelShuffle(2),
        nn.Sigmoid(),
    ]
    return nn.Sequential(*body), (image(4, n, n + 1),)


def encoder(c: int, n: int) -> Called:
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8 * c, 4, 24, batch_first=True, activation="gelu", norm_first=True), 2
    ), (sequence(n, 8 * c),)


def attention(c: int, n: int) -> Called:
    return Functional(
        lambda m, x: m(x, x, x, need_weights=False)[0], nn.MultiheadAttention(8 * c, 2, batch_first=True)
    ), (sequence(n, 8 * c),)


def causal(c: int, n: int) -> Called:
    return Functional(
        lambda q, x: functional.scaled_dot_product_attention(q(x), x, x, is_causal=True), nn.Linear(8 * c, 8 * c)
    ), (sequence(n, 8 * c)[None],)


def lstm(c: int, n: int) -> Called:
    return Functional(
        lambda m, x: m(x)[0], nn.LSTM(c, 2 * c, 2, bias=n % 2 > 0, batch_first=True, bidirectional=True)
    ), (sequence(n, c),)


def gru(c: int, n: int) -> Called:
    return Functional(lambda m, x: m(x), nn.GRU(c, 2 * c, bias=n % 2 > 0, batch_first=True)), (sequence(n, c),)


def patches(c: int, n: int) -> Called:
    """A small vision transformer."""
    layer = nn.TransformerEncoderLayer(8 * c, 2, 16 * c, batch_first=True, activation="gelu", norm_first=True)
    return Functional(
        lambda split, blocks, head, x: head(blocks(split(x).flatten(2).transpose(1, 2)).mean(1)),
        nn.Conv2d(3, 8 * c, 4, 4), nn.TransformerEncoder(layer, 2), nn.Linear(8 * c, 10),
    ), (image(3, 4 * n, 4 * n),)  # fmt: skip


def mixture(c: int, n: int) -> Called:
    def run(gate: nn.Module, one: nn.Module, two: nn.Module, x: torch.Tensor) -> torch.Tensor:
        weights, places = gate(x).softmax(-1).topk(1)
        return torch.where(places == 0, one(x), two(x)) * weights

    return Functional(run, nn.Linear(c, 2), nn.Linear(c, c), nn.Linear(c, c)), (sequence(n, c),)


def norms(c: int, n: int) -> Called:
    body = [
        nn.GroupNorm(2, 2 * c),
        nn.InstanceNorm2d(2 * c, affine=True),
        nn.Softplus(),
        nn.ReflectionPad2d(1),
        nn.Conv2d(2 * c, c, (1, 3), dilation=2),
        nn.LocalResponseNorm(2),
        nn.ELU(),
    ]
    return nn.Sequential(*body), (image(2 * c, n, n),)


def rotary(c: int, n: int) -> Called:
    def run(norm: nn.Module, project: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = project(norm(x))
        angle = torch.arange(x.shape[1])[:, None] / 10000.0 ** (torch.arange(0, x.shape[2], 2) / x.shape[2])
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    return Functional(run, nn.RMSNorm(2 * c), nn.Linear(2 * c, 2 * c)), (sequence(n, 2 * c),)


def indexing(c: int, n: int) -> Called:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = x.sort(1, descending=True)
        return (
            values.cumsum(1),
            places,
            x.roll(2, 1).flip(1),
            x.gather(1, places),
            x.masked_fill(x > 0.3, -2.0),
            x.argmax(-1),
            x.tril(),
        )

    return Functional(run), (sequence(n, c),)


def embedding(c: int, n: int) -> Called:
    return nn.Sequential(nn.Embedding(20, 4 * c), nn.Conv1d(n, 6, 3, padding=1), nn.GLU(1), nn.Linear(4 * c, 5)), (
        torch.randint(0, 10, (1, n)),
    )


def spectra(c: int, n: int) -> Called:
    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(x.unfold(1, 16, 8).mul(torch.hann_window(16)).pow(2).mean(-1)).softmax(-1)

    return Functional(run), (torch.rand(1, 16 * n),)


def resizing(c: int, n: int) -> Called:
    def run(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = functional.interpolate(conv(x), size=(9, 11), mode="nearest")
        return torch.cat([functional.avg_pool2d(y, 3, 1, 1), functional.adaptive_max_pool2d(y, (9, 11))], 1)

    return Functional(run, nn.Conv2d(3, c, 3)), (image(3, n + 4, n + 5),)


KINDS = ("float32", "PT2E int8", "PT2E dynamic range")
MODELS = {
    "convolutions": convolutions, "decoder": decoder, "encoder": encoder, "attention": attention, "causal": causal, "lstm": lstm, "gru": gru, "mixture": mixture, "norms": norms,
    "patches": patches, "rotary": rotary, "indexing": indexing, "embedding": embedding, "spectra": spectra, "resizing": resizing,
    **MODULES,
}  # fmt: skip


def quantize(model: nn.Module, inputs: tuple[torch.Tensor, ...], dynamic: bool) -> nn.Module:
    """A model as PT2E quantizes it for litert-torch, after four random inputs."""
    config = pt2e_quantizer.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    quantizer = pt2e_quantizer.PT2EQuantizer().set_global(config)
    made = quantize_pt2e.prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
    for _ in range(4):
        made(*[torch.rand_like(one) * 2 - 1 if one.is_floating_point() else one for one in inputs])
    return cast(nn.Module, quantize_pt2e.convert_pt2e(made, fold_quantize=False))


def make(name: str, seed: int, kind: str) -> Made:
    """A model of torch as one of TensorFlow Lite."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    model, inputs = MODELS[name](int(draw.integers(3, 7)), int(draw.integers(5, 10)))
    model = model.eval()
    path = Path(f"{os.getpid()}.exported")
    try:
        if kind == "float32":
            made = litert_torch.convert(model, inputs)
        else:
            quantized = quantize(model, inputs, kind == "PT2E dynamic range")
            made = litert_torch.convert(quantized, inputs, strict_export=False)
        made.export(str(path))
        return Made(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    asked = read_arguments(100)
    names = list(MODELS)
    makers = {}
    for number in range(asked.count):
        turn, at = divmod(number, len(names))
        name, seed, kind = names[at], asked.seed * 1000 + turn, KINDS[turn % len(KINDS)]
        makers[f"{kind.replace(' ', '_')}/{name}-{seed}.tflite"] = partial(make, name, seed, kind)
    write_each(asked.folder, makers, 300)


if __name__ == "__main__":
    main()

"""More modules of torch for wild_torch.py: blocks that published networks are made of. Needs an environment with torch."""

# Bodies of modules stand in a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Called = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Residual(nn.Module):
    """A sum of a module's result and what it read."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class SqueezeExcitation(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(c, max(c // 2, 1), 1), nn.Conv2d(max(c // 2, 1), c, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = functional.silu(self.down(x.mean((2, 3), keepdim=True)))
        return x * functional.hardsigmoid(self.up(s))


class SwappedAxes(nn.Module):
    """A module over the axes of a sequence swapped."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.transpose(1, 2)).transpose(1, 2)


class UNet(nn.Module):
    """A U-Net of two levels."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.LeakyReLU(0.1))
        self.two = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU())
        self.up, self.last = nn.ConvTranspose2d(2 * c, c, 2, 2), nn.Conv2d(2 * c, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.one(x)
        return self.last(torch.cat([one, self.up(self.two(one))], 1))


class CrossAttention(nn.Module):
    """A layer of a decoder that attends to another sequence."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(8 * c, 4, 16 * c, batch_first=True, activation="relu")

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return self.layer(x, memory)


class VariationalAutoencoder(nn.Module):
    """An autoencoder with a mean and a spread."""

    def __init__(self, c: int, n: int) -> None:
        super().__init__()
        self.into, self.mean, self.spread = nn.Linear(n, 4 * c), nn.Linear(4 * c, c), nn.Linear(4 * c, c)
        self.out = nn.Sequential(nn.Linear(c, 4 * c), nn.Tanh(), nn.Linear(4 * c, n))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = functional.elu(self.into(x))
        return self.out(self.mean(h) + 0.1 * (self.spread(h) * 0.5).exp()), self.mean(h), self.spread(h)


class GatedConvolutions(nn.Module):
    """Convolutions of a wave, gated, with sums of all of them."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, c, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv1d(c, 2 * c, 3, padding=d, dilation=d) for d in (1, 2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        total = torch.zeros_like(x)
        for layer in self.layers:
            a, b = layer(x).chunk(2, 1)
            y = a.tanh() * b.sigmoid()
            x, total = x + y, total + y
        return total


class ShuffleBlock(nn.Module):
    """Half of the channels go through convolutions, and channels change places."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, c, 1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1, groups=c),
            nn.BatchNorm2d(c),
            nn.Conv2d(c, c, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.body(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class WindowAttention(nn.Module):
    """Attention within windows of an image, rolled."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8 * c), nn.MultiheadAttention(8 * c, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        y = self.norm(x).roll((-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
        y = self.attention(y, y, y, need_weights=False)[0].view(n, h // 4, w // 4, 4, 4, c).transpose(2, 3)
        return x + y.reshape(n, h, w, c).roll((2, 2), (1, 2))


def image(c: int, h: int, w: int) -> torch.Tensor:
    return torch.rand(1, c, h, w) * 2 - 1


def sequence(n: int, c: int) -> torch.Tensor:
    return torch.rand(1, n, c) * 2 - 1


def residual(c: int, n: int) -> Called:
    block = [nn.Conv2d(2 * c, 2 * c, 3, padding=1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.Conv2d(2 * c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c)]  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 2 * c, 7, 2, 3), nn.ReLU6(), nn.MaxPool2d(3, 2, 1), Residual(*block), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(1)
    ), (image(3, 4 * n, 4 * n),)  # fmt: skip


def mobile(c: int, n: int) -> Called:
    inner = [nn.Conv2d(2 * c, 6 * c, 1), nn.Hardswish(), nn.Conv2d(6 * c, 6 * c, 5, padding=2, groups=6 * c), nn.Hardswish(), SqueezeExcitation(6 * c), nn.Conv2d(6 * c, 2 * c, 1)]  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 2 * c, 3, 2, 1), nn.SiLU(), Residual(*inner), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ), (image(3, 4 * n, 4 * n),)


def mixer(c: int, n: int) -> Called:
    tokens = Residual(nn.LayerNorm(4 * c), SwappedAxes(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n)))
    channels = Residual(
        nn.LayerNorm(4 * c), nn.Linear(4 * c, 8 * c), nn.GELU(approximate="tanh"), nn.Linear(8 * c, 4 * c)
    )
    return nn.Sequential(tokens, channels), (sequence(n, 4 * c),)


def next_generation(c: int, n: int) -> Called:
    body = [nn.Conv2d(4 * c, 4 * c, 7, padding=3, groups=4 * c), nn.GroupNorm(1, 4 * c), nn.Conv2d(4 * c, 8 * c, 1), nn.GELU(), nn.Conv2d(8 * c, 4 * c, 1)]  # fmt: skip
    return nn.Sequential(nn.Conv2d(3, 4 * c, 4, 4), Residual(*body), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.LayerNorm(4 * c), nn.Linear(4 * c, 7)), (image(3, 4 * n, 4 * n),)  # fmt: skip


def unet(c: int, n: int) -> Called:
    return UNet(2 * c), (image(3, 2 * n, 2 * n + 2),)


def crossed(c: int, n: int) -> Called:
    return CrossAttention(c), (sequence(n, 8 * c), sequence(n + 2, 8 * c))


def latent(c: int, n: int) -> Called:
    return VariationalAutoencoder(c, 3 * n), (torch.rand(2, 3 * n) * 2 - 1,)


def gated(c: int, n: int) -> Called:
    return GatedConvolutions(2 * c), (torch.rand(1, 1, 8 * n) * 2 - 1,)


def shuffled(c: int, n: int) -> Called:
    return nn.Sequential(nn.Conv2d(3, 4 * c, 3, 2, 1), ShuffleBlock(2 * c), nn.ReLU(), nn.AvgPool2d(2)), (
        image(3, 4 * n, 4 * n),
    )


def windows(c: int, n: int) -> Called:
    return WindowAttention(c), (torch.rand(1, 8, 4 * (n // 3), 8 * c) * 2 - 1,)


def pairs(c: int, n: int) -> Called:
    """Scores of points that lie opposite each other, and how near the nearest one is."""

    class PairScores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.score = nn.Linear(c, 8), nn.Bilinear(8, 8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            e = functional.normalize(self.embed(x), dim=-1)
            gap = torch.cdist(e, e)
            return self.score(e, e.flip(1)) + gap.amin(-1, keepdim=True).clamp(max=2.0)

    return PairScores(), (sequence(n, c),)


def volume(c: int, n: int) -> Called:
    return nn.Sequential(nn.Conv3d(2, c, 3, padding=1), nn.ReLU(), nn.AvgPool3d(2), nn.Conv3d(c, 3, 1)), (
        torch.rand(1, 2, 4, 2 * n, 8) * 2 - 1,
    )


MODULES: dict[str, Callable[[int, int], Any]] = {
    "residual": residual, "mobile": mobile, "mixer": mixer, "next_generation": next_generation, "unet": unet, "crossed": crossed,
    "latent": latent, "gated": gated, "shuffled": shuffled, "windows": windows, "pairs": pairs, "volume": volume,
}  # fmt: skip

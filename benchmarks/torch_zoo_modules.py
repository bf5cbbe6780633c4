"""Small modules of torch itself: recurrent layers, control flow, free sizes, buffers that are written to."""

# The tables have a model a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim
from torch.nn import functional as F


class Last(nn.Module):
    """A recurrent layer and a linear one."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, 5)

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.layer(x)
        return self.head(y), state


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).sigmoid(), (x,))


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        def inner(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.max() > 1, lambda x: x - 1, lambda x: x * 2, (x,))

        return torch.cond(n > 2, inner, lambda x: x.sin(), (x,))


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, n: torch.Tensor, x: torch.Tensor) -> Any:
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, torch.tanh(self.linear(x))), (n, x))


class Scan(nn.Module):
    def forward(self, xs: torch.Tensor, start: torch.Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda h, x: (torch.tanh(h + x), (h * 2).clone()), start, xs, dim=0)


class Counter(nn.Module):
    """Buffers that each call writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("cache", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        self.cache[1:] = self.cache[:-1].clone()
        self.cache[0] = x[0]
        return x * self.total + self.cache.sum(0)


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, 1:3] += 1
        y[keep] = 0
        y[..., -1].mul_(3)
        y.masked_fill_(y > 2, -1)
        return y.transpose(0, 1).clamp_(-3, 3)


class Free(nn.Module):
    """Shapes computed from free sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(8, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        b, c, h, w = y.shape
        y = y.view(b, c, h * w).permute(0, 2, 1)
        y = self.linear(y) + torch.arange(h * w, device=x.device)[None, :, None] / (h * w)
        y = F.interpolate(y.permute(0, 2, 1).reshape(b, 6, h, w), size=x.shape[2:], mode="bilinear")
        return torch.cat([y, y.new_zeros(b, 1, *y.shape[2:])], 1)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.table = nn.EmbeddingBag(20, 6, mode="mean"), nn.Embedding(20, 6, padding_idx=0)

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bag(ids, offsets) + self.table(ids[:2])


class Pieces(nn.Module):
    """Operators beside layers."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        a, b = x.chunk(2, -1)
        values, places = torch.topk(x, 3)
        return (
            torch.einsum("bij,bkj->bik", x, y), torch.logsumexp(x, -1), a.softmax(-1) @ b.transpose(-1, -2), values, places,
            x.cumsum(1), x.sort(-1).values, torch.where(x > 0, x, y), x.roll(1, 1), x.flip(0), F.pad(x, (1, 1), "reflect"),
            x.unfold(1, 2, 1), torch.triu(x), x.std(-1), x.var(1, unbiased=False), x.norm(dim=-1), torch.cdist(x, y),
            F.one_hot(places, 20).float(), torch.gather(x, -1, places), x.argmax(-1), x.amax((0, 2)), x.prod(-1),
            torch.scatter_add(x, -1, places, values), x.nan_to_num(), torch.outer(x[0, 0], y[0, 0]), x.repeat_interleave(2, 1),
            torch.meshgrid(x[0, 0], y[0, 0], indexing="ij")[0], torch.stack([x, y], 1).flatten(1, 2), x.floor_divide(0.3),
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.addcmul(x, x, y, value=0.5), x.pow(2).mean().sqrt(),
        )  # fmt: skip


class Found(nn.Module):
    """Sizes that depend on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.nonzero(x > 0)
        return places.float().sum(0) + x[x > 0].sum()


class Audio(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64)
        return torch.stft(x, 64, 16, window=window, return_complex=True).abs().log1p()


class Sampled(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return F.grid_sample(x, grid, align_corners=False) + F.grid_sample(
            x, grid, mode="nearest", padding_mode="border", align_corners=True
        )


def make_modules() -> dict[str, Callable[[], Any]]:
    """Modules by name, each with the arguments that it is exported with, and which sizes are free."""
    x = torch.randn(2, 7, 4)
    batch, height, width = Dim("batch"), Dim("height", min=4), Dim("width", min=4)
    wide = torch.randn(2, 3, 12, 16)

    def layer(kind: Any, *sizes: Any, width: int, **options: Any) -> Callable[[], Any]:
        return lambda: (Last(kind(*sizes, batch_first=True, **options), width), (x,), {})

    def net(make: Callable[[], Any], *given: torch.Tensor) -> Callable[[], Any]:
        return lambda: (make(), given, {})

    def encoder() -> nn.Module:
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)

    return {
        "lstm": layer(nn.LSTM, 4, 6, width=6),
        "lstm_two_ways": layer(nn.LSTM, 4, 6, width=12, num_layers=2, bidirectional=True),
        "lstm_projected": layer(nn.LSTM, 4, 6, width=3, proj_size=3),
        "gru": layer(nn.GRU, 4, 6, width=6),
        "gru_two_ways": layer(nn.GRU, 4, 6, width=12, num_layers=2, bidirectional=True),
        "rnn": layer(nn.RNN, 4, 6, width=6, nonlinearity="relu"),
        "rnn_two_layers": layer(nn.RNN, 4, 6, width=6, num_layers=2),
        "lstm_cell": net(lambda: nn.LSTMCell(4, 6), torch.randn(3, 4)),
        "gru_cell": net(lambda: nn.GRUCell(4, 6), torch.randn(3, 4)),
        "cond": net(Branches, torch.randn(3, 4)),
        "cond_nested": net(Nested, torch.randn(3, 4), torch.tensor(3)),
        "while_loop": net(Loop, torch.tensor(3), torch.randn(2, 4)),
        "scan": net(Scan, torch.randn(5, 3), torch.randn(3)),
        "buffers": net(Counter, torch.randn(2, 4)),
        "in_place": net(InPlace, torch.randn(3, 4), torch.tensor([True, False, True])),
        "free_image": lambda: (Free(), (wide,), {}, ({0: batch, 2: height, 3: width},)),
        "free_lstm": lambda: (Last(nn.LSTM(4, 6, batch_first=True), 6), (x,), {}, ({0: batch},)),
        "free_encoder": lambda: (encoder(), (torch.randn(2, 7, 16),), {}, ({0: batch, 1: Dim("time")},)),
        "free_auto": lambda: (Free(), (wide,), {}, ({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},)),
        "embeddings": net(Packed, torch.randint(1, 20, (8,)), torch.tensor([0, 3])),
        "pieces": net(Pieces, torch.randn(2, 4, 8), torch.randn(2, 4, 8)),
        "found": net(Found, torch.randn(4, 5)),
        "stft": net(Audio, torch.randn(2, 400)),
        "grid_sample": net(Sampled, wide, torch.rand(2, 5, 6, 2) * 2.4 - 1.2),
        "transformer_encoder": net(encoder, torch.randn(2, 7, 16)),
        "transformer": net(lambda: nn.Transformer(16, 4, 1, 1, 32, batch_first=True), torch.randn(2, 7, 16), torch.randn(2, 5, 16)),
        "attention": net(lambda: nn.MultiheadAttention(16, 4, batch_first=True), *[torch.randn(2, 7, 16)] * 3),
        "transposed": net(lambda: nn.Sequential(nn.ConvTranspose2d(3, 6, 3, 2, 1, 1, groups=3), nn.PReLU(6), nn.GroupNorm(2, 6), nn.PixelShuffle(1)), wide),
        "norms": net(lambda: nn.Sequential(nn.InstanceNorm2d(3, affine=True), nn.BatchNorm2d(3), nn.LocalResponseNorm(2), nn.Softmax2d(), nn.Hardswish(), nn.Mish()), wide),
        "pools": net(lambda: nn.Sequential(nn.ZeroPad2d((1, 2, 0, 1)), nn.MaxPool2d(3, 2, ceil_mode=True), nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.AdaptiveAvgPool2d((3, 2)), nn.AdaptiveMaxPool2d(2), nn.Upsample(scale_factor=2, mode="bicubic"), nn.PixelUnshuffle(2)), wide),
        "three_dimensions": net(lambda: nn.Sequential(nn.Conv3d(3, 4, 3, padding="same"), nn.MaxPool3d(2), nn.ConvTranspose3d(4, 2, 2, 2), nn.Upsample(scale_factor=2, mode="trilinear")), torch.randn(1, 3, 6, 8, 8)),
        "one_dimension": net(lambda: nn.Sequential(nn.Conv1d(4, 8, 3, padding=1, padding_mode="circular"), nn.GLU(1), nn.AvgPool1d(2), nn.Upsample(scale_factor=3, mode="linear")), torch.randn(2, 4, 9)),
        "weight_norm": net(lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), torch.randn(2, 4, 9)),
        "half": net(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).half(), wide.half()),
        "training": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (wide,), {}),
    }  # fmt: skip

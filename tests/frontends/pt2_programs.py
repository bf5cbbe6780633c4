"""The programs behind the fixtures in `pt2/`: `python tests/frontends/pt2_programs.py` writes them, with torch.

Each is a `.pt2` file with what torch computes beside it; one is stored as torch stores them, the others are compressed.
A torch other than that of the fixtures writes some of them beside those, under names that end with its version.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree

FOLDER = Path(__file__).parent / "pt2"
#: the version of torch that most fixtures are of, and those that others write too
VERSION = "2.13"
OF_EACH_VERSION = ("views", "attention", "image", "image_core", "codes", "waves", "recurrent")


class Views(torch.nn.Module):
    """Writes to a tensor, to a part of one, and to a buffer; tied weights; a weight that is a strided view."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.tied = self.linear.weight
        self.turned = torch.nn.Parameter(torch.randn(4, 6).t()[1:4])
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        y.relu_()
        rows = y[:, 1:3]
        rows.mul_(2.0)
        y[:, 0] = 1.0
        self.count.add_(1)
        return y, torch.nn.functional.linear(x, self.tied) @ self.turned.t(), x.shape[0] * 2


class Loops(torch.nn.Module):
    """Graphs within the graph: a branch, a loop, a scan, and a part without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((3,), 0.5))

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.cond(x.sum() > 0, lambda u: u * self.scale, lambda u: u + 1, (x,))
        _, z = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), y))
        carried, rows = scan(lambda c, t: (c + t, c * t), torch.zeros(3), x)
        with torch.no_grad():
            z = z + 1
        return z, carried, rows


class Recurrent(torch.nn.Module):
    """Layers with several directions and several layers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = torch.nn.GRU(6, 3, num_layers=2)

    def forward(self, x: torch.Tensor) -> Any:
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y)
        return y, h, c, z, g


class Attention(torch.nn.Module):
    """Named modules: attention, a norm, and scalars beside tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.inner = torch.nn.ModuleDict({"query": torch.nn.Linear(8, 8)})

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        q = self.inner["query"](self.norm(x)).view(x.shape[0], -1, 2, 4).transpose(1, 2)
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        return torch.nn.functional.gelu(y) * 2 + 1


class Image(torch.nn.Module):
    """Convolutions, pooling, resizing, and what is gathered by index."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.norm.running_mean.uniform_(-0.5, 0.5)

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.nn.functional.max_pool2d(self.norm(self.conv(x)), 3, 2, 1, ceil_mode=True)
        big = torch.nn.functional.interpolate(y, scale_factor=2.0, mode="bilinear")
        return big[:, [0, 2]], torch.nn.functional.adaptive_avg_pool2d(y, 3), y.flatten(1).topk(3)[0]


class Codes(torch.nn.Module):
    """Codes and scales as PT2E writes them: fixed, by channel, and chosen at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randint(-127, 128, (4, 6), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(4) * 0.02 + 0.01)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> Any:
        ops = torch.ops.quantized_decomposed
        fixed = ops.quantize_per_tensor(x, 0.03, 120, 0, 255, torch.uint8)
        u = ops.dequantize_per_tensor(fixed, 0.03, 120, 0, 255, torch.uint8)
        w = ops.dequantize_per_channel(self.codes, self.scales, self.zeros, 0, -127, 127, torch.int8)
        scale, zero = ops.choose_qparams.tensor(x, 0, 127, 1e-7, torch.uint8)
        chosen = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 127, torch.uint8)
        return torch.nn.functional.linear(u, w), scale, zero, chosen


class Figures(torch.nn.Module):
    """Numbers in order, losses, bags of embeddings, uneven pooling, and what is put in places."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(10, 3, mode="mean", padding_idx=-1)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> Any:
        middle, at = x.median(1)
        highest, where = x.cummax(0)
        pooled, places = torch.nn.functional.adaptive_max_pool2d(x[None, None], (2, 3), return_indices=True)
        loss = torch.nn.functional.cross_entropy(x, target, ignore_index=2, label_smoothing=0.1)
        means = torch.zeros(4, 7).scatter_reduce(0, target[:, None].expand(5, 7) % 4, x, "mean")
        bags = self.bag(torch.cat([target, target + 5]), torch.tensor([0, 3]))
        return middle, at, highest, where, pooled, places, loss, means, bags, x.quantile(0.3, dim=0) + x.cumprod(1)


class Waves(torch.nn.Module):
    """Transforms of real and complex numbers, with their products."""

    def forward(self, x: torch.Tensor) -> Any:
        z = torch.fft.rfft(x, norm="ortho") * torch.complex(x[:, :5], x[:, 1:6])
        return torch.fft.irfft(z, n=8), torch.view_as_real(torch.fft.fftn(x)), torch.fft.ifft(z).abs()


class Turns(torch.nn.Module):
    """Complex numbers that are moved, put together and multiplied, of a free batch, as rotary positions have them."""

    def forward(self, x: torch.Tensor, angles: torch.Tensor) -> Any:
        turns = torch.polar(torch.ones_like(angles), angles)[None, :, None].to(torch.complex64)
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)).transpose(1, 2)
        w = (z * turns.permute(0, 2, 1, 3)).unsqueeze(1).expand(-1, 2, -1, -1, -1).flatten(1, 2)
        both = torch.cat([w[:, :1], torch.exp(-w[:, 1:].select(1, 1)).unsqueeze(1)], 1)
        return torch.view_as_real(both).flatten(3), torch.view_as_real(torch.stack([w, w], -1).sum(-1))[..., :1]


class Names(torch.nn.Module):
    """Operators under their other names, and those that write to their first operand, of whatever overload."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        z = y.clone().pow_(2.5).floor_divide_(x.exp())
        wide = y.double().mul_(2).clip_(min=1.5)
        moved = torch.moveaxis(torch.swapdims(x, 0, 1), (0, 1), (1, 0))
        n = torch.sym_ite(x.shape[0] > 3, 2, 3)
        grid = torch.nn.functional.affine_grid(x[:2, None, :3].expand(2, 2, 3), (2, 1, 2, 3), align_corners=False)
        above = torch.triu_indices(3, 4, 1, device=x.device)
        return (
            z, wide, moved, torch.linalg.norm(x, 3, dim=1), torch.linalg.norm(x, "fro"), grid, x[above[0], above[1]],
            torch.true_divide(x, 3) + y, torch.special.erfc(x)[:n], torch._convolution(
                x[None], x[:, :, None][:, :, [0, 0]], None, [1], [1], [1], False, [0], 1, False, False, False, False
            ),
        )  # fmt: skip


class Special(torch.nn.Module):
    """Special functions, systems of equations, what occurs in a tensor, and a graph that is given a free size."""

    def forward(self, x: torch.Tensor) -> Any:
        special, square = torch.special, x[:, :3] @ x[:, :3].mT + torch.eye(3)
        with torch.no_grad():
            many = x * x.shape[0]
        waves = special.bessel_j0(x * 9) + special.bessel_y1(x.abs() * 9 + 1) + special.i1e(x)
        values, inverse = torch.unique((x * 2).round(), return_inverse=True)
        mantissa, exponent = torch.frexp(many)
        return (
            torch.lgamma(x) + torch.digamma(x) + torch.polygamma(2, x), waves, special.log_ndtr(x * 5), values,
            inverse, special.ndtri(x.sigmoid()) + special.entr(x.abs()), mantissa, exponent,
            torch.linalg.solve(square, x[:, :3]),
            torch.linalg.cholesky(square) + torch.linalg.slogdet(square)[1][..., None, None] + torch.matrix_exp(square),
        )  # fmt: skip


def make_programs() -> dict[str, Callable[[], tuple[Any, list[torch.Tensor]]]]:
    """The exported programs by name, each with inputs, made when called."""
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=64)

    def export(module: Any, *inputs: torch.Tensor, shapes: Any = None) -> tuple[Any, list[torch.Tensor]]:
        return torch.export.export(module.eval(), inputs, dynamic_shapes=shapes), list(inputs)

    mask = torch.tensor([[True, False, True], [True, True, False], [False, False, False]]).expand(2, 1, 3, 3)
    return {
        "views": lambda: export(Views(), torch.randn(5, 4), shapes=({0: batch},)),
        "loops": lambda: export(Loops(), torch.randn(6, 3)),
        "recurrent": lambda: export(Recurrent(), torch.randn(2, 5, 4)),
        "attention": lambda: export(
            Attention(), torch.randn(2, 3, 8), mask.contiguous(), shapes=({0: batch}, {0: batch})
        ),
        "image": lambda: export(Image(), torch.randn(2, 2, 10, 10)),
        "codes": lambda: export(Codes(), torch.randn(3, 6)),
        "figures": lambda: export(Figures(), torch.randn(5, 7), torch.tensor([1, 2, 0, 4, 3])),
        "waves": lambda: export(Waves(), torch.randn(3, 8)),
        "turns": lambda: export(Turns(), torch.randn(2, 5, 3, 4), torch.randn(5, 2), shapes=({0: batch}, None)),
        "names": lambda: export(Names(), torch.randn(4, 4), torch.rand(4, 4) + 0.5),
        "special": lambda: export(Special(), torch.randn(2, 4, 5), shapes=({0: batch},)),
        "waves_core": lambda: decomposed(export(Waves(), torch.randn(3, 8))),
        "image_core": lambda: decomposed(export(Image(), torch.randn(2, 2, 10, 10))),
    }


def decomposed(found: tuple[Any, list[torch.Tensor]]) -> tuple[Any, list[torch.Tensor]]:
    program, inputs = found
    return program.run_decompositions(), inputs


def save(program: Any, path: Path, compressed: bool) -> None:
    """Write a program without what torch notes of this machine: sources of nodes, and sample inputs, a pickle."""
    stream = io.BytesIO()
    for module in program.graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else ():
            node.meta.pop("stack_trace", None)
    torch.export.save(program, stream)
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(path, "w", kind) as new:
        for name in old.namelist():
            if "sample_inputs" not in name:
                new.writestr(zipfile.ZipInfo(name), old.read(name), kind)


def results(program: Any, inputs: list[torch.Tensor]) -> list[Any]:
    """What torch computes, as arrays."""
    found = _pytree.tree_leaves(program.module()(*(one.clone() for one in inputs)))
    return [np.asarray(one.detach() if isinstance(one, torch.Tensor) else one) for one in found]


def main(make: Callable[[], dict[str, Callable[[], tuple[Any, list[torch.Tensor]]]]] = make_programs) -> None:
    """Write all fixtures, or those of another version of torch."""
    FOLDER.mkdir(exist_ok=True)
    version = ".".join(torch.__version__.split(".")[:2])
    for name, export in make().items():
        if version == VERSION or name in OF_EACH_VERSION:
            program, inputs = export()
            path = FOLDER / (f"{name}.pt2" if version == VERSION else f"{name}_{version.replace('.', '_')}.pt2")
            save(program, path, name != "attention")
            arrays = {f"input_{i}": one.numpy() for i, one in enumerate(inputs)}
            arrays |= {f"output_{i}": one for i, one in enumerate(results(program, inputs))}
            np.savez_compressed(path.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main()

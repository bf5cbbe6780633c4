"""Programs of PyTorch, off by as little as rounding makes of numbers."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

from .interpreter import Source, locate
from .perturbation import LEAST, SHARE_OF_CODES, SHARE_OF_NUMBERS, SHARES
from .pytorch import load_program

#: what operators that put numbers on a grid call its steps and its lowest code, the others having one of both at most
_STEPS, _LOWEST = frozenset({"scale", "scales"}), "quant_min"


def perturb_program(source: Source, seed: int, by_steps: bool = False) -> bytes | None:
    """The program whose weights are off in their last places, and numbers by a small part of a step where they become
    codes, or with `by_steps` by a step; None where it has neither, or torch does not write it."""
    import torch

    generator = np.random.default_rng(seed)
    with warnings.catch_warnings(action="ignore"):
        try:
            program = load_program(locate(source))
            changed = _perturb_weights(program, generator)
            share = SHARE_OF_NUMBERS if by_steps else SHARE_OF_CODES
            changed = _perturb_quantized_numbers(program, generator, share) or changed
            if not changed:
                return None
            written = io.BytesIO()
            torch.export.save(program, written)
        except Exception:  # of any kind: there is nothing to be learned from a program that cannot be changed
            return None
    return written.getvalue()


def _perturb_weights(program: Any, generator: np.random.Generator) -> bool:
    import torch

    shares = {getattr(torch, name): share for name, share in SHARES.items()}
    changed = False
    for weights in program.state_dict.values():
        if weights.dtype in shares and weights.numel() >= LEAST:
            signs = torch.from_numpy(generator.integers(0, 2, tuple(weights.shape)) * 2 - 1)
            with torch.no_grad():
                weights.copy_(weights.double() * (1 + shares[weights.dtype] * signs))
            changed = True
    return changed


def _perturb_quantized_numbers(program: Any, generator: np.random.Generator, share: float) -> bool:
    """Multiply what becomes codes, where it is computed or given, by nearly one."""
    import torch

    entries = program.graph_signature.input_specs
    constants = {spec.arg.name for spec in entries if spec.kind.name != "USER_INPUT"}
    changed = False
    for node in list(program.graph.nodes):
        names = {one.name for one in getattr(getattr(node.target, "_schema", None), "arguments", ())}
        if _LOWEST not in names or names.isdisjoint(_STEPS):
            continue
        numbers = node.args[0]
        if not numbers.meta["val"].is_floating_point() or numbers.name in constants:
            continue
        factor = 1 + share * float(generator.integers(0, 2) * 2 - 1)
        with program.graph.inserting_before(node):
            near = program.graph.call_function(torch.ops.aten.mul.Tensor, (numbers, factor))
        near.meta["val"] = numbers.meta["val"]
        node.update_arg(0, near)
        changed = True
    program.graph_module.recompile()
    return changed

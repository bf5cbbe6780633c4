"""Perturbation: an ONNX model and its inputs, off by as little as rounding makes of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..engine.base.data_files import BUILT_IN
from ..engine.dialects.ops_files import load
from ..frontends.onnx_graphs import list_nodes, read_proto
from .frames import Array

#: by which share numbers are off, by their element type: twice the distance of two
SHARES = {"float32": 2.0**-22, "float16": 2.0**-9, "bfloat16": 2.0**-6}
_SHARES = {
    onnx.TensorProto.FLOAT: SHARES["float32"],
    onnx.TensorProto.FLOAT16: SHARES["float16"],
    onnx.TensorProto.BFLOAT16: SHARES["bfloat16"],
}
#: by which share what is put on a grid is off: some hundredths of a step, where codes have 8 bits
SHARE_OF_CODES = 2.0**-12
#: by which share it is where the model that was made has real numbers for codes: the largest are off by a step
SHARE_OF_NUMBERS = 2.0**-7
#: by which share the scales of weights beside numbers that a kernel rounds to codes by their range: one that does not
#: round them computes products that are off by as much, some of a hundred
SHARE_OF_RANGE = 2.0**-6
#: the trait of operators whose kernels do
BY_RANGE = "by_range"
#: so many bytes of constants in other files are read to be changed
_LARGEST = 1 << 28
#: the types of zero points
_CODES = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT16, onnx.TensorProto.UINT16)
#: constants of fewer elements are no weights, but factors of an image's axes or bounds, which say what is computed
LEAST = 8


def perturb_model(model: str | bytes, seed: int, by_steps: bool = False) -> bytes | None:
    """Perturb a model (path or bytes): weights in their last places, and numbers before they are quantized.

    These move by a small part of a step, with `by_steps` by a whole one. None where the model has nothing to perturb,
    and where more than some hundred megabytes of it lie in other files.
    """
    proto = read_proto(model, external_data=False)
    if any(one.data_location == onnx.TensorProto.EXTERNAL for one in proto.graph.initializer):
        if isinstance(model, bytes) or sum(map(_count_bytes, proto.graph.initializer)) > _LARGEST:
            return None
        proto = read_proto(model)
    stored = {one.name: one for one in proto.graph.initializer}
    stored |= {name: one for node in list_nodes(proto.graph) for name, one in _list_constants(node)}
    generator = np.random.default_rng(seed)
    real = {name: one for name, one in stored.items() if one.data_type in _SHARES}
    dialect = load([BUILT_IN / "standard" / "ops.yaml"]).find_dialect("onnx")
    by_range = {name for name, spec in dialect.operators.items() if BY_RANGE in spec.traits}
    quantize, dequantize = dialect.find_role("quantize").name, dialect.find_role("dequantize").name
    changed = False
    for number, node in enumerate(list_nodes(proto.graph)):
        share = SHARE_OF_RANGE if node.op_type in by_range else SHARE_OF_NUMBERS if by_steps else SHARE_OF_CODES
        for place, operand in enumerate(node.input):
            # A scale stands before a zero point, which quantize alone may leave out.
            coded = place + 1 < len(node.input) and getattr(stored.get(node.input[place + 1]), "data_type", 0) in _CODES
            grid = (coded and node.op_type != dequantize) or (node.op_type == quantize and place == 1)
            if grid and operand in real:
                # Others may take codes off the same grid, which stays as it is.
                name = f"{operand}/perturbed/{number}"
                scale = _perturb_numbers(numpy_helper.to_array(real[operand]), share, generator)
                proto.graph.initializer.append(numpy_helper.from_array(scale, name))
                node.input[place] = name
                changed = True
    for name, one in real.items():
        if np.prod(one.dims) >= LEAST:
            numbers = _perturb_numbers(numpy_helper.to_array(one), _SHARES[one.data_type], generator)
            one.CopyFrom(numpy_helper.from_array(numbers, name))
            changed = True
    return bytes(proto.SerializeToString()) if changed else None


def _count_bytes(one: onnx.TensorProto) -> int:
    """How many bytes of a constant lie in another file."""
    return sum(int(entry.value) for entry in one.external_data if entry.key == "length")


def _list_constants(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The constant that a node is, which reads nothing and has its elements for an attribute."""
    if not node.input and len(node.output) == 1:
        yield from ((node.output[0], one.t) for one in node.attribute if one.HasField("t"))


def perturb_inputs(samples: Sequence[Sequence[Array]], seed: int) -> list[list[Array]]:
    """Samples whose real numbers are off in their last places."""
    generator = np.random.default_rng(seed)
    shares = {np.dtype(helper.tensor_dtype_to_np_dtype(kind)): share for kind, share in _SHARES.items()}
    return [
        [_perturb_numbers(one, shares[one.dtype], generator) if one.dtype in shares else one for one in sample]
        for sample in samples
    ]


def _perturb_numbers(array: Any, share: float, generator: np.random.Generator) -> Array:
    signs = generator.integers(0, 2, array.shape) * 2 - 1
    return np.asarray(array * (1 + share * signs), array.dtype)

"""Imprints: what a case is in a file but for the numbers it holds, so that a change of what is written can be seen.

The interpreter tells where an option is written to another place than it reads; of operators that it has no kernel for
nobody does, as what reads them back goes by the same entry of ops.yaml.
"""

from __future__ import annotations

import zlib

import numpy as np
import onnx_ir as ir

from ..backends import tflite
from ..engine.errors import RewriteError
from ..engine.operators import Catalogue
from ..engine.quantization import KEY
from .sketch import Blank, Case, graph

#: the imprint of a case that no file can hold
_NONE = "----"


def imprint(case: Case, catalogue: Catalogue, rebatched: str = "") -> str:
    """Four hexadecimal digits of the file that a case would be with zeros for all elements and nothing quantized, and
    of what becomes of it with another batch."""
    blanks = [Blank(f"result_{place}", ir.DataType.FLOAT) for place in range(case.unknown)]
    try:
        made = graph(case.steps, case.outputs or blanks, catalogue.dialect("tflite"))
        for node in made.all_nodes():
            node.version = 1  # others may depend on the interpreter that there is
            for value in (*node.inputs, *node.outputs):
                if value is not None:
                    value.meta.pop(KEY, None)
                    value.const_value = None if value.const_value is None else _zeros(value.const_value)
        data = tflite.write(ir.Model(made, ir_version=10), catalogue)
    except RewriteError:
        return _NONE
    return f"{zlib.crc32(data + rebatched.encode()) & 0xFFFF:04x}"


def _zeros(held: ir.TensorProtocol) -> ir.TensorProtocol:
    elements = held.numpy()
    if held.dtype == ir.DataType.STRING:
        return ir.StringTensor([b""] * held.size, shape=ir.Shape(elements.shape), name=held.name)
    return ir.tensor(np.zeros(elements.shape, elements.dtype), dtype=held.dtype, name=held.name)

"""Files of tensors: the header and the bytes."""

from __future__ import annotations

import json
import struct

import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.backends.python_code.weights import write_tensors
from nnrewrite.engine.base.errors import RewriteError


def constant(array: np.ndarray) -> ir.Value:
    return ir.Value(name="w", const_value=ir.Tensor(array), type=ir.TensorType(ir.DataType.from_numpy(array.dtype)))


def test_a_file_is_the_length_of_a_header_the_header_and_the_bytes() -> None:
    one, two = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False])
    data = b"".join(bytes(part) for part in write_tensors([("a.weight", constant(one.T)), ("b", constant(two))]))
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    assert header["a.weight"] == {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}
    assert header["b"] == {"dtype": "BOOL", "shape": [2], "data_offsets": [24, 26]}
    assert np.array_equal(np.frombuffer(data[8 + length : 8 + length + 24], np.float32).reshape(3, 2), one.T)
    assert data[8 + length + 24 :] == b"\x01\x00"


def test_a_type_without_a_name_is_refused() -> None:
    text = ir.Value(name="words", const_value=ir.StringTensor([b"a"], shape=ir.Shape([1])))
    with pytest.raises(RewriteError, match="words"):
        list(write_tensors([("words", text)]))

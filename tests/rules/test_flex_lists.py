"""Lists of tensors as TensorFlow keeps them, each as one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nnrewrite
import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.base.errors import UnsupportedError
from nnrewrite.engine.dialects.operators import Catalogue

from ..engine.expressions.test_tables import value
from .flex import Case, agree, ints, numbers, operators
from .test_loops import Block


def number(what: int) -> Any:
    return np.array(what, np.int32)


def cases() -> Iterator[Case]:
    rows, item, zeros = numbers(3, 2, 4), numbers(2, 4), np.zeros((2, 2, 4), np.float32)
    extents, unknown = ints(2, 4), ints(-1, 4)
    yield Case("FlexTensorListReserve", (extents, number(3)), (np.zeros((3, 2, 4), np.float32),), 0)
    yield Case("FlexEmptyTensorList", (extents, number(-1)), (np.zeros((0, 2, 4), np.float32),), 0)
    yield Case("FlexTensorListFromTensor", (rows, unknown), (rows,))
    yield Case("FlexTensorListStack", (rows, unknown), (rows,), options={"num_elements": 3})
    changed = rows.copy()
    changed[1] = item
    yield Case("FlexTensorListSetItem", (rows, number(1), item), (changed,), 3)
    longer = np.concatenate([rows, zeros[:1], item[None]])
    grows = {"resize_if_index_out_of_bounds": True}
    yield Case("FlexTensorListSetItem", (rows, number(4), item), (longer,), 3, grows)
    yield Case("FlexTensorListSetItem", (rows, number(1), item), (changed,), 3, grows)
    # Items of unset extents are as wide as the first that is set.
    wide = np.zeros((3, 2, 4), np.float32)
    wide[1] = item
    yield Case("FlexTensorListSetItem", (np.zeros((3, 1, 4), np.float32), number(1), item), (wide,), 3)
    yield Case("FlexTensorListGetItem", (rows, number(2), unknown), (rows[2],), 2)
    yield Case("FlexTensorListLength", (rows,), (number(3),))
    yield Case("FlexTensorListPushBack", (rows, item), (np.concatenate([rows, item[None]]),), 2)
    yield Case("FlexTensorListPushBack", (np.zeros((0, 1, 4), np.float32), item), (item[None],), 2)
    yield Case("FlexTensorListPopBack", (rows, unknown), (rows[:2], rows[2]))
    yield Case("FlexTensorListResize", (rows, number(5)), (np.concatenate([rows, zeros]),))
    yield Case("FlexTensorListResize", (rows, number(2)), (rows[:2],))
    yield Case("FlexTensorListGather", (rows, ints([2, 0]), unknown), (rows[[2, 0]],))
    scattered = np.zeros((4, 2, 4), np.float32)
    scattered[[2, 0]] = rows[:2]
    yield Case("FlexTensorListScatterV2", (rows[:2], ints([2, 0]), unknown, number(4)), (scattered,))
    yield Case("FlexTensorListScatterV2", (rows[:2], ints([2, 0]), unknown, number(-1)), (scattered[:3],))
    into = rows.copy()
    into[[2, 0]] = zeros
    yield Case("FlexTensorListScatterIntoExistingList", (rows, zeros, ints([2, 0])), (into,), 2)
    lengths = np.array([2, 2, 2], np.int64)
    yield Case("FlexTensorListConcatV2", (rows, unknown, np.zeros(0, np.int64)), (rows.reshape(6, 4), lengths))


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_is_known(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


def test_every_operator_that_rules_are_about_has_a_case() -> None:
    assert operators("flex_lists.rules") and operators("flex_lists.rules") <= {case.operator for case in CASES}


def test_joining_items_of_unknown_extents_is_refused(catalogue: Catalogue) -> None:
    rows = value("x", "FLOAT", [3, None, 4])  # type: ignore[list-item]
    b = Block(rows)
    operands = [rows, b.constant([-1, 4]), b.constant([], "int64")]
    results = [value("y", "FLOAT", [6, 4]), value("lengths", "INT64", [3])]
    b.nodes.append(ir.Node("tflite.custom", "FlexTensorListConcatV2", operands, outputs=results))
    with pytest.raises(UnsupportedError, match="the extents of the items are not known"):
        nnrewrite.convert(write(ir.Model(b.graph(results, "main"), ir_version=10), catalogue))

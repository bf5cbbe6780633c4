"""Operators of TensorFlow itself about rows that belong together, ragged rows, chance and text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from nnrewrite.engine.dialects.operators import Catalogue

from .flex import Array, Case, agree, ints, numbers, operators


def longs(*values: object) -> Array:
    return np.array(values[0] if len(values) == 1 else values, np.int64)


def number(value: float, kind: type = np.int32) -> Array:
    return np.array(value, kind)


def segments() -> Iterator[Case]:
    x, ids = numbers(5, 3), ints(0, 0, 2, 2, 3)
    rows = [x[:2], x[:0], x[2:4], x[4:]]
    empty = np.zeros(3, np.float32)
    found = {
        "Sum": [row.sum(0) for row in rows],
        "Mean": [row.mean(0) if len(row) else empty for row in rows],
        "Max": [row.max(0) if len(row) else empty for row in rows],
        "Min": [row.min(0) if len(row) else empty for row in rows],
        "Prod": [row.prod(0) for row in rows],
    }
    for name, wanted in found.items():
        yield Case(f"FlexSegment{name}", (x, ids), (np.stack(wanted),), 2)
    lowest = np.finfo(np.float32)
    for name, none in {"Sum": 0, "Prod": 1, "Max": lowest.min, "Min": lowest.max}.items():
        wanted = [*found[name], none + empty]
        wanted[1] = none + empty
        order = [4, 1, 2, 0, 3]
        operands = x[order], ids[order], number(5)
        yield Case(f"FlexUnsortedSegment{name}", operands, (np.stack(wanted).astype(np.float32),), 2)
    table, picked = numbers(4, 3), ints(2, 0, 3, 1, 1)
    rows = [table[picked[:2]], table[:0], table[picked[2:4]], table[picked[4:]]]
    for name, power in (("Sum", 0), ("Mean", 1), ("SqrtN", 0.5)):
        wanted = [row.sum(0) / max(len(row), 1) ** power for row in rows]
        yield Case(f"FlexSparseSegment{name}", (table, picked, ids), (np.stack(wanted).astype(np.float32),), 3)
        operands = table, picked, ids, number(5)
        wanted = [*wanted, empty]
        yield Case(f"FlexSparseSegment{name}WithNumSegments", operands, (np.stack(wanted).astype(np.float32),), 3)


def counts() -> Iterator[Case]:
    again = np.array([3, 1, 3, 2], np.float32)
    firsts, at = again[[0, 1, 3]], ints(0, 1, 0, 2)
    yield Case("FlexUnique", (again,), (firsts, at))
    yield Case("FlexUniqueWithCounts", (again,), (firsts, at, ints(2, 1, 1)))
    logits, classes = numbers(3, 4), ints(2, 0, 3)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    own = np.eye(4, dtype=np.float32)[classes]
    losses = -np.log(shares).astype(np.float32)
    yield Case("FlexSparseSoftmaxCrossEntropyWithLogits", (logits, classes), ((losses * own).sum(1), shares - own), 2)
    half = own * np.float32(0.5) + np.float32(0.125)
    yield Case("FlexSoftmaxCrossEntropyWithLogits", (logits, half), ((losses * half).sum(1), shares - half), 2)
    rows = np.array([[1, 2], [0, 2], [1, 2]], np.float32)
    yield Case("FlexUniqueV2", (rows, ints([0])), (rows[:2], ints(0, 1, 0)))
    yield Case("FlexUniqueV2", (rows, ints([1])), (rows, ints(0, 1)))
    yield Case("FlexUniqueWithCountsV2", (rows, ints([0])), (rows[:2], ints(0, 1, 0), ints(2, 1)))
    kept = rows.reshape(-1)[[0, 2, 4]]
    yield Case("FlexListDiff", (rows.reshape(-1), np.array([2, 5], np.float32)), (kept, ints(0, 2, 4)), 2)
    yield Case("FlexListDiff", (rows.reshape(-1), np.zeros(0, np.float32)), (rows.reshape(-1), ints(*range(6))), 2)
    x, weights, none = ints(0, 2, 2, 9), np.float32([1, 2, 3, 4]), np.zeros(0, np.float32)
    table = ints([0, 2, 2], [1, 1, 5])
    for binary in (False, True):
        options, size = {"binary_output": binary}, number(4)
        wanted = np.float32([1, 0, 1, 0] if binary else [1, 0, 5, 0])
        yield Case("FlexDenseBincount", (x, size, weights), (wanted,), 1, options)
        wanted = np.float32([[1, 0, 1, 0], [0, 1, 0, 0]] if binary else [[1, 0, 2, 0], [0, 2, 0, 0]])
        yield Case("FlexDenseBincount", (table, size, none), (wanted,), 1, options)
    yield Case("FlexBincount", (x, number(3), weights), (np.float32([1, 0, 5]),), 1)


def parts() -> Iterator[Case]:
    x, of = numbers(2, 3, 4), ints([0, 2, 0], [2, 2, 0])
    rows, which = x.reshape(6, 4), of.ravel()
    wanted = tuple(rows[which == i] for i in range(3))
    yield Case("FlexDynamicPartition", (x, of), wanted, 2, {"num_partitions": 3})
    yield Case("FlexDynamicPartition", (x, ints(1, 0)), (x[1:], x[:1]), 2, {"num_partitions": 2})
    for name in ("FlexDynamicStitch", "FlexParallelDynamicStitch"):
        found = np.zeros((6, 4), np.float32)
        found[[5, 0, 3, 2, 1, 4]] = rows
        operands = ints([5, 0], [3, 2]), ints(1, 4), rows[:4].reshape(2, 2, 4), rows[4:]
        yield Case(name, operands, (found,), 4, {"N": 2})


def sets() -> Iterator[Case]:
    a, b = ints([3, 1, 3, 2], [5, 5, 4, 9]), ints([1, 7, 7], [8, 9, 4])
    for how, rows in {
        "a-b": [[2, 3], [5]],
        "b-a": [[7], [8]],
        "intersection": [[1], [4, 9]],
        "union": [[1, 2, 3, 7], [4, 5, 8, 9]],
    }.items():
        at = longs([[i, j] for i, row in enumerate(rows) for j in range(len(row))])
        wanted = at, ints([x for row in rows for x in row]), longs(2, max(map(len, rows)))
        yield Case("FlexDenseToDenseSetOperation", (a, b), wanted, 2, {"set_operation": how, "validate_indices": True})


def decoding() -> Iterator[Case]:
    said = [[0, 0, 3, 0, 1], [2, 2, 1, 3, 3]]
    lengths, scores = ints(5, 3), np.full((5, 2, 4), 0.25, np.float32)
    for b, t in itertools.product(range(2), range(5)):
        scores[t, b, said[b][t]] = 2 + t
    for merged, blank in itertools.product((True, False), (-1, 1)):
        rows: list[list[int]] = [[], []]
        for b, length in enumerate(lengths):
            for t in range(length):
                repeated = merged and t > 0 and said[b][t] == said[b][t - 1]
                if said[b][t] != blank % 4 and not repeated:
                    rows[b].append(said[b][t])
        at = longs([[i, j] for i, row in enumerate(rows) for j in range(len(row))])
        flat, most = longs([x for row in rows for x in row]), longs(2, max(map(len, rows)))
        wanted = at, flat, most, -np.float32([[2 + 3 + 4 + 5 + 6], [2 + 3 + 4]])
        options = {"merge_repeated": merged, "blank_index": blank}
        yield Case("FlexCTCGreedyDecoder", (scores, lengths), wanted, 2, options)


def sparse() -> Iterator[Case]:
    at, x = longs([0, 1], [2, 0], [2, 3]), np.float32([5, 6, 7])
    filled = longs([0, 1], [1, 0], [2, 0], [2, 3], [3, 0])
    wanted = filled, np.float32([5, -1, 6, 7, -1]), np.array([False, True, False, True]), longs(0, 2, 3)
    yield Case("FlexSparseFillEmptyRows", (at, x, longs(4, 4), number(-1, np.float32)), wanted, 3)
    for asked in (longs(2, 8), longs(2, -1)):
        yield Case("FlexSparseReshape", (at, longs(4, 4), asked), (longs([0, 1], [1, 0], [1, 3]), longs(2, 8)), 2)


SPLITS, INNER = ints(0, 2, 2, 3), ints(0, 1, 4, 6)
RAGGED = [[[0], [1, 2, 3]], [], [[4, 5]]]


def ragged() -> Iterator[Case]:
    rows = np.int64([0, 2, 2, 5]), ints(1, 3, 0, 9, 1), np.array(4, np.int32), np.zeros(0, np.int32)
    yield Case("FlexRaggedBincount", rows, (ints([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]]),), 2)
    starts, limits = np.float32([0, 5, 3]), np.float32([1, 5, 0])
    rows = [np.arange(*r) for r in ((0, 1, 0.25), (5, 5, 1), (3, 0, -1.5))]
    wanted = longs(0, 4, 4, 6), np.concatenate(rows).astype(np.float32)
    yield Case("FlexRaggedRange", (starts, limits, np.float32([0.25, 1, -1.5])), wanted, 3)
    wanted = longs(0, 3, 3, 4), ints(1, 3, 5, 1)
    yield Case("FlexRaggedRange", (number(1), ints(6, 1, 2), number(2)), wanted, 1)
    x = numbers(6, 2)
    options = {"PARAMS_RAGGED_RANK": 1, "OUTPUT_RAGGED_RANK": 1}
    picked = ints(0, 2, 3), x[[4, 5, 0]]
    yield Case("FlexRaggedGather", (INNER, x, ints(2, 0)), picked, 3, options)
    values = numbers(6)
    third, deep = ints(0, 1, 4, 4), ints(0, 1, 1, 2, 3)
    for splits, extents in (((INNER,), (3, 3)), ((SPLITS, INNER), (3, 2, 3)), ((third, deep, INNER), (3, 3, 1, 3))):
        wanted = places(*splits), values, longs(*extents)
        options = {"RAGGED_RANK": len(splits)}
        yield Case("FlexRaggedTensorToSparse", (*splits, values), wanted, len(splits) + 1, options)
    for asked, extents in ((number(-1), (3, 2, 3)), (ints(2, -1, 4), (2, 2, 4)), (ints(5, 1, -1), (5, 1, 3))):
        dense = np.full((5, 3, 5), 7, np.float32)
        for i, row in enumerate(RAGGED):
            for j, inner in enumerate(row):
                dense[i, j, : len(inner)] = values[inner]
        wanted = dense[: extents[0], : extents[1], : extents[2]]
        seven = number(7, np.float32)
        options = {"row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"], "num_row_partition_tensors": 2}
        yield Case("FlexRaggedTensorToTensor", (asked, values, seven, SPLITS, INNER), (wanted,), 1, options)
        options = {
            "row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"],
            "num_row_partition_tensors": 3,
        }
        ids = number(3), ints(0, 0, 2), ints(0, 1, 1, 1, 2, 2)
        yield Case("FlexRaggedTensorToTensor", (asked, values, seven, *ids), (wanted,), 1, options)


def below(splits: Sequence[Array], row: int) -> Iterator[list[int]]:
    """Places, from the next dimension on, of the elements of a row."""
    first, *deeper = splits
    for place, inner in enumerate(range(first[row], first[row + 1])):
        yield from ([place, *rest] for rest in (below(deeper, inner) if deeper else [[]]))


def places(*splits: Array) -> Array:
    return longs([[i, *rest] for i in range(len(splits[0]) - 1) for rest in below(splits, i)])


def chance() -> Iterator[Case]:
    """What TensorFlow 2.21 draws with these seeds at its first run."""
    sure = np.array([[0, 99, 0], [0, 0, 99]], np.float32)
    picked = ints([[1, 1, 1], [2, 2, 2]])
    yield Case("FlexMultinomial", (sure, number(3)), (picked,), 2, {"seed": 7, "seed2": 0})
    uniform = np.float32([0.13047123, 0.9760946, 0.01222026])
    yield Case("FlexRandomUniform", (ints([3]),), (uniform,), 0, {"seed": 1234, "seed2": 0})
    normal = np.float32([-0.30200204, 1.9954948, -1.4346613])
    yield Case("FlexRandomStandardNormal", (ints([3]),), (normal,), 0, {"seed": 1234, "seed2": 0})
    rows = np.arange(10, dtype=np.int32)
    first, second = [2, 4, 0, 8, 9, 1, 5, 6, 3, 7], [7, 5, 9, 8, 0, 3, 1, 4, 6, 2]
    drawn = [1, -3, 5, 4, 8, 7, 8, 8, -3, 6], [8, 7, 8, 3, 0, 0, -1, 6, -1, 3]
    for seed2, order, whole in zip((0, 3), (first, second), drawn, strict=True):
        options = {"seed": 1, "seed2": seed2}
        yield Case("FlexRandomShuffle", (rows,), (ints(order),), 1, options)
        yield Case("FlexRandomUniformInt", (ints([10]), number(-3), number(9)), (ints(whole),), 0, options)


def text() -> Iterator[Case]:
    words = np.array([["Ab", "cD"], ["", "x1"]])
    yield Case("FlexStringLower", (words,), (np.char.lower(words),), 1, {"encoding": ""})
    yield Case("FlexStringUpper", (words,), (np.char.upper(words),), 1, {"encoding": ""})
    yield Case("FlexStringToNumber", (np.array(["1.5", "-2"]),), (np.float32([1.5, -2]),))
    yield Case("FlexAsString", (ints(12, -3),), (np.array(["12", "-3"]),))


def keyed() -> Iterator[Case]:
    """Numbers that TensorFlow 2.21 draws with the seed [3, 4]."""
    key, counter, extents = np.uint64([5186321457711525117]), np.uint64([0, 2956673722964415482]), ints([5])
    philox = np.array(1, np.int32)
    yield Case("FlexStatelessRandomGetKeyCounter", (ints(3, 4),), (key, counter))
    uniform = np.float32([0.24328744, 0.9835063, 0.22041726, 0.46792018, 0.77385795])
    yield Case("FlexStatelessRandomUniformV2", (extents, key, counter, philox), (uniform,))
    normal = np.float32([-0.17393383, 1.6723547, 0.34817016, -1.7038907, -0.6153246])
    yield Case("FlexStatelessRandomNormalV2", (extents, key, counter, philox), (normal,))
    ends = (np.array(-2, np.int32), np.array(7, np.int32))
    yield Case("FlexStatelessRandomUniformIntV2", (extents, key, counter, philox, *ends), (ints(2, 5, -2, 4, 1),))
    words = ints(-1860230133, -671226999, -1390659934, 1052501199, -1503457849)
    yield Case("FlexStatelessRandomUniformFullIntV2", (extents, key, counter, philox), (words,))
    weights, classes = np.float32([[0.1, 0.5, -0.3], [1, 0, 2]]), np.int64([[1, 2, 0, 2, 1], [2, 2, 0, 2, 2]])
    yield Case("FlexStatelessMultinomial", (weights, np.array(5, np.int32), ints(1, 2)), (classes,))


CASES = [
    *segments(), *counts(), *parts(), *sets(), *decoding(), *sparse(), *ragged(), *chance(), *keyed(), *text(),
]  # fmt: skip


pytestmark = pytest.mark.usefixtures("counted")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_means_what_is_known(case: Case, catalogue: Catalogue) -> None:
    agree(case, catalogue)


@pytest.mark.parametrize("file", ["flex_segments.rules", "flex_ragged.rules", "flex_random.rules"])
def test_every_operator_that_rules_are_about_has_a_case(file: str) -> None:
    assert operators(file) and operators(file) <= {case.operator for case in CASES}

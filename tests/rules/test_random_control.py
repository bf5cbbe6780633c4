"""Branches and loops of all sorts, nested in one another, mean what the interpreter makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnrewrite.backends import probe
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels

from ..engine.expressions.test_tables import node, value
from .random_control import program
from .test_control import agree, joined

CHECKS = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
CONTROL = ("If", "Loop")
IMAGE = [1, 6, 5, 4]
CONVOLUTION = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "RELU"}


def nested(graph: onnx.GraphProto, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """For each node the operators that it is inside of, and its own."""
    for one in graph.node:
        path = (*above, one.op_type)
        yield path
        for attribute in one.attribute:
            if attribute.HasField("g"):
                yield from nested(attribute.g, path)


@pytest.mark.thorough
def test_random_branches_and_loops_mean_what_the_interpreter_does(
    catalogue: Catalogue, interpreter: Interpreter
) -> None:
    met: set[tuple[str, ...]] = set()
    grown: set[int] = set()

    @CHECKS
    @given(st.data())
    def check(data: st.DataObject) -> None:
        source, samples = program(data.draw, catalogue)
        target = nnrewrite.convert(source)
        verdict = compare_models(source, target.SerializeToString(), inputs=samples, interpreter=interpreter)
        assert verdict.passed, verdict
        met.update((outer, path[-1]) for path in nested(target.graph) for outer in path[:-1])
        grown.update(one.shape[0] for one in verdict.comparisons if len(one.shape) == 2)

    check()
    assert met >= {(outer, inner) for outer in CONTROL for inner in (*CONTROL, "Concat")}
    assert max(grown) > 1  # how often a loop that joins rows runs is up to what Hypothesis draws, which versions change


def convolutions(count: int, name: str) -> ir.Graph:
    """A graph of convolutions behind one another."""
    values = [value(f"{name}{i}", "FLOAT", IMAGE) for i in range(count + 1)]
    nodes, constants = [], []
    for i, (x, y) in enumerate(itertools.pairwise(values)):
        weights = np.random.default_rng(i).normal(size=(4, 3, 3, 4)).astype(np.float32) / 6
        own = [value(f"{name}w{i}", weights, []), value(f"{name}b{i}", np.ones(4, np.float32), [])]
        nodes.append(node("CONV_2D", [x, *own], [y], **CONVOLUTION))
        constants += own
    return ir.Graph(values[:1], values[-1:], nodes=nodes, initializers=constants, name=name)


def written(catalogue: Catalogue, *graphs: ir.Graph) -> bytes:
    return joined(catalogue, *(ir.Model(graph, ir_version=10) for graph in graphs))


def counts(source: bytes, operator: str, body: str) -> list[int]:
    """How many nodes of an operator the converted model has outside of bodies and in those of another."""
    paths = list(nested(nnrewrite.convert(source).graph))
    return [paths.count((operator,)), paths.count((body, operator))]


def test_layouts_end_where_a_branch_does(catalogue: Catalogue, interpreter: Interpreter) -> None:
    """Two convolutions before a branch and two in one side of it: each pair is entered and left by one permutation."""
    main, then = convolutions(2, "outer"), convolutions(2, "inner")
    yes, result = value("yes", "BOOL", []), value("result", "FLOAT", IMAGE)
    main.append(node("IF", [yes, main.outputs.pop()], [result], then_subgraph_index=1, else_subgraph_index=2))
    main.inputs.append(yes)
    main.outputs.append(result)
    other = probe.make_operator_model(catalogue, "TANH", {"x": ("FLOAT32", IMAGE)}, [("FLOAT32", IMAGE)])
    source = written(catalogue, main, then, other.graph)
    assert counts(source, "Conv", "If") == [2, 2]
    assert counts(source, "Transpose", "If") == [2, 1]
    x = np.random.default_rng(0).normal(size=IMAGE).astype(np.float32)
    assert agree(source, interpreter, [[x, np.array(side)] for side in (True, False)])


def test_layouts_end_where_a_loop_does(catalogue: Catalogue, interpreter: Interpreter) -> None:
    """A convolution before a loop, which carries its result, and two in the body."""
    main, body = convolutions(1, "outer"), convolutions(2, "inner")
    start, last = value("start", "INT32", []), value("last", "INT32", [])
    result, n, more = value("result", "FLOAT", IMAGE), value("n", "INT32", []), value("more", "INT32", [])
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    main.append(node("WHILE", [start, main.outputs.pop()], [last, result], **options))
    main.inputs.append(start)
    main.outputs.extend([last, result])
    step = value("step", np.array(1, np.int32), [])
    body.append(node("ADD", [n, step], [more]))
    body.register_initializer(step)
    body.inputs.insert(0, n)
    body.outputs.insert(0, more)
    below = probe.make_operator_model(
        catalogue, "LESS", {"n": ("INT32", []), "end": np.array(3, np.int32)}, [("BOOL", [])]
    ).graph
    below.inputs.append(value("unused", "FLOAT", IMAGE))
    source = written(catalogue, main, below, body)
    assert counts(source, "Conv", "Loop") == [1, 2]
    assert counts(source, "Transpose", "Loop") == [2, 2]
    x = np.random.default_rng(0).normal(size=IMAGE).astype(np.float32)
    assert agree(source, interpreter, [[x, np.array(first, np.int32)] for first in (0, 2, 5)])


def grid(scale: float, zero_point: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


def test_quantized_operators_are_the_same_inside_a_branch(catalogue: Catalogue, interpreter: Interpreter) -> None:
    """A convolution with a scale for each channel on one side, a sum on the other, between grids of their own."""
    random = np.random.default_rng(0)
    entry, result = ("INT8", IMAGE, grid(0.05, 3)), ("INT8", IMAGE, grid(0.06, -7))
    scales, zeros = np.array([0.01, 0.02, 0.03, 0.04], np.float32), np.zeros(4, np.int64)
    weights = random.integers(-127, 128, (4, 3, 3, 4)).astype(np.int8), Quantization(scales, zeros)
    bias = random.integers(-900, 900, 4).astype(np.int32), Quantization(scales * np.float32(0.05), zeros)
    term = random.integers(-128, 128, IMAGE).astype(np.int8), grid(0.03, 5)
    sides = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    source = joined(
        catalogue,
        probe.make_operator_model(catalogue, "IF", {"yes": ("BOOL", []), "x": entry}, [result], **sides),
        probe.make_operator_model(catalogue, "CONV_2D", {"x": entry, "w": weights, "b": bias}, [result], **CONVOLUTION),
        probe.make_operator_model(catalogue, "ADD", {"x": entry, "term": term}, [result]),
    )
    x = random.integers(-128, 128, IMAGE).astype(np.int8)
    samples = [[np.array(side), x] for side in (True, False)]
    wanted = [one[0] for one in interpreter.run(source, samples, Kernels.OPTIMIZED)]
    assert all(len(np.unique(one)) > 9 for one in wanted)  # not but limits
    assert agree(source, interpreter, samples)

"""Models as sources for TensorFlow Lite Micro: the array, what registers its operators, and the memory it takes."""

from __future__ import annotations

import re
import time
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.helper as helper
import onnx_ir as ir
import pytest
from nnrewrite import RewriteError, UnsupportedError
from nnrewrite.backends.memory_plan import count_bytes, plan_memory
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends.tflite_reader import read

CATALOGUE = load()


def build(*operators: str) -> bytes:
    """A chain of operators over eight numbers."""
    names = ["x", *(f"v{place}" for place in range(len(operators)))]
    nodes = [helper.make_node(one, [names[i]], [names[i + 1]]) for i, one in enumerate(operators)]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


@pytest.mark.slow
def test_sources_hold_the_model_and_register_what_it_needs(tmp_path: Path) -> None:
    model = build("Tanh", "Sigmoid", "Tanh")
    nnrewrite.rewrite(model, to="tflite", target="tflm").save(tmp_path / "m.tflite")
    nnrewrite.rewrite(model, to="cc", target="tflm").save(tmp_path / "my-net.cc")
    source, header = (tmp_path / "my-net.cc").read_text(), (tmp_path / "my-net.h").read_text()
    held = bytes(int(number, 16) for number in re.findall(r"0x(\w\w),", source))
    # The file for other machines has a record besides of which rule made each operator.
    assert held == write(read((tmp_path / "m.tflite").read_bytes(), CATALOGUE), CATALOGUE)
    assert "alignas(16) const unsigned char my_net_data[]" in source
    assert f"my_net_size = {len(held)};" in header
    assert re.findall(r"resolver\.(\w+)\(\)", header) == ["AddLogistic", "AddTanh"]
    assert "my_net_operators = 2;" in header


@pytest.mark.slow
def test_what_is_not_registered_is_refused() -> None:
    model = build("Tanh", "Gelu")
    with pytest.raises(UnsupportedError, match="TensorFlow Lite Micro registers no GELU"):
        nnrewrite.rewrite(model, to="tflite", target="tflm")
    with pytest.raises(RewriteError, match="registers no GELU"):
        nnrewrite.rewrite(model, to="cc")


def test_operators_with_a_method_are_those_that_the_target_takes() -> None:
    from nnrewrite.conversion.compiled_rules import prepare
    from nnrewrite.engine.base.data_files import BUILT_IN

    dialect = prepare(("litert",), None).pack.catalogue.find_dialect("tflite")
    text = (BUILT_IN / "tflm" / "accept.rules").read_text()
    listed = re.search(r"\[(.*?)\]", text, re.S)
    assert listed is not None
    assert {name.strip() for name in listed[1].split(",")} == {
        name for name, spec in dialect.operators.items() if spec.facts.micro is not None
    }


def draw_graph(size: int, span: int) -> ir.Graph:
    """Nodes that each read two of the last `span` values, of up to 200 numbers."""
    random = np.random.default_rng(1)
    values = [ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([3]))]
    for place in range(size):
        read = [values[-1 - i] for i in random.integers(0, min(span, len(values)), 2)]
        node = ir.Node("", "Op", read, num_outputs=1, name=f"n{place}")
        node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        node.outputs[0].shape = ir.Shape([int(random.integers(1, 200))])
        values.append(node.outputs[0])
    nodes = [node for value in values if (node := value.producer()) is not None]
    return ir.Graph(values[:1], values[-1:], nodes=nodes)


@pytest.mark.slow
def test_time_to_plan_memory_grows_with_the_graph_and_not_with_its_square() -> None:
    def time_plan(size: int) -> float:
        graph, started = draw_graph(size, 3), time.process_time()
        plan_memory(graph)
        return time.process_time() - started

    time_plan(100)
    assert time_plan(8000) < 30 * min(time_plan(1000) for _ in range(3))  # the square would be 64


def test_values_that_live_together_do_not_overlap() -> None:
    graph = draw_graph(40, 40)
    nodes, plan = list(graph), plan_memory(graph)
    values = [*graph.inputs, *(node.outputs[0] for node in nodes)]

    def lives(value: ir.Value) -> set[int]:
        producer = value.producer()
        first = -1 if producer is None else nodes.index(producer)
        last = max((nodes.index(use.node) for use in value.uses()), default=first)
        return set(range(first, 41 if value in (values[0], values[-1]) else last + 1))

    for one in values:
        for other in values:
            if one is not other and lives(one) & lives(other):
                a, b = plan.offsets[one], plan.offsets[other]
                assert a + count_bytes(one) <= b or b + count_bytes(other) <= a
    assert plan.size < sum(map(count_bytes, values))

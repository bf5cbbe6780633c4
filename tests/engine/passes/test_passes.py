"""The runner: which graphs a pass runs on, in which order, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from nnrewrite.cli.dispatch import app
from nnrewrite.conversion.compiled_rules import prepare
from nnrewrite.conversion.options import DEFAULT
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.errors import CallError, Refusal, RewriteError, UnsupportedError
from nnrewrite.engine.base.names import Scope
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.passes.base import Module, Visit, observe, run_passes
from nnrewrite.engine.passes.observers import check_graph, print_after
from nnrewrite.engine.passes.pass_list import PassOptions, list_passes
from nnrewrite.engine.rewrite.rules import RuleSet

NESTED = """
<ir_version: 8, opset_import: ["": 18]> main (bool c, float[2] x) => (float[2] y) {
  y = If (c) <
    then_branch = then () => (float[2] a) {
      a = If (c) <
        then_branch = inner () => (float[2] b) { b = Abs(x) },
        else_branch = other () => (float[2] d) { d = Neg(x) }
      >
    },
    else_branch = last () => (float[2] e) { e = Neg(x) }
  >
}
"""


class Note:
    """A pass that changes nothing and notes where it was."""

    name = "note"

    def __init__(self, visits: Visit) -> None:
        self.visits = visits
        self.seen: list[str] = []

    def run(self, module: Module) -> None:
        self.seen.append(f"{module.graph.name}@{module.depth}")


@pytest.fixture
def module() -> Module:
    graph = ir.from_proto(onnx.parser.parse_model(NESTED)).graph
    return Module(graph, prepare(("onnx",), None).rules, Scope(graph))


@pytest.mark.parametrize(
    ("visits", "seen"),
    [
        (Visit.MAIN, ["main@0"]),
        (Visit.FUNCTIONS_FIRST, ["main@0"]),
        (Visit.OUTSIDE_FIRST, ["main@0", "then@1", "inner@2", "other@2", "last@1"]),
        (Visit.INSIDE_FIRST, ["inner@2", "other@2", "then@1", "last@1", "main@0"]),
    ],
)
def test_a_pass_runs_on_the_graphs_that_it_visits(module: Module, visits: Visit, seen: list[str]) -> None:
    one = Note(visits)
    run_passes([one], module)
    assert one.seen == seen


def test_functions_that_nodes_call_are_visited_before_the_main_graph(catalogue: Catalogue) -> None:
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    function = ir.Graph([], [], nodes=[], name="function")
    node = ir.Node("tflite", "CALL_ONCE", [], [ir.AttrInt64("init_subgraph_index", 1)], num_outputs=1)
    graph = ir.Graph([value], [value], nodes=[node], name="main")
    one = Note(Visit.FUNCTIONS_FIRST)
    run_passes([one], Module(graph, prepare(DEFAULT.stacked, None).rules, Scope(graph), [graph, function]))
    assert one.seen == ["function@0", "main@0"]


def test_what_a_pass_refuses_is_raised_when_it_has_seen_all_graphs(module: Module) -> None:
    class Refuse(Note):
        def run(self, module: Module) -> None:
            module.refusals.append(Refusal("Abs", module.graph.name or "", (), "no"))

    with pytest.raises(UnsupportedError) as raised:
        run_passes([Refuse(Visit.OUTSIDE_FIRST)], module)
    assert len(raised.value.refusals) == 5


def test_bodies_that_nest_without_an_end_are_refused(module: Module) -> None:
    deep = Module(module.graph, module.rules, module.names, depth=31)
    with pytest.raises(RewriteError, match="nest deeper than 32"):
        run_passes([Note(Visit.OUTSIDE_FIRST)], deep)


def test_observers_are_told_of_each_pass_and_print_what_it_left(module: Module) -> None:
    said: list[str] = []
    with observe(print_after("note", said.append)):
        run_passes([Note(Visit.MAIN), Note(Visit.MAIN)], module)
    run_passes([Note(Visit.MAIN)], module)
    assert len(said) == 2
    assert said[0].splitlines()[:2] == ["# after note", "graph main(c: bool[], x: float[2])"]
    assert "b: float[2] = Abs(x)" in said[0]


def test_a_pass_that_leaves_a_value_without_its_node_is_found(module: Module) -> None:
    class Break(Note):
        def run(self, module: Module) -> None:
            module.graph.outputs[0] = ir.Value(name="lost")

    with observe(check_graph), pytest.raises(RewriteError, match="after note: the graph yields lost"):
        run_passes([Break(Visit.MAIN)], module)


def test_every_pass_of_a_conversion_leaves_a_whole_graph(single: Callable[..., bytes]) -> None:
    names: list[str] = []
    scale = Quantization(np.array([0.5]), np.array([0]))
    source = single("ADD", {"x": ("INT8", [2, 3], scale), "y": ("INT8", [2, 3], scale)}, [("INT8", [2, 3], scale)])
    with observe(check_graph, lambda one, _: names.append(one.name)):
        rewrite(source)
    assert names[:3] == ["state", "integers", "complex"]
    assert names[-2:] == ["sort", "accept"]


def test_a_rule_set_within_one_dialect_has_no_passes_about_the_source() -> None:
    rules: RuleSet = prepare(("onnx",), None).rules
    names = [one.name for one in list_passes(rules, PassOptions())]
    assert "quantize-dequantize" not in names
    assert "lower" in names


def test_the_command_prints_the_graph_after_a_pass(single: Callable[..., bytes], tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    words = [f"{tmp_path / 'net.tflite'}", "-d", f"{tmp_path}", "--print-after"]
    done = CliRunner().invoke(app, [*words, "normalize"])
    assert done.exit_code == 0 and done.output.count("# after") == 1
    assert "tflite.ABS(x)" in done.output
    every = CliRunner().invoke(app, [*words, "all"]).output
    assert "# after lower\n" in every and "= Abs(x)" in every
    wrong = CliRunner().invoke(app, [*words, "lowr"])
    assert isinstance(wrong.exception, CallError) or "did you mean lower?" in wrong.output

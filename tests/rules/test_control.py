"""Models with graphs of their own and with state: branches, loops, compositions, variables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.conversion.pipeline import rewrite
from nnrewrite.engine.base.data_files import OPS
from nnrewrite.engine.base.errors import CallError
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, compare_models
from nnrewrite.verify.interpreter import Kernels
from nnrewrite.verify.runtime import Runtime
from nnrewrite.verify.streaming import compare_streams, draw_samples, find_stateful, run_stream

from ..engine.expressions.test_tables import handle, node, value

README = OPS.parent / "README.md"
SCALAR = ("INT32", [])
VECTOR = ("FLOAT32", [3])
STEPS = 20


def joined(catalogue: Catalogue, *models: ir.Model) -> bytes:
    """A file with the graphs of several models, the first of which is the main one."""
    main = models[0]
    main.meta["subgraphs"] = [model.graph for model in models]
    return write(main, catalogue)


def agree(source: bytes, interpreter: Interpreter, inputs: Sequence[Sequence[np.ndarray]] | None = None) -> bool:
    return compare_models(
        source, nnrewrite.convert(source).SerializeToString(), inputs=inputs, interpreter=interpreter
    ).passed


@pytest.mark.thorough
def test_a_loop_runs_as_often_as_its_condition_says(catalogue: Catalogue, interpreter: Interpreter) -> None:
    source = joined(
        catalogue,
        probe.make_operator_model(
            catalogue, "WHILE", {"n": SCALAR}, [SCALAR], cond_subgraph_index=1, body_subgraph_index=2
        ),
        probe.make_operator_model(catalogue, "LESS", {"n": SCALAR, "end": np.array(10, np.int32)}, [("BOOL", [])]),
        probe.make_operator_model(catalogue, "ADD", {"n": SCALAR, "step": np.array(3, np.int32)}, [SCALAR]),
    )
    samples = [[np.array(start, np.int32)] for start in (-7, 0, 9, 10, 50)]
    assert agree(source, interpreter, samples)


def test_a_branch_takes_the_side_of_its_condition(catalogue: Catalogue, interpreter: Interpreter) -> None:
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    source = joined(
        catalogue,
        probe.make_operator_model(catalogue, "IF", {"yes": ("BOOL", [1]), "x": VECTOR}, [VECTOR], **options),
        probe.make_operator_model(catalogue, "ADD", {"x": VECTOR, "one": np.ones(3, np.float32)}, [VECTOR]),
        probe.make_operator_model(catalogue, "MUL", {"x": VECTOR, "two": np.full(3, 2, np.float32)}, [VECTOR]),
    )
    x = np.array([1, 2, 5], np.float32)
    assert agree(source, interpreter, [[np.array([side]), x] for side in (True, False)])


def test_branches_can_yield_one_constant(catalogue: Catalogue, interpreter: Interpreter) -> None:
    flag = ("BOOL", [2])
    constant = probe.make_operator_model(catalogue, "LOGICAL_NOT", {"never": np.zeros(2, np.bool_)}, [flag])
    constant.graph.inputs.append(ir.Value(name="x", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([2])))
    options = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    branch = probe.make_operator_model(catalogue, "IF", {"yes": ("BOOL", [1]), "x": flag}, [flag], **options)
    x = np.array([True, False])
    assert agree(joined(catalogue, branch, constant), interpreter, [[np.array([side]), x] for side in (True, False)])


def test_an_input_that_is_passed_on_keeps_its_name_on_both_sides(catalogue: Catalogue) -> None:
    model = probe.make_operator_model(catalogue, "NEG", {"x": VECTOR}, [VECTOR])
    model.graph.outputs.append(model.graph.inputs[0])
    converted = nnrewrite.convert(write(model, catalogue))
    assert [value.name for value in converted.graph.input] == ["x"]
    assert [value.name for value in converted.graph.output] == ["output_0", "x"]


def test_a_composition_is_what_its_graph_says_with_fused_activations(
    catalogue: Catalogue, interpreter: Interpreter
) -> None:
    main = probe.make_operator_model(
        catalogue, "STABLEHLO_COMPOSITE", {"x": VECTOR}, [VECTOR], name="some.name", decomposition_subgraph_index=1
    )
    main.graph[0].meta["composite_attributes"] = b"\0"
    body = probe.make_operator_model(
        catalogue, "ADD", {"x": VECTOR, "one": np.ones(3, np.float32)}, [VECTOR], fused_activation_function="RELU"
    )
    source = joined(catalogue, main, body)
    model = nnrewrite.convert(source)
    assert [node.op_type for node in model.graph.node] == ["Add", "Relu"]
    assert agree(source, interpreter, [[np.array([-5, 0, 5], np.float32)]])


def test_constants_of_a_graph_that_is_called_twice_are_stored_once(catalogue: Catalogue) -> None:
    options = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    source = joined(
        catalogue,
        probe.make_operator_model(
            catalogue, "IF", {"yes": ("BOOL", []), "x": ("FLOAT32", [300])}, [("FLOAT32", [300])], **options
        ),
        probe.make_operator_model(
            catalogue,
            "ADD",
            {"x": ("FLOAT32", [300]), "much": np.arange(300, dtype=np.float32)},
            [("FLOAT32", [300])],
        ),
    )
    model = nnrewrite.convert(source)
    assert [list(tensor.dims) for tensor in model.graph.initializer].count([300]) == 1


def test_graphs_that_call_themselves_without_end_are_refused(catalogue: Catalogue) -> None:
    source = joined(
        catalogue,
        probe.make_operator_model(catalogue, "CALL", {"x": VECTOR}, [VECTOR], subgraph=1),
        probe.make_operator_model(catalogue, "CALL", {"x": VECTOR}, [VECTOR], subgraph=1),
    )
    with pytest.raises(nnrewrite.RewriteError, match="calls itself, which never ends"):
        nnrewrite.convert(source)


def test_graphs_that_call_each_other_too_deep_are_refused(catalogue: Catalogue) -> None:
    calls = [
        probe.make_operator_model(catalogue, "CALL", {"x": VECTOR}, [VECTOR], subgraph=place) for place in range(1, 400)
    ]
    source = joined(catalogue, *calls, probe.make_operator_model(catalogue, "NEG", {"x": VECTOR}, [VECTOR]))
    with pytest.raises(nnrewrite.RewriteError, match="its graphs call each other 399 deep, more than 128"):
        nnrewrite.convert(source)


def test_operators_inside_branches_are_reported_with_the_others(catalogue: Catalogue) -> None:
    options = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    source = joined(
        catalogue,
        probe.make_operator_model(catalogue, "IF", {"yes": ("BOOL", []), "x": VECTOR}, [VECTOR], **options),
        probe.make_operator_model(catalogue, "MyOwnOperator", {"x": VECTOR}, [VECTOR]),
    )
    with pytest.raises(nnrewrite.UnsupportedError, match="MyOwnOperator"):
        nnrewrite.convert(source)


def counter(initial: float) -> ir.Model:
    """A model that adds its input to what it kept, and keeps the sum."""

    def node(name: str, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], **options: str | int) -> ir.Node:
        attributes = [
            ir.AttrString(key, value) if isinstance(value, str) else ir.AttrInt64(key, value)
            for key, value in options.items()
        ]
        return ir.Node("tflite", name, inputs, attributes, outputs=outputs, name=name)

    def value(name: str, constant: float | None = None) -> ir.Value:
        tensor = None if constant is None else ir.Tensor(np.array([constant], np.float32), name=name)
        kind = ir.TensorType(ir.DataType.FLOAT)
        return ir.Value(name=name, type=kind, shape=ir.Shape([1]), const_value=tensor)

    def handle(name: str) -> ir.Value:
        found = ir.Value(name=name, shape=ir.Shape([]))
        found.meta["type"] = "RESOURCE"
        return found

    x, kept, total, start = value("x"), value("kept"), value("sum"), value("start", initial)
    own, first = handle("handle"), handle("first")
    main = ir.Graph(
        [x],
        [total],
        nodes=[
            node("CALL_ONCE", [], [], init_subgraph_index=1),
            node("VAR_HANDLE", [], [own], shared_name="memory"),
            node("READ_VARIABLE", [own], [kept]),
            node("ADD", [x, kept], [total]),
            node("ASSIGN_VARIABLE", [own, total], []),
        ],
        name="main",
    )
    once = ir.Graph(
        [],
        [],
        nodes=[
            node("VAR_HANDLE", [], [first], shared_name="memory"),
            node("ASSIGN_VARIABLE", [first, start], []),
        ],
        initializers=[start],
        name="once",
    )
    model = ir.Model(main, ir_version=10)
    model.meta["subgraphs"] = [main, once]
    return model


def test_a_variable_becomes_an_input_with_its_initial_value_and_an_output(catalogue: Catalogue) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = rewrite(write(counter(2.5), catalogue)).model
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.array([1], np.float32)
    once = session.run(None, {"x": x})
    assert once[0] == 3.5
    again = session.run(None, {"x": x, "memory": once[1]})
    assert again[0] == 4.5
    assert {p.key: p.value for p in model.metadata_props}["nnrewrite.state.memory"] == "memory_out"


def begun(catalogue: Catalogue, producer: str) -> bytes:
    """Two cells, one after the other, with a memory that another operator makes of an input in each call."""
    draw = np.random.default_rng(5)

    def make(name: str, shape: list[int], content: np.ndarray | None = None, kind: str = "FLOAT") -> ir.Value:
        tensor = None if content is None else ir.Tensor(content, name=name)
        return ir.Value(name=name, type=ir.TensorType(ir.DataType[kind]), shape=ir.Shape(shape), const_value=tensor)

    def weights(name: str, *shape: int) -> ir.Value:
        return make(name, list(shape), draw.normal(size=shape).astype(np.float32))

    x, h0, to, memory = make("x", [1, 4]), make("h0", [1, 3]), make("to", [2], kind="INT32"), make("memory", [1, 3])
    memory.meta["variable"] = True
    constants = [weights("w", 3, 4), weights("r", 3, 3), weights("b", 3)]
    ys = [make("y", [1, 3]), make("z", [1, 3])]
    tanh = ir.Attr("fused_activation_function", ir.AttributeType.STRING, "TANH")
    cells = [ir.Node("tflite", "RNN", [x, *constants, memory], [tanh], outputs=[y], name=f"{y.name}_") for y in ys]
    resized = producer == "RESHAPE"
    first = ir.Node("tflite", producer, [h0, to] if resized else [h0], outputs=[memory], name="first")
    graph = ir.Graph(
        [x, h0, to] if resized else [x, h0], ys, nodes=[first, *cells], initializers=constants, name="main"
    )
    return write(ir.Model(graph, ir_version=10), catalogue)


@pytest.mark.parametrize("producer", ["TANH", "RESHAPE"])
def test_a_memory_that_each_call_computes_anew_is_no_state(
    catalogue: Catalogue, interpreter: Interpreter, producer: str
) -> None:
    draw, to = np.random.default_rng(6), [np.array([1, 3], np.int32)] * (producer == "RESHAPE")
    samples = [[draw.normal(size=(1, n)).astype(np.float32) for n in (4, 3)] + to for _ in range(3)]
    source = begun(catalogue, producer)
    converted = rewrite(source).model.SerializeToString()
    runtime = Runtime(converted)
    for sample, expected in zip(samples, interpreter.run(source, samples), strict=True):
        found = runtime.run(sample)
        assert len(found) == len(expected) == 2
        assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))


def test_a_variable_that_keeps_one_sample_takes_no_other_batch(catalogue: Catalogue) -> None:
    with pytest.raises(
        nnrewrite.RewriteError, match=r"ASSIGN_VARIABLE\S* forbids .* keeps what a call leaves .* 1 sample"
    ):
        rewrite(write(counter(2.5), catalogue), batch=4)


def test_a_part_does_not_end_at_the_handle_of_a_variable(catalogue: Catalogue) -> None:
    with pytest.raises(CallError, match="handle, which VAR_HANDLE yields, has no element type that is known"):
        rewrite(write(counter(2.5), catalogue), outputs="handle")


@pytest.mark.parametrize(("graph", "given"), [("main", 1), ("once", 1), ("main", 0)])
def test_a_variable_that_is_given_nothing_is_refused(catalogue: Catalogue, graph: str, given: int) -> None:
    model = counter(2.5)
    assign = next(
        node
        for one in model.meta["subgraphs"]
        for node in one
        if one.name == graph and node.op_type == "ASSIGN_VARIABLE"
    )
    assign.resize_inputs(given)
    with pytest.raises(nnrewrite.UnsupportedError, match=r"ASSIGN_VARIABLE x 1: .*\n    \w+ is missing$"):
        rewrite(write(model, catalogue))


def test_the_loop_that_the_readme_shows_feeds_state_back(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = counter(2.5)
    model.graph.inputs[0].name = "input"
    (tmp_path / "wake_word.onnx").write_bytes(nnrewrite.convert(write(model, catalogue)).SerializeToString())
    monkeypatch.chdir(tmp_path)
    blocks = [part.split("```")[0] for part in README.read_text(encoding="utf-8").split("```python\n")[1:]]
    (shown,) = [block for block in blocks if "nnrewrite.state." in block]
    scope = {"onnxruntime": onnxruntime, "frames": [np.array([n], np.float32) for n in (1, 2, 3)]}
    exec(shown, scope)
    assert scope["kept"]["memory"] == 2.5 + 1 + 2 + 3  # type: ignore[index]


@pytest.mark.slow
def test_state_keeps_its_layout_where_inputs_and_outputs_have_the_targets(catalogue: Catalogue) -> None:
    x, kept, total, result = (value(name, "FLOAT", [1, 4, 5, 2]) for name in ("x", "kept", "total", "result"))
    own, again, begun = handle("own"), handle("again"), handle("begun")
    start = value("start", np.arange(40, dtype=np.float32).reshape(1, 4, 5, 2), [1, 4, 5, 2])
    pool = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    graph = ir.Graph(
        [x],
        [result],
        nodes=[
            node("CALL_ONCE", [], [], init_subgraph_index=1),
            node("VAR_HANDLE", [], [own], shared_name="memory"),
            node("READ_VARIABLE", [own], [kept]),
            node("ADD", [x, kept], [total]),
            node("MAX_POOL_2D", [total], [result], **pool),
            node("VAR_HANDLE", [], [again], shared_name="memory"),
            node("ASSIGN_VARIABLE", [again, result], []),
        ],
        name="main",
    )
    once = ir.Graph(
        [],
        [],
        nodes=[
            node("VAR_HANDLE", [], [begun], shared_name="memory"),
            node("ASSIGN_VARIABLE", [begun, start], []),
        ],
        initializers=[start],
        name="once",
    )
    source = joined(catalogue, ir.Model(graph, ir_version=10), ir.Model(once, ir_version=10))
    model = nnrewrite.convert(source, layout="target")
    shapes = {
        one.name: [extent.dim_value for extent in one.type.tensor_type.shape.dim]
        for one in (*model.graph.input, *model.graph.output)
    }
    first, last = [1, 2, 4, 5], [1, 4, 5, 2]
    assert shapes == {"x": first, "memory": last, "result": first, "memory_out": last}
    assert compare_models(source, model.SerializeToString()).passed
    with pytest.raises(CallError, match="layout memory: it carries state"):
        nnrewrite.convert(source, layout="memory=NHWC:NCHW")


def test_state_inside_a_branch_is_that_of_the_model(catalogue: Catalogue, interpreter: Interpreter) -> None:
    """A variable that only one side of a branch adds to."""
    kept, total, same = (value(name, "FLOAT", [1]) for name in ("kept", "total", "same"))
    x, own, begun, yes = value("x", "FLOAT", [1]), handle("own"), handle("begun"), value("yes", "BOOL", [])
    result, put = value("result", "FLOAT", [1]), value("put", "FLOAT", [1])
    start = value("start", np.ones(1, np.float32), [])
    other, reread = handle("other"), value("reread", "FLOAT", [1])
    named = {"shared_name": "memory"}
    main = ir.Graph(
        [yes, put],
        [result],
        nodes=[
            node("CALL_ONCE", [], [], init_subgraph_index=3),
            node("IF", [yes, put], [result], then_subgraph_index=1, else_subgraph_index=2),
        ],
        name="main",
    )
    adding = ir.Graph(
        [x],
        [total],
        nodes=[
            node("VAR_HANDLE", [], [own], **named),
            node("READ_VARIABLE", [own], [kept]),
            node("ADD", [x, kept], [total]),
            node("ASSIGN_VARIABLE", [own, total], []),
        ],
        name="adding",
    )
    ignored = value("ignored", "FLOAT", [1])
    reading = ir.Graph(
        [ignored],
        [same],
        nodes=[
            node("VAR_HANDLE", [], [other], **named),
            node("READ_VARIABLE", [other], [reread]),
            node("NEG", [reread], [same]),
        ],
        name="reading",
    )
    once = ir.Graph(
        [],
        [],
        nodes=[node("VAR_HANDLE", [], [begun], **named), node("ASSIGN_VARIABLE", [begun, start], [])],
        initializers=[start],
        name="once",
    )
    whole = ir.Model(main, ir_version=10)
    whole.meta["subgraphs"] = [main, adding, reading, once]
    source = write(whole, catalogue)
    steps = [[np.array(side), np.array([n], np.float32)] for n, side in enumerate([True, False, True, True, False])]
    found = run_stream(Runtime(nnrewrite.convert(source).SerializeToString()), steps)
    wanted = interpreter.run(source, steps, Kernels.OPTIMIZED, keep=True)
    assert [float(got[0][0]) for got in found] == [1, -1, 3, 6, -6]
    assert [float(want[0][0]) for want in wanted] == [1, -1, 3, 6, -6]


def test_state_that_is_computed_at_first_is_a_default(catalogue: Catalogue) -> None:
    """The graph that runs once may compute what variables begin with."""
    model = counter(2.5)
    once = model.meta["subgraphs"][1]
    doubled = value("doubled", "FLOAT", [1])
    assign = once[1]
    once.insert_before(assign, ir.Node("tflite", "ADD", [assign.inputs[1], assign.inputs[1]], outputs=[doubled]))
    assign.replace_input_with(1, doubled)
    converted = nnrewrite.convert(write(model, catalogue))
    defaults = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in converted.graph.initializer}
    assert defaults["memory"] == 5


def test_streaming_models_stay_in_step_with_the_interpreter(models_folder: Path, interpreter: Interpreter) -> None:
    """All real models that remember: both sides begin anew and then run on."""
    tried = 0
    for path in find_stateful(models_folder, 120_000):
        tried += 1
        target = nnrewrite.convert(path).SerializeToString()
        for one in compare_streams(path, target, draw_samples(interpreter.describe(path), STEPS), interpreter):
            assert one.verdict.passed, f"{path.name}: {one.name}: {one.reason}"
    assert tried

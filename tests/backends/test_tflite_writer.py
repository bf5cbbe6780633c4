"""What the writer writes, the reader reads back and the interpreter runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from nnrewrite.backends.tflite_writer import pack_options, write
from nnrewrite.engine.base.errors import ModelError, VerificationError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue, Dialect, Option
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.frontends import flexbuffer_reader, stated_results
from nnrewrite.frontends.option import make_attribute as attribute_of
from nnrewrite.frontends.tflite_reader import Signature, read
from nnrewrite.verify import Interpreter
from nnrewrite.verify.inputs import draw

Make = Callable[..., bytes]
CATALOGUE = load()
DIALECT = CATALOGUE.find_dialect("tflite")
#: options that tell operators with the same code apart
TELLING = {name for spec in DIALECT.operators.values() for name in spec.when}
BUILTIN = sorted(spec.name for spec in DIALECT.operators.values() if spec.code is not None)
TYPES = [ir.DataType[entry["dtype"]] for entry in DIALECT.types.values() if entry["dtype"] is not None]
NUMBERS = {
    "bool": st.booleans(),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=5),
    "subgraph": st.integers(0, 3),
    "bytes": st.binary(max_size=5),
}
INTEGERS = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


# ---- any graph -------------------------------------------------------------------------------------------------------


def scalars(kind: str, dialect: Dialect) -> st.SearchStrategy[Any]:
    if kind in dialect.enums:
        return st.sampled_from([*dialect.enums[kind], f"{kind}(99)"])
    if kind in INTEGERS:
        sign, bits = INTEGERS[kind]
        # An attribute of ONNX is a signed integer of 64 bits.
        high = 2 ** (bits if sign and bits < 64 else bits - 1) - 1
        return st.integers(0 if sign else -(2 ** (bits - 1)), high)
    return NUMBERS[kind]


def attribute(known: Option, draw_from: st.DataObject) -> ir.Attr:
    types = ir.AttributeType
    base = known.type.strip("[]")
    texts, floats = base == "string" or base in DIALECT.enums, base in ("float", "double")
    kinds = (
        (types.STRING, types.STRINGS) if texts else (types.FLOAT, types.FLOATS) if floats else (types.INT, types.INTS)
    )
    values = scalars(base, DIALECT)
    if known.type.startswith("["):
        return ir.Attr(known.name, kinds[1], draw_from.draw(st.lists(values, max_size=4)))
    return ir.Attr(known.name, kinds[0], draw_from.draw(values))


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def constant(name: str, draw_from: st.DataObject) -> ir.Value:
    dtype, shape = draw_from.draw(st.sampled_from(TYPES)), draw_from.draw(shapes)
    size = int(np.prod(shape))
    if dtype == ir.DataType.STRING:
        items = draw_from.draw(st.lists(st.binary(max_size=4), min_size=size, max_size=size))
        content: ir.TensorProtocol = ir.StringTensor(items, shape=ir.Shape(shape), name=name)
    else:
        length = -(-size * dtype.bitwidth // 8)
        raw = np.frombuffer(draw_from.draw(st.binary(min_size=length, max_size=length)), np.uint8)
        packed = dtype.bitwidth < 8
        content = (
            ir.PackedTensor(raw, dtype, shape=shape, name=name)
            if packed
            else ir.Tensor(raw.view(dtype.numpy()).reshape(shape), dtype, name=name)
        )
    value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=content)
    quantize(value, draw_from)
    return value


def quantize(value: ir.Value, draw_from: st.DataObject) -> None:
    if value.shape is None or not draw_from.draw(st.booleans()):
        return
    axes = [i for i, n in enumerate(value.shape) if isinstance(n, int) and n > 1]
    axis = draw_from.draw(st.sampled_from([None, *axes]))
    count = 1 if axis is None else int(str(value.shape[axis]))
    scales = draw_from.draw(st.lists(st.floats(0.5, 2, width=32), min_size=count, max_size=count))
    held = value.dtype if value.dtype is not None and value.dtype.is_integer() else ir.DataType.INT8
    codes = st.integers(max(-128, int(held.min)), min(127, int(held.max)))
    zeros = draw_from.draw(st.lists(codes, min_size=count, max_size=count))
    value.meta["quantization"] = Quantization(np.array(scales, np.float32), np.array(zeros, np.int64), axis or 0)


def placeholder(name: str, draw_from: st.DataObject, feed: bool = False) -> ir.Value:
    """A value that is computed, or fed."""
    value = ir.Value(name=name)
    dtype = draw_from.draw(st.sampled_from([*TYPES, None]))
    if dtype is None:
        value.meta["type"] = "RESOURCE"
    else:
        value.type = ir.TensorType(dtype)
    shape = draw_from.draw(st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=3))
    if shape or feed or draw_from.draw(st.booleans()):
        value.shape = ir.Shape([n if n is not None or not feed else f"{name}_d{i}" for i, n in enumerate(shape)])
    if None in shape:
        value.meta["static_shape"] = tuple(5 if n is None else n for n in shape)
    quantize(value, draw_from)
    return value


@st.composite
def graphs(draw: st.DrawFn, index: int) -> ir.Graph:
    data = draw(st.data())
    inputs = [placeholder(f"in_{i}", data, feed=True) for i in range(draw(st.integers(0, 2)))]
    constants = [constant(f"const_{i}", data) for i in range(draw(st.integers(0, 2)))]
    state = ir.Value(name="state", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    state.meta["variable"] = True
    known: list[ir.Value] = [*inputs, *constants, state]
    nodes = []
    for number in range(draw(st.integers(0, 3))):
        spec = DIALECT.operators[draw(st.sampled_from(BUILTIN))]
        custom = spec is DIALECT.find_role("custom")
        own = [] if custom else [o for o in spec.options.values() if o.type != "bytes" and o.name not in TELLING]
        chosen = [o for o in own if draw(st.booleans())]
        results = [placeholder(f"result_{number}_{i}", data) for i in range(draw(st.integers(0, 2)))]
        node = ir.Node(
            f"{DIALECT.domain}.custom" if custom else DIALECT.domain,
            "Anything" if custom else spec.name,
            [draw(st.sampled_from([None, *known])) for _ in range(draw(st.integers(0, 3)))],
            [ir.Attr("size", ir.AttributeType.INTS, [1, -2])] if custom else [attribute(o, data) for o in chosen],
            outputs=results,
            version=draw(st.integers(1, 9)),
        )
        if not custom:
            node.meta.update({o.name: draw(st.binary()) for o in spec.options.values() if o.type == "bytes"})
        known += results
        nodes.append(node)
    used = {value for node in nodes for value in node.inputs}
    outputs = draw(st.lists(st.sampled_from(known), max_size=3))
    initializers = [value for value in constants if value in used or value in outputs]
    return ir.Graph(inputs, outputs, nodes=nodes, initializers=initializers, name=f"graph_{index}")


@st.composite
def whole_models(draw: st.DrawFn) -> ir.Model:
    subgraphs = [draw(graphs(index)) for index in range(draw(st.integers(1, 2)))]
    model = ir.Model(subgraphs[0], ir_version=10)
    model.meta["subgraphs"] = subgraphs
    model.meta["description"] = draw(st.text(max_size=5))
    model.meta["metadata"] = draw(st.dictionaries(st.text(max_size=3), st.binary(min_size=1, max_size=9), max_size=2))
    names = {name: name for value in subgraphs[0].inputs if (name := value.name)}
    model.meta["signatures"] = (Signature("serve", 0, names, {}),) if draw(st.booleans()) else ()
    return model


def has_extents_of_one_run(node: ir.Node) -> bool:
    """Whether a result is said to be of extents that are not known of the one operand: the reader forgets them."""
    if len(node.inputs) != 1 or len(node.outputs) != 1 or node.inputs[0] is None:
        return False
    operand, result = node.inputs[0].shape, node.outputs[0].shape
    if operand is None or result is None or len(operand) != len(result):
        return False
    return any(isinstance(b, int) and not isinstance(a, int) for a, b in zip(operand, result, strict=True))


@pytest.mark.slow
@given(whole_models(), st.sampled_from([0, 1 << 30]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_graph_is_read_back_as_it_was(described: Callable[[ir.Model], Any], model: ir.Model, inline: int) -> None:
    for graph in model.meta["subgraphs"]:
        for node in graph:
            assume(not has_extents_of_one_run(node))
            if node.domain != DIALECT.domain:
                node.meta["custom_options"] = pack_options(node.attributes)
        stated_results.forget_wrong_extents(graph, DIALECT)  # which the reader does not believe
        stated_results.set_types(graph, DIALECT)
    again = read(write(model, CATALOGUE, inline), CATALOGUE)
    assert described(again) == described(model)


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=9)
lists = st.lists(st.integers(-9, 1 << 40), max_size=4) | st.lists(st.text(max_size=3), min_size=1, max_size=4)
floats = st.lists(st.floats(allow_nan=False), min_size=1, max_size=4)


@pytest.mark.slow
@given(st.dictionaries(st.text("abc_", min_size=1, max_size=5), numbers | lists | floats, max_size=5))
def test_any_options_of_a_custom_operator_are_read_back(options: dict[str, Any]) -> None:
    attributes = {name: flat for name, value in options.items() if (flat := attribute_of(name, value)) is not None}
    assert flexbuffer_reader.read_options(memoryview(pack_options(attributes))) == options


# ---- what the interpreter makes of it --------------------------------------------------------------------------------


def run(interpreter: Interpreter, model: bytes, *inputs: Any) -> list[Any]:
    return interpreter.run(model, [inputs])[0]


def test_a_written_operator_computes(interpreter: Interpreter, single: Make) -> None:
    model = single(
        "ADD",
        {"x": ("FLOAT32", [1, 3]), "y": np.array([1, 2, 3], np.float32)},
        [("FLOAT32", [1, 3])],
        fused_activation_function="RELU6",
    )
    (result,) = run(interpreter, model, np.array([[-9, 0, 9]], np.float32))
    assert result.tolist() == [[0, 2, 6]]


def test_a_written_quantization_is_the_interpreters(interpreter: Interpreter, single: Make) -> None:
    codes = Quantization(np.array([0.5], np.float32), np.array([10], np.int64))
    model = single("DEQUANTIZE", {"x": ("INT8", [3], codes)}, [("FLOAT32", [3])])
    (result,) = run(interpreter, model, np.array([10, 12, 9], np.int8))
    assert result.tolist() == [0, 1, -0.5]


def test_an_operator_of_the_second_union_computes(interpreter: Interpreter, single: Make) -> None:
    inputs = {"x": ("FLOAT32", [2]), "padding": ("FLOAT32", [])}
    options = {"edge_padding_low": [1], "edge_padding_high": [0], "interior_padding": [1]}
    model = single("STABLEHLO_PAD", inputs, [("FLOAT32", [4])], **options)
    (result,) = run(interpreter, model, np.array([1, 2], np.float32), np.array(9, np.float32))
    assert result.tolist() == [9, 1, 9, 2]


def test_strings_are_packed_as_the_interpreter_unpacks_them(interpreter: Interpreter, single: Make) -> None:
    words = np.array([b"zero", b"", b"two"], object)
    model = single(
        "GATHER",
        {"params": ir.StringTensor([*words], shape=ir.Shape([3])), "indices": ("INT32", [2])},
        [("STRING", [2])],
    )
    (result,) = run(interpreter, model, np.array([2, 0], np.int32))
    assert [bytes(word) for word in result.ravel()] == [b"two", b"zero"]


def test_constants_behind_the_tables_are_found(interpreter: Interpreter, catalogue: Catalogue, single: Make) -> None:
    inline = single("ADD", {"x": ("FLOAT32", [2]), "y": np.array([1, 2], np.float32)}, [("FLOAT32", [2])])
    outside = write(read(inline, catalogue), catalogue, inline=0)
    assert outside[-8:] == np.array([1, 2], np.float32).tobytes()
    (result,) = run(interpreter, outside, np.array([1, 1], np.float32))
    assert result.tolist() == [2, 3]


def test_a_subgraph_is_called(interpreter: Interpreter, catalogue: Catalogue) -> None:
    def value(name: str, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([1]))

    def branch(name: str, op: str) -> ir.Graph:
        x, y = value("x"), value("y")
        return ir.Graph([x], [y], nodes=[ir.Node("tflite", op, [x], outputs=[y])], name=name)

    index = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    options = [ir.Attr(name, ir.AttributeType.INT, i) for name, i in index.items()]
    condition, x, y = value("condition", ir.DataType.BOOL), value("x"), value("y")
    main = ir.Graph(
        [condition, x], [y], nodes=[ir.Node("tflite", "IF", [condition, x], options, outputs=[y])], name="main"
    )
    model = ir.Model(main, ir_version=10)
    model.meta["subgraphs"] = [main, branch("then", "NEG"), branch("else", "ABS")]
    written = write(model, catalogue)
    for truth, want in ((True, 3.0), (False, 3.0)):
        (result,) = run(interpreter, written, np.array([truth]), np.array([-3 if truth else 3], np.float32))
        assert result.tolist() == [want]


# ---- real models -----------------------------------------------------------------------------------------------------


def sample(models: list[Path]) -> list[Path]:
    """A handful of real models, all with NNREWRITE_ALL set: the interpreter takes seconds on large ones."""
    small = [path for path in models if path.stat().st_size < 2_000_000]
    return small if os.environ.get("NNREWRITE_ALL") else small[:: max(1, len(small) // 12)]


def equal(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(
        one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
        for one, other in zip(some, others, strict=True)
    )


def test_rewritten_real_models_compute_the_same(
    interpreter: Interpreter, catalogue: Catalogue, models: list[Path]
) -> None:
    compared = 0
    for path in sample(models):
        try:
            inputs = next(draw(interpreter.describe(path).inputs))
            want, again = interpreter.run(path, inputs), interpreter.run(path, inputs)
            model = read(path, catalogue)
        except (VerificationError, ModelError):
            continue  # the original does not run on such inputs, or is refused
        if not equal(want[0], again[0]):
            continue  # the original draws random numbers, or reads memory that nothing has written
        assert equal(interpreter.run(write(model, catalogue), inputs)[0], want[0]), path.name
        compared += 1
    assert compared > 4


def test_real_models_are_read_back_as_they_were(
    described: Callable[[ir.Model], Any], catalogue: Catalogue, models: list[Path]
) -> None:
    for path in sample(models):
        try:
            model = read(path, catalogue)
        except ModelError:
            continue
        assert described(read(write(model, catalogue), catalogue)) == described(model), path.name


# ---- what cannot be written ------------------------------------------------------------------------------------------


def broken(domain: str, op: str, *attributes: ir.Attr) -> ir.Model:
    node = ir.Node(domain, op, [], attributes, num_outputs=0, name="n")
    return ir.Model(ir.Graph([], [], nodes=[node], name="g"), ir_version=10)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (broken("", "Conv"), "n: TensorFlow Lite has no operator ::Conv"),
        (broken("tflite", "NO_SUCH"), "n: TensorFlow Lite has no operator tflite::NO_SUCH"),
        (broken("tflite", "ADD", ir.Attr("axis", ir.AttributeType.INT, 1)), "n: ADD has no option axis"),
        (
            broken("tflite", "MIRROR_PAD", ir.Attr("mode", ir.AttributeType.STRING, "EDGE")),
            "n: mode cannot be EDGE, only REFLECT, SYMMETRIC",
        ),
        (
            broken("tflite", "GATHER", ir.Attr("axis", ir.AttributeType.INT, 1 << 40)),
            "a number or a name in the graph does not fit the format: 'i' format requires -2147483648 <= number"
            " <= 2147483647",
        ),
    ],
)
def test_what_the_format_cannot_say_is_refused(catalogue: Catalogue, model: ir.Model, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        write(model, catalogue)
    assert str(caught.value) == message


def test_an_element_type_that_the_format_lacks_is_refused(catalogue: Catalogue) -> None:
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT8E8M0), shape=ir.Shape([1]))
    with pytest.raises(ModelError, match="x: TensorFlow Lite has no element type"):
        write(ir.Model(ir.Graph([value], [], nodes=[], name="g"), ir_version=10), catalogue)


def test_a_result_whose_element_type_nobody_knows_is_told_with_its_operator(catalogue: Catalogue) -> None:
    node = ir.Node("tflite.custom", "Mine", [], num_outputs=1)
    node.outputs[0].name = "y"
    with pytest.raises(ModelError, match="y: what Mine yields has no element type that is known"):
        write(ir.Model(ir.Graph([], node.outputs, nodes=[node], name="g"), ir_version=10), catalogue)

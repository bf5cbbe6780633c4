"""ONNX models in another opset: what is asked for, and what the rules of a target read."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from nnrewrite import convert, rewrite
from nnrewrite.engine.base.errors import CallError, UnsupportedError


def softmax(opset: int) -> bytes:
    """A product with weights and a Softmax, which meant other axes before opset 13."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]>
        net (float[2, 3, 40] x) => (float[2, 3, 40] y) {{ t = MatMul(x, w)  y = Softmax<axis = 1>(t) }}"""
    )
    weights = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return bytes(model.SerializeToString())


def run(model: bytes) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal((2, 3, 40)).astype(np.float32)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["x"]
    return np.asarray(session.run(["y"], {"x": x})[0])


@pytest.mark.parametrize(("own", "asked"), [(9, 13), (11, 21), (13, 18), (18, 13)])
def test_a_model_is_written_in_the_opset_that_is_asked_for(own: int, asked: int) -> None:
    source = softmax(own)
    model = convert(source, opset=asked)
    assert [entry.version for entry in model.opset_import] == [asked]
    np.testing.assert_allclose(run(model.SerializeToString()), run(source), rtol=1e-5)


@pytest.mark.slow
def test_a_target_brings_older_models_to_the_first_opset_that_its_rules_read() -> None:
    source = softmax(9)
    conversion = rewrite(source, target="onnxruntime")
    assert conversion.report.opset == 13
    assert "the model was of 9" in conversion.report.opset_reason
    np.testing.assert_allclose(run(conversion.model.SerializeToString()), run(source), rtol=1e-5)
    assert rewrite(softmax(14), target="onnxruntime").report.opset == 14


@pytest.mark.slow
def test_a_target_brings_newer_models_to_the_last_opset_that_its_rules_write() -> None:
    newest = onnx.defs.onnx_opset_version()
    text = f'<ir_version: 13, opset_import: ["": {newest}]> net (float[3] x) => (float[3] y) {{ y = Relu(x) }}'
    conversion = rewrite(onnx.parser.parse_model(text).SerializeToString(), target="onnxruntime")
    assert conversion.report.opset is not None and conversion.report.opset < newest
    assert conversion.report.opset_reason == f"the last that the rules write, the model was of {newest}"


def net(opset: int, inputs: str, outputs: str, body: str) -> bytes:
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> net ({inputs}) => ({outputs}) {{ {body} }}"""
    return bytes(onnx.parser.parse_model(text).SerializeToString())


X = "float[2, 3, 4, 4] x"
SAME = "float[2, 3, 4, 4] y"
FORMS = {
    "constants that were attributes": (
        18,
        11,
        SAME,
        "a = Constant<value_ints = [3]>() m = ReduceMean(x, a) y = Sub(x, m)",
    ),
    "parts that are counted": (
        18,
        13,
        "float[2, 2, 4, 4] y, float[2, 1, 4, 4] z",
        "y, z = Split<axis = 1, num_outputs = 2>(x)",
    ),
    "parts that are not counted": (13, 18, "float[2, 3, 4, 2] y, float[2, 3, 4, 2] z", "y, z = Split<axis = 3>(x)"),
    "Softmax over an inner axis": (13, 11, SAME, "y = Softmax<axis = 1>(x)"),
    "Softmax over rows": (11, 13, SAME, "y = Softmax<axis = 2>(x)"),
    "Softmax over rows by default": (9, 11, SAME, "y = Softmax(x)"),
    "functions": (20, 13, SAME, 'y = Gelu<approximate = "tanh">(x)'),
    "functions of functions": (18, 10, SAME, "y = Mish(x)"),
    "bounds that are computed": (13, 10, SAME, "b = ReduceMin<keepdims = 0>(x) y = Clip(x, , b)"),
    "types like others": (15, 13, SAME, "s = Shape(x) c = CastLike(x, s) y = Cast<to = 1>(c)"),
    "parts of shapes": (15, 13, "int64[2] y", "y = Shape<start = 1, end = 3>(x)"),
    "the last of equals": (12, 11, "int64[2, 1, 4, 4] y", "r = Relu(x) y = ArgMin<axis = 1, select_last_index = 1>(r)"),
    "axes that are padded": (
        18,
        13,
        "float[2, 3, 6, 4] y",
        "p = Constant<value_ints = [1, 1]>() a = Constant<value_ints = [2]>() y = Pad(x, p, , a)",
    ),
    "axes that are resized": (
        18,
        11,
        "float[2, 3, 4, 8] y",
        's = Constant<value_floats = [2.0]>() y = Resize<axes = [3], mode = "linear">(x, , s)',
    ),
    "images that grow": (
        9,
        13,
        "float[2, 3, 8, 8] y",
        "s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() y = Upsample(x, s)",
    ),
    "images that grew": (
        13,
        9,
        "float[2, 3, 8, 8] y",
        """s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()
        y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , s)""",
    ),
    "axes from the end": (11, 10, "float[6, 16] y", "f = Flatten<axis = -2>(x) y = LeakyRelu(f)"),
    "triangles": (14, 13, SAME, "y = Trilu(x)"),
    "names of modes": (
        20,
        16,
        SAME,
        "g = Constant<value = float[1, 1, 1, 2] {0.3, -0.2}>() "
        's = Constant<value_ints = [2, 4, 4, 2]>() h = Expand(g, s) y = GridSample<mode = "cubic">(x, h)',
    ),
    "types that were added": (13, 11, SAME, "i = Cast<to = 3>(x) j = Clip(i) k = Max(i, j) y = Cast<to = 1>(k)"),
}


@pytest.mark.parametrize(("own", "asked", "outputs", "body"), FORMS.values(), ids=FORMS)
def test_operators_have_the_forms_of_the_opset_that_is_asked_for(own: int, asked: int, outputs: str, body: str) -> None:
    source = onnx.load_from_string(net(own, X, outputs, body))
    made = convert(source.SerializeToString(), opset=asked)
    assert [entry.version for entry in made.opset_import] == [asked]
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype(np.float32)
    wanted, found = (
        onnxruntime.InferenceSession(one.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
        for one in (source, made)
    )
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("own", "asked", "outputs", "body", "told"),
    [
        (
            18,
            13,
            "int64[2] y",
            "s = Shape(x) t = Slice(s, o, o) y = BitwiseNot(t)",
            "at opset 13 BitwiseNot is of a later one",
        ),
        (
            19,
            18,
            SAME,
            'p = Constant<value_ints = [0, 0, 1, 1, 0, 0, 1, 1]>() y = Pad<mode = "wrap">(x, p)',
            "repeats nothing",
        ),
        (
            13,
            12,
            "float y",
            "m = ReduceMax<keepdims = 0>(x) c = Cast<to = 7>(m) y = Squeeze(x, c)",
            "axes of Squeeze",
        ),
        (
            13,
            9,
            "float[1, 3, 4, 4] y",
            "s = Constant<value_ints = [0]>() t = Constant<value_ints = [2]>() y = Slice(x, s, t, s, t)",
            "at opset 9 Slice has no more than 4 operands",
        ),
    ],
)
def test_what_an_opset_cannot_say_is_refused_in_a_line(
    own: int, asked: int, outputs: str, body: str, told: str
) -> None:
    source = net(own, X + (", int64[1] o" if "o, o" in body else ""), outputs, body)
    with pytest.raises(UnsupportedError, match=told):
        rewrite(source, opset=asked)


def test_an_opset_that_no_rules_know_is_refused() -> None:
    with pytest.raises(CallError, match="opset 99 is none of"):
        rewrite(softmax(13), opset=99)


def test_a_span_of_more_numbers_than_memory_holds_is_no_reason_to_count_them() -> None:
    model = onnx.load_from_string(net(18, X, SAME, "r = Range(a, b, c) s = ReduceSum<keepdims = 0>(r) y = Add(x, s)"))
    for name, number in (("a", 0), ("b", 1e15), ("c", 1)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number, np.float32), name))
    assert "Range" in {node.op_type for node in convert(model.SerializeToString(), to="onnx").graph.node}


def test_sizes_that_follow_from_the_inputs_are_known_and_weights_stay_as_they_are() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        net (float[n, 160] x) => (float[n, 80] p, float[n, 80] y) {
            r = Reshape <allowzero = 1> (x, to)  t = Transpose <perm = [1, 0]> (w)  m = MatMul(r, t)
            k = MatMul(r, w)  s = Add(m, k)  p, y = Split <axis = 1, num_outputs = 2> (s)
        }"""
    )
    weights = np.random.default_rng(0).standard_normal((160, 160)).astype(np.float32)
    numbers = {"w": weights, "to": np.array([-1, 160])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(one, name) for name, one in numbers.items())
    adapted = convert(model.SerializeToString(), opset=13)
    assert adapted.ByteSize() < 1.2 * weights.nbytes
    x = np.random.default_rng(1).standard_normal((3, 160)).astype(np.float32)
    want, got = (onnxruntime.InferenceSession(one.SerializeToString()).run(None, {"x": x}) for one in (model, adapted))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "axis"), [((3,), 1), ((2, 3), 0), ((4,), 2), ((2,), 0)])
def test_operands_that_were_repeated_along_an_axis_have_all_axes(shape: tuple[int, ...], axis: int) -> None:
    extents = ", ".join(map(str, shape))
    model = onnx.parser.parse_model(
        f"""<ir_version: 3, opset_import: ["": 6]>
        net (float[2, 3, 4] x, float[{extents}] b) => (float[2, 3, 4] y)
        {{ y = Add<broadcast = 1, axis = {axis}>(x, b) }}"""
    )
    x, b = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    [found] = onnxruntime.InferenceSession(convert(model.SerializeToString()).SerializeToString()).run(
        None, {"x": x, "b": b}
    )
    np.testing.assert_array_equal(found, x + b.reshape(*[1] * axis, *shape, *[1] * (3 - axis - len(shape))))


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 3, 3), (2, 3)])
def test_slopes_stood_for_channels_before_operands_were_lined_up_by_their_last_axes(
    shape: tuple[int, ...], opset: int
) -> None:
    slope, x = np.float32([0.5, -2, 0.25]), np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    extents = ", ".join(map(str, shape))
    model = onnx.parser.parse_model(
        f"""<ir_version: 3, opset_import: ["": {opset}]>
        net (float[{extents}] x) => (float[{extents}] y) <float[3] s = {{0.5, -2.0, 0.25}}> {{ y = PRelu(x, s) }}"""
    )
    adapted = convert(model.SerializeToString()).SerializeToString()
    [found] = onnxruntime.InferenceSession(adapted).run(None, {"x": x})
    np.testing.assert_array_equal(found, np.where(x < 0, x * slope.reshape(3, *[1] * (len(shape) - 2)), x))


@pytest.mark.parametrize("opset", [3, 6])
def test_operators_that_the_converter_of_onnx_knows_no_way_for_are_what_they_are_later(opset: int) -> None:
    consumed = "<consumed_inputs = [0]>" if opset < 6 else ""
    text = f"""<ir_version: 3, opset_import: ["": {opset}]>
      net (float[2, 1, 3] x, float[1, 12, 3] w, float[1, 12, 4] r, float[1] b) => (float y, int32 z) {{
        all, last = GRU<hidden_size = 4, output_sequence = 1>(x, w, r)
        positive = Relu{consumed}(last)
        y = Add<broadcast = 1, axis = 1>(positive, b)
        z = Cast<to = {6 if opset == 6 else '"INT32"'}>(y) }}"""
    made = rewrite(onnx.parser.parse_model(text).SerializeToString()).graph
    assert [node.op_type for node in made] == ["GRU", "Relu", "Unsqueeze", "Add", "Cast"]
    assert not {"output_sequence", "consumed_inputs"} & {name for node in made for name in node.attributes}


@pytest.mark.parametrize(
    ("operator", "of"), [("Less", "float"), ("Greater", "float"), ("Equal", "int32"), ("Xor", "bool")]
)
@pytest.mark.parametrize("axis", ["", ", axis = 1"])
def test_operators_that_the_converter_of_onnx_leaves_out_are_repeated_too(operator: str, of: str, axis: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 3, opset_import: ["": 6]>
        net ({of}[2, 3, 3] x, {of}[3] b) => (bool[2, 3, 3] y) {{ y = {operator}<broadcast = 1{axis}>(x, b) }}"""
    )
    kind = {"float": np.float32, "int32": np.int32, "bool": np.bool_}[of]
    x, b = (np.random.default_rng(0).integers(0, 2, shape).astype(kind) for shape in ((2, 3, 3), (3,)))
    adapted = convert(model.SerializeToString()).SerializeToString()
    [found] = onnxruntime.InferenceSession(adapted).run(None, {"x": x, "b": b})
    meant = {"Less": np.less, "Greater": np.greater, "Equal": np.equal, "Xor": np.logical_xor}[operator]
    np.testing.assert_array_equal(found, meant(x, b[:, None] if axis else b))

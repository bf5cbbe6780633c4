"""Targets are data: a pack of rules for a runtime and what it asks of a conversion; none in particular is one too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner, Result
from nnrewrite import convert, rewrite
from nnrewrite.cli.dispatch import app
from nnrewrite.conversion.options import Options
from nnrewrite.conversion.target import find_reason, list_changes, read_defaults
from nnrewrite.engine.base.data_files import BUILT_IN
from nnrewrite.engine.base.errors import CallError, RewriteError, UnsupportedError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.packs import loader
from nnrewrite.verify import Interpreter, compare_models
from onnx.reference import ReferenceEvaluator

#: no larger models are converted for both targets, to be done in seconds
LARGEST = 60_000

DEFAULTS = """
about: a runtime of somebody else's
options:
  opset: 17
  layout: [target]
  activations: int8
"""
RULES = """
ruleset mine : onnx -> onnx opset 13..25

# It has no kernel for this one.
rule no_relu stage simplify {
  y = Relu(x)
  => y = Max(x, 0.0)
  test x: f32[2, 3]
}
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False, prog_name="rewrite")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target as somebody else would write one, in a folder of theirs."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "target.yaml").write_text(DEFAULTS)
    (folder / "mine.rules").write_text(RULES)
    return folder


@pytest.fixture
def source(single: Callable[..., bytes]) -> bytes:
    weights, bias = np.ones((6, 3, 3, 4), np.float32), np.zeros(6, np.float32)
    operands = {"x": ("FLOAT32", [1, 8, 8, 4]), "w": weights, "b": bias}
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "RELU"}
    return single("CONV_2D", operands, [("FLOAT32", [1, 8, 8, 6])], **options)


@pytest.fixture
def pooled(single: Callable[..., bytes]) -> bytes:
    """A quantized model whose result is read twice: int8 from end to end."""
    scale = Quantization(np.array([0.1]), np.array([3]))
    described = ("INT8", [1, 8, 8, 4], scale)
    return single("ADD", {"x": described, "y": described}, [described])


# ---- a target of somebody else's


@pytest.mark.slow
def test_a_target_is_a_folder_of_data(pack: Path, source: bytes) -> None:
    model = convert(source, target=f"{pack}")
    assert {(one.domain, one.version) for one in model.opset_import} == {("", 17)}
    assert [node.op_type for node in model.graph.node] == ["Conv", "Max"]
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [1, 4, 8, 8]


@pytest.mark.slow
def test_what_the_user_asks_for_goes_before_what_the_target_does(pack: Path, source: bytes) -> None:
    model = convert(source, target=f"{pack}", opset=18, layout="source")
    assert model.opset_import[0].version == 18
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [1, 8, 8, 4]


@pytest.mark.slow
def test_a_target_may_have_no_rules_of_its_own(source: bytes, tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text(DEFAULTS)
    model = convert(source, target=f"{tmp_path}")
    assert [node.op_type for node in model.graph.node] == ["Conv", "Relu"]
    assert model.opset_import[0].version == 17


@pytest.mark.slow
def test_the_command_line_takes_targets_by_their_folders(pack: Path, source: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(source)
    out = tmp_path / "net.onnx"
    assert call(f"{tmp_path / 'net.tflite'}", "--target", f"{pack}", "-o", f"{out}").exit_code == 0
    assert onnx.load(out).opset_import[0].version == 17
    told = call("explain", f"{out}", "output_0").stdout
    assert f"no_relu ({pack / 'mine.rules'}:5)" in told
    assert "why       It has no kernel for this one." in told


def test_what_a_target_changes_is_told_with_its_reasons(pack: Path) -> None:
    told = call("ops", "--target", f"{pack}").stdout
    for line in ("a runtime of somebody else's", "opset: 17", "layout: target", "no_relu", "It has no kernel for this"):
        assert line in told
    table = call("ops", "--target", "onnxruntime", "--format", "markdown").stdout
    assert "| `activations` | `uint8` |" in table
    assert "| `elu` | onnxruntime/activation.rules:" in table
    assert call("ops", "--target", "portable").stdout.startswith("portable: for no runtime in particular\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("mine.rules", RULES.replace("Relu", "Relux"), "mine.rules:6:7: error: dialect onnx has no operator `Relux`"),
        ("mine.rules", RULES.replace("{", ""), "mine.rules:6:3: error: unexpected `y`"),
        ("target.yaml", "options:\n  opset: 12\n", "target.yaml:2:10: error: opset 12 is none of 13 to 25"),
        ("other.txt", "", "there are no *.rules files in"),
    ],
)
def test_a_target_with_mistakes_is_not_shown(tmp_path: Path, file: str, text: str, message: str) -> None:
    (tmp_path / file).write_text(text)
    if file == "target.yaml":
        (tmp_path / "mine.rules").write_text(RULES)
    for more in ((), ("--json",), ("--format", "markdown")):
        result = call("ops", "--target", f"{tmp_path}", *more)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.slow
def test_a_target_over_another_has_its_options_and_rules_but_for_those_it_leaves_out(
    source: bytes, tmp_path: Path
) -> None:
    header = "ruleset mine over onnxruntime without elu : onnx -> onnx opset 13..25\n"
    (tmp_path / "mine.rules").write_text(header + RULES.partition("\n\n")[2])
    (tmp_path / "target.yaml").write_text("options: {hybrid: real, opset: 17}")
    assert read_defaults(f"{tmp_path}") == {"activations": "uint8", "hybrid": "real", "opset": 17}
    told = {one.rule for one in list_changes(f"{tmp_path}")}
    assert told == {one.rule for one in list_changes("onnxruntime")} - {"elu"} | {"no_relu"}
    model = convert(source, target=f"{tmp_path}")
    assert model.opset_import[0].version == 17
    assert {"Conv", "Max"} <= {node.op_type for node in model.graph.node}
    assert "Relu" not in {node.op_type for node in model.graph.node}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("options: {layuot: [target]}", "1:11: a target sets no option `layuot`; did you mean `layout`?"),
        ("options: {opset: high}", "1:18: `opset` is 'high', it takes a number"),
        ("options: {float: 1}", "1:18: `float` is 1, it takes true or false"),
        ("options: {layout: target}", "1:19: `layout` is 'target', it takes a list of words"),
        ("options: {layout: [sideways]}", "1:19: layout sideways is neither source, target nor"),
        ("options: {activations: int4}", "1:24: `activations` is 'int4', it takes int8 or uint8"),
        ("options: {float: true, exact: true}", "1:24: `exact` keeps the integers that `float` does away with"),
        (
            "option: {}",
            "1:1: there is no entry `option`, only about, options, small and partition; did you mean `options`?",
        ),
        (
            "opset: 17",
            "1:1: there is no entry `opset`, only about, options, small and partition; options stand below `options:`",
        ),
        ("options: [", "2:1: this is not YAML: "),
        ("- 1", "1:1: expected `about` and `options`"),
    ],
)
def test_mistakes_of_a_target_are_told_in_a_line(source: bytes, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "target.yaml").write_text(text)
    with pytest.raises(CallError) as caught:
        convert(source, target=f"{tmp_path}")
    assert f"{tmp_path / 'target.yaml'}:{message}" in f"{caught.value}"
    assert "\n" not in f"{caught.value}"
    checked = call("check", f"{tmp_path}")
    assert checked.exit_code == 2
    assert checked.stderr.startswith(f"{tmp_path / 'target.yaml'}:{message.partition(': ')[0]}: error: ")


@pytest.mark.parametrize("name", ["gone", "x" * 300, "a\0b"])
def test_a_place_that_a_model_names_and_that_is_not_there_gives_no_reason(name: str) -> None:
    assert find_reason(f"mine ({name}.rules:1)") == ""


def test_a_target_that_is_not_there_is_a_wrong_call(source: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(source)
    result = call(f"{tmp_path / 'net.tflite'}", "--target", "nowhere")
    assert result.exit_code == 2
    assert "there is no target nowhere" in result.stderr


# ---- constants as they are stored


@pytest.mark.slow
def test_integer_weights_of_real_layers_stay_integers_in_the_file_and_are_real_when_it_is_loaded(
    single: Callable[..., bytes], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-127, 128, size=(64, 1, 1, 64)).astype(np.int8)
    weights = (codes, Quantization(np.linspace(0.01, 0.02, 64, dtype=np.float32), np.zeros(64, np.int64), axis=0))
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    source = single("CONV_2D", {"x": ("FLOAT32", [1, 4, 4, 64]), "w": weights}, [("FLOAT32", [1, 4, 4, 64])], **options)
    model = convert(source, hybrid="real")
    assert model.ByteSize() < 2.5 * codes.size
    loaded = onnxruntime.SessionOptions()
    loaded.optimized_model_filepath = f"{tmp_path / 'loaded.onnx'}"
    session = onnxruntime.InferenceSession(model.SerializeToString(), loaded)
    assert {"Cast", "Mul", "DequantizeLinear"}.isdisjoint(
        node.op_type for node in onnx.load(tmp_path / "loaded.onnx").graph.node
    )
    feed = rng.normal(size=(1, 4, 4, 64)).astype(np.float32)
    want = feed @ (codes[:, 0, 0].T * weights[1].scale)
    np.testing.assert_allclose(session.run(None, {"x": feed})[0], want, rtol=0, atol=1e-5 * np.abs(want).max())


# ---- no runtime in particular


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes(attribute.g)


def small(models: list[Path]) -> Iterator[tuple[Path, onnx.ModelProto]]:
    for path in models:
        if path.stat().st_size <= LARGEST:
            try:
                yield path, convert(path, target="portable")
            except RewriteError:
                continue  # tests of models say which are refused


def test_portable_models_hold_canonical_operators_alone(models: list[Path]) -> None:
    found = 0
    for path, model in small(models):
        onnx.checker.check_model(model, full_check=True)
        assert {one.domain for one in model.opset_import} <= {"", "ai.onnx.ml"}, path
        for node in nodes(model.graph):
            assert node.domain in ("", "ai.onnx.ml"), f"{path}: {node.domain}.{node.op_type}"
            rule = next((one.value for one in node.metadata_props if one.key == "nnrewrite.rule"), "")
            assert "(onnxruntime/" not in rule and "(uint8/" not in rule, f"{path}: {rule}"
        found += 1
    assert found > 50


def test_int8_stays_int8_where_no_runtime_asks_for_more(pooled: bytes) -> None:
    for target, kinds in (("portable", {np.int8}), ("onnxruntime", {np.int8, np.uint8})):
        model = convert(pooled, target=target)
        arrays = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
        assert {array.dtype.type for array in arrays if array.dtype.itemsize == 1} <= kinds


def test_portable_models_mean_the_same_without_a_runtimes_optimizations(models: list[Path]) -> None:
    """What the runtime computes with no rewriting of its own, and what the definitions of ONNX say."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    compared = 0
    for path, model in small(models):
        if compared == 12 or {"Loop", "If", "Conv", "LSTM"} & {node.op_type for node in model.graph.node}:
            continue  # the evaluator takes seconds for these
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        generator = np.random.default_rng(0)
        if any(
            one.type != "tensor(float)" or None in one.shape or str in map(type, one.shape)
            for one in session.get_inputs()
        ):
            continue
        feeds = {one.name: generator.uniform(0.1, 1, one.shape).astype(np.float32) for one in session.get_inputs()}
        expected = session.run(None, feeds)
        actual = ReferenceEvaluator(model).run(None, feeds)
        for want, got in zip(expected, actual, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=f"{path}")
        compared += 1
    assert compared == 12


def test_models_for_both_targets_pass_the_same_verification(models: list[Path], interpreter: Interpreter) -> None:
    verified = 0
    for path in models[::9]:
        if path.stat().st_size > LARGEST:
            continue
        try:
            verdicts = [
                compare_models(
                    path, convert(path, target=target).SerializeToString(), interpreter=interpreter, precise=True
                ).passed
                for target in ("onnxruntime", "portable")
            ]
        except RewriteError:
            continue  # refused, or not run by the interpreter: tests of models tell
        assert len(set(verdicts)) == 1, path
        verified += all(verdicts)
    assert verified >= 10


@pytest.mark.parametrize(
    ("name", "operator"), [("prisma_quant", "ConvTranspose"), ("micro_kws_m_quantized", "AveragePool")]
)
def test_networks_of_codes_keep_no_operator_that_the_runtime_is_slow_at(
    models: list[Path], name: str, operator: str
) -> None:
    path = next((path for path in models if path.stem == name), None)
    if path is None:
        pytest.skip(f"{name} is not at hand")
    assert operator not in [node.op_type for node in convert(path).graph.node]
    assert operator in [node.op_type for node in convert(path, target="portable").graph.node]


# ---- what a target cannot run

PAGE = Path(BUILT_IN).parent / "docs" / "targets.md"
LIMITS = """ruleset limited : onnx -> onnx opset 13..25

rule images stage accept {
  y = Resize(xs...) {mode, ..}
  require mode != "nearest", "this target has no Resize that is {mode}"
}
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packs that the documentation shows, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for title, text in re.findall(
        r'^```text title="([^"]+)"\n(.*?)^```$', PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        (tmp_path / title).parent.mkdir()
        (tmp_path / title).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.thorough
@pytest.mark.slow
def test_what_the_page_shows_of_limits_is_what_is_printed(page: Path, single: Callable[..., bytes]) -> None:
    (page / "softmax.tflite").write_bytes(
        single("SOFTMAX", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])], beta=1.0)
    )
    (page / "relu.tflite").write_bytes(single("RELU", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    command, *expected = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[
        0
    ].splitlines()
    run = call(*command.split()[2:])
    assert run.exit_code == 1
    for line in expected:
        assert line in run.stderr
    assert not (page / "softmax.onnx").exists()
    assert call("relu.tflite", "--target", "limited").exit_code == 0  # what is replaced is not refused
    assert [node.op_type for node in onnx.load("relu.onnx").graph.node] == ["Max"]
    assert "this target has no Softmax" in call("softmax.tflite", "--target", "few").stderr
    for name in ("limited", "few"):
        assert call("check", name).exit_code == 0
        assert call("fmt", "--check", name).exit_code == 0


@pytest.mark.slow
def test_a_refusal_names_operator_tensor_rule_and_place(tmp_path: Path, single: Callable[..., bytes]) -> None:
    (tmp_path / "limits.rules").write_text(LIMITS, encoding="utf-8")
    operands = {"x": ("FLOAT32", [1, 4, 4, 3]), "size": np.array([8, 8], np.int32)}
    source = single("RESIZE_NEAREST_NEIGHBOR", operands, [("FLOAT32", [1, 8, 8, 3])], half_pixel_centers=True)
    with pytest.raises(UnsupportedError) as caught:
        convert(source, target=f"{tmp_path}")
    [refusal] = caught.value.refusals
    assert refusal.operator == "Resize"
    assert refusal.node.startswith("output_0/Resize (made of RESIZE_NEAREST_NEIGHBOR@0:0 by resize_nearest_neighbor (")
    [reason] = refusal.reasons
    assert (reason.rule, reason.message) == ("images", "this target has no Resize that is nearest")
    assert f"{reason.span}" == f"{tmp_path / 'limits.rules'}:5:3"
    (tmp_path / "limits.rules").write_text(LIMITS.replace('"nearest"', '"cubic"'), encoding="utf-8")
    assert convert(source, target=f"{tmp_path}").graph.node


@pytest.mark.slow
def test_what_a_target_remarks_upon_is_counted_and_refuses_nothing(source: bytes, tmp_path: Path) -> None:
    rule = (
        'rule slow stage accept { y = Conv(x, w, _b?) {..} where rank(x) == 4 remark "a Conv of rank {rank} is slow" }'
    )
    rule = rule.replace("where", "let rank = rank(x) where")
    (tmp_path / "limits.rules").write_text(LIMITS.partition("rule images")[0] + rule, encoding="utf-8")
    found = rewrite(source, target=f"{tmp_path}").report
    assert found.told == {"a Conv of rank 4 is slow": 1}
    assert found.remarks == ("a Conv of rank 4 is slow: 1 node",)
    (tmp_path / "net.tflite").write_bytes(source)
    run = call(f"{tmp_path / 'net.tflite'}", "--target", f"{tmp_path}", "-o", f"{tmp_path / 'net.onnx'}")
    assert run.exit_code == 0
    assert re.search(r"^  note +a Conv of rank 4 is slow: 1 node$", run.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('y = Relu(x) remark "{z} is not there"', "the message names `z`, and there is no such variable here"),
        ('y = Resize(xs...) {mode: "cubic"} require false, "no"', "only about those whose other options have their"),
        ("y = Softmax(x) {..} where rank(x) > 1", "a rule of stage accept says by `require` what the target takes"),
        ('y = Relu(x) require false, "no" => y = Abs(x) test x: f32[2]', "stage accept builds nothing"),
    ],
)
def test_rules_that_refuse_have_a_form_of_their_own(tmp_path: Path, rule: str, message: str) -> None:
    header = LIMITS.partition("rule images")[0]
    (tmp_path / "limits.rules").write_text(f"{header}rule odd stage accept {{ {rule} }}\n", encoding="utf-8")
    run = call("check", f"{tmp_path}")
    assert (run.exit_code, message in run.stderr) == (2, True)


@pytest.mark.slow
def test_rules_over_the_target_refuse_in_no_other_stage(tmp_path: Path) -> None:
    rule = 'y = Relu(x) require rank(x) > 1, "no" => y = Max(x, 0.0) test x: f32[2]'
    header = LIMITS.partition("rule images")[0]
    (tmp_path / "limits.rules").write_text(f"{header}rule odd stage simplify {{ {rule} }}\n", encoding="utf-8")
    run = call("check", f"{tmp_path}")
    assert "`require` refuses nothing in stage simplify" in run.stderr
    (tmp_path / "limits.rules").write_text(
        f"{header}rule odd stage simplify {{ {rule} }}\n".replace('require rank(x) > 1, "no"', 'remark "no"'),
        encoding="utf-8",
    )
    assert "`remark` tells nothing in stage simplify" in call("check", f"{tmp_path}").stderr
    (tmp_path / "limits.rules").write_text(f"{header}rule odd stage simplify {{ y = Relu(x) where 1 == 2 }}\n", "utf-8")
    assert "a rule says what is built by `=>`" in call("check", f"{tmp_path}").stderr
    made = 'y = Relu(x) => y = Max(x, 0.0) if rank(x) > 1 else fail("no") test x: f32[2]'
    inside = "y = Relu(x) => y = Max(x, least(x)) test x: f32[2]"
    least = 'def least(x) = 0.0 if rank(x) > 1 else fail("no")'
    for rule, said in ((made, "`fail` refuses"), (inside, "`fail` in `least` refuses")):
        text = f"{header}{least if rule is inside else ''} rule odd stage simplify {{ {rule} }}\n"
        (tmp_path / "limits.rules").write_text(text, encoding="utf-8")
        assert f"{said} nothing in stage simplify" in call("check", f"{tmp_path}").stderr


@pytest.mark.slow
def test_a_target_without_rules_is_checked(tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text("options: {opset: 17}")
    run = call("check", f"{tmp_path}")
    assert (run.exit_code, run.stdout) == (0, f"{tmp_path}: no mistakes in target.yaml\n")
    (tmp_path / "target.yaml").write_text("options: {opset: 99}")
    run = call("check", f"{tmp_path}")
    assert run.exit_code == 2
    newest = loader.load(Options(rules=("onnx2onnx",)).stacked).opsets[1]
    assert f"target.yaml:1:18: error: opset 99 is none of 7 to {newest}, which the rules can write" in run.stderr

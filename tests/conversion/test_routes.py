"""Routes from one dialect to another."""

from __future__ import annotations

from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from nnrewrite.conversion.conversion_steps import plan_steps
from nnrewrite.conversion.options import Options
from nnrewrite.conversion.routes import find_route
from nnrewrite.engine.base.errors import CallError

from ..rules.text_models import write_model


def test_the_rule_set_between_two_dialects_is_found() -> None:
    assert find_route("tflite", "onnx") == [("tflite2onnx",)]


def test_models_of_a_dialect_have_its_own_rules() -> None:
    assert find_route("onnx", "onnx") == [("onnx2onnx",)]


def test_rule_sets_of_one_pair_lie_over_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.rules").write_text("ruleset mine : tflite -> onnx opset 13..25\n")
    assert find_route("tflite", "onnx", ("tflite2onnx", f"{tmp_path}")) == [("tflite2onnx", f"{tmp_path}")]


def test_rules_that_read_another_dialect_are_told() -> None:
    with pytest.raises(CallError, match="the rules of tflite2onnx, kernels read tflite, the model is onnx"):
        find_route("onnx", "onnx", ("tflite2onnx", "kernels"))


@pytest.mark.parametrize(
    ("first", "to", "message"),
    [
        (
            b"\x08\x08\x3a",
            "tflite",
            "and TensorFlow Lite is to .* by --rules onnx2tflite --rules {mine}$",
        ),
        (b"\x08\x08\x3a", "torch", "and PyTorch code is to .* by --rules onnx2torch --rules {mine}$"),
        (b"\x80\x02}", "onnx", "do not read models: .* by --rules aten2onnx --rules {mine}$"),
    ],
)
def test_rules_that_do_not_lead_to_the_format_are_told_with_those_that_do(
    tmp_path: Path, first: bytes, to: str, message: str
) -> None:
    (tmp_path / "a.rules").write_text("ruleset mine : onnx -> onnx opset 13..28\n")
    with pytest.raises(CallError, match=message.format(mine=tmp_path)):
        plan_steps(first, Options(rules=(f"{tmp_path}",), to=to))


@pytest.mark.slow
def test_rules_without_an_opset_in_common_are_told_with_their_ranges(tmp_path: Path) -> None:
    rule = "rule mine stage simplify { y = Sign(Sign(x)) => y = Sign(x) test x: f32[2] }"
    (tmp_path / "a.rules").write_text(f"ruleset mine : onnx -> onnx opset 13..25\n{rule}\n")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> net (float[2] x) => (float[2] y) { y = Abs(x) }'
    )
    with pytest.raises(CallError, match="opsets of onnx2tflite begin at 26, those of mine end at 25"):
        nnrewrite.rewrite(model.SerializeToString(), rules=("onnx2tflite", f"{tmp_path}"), to="tflite")


def test_where_nothing_leads_is_told() -> None:
    with pytest.raises(CallError, match="no rule sets lead from onnx to nowhere"):
        find_route("onnx", "nowhere")


@pytest.mark.parametrize("rules", [(), ("onnx2tflite",), ("onnx2onnx", "onnx2tflite"), ("dynamic-range",)])
def test_rules_come_after_a_step_within_the_dialect_that_they_read(tmp_path: Path, rules: tuple[str, ...]) -> None:
    path = write_model(tmp_path / "relu.onnx", 17, "y", "y = Relu(x)")
    first, last = plan_steps(f"{path}", Options(to="tflite", rules=rules) if rules else Options(to="tflite"))
    assert first.rules == (rules[:1] if len(rules) == 2 else ("standard", "onnx2onnx"))
    assert last.rules == (rules[-1:] or ("onnx2tflite",))
    assert ("reshape_to_known" in first.skip) == (len(rules) < 2) and not last.skip


def test_rules_alone_are_applied_to_the_model_as_it_is(tmp_path: Path) -> None:
    path = write_model(tmp_path / "relu.onnx", 17, "y", "y = Relu(x)")
    (step,) = plan_steps(f"{path}", Options(to="tflite", alone=True))
    assert step.rules == ("onnx2tflite",)


def test_a_step_within_a_dialect_keeps_the_opset_of_the_model(tmp_path: Path) -> None:
    path = write_model(tmp_path / "relu.onnx", 17, "y", "y = Relu(x)")
    assert plan_steps(f"{path}", Options(to="tflite"))[0].opset is None


def test_rules_that_come_after_others_have_what_these_find(tmp_path: Path) -> None:
    path = write_model(tmp_path / "sign.onnx", 17, "y", "a = Neg(x) b = Exp(a) c = Add(b, one) y = Reciprocal(c)")
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1.0), "one"))
    onnx.save(model, path)
    assert nnrewrite.rewrite(path, to="tflite").report.target_operators == {"LOGISTIC": 1}


@pytest.mark.parametrize(
    ("target", "runtimes"), [(None, ["portable", "portable", "litert"]), ("tflm", ["portable", "portable", "tflm"])]
)
def test_what_a_further_step_reads_is_made_for_no_runtime(target: str | None, runtimes: list[str]) -> None:
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    assert [step.runtime for step in plan_steps(f"{program}", Options(to="tflite", target=target))] == runtimes


def test_rules_of_a_target_that_was_not_asked_for_leave_what_a_further_step_reads(tmp_path: Path) -> None:
    # Before what moves codes ONNX Runtime wants a Quantize of their own; rules to TensorFlow Lite do not look for it.
    text = "q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) b = Reshape(a, k) r = QuantizeLinear(b, s, z)"
    path = write_model(tmp_path / "codes.onnx", 21, "r", text)
    model = onnx.load(path)
    given = (np.float32(0.5), np.int8(3), np.array([3, 2]))
    for name, array in zip(("s", "z", "k"), given, strict=True):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT8
    onnx.save(model, path)
    for target in (None, "litert"):
        steps = plan_steps(f"{path}", Options(to="tflite", target=target))
        assert [("moved_signed_codes" in step.skip) for step in steps] == [True, False]
    assert "moved_signed_codes" not in plan_steps(f"{path}", Options(to="onnx"))[-1].skip
    assert nnrewrite.rewrite(path, to="tflite").report.target_operators == {"QUANTIZE": 1, "RESHAPE": 1}


def test_code_of_a_model_is_made_for_the_runtime_that_is_asked_for() -> None:
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    steps = plan_steps(f"{program}", Options(to="/", target="onnxruntime"))
    assert steps[0].runtime == "onnxruntime"


@pytest.fixture
def early(tmp_path: Path) -> Path:
    """A target that models of an early opset are made for."""
    folder = tmp_path / "early"
    folder.mkdir()
    (folder / "target.yaml").write_text("options: {opset: 11}\n")
    (folder / "some.rules").write_text("ruleset early : onnx -> onnx opset 7..25\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("to", ["onnx", "tflite", "/"])
def test_the_opset_of_a_target_is_that_of_the_model_and_of_no_step_before(tmp_path: Path, early: Path, to: str) -> None:
    path = write_model(tmp_path / "exp.onnx", 17, "y", "y = Exp(x)")
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    given = [path] if to == "onnx" else [path, program] if to == "tflite" else [program]
    for model in given:
        steps = plan_steps(f"{model}", Options(to=to, target=f"{early}"))
        assert [step.opset == 11 for step in steps] == [step is steps[-1] and to == "onnx" for step in steps]
        assert f"{early}" in [step.target for step in steps]
    with pytest.raises(CallError, match="opset 11 is none of 13 to 25"):
        nnrewrite.rewrite(program, target=early, to="onnx")


def test_a_target_of_no_format_on_the_way_is_refused() -> None:
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    with pytest.raises(CallError, match="target litert is for tflite models, the rules write torch"):
        nnrewrite.rewrite(program, target="litert", to="torch")


@pytest.mark.slow
def test_a_route_of_two_steps_takes_an_opset_that_the_first_can_write() -> None:
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    report = nnrewrite.rewrite(program, to="tflite").report
    assert report.opset is None and report.target_operators["CONV_2D"]


@pytest.mark.slow
def test_a_route_of_two_steps_changes_the_order_of_axes_once() -> None:
    program = Path(__file__).parent.parent / "frontends" / "pt2" / "image.pt2"
    plain = nnrewrite.rewrite(program, to="tflite")
    (given,) = plain.graph.inputs
    turned = nnrewrite.rewrite(program, to="tflite", layout=f"{given.name}=NCHW:NHWC")
    n, c, h, w = given.shape or ()
    assert list(turned.graph.inputs[0].shape or ()) == [n, h, w, c]
    assert turned.report.permutations < plain.report.permutations
    code = nnrewrite.rewrite(program, to="/", layout=f"{given.name}=NCHW:NHWC")
    assert list(code.graph.inputs[0].shape or ()) == [n, h, w, c]


def test_inputs_with_a_default_are_constants_before_a_step_to_a_dialect_without_them() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "qonnx.custom_op.general": 1]>'
        " g (float[2, 3, 4] x, float[5, 4] w, float[4] kept) => (float[2, 3, 5] y, float[4] kept_out)"
        " <float[4] kept = {1, 2, 3, 4}, float[4] k = {2, 2, 2, 2}, float s = {0.01}, float z = {0}, float b = {8}>"
        " { kept_out = Mul(kept, k) t = Add(x, kept_out)"
        " q = qonnx.custom_op.general.Quant<signed: int = 1, narrow: int = 1>(w, s, z, b)"
        " u = Transpose<perm = [1, 0]>(q) y = MatMul(t, u) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((5, 4), np.float32), "w"))
    within = nnrewrite.rewrite(model.SerializeToString()).graph
    assert [value.name for value in within.inputs] == ["x", "w", "kept"]
    made = nnrewrite.rewrite(model.SerializeToString(), to="tflite").graph
    assert [value.name for value in made.inputs] == ["x"]
    operators = [node.op_type for node in made]
    assert "FULLY_CONNECTED" in operators and "BATCH_MATMUL" not in operators
    assert operators.count("ASSIGN_VARIABLE") == 1
    code = nnrewrite.rewrite(model.SerializeToString(), to="torch")
    assert [value.name for value in code.graph.inputs] == ["x", "kept"]

"""Graphs as Python code: what is written of small models, that it is Python, and that no text of a model is run."""

from __future__ import annotations

import ast
import io
import itertools
import time
import tokenize
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx_ir as ir
import pytest
from nnrewrite.backends.python_code import blocks
from nnrewrite.backends.python_code.steps import Step
from nnrewrite.backends.python_writer import Encoded
from nnrewrite.conversion import pipeline
from nnrewrite.engine.base.errors import RewriteError

_F = onnx.TensorProto.FLOAT


def tensor(name: str, *shape: int) -> onnx.TensorProto:
    rng = np.random.default_rng(len(name))
    return onh.from_array(rng.standard_normal(shape).astype(np.float32), name)


def model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    given: list[tuple[str, list[int | str]]],
    yields: list[str],
    name: str = "main_graph",
) -> bytes:
    inputs = [oh.make_tensor_value_info(key, _F, shape) for key, shape in given]
    outputs = [oh.make_tensor_value_info(key, _F, None) for key in yields]
    graph = oh.make_graph(nodes, name, inputs, outputs, weights)
    domains = sorted({node.domain for node in nodes} - {""})
    imports = [oh.make_opsetid("", 21), *(oh.make_opsetid(domain, 1) for domain in domains)]
    return oh.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def encode(data: bytes) -> Encoded:
    encoded = pipeline.rewrite(data, to="/").encoded
    assert isinstance(encoded, Encoded)
    return encoded


def write(data: bytes) -> str:
    text = encode(data).program.text
    compile(text, "model.py", "exec")
    return text


def residual(count: int) -> bytes:
    """Blocks of two linear layers with a way around them, then a head."""
    nodes, weights, x = [], [], "x"
    for block in range(count):
        path = f"blocks.{block}"
        for layer in ("up", "down"):
            weights += [tensor(f"{path}.{layer}.weight", 8, 8), tensor(f"{path}.{layer}.bias", 8)]
        nodes += [
            oh.make_node("Gemm", [x, f"{path}.up.weight", f"{path}.up.bias"], [f"{path}.a"], transB=1),
            oh.make_node("Relu", [f"{path}.a"], [f"{path}.b"]),
            oh.make_node("Gemm", [f"{path}.b", f"{path}.down.weight", f"{path}.down.bias"], [f"{path}.c"], transB=1),
            oh.make_node("Add", [x, f"{path}.c"], [f"{path}.d"]),
        ]
        x = f"{path}.d"
    nodes.append(oh.make_node("Gemm", [x, "head.weight"], ["y"], transB=1))
    return model(nodes, [*weights, tensor("head.weight", 3, 8)], [("x", ["n", 8])], ["y"])


@pytest.mark.thorough
def test_repeats_that_can_spare_no_more_than_one_found_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    list_inputs = blocks.list_inputs

    def count(steps: Sequence[Step]) -> list[ir.Value]:
        looked.append(len(steps))
        return list_inputs(steps)

    monkeypatch.setattr(blocks, "list_inputs", count)
    layers, names = 140, [f"layer{number}" for number in range(141)]
    nodes = []
    for at, (before, after) in enumerate(itertools.pairwise(names)):
        kind = "Relu" if at % 7 in (0, 1, 4) else "Sigmoid"
        nodes += [oh.make_node("Gemm", [before, f"w{at}"], [f"g{at}"]), oh.make_node(kind, [f"g{at}"], [after])]
    encode(model(nodes, [tensor(f"w{at}", 4, 4) for at in range(layers)], [(names[0], ["n", 4])], [names[-1]]))
    assert sum(looked) < 400 * len(nodes)


@pytest.mark.slow
def test_repeated_layers_are_a_class_named_after_their_scope() -> None:
    assert (
        write(residual(4))
        == """\
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 8)
        self.down = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))
        self.head = nn.Linear(8, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(x))
"""
    )


@pytest.mark.slow
def test_the_tensors_have_the_names_that_the_layers_give_them() -> None:
    encoded = encode(residual(4))
    names = [name for name, _ in encoded.program.tensors]
    assert names[:4] == ["blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight", "blocks.0.down.bias"]
    assert names[-1] == "head.weight" and len(names) == len(set(names)) == 17


def test_numbers_that_differ_between_blocks_are_arguments() -> None:
    widths = [4, 4, 8, 8, 16, 16]
    nodes, weights, x, depth = [], [], "x", 4
    for place, width in enumerate(widths):
        weights += [tensor(f"w{place}", width, depth, 3, 3), tensor(f"v{place}", width, width, 1, 1)]
        nodes += [
            oh.make_node("Conv", [x, f"w{place}"], [f"a{place}"], pads=[1, 1, 1, 1]),
            oh.make_node("Relu", [f"a{place}"], [f"b{place}"]),
            oh.make_node("Conv", [f"b{place}", f"v{place}"], [f"c{place}"]),
            oh.make_node("Add", [f"a{place}", f"c{place}"], [f"d{place}"]),
        ]
        x, depth = f"d{place}", width
    text = write(model(nodes, weights, [("x", [1, 4, 8, 8])], [x]))
    assert "def __init__(self, in_channels: int, out_channels: int) -> None:" in text
    assert "nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)" in text
    assert "ConvBlock(4, 8)" in text and "ConvBlock(8, 16)" in text


def test_free_sizes_are_those_of_the_input() -> None:
    nodes = [
        oh.make_node("Shape", ["x"], ["s"]),
        oh.make_node("Gather", ["s", "zero"], ["n"]),
        oh.make_node("Unsqueeze", ["n", "axes"], ["ns"]),
        oh.make_node("Concat", ["ns", "rest"], ["to"], axis=0),
        oh.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    weights = [
        onh.from_array(np.array(0), "zero"),
        onh.from_array(np.array([0]), "axes"),
        onh.from_array(np.array([4, -1]), "rest"),
    ]
    assert "return x.reshape(x.shape[0], 4, 6)" in write(model(nodes, weights, [("x", ["n", 8, 3])], ["y"]))


def test_what_many_read_stands_behind_all_that_it_reads() -> None:
    """`c` reads a layer, and `b`, which moves before the layer as many read it."""
    bends = {"b": ("Sin", "Cos", "Tan"), "c": ("Sinh", "Cosh", "Tanh")}
    nodes = [
        oh.make_node("Exp", ["x"], ["a"]),
        oh.make_node("MatMul", ["x", "w"], ["m"]),
        oh.make_node("Sqrt", ["a"], ["b"]),
        oh.make_node("Add", ["m", "b"], ["c"]),
        *(oh.make_node(bend, [name], [bend]) for name, several in bends.items() for bend in several),
        oh.make_node("Sum", [bend for several in bends.values() for bend in several], ["y"]),
    ]
    text = write(model(nodes, [tensor("w", 8, 8)], [("x", [2, 8])], ["y"]))
    assert text.index("sqrt()") < text.index("self.linear(x)")


def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    return oh.make_graph(list(nodes), name, [], [oh.make_tensor_value_info(name, _F, None)])


def test_a_branch_is_a_choice_where_it_does_nothing_else_and_a_statement_elsewhere() -> None:
    nodes = [
        oh.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        oh.make_node("Greater", ["sum", "zero"], ["c"]),
        oh.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("t", oh.make_node("Relu", ["x"], ["t"])),
            else_branch=branch("e", oh.make_node("Neg", ["x"], ["e"])),
        ),
        oh.make_node("Exp", ["y"], ["z"]),
    ]
    zero = onh.from_array(np.array(0, np.float32), "zero")
    text = write(model(nodes, [zero], [("x", ["n", 8])], ["z"]))
    assert "        x = F.relu(x) if x.sum((0, 1)) > 0.0 else -x\n" in text
    twice = branch("t", oh.make_node("Relu", ["x"], ["r"]), oh.make_node("Mul", ["r", "r"], ["t"]))
    nodes[2] = oh.make_node("If", ["c"], ["y"], then_branch=twice, else_branch=nodes[2].attribute[0].g)
    text = write(model(nodes, [zero], [("x", ["n", 8])], ["z"]))
    assert "        if x.sum((0, 1)) > 0.0:\n            z = F.relu(x)  # (n, 8)\n            y = z * z\n" in text


def test_what_a_file_says_of_a_value_in_a_branch_holds_there_alone() -> None:
    """The rank of what a branch chose is asked for, though a later branch says that it is 2."""
    dropped = branch("t", oh.make_node("Squeeze", ["x", "first"], ["t"]))
    chosen = oh.make_node(
        "If", ["c"], ["y"], then_branch=dropped, else_branch=branch("e", oh.make_node("Identity", ["x"], ["e"]))
    )
    kept = branch("k", oh.make_node("Identity", ["y"], ["k"]))
    kept.output[0].type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
    for extent in (4, 8):
        kept.output[0].type.tensor_type.shape.dim.add().dim_value = extent
    nodes = [
        oh.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        oh.make_node("Greater", ["sum", "zero"], ["c"]),
        chosen,
        oh.make_node("Shape", ["y"], ["shape"]),
        oh.make_node("Size", ["shape"], ["rank"]),
        oh.make_node("Equal", ["rank", "two"], ["flat"]),
        oh.make_node(
            "If",
            ["flat"],
            ["z"],
            then_branch=kept,
            else_branch=branch("s", oh.make_node("Squeeze", ["y", "first"], ["s"])),
        ),
    ]
    weights = [
        onh.from_array(np.array(0, np.float32), "zero"),
        onh.from_array(np.array(2, np.int64), "two"),
        onh.from_array(np.array([0], np.int64), "first"),
    ]
    assert ".dim() == 2" in write(model(nodes, weights, [("x", [1, 4, 8])], ["z"]))


def test_an_operator_without_code_is_a_method_to_be_filled_in() -> None:
    nodes = [oh.make_node("Wave", ["x"], ["y"], domain="my.own", strength=3)]
    encoded = encode(model(nodes, [], [("x", [1, 8])], ["y"]))
    assert "return self.wave(x)" in encoded.program.text
    assert "raise NotImplementedError(" in encoded.program.text and "# strength: 3" in encoded.program.text
    assert "* `Wave`, 1 times" in encoded.readme


def test_a_folder_has_the_code_the_tensors_and_a_text(tmp_path: Path) -> None:
    pipeline.rewrite(residual(2), to="/").save(tmp_path / "package")
    assert sorted(path.name for path in (tmp_path / "package").iterdir()) == [
        "README.md",
        "model.py",
        "model.safetensors",
    ]


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "package").write_text("mine")
    with pytest.raises(RewriteError, match="package"):
        pipeline.rewrite(residual(2), to="/").save(tmp_path / "package")
    assert (tmp_path / "package").read_text() == "mine"


# ---- no text of a model is code

EVIL = (
    "x\n    import os; os.system('evil')",
    '"""\nevil()\n"""',
    "'); evil(); ('",
    "a b",
    "class",
    "self",
    "torch",
    "__class__",
    "é\u2028evil()",
    "\\",
    "{evil()}",
    "1",
    "",
    "forward",
    "None",
    "# evil",
)


def check_harmless(text: str) -> None:
    """Code whose only imports are those of the library, and that calls nothing but it and itself."""
    tree = ast.parse(text)
    own = {"layer", "super", "range", "int", "float", "NotImplementedError"} | {
        node.name for node in tree.body if isinstance(node, ast.ClassDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            assert module is not None and module.split(".")[0] == "torch"
        if isinstance(node, ast.Call):
            root = node.func
            while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                root = root.func if isinstance(root, ast.Call) else root.value
            assert isinstance(root, ast.BinOp | ast.UnaryOp) or (
                isinstance(root, ast.Name) and (root.id in {"self", "torch", "nn", "F"} | own or len(root.id) <= 2)
            ), ast.dump(node)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        assert token.type != tokenize.COMMENT or "\n" not in token.string


@pytest.mark.parametrize("evil", EVIL)
def test_names_of_a_model_are_no_code(evil: str) -> None:
    name = evil or "empty"
    nodes = [
        oh.make_node("Gemm", [name, f"{name}.weight"], [f"{name}/h"], name=name, transB=1),
        oh.make_node("Mul", [f"{name}/h", f"{name}.scale"], [f"{name}/y"], name=f"{name}/{name}"),
    ]
    weights = [tensor(f"{name}.weight", 8, 8), tensor(f"{name}.scale", 8)]
    check_harmless(write(model(nodes, weights, [(name, [f"{name}", 8])], [f"{name}/y"], name)))


@pytest.mark.parametrize("evil", EVIL)
def test_operators_and_their_options_are_no_code(evil: str) -> None:
    nodes = [
        oh.make_node(evil or "Empty", ["x"], ["h"], domain="evil", **{"mode": evil, "other": 1}),
        oh.make_node("Einsum", ["h", "x"], ["y"], equation=f"ij,ij->ij{evil}"),
    ]
    encoded = encode(model(nodes, [], [("x", [1, 8])], ["y"]))
    check_harmless(encoded.program.text)
    assert "\nevil" not in encoded.readme


@pytest.mark.parametrize("evil", EVIL)
def test_scopes_that_name_classes_are_no_code(evil: str) -> None:
    data = onnx.ModelProto.FromString(residual(4))
    for one in data.graph.initializer:
        one.name = one.name.replace("blocks", evil or "empty")
    for node in data.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = name.replace("blocks", evil or "empty")
        for place, name in enumerate(node.output):
            node.output[place] = name.replace("blocks", evil or "empty")
    check_harmless(write(data.SerializeToString()))


def test_types_that_the_dialect_lacks_are_refused_by_name() -> None:
    given = [oh.make_tensor_value_info("words", onnx.TensorProto.STRING, [2])]
    node = oh.make_node("Identity", ["words"], ["y"])
    graph = oh.make_graph([node], "g", given, [oh.make_tensor_value_info("y", onnx.TensorProto.STRING, [2])])
    data = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10).SerializeToString()
    with pytest.raises(RewriteError, match=r"torch has no tensors of the types of words \(string\)"):
        encode(data)


# ---- modules of the source


def scoped(widths: list[tuple[int, int, int]]) -> bytes:
    """Two convolutions in each of the modules `body.0`, `body.1`..., and a mask for all, made within the first."""
    nodes, weights, x = [], [], "x"
    for block, (given, between, yields) in enumerate(widths):
        path = f"/body/body.{block}"
        weights += [tensor(f"a{block}", between, given, 1, 1), tensor(f"b{block}", yields, between, 3, 3)]
        nodes.append(oh.make_node("Conv", [x, f"a{block}"], [f"u{block}"], name=f"{path}/expand/Conv"))
        if block == 0:
            nodes.append(oh.make_node("Sigmoid", ["mask"], ["m"], name=f"{path}/Sigmoid"))
        nodes += [
            oh.make_node("Mul", [f"u{block}", "m"], [f"v{block}"], name=f"{path}/Mul"),
            oh.make_node("Conv", [f"v{block}", f"b{block}"], [f"w{block}"], name=f"{path}/shrink/Conv", pads=[1] * 4),
        ]
        x = f"w{block}"
    return model(nodes, weights, [("x", [1, widths[0][0], 8, 8]), ("mask", [1, 1, 8, 8])], [x])


def test_modules_of_the_source_are_classes_with_its_names() -> None:
    text = write(scoped([(4, 8, 4), (4, 16, 4), *([(4, 8, 4)] * 5)]))
    assert "class Body(nn.Module):" in text and "self.expand = nn.Conv2d(4, hidden_channels, 1, bias=False)" in text
    assert text.count("torch.sigmoid") == 1 and "sigmoid" not in text.split("class Model")[0]
    forward = text.split("class Model")[1]
    assert (
        "def forward(self, mask: Tensor, x: Tensor)" in forward
        or "def forward(self, x: Tensor, mask: Tensor)" in forward
    )
    assert (
        "y = torch.sigmoid(mask)" in forward
        and "        for layer in self.body:\n            x = layer(x, y)\n" in forward
    )


def test_arguments_have_names_by_what_they_are_for() -> None:
    text = write(scoped([(4, 8, 6), (6, 16, 8), (8, 24, 10), (10, 8, 4), *([(4, 8, 4)] * 3)]))
    assert "def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:" in text
    assert "Body(6, 16, 8)" in text


def test_what_most_instances_have_is_a_default() -> None:
    nodes, weights, x = [], [], "x"
    for block, stride in enumerate([1, 1, 2, 1, 1]):
        weights += [tensor(f"a{block}", 4, 4, 3, 3), tensor(f"b{block}", 4, 4, 1, 1)]
        nodes += [
            oh.make_node("Conv", [x, f"a{block}"], [f"u{block}"], strides=[stride] * 2, pads=[1] * 4),
            oh.make_node("Relu", [f"u{block}"], [f"v{block}"]),
            oh.make_node("Conv", [f"v{block}", f"b{block}"], [f"w{block}"]),
            oh.make_node("Sigmoid", [f"w{block}"], [f"z{block}"]),
        ]
        x = f"z{block}"
    text = write(model(nodes, weights, [("x", [1, 4, 8, 8])], [x]))
    assert "class ConvBlock(nn.Sequential):" in text and "stride: int = 1" in text
    assert "ConvBlock(stride=2)" in text and text.count("            ConvBlock(),\n") == 4


@pytest.mark.parametrize("evil", EVIL)
def test_names_of_modules_are_no_code(evil: str) -> None:
    data = onnx.ModelProto.FromString(scoped([(4, 8, 4)] * 7))
    for node in data.graph.node:
        node.name = node.name.replace("body", evil or "empty").replace("expand", evil or "empty")
    check_harmless(write(data.SerializeToString()))


def test_a_layer_begins_with_zeros_where_nothing_else_is_said() -> None:
    zeros = onh.from_array(np.zeros((1, 2, 4), np.float32), "zeros")
    node = oh.make_node("LSTM", ["x", "w", "r", "", "", "zeros", "zeros"], ["y"], hidden_size=4)
    text = write(model([node], [tensor("w", 1, 16, 3), tensor("r", 1, 16, 4), zeros], [("x", [5, 2, 3])], ["y"]))
    assert "x, _ = self.lstm(x)" in text and "nn.LSTM(3, 4, bias=False)" in text


def test_a_root_mean_square_by_hand_is_a_layer() -> None:
    nodes = [
        oh.make_node("Mul", ["x", "x"], ["s"]),
        oh.make_node("ReduceMean", ["s", "axes"], ["m"]),
        oh.make_node("Add", ["m", "eps"], ["e"]),
        oh.make_node("Sqrt", ["e"], ["d"]),
        oh.make_node("Div", ["x", "d"], ["n"]),
        oh.make_node("Mul", ["gain", "n"], ["y"]),
    ]
    small = [onh.from_array(np.array([-1]), "axes"), onh.from_array(np.array(1e-6, np.float32), "eps")]
    assert "nn.RMSNorm(8, eps=1e-06)" in write(model(nodes, [*small, tensor("gain", 8)], [("x", [2, 3, 8])], ["y"]))


def test_widths_that_are_multiples_of_others_are_no_arguments() -> None:
    nodes, weights, x, depth = [], [], "x", 8
    for place, width in enumerate([8, 8, 16, 16]):
        if width != depth:
            weights.append(tensor(f"wider{place}", width, depth))
            nodes.append(oh.make_node("Gemm", [x, f"wider{place}"], [f"e{place}"], transB=1))
            x, depth = f"e{place}", width
        weights += [tensor(f"up{place}", 4 * width, width), tensor(f"down{place}", width, 4 * width)]
        nodes += [
            oh.make_node("Gemm", [x, f"up{place}"], [f"a{place}"], transB=1),
            oh.make_node("Relu", [f"a{place}"], [f"b{place}"]),
            oh.make_node("Gemm", [f"b{place}", f"down{place}"], [f"c{place}"], transB=1),
            oh.make_node("Add", [x, f"c{place}"], [f"d{place}"]),
        ]
        x = f"d{place}"
    text = write(model(nodes, weights, [("x", [2, 8])], [x]))
    assert "def __init__(self, features: int) -> None:" in text
    assert "nn.Linear(features, 4 * features, bias=False)" in text
    assert "nn.Linear(4 * features, features, bias=False)" in text


def test_a_class_reads_free_extents_from_what_it_is_given() -> None:
    nodes = [
        oh.make_node("Shape", ["x"], ["s"], start=0, end=2),
        oh.make_node("Concat", ["heads", "s", "part"], ["to"], axis=0),
    ]
    nodes.append(oh.make_node("Concat", ["s", "whole"], ["back"], axis=0))
    known = {"heads": [2], "part": [4], "whole": [8]}
    weights = [onh.from_array(np.array(extents, np.int64), name) for name, extents in known.items()]
    x = "x"
    for place in range(5):
        weights += [tensor(f"w{place}", 8, 8), tensor(f"b{place}", 8), tensor(f"v{place}", 8, 8)]
        nodes += [
            oh.make_node("MatMul", [x, f"w{place}"], [f"a{place}"]),
            oh.make_node("Add", [f"a{place}", f"b{place}"], [f"c{place}"]),
            oh.make_node("Reshape", [f"c{place}", "to"], [f"d{place}"]),
            oh.make_node("Softmax", [f"d{place}"], [f"e{place}"], axis=2),
            oh.make_node("Reshape", [f"e{place}", "back"], [f"o{place}"]),
            oh.make_node("MatMul", [f"o{place}", f"v{place}"], [f"f{place}"]),
            oh.make_node("Add", [x, f"f{place}"], [f"g{place}"]),
        ]
        x = f"g{place}"
    text = write(model(nodes, weights, [("x", ["batch", "length", 8])], [x]))
    assert "def forward(self, x: Tensor) -> Tensor:\n        n = x.shape[0]\n        n1 = x.shape[1]" in text
    assert "nn.Sequential(*(" in text and text.count("x.shape") == 2


def test_what_a_reshape_does_to_axes_is_called_by_its_name() -> None:
    def written(shape: list[int | str], to: list[int]) -> str:
        nodes = [oh.make_node("Reshape", ["x", "to"], ["y"])]
        return write(model(nodes, [onh.from_array(np.array(to), "to")], [("x", shape)], ["y"]))

    assert "x.unflatten(-1, (4, 2))" in written(["n", 3, 8], [0, 0, 4, 2])
    assert "x.flatten(1)" in written(["n", 3, 8], [0, -1])
    assert "x.flatten(1, 2)" in written([2, 3, 8, 5], [2, 24, 5])
    assert "x.squeeze(1)" in written(["n", 1, 8], [-1, 8])
    assert "x.unsqueeze(1)" in written(["n", 8], [-1, 1, 8])
    assert "x.reshape(6, 4)" in written([4, 6], [6, 4])


def test_classes_have_the_names_that_an_exporter_notes() -> None:
    read = onnx.load_from_string(residual(4))
    for node in read.graph.node:
        path = node.output[0].rpartition(".")[0]
        if path:
            paths, classes = ["", path, "op"], ["Whole", "models.Residual", "aten.op"]
            node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr(paths))
            node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value=repr(classes))
    assert "class Residual(nn.Module):" in write(read.SerializeToString())
    read.opset_import[0].version = 18
    assert "class Residual(nn.Module):" in write(read.SerializeToString())


@pytest.mark.parametrize("text", ["['', 'a'", "__import__('os')", "['x:y/z', 'op']", "[" * 9000, "[1, 2]"])
def test_what_an_exporter_notes_is_no_code(text: str) -> None:
    read = onnx.load_from_string(residual(4))
    for node in read.graph.node:
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=text)
        node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value=text)
    assert "class Block(nn.Module):" in write(read.SerializeToString())


def test_a_grid_that_begins_with_zero_is_an_activation() -> None:
    zero, scale = onh.from_array(np.array(0, np.uint8), "z"), onh.from_array(np.array(0.1, np.float32), "s")
    nodes = [
        oh.make_node("Conv", ["x", "w"], ["a"]),
        oh.make_node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        oh.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    text = write(model(nodes, [tensor("w", 3, 2, 1, 1), scale, zero], [("x", [1, 2, 4, 4])], ["y"]))
    assert "return F.relu(self.conv(x))" in text


def test_time_grows_with_the_values_that_a_model_yields_and_not_with_their_cube() -> None:
    def time_writing(count: int) -> float:
        nodes = [oh.make_node("Add", [f"x{i}", f"x{i + 1}"], [f"y{i}"]) for i in range(count)]
        data = model(nodes, [], [(f"x{i}", [1, 8]) for i in range(count + 1)], [f"y{i}" for i in range(count)])
        started = time.process_time()
        write(data)
        return time.process_time() - started

    time_writing(10)
    assert time_writing(240) < 15 * time_writing(60)  # the cube would be 64

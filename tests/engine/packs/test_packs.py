"""Rule packs: where they are found, how they are laid over each other, and what is kept between runs."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from nnrewrite.conversion import compiled_rules, pipeline
from nnrewrite.conversion.checked_packs import read_checked
from nnrewrite.conversion.options import Options
from nnrewrite.engine.base import file_cache
from nnrewrite.engine.base.errors import CallError, RewriteError, RuleError, UnsupportedError
from nnrewrite.engine.check import checker
from nnrewrite.engine.check.checked import CheckedItems
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.packs import folders, headers, loader
from nnrewrite.engine.packs.parse_cache import Parses
from nnrewrite.engine.passes.pass_list import convert_graph
from nnrewrite.engine.rewrite import outlines
from nnrewrite.engine.rewrite.rules import RuleSet
from nnrewrite.engine.syntax import parser, tree
from nnrewrite.engine.syntax.tree_traversal import walk

pytestmark = pytest.mark.slow

HEADER = "ruleset mine : tflite -> onnx opset 13..25\n"
ABS = HEADER + "rule mine { y = ABS(x) => y = Max(x, Neg(x)) test x: f32[2] }\n"

SIGNS = "rule two_signs stage simplify { y = Sign(Sign(x)) => y = Sign(x) test x: f32[2] }\n"

Make = Callable[..., Path]


@pytest.fixture(scope="session")
def kept_by_others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what tests keep for each other: the program's own rules take seconds to read."""
    return tmp_path_factory.mktemp("kept_by_others")


@pytest.fixture(autouse=True)
def keep_apart(kept_by_others: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nothing of the packs that are made here where the user's are kept."""
    monkeypatch.setenv(file_cache.FOLDER, str(kept_by_others))


@pytest.fixture
def kept(tmp_path: Path, keep_apart: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for what is kept between runs."""
    folder = tmp_path / "kept"
    monkeypatch.setenv(file_cache.FOLDER, str(folder))
    return folder


def begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know no file that was parsed before, as a new process does."""
    monkeypatch.setattr(loader, "_open_parses", functools.cache(Parses))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a pack: `make("name", "text of its rules", "text of its ops.yaml")`."""

    def write(name: str, rules: str, operators: str | None = None) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "some.rules").write_text(rules, encoding="utf-8")
        if operators is not None:
            (folder / "ops.yaml").write_text(operators, encoding="utf-8")
        return folder

    return write


def first(pack: loader.Pack, operator: str) -> str:
    rules = RuleSet(pack.files, pack.catalogue, 18, pack.contents)
    return rules.list_candidates("lower", "tflite", operator)[0].name


def test_what_is_sound_is_looked_at_again_only_beside_other_definitions(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "user": "rule mine { y = ABS(x) => y = twice(x) test x: f32[2] }",
        "alone": "rule other { y = NEG(x) => y = Neg(x) test x: f32[2] }",
        "before": "def twice(x) = once(x) def once(x) = Add(x, x)",
        "after": "def twice(x) = once(x) def once(x, n) = Add(x, n)",
        "more": "def thrice(x) = Add(x, twice(x))",
    }
    files = {name: parser.parse(HEADER + text, name) for name, text in texts.items()}
    looked: list[str] = []
    item = checker._check_item
    monkeypatch.setattr(checker, "_check_item", lambda one, context: looked.append(one.name) or item(one, context))
    sound = CheckedItems()

    def found(*names: str) -> list[str]:
        looked.clear()
        return [one.message for one in checker.review([files[name] for name in names], catalogue, True, sound)[0]]

    assert not found("user", "alone", "before") and looked == ["mine", "other", "twice", "once"]
    assert not found("user", "alone", "before", "more") and looked == ["thrice"]
    assert any("once" in message for message in found("user", "alone", "after")) and "other" not in looked
    assert {"mine", "twice", "once"} <= set(looked)


def test_what_is_known_of_rules_in_outline_is_found_out_again_only_beside_other_definitions(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "user": "rule mine { y = ABS(x) where good(x) => y = Abs(x) test x: f32[2] }",
        "alone": "rule other { y = NEG(x) => y = Neg(x) test x: f32[2] }",
        "before": 'def good(x) = dtype(x) == "f32"',
        "after": 'def good(x) = dtype(x) == "i32"',
    }
    files = {name: parser.parse(HEADER + text, name) for name, text in texts.items()}
    drawn: list[str] = []
    draw = outlines._outline_item
    monkeypatch.setattr(outlines, "_outline_item", lambda one, *given: drawn.append(one.name) or draw(one, *given))
    sound = CheckedItems()

    def outline(*names: str) -> outlines.Contents:
        drawn.clear()
        mistakes, _, contents = checker.review([files[name] for name in names], catalogue, True, sound)
        assert not mistakes and contents is not None
        assert contents == outlines.outline_rules([files[name] for name in names], catalogue)
        return contents

    first = outline("user", "alone", "before")
    assert drawn == ["mine", "other", "mine", "other"]
    assert outline("alone", "user", "before").outlines[1].file == 1 and drawn == ["mine", "other"][::-1]
    assert outline("user", "alone", "after").outlines[0].needs != first.outlines[0].needs
    assert drawn == ["mine", "mine", "other"]


# ---- finding and laying over


def test_a_pack_is_a_folder_by_its_path(make: Make) -> None:
    assert first(loader.load([str(make("one", ABS))]), "ABS") == "mine"


def test_rules_of_the_target_come_with_those_that_aim_at_it(make: Make) -> None:
    pack = loader.load([str(make("one", ABS))])
    assert {file.name for file in pack.files} == {"mine", "onnx"}


def test_an_unknown_pack_is_told_with_those_that_there_are() -> None:
    with pytest.raises(RewriteError, match=r"there is no rule set nothing: .* one of .*tflite2onnx"):
        loader.load(["nothing"])


def test_one_file_that_cannot_be_read_makes_no_mistakes_in_others(make: Make) -> None:
    head = "ruleset {} : onnx -> onnx opset 13..25\n"
    below = "def move(x) = x\nrule a stage simplify { y = Abs(x) => y = Relu(move(x)) test x: f32[2] }"
    above = """rule b stage simplify {
      y = any move(Abs(x)) where trait(move, moves) => y = move(x)
      test x: f32[2, 3] for move in [Transpose]
    }"""
    folders = make("below", head.format("below") + below), make("above", head.format("above") + above)
    (folders[1] / "torn.rules").write_text(head.format("above") + "rule c { y = Abs(x", encoding="utf-8")
    with pytest.raises(RuleError) as told:
        loader.load([*map(str, folders)])
    assert len(told.value.diagnostics) == 1


def test_a_folder_without_rules_is_told(tmp_path: Path) -> None:
    with pytest.raises(RewriteError, match=r"there are no \*\.rules files"):
        loader.load([str(tmp_path)])


def test_a_folder_without_rules_among_others_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RewriteError, match=r"there are no \*\.rules files in .*empty"):
        loader.load(["onnx", str(tmp_path / "empty")])


def test_what_is_almost_a_pack_is_told_as_such(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RewriteError, match="did you mean tflite2onnx"):
        loader.load(["tflite2onx"])
    with pytest.raises(RewriteError, match="is a file: a rule set is a folder"):
        loader.load([str(make("one", ABS) / "some.rules")])
    monkeypatch.chdir(make("here", ABS))
    assert first(loader.load(["."]), "ABS") == "mine"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_module:rules", "there is no module no_such_module"),
        ("json:no_such_folder", "there is no folder .*no_such_folder"),
        ("raising.inner:rules", "raising.inner cannot be found: ValueError: not today"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    (tmp_path / "raising").mkdir()
    (tmp_path / "raising" / "__init__.py").write_text("raise ValueError('not today')")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = metadata.EntryPoint("offered", value, folders.ENTRY_POINTS)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [point])
    with pytest.raises(RewriteError, match=f"offers the rule set offered as {value}, and {said}"):
        loader.load(["offered"])


def test_a_pack_is_found_by_the_entry_point_of_a_package(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("offering", ABS)
    (tmp_path / "offering" / "__init__.py").write_text("")
    (tmp_path / "offering" / "rules").mkdir()
    (tmp_path / "offering" / "some.rules").rename(tmp_path / "offering" / "rules" / "some.rules")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = metadata.EntryPoint("offered", "offering:rules", folders.ENTRY_POINTS)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [point])
    assert first(loader.load(["offered"]), "ABS") == "mine"


def test_the_pack_given_last_is_tried_first(make: Make) -> None:
    mine = str(make("one", ABS))
    assert first(loader.load(["tflite2onnx", mine]), "ABS") == "mine"
    assert first(loader.load([mine, "tflite2onnx"]), "ABS") == "unary.ABS"


def test_rules_that_take_the_place_of_others_are_listed(make: Make) -> None:
    folder = make("one", ABS)
    [override] = loader.load(["tflite2onnx", str(folder)]).overrides
    assert override.rule == f"mine ({folder}/some.rules:2)"
    assert override.instead_of.startswith("unary.ABS (tflite2onnx/elementwise.rules:")


def test_a_rule_beside_another_takes_no_place(make: Make) -> None:
    text = HEADER + "rule mine { y = ABS(x) where rank(x) == 7 => y = Neg(x) test x: f32[1, 1, 1, 1, 1, 1, 2] }"
    pack = loader.load(["tflite2onnx", str(make("one", text))])
    assert not pack.overrides
    assert first(pack, "ABS") == "mine"


def test_each_pack_calls_its_own_definitions(make: Make) -> None:
    one = "def twice(x) = x * 2\nrule one { y = ABS(x) where twice(1) == 2 => y = Abs(x) test x: f32[2] }"
    two = "def twice(x) = x * 3\nrule two { y = NEG(x) where twice(1) == 3 => y = Neg(x) test x: f32[2] }"
    pack = loader.load([str(make("one", HEADER + one)), str(make("two", HEADER.replace("mine", "other") + two))])
    rules = RuleSet(pack.files, pack.catalogue, 18, pack.contents)
    for operator in ("ABS", "NEG"):
        value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
        node = ir.Node("tflite", operator, [value])
        node.outputs[0].type, node.outputs[0].shape, node.outputs[0].name = value.type, value.shape, "y"
        graph = ir.Graph([value], [node.outputs[0]], nodes=[node], opset_imports={"": 18})
        convert_graph(graph, rules)
        assert [node.op_type for node in graph] == [operator.capitalize()]


def test_a_pack_that_lies_over_another_brings_it_along(make: Make) -> None:
    text = "ruleset mine over onnx : onnx -> onnx opset 13..25\n"
    pack = loader.load([str(make("one", text + "rule mine stage simplify { y = Abs(x) => y = x test x: f32[2] }\n"))])
    assert {file.name: file.rank for file in pack.files} == {"onnx": 0, "mine": 1}


@pytest.mark.parametrize("name", ["rule", "test", "over", "after", "without", "ruleset", "use", "none"])
def test_a_pack_may_be_called_as_a_word_of_the_language(make: Make, name: str) -> None:
    mine = make(name, f"ruleset {name} over standard : onnx -> onnx opset 13..25\n{SIGNS}")
    header = headers.read_header(mine)
    assert header is not None and header.base is not None and header.base.name == "standard"
    pack = loader.load([f"{mine}"])
    assert [one.rank for one in pack.files if one.name == name] == [max(one.rank for one in pack.files)]


def test_comments_within_a_header_are_no_part_of_it(make: Make) -> None:
    beside = make("beside", f"ruleset mine # over standard: it is not\n : onnx -> onnx opset 13..25\n{SIGNS}")
    above = make("above", f"ruleset mine\n # it is: what we have\n over standard : onnx -> onnx opset 13..25\n{SIGNS}")
    for pack, below in ((beside, None), (above, "standard")):
        header = headers.read_header(pack)
        assert header is not None and header.pair == ("onnx", "onnx")
        assert (None if header.base is None else header.base.name) == below


def test_names_of_packs_may_have_hyphens(make: Make) -> None:
    text = "ruleset my-pack over onnxruntime-avx2 : onnx -> onnx opset 13..25\n"
    rule = "rule mine stage simplify { y = Abs(x) => y = x test x: f32[2] }\n"
    folder = make("one", text + rule)
    ranks = {file.name: file.rank for file in loader.load([str(folder)]).files}
    assert ranks["my-pack"] > ranks["onnxruntime_avx2"] > ranks["onnxruntime"]
    assert [one.name for one, _ in headers.list_lineage(f"{folder}")] == [
        "portable", "onnxruntime", "onnxruntime-avx2", "one"
    ]  # fmt: skip
    after = text.replace("over", "after").replace("avx2", "avx-2")
    with pytest.raises(RuleError, match="my-pack comes after onnxruntime-avx-2, which is no rule set"):
        loader.load([str(make("two", after + rule))])


@pytest.mark.parametrize(
    ("base", "help"),
    [
        ("nowhere", "rule sets of your own are stacked by --rules"),
        ("mine", "rule sets of your own"),
        ("tflite2onx", "did you mean `tflite2onnx`?"),
        ("x" * 300, "rule sets of your own"),
    ],
)
def test_a_pack_that_lies_over_none_that_there_is_is_told(make: Make, base: str, help: str) -> None:
    text = ABS.replace("ruleset mine", f"ruleset mine over {base}")
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", text))])
    [found] = caught.value.diagnostics
    assert found.message == f"mine lies over {base}, which is no rule set that comes with the program"
    assert (found.span.line, found.span.column) == (1, 1)
    assert found.help is not None and help in found.help


@pytest.mark.parametrize("header", ["tflight -> onnx", "tflite -> onxx"])
def test_a_dialect_that_there_is_not_is_told_where_the_header_names_it(make: Make, header: str) -> None:
    text = ABS.replace("tflite -> onnx", header)
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", text))])
    [found] = caught.value.diagnostics
    assert found.message == f"there is no dialect `{'tflight' if 'tflight' in header else 'onxx'}`"
    assert found.help == f"did you mean `{'tflite' if 'tflight' in header else 'onnx'}`?"


@pytest.mark.parametrize(
    "lines",
    [
        "ruleset mine after onnx2onx : onnx -> onnx opset 13..25\n",
        "ruleset mine : onnx -> onnx opset 13..25\nreverse onnx2onx.gelu\n",
    ],
)
def test_a_pack_that_a_header_misspells_is_suggested(make: Make, lines: str) -> None:
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", lines))])
    assert [one.help for one in caught.value.diagnostics] == ["did you mean `onnx2onnx`?"]


def test_a_definition_of_a_pack_that_cannot_lie_below_is_not_suggested(make: Make) -> None:
    text = "ruleset mine : onnx -> onnx opset 13..25\n"
    text += "rule mine stage simplify { y = Abs(x) => y = %s(x) test x: f32[2] }\n"
    helps = []
    for name in ("at_last", "split_heads"):  # of onnx2tflite, and of standard
        with pytest.raises(RuleError) as caught:
            loader.load([str(make(name, text % name))])
        helps += [f"{one.help}" for one in caught.value.diagnostics]
    assert [" defines it" in help for help in helps] == [False, True]


def test_what_a_fragment_calls_in_vain_is_told_once(make: Make) -> None:
    text = "ruleset mine over standard : onnx -> onnx opset 21..28\n"
    text += "fragment same = {alpha: scaled_by(alpha, 1.0)}\n"
    for name, operator in (("one", "Elu"), ("two", "LeakyRelu")):
        rule = f"y = {operator}(x) {{alpha}} => y = {operator}(x) {{same...}} test x: f32[2]"
        text += f"rule {name} stage simplify {{ {rule} }}\n"
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", text))])
    assert [one.message for one in caught.value.diagnostics] == ["`scaled_by` is a definition of standard"]


def test_a_pack_may_leave_out_rules_of_the_one_that_it_lies_over(make: Make) -> None:
    text = "ruleset mine over onnx without cancelled_pair, implied_relu : onnx -> onnx opset 13..25\n"
    text += "rule mine stage simplify { y = Abs(x) => y = x test x: f32[2] }\n"
    whole, less = (
        {item.name for file in loader.load([name]).files if file.name == "onnx" for item in file.items}
        for name in ("onnx", str(make("one", text)))
    )
    assert whole - less == {"cancelled_pair", "implied_relu"}


def test_a_rule_to_leave_out_that_there_is_not_is_told(make: Make) -> None:
    text = "ruleset mine over onnx without canceled_pair : onnx -> onnx opset 13..25\n"
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", text))])
    [found] = caught.value.diagnostics
    assert found.message == (
        "mine leaves out canceled_pair, and there is no such rule in onnx; did you mean cancelled_pair?"
    )
    assert found.span.line == 1


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("nowhere", "mine comes after nowhere, which is no rule set of the program that stays in onnx"),
        ("tflite2onnx", "mine comes after tflite2onnx, which is no rule set of the program that stays in onnx"),
        (
            "onnx2onnx without gelus",
            "mine leaves out gelus, and there is no such rule in onnx2onnx",
        ),
    ],
)
def test_a_pack_that_comes_after_none_that_there_is_is_told(make: Make, after: str, message: str) -> None:
    text = f"ruleset mine over onnx2tflite after {after} : onnx -> tflite opset 26..28\n"
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("one", text))])
    [found] = caught.value.diagnostics
    assert found.message.startswith(message) and found.span.line == 1


def test_a_step_before_is_without_rules_of_packs_that_it_shares(make: Make) -> None:
    text = "ruleset mine over onnx2tflite after onnx2onnx without lstm_of_codes : onnx -> tflite opset 26..28\n"
    assert loader.load([str(make("one", text))])


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (("", " after onnx2onnx without gelu"), "onnx2onnx without gelu"),
        (("", " after onnx2onnx"), "onnx2onnx"),
        ((" after onnx2onnx", ""), "no other"),
    ],
)
def test_files_of_a_pack_come_after_the_same_one(make: Make, heads: tuple[str, str], said: str) -> None:
    first, second = (f"ruleset mine{head} : onnx -> tflite opset 26..28\n" for head in heads)
    folder = make("one", first)
    (folder / "two.rules").write_text(second)
    with pytest.raises(RuleError, match=f"`mine` comes after {said} here, and not in another file"):
        loader.load([str(folder)])


def test_a_pack_that_another_lies_over_is_below_it_wherever_it_is_named(make: Make) -> None:
    text = "ruleset mine over int8 : onnx -> onnx opset 13..25\n"
    pack = loader.load([str(make("one", text)), "int8"])
    assert {file.name: file.rank for file in pack.files} == {"onnx": 0, "int8": 1, "mine": 2}


@pytest.mark.parametrize(
    ("line", "message", "help"),
    [
        ("", "`d` is a definition of below", "write `use below.d` below the header"),
        ("use below.e\n", "below defines no `e`", "`d`"),
        ("use above.d\n", "no rule set `above` lies below mine", "below"),
        ("use below.d\nuse below.d\n", "`d` is used twice", "as other"),
        ("use below.d\ndef d() = 2.0\n", "`d` is defined here as well", "as other"),
    ],
)
def test_a_definition_of_another_pack_is_used_by_its_name(make: Make, line: str, message: str, help: str) -> None:
    below = make("below", HEADER.replace("mine", "below") + "def d() = 1.0\n")
    top = make("top", HEADER + line + "rule mine { y = ABS(x) => y = Mul(x, d()) test x: f32[2] }\n")
    with pytest.raises(RuleError) as caught:
        loader.load([str(below), str(top)])
    assert message in {one.message for one in caught.value.diagnostics}
    assert any(help in (one.help or "") for one in caught.value.diagnostics)


def test_a_used_definition_can_have_another_name(make: Make) -> None:
    below = make("below", HEADER.replace("mine", "below") + "def d() = 1.0\n")
    rules = "use below.d as one\ndef d() = 2.0\nrule mine { y = ABS(x) => y = Mul(x, d() * one()) test x: f32[2] }\n"
    assert loader.load([str(below), str(make("top", HEADER + rules))])


def test_a_pack_calls_the_definition_that_it_uses(make: Make) -> None:
    sizes = [make(f"pack{i}", HEADER.replace("mine", f"pack{i}") + f"def d() = {i}.0\n") for i in (0, 1)]
    top = HEADER + "use pack1.d\nrule mine { y = ABS(x) => y = Mul(x, d()) test x: f32[2] }\n"
    pack = loader.load([*map(str, sizes), str(make("top", top))])
    called = [
        node.callee
        for file in pack.files
        if file.name == "mine"
        for node in walk(tuple(file.items))
        if isinstance(node, tree.Call)
    ]
    assert "d.pack1" in called


CLIPPED = """fragment clipped(v) = Clip(v, low, high)
fragment ends = {axis}
  let at = last(x)
def last(x) = rank(x) - 1
"""
CLIPS = """rule mine stage simplify {
  y = Softmax(clipped(x)) {ends...}
  let ends...
  def last() = at * 2.0
  def scaled() = x * last()
  => y = Softmax(clipped(scaled())) {ends...}
  test x: f32[2], low: f32[], high: f32[]
}
"""


def test_a_fragment_of_another_pack_is_used_by_its_name_and_calls_what_its_own_file_does(make: Make) -> None:
    below = make("below", HEADER.replace("mine", "below").replace("tflite", "onnx") + CLIPPED)
    top = make("top", HEADER.replace("tflite", "onnx") + "use below.{clipped, ends}\n" + CLIPS)
    pack = loader.load([str(below), str(top)])
    [file] = [file for file in pack.files if file.name == "mine"]
    [rule] = [item for item in file.items if isinstance(item, tree.Rule)]
    assert [node.callee for node in walk(rule.equations) if isinstance(node, tree.Call)] == ["Softmax", "Clip"]
    called = [node.callee for node in walk(rule.clauses) if isinstance(node, tree.Call)]
    assert called == ["last"]  # of the pack below, and not that of the rule
    own = [item.name for item in file.items if isinstance(item, tree.Definition)]
    assert own == ["mine.last", "mine.scaled"]


def test_a_pack_follows_a_fragment_that_it_uses_where_that_changes(make: Make) -> None:
    head = HEADER.replace("tflite", "onnx")
    top = str(make("top", head + "use below.{clipped, ends}\n" + CLIPS))
    found = []
    for more in ("", " + 1", ""):
        text = head.replace("mine", "below") + CLIPPED.replace("at = last(x)", f"at = last(x){more}")
        pack = loader.load([str(make("below", text)), top])
        rules = (item for file in pack.files for item in file.items if isinstance(item, tree.Rule))
        clauses = next(rule.clauses for rule in rules if rule.name == "mine")
        found.append(any(isinstance(node, tree.Binary) for node in walk(clauses)))
    assert found == [False, True, False]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("use below.clipped\n", "`ends` is no fragment of options"),
        ("use below.{clipped, last as ends}\n", "`ends` is no fragment of options"),
        ("use below.{ends, ends}\n", "`ends` is used twice"),
        ("use below.{clip, ends}\n", "below defines no `clip`"),
        ("use below.{clipped, ends}\nfragment ends = {axis}\n  let at = 1\n", "`ends` is defined here as well"),
    ],
)
def test_a_fragment_that_there_is_not_is_told(make: Make, line: str, message: str) -> None:
    head = HEADER.replace("tflite", "onnx")
    below = make("below", head.replace("mine", "below") + CLIPPED)
    with pytest.raises(RuleError) as caught:
        loader.load([str(below), str(make("top", head + line + CLIPS))])
    assert any(one.message.startswith(message) for one in caught.value.diagnostics), caught.value.diagnostics


def test_of_a_choice_in_a_template_the_first_is_built_that_exists_at_the_opset(make: Make) -> None:
    text = """ruleset mine : onnx -> onnx opset 13..25
def laid(x) = Reshape(x, [6]) {allowzero: 1} | Reshape(x, [6])
rule mine stage simplify { y = Softsign(x) => y = laid(x) test x: f32[2, 3] }
"""
    pack = loader.load([str(make("one", text))])
    definition = next(item for file in pack.files for item in file.items if item.name == "laid")
    assert isinstance(definition, tree.Definition)
    assert isinstance(definition.body, tree.Conditional)
    assert isinstance(definition.body.condition, tree.Binary)
    assert isinstance(definition.body.condition.right, tree.Literal)
    assert (definition.body.condition.operator, definition.body.condition.right.value) == (">=", 14)
    with pytest.raises(RuleError) as caught:
        loader.load([str(make("two", text.replace(" {allowzero: 1}", "")))])
    assert "does not exist at each opset" in f"{caught.value}"


def test_a_pack_describes_its_own_operators(make: Make) -> None:
    operators = """
tflite:
  operators:
    Scaled: {domain: tflite.custom, operands: [x], results: [y], options: {alpha: [float, 1.0]}}
"""
    rules = HEADER + "rule scaled { y = Scaled(x) {alpha} => y = x * alpha test x: f32[2] for alpha in [0.5] }"
    pack = loader.load(["tflite2onnx", str(make("one", rules, operators))])
    found = RuleSet(pack.files, pack.catalogue, 18, pack.contents)
    assert [rule.name for rule in found.list_candidates("lower", "tflite.custom", "Scaled")] == ["scaled"]


def test_mistakes_of_all_files_are_told_at_once(make: Make) -> None:
    folder = make("one", HEADER + "rule a { y = ABSS(x) => y = Abs(x) test x: f32[2] }")
    (folder / "other.rules").write_text(HEADER + "rule b { y = ABS(x => y = Abs(x) }")
    (folder / "third.rules").write_text(HEADER + "rule c { y = NEG(x) => y = Negg(x) test x: f32[2] }")
    with pytest.raises(RuleError) as caught:
        loader.load([str(folder)])
    assert len(caught.value.diagnostics) == 3


# ---- what is kept between runs


def test_the_second_load_reads_what_the_first_one_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader.load(["tflite2onnx"])
    monkeypatch.setattr(loader, "_read", lambda *_: pytest.fail("the rules are parsed again"))
    pack = loader.load(["tflite2onnx"])
    assert first(pack, "CONV_2D") == "conv_2d"


def test_what_was_kept_says_the_same_as_the_files(kept: Path) -> None:
    fresh, thawed = loader.load(["tflite2onnx"]), loader.load(["tflite2onnx"])
    assert [tuple(file.items) for file in thawed.files] == [tuple(file.items) for file in fresh.files]
    assert thawed.contents == fresh.contents
    for name, dialect in fresh.catalogue.dialects.items():
        assert dict(thawed.catalogue.dialects[name].operators) == dict(dialect.operators)


def test_a_changed_rule_is_parsed_anew(make: Make, kept: Path) -> None:
    folder = make("one", ABS)
    assert first(loader.load([str(folder)]), "ABS") == "mine"
    make("one", ABS.replace("rule mine", "rule other"))
    assert first(loader.load([str(folder)]), "ABS") == "other"


def test_of_several_files_the_changed_one_alone_is_parsed(
    make: Make, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make("one", ABS)
    (folder / "two.rules").write_text(ABS.replace("rule mine", "rule second").replace("ABS", "NEG"), encoding="utf-8")
    loader.load([str(folder)])
    make("one", ABS.replace("rule mine", "rule other"))
    parsed: list[str] = []
    parse = parser.parse
    monkeypatch.setattr(parser, "parse", lambda text, name: (parsed.append(name), parse(text, name))[1])
    assert first(loader.load([str(folder)]), "ABS") == "other"
    assert parsed == [str(folder / "some.rules")]


def test_two_operators_of_one_code_are_refused(make: Make) -> None:
    operators = "tflite:\n  operators:\n    MINE: {code: 0, operands: [x], results: [y]}\n"
    with pytest.raises(RewriteError, match="ADD and MINE have the same code, 0"):
        loader.load([str(make("one", ABS, operators))])


def test_a_changed_operator_is_read_anew(make: Make) -> None:
    mine = "{domain: tflite.custom, operands: [x], results: [y], options: {a: [float, 1.0]}}"
    operators = f"tflite:\n  operators:\n    Mine: {mine}\n"
    folder = make("one", ABS, operators)
    loader.load([str(folder)])
    make("one", ABS, operators.replace("1.0", "2.0"))
    spec = loader.load([str(folder)]).catalogue.find_dialect("tflite").find_operator("Mine")
    assert spec is not None and spec.options["a"].default == 2.0


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: b"", id="empty", marks=pytest.mark.thorough),
        pytest.param(lambda data: data[: len(data) // 2], id="cut in half", marks=pytest.mark.thorough),
        pytest.param(
            lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 16]) + data[len(data) // 2 + 1 :],
            id="one bit inside",
        ),
        pytest.param(lambda data: b"\x80\x04." * 100, id="something else", marks=pytest.mark.thorough),
    ],
)
def test_what_was_spoilt_is_made_anew(
    make: Make, kept: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[bytes], bytes]
) -> None:
    loader.load([str(make("one", ABS))])
    whole = {entry: entry.read_bytes() for entry in kept.glob("*.pack")}
    assert len(whole) == 3, "the pack, the trees of its files, and that what it lies over has no mistakes"
    for entry, data in whole.items():
        entry.write_bytes(spoil(data))
    begin_anew(monkeypatch)
    assert first(loader.load([str(make("one", ABS))]), "ABS") == "mine"
    assert all(file_cache.fetch(entry.stem) is not None for entry in whole), "each is whole again"


def test_a_folder_that_cannot_be_written_is_no_matter(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(file_cache.FOLDER, str(blocked / "below"))
    assert first(loader.load([str(make("one", ABS))]), "ABS") == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_read(make: Make, kept: Path) -> None:
    loader.load([str(make("one", ABS))])
    kept.chmod(0o500)
    try:
        assert first(loader.load([str(make("one", ABS))]), "ABS") == "mine"
    finally:
        kept.chmod(0o700)


def test_a_user_without_a_home_is_served(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(file_cache.FOLDER)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert first(loader.load([str(make("one", ABS))]), "ABS") == "mine"


def test_so_many_bytes_are_kept_of_what_was_used_last(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "MOST_BYTES", 1000)
    for number in range(8):
        file_cache.keep(f"{number}", b"x" * 200)
        os.utime(kept / f"{number}.pack", (number, number))
    file_cache.keep("new", b"x")
    assert {entry.stem for entry in kept.iterdir()} == {"new", "4", "5", "6", "7"}


def test_nothing_half_written_is_left_behind(make: Make, kept: Path) -> None:
    loader.load([str(make("one", ABS))])
    assert {entry.suffix for entry in kept.iterdir()} == {".pack"}


@pytest.mark.thorough
def test_from_the_second_start_on_loading_takes_a_part_of_the_time_of_checking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader.load(["tflite2onnx"])

    def load() -> None:
        pack = loader.load(["tflite2onnx"])
        rules = RuleSet(pack.files, pack.catalogue, 18, pack.contents)
        for operator in ("CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "RESHAPE", "PAD", "MEAN", "SOFTMAX", "CONCATENATION"):
            assert rules.list_candidates("lower", "tflite", operator)

    def check() -> None:
        begin_anew(monkeypatch)
        loader.read(["tflite2onnx"])

    def measure(call: Callable[[], object]) -> float:
        """The least seconds of processor time of a few calls."""
        times = []
        for _ in range(3):
            started = time.process_time()
            call()
            times.append(time.process_time() - started)
        return min(times)

    assert measure(load) < measure(check) / 3


def test_the_mistakes_of_a_pack_are_looked_for_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make("bad", ABS.replace("= ABS(", "= ABSS("))
    loaded = []
    load = loader.load
    monkeypatch.setattr(loader, "load", lambda rules: (loaded.append(rules), load(rules))[1])
    rules = ("tflite2onnx", str(folder))
    for _ in range(3):
        with pytest.raises(RuleError, match="no operator `ABSS`"):
            compiled_rules.prepare(rules, None)
    assert len(loaded) == 1


# ---- packs without those that they need below


@pytest.mark.thorough
def test_a_pack_alone_says_how_to_lay_it_over_the_programs_rules(make: Make, single: Callable[..., bytes]) -> None:
    mine = str(make("one", ABS))
    source = single("NEG", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    with pytest.raises(UnsupportedError, match=f"help: {mine} alone has no .* --rules tflite2onnx --rules {mine}$"):
        pipeline.convert(source, rules=mine)
    with pytest.raises(UnsupportedError) as caught:
        pipeline.convert(single("Swish", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])]), rules=("tflite2onnx", mine))
    assert "help:" not in f"{caught.value}"
    over = ABS.replace("ruleset mine", "ruleset mine over tflite2onnx")
    assert [node.op_type for node in pipeline.convert(source, rules=str(make("two", over))).graph.node] == ["Neg"]


def test_a_pack_over_the_programs_rules_has_all_that_these_bring_along(make: Make) -> None:
    alone = str(make("one", ABS))
    over = str(make("two", ABS.replace("ruleset mine", "ruleset mine over tflite2onnx")))
    assert Options(rules=over).stacked == Options(rules=("tflite2onnx", over)).stacked
    assert {"kernels", "hybrid"} <= {*Options(rules=over).stacked}
    assert "kernels" not in Options(rules=alone).stacked
    assert Options(rules=over, exact=True) in Options(rules=over).variants
    assert Options(rules="exact").stacked[:3] == ("tflite2onnx", "kernels", "exact")


def test_rules_over_the_target_alone_read_no_model(make: Make, single: Callable[..., bytes]) -> None:
    text = "ruleset mine : onnx -> onnx opset 13..25\nrule mine stage simplify { y = Abs(x) => y = x test x: f32[2] }"
    mine = str(make("one", text))
    source = single("ABS", {"x": ("FLOAT32", [2])}, [("FLOAT32", [2])])
    with pytest.raises(CallError, match=f"do not read models: .* by --rules tflite2onnx --rules {mine}$"):
        pipeline.convert(source, rules=mine)


def test_what_comes_with_the_program_is_checked_once_below_packs_of_ones_own(
    make: Make, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.load(("portable", str(make("one", ABS))))
    begin_anew(monkeypatch)
    checked: list[str] = []
    monkeypatch.setattr(checker, "_check_item", lambda item, context: checked.append(item.name) or True)
    loader.load(("portable", str(make("two", ABS.replace("rule mine", "rule other")))))
    assert checked == ["other"]


def test_an_older_onnx_bounds_the_opsets_of_the_programs_packs(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 27)
    assert loader.read(["onnx"]).opsets == (7, 27)


def test_packs_that_cannot_lie_over_each_other_are_told_in_a_line(make: Make) -> None:
    there, back = make("there", HEADER), make("back", HEADER.replace("tflite -> onnx", "onnx -> tflite"))
    newer = make("newer", HEADER.replace("mine", "new").replace("13..25", "26..26"))
    with pytest.raises(CallError, match="mine leads from tflite to onnx, mine leads from onnx to tflite"):
        read_checked([f"{there}", f"{back}"])
    with pytest.raises(CallError, match="opsets of new begin at 26, those of mine end at 25"):
        read_checked([f"{there}", f"{newer}"])

"""Mistakes of a pack's ops.yaml, each with its place."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import fastjsonschema
import pytest
import yaml
from nnrewrite.engine.base.data_files import BUILT_IN, OPERATORS, OPS
from nnrewrite.engine.base.errors import RuleError
from nnrewrite.engine.dialects import ops_files
from nnrewrite.engine.dialects.dialect_facts import DialectFacts
from nnrewrite.engine.dialects.facts import OperatorFacts
from nnrewrite.engine.dialects.json_schema import make_schema
from nnrewrite.engine.dialects.keys import list_keys
from nnrewrite.engine.dialects.onnx_schemas import find_schema, list_names, read_signature
from nnrewrite.engine.dialects.schema import find_mistakes
from nnrewrite.engine.dialects.trial_facts import DialectTrials, OperatorTrials

GOOD = "{domain: tflite.custom, operands: [x, b?], results: [y], options: {a: [float, 1.0], m: [Padding, SAME]}}"


def told(tmp_path: Path, text: str) -> str:
    path = tmp_path / "ops.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        ops_files.load([path])
    return str(caught.value).replace(f"{path}:", "")


def entry(fields: str, name: str = "Mine") -> str:
    return f"tflite:\n  operators:\n    {name}: {fields}\n"


def test_a_good_entry_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(entry(GOOD), encoding="utf-8")
    spec = ops_files.load([path]).find_dialect("tflite").find_operator("Mine")
    assert spec is not None
    assert [(o.name, o.optional) for o in spec.operands] == [("x", False), ("b", True)]
    assert {name: option.default for name, option in spec.options.items()} == {"a": 1.0, "m": "SAME"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("tflite: [", "2:1", "this is not YAML"),
        ("- tflite", "1:1", "an `ops.yaml` is a mapping from dialects"),
        ("tflight: {operators: {}}", "1:1", "there is no dialect `tflight`, and a new one needs a `domain`"),
        ("tflite: {operator: {}}", "1:10", "a dialect has no `operator`"),
        ("tflite: {operators: [Mine]}", "1:21", "`operators` is a mapping"),
        (entry(GOOD, "mine"), "3:5", "the name of an operator begins with a capital letter"),
        (entry("[x]"), "3:11", "`Mine` is a mapping"),
        (entry(GOOD.replace("operands", "operand")), "3:35", "an operator has no `operand`"),
        (entry(GOOD.replace("results: [y], ", "")), "3:5", "nothing is said of the `results` of `Mine`"),
        (entry(GOOD.replace("[x, b?]", "x")), "3:45", "`operands` is a list of names"),
        (entry(GOOD.replace("b?", "b??")), "3:49", "an operand is a name"),
        (entry(GOOD.replace("tflite.custom", "tflite.costum")), "3:20", "`Mine` is no operator of the format"),
        (entry(GOOD.replace("domain: tflite.custom, ", "")), "3:5", "`Mine` is no operator of the format"),
        (entry(GOOD.replace("[float, 1.0]", "float")), "3:81", "an option is its type and its default"),
        (entry(GOOD.replace("[float", "[flaot")), "3:82", "there is no type `flaot`"),
        (entry(GOOD.replace("1.0", "one")), "3:89", "`one` is no default of type float"),
        (entry(GOOD.replace("SAME", "SMAE")), "3:108", "`SMAE` is no default of type Padding"),
        (entry(GOOD.replace("[float, 1.0]", "[[int32], []]")), "3:82", "an option is its type and its default"),
        (entry(GOOD.replace("results", "unsupported: true, results")), "3:67", "`unsupported` says in words why"),
        (entry(GOOD) + f"    Mine: {GOOD}\n", "4:5", "`Mine` is described twice"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    first = told(tmp_path, text).splitlines()[0]
    assert first.startswith(f"{place}: error: {message}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("tflite:\n  operators:\n    A: 1\n   B: 2\n", "4:4", "did not find expected key"),
        ("tflite:\n\toperators: {}\n", "2:1", "indented by spaces, not by tabs"),
        ("tflite: {operators: {A: {operands: *rest}}}", "1:36", "repeats what `&name` has marked before"),
        ("tflite: {operators: {A: {operands: [x]", "2:1", "is closed by `}` or `]`"),
        ("tflite: {? [a] : b}", "1:12", "a key is a word"),
        ("tflite: &a {operators: *a}", "1:1", "says more than 200,000 things"),
        ("tflite: {}\n\x01", "2:1", "control characters are not allowed"),
        (entry("{operands: [x], results: [y], operands: [z]}"), "3:41", "`operands` is said twice"),
        (
            entry("{domain: tflite.custom, operands: [x, x?], results: [y]}"),
            "3:49",
            "two of the `operands` are called `x`",
        ),
        (entry("{domain: tflite.custom, operands: [1], results: [y]}"), "3:46", "an operand is a name"),
        (entry("{domain: tflite.custom, operands: [x], results: [y], types: [f33]}"), "3:72", "no element type `f33`"),
        (entry("{domain: tflite.custom, operands: [x], results: [y], types: f32}"), "3:71", "`types` is a list"),
        (entry("{domain: tflite.custom, operands: [x], results: [y], code: many}"), "3:70", "`code` is a whole number"),
        (
            entry("{domain: tflite.custom, operands: [x], results: [y], options: {a: [int8, 200]}}"),
            "3:84",
            "no default",
        ),
    ],
)
def test_what_to_do_is_told_too(tmp_path: Path, text: str, place: str, message: str) -> None:
    said = told(tmp_path, text)
    assert said.startswith(f"{place}: error: ")
    assert message in said


OWN = "domain: tflite.custom, operands: [x], results: [y]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place", "message", "help"),
    [
        (entry(f"{{{OWN}, colour: blue}}"), "3:64", "an operator has no `colour`", ""),
        (entry(f"{{{OWN}, quantisation: raw}}"), "3:64", "an operator has no `quantisation`", "mean `quantization`?"),
        (entry(f"{{{OWN}, limits: {{x: few}}}}"), "3:64", "an operator has no `limits`", "to `fuzz` of an operator"),
        (
            entry(f"{{{OWN}, limit: {{x: few}}}}"),
            "3:64",
            "an operator has no `limit`",
            "`limits`? It belongs to `fuzz` of",
        ),
        (
            entry(f"{{{OWN}, fuzz: {{limits: {{z: few}}}}}}"),
            "3:80",
            "`Mine` has no operand, result or option `z`",
            "",
        ),
        (
            entry(f"{{{OWN}, remap: {{xs: axes}}}}"),
            "3:72",
            "`Mine` has no operand, result or option `xs`",
            "did you mean `x`?",
        ),
        (entry(f"{{{OWN}, tables: {{}}}}"), "3:64", "an operator has no `tables`", "it belongs to a dialect"),
        (entry(f"{{{OWN}, fuzz: {{mixes: x}}}}"), "3:71", "`fuzz` of an operator has no `mixes`", "to an operator"),
        (
            entry(f"{{{OWN}, fuzz: {{untired: so}}}}"),
            "3:71",
            "`fuzz` of an operator has no `untired`",
            "mean `untried`?",
        ),
        ("tflite: {layout: transparent}", "1:10", "a dialect has no `layout`", "it belongs to an operator"),
        ("tflite: {unheeded: {}}", "1:10", "a dialect has no `unheeded`", "it belongs to `fuzz` of a dialect"),
        ("operators: {}", "1:1", "there is no dialect `operators`", "it belongs to a dialect"),
        (
            entry(f"{{{OWN}, layout: transparant}}"),
            "3:72",
            "`layout` is `transparent`, `attribute`,",
            "mean `transparent`?",
        ),
        (entry(f"{{{OWN}, traits: [core, veiw]}}"), "3:79", "`traits` is `activation`, `bilinear`,", "mean `view`?"),
        (entry(f"{{{OWN}, role: permut}}"), "3:70", "`role` is `assign`, `broadcast`,", "mean `permute`?"),
        (entry(f"{{{OWN}, remap: {{axis: axes_}}}}"), "3:78", "`remap.axis` is `axis`, `axes`,", "did you mean"),
        (entry(f"{{{OWN}, remap: [axis]}}"), "3:71", "`remap` is a mapping", ""),
        (entry(f"{{{OWN}, reshapes: 1}}"), "3:74", "`reshapes` is true or false", ""),
        (entry(f"{{{OWN}, mixes: 1}}"), "3:71", "`mixes` is a text", "stands in quotes"),
        (entry(f"{{{OWN}, fuzz: {{limits: {{x: [few]}}}}}}"), "3:83", "`limits.x` is `nonzero`, `natural`,", ""),
        (entry(f"{{{OWN}, fuzz: {{limits: {{}}, limits: {{}}}}}}"), "3:83", "`limits` is said twice", ""),
        (entry(f"{{{OWN}, within: {{a: [0]}}}}"), "3:76", "`within.a` is a list of 2", ""),
        (entry(f"{{{OWN}, kept: {{prefix: Flex}}}}"), "3:70", "`kept` has no `types`", ""),
        ("tflite: {types: {BIT: {code: 99, dtype: BOOL, bit: 1}}}", "1:47", "`types.BIT` has no `bit`", "mean `bits`?"),
        (
            "onnx: {operators: {Transpose: {remap: {prem: perm}}}}",
            "1:40",
            "`Transpose` has no operand, result or option `prem`",
            "did you mean `perm`?",
        ),
        ("onnx: {kernels: {Add: {since: {T: f32}}}}", "1:24", "a key of `kernels.Add` is a whole number", ""),
    ],
)
def test_keys_that_are_unknown_or_elsewhere_and_what_they_hold_are_mistakes(
    tmp_path: Path, text: str, place: str, message: str, help: str
) -> None:
    said = told(tmp_path, text)
    assert said.startswith(f"{place}: error: {message}")
    assert help in said


def test_what_comes_with_the_program_has_no_mistakes() -> None:
    for path in OPERATORS:
        assert [str(one) for one in find_mistakes(path, path.read_text(encoding="utf-8"), {})] == []


def test_what_is_said_by_name_of_a_dialect_is_about_names_that_it_has() -> None:
    catalogue = ops_files.load([])
    onnx = catalogue.find_dialect("onnx")
    for name, versions in onnx.facts.kernels.items():
        assert name in onnx.operators, f"`kernels` speaks of {name}"
        for since, kinds in versions.items():
            found = find_schema(name, int(since))
            assert found is not None and kinds.keys() <= read_signature(found).kinds.keys(), (
                f"kernels of {name} {since}"
            )
    for dialect in catalogue.dialects.values():
        options = {option for spec in dialect.operators.values() for option in spec.options}
        options |= {option for name in dialect.operators for option in (list_names(name) if dialect.schemas else ())}
        assert {*dialect.facts.fuzz.others, *dialect.facts.fuzz.windows} <= options, dialect.name
        for members in dialect.facts.unions.values():
            assert members.keys() <= {*dialect.facts.tables}


@pytest.mark.slow
def test_the_schema_for_editors_is_that_of_the_program_and_admits_what_comes_with_it() -> None:
    text = (OPS.parent / "editors" / "ops.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == make_schema(), (
        "python -m nnrewrite.engine.dialects.json_schema > editors/ops.schema.json"
    )
    admit = fastjsonschema.compile(make_schema())
    for path in (*OPERATORS, *sorted(BUILT_IN.glob("*/ops.yaml"))):
        admit(json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8")))))


@pytest.mark.parametrize(
    "wrong", [{"limits": {"x": "few"}}, {"layout": "none"}, {"fuzz": {"mixes": "x"}}, {"types": [1]}]
)
def test_the_schema_for_editors_refuses_what_the_program_refuses(wrong: dict[str, object]) -> None:
    document = {"tflite": {"operators": {"Mine": {"domain": "tflite.custom", **wrong}}}}
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        fastjsonschema.compile(make_schema())(document)


def test_every_fact_of_an_operator_or_a_dialect_is_a_key_with_a_text() -> None:
    for kind in (OperatorFacts, OperatorTrials, DialectFacts, DialectTrials):
        assert list_keys(kind).keys() == {field.name for field in fields(kind)} - {"said"}


def test_all_mistakes_are_told_with_what_may_be_meant(tmp_path: Path) -> None:
    text = told(tmp_path, entry(GOOD.replace("operands", "operand").replace("[float", "[flaot")))
    assert text.count(": error: ") == 3
    assert "help: did you mean `operands`?" in text
    assert "help: did you mean `float`?" in text


def test_aliases_and_merged_mappings_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    text = entry("&own {domain: tflite.custom, operands: [x], results: [y]}", "A")
    path.write_text(f"{text}    B: {{<<: *own, results: [z]}}\n", encoding="utf-8")
    spec = ops_files.load([path]).find_dialect("tflite").find_operator("B")
    assert spec is not None
    assert (spec.operands[0].name, spec.results[0].name) == ("x", "z")


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "ops.yaml").write_text("# to come\n", encoding="utf-8")
    assert ops_files.load([tmp_path / "ops.yaml"]).find_dialect("tflite").operators.keys() == (
        ops_files.load().find_dialect("tflite").operators.keys()
    )

"""The record of which rule made each operator."""

from __future__ import annotations

import zlib

import onnx_ir as ir
import pytest
from nnrewrite.engine.base.errors import ModelError
from nnrewrite.engine.base.provenance import RULE, SOURCE
from nnrewrite.engine.rewrite.origins import RECORD, decode_origins, encode_origins, list_origins


def make_node(**props: str) -> ir.Node:
    return ir.Node("", "Abs", [None], metadata_props=props)


def test_a_record_is_read_as_it_was_written() -> None:
    made = [
        [make_node(**{RULE: "a (a.rules:1)", SOURCE: "ADD@0:1"}), make_node()],
        [make_node(**{RULE: "a (a.rules:1)"})],
    ]
    record = encode_origins(made)
    assert record is not None
    assert decode_origins(record) == [[("a (a.rules:1)", "ADD@0:1"), (None, None)], [("a (a.rules:1)", None)]]


def test_there_is_no_record_where_no_rule_made_anything() -> None:
    assert encode_origins([[make_node(**{SOURCE: "ADD@0:1"})]]) is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"", "damaged"),
        (b"nothing deflated", "damaged"),
        (zlib.compress(b"[]"), "damaged"),
        (zlib.compress(b'{"rules": [], "operators": [[[0, null]]]}'), "damaged"),
        (zlib.compress(b"[" * 100_000), "damaged"),
        (zlib.compress(bytes(1 << 27)), "too long"),
        (zlib.compress(b'{"rules": [], "operators": [[[null, null]]]}'), "other operators than it has"),
    ],
    ids=["empty", "not deflated", "a list", "no such rule", "too deep", "too long", "of another model"],
)
def test_a_record_that_is_none_is_told(record: bytes, said: str) -> None:
    model = ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": 18}), ir_version=10)
    model.meta["metadata"] = {RECORD: record}
    with pytest.raises(ModelError, match=said):
        list_origins(model)

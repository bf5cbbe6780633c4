"""Tables: keys to values, known when a model is converted."""

from __future__ import annotations

from typing import Any

import nnrewrite
import numpy as np
import onnx_ir as ir
import pytest
from nnrewrite.backends import probe
from nnrewrite.backends.tflite_writer import write
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.verify import Interpreter, Runtime, compare_models

WORDS = np.array([b"one", b"two", b"ten", b"two"], object)
NUMBERS = np.array([1, 2, 10, -5], np.int64)


def value(name: str, what: Any, shape: list[int]) -> ir.Value:
    """A constant where `what` is an array, else a value of the type that it names."""
    if isinstance(what, np.ndarray):
        tensor = ir.StringTensor(what, name=name) if what.dtype == object else ir.Tensor(what, name=name)
        return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)
    return ir.Value(name=name, type=ir.TensorType(ir.DataType[what]), shape=ir.Shape(shape))


def handle(name: str) -> ir.Value:
    found = ir.Value(name=name, shape=ir.Shape([1]))
    found.meta["type"] = "RESOURCE"
    return found


def node(name: str, inputs: list[ir.Value], outputs: list[ir.Value], **options: Any) -> ir.Node:
    attributes = [
        ir.AttrString(key, found) if isinstance(found, str) else ir.AttrInt64(key, found)
        for key, found in options.items()
    ]
    return ir.Node(
        "tflite.custom" if name.startswith("Flex") else "tflite", name, inputs, attributes, outputs=outputs, name=name
    )


def model(catalogue: Catalogue, keys: np.ndarray, values: np.ndarray, default: np.ndarray, once: bool) -> bytes:
    """A model that finds keys in a table and tells its size; with `once` a graph of its own fills the table."""
    types = {"i": "INT64", "O": "STRING"}
    names = {"table_id": 7, "key_dtype": types[keys.dtype.kind], "value_dtype": types[values.dtype.kind]}
    own, other = handle("table"), handle("filled")
    columns = [value("keys", keys, []), value("values", values, [])]
    asked, fallback = value("asked", types[keys.dtype.kind], [2, 3]), value("default", default, [])
    found, size = value("found", types[values.dtype.kind], [2, 3]), value("size", "INT64", [1])
    filling = [node("HASHTABLE", [], [other], **names), node("HASHTABLE_IMPORT", [other, *columns], [])]
    begin = [node("CALL_ONCE", [], [], init_subgraph_index=1)] if once else filling
    main = ir.Graph(
        [asked],
        [found, size],
        nodes=[
            *begin,
            node("HASHTABLE", [], [own], **names),
            node("HASHTABLE_FIND", [own, asked, fallback], [found]),
            node("HASHTABLE_SIZE", [own], [size]),
        ],
        initializers=[fallback, *([] if once else columns)],
        name="main",
    )
    whole = ir.Model(main, ir_version=10)
    other_graphs = [ir.Graph([], [], nodes=filling, initializers=columns, name="once")] if once else []
    whole.meta["subgraphs"] = [main, *other_graphs]
    return write(whole, catalogue)


@pytest.mark.parametrize("once", [False, True])
def test_numbers_are_found_by_words(catalogue: Catalogue, interpreter: Interpreter, once: bool) -> None:
    source = model(catalogue, WORDS, NUMBERS, np.array([-1], np.int64), once)
    asked = np.array([[b"two", b"", b"ten"], [b"three", b"one", b"tens"]], object)
    target = nnrewrite.convert(source)
    assert target.opset_import[0].version == 21  # strings are compared from 19 on, and nobody asked for less
    assert compare_models(source, target.SerializeToString(), inputs=[[asked]], interpreter=interpreter).passed


@pytest.mark.parametrize("once", [False, True])
def test_words_are_found_by_numbers(catalogue: Catalogue, interpreter: Interpreter, once: bool) -> None:
    source = model(catalogue, NUMBERS, WORDS, np.array([b"none"], object), once)
    asked = np.array([[1, 2, 3], [-5, 10, 2**40]], np.int64)
    target = nnrewrite.convert(source)
    assert target.opset_import[0].version == 18
    assert compare_models(source, target.SerializeToString(), inputs=[[asked]], interpreter=interpreter).passed


def test_an_opset_that_was_asked_for_is_not_left(catalogue: Catalogue) -> None:
    source = model(catalogue, WORDS, NUMBERS, np.array([-1], np.int64), False)
    with pytest.raises(nnrewrite.UnsupportedError, match="strings are compared from opset 19 on"):
        nnrewrite.convert(source, opset=18)


@pytest.mark.parametrize("extents", [[4], [4, 2]])
def test_rows_are_looked_up(catalogue: Catalogue, interpreter: Interpreter, extents: list[int]) -> None:
    rows = np.arange(np.prod(extents), dtype=np.float32).reshape(extents) + 1
    operands = {"lookup": ("INT32", [3]), "key": np.array([-11, 0, 5, 17], np.int32), "rows": rows}
    results = [("FLOAT32", [3, *extents[1:]]), ("UINT8", [3])]
    source = probe.write_operator_model(catalogue, "HASHTABLE_LOOKUP", operands, results)
    target = nnrewrite.convert(source).SerializeToString()
    asked = [[np.array(keys, np.int32)] for keys in ([17, 3, -11], [5, 5, 99])]
    assert compare_models(source, target, inputs=asked, interpreter=interpreter).passed


def test_a_table_that_is_computed_is_refused(catalogue: Catalogue) -> None:
    source = probe.make_operator_model(catalogue, "HASHTABLE_SIZE", {}, [("INT64", [1])])
    own = handle("table")
    source.graph.insert_before(source.graph[0], node("HASHTABLE", [], [own], table_id=1))
    source.graph[1].resize_inputs(1)
    source.graph[1].replace_input_with(0, own)
    with pytest.raises(nnrewrite.UnsupportedError, match="not known when the model is converted"):
        nnrewrite.convert(write(source, catalogue))


def test_tables_of_tensorflow_are_told_apart(catalogue: Catalogue) -> None:
    asked, fallback = value("asked", "INT64", [3]), value("default", np.array(-1, np.int64), [])
    nodes, constants, results = [], [fallback], []
    for name, numbers in (("a", np.int64([10, 20])), ("b", np.int64([30, 40]))):
        own, keys = handle(name), value(f"{name}_keys", np.int64([1, 2]), [])
        values = value(f"{name}_values", numbers, [])
        found = value(f"{name}_found", "INT64", [3])
        nodes += [
            node("FlexPlaceholder", [], [own]),
            node("FlexLookupTableImportV2", [own, keys, values], []),
            node("FlexLookupTableFindV2", [own, asked, fallback], [found]),
        ]
        nodes[-3].name = f"{name}_table"
        constants += [keys, values]
        results.append(found)
    whole = ir.Model(ir.Graph([asked], results, nodes=nodes, initializers=constants, name="main"), ir_version=10)
    whole.meta["subgraphs"] = [whole.graph]
    target = nnrewrite.convert(write(whole, catalogue))
    found = Runtime(target.SerializeToString()).run([np.int64([2, 1, 7])])
    assert [list(one) for one in found] == [[20, 10, -1], [40, 30, -1]]

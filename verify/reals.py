"""Real forms: a quantized model with real numbers in the place of all codes, as the option `float` promises it."""

from __future__ import annotations

import onnx_ir as ir

from ..backends import tflite_writer as writer
from ..engine.base.errors import ModelError, VerificationError
from ..engine.base.names import Scope
from ..engine.base.quantization import read_quantization
from ..engine.dialects.ops_files import load
from ..engine.passes.output_names import name_outputs
from ..engine.passes.quantize_dequantize import insert_quantize_dequantize
from ..engine.rewrite.edits import remove_unused
from ..frontends import tflite_reader
from .interpreter import Source


def write_real_form(source: Source) -> Source:
    """Write a quantized model with real numbers in the place of all codes; any other model stays as it is.

    Constants are the real numbers that codes stand for, and the interpreter computes all else with its kernels for real
    numbers. Operators that only bring numbers from one form to another are left out, but where others mean the codes.
    Raises VerificationError where the format cannot say the result.
    """
    catalogue = load()
    model, dialect = tflite_reader.read(source, catalogue), catalogue.find_dialect("tflite")
    graphs: list[ir.Graph] = model.meta["subgraphs"]
    values = (value for graph in graphs for node in graph for value in (*node.inputs, *node.outputs))
    if not any(read_quantization(value) for value in values):
        return source
    for graph in graphs:
        names = {place: value.name or "" for place, value in enumerate(graph.outputs)}
        insert_quantize_dequantize(graph, dialect, dialect, 0, Scope(graph), plain=True)
        remove_unused(graph)
        name_outputs(graph, names, dialect)  # signatures know them by name
    try:
        return writer.write(model, catalogue)
    except ModelError as error:
        raise VerificationError(f"the original has no form with real numbers: {error}") from error

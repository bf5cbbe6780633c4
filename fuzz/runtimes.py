"""Runtimes by the dialect of a model: what writes a graph as one, and what runs it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..backends import stream, tflite_file
from ..backends.writers import Encoded, Output, find_dialect_writer
from ..engine.base.errors import RewriteError
from ..engine.dialects.operators import Catalogue, Dialect
from ..verify.formats import INTERPRETED, REFERENCE
from ..verify.frames import Array
from ..verify.interpreter import Interpreter, Kernels
from ..verify.runtime import Runtime
from .sketch import Case, encode, make_graph


def write_model(made: ir.Graph, names: Sequence[str], dialect: Dialect, opset: int) -> bytes:
    """A graph of a dialect as the bytes of a model; raises RewriteError where it is none."""
    opset = _write_older_forms(made, dialect, opset)
    writer = find_dialect_writer(dialect.name)
    if writer is None:
        raise RewriteError(f"no file holds models of {dialect.name}")
    return read_bytes(writer.encode(Output(made, names, dialect, opset)))


def _write_older_forms(made: ir.Graph, dialect: Dialect, opset: int) -> int:
    """Write operators that stand for older forms of others as these are; the opset at which they mean that.

    Raises RewriteError where an operator beside them means something else at that opset.
    """
    older = set()
    for node in made:
        for name, spec in dialect.operators.items():
            last = next((last for last, form in spec.facts.older.items() if form == node.op_type), None)
            if last is not None and node.domain != dialect.domain:
                node.domain, node.op_type, opset = dialect.domain, name, min(opset, last)
                older.add(node)
                break
    for node in made:
        found = dialect.operators.get(node.op_type)
        if older and node not in older and found is not None and any(opset <= last for last in found.facts.older):
            raise RewriteError(f"{node.op_type} means something else at opset {opset}")
    return opset


def read_bytes(encoded: Encoded) -> bytes:
    """The bytes of an encoded model; raises RewriteError for one that is a folder or code."""
    if isinstance(encoded, stream.Encoded):
        return b"".join(encoded.list_parts())
    if isinstance(encoded, tflite_file.Encoded):
        return encoded.encode()
    raise RewriteError("the model is no file that a runtime loads")


def run_model(
    model: bytes,
    feeds: Sequence[Array],
    interpreter: Interpreter | None = None,
    seconds: float | None = None,
    optimized: bool = True,
) -> list[Array]:
    """Run a model on one sample, in the `interpreter` where one is given; raises VerificationError where it fails.

    In ONNX Runtime, which is asked else, a run ends after so many `seconds`. A runtime rewrites the model itself before
    where it is to be `optimized`.
    """
    if interpreter is not None:
        return interpreter.run(model, [feeds], Kernels.DEFAULT if optimized else Kernels.OPTIMIZED)[0]
    return Runtime(model, threads=1, optimized=optimized, precise=True).run(feeds, seconds)


def is_interpreted(case: Case, catalogue: Catalogue) -> bool:
    """Whether the interpreter runs the model that a case is, and not ONNX Runtime."""
    domain = catalogue.find_dialect(INTERPRETED).domain
    return all(step.operator.domain.partition(".")[0] == domain for step in case.steps)


def encode_case(case: Case, catalogue: Catalogue, opset: int) -> bytes:
    """Write a case as a file of the format that its runtime loads; raises RewriteError where that cannot say it."""
    if is_interpreted(case, catalogue):
        return encode(case, catalogue)
    dialect = catalogue.find_dialect(REFERENCE)
    return write_model(
        make_graph(case.steps, case.outputs, dialect), [one.name for one in case.outputs], dialect, opset
    )


__all__ = ["encode_case", "is_interpreted", "read_bytes", "run_model", "write_model"]

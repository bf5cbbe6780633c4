"""A converted model, with the report about it."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx_ir as ir

from ..backends import stream, writers
from ..backends.replaced_files import check_replaced
from ..engine.base.atomic_write import accept_destination
from ..engine.base.errors import CallError
from ..engine.base.startup import dataclass
from ..engine.rewrite.profile import time_part
from . import summary
from .options import Options
from .report import Report


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted model and the report about it; weights are read when the model is saved or asked for.

    `graph` is the model as it was written, of whatever dialect, to be looked at and not to be changed; `options` are
    those of the last step, which made it. `source` is the file that the model was read from, None for bytes.
    """

    encoded: writers.Encoded
    report: Report
    graph: ir.Graph
    options: Options
    source: Path | None = None

    def __repr__(self) -> str:
        return f"<Conversion: {summary.summarize(self.report, self.encoded.size)}>"

    def _repr_html_(self) -> str:
        from .inspection import explain_graph
        from .summary_html import draw_conversion

        explained = explain_graph(self.graph, self.options) if self.report.permutations else []
        return draw_conversion(self.report, self.graph, explained, self.encoded.size)

    @property
    def model(self) -> onnx.ModelProto:
        """The model, the same each time; raises TooLargeError where it exceeds what one message can hold, and CallError
        where it is none of ONNX."""
        return self._onnx.make_proto()

    @property
    def sketch(self) -> onnx.ModelProto:
        """The model without the bytes of its large constants, whatever its size: to be looked at, not to be run."""
        return self._onnx.sketch()

    @property
    def _onnx(self) -> stream.Encoded:
        if not isinstance(self.encoded, stream.Encoded):
            raise CallError("the result is no ONNX model: save(path) writes it")
        return self.encoded

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> int:
        """Write the model to a file, which takes the place of an older one when it is whole; the bytes written.

        With `external_data`, and where an ONNX model exceeds 2 GB, large constants are in a second file, `PATH.data`.
        One that an older model had there goes with it. The source itself may be replaced. Raises DestinationError for
        what the system refuses, and where the weights of a source that stays would be replaced; CallError for no path.
        """
        path = accept_destination(path)
        with time_part("writing"):
            if self.source is not None and os.path.realpath(path) != os.path.realpath(self.source):
                check_replaced(path, self.encoded.list_files(path), [self.source])
            return self.encoded.save(path, external_data)

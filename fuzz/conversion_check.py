"""Whole conversions of ONNX models: ONNX Runtime runs what is read, and the interpreter what is written."""

from __future__ import annotations

import traceback

from .. import compiled_rules, pipeline
from ..engine.base.errors import InternalError, RewriteError, RewriteFailure, UnsupportedError
from ..verify.formats import REFERENCE
from ..verify.interpreter import Interpreter
from .finding import End, Finding
from .runtimes import read_bytes, write_model
from .self_check import SelfCheck
from .sketch import Case, graph


class ConversionCheck:
    """The rules under trial, and the interpreter that runs what they make of models that ONNX Runtime has run."""

    def __init__(self, rules: tuple[str, ...], interpreter: Interpreter) -> None:
        self._rules = rules
        self._interpreter = interpreter

    def judge(self, case: Case) -> Finding:
        """Convert a case and compare what the interpreter computes with what ONNX Runtime did."""
        prepared = compiled_rules.prepare(self._rules, None)
        dialect = prepared.pack.catalogue.dialect(REFERENCE)
        names = [value.name for value in case.outputs]
        source = write_model(graph(case.steps, case.outputs, dialect), names, dialect, case.opset or prepared.opset)
        try:
            conversion = pipeline.rewrite(source, rules=self._rules)
        except InternalError as error:
            return Finding(End.FAILED, "".join(traceback.format_exception(error)))
        except RewriteFailure as failure:
            return Finding(End.FAILED, f"{failure}")
        except UnsupportedError as refusal:
            said = f"{refusal}" if case.widened else f"its own test is refused: {refusal}"
            return Finding(End.REFUSED if case.widened else End.FAILED, said)
        except RewriteError as error:
            return Finding(End.REFUSED, f"{error}")
        fired = dict(conversion.report.rules)
        found = SelfCheck.compare_case(case, read_bytes(conversion.encoded), fired, interpreter=self._interpreter)
        return Finding(
            found.end,
            found.reason,
            fired,
            found.expected,
            found.actual,
            sum(conversion.report.target_operators.values()),
        )


__all__ = ["ConversionCheck"]

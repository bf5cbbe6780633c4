"""Where the data that comes with the program stands: its rules and its operators."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent

#: the folder that has a folder for each rule pack that comes with the program
BUILT_IN = _ROOT / "rules"
#: the operators of ONNX, which all others are between
OPS = _ROOT / "ops.yaml"
#: the operators of the dialects that come with the program, but for those that packs add
OPERATORS = (OPS, *sorted((_ROOT / "ops").glob("*.yaml")))

"""Graphs of a dialect that is source code as a folder: the code, the tensors, and how to use both."""

from __future__ import annotations

from pathlib import Path

from ..engine.base.atomic_write import open_replacement
from ..engine.base.errors import RewriteError
from ..engine.base.startup import dataclass
from ..engine.passes.state import read_state
from .python_code.program import Program, write_program
from .python_code.readme import describe
from .python_code.weights import write_tensors
from .stream import write
from .writers import Output

_CODE, _TENSORS, _README = "model.py", "model.safetensors", "README.md"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program, and the text that stands beside it."""

    program: Program
    readme: str

    @property
    def size(self) -> int:
        """How many bytes its files take."""
        tensors = (value.const_value for _, value in self.program.tensors)
        return len(self.program.text) + sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def save(self, path: Path, external_data: bool) -> int:
        """Write the files into a folder, which is made where it is missing; the bytes written.

        Raises RewriteError where there is a file of the folder's name.
        """
        if path.exists() and not path.is_dir():
            raise RewriteError(f"{path}: is a file, and code is written into a folder")
        with open_replacement(path / _TENSORS) as file:
            size = write(file, write_tensors(self.program.tensors))
        for name, text in ((_README, self.readme), (_CODE, self.program.text)):
            with open_replacement(path / name) as file:
                size += file.write(text.encode())
        return size


def encode(output: Output) -> Encoded:
    """Write a graph as a program; raises RewriteError for what no code says."""
    program = write_program(output.graph, output.dialect, output.names)
    state = read_state(output.metadata)
    return Encoded(program, describe(program, output.dialect, _CODE, _TENSORS, output.names, state))

"""Graphs of a dialect that is source code as a folder: the code, the tensors, and how to use both."""

from __future__ import annotations

import stat
from pathlib import Path

from ..engine.base.atomic_write import check_own, open_replacement, read_mode
from ..engine.base.errors import RewriteError
from ..engine.base.startup import dataclass
from ..engine.passes.state import read_state
from .python_code.program import Program, write_program
from .python_code.readme import describe
from .python_code.weights import write_tensors
from .stream import write
from .writers import Output

_CODE, _TENSORS, _README = "model.py", "model.safetensors", "README.md"
#: by which the text, and the files beside it, are known to be of this program
_MARK = "<!-- written by nnrewrite -->"


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

    @staticmethod
    def list_files(path: Path) -> list[Path]:
        """The code, the tensors and the text in the folder."""
        return [path / name for name in (_CODE, _TENSORS, _README)]

    def save(self, path: Path, external_data: bool) -> int:
        """Write the files into a folder, which is made where it is missing; the bytes written.

        Raises RewriteError where there is a file of the folder's name, and for files in it that this program did not
        write.
        """
        if (mode := read_mode(path)) and not stat.S_ISDIR(mode):
            raise RewriteError(f"{path}: is a file, and code is written into a folder")
        check_own(self.list_files(path), path / _README, _MARK)
        with open_replacement(path / _README) as file:  # the first, so that what is interrupted can be repeated
            size = file.write(f"{self.readme}\n{_MARK}\n".encode())
        with open_replacement(path / _TENSORS) as file:
            size += write(file, write_tensors(self.program.tensors))
        with open_replacement(path / _CODE) as file:
            size += file.write(self.program.text.encode())
        return size


def encode(output: Output) -> Encoded:
    """Write a graph as a program; raises RewriteError for what no code says."""
    program = write_program(output.graph, output.dialect, output.names)
    state = read_state(output.metadata)
    return Encoded(program, describe(program, output.dialect, _CODE, _TENSORS, output.names, state))

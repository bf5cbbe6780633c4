"""The client of the TFLite interpreter's worker: starts it, restarts it after a crash, holds it to a time limit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from ..engine.base.errors import VerificationError
from .frames import Array, receive, send
from .packages import install_command
from .pipe import Pipe
from .time_limit import TIME_LIMIT

#: starts the worker from the package's own folder; what lies in the working directory is not imported
_START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(sys.argv[1], sys.argv[2])
sys.modules[spec.name] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
importlib.import_module(sys.argv[3]).main()
"""

Source = str | os.PathLike[str] | bytes
"""A model: the path of its file, or its bytes."""


def is_text(path: str) -> bool:
    """Whether a path can be said in UTF-8, as runtimes take paths."""
    return path == path.encode(errors="replace").decode()


def locate(model: Source) -> str | bytes:
    """The path of a model, or its bytes: those as well of a file whose path is no UTF-8, which runtimes cannot open."""
    if isinstance(model, bytes):
        return model
    path = os.fspath(model)
    return path if is_text(path) else Path(path).read_bytes()


class Kernels(StrEnum):
    """The interpreter's sets of kernels: with its default delegate, optimized without it, reference."""

    DEFAULT = "default"
    OPTIMIZED = "optimized"
    REFERENCE = "reference"


class InterpreterError(VerificationError):
    """The interpreter raised, crashed or took too long on one model; the next request finds it ready again."""


class ModelTimeoutError(InterpreterError):
    """A model took too long in ONNX Runtime or torch, as it does with other inputs and kernels."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model.

    `signature` has -1 for a dimension that is not static, `shape` what stands in. `step` is the scale of the one
    quantized value that an output is computed from, 0 where there is none: a float output may be a view of codes. An
    input that `counts` has a 1 for each thing that there is, as the mask of all words.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    step: float = 0.0
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """A result of one of a model's operators: the operator's number, the result's place among its results."""

    number: int
    place: int
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model, in its own order, and what its metadata says in plain text."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)


class Worker(Protocol):
    """What runs originals; it raises InterpreterError where one does not run."""

    def describe(self, model: Source) -> Signature:
        """The inputs and outputs of a model."""

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Run a model on samples and return the outputs of each."""


def require(*packages: str) -> None:
    """Check that packages of the `verify` extra are installed; raises VerificationError naming those that are not."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(name.replace("_", "-") for name in missing)
        raise VerificationError(f"verification needs {names}: {install_command('verify')}")


class Interpreter:
    """The TFLite interpreter in a worker process that serves any number of models, one request at a time.

    `timeout` is in seconds and holds for each request; `command` starts another worker than ours. Use it as a context
    manager, or call `close`.
    """

    def __init__(self, timeout: float = TIME_LIMIT, command: Sequence[str] | None = None) -> None:
        require("ai_edge_litert")
        self.timeout = timeout
        self._command = list(command or _find_command())
        self.restarts = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def describe(self, model: Source, signature: str | None = None) -> Signature:
        """Read the inputs and outputs of a model, or those of one of its signatures under the names they have there.

        Raises InterpreterError where the interpreter refuses it.
        """
        request = {"action": "describe", "kernels": Kernels.OPTIMIZED, "signature": signature and [signature]}
        header, _ = self._ask(request, model, [])
        inputs, outputs = _read_tensors(header["inputs"]), _read_tensors(header["outputs"])
        return Signature(inputs, outputs, header.get("metadata", {}))

    def run(
        self,
        model: Source,
        samples: Sequence[Sequence[Array]],
        kernels: Kernels = Kernels.DEFAULT,
        keep: bool = False,
        signature: tuple[str, Sequence[str], Sequence[str]] | None = None,
    ) -> list[list[Array]]:
        """Run a model on samples (the inputs of each, in the model's order) and return the outputs of each.

        Inputs whose shape is not the model's are resized; state starts afresh with each sample, or
        with `keep` once, so that samples are steps. A signature is given by its name, and the names of its inputs and
        outputs in the order of arrays.

        Raises InterpreterError where the interpreter raises, crashes or exceeds the time limit.
        """
        request = {"action": "run", "kernels": kernels, "samples": len(samples), "keep": keep, "signature": signature}
        _, arrays = self._ask(request, model, [array for sample in samples for array in sample])
        count = len(arrays) // len(samples) if samples else 0
        return [arrays[at * count : (at + 1) * count] for at in range(len(samples))]

    def run_layers(self, model: Source, sample: Sequence[Array]) -> list[tuple[Layer, Array]]:
        """Run a model on one sample and return what each operator yields, in the order in which they run.

        Raises InterpreterError as `run` does.
        """
        header, arrays = self._ask({"action": "layers", "kernels": Kernels.OPTIMIZED}, model, list(sample))
        entries: list[dict[str, Any]] = header["layers"]
        found = [
            Layer(entry["number"], entry["place"], tensor)
            for entry, tensor in zip(entries, _read_tensors(entries), strict=True)
        ]
        return list(zip(found, arrays, strict=True))

    def load(self, model: Source, sample: Sequence[Array], threads: int) -> None:
        """Load a model to be timed, feed it and run it once; raises InterpreterError as `run` does."""
        self._ask({"action": "load", "kernels": Kernels.DEFAULT, "threads": threads}, model, list(sample))

    def time(self, runs: int) -> list[float]:
        """Run the model that was loaded last several times; the seconds of each run."""
        header, _ = self._ask({"action": "time", "runs": runs}, None, [])
        return [float(seconds) for seconds in header["seconds"]]

    def close(self) -> None:
        """End the worker."""
        self._end_worker()
        self._complaints.close()

    def _ask(
        self, request: Mapping[str, Any], model: Source | None, arrays: Sequence[Array]
    ) -> tuple[dict[str, Any], list[Array]]:
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        place = None if model is None else locate(model)
        if isinstance(place, bytes):
            arrays = [np.frombuffer(place, np.uint8), *arrays]
        elif place is not None:
            request = {**request, "path": place}
        # The worker shares this file's position, so what it says about this request starts at the front again.
        self._complaints.seek(0)
        self._complaints.truncate()
        pipe = Pipe(process.stdin.fileno(), process.stdout.fileno(), self.timeout)
        try:
            send(pipe, request, arrays)
            header, results = receive(pipe)
        except TimeoutError:
            self._end_worker()
            raise InterpreterError(f"the TFLite interpreter took more than {self.timeout:g} s") from None
        except (EOFError, BrokenPipeError):
            code = process.wait()
            self._end_worker()
            raise InterpreterError(f"the TFLite interpreter crashed ({self._explain_end(code)})") from None
        except BaseException:
            # An answer that was not read would be taken for that of the next request.
            self._end_worker()
            raise
        if "crash" in header:
            self.restarts += 1
            raise InterpreterError(f"the TFLite interpreter crashed ({self._explain_end(header['crash'])})")
        if "error" in header:
            raise InterpreterError(f"the TFLite interpreter says: {' '.join(header['error'].split())}")
        return header, results

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end_worker()
            self._process = subprocess.Popen(
                self._command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                start_new_session=True,
            )
            self.restarts += 1
        return self._process

    def _end_worker(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the worker and its fork
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # what was still in the buffer has nowhere to go
                    continue

    def _explain_end(self, code: int) -> str:
        """What the worker wrote to its standard error before it ended."""
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self._complaints.seek(0)
        said = [line.strip() for line in self._complaints.read().decode(errors="replace").splitlines()]
        told = [line for line in said if line and not line.startswith(("INFO:", "WARNING:"))]
        return f"{how}: {told[-1]}" if told else how


def _find_command() -> list[str]:
    """What starts the worker, wherever the package was found."""
    package = __name__.partition(".")[0]
    place = f"{sys.modules[package].__file__}"
    return [sys.executable, "-P", "-c", _START, package, place, f"{__package__}.worker"]


def _read_tensors(entries: Sequence[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            entry["name"],
            entry["dtype"],
            tuple(entry["shape"]),
            tuple(entry["signature"]),
            tuple(entry["scales"]),
            tuple(entry["zero_points"]),
            entry.get("step", 0.0),
        )
        for entry in entries
    )

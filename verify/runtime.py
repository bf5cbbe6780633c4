"""ONNX Runtime: runs the rewritten model in this process."""

from __future__ import annotations

import ctypes
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.base.errors import VerificationError, join_lines
from ..engine.base.quantization import NUMBERS, REAL
from ..engine.passes.state import read_state
from .frames import Array, find_dtype
from .interpreter import ModelTimeoutError, Source, is_text, locate, require
from .layouts import read_layouts
from .low_bit_weights import LEVEL_OF_JOINED, SINGLE
from .saturation import PRECISE, can_saturate, unshare
from .signature import read_names
from .time_limit import run_limited

#: element types that numpy calls otherwise than the runtime
_TYPES = {"float": "float32", "double": "float64", "string": "object"}

#: the element type that the runtime has and numpy has not
_WORDS = "bfloat16"

#: the runtime's option for the folder in which the constants of a model lie that is no file
_FOLDER = "session.model_external_initializers_file_folder_path"


class Runtime:
    """A model loaded into ONNX Runtime's CPU provider; `threads` limits how many it computes with.

    With `profile`, a folder, the runtime writes there how long each node takes. Without `optimized` it runs the model
    as it is written, which takes the runtime's own rewriting out of what is compared. A `precise` one is kept from
    products of bytes that saturate, as they do on some processors, where the runtime takes the model like that. A
    `single` one, and a precise one, does not round what it multiplies by weights of few bits. `folder` is that of the
    constants that are not among the bytes of a model. To load the model fails where it takes more than so many
    `seconds`, and so does a run.

    Raises VerificationError where the runtime refuses the model, or later fails to run it.
    """

    def __init__(
        self,
        model: Source,
        threads: int = 0,
        profile: Path | None = None,
        optimized: bool = True,
        precise: bool = False,
        single: bool = False,
        folder: Path | None = None,
        seconds: float | None = None,
    ) -> None:
        require("onnxruntime")
        source = locate(model)
        if isinstance(source, bytes) and not isinstance(model, bytes):
            folder = Path(model).absolute().parent

        def load(source: bytes | str, saturating: bool = True) -> Any:
            options = _make_options(threads, profile, optimized, saturating, precise or single, folder)
            return _start_session(source, options, seconds)

        self._seconds = seconds
        self._session: Any = None
        try:
            if precise and can_saturate():
                self._session = _try(lambda: load(unshare(source), saturating=False))
            self._session = self._session or load(source)
        except TimeoutError:
            raise ModelTimeoutError(f"ONNX Runtime did not load the model in {seconds:g} s") from None
        except Exception as error:  # the runtime's exceptions have no common root but this
            raise VerificationError(f"ONNX Runtime refuses the model: {join_lines(error)}") from error
        self._inputs: dict[str, Any] = {item.name: item for item in self._session.get_inputs()}
        self.inputs: tuple[str, ...] = tuple(self._inputs)
        metadata = self._session.get_modelmeta().custom_metadata_map
        self.state: dict[str, str] = read_state(metadata)
        outputs = (item.name for item in self._session.get_outputs())
        self.outputs: tuple[str, ...] = tuple(name for name in outputs if name not in self.state.values())
        self._layouts = read_layouts(metadata)
        #: what the source calls inputs and outputs that have their names from a signature
        self.source_names: dict[str, str] = read_names(metadata)
        #: whether the model computes with real numbers what its original computes with codes
        self.unquantized: bool = metadata.get(NUMBERS) == REAL

    def run(self, inputs: Sequence[Array], seconds: float | None = None) -> list[Array]:
        """Run the model on one sample, inputs and outputs in the model's order, their axes in the original's.

        A run that takes more than so many `seconds` of processors fails, or those that hold for all.
        """
        return self.run_step(inputs, {}, seconds)[0]

    def run_step(
        self, inputs: Sequence[Array], kept: Mapping[str, Array], seconds: float | None = None
    ) -> tuple[list[Array], dict[str, Array]]:
        """Run the model on one sample with the state that it was left in; its outputs, and the state it is in then.

        State is by the names of its inputs; what is not in `kept` begins anew.
        """
        feeds = {**self.make_feeds(inputs), **kept}
        results = self._run([*self.outputs, *self.state.values()], feeds, self._seconds if seconds is None else seconds)
        named = zip(self.outputs, results, strict=False)
        state = dict(zip(self.state, results[len(self.outputs) :], strict=True))
        return [self._layouts.restore(name, np.asarray(result)) for name, result in named], state

    def _run(self, names: Sequence[str], feeds: Mapping[str, Array], seconds: float | None = None) -> list[Any]:
        """The results of those names."""
        try:
            if seconds is None:
                return _call_session(self._session, names, feeds)
            return _run_session(self._session, names, feeds, seconds)
        except TimeoutError:
            raise ModelTimeoutError(f"ONNX Runtime did not end the model in {seconds:g} s") from None
        except Exception as error:
            raise VerificationError(f"ONNX Runtime fails to run the model: {join_lines(error)}") from error

    def make_feeds(self, inputs: Sequence[Array]) -> dict[str, Array]:
        """Inputs of the original by the names, types and layouts that the model has."""
        return {
            name: self._layouts.permute(name, _convert_input(array))
            for name, array in zip(self.inputs, inputs, strict=True)
        }

    def evaluate(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model on inputs as it takes them; all its outputs by name, as it yields them."""
        names = [item.name for item in self._session.get_outputs()]
        return dict(zip(names, map(np.asarray, self._run(names, feeds)), strict=True))

    def is_turned(self, name: str) -> bool:
        """Whether the axes of an input or output stand in another order than the original's."""
        return self._layouts.is_turned(name)

    def is_real(self, name: str) -> bool:
        """Whether an input takes single-precision numbers."""
        return bool(self._inputs[name].type == "tensor(float)")

    def find_element_type(self, name: str) -> str:
        """The element type of an input, as numpy calls it; raises VerificationError for what is no tensor."""
        said = str(self._inputs[name].type)
        kind = _TYPES.get(said[7:-1], said[7:-1])
        if not said.startswith("tensor(") or kind not in np.sctypeDict:
            raise VerificationError(f"input {name} is a {said}: such inputs cannot be drawn")
        return kind

    def read_shape(self, name: str) -> tuple[Any, ...]:
        """The extents of an input in the original's order of axes, words for those that are not static."""
        return self._layouts.restore_shape(name, self._inputs[name].shape)

    def time(self, feeds: Mapping[str, Array], runs: int) -> list[float]:
        """Run the model several times on the same inputs; the seconds of each; raises VerificationError as it fails."""
        seconds = []
        try:
            for _ in range(runs):
                started = time.perf_counter()
                self._session.run(None, feeds)
                seconds.append(time.perf_counter() - started)
        except Exception as error:
            raise VerificationError(f"ONNX Runtime fails to run the model: {join_lines(error)}") from error
        return seconds

    def end_profile(self) -> str:
        """End the profile; the path of its file."""
        path: str = self._session.end_profiling()
        return path


def _run_session(session: Any, names: Sequence[str], feeds: Mapping[str, Array], seconds: float) -> list[Any]:
    """Run a session; raises TimeoutError after so many seconds of processors."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    work = functools.partial(_call_session, session, names, feeds, options)
    return list(run_limited(work, seconds, lambda _: setattr(options, "terminate", True)))


def _call_session(session: Any, names: Sequence[str], feeds: Mapping[str, Array], options: Any = None) -> list[Any]:
    """The results of a session; bfloat16, which it neither takes from numpy nor gives it, by its words."""
    if not any(_WORDS in one.type for one in (*session.get_inputs(), *session.get_outputs())):
        return list(session.run(names, feeds, options))
    import onnx
    import onnxruntime

    make = onnxruntime.OrtValue
    given = {
        name: make.ortvalue_from_numpy(one)
        if one.dtype.name != _WORDS
        else make.ortvalue_from_numpy_with_onnx_type(one.view(np.uint16), onnx.TensorProto.BFLOAT16)
        for name, one in feeds.items()
    }
    return [_read_words(one) for one in session.run_with_ort_values(names, given, options)]


def _read_words(value: Any) -> Array:
    if _WORDS not in value.data_type():
        return np.asarray(value.numpy())
    shape = value.shape()
    words = (ctypes.c_uint16 * int(np.prod(shape, dtype=np.int64))).from_address(value.data_ptr())
    return np.array(words, np.uint16).view(find_dtype(_WORDS)).reshape(shape)


def _make_options(
    threads: int, profile: Path | None, optimized: bool, saturating: bool, single: bool, folder: Path | None
) -> Any:
    """The options of a session, as `Runtime` takes them; a `single` one does not round beside weights of few bits."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = f"{profile / 'profile'}"
    if not saturating:
        options.add_session_config_entry(PRECISE, "1")
    if single:
        options.add_session_config_entry(LEVEL_OF_JOINED, SINGLE)
    if folder is not None and is_text(os.fspath(folder)):
        options.add_session_config_entry(_FOLDER, os.fspath(folder))
    return options


def _start_session(source: bytes | str, options: Any, seconds: float | None) -> Any:
    """Load a model; raises TimeoutError where that takes more than so many seconds, and what the runtime raises."""
    import onnxruntime

    def start() -> Any:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    if seconds is None:
        return start()
    return run_limited(start, seconds, lambda _: options.set_load_cancellation_flag(True))


def _try(load: Callable[[], Any]) -> Any:
    """A session, None where the runtime refuses the model; raises TimeoutError where that takes too long."""
    try:
        return load()
    except TimeoutError:
        raise
    except Exception:  # some models are refused like that and taken as they are
        return None


def _convert_input(array: Array) -> Array:
    """Strings are bytes on one side and text on the other, complex numbers become pairs of real ones."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1)
    if array.dtype != object:
        return array
    return np.array([item.decode() for item in array.ravel()], dtype=object).reshape(array.shape)

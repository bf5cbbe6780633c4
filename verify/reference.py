"""ONNX models as originals: ONNX Runtime in the place of the interpreter, for models that were ONNX before."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.base.errors import VerificationError
from ..engine.dialects.ops_files import load as load_operators
from ..frontends.onnx_converter import ConversionError, convert_to_first
from .crashes import find_signal
from .frames import Array
from .inputs import SECOND, SIZES, draw
from .interface_grids import InterfaceGrids, read_interface_grids
from .interpreter import InterpreterError, Kernels, ModelTimeoutError, Signature, Source, Tensor
from .low_bit_weights import reset_accuracy_level
from .runtime import Runtime
from .symbolic_sizes import compute_size
from .time_limit import TIME_LIMIT

#: the extents that free sizes are tried with, the first of a tensor with those of batches
_BATCHES, _SIZES = (1, 2), (*SIZES, 128, 480)
#: those of images, of which too little is left behind several layers where they are smaller
_PIXELS = (64, *(size for size in _SIZES if size != 64))
#: those of sound, of which windows leave nothing where it is shorter
_SOUND = (*_SIZES, SECOND)
#: the rank from which a tensor is taken for an image
_IMAGE = 4
#: the element types of masks
_WHOLE = ("int32", "int64")
#: so many combinations of sizes are tried before a model is said not to run
_TRIED = 60

#: what stands beside a comparison with a model of an opset that the runtime does not have
CONVERTED = (
    "ONNX Runtime has no kernels of the original's opset: compared with what onnx's version converter makes of it"
)

#: what runs a model on samples
Run = Callable[[Sequence[Sequence[Array]]], list[list[Array]]]


@dataclass(slots=True, eq=False)
class Reference:
    """ONNX Runtime, asked as the interpreter is: what a model's inputs and outputs are, and what it computes.

    Its sets of kernels are the runtime with its own optimizations, and without and in one thread, as what it quantizes
    by the range of what a thread has depends on how many there are, and last as precise with weights of few bits as a
    model's operands are, where it lets the runtime round. `fixed` are the extents that the
    result has where the original's are free, for each input in order: those are tried first. To load a model takes no
    more than so many `seconds`, nor does a run. A `precise` one keeps products of bytes from saturating, which the
    runtime does where it optimizes: then all sets of kernels are with its optimizations.
    """

    fixed: Sequence[Sequence[object]] = ()
    seconds: float = TIME_LIMIT
    precise: bool = False
    _loaded: dict[tuple[str | bytes, Kernels], Runtime] = field(default_factory=dict, init=False)
    _described: dict[str | bytes, Signature] = field(default_factory=dict, init=False)
    _harmless: set[tuple[object, ...]] = field(default_factory=set, init=False)
    #: models of opsets of which the runtime has no kernels, at the first of which it has them
    _converted: dict[str | bytes, bytes] = field(default_factory=dict, init=False)

    def describe(self, model: Source) -> Signature:
        """Read the inputs and outputs of a model; sizes that are free are the first with which it runs.

        Raises InterpreterError where the runtime refuses it, or runs with none of the sizes in time.
        """
        key = model if isinstance(model, bytes) else os.fspath(model)
        if key not in self._described:
            runtime = self._load(key, Kernels.OPTIMIZED)
            run = functools.partial(self.run, key, kernels=Kernels.OPTIMIZED)
            self._described[key] = _find_sizes(runtime, run, read_interface_grids(key), self.fixed)
        return self._described[key]

    def list_shapes(self, model: Source) -> list[tuple[object, ...]]:
        """The shapes of the inputs of a model as it says them, with a name or nothing for each size that is free."""
        runtime = self._load(model if isinstance(model, bytes) else os.fspath(model), Kernels.OPTIMIZED)
        return [runtime.read_shape(name) for name in runtime.inputs]

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Run a model on samples and return the outputs of each; raises InterpreterError where it does not run."""
        key = model if isinstance(model, bytes) else os.fspath(model)
        runtime = self._load(key, kernels)
        for sample in samples:
            self._require_harmless(key, sample)
        try:
            return [runtime.run(sample) for sample in samples]
        except ModelTimeoutError:
            raise
        except VerificationError as error:
            raise InterpreterError(f"{error}") from error

    def list_remarks(self) -> tuple[str, ...]:
        """What to say beside a comparison of how the originals were run."""
        return (CONVERTED,) if self._converted else ()

    def _require_harmless(self, key: str | bytes, sample: Sequence[Array]) -> None:
        """Raise InterpreterError where a run on inputs of these extents would end this process.

        Tried is the runtime in one thread, as a copy of a process has no other.
        """
        shapes = key, tuple(array.shape for array in sample)
        if shapes in self._harmless:
            return
        runtime = self._load(key, Kernels.OPTIMIZED)
        if ended := find_signal(lambda: runtime.run(sample), self.seconds):
            raise InterpreterError(f"ONNX Runtime crashes ({ended}) when it runs the model")
        self._harmless.add(shapes)

    def _load(self, key: str | bytes, kernels: Kernels) -> Runtime:
        if (key, kernels) not in self._loaded:
            source, folder = key, None
            if kernels is Kernels.REFERENCE:
                found = reset_accuracy_level(key)
                if found is None:
                    raise InterpreterError("ONNX Runtime has no other kernels")
                source, folder = found, None if isinstance(key, bytes) else Path(key).absolute().parent
            try:
                self._loaded[key, kernels] = self._start_runtime(self._converted.get(key, source), kernels, folder)
            except ModelTimeoutError:
                raise
            except VerificationError as error:
                later = None if key in self._converted else _convert_early(key)
                if later is None:
                    raise InterpreterError(f"{error}") from error
                self._converted[key] = later
                return self._load(key, kernels)
        return self._loaded[key, kernels]

    def _start_runtime(self, source: str | bytes, kernels: Kernels, folder: Path | None) -> Runtime:
        alone = kernels is Kernels.OPTIMIZED
        return Runtime(
            source,
            int(alone),
            optimized=self.precise or not alone,
            precise=self.precise,
            folder=folder,
            seconds=self.seconds,
        )


def _convert_early(key: str | bytes) -> bytes | None:
    """A model of an early opset at the first that rules know; None for another, or where there is no way."""
    try:
        return convert_to_first(key, load_operators().find_dialect("onnx"))
    except ConversionError:
        return None


def _find_sizes(
    runtime: Runtime, run: Run, interface: InterfaceGrids, fixed: Sequence[Sequence[object]] = ()
) -> Signature:
    """The inputs and outputs of a model at the first sizes with which it runs, with what is known of their grids."""
    names: dict[Any, Sequence[int]] = {}
    shapes = [runtime.read_shape(name) for name in runtime.inputs]
    every = dict.fromkeys((extent for shape in shapes for extent in shape if isinstance(extent, str)), 1)
    sums = {name for name in every if compute_size(name, every) is not None}
    others = {name: 1 for name in every if name not in sums}
    sums = {name for name in sums if compute_size(name, others) is not None}  # of sums of sums nothing is known
    for number, (name, asked) in enumerate(zip(runtime.inputs, shapes, strict=True)):
        known = fixed[number] if number < len(fixed) else ()
        # Of an input whose axes are in another order, nothing is said.
        alike = len(asked) == len(known) and all(
            a == b for a, b in zip(asked, known, strict=True) if isinstance(a, int)
        )
        for place, extent in enumerate(asked):
            if not isinstance(extent, int) and extent not in sums:
                alone = place == len(asked) - 1 and all(isinstance(other, int) for other in asked[1:-1])
                sound = alone and runtime.find_element_type(name).startswith("float")
                tried = _PIXELS if len(asked) >= _IMAGE else _SOUND if sound else _SIZES
                usual = _BATCHES if place == 0 and len(asked) > 1 else tried
                said = known[place] if alike else None
                names.setdefault(_name_size(name, place, extent), (said, *usual) if isinstance(said, int) else usual)
    failure: VerificationError | None = None
    for sizes in _combine(names):
        inputs = tuple(_add_grid(_describe_tensor(runtime, name, sizes), interface) for name in runtime.inputs)
        for [sample] in draw(inputs):
            try:
                (results,) = run([sample])
            except ModelTimeoutError:
                raise
            except VerificationError as error:
                failure = error
                continue
            outputs = zip(runtime.outputs, results, strict=True)
            described = (
                Tensor(name, _name_type(one), one.shape, one.shape, step=interface.steps.get(name, 0.0))
                for name, one in outputs
            )
            return Signature(inputs, tuple(_add_grid(one, interface) for one in described))
    raise InterpreterError(f"{failure or 'the model has too many free sizes'}")


def _name_size(name: str, place: int, extent: object) -> object:
    """What stands for a free size: its name, or where it has none its place."""
    return (name, place) if extent is None or extent == "" else extent


def _combine(names: Mapping[Any, Sequence[int]]) -> Iterator[dict[Any, int]]:
    """Sizes for names, those first that are near the front of each list."""
    places = itertools.product(*(range(len(sizes)) for sizes in names.values()))
    ordered = sorted(itertools.islice(places, 10_000), key=sum)[:_TRIED]
    for one in ordered:
        yield {name: names[name][place] for name, place in zip(names, one, strict=True)}


def _describe_tensor(runtime: Runtime, name: str, sizes: Mapping[Any, int]) -> Tensor:
    asked = runtime.read_shape(name)
    sums = [compute_size(extent, sizes) for extent in asked]
    shape = tuple(
        extent if isinstance(extent, int) else sizes[_name_size(name, place, extent)] if total is None else total
        for place, (extent, total) in enumerate(zip(asked, sums, strict=True))
    )
    kind = runtime.find_element_type(name)
    return Tensor(name, kind, shape, shape, counts=kind in _WHOLE and any(total is not None for total in sums))


def _add_grid(tensor: Tensor, interface: InterfaceGrids) -> Tensor:
    """A tensor with the scale and the zero point of its codes, where it has such."""
    if tensor.name not in interface.grids:
        return tensor
    scale, zero = interface.grids[tensor.name]
    return replace(tensor, scales=(scale,), zero_points=(zero,))


def _name_type(array: Array) -> str:
    return "object" if array.dtype.kind in "OUS" else np.dtype(array.dtype).name

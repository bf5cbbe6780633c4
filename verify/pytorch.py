"""Programs of PyTorch as originals: torch in the place of the interpreter."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.base.errors import VerificationError, join_lines
from .frames import Array, find_dtype
from .interpreter import InterpreterError, Kernels, ModelTimeoutError, Signature, Source, Tensor, locate
from .time_limit import TIME_LIMIT, end_thread, run_limited

#: modules that add operators to torch when they are imported: those of quantized programs, and of images
_REGISTERING = ("torch.ao.quantization.fx._decomposed", "torchao", "torchvision")


@dataclass(slots=True, eq=False)
class PyTorch:
    """torch, asked as the interpreter is: what a program's inputs and outputs are, and what it computes.

    Its sets of kernels are torch as it is, and without oneDNN, which sums in another order. To load a program takes no
    more than so many `seconds`, nor does a run. Raises VerificationError where torch is not installed.
    """

    seconds: float = TIME_LIMIT
    _loaded: dict[str | bytes, _Program] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if importlib.util.find_spec("torch") is None:
            raise VerificationError("a program of PyTorch is run by torch, which is not installed: pip install torch")

    def describe(self, model: Source) -> Signature:
        """Read the inputs and outputs of a program; raises InterpreterError where torch cannot load it.

        Sizes that are free are those of the example that it was exported with.
        """
        return self._load(model).signature

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Run a program on samples and return the outputs of each, its buffers as they are in the file for each.

        Raises InterpreterError where it does not run.
        """
        import torch

        if kernels is Kernels.REFERENCE:
            raise InterpreterError("torch has no other kernels")
        program = self._load(model)

        def compute(sample: Sequence[Array]) -> list[Array]:
            own = torch.backends.mkldnn.flags(enabled=kernels is Kernels.DEFAULT)
            with warnings.catch_warnings(action="ignore"), torch.no_grad(), own:
                return program.run(sample)

        try:
            return [run_limited(functools.partial(compute, sample), self.seconds, end_thread) for sample in samples]
        except TimeoutError:
            raise ModelTimeoutError(f"torch did not end the program in {self.seconds:g} s") from None
        except Exception as error:  # of any kind: what a program asserts of its inputs is one of them
            raise InterpreterError(f"torch fails to run the program: {_format_error(error)}") from error

    def read_examples(self, model: Source) -> list[list[Array]]:
        """The sample that a program was exported with; none where it was saved without."""
        return self._load(model).examples

    def _load(self, model: Source) -> _Program:
        key = locate(model)
        if key not in self._loaded:

            def load() -> _Program:
                with warnings.catch_warnings(action="ignore"):
                    return _Program(load_program(key))

            try:
                self._loaded[key] = run_limited(load, self.seconds, end_thread)
            except TimeoutError:
                raise ModelTimeoutError(f"torch did not load the program in {self.seconds:g} s") from None
            except Exception as error:  # of any kind, as classes of others load what they saved
                raise InterpreterError(f"torch cannot load the program: {_format_error(error)}") from error
        return self._loaded[key]


def load_program(source: str | bytes) -> Any:
    """A saved program; where torch knows not all of its operators, those that installed packages add are registered."""
    try:
        return _load_as_known(source)
    except Exception:
        if not _register_operators():
            raise
    return _load_as_known(source)


def _load_as_known(source: str | bytes) -> Any:
    """A saved program, with the operators that torch knows.

    torch writes to its log what is wrong, and raises an error that says to look there: this one raises what it wrote.
    """
    import torch

    log, told = logging.getLogger("torch.export"), _Errors()
    before = log.propagate, log.handlers
    log.propagate, log.handlers = False, [told]
    try:
        return torch.export.load(io.BytesIO(source) if isinstance(source, bytes) else source)
    except Exception:
        if told.found is None:
            raise
        raise told.found from None
    finally:
        log.propagate, log.handlers = before


class _Errors(logging.Handler):
    """A log that keeps what the last error told of began with."""

    found: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            error = record.exc_info[1]
            while error is not None and (earlier := error.__cause__ or error.__context__) is not None:
                error = earlier
            self.found = error


def _register_operators() -> bool:
    """Import what adds operators to torch; whether there was any such."""
    found = [name for name in _REGISTERING if name not in sys.modules and importlib.util.find_spec(name) is not None]
    for name in found:
        with contextlib.suppress(Exception):  # a package for another torch is as good as none
            importlib.import_module(name)
    return bool(found)


class _Program:
    """An exported program that torch has loaded."""

    def __init__(self, program: Any) -> None:
        import torch
        from torch.utils import _pytree as pytree

        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        module = program.module()
        self._module, self._form = module, program.call_spec.in_spec
        self._kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
        entries = [spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        results = [spec.arg for spec in program.graph_signature.output_specs if spec.kind.name in _YIELDED]
        # What is no tensor and no size is a part of the program, which is called with it all the same.
        self._leaves = [getattr(entry, "value", None) for entry in entries]
        asked = [place for place, entry in enumerate(entries) if not hasattr(entry, "value")]
        self._places = [(place, isinstance(values[entries[place].name], torch.Tensor)) for place in asked]
        given = program.example_inputs and pytree.tree_leaves(program.example_inputs)
        self.examples = [[convert_to_array(given[place]) for place in asked]] if given else []
        self.signature = Signature(
            tuple(_describe_tensor(entries[place].name, values[entries[place].name]) for place in asked),
            tuple(
                _describe_tensor(result.name, getattr(result, "value", values.get(result.name)))
                for result in results
                if getattr(result, "value", result) is not None
            ),
        )

    def run(self, sample: Sequence[Array]) -> list[Array]:
        """Run it on one sample, its buffers as they were saved."""
        from torch.utils import _pytree as pytree

        for buffer, begun in self._kept:
            buffer.copy_(begun)
        leaves = list(self._leaves)
        for (place, is_tensor), array in zip(self._places, sample, strict=True):
            leaves[place] = _convert_to_tensor(array) if is_tensor else array.item()
        arguments, named = pytree.tree_unflatten(leaves, self._form)
        found = pytree.tree_leaves(self._module(*arguments, **named))
        return [convert_to_array(one) for one in found if one is not None]


#: the kinds of results that a caller sees
_YIELDED = ("USER_OUTPUT", "LOSS_OUTPUT")


def _describe_tensor(name: str, value: Any) -> Tensor:
    """An input or output, from what torch knows of it without running the program; what is no tensor has no axes."""
    import torch

    if not isinstance(value, torch.Tensor):
        kind = {bool: "bool", torch.SymBool: "bool", float: "float32", torch.SymFloat: "float32"}
        return Tensor(name, kind.get(type(value), "int64"), (), ())
    extents = [getattr(getattr(extent, "node", None), "hint", extent) for extent in value.shape]
    free = [not isinstance(extent, int) for extent in value.shape]
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in extents)
    return Tensor(
        name,
        f"{value.dtype}".removeprefix("torch."),
        shape,
        tuple(-1 if unknown else extent for unknown, extent in zip(free, shape, strict=True)),
    )


def _convert_to_tensor(array: Array) -> Any:
    """An array as a tensor of its own, which the program may write to."""
    import torch

    if array.dtype.name == "bfloat16":  # which torch does not take from numpy
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def convert_to_array(result: Any) -> Array:
    """A result as an array: complex numbers are pairs of real ones, as converted."""
    import torch

    if not isinstance(result, torch.Tensor):
        return np.asarray(result, np.float32 if isinstance(result, float) else None)
    if result.is_complex():
        result = torch.view_as_real(result.resolve_conj())
    if result.dtype is torch.bfloat16:
        return np.array(result.detach().float().numpy().astype(find_dtype("bfloat16")))
    return np.array(result.detach().resolve_neg().numpy())


def _format_error(error: Exception) -> str:
    return join_lines(error)[:500]

"""Originals: a TensorFlow Lite model with what the interpreter computes for each of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ..engine.base.errors import ModelError, VerificationError
from ..engine.base.provenance import SOURCE
from ..engine.dialects.operators import Catalogue
from ..engine.dialects.ops_files import load
from ..frontends import tflite_reader
from .adapter import convert_to_real
from .excerpt import write_excerpt
from .frames import Array
from .interpreter import Interpreter, InterpreterError, Kernels, Signature, Source, Tensor
from .reals import write_real_form


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A tensor of the original: the value of the graph that it is, and what the interpreter computes for it."""

    value: ir.Value
    tensor: Tensor
    content: Array

    @property
    def operator(self) -> str:
        """The operator that yields it, and its number."""
        node = self.value.producer()
        return "" if node is None else node.metadata_props[SOURCE]


@dataclass(frozen=True, slots=True)
class Original:
    """A model, a sample that the interpreter takes, and what each of its operators makes of it, in their order."""

    model: ir.Model
    catalogue: Catalogue
    interpreter: Interpreter
    signature: Signature
    sample: Sequence[Array]
    known: Sequence[Known]
    #: those that have computed what is known
    kernels: Kernels
    _parts: dict[tuple[Known, frozenset[Known], Kernels, bool], Array | None] = field(default_factory=dict)

    def list_shapes(self, known: Known) -> list[tuple[int, ...]]:
        """The shapes of tensors that have the same elements in the same order, as reshaping leaves them."""
        contents = {one.value: one.content for one in self.known}
        contents.update(zip(self.model.graph.inputs, self.sample, strict=True))
        found: list[tuple[int, ...]] = []
        work, seen = [known.value], {known.value}
        while work:
            value = work.pop()
            node = value.producer()
            near = [] if node is None else [one for one in node.inputs if one is not None]
            near += [result for user, _ in value.uses() for result in user.outputs]
            for one in near:
                content = contents.get(one)
                if one in seen or content is None or content.shape in (known.content.shape, ()):
                    continue
                if content.size == known.content.size and np.array_equal(content.ravel(), known.content.ravel()):
                    seen.add(one)
                    work.append(one)
                    found.append(content.shape)
        return found

    def recompute(self, known: Known, given: frozenset[Known], kernels: Kernels, real: bool = False) -> Array | None:
        """What a set of kernels computes for a tensor from what is known of others, `real` with no codes in between.

        None where these kernels do not run the part of the model in between.
        """
        key = known, given, kernels, real
        if key not in self._parts:
            self._parts[key] = self._recompute(*key)
        return self._parts[key]

    def _recompute(self, known: Known, given: frozenset[Known], kernels: Kernels, real: bool) -> Array | None:
        # What a variable holds depends on more than the operators that lead to it.
        given |= {one for one in self.known if one is not known and _is_kept(one.value)}
        contents = {one.value: (one.tensor, one.content) for one in given}
        entries = zip(self.signature.inputs, self.sample, strict=True)
        contents.update(zip(self.model.graph.inputs, entries, strict=True))
        try:
            part, inputs = write_excerpt(self.model, self.catalogue, known.value, {one.value for one in given})
            if not all(value in contents for value in inputs):
                return None  # it reads what the interpreter did not keep
            feeds = [contents[value] for value in inputs]
            sample = [convert_to_real(*feed) if real else feed[1] for feed in feeds]
            [[found]] = self.interpreter.run(write_real_form(part) if real else part, [sample], kernels)
        except (ModelError, VerificationError):
            return None  # the format cannot say the part alone, or these kernels lack an operator
        return found


def _is_kept(value: ir.Value) -> bool:
    """Whether a value is read from what has no type of its own, a handle of something that the model keeps."""
    node = value.producer()
    return node is not None and any(operand is not None and operand.dtype is None for operand in node.inputs)


def read(source: Source, interpreter: Interpreter, samples: Sequence[Sequence[Array]]) -> Original:
    """Read a model and run it on the first of some samples that it takes.

    Of a model that runs with the interpreter's default kernels alone, which keep no inner tensor, outputs are known.
    Raises ModelError for what is no model, InterpreterError where it does not run.
    """
    catalogue, signature = load(), interpreter.describe(source)
    model = tflite_reader.read(source, catalogue)
    nodes = list(model.graph)
    failure: InterpreterError | None = None
    for kernels in (Kernels.OPTIMIZED, Kernels.DEFAULT):
        for sample in samples:
            try:
                if kernels is Kernels.OPTIMIZED:
                    layers = interpreter.run_layers(source, sample)
                    known = [
                        Known(nodes[layer.number].outputs[layer.place], layer.tensor, one) for layer, one in layers
                    ]
                else:
                    [results] = interpreter.run(source, [sample], kernels)
                    ends = zip(model.graph.outputs, signature.outputs, results, strict=True)
                    known = [Known(*end) for end in ends if end[0].producer() is not None]
            except InterpreterError as error:
                failure = failure or error
                continue
            return Original(model, catalogue, interpreter, signature, sample, known, kernels)
    assert failure is not None
    raise failure

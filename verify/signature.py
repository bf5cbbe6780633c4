"""One signature of a model, run as if it were the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..conversion.signatures import NAME
from .frames import Array
from .interpreter import Interpreter, Kernels, Signature, Source, Tensor


@dataclass(frozen=True, slots=True)
class Signed:
    """An interpreter that calls models by a signature; inputs and outputs are in the order of the names given.

    It raises what the interpreter raises.
    """

    interpreter: Interpreter
    key: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def describe(self, model: Source) -> Signature:
        """Read the inputs and outputs of the signature."""
        found = self.interpreter.describe(model, self.key)
        return replace(
            found, inputs=_order_tensors(found.inputs, self.inputs), outputs=_order_tensors(found.outputs, self.outputs)
        )

    def run(
        self, model: Source, samples: Sequence[Sequence[Array]], kernels: Kernels = Kernels.DEFAULT
    ) -> list[list[Array]]:
        """Call the signature on samples and return the outputs of each."""
        found = self.describe(model)
        inputs, outputs = ([tensor.name for tensor in side] for side in (found.inputs, found.outputs))
        return self.interpreter.run(model, samples, kernels, signature=(self.key, inputs, outputs))


def read_names(metadata: Mapping[str, str]) -> dict[str, str]:
    """What a source calls each input or output that has its name from a signature, as a model's metadata says."""
    begin = f"{NAME}."
    return {key.removeprefix(begin): name for key, name in metadata.items() if key.startswith(begin)}


def _order_tensors(tensors: tuple[Tensor, ...], names: tuple[str, ...]) -> tuple[Tensor, ...]:
    """Tensors in the order of names; those called otherwise there stand in the places that are left."""
    known = {tensor.name: tensor for tensor in tensors}
    others = iter([tensor for tensor in tensors if tensor.name not in names])
    return tuple(found for name in names if (found := known.get(name) or next(others, None)) is not None)

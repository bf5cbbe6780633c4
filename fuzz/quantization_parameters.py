"""Quantization parameters generated for the operands and results of one operator, as ops.yaml constrains them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..engine.base.quantization import CODES, MATCHED, Quantization
from ..engine.dialects.operators import OperatorSpec
from ..verify.frames import Array
from .choices import Choices
from .elements import draw_axis_grid, draw_codes, draw_grid, draw_sums, make_grid
from .finding import Rejected
from .sketch import Value

#: what ops.yaml says of the grids of values
_SAME, _OWN = "same", "own"
#: in so many of a hundred draws all scales are powers of two, which some kernels compute otherwise
_OF_TWO = 12
#: in so many a sum says no scale, and is an input of the model
_UNSAID, _FED = 6, 6
#: in so many of a hundred draws values of operators that move codes stand for different numbers
_MIXED = 20
#: of so many fixed cases the last has values that stand for different numbers, where ops.yaml lets it
_TURNS, _LAST = 4, 3


class StepQuantization:
    """The quantization of one step in the making."""

    def __init__(self, choices: Choices, spec: OperatorSpec) -> None:
        self._choices = choices
        self._places = {operand.name: place for place, operand in enumerate(spec.operands)}
        self._products = spec.facts.products
        self._channels = {self._places[name]: axis for name, axis in spec.facts.channels.items()}
        self._fixed = spec.facts.grid
        self._alike = spec.facts.quantization in (CODES, MATCHED)
        self._mixed = (self._fixed == _SAME or (self._alike and self._fixed != _OWN)) and choices.draw_chance(
            _MIXED, True if choices.turn is not None and choices.turn % _TURNS == _LAST else None
        )
        self._limits = spec.facts.fuzz.limits
        faulty_from = spec.facts.fuzz.faulty_from
        self._faulty_from = np.inf if faulty_from is None else faulty_from
        self._states = {self._places[name]: asked for name, asked in spec.facts.fuzz.states.items()}
        self._grids: dict[int, Quantization] = {}
        self._powers = choices.draw_chance(_OF_TWO)
        self._bits = 0

    def is_sum(self, position: int) -> bool:
        """Whether an operand is added to a product of others, all of which are quantized."""
        return bool(self._list_factors(position))

    def is_free(self, position: int) -> bool:
        """Whether an operand is drawn for its place alone: a sum, stored as its factors ask, or limited."""
        return self.find_limit(position) is not None or self.is_sum(position)

    @property
    def limited(self) -> bool:
        """Whether ops.yaml says of any operand what its numbers must be."""
        return bool(self._limits)

    def find_limit(self, position: int) -> str | None:
        """What ops.yaml says that an operand's integers must be, None where nothing."""
        return next((limit for name, limit in self._limits.items() if self._places[name] == position), None)

    def take(self, position: int, value: Value) -> None:
        """Enter an operand that is there already.

        Raises Rejected where kernels are wrong from some scale on, and it has a larger one.
        """
        if value.grid is not None:
            if _read_scale(value.grid) >= self._faulty_from:
                raise Rejected(f"kernels are wrong about codes of the scale {_read_scale(value.grid):g}")
            self._grids[position] = value.grid

    def store_type(self, dtype: ir.DataType, content: Array) -> ir.DataType:
        """The element type of what was drawn, which for a sum is wider than that of its factors."""
        return ir.DataType.from_numpy(content.dtype) if content.dtype.itemsize > 2 else dtype

    def draw_operand(
        self,
        position: int,
        dtype: ir.DataType,
        shape: Sequence[int],
        layout: str | None,
        before: Sequence[Value | None],
    ) -> tuple[Array, Quantization | None, bool] | None:
        """Draw a quantized operand: its codes, its grid, and whether it must be constant as weights are.

        Sums may come without a grid: kernels know it without being told.
        """
        factors = self._list_factors(position)
        if factors:
            # Kernels add up 64 bits where one factor has 16, and 32 where all or none have.
            sixteen = [value.dtype == ir.DataType.INT16 for place in factors if (value := before[place]) is not None]
            wide = ir.DataType.INT64 if any(sixteen) and not all(sixteen) else ir.DataType.INT32
            scale = functools.reduce(np.multiply, [self._grids[place].scale for place in factors])
            made = Quantization(scale, np.zeros(scale.shape, np.int64), 0)
            unsaid = wide == ir.DataType.INT32 and self._choices.draw_chance(_UNSAID)
            fed = self._choices.draw_chance(_FED)
            return draw_sums(self._choices, wide, shape), None if unsaid else made, not fed
        if not dtype.is_integer():
            return None
        channels = self._channels.get(position)
        weights = channels is not None
        # Kernels of sixteen bits compare codes, whatever those stand for.
        free = self._fixed == _OWN and dtype.bitwidth == 8
        alike = self._grids and not free and ((self._alike and not self._mixed) or self._fixed == _SAME)
        # Kernels that have a layout take signed weights for symmetric.
        symmetric = weights and dtype == ir.DataType.INT8
        before_it = next(iter(self._grids.values()), None)
        if self._bits not in (0, dtype.bitwidth) and not alike:
            before_it = None  # scales of sixteen bits are finer
        self._bits = self._bits or dtype.bitwidth
        if before_it is not None and (
            alike
            or (self._choices.draw_chance(30) and not (symmetric and layout is not None and before_it.zero_point.any()))
        ):
            found = before_it
        elif (
            channels is not None and layout is not None and dtype == ir.DataType.INT8 and self._choices.draw_chance(60)
        ):
            found = draw_axis_grid(self._choices, shape[channels], channels)
        else:
            found = draw_grid(self._choices, dtype, symmetric, self._powers or (self._alike and free))
        self._grids[position] = found
        zero = int(found.zero_point.flat[0])
        return draw_codes(self._choices, dtype, shape, weights, zero, self.find_limit(position)), found, weights

    def draw_state(self, position: int, dtype: ir.DataType) -> Quantization:
        """The grid of an operand that is state: what kernels ask for, or any."""
        asked = self._states.get(position)
        found = draw_grid(self._choices, dtype, True) if asked is None else make_grid(float(asked[0]), int(asked[1]))
        self._grids[position] = found
        return found

    def list_result_grids(self, dtype: ir.DataType) -> Sequence[Quantization]:
        """Grids that a result of some type may have, those to try first in front; none where it is not quantized."""
        if dtype not in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16):
            return ()
        if isinstance(self._fixed, dict):
            fixed = self._fixed.get(f"q{'u' if dtype == ir.DataType.UINT8 else 'i'}{dtype.bitwidth}")
            if fixed is not None and self._grids:
                return (make_grid(float(fixed[0]), int(fixed[1])),)
        if not self._grids and self._fixed != _OWN:
            return ()
        # No kernel yields codes with a scale for each channel, but where it moves them.
        known = [found for found in self._grids.values() if self._alike or not found.per_axis]
        same = next(iter(known), None)
        own = max(known, key=_read_scale) if self._powers and known else draw_grid(self._choices, dtype)
        if same is None:
            return (own,)
        if not self._mixed and (self._fixed == _SAME or (self._alike and self._fixed != _OWN)):
            return (same,)
        return (own, same)

    def _list_factors(self, position: int) -> list[int]:
        """The places of the operands whose product has the scale of one, where all of them are quantized."""
        for name, factors in self._products.items():
            places = [self._places[factor] for factor in factors]
            if self._places[name] == position and all(place in self._grids for place in places):
                return places
        return []


def _read_scale(quantization: Quantization) -> float:
    return float(quantization.scale.flat[0])

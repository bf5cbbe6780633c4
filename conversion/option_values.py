"""The words that some options take."""

from __future__ import annotations

#: what the inner values of a quantized model may be turned into
ACTIVATIONS = ("int8", "uint8")
#: what kernels with real activations and integer weights compute with
HYBRID = ("integers", "real")

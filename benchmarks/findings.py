"""Show each finding of docs/appendix/findings.md anew: what comes out of a minimal model, and what is right.

    python benchmarks/findings.py [--out FOLDER]

What is right is computed with numpy, of quantized operands in real numbers. Each model runs in a process of its own,
as some end it. With --out the models and their inputs are kept: `NAME.tflite` or `NAME.onnx`, and `NAME.npz`.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from nnrewrite.backends import probe
from nnrewrite.engine.base.errors import VerificationError
from nnrewrite.engine.base.quantization import Quantization
from nnrewrite.engine.dialects.operators import Catalogue
from nnrewrite.engine.dialects.ops_files import load
from nnrewrite.verify import Interpreter, Kernels
from nnrewrite.verify.frames import Array
from nnrewrite.verify.runtime import Runtime

#: how ONNX models begin, but for the opset
HEAD = '<ir_version: 10, opset_import: ["": {}]> g '


@dataclass(frozen=True, slots=True)
class Finding:
    """A model that does not yield what is right.

    `right` is its first result; `kernels` are the interpreter's, None for ONNX Runtime.
    """

    name: str
    model: bytes
    inputs: tuple[Array, ...]
    right: Array
    kernels: Kernels | None = None

    @property
    def suffix(self) -> str:
        return ".onnx" if self.kernels is None else ".tflite"


def grid(scale: float, zero_point: int = 0) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point]))


def real(codes: Array, on: Quantization) -> Array:
    return (codes.astype(np.float64) - on.zero_point) * on.scale


def codes(numbers: Array, on: Quantization, dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(numbers / on.scale + on.zero_point), limits.min, limits.max).astype(dtype)


def list_interpreter_findings(catalogue: Catalogue) -> Iterator[Finding]:
    """Those of the TensorFlow Lite interpreter."""
    random = np.random.default_rng(1)
    tenth, whole = grid(0.1), grid(1.0)

    def single(
        name: str, op: str, fed: dict[str, tuple[Array, Quantization]], constants: dict[str, Any], right: Any,
        kernels: Kernels = Kernels.DEFAULT, to: Quantization | None = tenth, **options: Any,
    ) -> Finding:  # fmt: skip
        inputs: dict[str, Any] = {key: (value.dtype.type, value.shape, on) for key, (value, on) in fed.items()}
        described: Any = (right.dtype.type, right.shape) if to is None else (right.dtype.type, right.shape, to)
        model = probe.write_operator_model(catalogue, op, inputs | constants, [described], **options)
        return Finding(name, model, tuple(value for value, _ in fed.values()), right, kernels)

    a, b = np.array([0, 1, 2, 3], np.uint8), np.array([51, 255, 242, 204], np.uint8)
    yield single("div_uint8", "DIV", {"a": (a, tenth), "b": (b, tenth)}, {},
                 codes(real(a, tenth) / real(b, tenth), tenth, np.uint8))  # fmt: skip

    x = random.integers(-100, 100, (2, 3, 4)).astype(np.int8)
    product = codes(real(x, whole).prod((0, 2), keepdims=True), whole, np.int8)
    yield single("reduce_prod_int8", "REDUCE_PROD", {"x": (x, whole)}, {"axes": np.array([-1, 0], np.int32)}, product,
                 to=whole, keep_dims=True)  # fmt: skip

    x, on = random.integers(-100, 100, (2, 3, 16)).astype(np.int8), grid(0.1)
    total = codes(real(x, on).sum(2), grid(0.7), np.int8)
    yield single("sum_int8_reference", "SUM", {"x": (x, on)}, {"axes": np.array([2], np.int32)}, total,
                 Kernels.REFERENCE, grid(0.7))  # fmt: skip

    x, w = random.integers(-300, 300, (2, 4)).astype(np.int16), random.integers(-300, 300, (5, 4)).astype(np.int16)
    bias = np.arange(1, 6) * 1000
    exact = codes((x.astype(np.float64) @ w.T + bias) * 1e-2, grid(1.0), np.int16)
    yield single("fully_connected_int16_weights", "FULLY_CONNECTED", {"x": (x, tenth)},
                 {"w": (w, tenth), "b": (bias, grid(0.01))}, exact, to=whole)  # fmt: skip

    a, b = np.array([[-1, 16, 15], [-18, 1, 13]], np.int16), np.array([-1, 16, 15], np.int16)
    for scale, name in ((2.0, "not_equal_int16"), (1.0, "not_equal_int16_of_scale_one")):
        yield single(name, "NOT_EQUAL", {"a": (a, grid(scale)), "b": (b, grid(scale))}, {}, a != b, to=None)

    a, b = random.integers(-99, 99, (2, 3, 4)).astype(np.int16), random.integers(-99, 99, 4).astype(np.int16)
    half, quarter = grid(0.5), grid(0.25)
    yield single("add_int16_power_of_two", "ADD", {"a": (a, half), "b": (b, quarter)}, {},
                 codes(real(a, half) + real(b, quarter), half, np.int16), to=half, pot_scale_int16=True)  # fmt: skip


def list_runtime_findings() -> Iterator[Finding]:
    """Those of ONNX Runtime."""

    def text(name: str, body: str, inputs: Sequence[Array], right: Array, opset: int = 18) -> Finding:
        model = onnx.parser.parse_model(HEAD.format(opset) + body)
        return Finding(name, model.SerializeToString(), tuple(inputs), right)

    x: Array = np.full((2, 3), 70000, np.int32)
    with np.errstate(over="ignore"):
        product = np.multiply.reduce(x, axis=1, dtype=np.int32)
    yield text("reduce_prod_int32", """(int32[2,3] x) => (int32[2] y) <int64[1] a = {1}>
        { y = ReduceProd<keepdims=0>(x, a) }""",
               [x], product)  # fmt: skip

    wide = np.array([2588934144, -5, 7, -2588934144])
    for op, right in (("Sign", np.sign(wide)), ("Relu", np.maximum(wide, 0))):
        yield text(f"{op.lower()}_int64", f"(int64[4] x) => (int64[4] y) {{ y = {op}(x) }}", [wide], right)
    limits = "<int64 lo = {-128}, int64 hi = {127}>"
    yield text("clip_int64", f"(int64[4] x) => (int64[4] y) {limits} {{ y = Clip(x, lo, hi) }}", [wide],
               np.clip(wide, -128, 127))  # fmt: skip
    small = np.array([5, 2588934144, -2588934144, 3])
    for op, chosen in (("Min", np.minimum), ("Max", np.maximum)):
        yield text(f"{op.lower()}_int64", f"(int64[4] x, int64[4] z) => (int64[4] y) {{ y = {op}(x, z) }}",
                   [wide, small], chosen(wide, small))  # fmt: skip

    x = np.arange(108, dtype=np.float32).reshape(3, 3, 3, 4)
    padded = np.pad(x.transpose(0, 3, 1, 2), ((0, 0), (0, 1), (2, 0), (0, 0))).transpose(0, 2, 3, 1)
    yield text("pad_with_axes_between_transposes", """(float[3,3,3,4] x) => (float[3,5,3,5] y)
        <int64[4] p = {0, 2, 1, 0}, int64[2] a = {1, 2}>
        { t = Transpose<perm=[0,3,1,2]>(x) q = Pad(t, p, , a) y = Transpose<perm=[0,2,3,1]>(q) }""",
               [x], padded)  # fmt: skip

    x = np.arange(30, dtype=np.uint8).reshape(2, 3, 5)
    power = np.exp(x * 0.1 - (x * 0.1).max(-1, keepdims=True))
    share = power / power.sum(-1, keepdims=True)
    yield text("softmax_of_another_scale", """(uint8[2,3,5] x) => (uint8[2,3,5] y)
        <float s = {0.1}, uint8 z = {0}, float t = {0.0009765625}>
        { d = DequantizeLinear(x, s, z) m = Softmax(d) y = QuantizeLinear(m, t, z) }""",
               [x], codes(share, grid(2.0**-10), np.uint8))  # fmt: skip

    random = np.random.default_rng(1)
    x = random.integers(0, 255, (1, 4, 6, 6)).astype(np.uint8)
    w = ", ".join(str(number) for number in random.standard_normal(64).round(3))
    body = f"""(uint8[1,4,6,6] x) => (uint8[1,16,6,6] y)
        <float s = {{0.1}}, uint8 z = {{128}}, float[16,4,1,1] w = {{{w}}}>
        {{ d = DequantizeLinear(x, s, z) c = Conv(d, w) y = QuantizeLinear(c, s, z) }}"""
    matrix = np.array([float(number) for number in w.split(", ")], np.float32).reshape(16, 4)
    sums = np.einsum("oc,nchw->nohw", matrix.astype(np.float64), real(x, grid(0.1, 128)))
    yield text("real_weights_beside_codes", body, [x], codes(sums, grid(0.1, 128), np.uint8))

    x = np.arange(6, dtype=np.float32)
    yield text("split_into_more_than_its_results", """(float[6] x) => (float[2] y, float[2] z, float[2] w)
        { y, z, w = Split<axis=0, num_outputs=2>(x) }""", [x], x[:2])  # fmt: skip
    weights = [np.ones(shape, np.float32) for shape in ((1, 6, 3), (1, 6, 2))]
    yield text("gru_of_no_rows", """(float[n,1,3] x, float[1,6,3] w, float[1,6,2] r) => (float[n,1,1,2] y)
        { y = GRU<hidden_size=2>(x, w, r) }""",
               [np.ones((0, 1, 3), np.float32), *weights], np.zeros((0, 1, 1, 2), np.float32))  # fmt: skip


def send_difference(finding: Finding, sent: Any) -> None:
    """Run a model and send what is wrong with its first result: elements, and the largest difference."""
    try:
        if finding.kernels is None:
            found = Runtime(finding.model).run(finding.inputs)[0]
        else:
            with Interpreter() as interpreter:
                found = interpreter.run(finding.model, [finding.inputs], finding.kernels)[0][0]
    except VerificationError as error:
        sent.send(str(error).splitlines()[0][:120])
        return
    if np.array_equal(found, finding.right):
        sent.send("")
        return
    off = np.abs(found.astype(np.float64) - finding.right.astype(np.float64))
    sent.send(f"{np.count_nonzero(off)} of {off.size} elements differ, by {off.max():.6g} at most")


def outcome(run: Callable[..., None], finding: Finding) -> str:
    """What became of a model in a process of its own; nothing where it is right."""
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=run, args=(finding, send))
    process.start()
    send.close()
    try:
        return str(receive.recv())
    except EOFError:
        process.join()
        return f"the process ends with {process.exitcode}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where models and inputs are kept")
    asked = parser.parse_args()
    print("| model | run by | what is seen |")
    print("|---|---|---|")
    for finding in (*list_interpreter_findings(load()), *list_runtime_findings()):
        if asked.out is not None:
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / (finding.name + finding.suffix)).write_bytes(finding.model)
            np.savez(asked.out / f"{finding.name}.npz", *finding.inputs)
        by = "ONNX Runtime" if finding.kernels is None else f"the interpreter's {finding.kernels} kernels"
        print(f"| `{finding.name}` | {by} | {outcome(send_difference, finding) or 'right'} |", flush=True)


if __name__ == "__main__":
    main()

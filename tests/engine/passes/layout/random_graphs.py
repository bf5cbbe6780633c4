"""Random ONNX graphs of mixed layout categories, as models with the arrays to feed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper
from hypothesis import strategies as st

OPSET = 21
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)

Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Grower:
    """Grows a graph by one operator after the other, each over values that are there."""

    def __init__(self, draw: Draw, dynamic: bool = False) -> None:
        self.draw = draw
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.inputs: list[str] = []
        self.dynamic = dynamic
        for i in range(draw(st.integers(1, 2))):
            self.inputs.append(f"x{i}")
            self.shapes[f"x{i}"] = (1, draw(st.integers(1, 3)), draw(st.integers(2, 3)), draw(st.integers(2, 4)))

    def pick(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def value(self, rank: int | None = None) -> str | None:
        """A value of a rank, the newest more likely than the others."""
        names = [name for name, shape in self.shapes.items() if rank is None or len(shape) == rank]
        return self.draw(st.sampled_from([*names, *names[-3:]])) if names else None

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def node(self, operator: str, inputs: list[str], *shapes: tuple[int, ...], **options: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(onnx.helper.make_node(operator, inputs, names, name=f"{operator}_{names[0]}", **options))
        self.shapes.update(zip(names, shapes, strict=True))
        return names

    # ---- one method for each kind of operator

    def unary(self) -> None:
        x = self.value()
        if x is not None:
            self.node(self.pick("Relu", "Neg", "Tanh", "Sigmoid"), [x], self.shapes[x])

    def binary(self) -> None:
        """Operands of equal shape, of lower rank, with extents of 1, constant or not."""
        x = self.value()
        if x is None:
            return
        shape = self.shapes[x]
        alike = [name for name, other in self.shapes.items() if broadcasts(other, shape)]
        y = self.pick(*alike)
        if self.draw(st.integers(0, 2)) == 0:
            lower = self.draw(st.integers(0, len(shape)))
            other = tuple(1 if self.draw(st.booleans()) else n for n in shape[lower:])
            y = self.constant(np.random.default_rng(lower).uniform(-1, 1, other), np.float32)
        self.node(self.pick("Add", "Mul", "Max", "Sub"), [x, y] if self.draw(st.booleans()) else [y, x], shape)

    def implicit(self) -> None:
        """What has a layout of its own, between the permutations that it needs."""
        x = self.value(4)
        if x is None:
            return
        n, h, w, c = self.shapes[x]
        (first,) = self.node("Transpose", [x], (n, c, h, w), perm=FIRST)
        if self.draw(st.booleans()):
            weights = self.constant(np.random.default_rng(c).uniform(-1, 1, (c, c, 1, 1)), np.float32)
            (y,) = self.node("Conv", [first, weights], (n, c, h, w))
        else:
            (y,) = self.node("MaxPool", [first], (n, c, h, w), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        self.node("Transpose", [y], (n, h, w, c), perm=LAST)

    def transpose(self) -> None:
        x = self.value()
        if x is not None and len(self.shapes[x]) > 1:
            perm = self.draw(st.permutations(range(len(self.shapes[x]))))
            if len(perm) == 4:
                perm = self.pick(perm, FIRST, LAST)
            self.node("Transpose", [x], tuple(self.shapes[x][i] for i in perm), perm=perm)

    def concat(self) -> None:
        x = self.value()
        if x is None or not self.shapes[x]:
            return
        shape = self.shapes[x]
        y = self.pick(*[name for name, other in self.shapes.items() if other == shape])
        axis = self.draw(st.integers(0, len(shape) - 1))
        total = tuple(2 * n if i == axis else n for i, n in enumerate(shape))
        if np.prod(total) < 500:
            self.node("Concat", [x, y], total, axis=axis - (len(shape) if self.draw(st.booleans()) else 0))

    def pad(self) -> None:
        x = self.value(4)
        if x is not None and np.prod(self.shapes[x]) < 200:
            pads = [self.draw(st.integers(0, 1)) for _ in range(8)]
            shape = tuple(n + pads[i] + pads[i + 4] for i, n in enumerate(self.shapes[x]))
            self.node("Pad", [x, self.constant(pads)], shape)

    def slice(self) -> None:
        x = self.value()
        if x is None or not self.shapes[x]:
            return
        shape = self.shapes[x]
        axis = self.draw(st.integers(0, len(shape) - 1))
        cut = tuple(max(1, n - 1) if i == axis else n for i, n in enumerate(shape))
        self.node("Slice", [x, *(self.constant([v]) for v in (0, cut[axis], axis))], cut)

    def split(self) -> None:
        x = self.value()
        even = [i for i, n in enumerate(self.shapes[x]) if n % 2 == 0] if x is not None else []
        if x is not None and even:
            axis = self.pick(*even)
            half = tuple(n // 2 if i == axis else n for i, n in enumerate(self.shapes[x]))
            self.node("Split", [x, self.constant([half[axis]] * 2)], half, half, axis=axis)

    def softmax(self) -> None:
        x = self.value()
        if x is not None and self.shapes[x]:
            axis = self.draw(st.integers(-len(self.shapes[x]), len(self.shapes[x]) - 1))
            self.node("Softmax", [x], self.shapes[x], axis=axis)

    def reduce(self) -> None:
        x = self.value()
        if x is None or len(self.shapes[x]) < 2:
            return
        shape, keep = self.shapes[x], self.draw(st.integers(0, 1))
        axes = self.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=2, unique=True))
        left = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
        self.node(self.pick("ReduceMean", "ReduceMax"), [x, self.constant(axes)], left, keepdims=keep)

    def gather(self) -> None:
        x = self.value()
        if x is None or len(self.shapes[x]) < 2:
            return
        shape = self.shapes[x]
        axis = self.draw(st.integers(0, len(shape) - 1))
        index = self.pick(0, [0], [0, 0])
        left = (*shape[:axis], *np.shape(index), *shape[axis + 1 :])
        self.node("Gather", [x, self.constant(index)], tuple(left), axis=axis)

    def reshape(self) -> None:
        """Two neighbours merged, an axis split, everything flattened, or an axis of 1 put in."""
        x = self.value()
        if x is None or len(self.shapes[x]) < 2:
            return
        shape, at = list(self.shapes[x]), self.draw(st.integers(0, len(self.shapes[x]) - 2))
        merged = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
        halves = [*shape[:at], 2, shape[at] // 2, *shape[at + 1 :]] if shape[at] % 2 == 0 else merged
        wanted = self.pick(merged, halves, [1, int(np.prod(shape))], [*shape[:at], 1, *shape[at:]])
        if len(wanted) <= 5:
            self.node("Reshape", [x, self.constant(wanted)], tuple(wanted))

    def product(self, x: str, width: int) -> str:
        """Rows by constant weights, as one operator or another, the weights quantized or not."""
        rows, inner = self.shapes[x]
        weights = np.random.default_rng(inner).uniform(-1, 1, (inner, width))
        if self.draw(st.booleans()):
            return self.node("MatMul", [x, self.constant(weights, np.float32)], (rows, width))[0]
        turned, inputs = self.draw(st.integers(0, 1)), [x]
        weights = weights.T if turned else weights
        if self.draw(st.booleans()):
            scales = [self.constant(0.01, np.float32), self.constant(3, np.int8)]
            stored = self.constant(np.round(weights * 90), np.int8)
            self.nodes.append(onnx.helper.make_node("DequantizeLinear", [stored, *scales], [f"w{stored}"]))
            inputs.append(f"w{stored}")
        else:
            inputs.append(self.constant(weights, np.float32))
        if self.draw(st.booleans()):
            inputs.append(self.constant(np.random.default_rng(width).uniform(-1, 1, width), np.float32))
        return self.node("Gemm", inputs, (rows, width), transB=turned)[0]

    def dense(self) -> None:
        """A value flattened, perhaps changed element by element, and multiplied by constant weights."""
        x = self.value(4)
        if x is None:
            return
        rows, inner = self.shapes[x][0], int(np.prod(self.shapes[x][1:]))
        (flat,) = self.node("Reshape", [x, self.constant([rows, inner])], (rows, inner))
        for _ in range(self.draw(st.integers(0, 2))):
            flat = self.along(flat)
        self.product(flat, 3)

    def along(self, x: str) -> str:
        """A step that treats all columns alike, but for constants."""
        rows, inner = self.shapes[x]
        kind = self.pick("Relu", "Sub", "Concat", "Softmax", "scales", "Transpose")
        if kind == "Sub":
            extents_ = self.pick((inner,), (1, inner), (1,))
            other = self.constant(np.random.default_rng(inner).uniform(-1, 1, extents_), np.float32)
            return self.node(kind, self.pick([x, other], [other, x]), (rows, inner))[0]
        if kind == "Concat":
            other = self.constant(np.ones((rows, 2)), np.float32)
            return self.node(kind, self.pick([x, other], [other, x]), (rows, inner + 2), axis=1)[0]
        if kind == "Softmax":
            return self.node(kind, [x], (rows, inner), axis=self.pick(0, 1))[0]
        if kind == "scales":
            scales = [self.constant(0.02, np.float32), self.constant(100, np.uint8)]
            (q,) = self.node("QuantizeLinear", [x, *scales], (rows, inner))
            return self.node("DequantizeLinear", [q, *scales], self.shapes.pop(q))[0]
        if kind == "Transpose":
            (turned,) = self.node(kind, [x], (inner, rows), perm=(1, 0))
            (changed,) = self.node("Abs", [turned], (inner, rows))
            return self.node(kind, [changed], (rows, inner), perm=(1, 0))[0]
        return self.node("Relu", [x], (rows, inner))[0]

    def picture(self) -> None:
        """Columns of a product made an image, for an operator with a layout of its own."""
        x = self.value(2)
        if x is None or self.shapes[x][0] > 8:
            return
        flat = self.product(x, 24)
        for _ in range(self.draw(st.integers(0, 1))):
            flat = self.along(flat)
        rows, inner = self.shapes[flat]
        if inner == 24:
            (image,) = self.node("Reshape", [flat, self.constant([rows, 2, 3, 4])], (rows, 2, 3, 4))
            (first,) = self.node("Transpose", [image], (rows, 4, 2, 3), perm=FIRST)
            (y,) = self.node("MaxPool", [first], (rows, 4, 2, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            self.node("Transpose", [y], (rows, 2, 3, 4), perm=LAST)

    def squeeze(self) -> None:
        x = self.value()
        ones = [i for i, n in enumerate(self.shapes[x]) if n == 1] if x is not None else []
        if x is not None and ones and len(self.shapes[x]) > 1:
            axis = self.pick(*ones)
            left = tuple(n for i, n in enumerate(self.shapes[x]) if i != axis)
            self.node("Squeeze", [x, self.constant([axis])], left)

    def unsqueeze(self) -> None:
        x = self.value()
        if x is not None and len(self.shapes[x]) < 5:
            axis = self.draw(st.integers(0, len(self.shapes[x])))
            shape = list(self.shapes[x])
            shape.insert(axis, 1)
            self.node("Unsqueeze", [x, self.constant([axis])], tuple(shape))

    def quantized(self) -> None:
        """A value as integers and back, each with users of its own."""
        x = self.value()
        if x is not None:
            scale, zero = self.constant(0.05, np.float32), self.constant(128, np.uint8)
            (q,) = self.node("QuantizeLinear", [x, scale, zero], self.shapes[x])
            self.node("DequantizeLinear", [q, scale, zero], self.shapes.pop(q))  # that alone reads the integers

    def model(self, outputs: int = 3) -> onnx.ModelProto:
        """The graph so far; its last values are outputs, and some of the others."""
        used = {name for node in self.nodes for name in node.input}
        ends = [name for node in self.nodes for name in node.output if name not in used]
        names = list(dict.fromkeys([*ends, *[n for n in list(self.shapes)[-outputs:] if n not in self.inputs]]))
        float_, any_ = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
        symbols = {0: "N"} if self.dynamic else {}
        inputs = [
            any_(name, float_, [symbols.get(i, n) for i, n in enumerate(self.shapes[name])]) for name in self.inputs
        ]
        graph = onnx.helper.make_graph(
            self.nodes,
            "random",
            inputs,
            [onnx.ValueInfoProto(name=name) for name in names],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
        return onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)

    def feeds(self) -> dict[str, Array]:
        rng = np.random.default_rng(7)
        return {name: rng.uniform(-1, 1, self.shapes[name]).astype(np.float32) for name in self.inputs}


KINDS = [name for name in vars(Grower) if not name.startswith("_")]
KINDS = [n for n in KINDS if n not in ("pick", "value", "constant", "node", "product", "along", "model", "feeds")]


def broadcasts(one: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another, which stays as it is."""
    return len(one) <= len(to) and all(a in (1, b) for a, b in zip(one[::-1], to[::-1], strict=False))


def grown(draw: Draw, low: int, high: int, kinds: list[str] = KINDS, dynamic: bool = False) -> Grower:
    """A random graph of that many steps."""
    grower = Grower(draw, dynamic)
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=low, max_size=high)):
        getattr(grower, kind)()
    if not grower.nodes:
        grower.node("Relu", [grower.inputs[0]], grower.shapes[grower.inputs[0]])
    return grower

"""Write the operators of PyTorch as a dialect, from the schemas of the torch that is installed.

    python -m nnrewrite.benchmarks.aten_operators rules/aten2onnx/ops.yaml

Entries come from the schemas that torch registers, and torchao, torchvision and transformers where they are
installed; what no schema
says (roles, what restores a view) is in `FACTS`. Entries that the file has and this torch has not stay: programs of
earlier versions have these operators.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..frontends.pt2_names import find_functional, make_operator_name

#: libraries of operators that exported programs call
LIBRARIES = ("aten", "prims", "quantized_decomposed", "torch_nn", "torchao", "torchvision", "transformers")
#: packages that register operators of their own, where they are installed
PACKAGES = ("torch.nn.modules.linear_cross_entropy", "torchao", "torchvision", "transformers.integrations.moe")
#: arguments that say where or how elements lie in memory, and not what they are
IMMATERIAL = frozenset({"Device", "Layout", "MemoryFormat", "Generator"})
#: types of arguments that may be computed, so that they are operands
COMPUTED = frozenset({"Tensor", "SymInt", "Scalar", "SymBool", "SymFloat"})
#: types of arguments that are options, and what ops.yaml calls them
OPTIONS = {"int": "int64", "bool": "bool", "float": "float", "str": "string", "ScalarType": "ScalarType"}
#: Python's own functions on symbolic numbers
PYTHON = {
    "_operator": {
        "add": "ab", "sub": "ab", "mul": "ab", "truediv": "ab", "floordiv": "ab", "mod": "ab", "pow": "ab", "neg": "a",
        "eq": "ab", "ne": "ab", "lt": "ab", "le": "ab", "gt": "ab", "ge": "ab", "and_": "ab", "or_": "ab", "not_": "a",
        "pos": "a", "abs": "a", "getitem": "ab",
    },
    "math": {"trunc": "x", "ceil": "x", "floor": "x", "sqrt": "x"},
    "torch": {"sym_max": "ab", "sym_min": "ab", "sym_not": "a", "sym_float": "a", "sym_int": "a", "sym_ite": "btf",
              "sym_sum": ("args",), "_sym_sqrt": "a"},
}  # fmt: skip
#: what no schema says of an operator
FACTS: Mapping[str, Mapping[str, Any]] = {
    "ALIAS": {"restores": "VIEW_AS"},
    "SELECT_INT": {"restores": "SELECT_SCATTER"},
    "SLICE_TENSOR": {"restores": "SLICE_SCATTER"},
    "DIAGONAL": {"restores": "DIAGONAL_SCATTER"},
    "VIEW": {"restores": "VIEW_AS"},
    "RESHAPE": {"restores": "VIEW_AS"},
    "UNSQUEEZE": {"restores": "VIEW_AS"},
    "SQUEEZE": {"restores": "VIEW_AS"},
    "SQUEEZE_DIM": {"restores": "VIEW_AS"},
    "SQUEEZE_DIMS": {"restores": "VIEW_AS"},
    "FLATTEN_USING_INTS": {"restores": "VIEW_AS"},
    "UNFLATTEN_INT": {"restores": "VIEW_AS"},
    "TRANSPOSE_INT": {"restores": "TRANSPOSE_INT"},
    "T": {"restores": "T"},
    "MT": {"restores": "MT"},
    "NUMPY_T": {"restores": "NUMPY_T"},
    "SWAPAXES": {"restores": "SWAPAXES"},
    "PERMUTE": {"restores": "UNPERMUTE"},
    "RESHAPE_AS": {"restores": "VIEW_AS"},
    "VIEW_AS": {"restores": "VIEW_AS"},
    "RAVEL": {"restores": "VIEW_AS"},
    "DETACH": {"restores": "VIEW_AS"},
    "CONTIGUOUS": {"restores": "VIEW_AS"},
    "LIFT_FRESH": {"restores": "VIEW_AS"},
    "TO_DEVICE": {"restores": "VIEW_AS"},
    "TO_DTYPE": {"restores": "VIEW_AS"},
    "TO_DTYPE_LAYOUT": {"restores": "VIEW_AS"},
    "TO_OTHER": {"restores": "VIEW_AS"},
    "SWAPDIMS": {"restores": "SWAPDIMS"},
    "NARROW": {"restores": "NARROW_SCATTER"},
    "CHUNK": {"restores": "CAT"},
    "SPLIT_TENSOR": {"restores": "CAT"},
    "SPLIT_SIZES": {"restores": "CAT"},
    "SPLIT_WITH_SIZES": {"restores": "CAT"},
    "UNBIND_INT": {"restores": "STACK"},
    "LSTM_INPUT": {"ranks": {"result1": "input", "result2": "input"}},
}
#: operators whose third operand is added to products of the first two
BILINEAR = [
    "CONV1D",
    "CONV1D_PADDING",
    "CONV2D",
    "CONV2D_PADDING",
    "CONV3D",
    "CONV3D_PADDING",
    "CONVOLUTION",
    "CONV_TRANSPOSE1D",
    "CONV_TRANSPOSE2D_INPUT",
    "CONV_TRANSPOSE3D_INPUT",
    "LINEAR",
]
#: operators that do to the parts of complex numbers what they do to real ones
BY_PARTS = [
    "ALIAS_COPY",
    "AS_STRIDED",
    "AS_STRIDED_COPY",
    "AS_STRIDED_SCATTER",
    "ATLEAST_1D",
    "ATLEAST_2D",
    "ATLEAST_3D",
    "BLOCK_DIAG",
    "BROADCAST_TENSORS",
    "BROADCAST_TO",
    "CHANNEL_SHUFFLE",
    "CHUNK",
    "COL2IM",
    "COLUMN_STACK",
    "CONTIGUOUS",
    "CUMSUM",
    "CUMULATIVE_TRAPEZOID_DX",
    "DETACH_COPY",
    "DIAG",
    "DIAGFLAT",
    "DIAGONAL",
    "DIAGONAL_COPY",
    "DIAGONAL_SCATTER",
    "DIAG_EMBED",
    "DIFF",
    "DSPLIT_ARRAY",
    "DSPLIT_INT",
    "DSTACK",
    "EXPAND_AS",
    "EXPAND_COPY",
    "FFT_FFTSHIFT",
    "FFT_IFFTSHIFT",
    "FLIP",
    "FLIPLR",
    "FLIPUD",
    "GATHER",
    "HSPLIT_ARRAY",
    "HSPLIT_INT",
    "HSTACK",
    "IM2COL",
    "INDEX_ADD",
    "INDEX_COPY",
    "LIFT_FRESH_COPY",
    "MASKED_SCATTER",
    "MASKED_SELECT",
    "MEAN",
    "MEAN_DIM",
    "MESHGRID",
    "MESHGRID_INDEXING",
    "MOVEAXIS_INT",
    "MOVEAXIS_INTLIST",
    "MOVEDIM_INT",
    "MOVEDIM_INTLIST",
    "MT",
    "NARROW",
    "NARROW_COPY",
    "NUMPY_T",
    "PERMUTE_COPY",
    "PIXEL_SHUFFLE",
    "PIXEL_UNSHUFFLE",
    "POSITIVE",
    "PUT",
    "RAVEL",
    "REPEAT",
    "REPEAT_INTERLEAVE_SELF_INT",
    "RESHAPE_AS",
    "ROLL",
    "ROT90",
    "ROW_STACK",
    "SCATTER_ADD",
    "SCATTER_SRC",
    "SELECT_COPY_INT",
    "SLICE_COPY_TENSOR",
    "SPLIT_COPY_TENSOR",
    "SPLIT_SIZES",
    "SPLIT_TENSOR",
    "SPLIT_WITH_SIZES",
    "SPLIT_WITH_SIZES_COPY",
    "SQUEEZE",
    "SQUEEZE_COPY",
    "SQUEEZE_COPY_DIM",
    "SQUEEZE_COPY_DIMS",
    "SQUEEZE_DIMS",
    "SUM",
    "SUM_TO_SIZE",
    "SWAPAXES",
    "SWAPDIMS",
    "T",
    "TAKE",
    "TAKE_ALONG_DIM",
    "TENSOR_SPLIT_INDICES",
    "TENSOR_SPLIT_SECTIONS",
    "TENSOR_SPLIT_TENSOR_INDICES_OR_SECTIONS",
    "TILE",
    "TRACE",
    "TRANSPOSE_COPY_INT",
    "TRAPEZOID_DX",
    "TRAPZ_DX",
    "TRIL",
    "TRIU",
    "T_COPY",
    "UNBIND_COPY_INT",
    "UNBIND_INT",
    "UNFLATTEN_INT",
    "UNFOLD",
    "UNFOLD_COPY",
    "UNSAFE_CHUNK",
    "UNSAFE_SPLIT_TENSOR",
    "UNSAFE_SPLIT_WITH_SIZES",
    "UNSQUEEZE_COPY",
    "VIEW_AS",
    "VIEW_COPY",
    "VSPLIT_ARRAY",
    "VSPLIT_INT",
    "VSTACK",
    "ZERO",
]
#: operators that take graphs, whose arguments have no names in files: `over` the operands in order
HIGHER_ORDER: Mapping[str, dict[str, Any]] = {
    "HIGHER_ORDER_COND": {
        "operands": ["pred", "operands..."],
        "results": ["results..."],
        "options": {"true_graph": ["subgraph"], "false_graph": ["subgraph"]},
    },
    "HIGHER_ORDER_WHILE_LOOP": {
        "operands": ["carried...", "additional..."],
        "results": ["results..."],
        "options": {"cond_graph": ["subgraph"], "body_graph": ["subgraph"], "counts": ["[int64]"]},
    },
    "HIGHER_ORDER_SCAN": {
        "operands": ["init...", "xs...", "additional..."],
        "results": ["results..."],
        "options": {"combine_graph": ["subgraph"], "counts": ["[int64]"]},
    },
    "HIGHER_ORDER_MAP_IMPL": {
        "operands": ["xs...", "additional..."],
        "results": ["results..."],
        "options": {"body_graph": ["subgraph"], "counts": ["[int64]"]},
    },
    "HIGHER_ORDER_WRAP_WITH_SET_GRAD_ENABLED": {
        "operands": ["operands..."],
        "results": ["results..."],
        "options": {"body_graph": ["subgraph"], "enabled": ["bool", False]},
    },
    "HIGHER_ORDER_WRAP_WITH_AUTOCAST": {
        "operands": ["operands..."],
        "results": ["results..."],
        "options": {
            "device_type": ["string"],
            "dtype": ["ScalarType", None],
            "enabled": ["bool", False],
            "cache_enabled": ["bool", None],
            "body_graph": ["subgraph"],
        },
    },
}
#: operators that torch has no name for: what undoes a view that is written to
INVERSES: Mapping[str, dict[str, Any]] = {
    "UNPERMUTE": {"operands": ["self"], "results": ["result"], "options": {"dims": ["[int64]"]}, "traits": ["view"]},
    "NARROW_SCATTER": {
        "operands": ["self", "src", "start", "length"],
        "results": ["result"],
        "options": {"dim": ["int64"]},
    },
}
#: element types, numbered as torch numbers them, with what ONNX calls them
TYPES = {
    "BYTE": "UINT8", "CHAR": "INT8", "SHORT": "INT16", "INT": "INT32", "LONG": "INT64", "HALF": "FLOAT16",
    "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "COMPLEXHALF": None, "COMPLEXFLOAT": "COMPLEX64",
    "COMPLEXDOUBLE": "COMPLEX128", "BOOL": "BOOL", "BFLOAT16": "BFLOAT16", "UINT16": "UINT16", "FLOAT8E4M3FN": "FLOAT8E4M3FN",  # noqa: E501
    "FLOAT8E5M2": "FLOAT8E5M2", "FLOAT8E4M3FNUZ": "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ": "FLOAT8E5M2FNUZ",
    "UINT32": "UINT32", "UINT64": "UINT64",
}  # fmt: skip

HEADER = """\
# yaml-language-server: $schema=../../editors/ops.schema.json
# Operators of PyTorch. Written by benchmarks/aten_operators.py from the schemas of torch {version}: not edited by hand.
#
{licence}
#
# An operator is called as in torch, in capitals, with its overload behind it; an underscore in front stands at the end.
# What may be computed (tensors, sizes, numbers) is an operand, whatever else an option. Operators that write to their
# operands are not here: programs are read as if they yielded what they write.
"""


def main(path: str) -> None:
    """Write the dialect to a file."""
    kept = _read_entries(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {}
    Path(path).write_text("\n".join(_lines(kept)) + "\n", encoding="utf-8")


def _read_entries(text: str) -> dict[str, str]:
    """The lines of a file that are entries of operators, by their names."""
    lines = text.partition("  operators:\n")[2].splitlines()
    return {line.strip().partition(":")[0]: line for line in lines if line.strip()}


def _lines(kept: Mapping[str, str]) -> Iterator[str]:
    import torch

    yield HEADER.format(version=torch.__version__.partition("+")[0], licence=_licence())
    yield "aten:"
    yield "  domain: aten"
    yield "  fuzz: {samples: the samples of torch's own tests (benchmarks/torch_samples.py)}"
    yield "  types:"
    import torch._export.serde.schema as serde

    for kind in serde.ScalarType:
        if kind.name in TYPES:
            yield f"    {kind.name}: " + _flow({"code": kind.value, "dtype": TYPES[kind.name], "bits": None})
    yield "  enums: {ScalarType: types}"
    yield "  operators:"
    yield "    LIST: {role: list, operands: [items...], results: [result]}"
    made = {name: f"    {name}: {_flow({**entry, **FACTS.get(name, {})})}" for name, entry in _entries().items()}
    for _, line in sorted(({**kept, **made}).items()):
        if not line.startswith("    LIST:"):
            yield line


def _licence() -> str:
    """The first lines of torch's licence, which its schemas are under, as comments."""
    import importlib.metadata

    files = importlib.metadata.files("torch") or []
    text = next(file.read_text() for file in files if file.name == "LICENSE" and "licenses" in f"{file}")
    head = text.split("All rights reserved.")[0].splitlines()
    lines = [
        "The names, operands, options and defaults below are those of PyTorch's schemas, which are under this licence:",
        "",
        *head,
        *text[text.index("Redistribution and use in source") :].split("\n\n\n")[0].splitlines()[:28],
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _entries() -> dict[str, dict[str, Any]]:
    """The entry of each operator that yields something, by its name here."""
    import torch
    import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed

    for package in PACKAGES:
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            importlib.import_module(package)
    from torchgen.model import FunctionSchema

    tagged = {
        tag: {
            f"{overload._schema.name}.{overload._overloadname}"
            for overload in _overloads(torch.ops.aten)
            if tag in overload.tags
        }
        for tag in (torch.Tag.core, torch.Tag.nondeterministic_seeded)
    }
    found: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for schema in torch._C._jit_get_all_schemas():
        library, _, base = schema.name.partition("::")
        if library not in LIBRARIES or find_functional(base) != base or any(one.is_out for one in schema.arguments):
            continue
        try:
            text = f"{schema}".replace(f"{library}::", "", 1)
            parsed = FunctionSchema.parse(re.sub(r"=\[[^]]*\]", lambda found: found[0].replace(" ", ""), text))
        except (AssertionError, RuntimeError, ValueError):
            continue  # overloads of TorchScript alone, on its own lists and dictionaries
        entry = _entry(parsed)
        if entry is None:
            continue
        overload = schema.overload_name or "default"
        name = make_operator_name(library, base, overload)
        if name in origins:
            raise ValueError(f"{origins[name]} and {schema.name}.{overload} would both be {name}")
        origins[name] = f"{schema.name}.{overload}"
        if f"{schema.name}.{overload}" in tagged[torch.Tag.core]:
            entry["traits"] = [*entry.get("traits", []), "core"]
        if name in BY_PARTS:
            entry["traits"] = [*entry.get("traits", []), "by_parts"]
        if name in BILINEAR:
            entry["traits"] = [*entry.get("traits", []), "bilinear"]
        # those that draw numbers in training alone are deterministic where they are converted
        trains = any("drop" in one.name or "train" in one.name for one in schema.arguments)
        if f"{schema.name}.{overload}" in tagged[torch.Tag.nondeterministic_seeded] and not trains:
            entry["pure"] = False
        found[name] = entry
    for module, functions in PYTHON.items():
        for function, operands in functions.items():
            found[make_operator_name(module, function, "default")] = {"operands": list(operands), "results": ["result"]}
    found.update(HIGHER_ORDER)
    found.update(INVERSES)
    return found


def _overloads(library: Any) -> Iterator[Any]:
    for name in dir(library):
        packet = getattr(library, name)
        if hasattr(packet, "overloads"):
            yield from (getattr(packet, overload) for overload in packet.overloads())


def _entry(schema: Any) -> dict[str, Any] | None:
    """What ops.yaml says of an operator; None where it has arguments or results that programs cannot hold."""
    operands: list[str] = []
    options: dict[str, list[Any]] = {}
    defaults: dict[str, Any] = {}
    views = False
    for argument in schema.arguments.flat_all:
        base, optional, many, optional_items = _kind(argument.type)
        if base in IMMATERIAL or argument.name == "pin_memory":
            continue
        if argument.annotation is not None:
            if argument.annotation.is_write:
                return None
            views = views or any(one.annotation is not None for one in schema.returns)
        if base in COMPUTED:
            if many and base == "Tensor":
                operands.append(f"{argument.name}{'?' if optional_items else ''}...")
                continue
            operands.append(f"{argument.name}?" if optional else argument.name)
            default = _default(argument)
            if default is not None:
                defaults[argument.name] = default
        elif base in OPTIONS and not (many and base == "ScalarType"):
            kind = f"[{OPTIONS[base]}]" if many else OPTIONS[base]
            default = _default(argument)
            options[argument.name] = [kind] if default is None and not optional else [kind, default]
        else:
            return None
    results = []
    for position, result in enumerate(schema.returns):
        base, _, many, _ = _kind(result.type)
        if base not in COMPUTED | OPTIONS.keys():
            return None
        name = result.name or ("result" if len(schema.returns) == 1 else f"result{position}")
        results.append(f"{name}..." if many and base == "Tensor" else name)
    if not results or not any("Tensor" in f"{one.type}" for one in (*schema.arguments.flat_all, *schema.returns)):
        return None  # the latter are TorchScript's, on its own lists and numbers
    entry: dict[str, Any] = {"operands": operands, "results": results}
    if options:
        entry["options"] = options
    if defaults:
        entry["defaults"] = defaults
    if views:
        entry["traits"] = ["view"]
    return entry


def _kind(kind: Any) -> tuple[str, bool, bool, bool]:
    """The base type, whether it may be none, whether it is a list, and whether items of it may be none."""
    text = f"{kind}"
    optional = text.endswith("?")
    text = text.removesuffix("?")
    many = text.endswith("]")
    text = re.sub(r"\[\d*\]$", "", text)
    return text.removesuffix("?"), optional, many, many and text.endswith("?")


def _default(argument: Any) -> Any:
    text = argument.default
    if text in (None, "None"):
        return None
    base, _, many, _ = _kind(argument.type)
    if base == "ScalarType":
        return {"3": "INT", "4": "LONG", "6": "FLOAT", "24": "FLOAT8E4M3FN"}.get(text, text.upper())
    value = {"True": True, "False": False, "Mean": 1, "Sum": 2}.get(text, text)
    if base == "str":
        return text.strip("\"'")
    if isinstance(value, str) and not many:
        return int(value) if re.fullmatch(r"-?\d+", value) else float(value)
    if many:
        items = [one.strip() for one in text.strip("[]").split(",") if one.strip()]
        count = re.search(r"\[(\d+)\]\??$", f"{argument.type}")
        made = [{"True": True, "False": False}.get(one, one) for one in items]
        made = [int(one) if isinstance(one, str) else one for one in made]
        return made * int(count[1]) if count and len(made) == 1 else made
    return value


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(_flow(one) for one in value) + "]"
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z_]\w*(\.\.\.)?", value)
        and value not in ("y", "n", "on", "off")
    ):
        return value
    if isinstance(value, float) and "." not in f"{value}" and "e" in f"{value}":
        return f"{value}".replace("e", ".0e")  # what YAML takes for a number
    return json.dumps(value)


if __name__ == "__main__":
    main(sys.argv[1])

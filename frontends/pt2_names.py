"""What operators of PyTorch are called in rules."""

from __future__ import annotations

from collections.abc import Collection

#: the library whose operators are called by their own names alone
_OWN = "aten"
#: the argument that some overloads write to, and that ends their names
OUT = "out"


def make_operator_name(library: str, name: str, overload: str) -> str:
    """`aten`, `add`, `Tensor` is ADD_TENSOR; an underscore in front stands at the end, a default overload is not said.

    Those of names with two underscores on both sides, as Python has them, are left out.
    """
    bare = name.lstrip("_")
    mark = "" if name.startswith("__") else "_" * (len(name) - len(bare))
    words = [*([] if library == _OWN else [library.strip("_")]), bare.removesuffix("__") + mark]
    if overload not in ("default", ""):
        words.append(overload)
    return "_".join(words).upper()


def find_functional(name: str) -> str:
    """The operator that yields what one writes to its first operand, as torch names the two: `add_` and `add`.

    A name without that mark is its own.
    """
    if name.startswith("__i") and name.endswith("__") and name != "__invert__":
        return f"__{name[3:]}"
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def is_out_variant(overload: str) -> bool:
    """Whether an overload writes what it yields to a tensor that it is given beside its operands."""
    return overload == OUT or overload.endswith(f"_{OUT}")


def list_functional_names(library: str, name: str, overload: str, arguments: Collection[str] = (OUT,)) -> list[str]:
    """The names that the functional form of an operator may have: the one that yields what this one writes in place.

    Overloads of the two differ where the first operand need not be a tensor (`pow_.Tensor`, `pow.Tensor_Tensor`) and
    where one of them has a single overload; `normal_` has `normal_functional`.

    What `add.out` and `clamp.Tensor_out` write to their argument `out`, `add.Tensor` and `clamp.Tensor` yield. Of those
    that write to other `arguments` nothing is known.
    """
    overloads: tuple[str, ...] = (overload,)
    writes = is_out_variant(overload) and OUT in arguments
    if writes and overload == OUT:
        overloads = ("default", "Tensor")
    elif writes:
        overloads = (overload.removesuffix(f"_{OUT}"),)
    elif find_functional(name) != name:
        overloads = (overload, "default", f"Tensor_{overload}", "functional")
    return [make_operator_name(library, find_functional(name), one) for one in overloads]


def split_target(target: str) -> tuple[str, str, str]:
    """Library, name and overload of what a node calls: `torch.ops.aten.add.Tensor`, `_operator.mul`, `math.trunc`."""
    words = target.removeprefix("torch.ops.").split(".")
    if not target.startswith("torch.ops."):
        return words[0], words[-1], "default"
    if len(words) == 2:  # a higher-order operator has no overloads
        return words[0], words[1], "default"
    return words[0], ".".join(words[1:-1]), words[-1]

"""Where nodes stood in the modules of the program that was exported, as its exporter noted it."""

from __future__ import annotations

import ast

import onnx_ir as ir

from ..base.provenance import SCOPE
from ..base.startup import dataclass
from .base import Module, Visit

#: the keys under which torch.onnx notes the modules around a node, and their classes: lists of texts, inner ones last,
#: and behind these the operator itself
_PATHS, _CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
#: letters of the longest list that is read
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class ModulePaths:
    """Let nodes say the path of their module, with the classes along it, as far as an exporter has noted them."""

    name, visits = "module-paths", Visit.MAIN

    def run(self, module: Module) -> None:
        """Go over the nodes of a graph and of the graphs inside it."""
        for node in ir.traversal.RecursiveGraphIterator(module.graph):
            paths, classes = (_read_list(node.metadata_props.get(key, "")) for key in (_PATHS, _CLASSES))
            if SCOPE not in node.metadata_props and (path := _join(paths[:-1], classes[:-1])):
                node.metadata_props[SCOPE] = path


def _join(paths: list[str], classes: list[str]) -> str:
    """A path as `layer1:Sequential/0:Bottleneck`; nothing where its words are no names."""
    words = paths[-1].split(".") if paths else []
    if len(paths) != len(classes) or not all(word.isidentifier() or word.isdigit() for word in words):
        return ""
    kinds = {tuple(path.split(".")): kind.rpartition(".")[2] for path, kind in zip(paths, classes, strict=True)}
    known = [kinds.get(tuple(words[: at + 1]), "") for at in range(len(words))]
    return "/".join(f"{word}:{kind}" if kind.isidentifier() else word for word, kind in zip(words, known, strict=True))


def _read_list(text: str) -> list[str]:
    """A list of texts as Python writes one; an empty one where it is none."""
    if len(text) > _LONGEST:
        return []
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []

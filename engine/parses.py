"""Rule files as they were parsed before: who changes one file waits for that one alone."""

from __future__ import annotations

import hashlib

from . import cache
from .language import tree
from .language.frozen import freeze, thaw

#: how many files are kept, the ones used last
KEPT = 512


class Parses:
    """The syntax trees of rule files by their names and texts."""

    def __init__(self, key: str | None = None) -> None:
        """With a key, begin with what was kept under it in earlier runs."""
        self._key = key
        kept = cache.fetch(key) if key is not None else None
        self._frozen: dict[str, bytes] = thaw(kept) if kept is not None else {}
        self._found: dict[str, tree.RuleFile] = {}

    def parse(self, text: str, name: str) -> tree.RuleFile:
        """The tree of one file, parsed where that was not done before; raises RuleError as `parser.parse` does."""
        digest = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()
        if digest not in self._found:
            frozen = self._frozen.get(digest)
            self._found[digest] = _parsed(text, name) if frozen is None else thaw(frozen)
        return self._found[digest]

    def keep(self) -> None:
        """Keep the trees for the next run."""
        if self._key is None or not self._found.keys() - self._frozen.keys():
            return
        others = {digest: frozen for digest, frozen in self._frozen.items() if digest not in self._found}
        used = {digest: self._frozen.get(digest) or freeze(file) for digest, file in self._found.items()}
        cache.keep(self._key, freeze(dict([*others.items(), *used.items()][-KEPT:])))


def _parsed(text: str, name: str) -> tree.RuleFile:
    from .language.parser import parse  # lark takes as long to load as trees that are known

    return parse(text, name)

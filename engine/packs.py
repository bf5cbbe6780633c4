"""Rule packs: folders of rule files and operator entries, found, read, checked and cached."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

import onnx

from . import operators
from .errors import CallError, Diagnostic, RuleError
from .language import tree
from .operators import Catalogue

BUILT_IN = Path(__file__).parent.parent / "rules"
#: the group of entry points by which an installed package offers a pack: name = "package:folder"
ENTRY_POINTS = "nnrewrite.rules"
#: where parsed packs are kept between runs
CACHE = "NNREWRITE_CACHE"


@dataclass(frozen=True, slots=True)
class Pack:
    """Parsed and checked rule files, and the operators they speak of."""

    files: tuple[tree.RuleFile, ...]
    catalogue: Catalogue

    @property
    def opsets(self) -> tuple[int, int]:
        """The lowest and the highest opset that every file admits."""
        return max(f.opsets[0] for f in self.files), min(f.opsets[1] for f in self.files)

    @property
    def default_opset(self) -> int:
        """The opset aimed at where the user names none: the first that a file declares, else the highest."""
        return next((f.default_opset for f in self.files if f.default_opset is not None), self.opsets[1])


def folders(names: Sequence[str]) -> list[Path]:
    """The folders of packs given by built-in name, path or entry point; raises CallError for an unknown one."""
    return [_folder(name) for name in names]


def _folder(name: str) -> Path:
    if (BUILT_IN / name).is_dir() and os.sep not in name:
        return BUILT_IN / name
    if Path(name).is_dir():
        return Path(name)
    for point in metadata.entry_points(group=ENTRY_POINTS, name=name):
        module, _, folder = point.value.partition(":")
        spec = util.find_spec(module)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / folder
    known = ", ".join(sorted(path.name for path in BUILT_IN.iterdir() if path.is_dir()))
    raise CallError(f"there is no rule set {name}: it is neither a folder nor one of {known}")


def load(names: Sequence[str]) -> Pack:
    """Load rule packs, and after them the rules of the dialect they aim at.

    Raises RuleError with all mistakes of all files, CallError for an unknown pack or one without rules.
    """
    paths = folders(names)
    texts = _texts(paths)
    if not texts:
        raise CallError(f"there are no *.rules files in {', '.join(map(str, paths))}")
    digest = _digest(paths, texts)
    found = _cached(digest)
    if found is None:
        found = _read(paths, texts)
        _store(digest, found)
    return found


def _texts(paths: Sequence[Path]) -> dict[str, str]:
    """The rule files of some folders by the name they have in messages."""
    found = {}
    for path in paths:
        for file in sorted(path.glob("**/*.rules")):
            inside = BUILT_IN in file.parents
            found[str(file.relative_to(BUILT_IN) if inside else file)] = file.read_text(encoding="utf-8")
    return found


def _entries(paths: Sequence[Path]) -> list[Path]:
    return [path / "ops.yaml" for path in paths if (path / "ops.yaml").is_file()]


def _read(paths: Sequence[Path], texts: dict[str, str]) -> Pack:
    from .language.checker import check
    from .language.parser import parse

    catalogue = operators.load(_entries(paths))
    files: list[tree.RuleFile] = []
    diagnostics: list[Diagnostic] = []
    for name, text in texts.items():
        try:
            files.append(parse(text, name))
        except RuleError as error:
            diagnostics += error.diagnostics
    targets = {file.target for file in files} - {path.name for path in paths}
    follow = [BUILT_IN / target for target in sorted(targets) if (BUILT_IN / target).is_dir()]
    if follow and not diagnostics:
        return _read([*paths, *follow], texts | _texts(follow))
    diagnostics += check(files, catalogue, complete=not diagnostics)
    if diagnostics:
        raise RuleError(diagnostics, texts)
    return Pack(tuple(files), catalogue)


# ---- the cache


def _digest(paths: Sequence[Path], texts: dict[str, str]) -> str:
    """A name for everything that a parsed pack depends on."""
    digest = hashlib.sha256(f"{onnx.__version__} {metadata.version('nnrewrite')}".encode())
    code = Path(__file__).parent
    everything = sorted([*code.glob("*.py"), *code.glob("language/*"), *BUILT_IN.glob("**/*.rules")])
    for file in [*everything, operators.OPS, *_entries(paths)]:
        if file.is_file():
            digest.update(file.read_bytes())
    for name, text in texts.items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def _home() -> Path:
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nnrewrite"


def _cached(digest: str) -> Pack | None:
    try:
        with (_home() / f"{digest}.pack").open("rb") as file:
            found = pickle.load(file)
    except Exception:
        # A cache that is missing, stale, cut short or unreadable costs a parse and nothing else.
        return None
    return found if isinstance(found, Pack) else None


def _store(digest: str, pack: Pack) -> None:
    home = _home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home, delete=False) as file:
            pickle.dump(pack, file, protocol=pickle.HIGHEST_PROTOCOL)
        Path(file.name).replace(home / f"{digest}.pack")
    except OSError:
        # A folder that cannot be written only means that the next start parses again.
        return

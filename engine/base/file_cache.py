"""A cache of files: bytes kept between runs under a key of their content; whatever fails only costs time."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

#: names the folder; by default `nnrewrite` in the user's folder for caches
FOLDER = "NNREWRITE_CACHE"
#: how many bytes are kept, of what was used last: some hundred packs as they are laid over each other
MOST_BYTES = 256 << 20

_CHECK = hashlib.sha256().digest_size


def find_folder() -> Path:
    """Where entries are kept."""
    if os.environ.get(FOLDER):
        return Path(os.environ[FOLDER])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nnrewrite"


def fetch(key: str) -> bytes | None:
    """The bytes kept under a key; None where there are none, or where they are not what was kept."""
    try:
        entry = _find_entry(key)
        data = entry.read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    check, payload = data[:_CHECK], data[_CHECK:]
    if hashlib.sha256(payload).digest() != check:
        return None
    try:
        os.utime(entry)  # what is used last stays longest
    except OSError:
        return payload  # a folder that cannot be written to can be read from
    return payload


def keep(key: str, payload: bytes) -> None:
    """Keep bytes under a key, where that can be done."""
    part: Path | None = None
    try:
        entry = _find_entry(key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        part = entry.with_name(f".{os.urandom(6).hex()}.part")
        part.write_bytes(hashlib.sha256(payload).digest() + payload)
        part.replace(entry)
        _evict(entry.parent)
    except (OSError, RuntimeError):
        # A folder that cannot be written to only means that the next start makes them again.
        if part is not None:
            _remove(part)


def _find_entry(key: str) -> Path:
    return find_folder() / f"{key}.pack"


def _evict(home: Path) -> None:
    states = [(entry.stat(), entry) for entry in home.glob("*.pack")]
    left = MOST_BYTES
    for state, entry in sorted(states, key=lambda one: one[0].st_mtime, reverse=True):
        left -= state.st_size
        if left < 0:
            _remove(entry)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # it belongs to somebody else

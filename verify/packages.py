"""How packages that a part of this program needs are installed beside it."""

from __future__ import annotations

from pathlib import Path

#: the folder of this program: a clone of the repository where it is run from one
HOME = Path(__file__).parent.parent


def install_command(extra: str, home: Path = HOME) -> str:
    """The command that installs an extra of this program from any folder, as the program itself is installed."""
    if (home / "pyproject.toml").is_file():
        return f'pip install -e "{home}[{extra}]"'
    return f'pip install "nnrewrite[{extra}]"'  # pip knows it by name, whatever it was installed from

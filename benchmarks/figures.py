"""Make the figures of docs/ anew: run the command that each was printed by, and put what it prints in its place.

    python benchmarks/figures.py [--list] [PAGE]...

Figures stand between `<!-- figures: benchmarks/NAME.py ARGUMENTS -->` and `<!-- end of figures -->`. ARGUMENTS may name
folders and programs by variables of the environment ($MODELS, $ONNX_MODELS); figures whose variables are not set are
left as they are, and told. A command that fails ends it, with its page as it was. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
END = "<!-- end of figures -->"
FIGURES = re.compile(rf"(?P<begin><!-- figures: (?P<command>[^\n]*) -->\n)(?P<printed>.*?){END}", re.DOTALL)


def list_figures(page: Path) -> Iterator[str]:
    """The commands that a page names, in its order."""
    return (found["command"] for found in FIGURES.finditer(page.read_text(encoding="utf-8")))


def missing(command: str) -> list[str]:
    """The variables of the environment that a command needs and that are not set."""
    return [name for name in string.Template(command).get_identifiers() if name not in os.environ]


def make_figures(page: Path, command: str) -> None:
    """Run a command, and put what it prints where the page names it; raises CalledProcessError where it fails."""
    arguments = shlex.split(string.Template(command).substitute(os.environ))
    printed = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout

    def put(found: re.Match[str]) -> str:
        return f"{found['begin']}{printed.rstrip()}\n{END}" if found["command"] == command else found[0]

    page.write_text(FIGURES.sub(put, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Make all figures, or those of some pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", default=sorted((ROOT / "docs").rglob("*.md")))
    parser.add_argument("--list", action="store_true", help="show the commands, and run none")
    asked = parser.parse_args()
    for page in asked.pages:
        for command in list_figures(page):
            absent = missing(command)
            told = f" (left: {', '.join(f'${name} is' for name in absent)} not set)" if absent else ""
            print(f"{page.resolve().relative_to(ROOT)}: {command}{told}", flush=True)
            if not (absent or asked.list):
                make_figures(page, command)


if __name__ == "__main__":
    main()

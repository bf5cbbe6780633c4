"""Run the notebooks beside this file and keep what they show: `make notebooks`.

Times, identifiers and the kernel's version are left out, so that a notebook whose results are the same stays the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def execute(path: Path) -> None:
    """Run all cells of a notebook in its folder; raises CellExecutionError for one that fails."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": f"{path.parent}"}}
    ).execute()
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    )
    for place, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{place}", nbformat.from_dict({})
    nbformat.write(notebook, path)


def main() -> None:
    """Run the notebooks that are named, or all of them."""
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(Path(__file__).parent.glob("*.ipynb")):
        print(path)
        execute(path)


if __name__ == "__main__":
    main()

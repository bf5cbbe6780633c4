"""What is in the repository is in the package, and what is installed works without the repository."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import nnrewrite
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(nnrewrite.__file__).parent
DATA = {".rules", ".yaml", ".lark", ".typed"}
ELSEWHERE = {"tests", "docs", "benchmarks", "build", "dist"}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def sources(suffixes: set[str]) -> set[str]:
    """The repository's files of the package, by their path below it."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*")
        if path.suffix in suffixes
        and not ELSEWHERE & set(path.relative_to(ROOT).parts)
        and not any(part.startswith(".") or part.endswith(".egg-info") for part in path.relative_to(ROOT).parts)
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it is built from the sources alone."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in {*sources({".py"} | DATA), "pyproject.toml", "README.md", "LICENSE"}:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    alone = ["--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", *alone, "--wheel-dir", str(out), str(copy)]
    subprocess.run(command, check=True, timeout=300)
    (built,) = out.glob("*.whl")
    return built


def test_what_builds_the_project_is_locked() -> None:
    build, extras = project()["build-system"], project()["project"]
    assert isinstance(build, dict)
    assert isinstance(extras, dict)
    assert build["requires"] == (ROOT / "locks" / "build.in").read_text().split()
    assert set(build["requires"]) <= set(extras["optional-dependencies"]["test"])


@pytest.mark.parametrize("lock", sorted((ROOT / "locks").glob("*.txt")), ids=lambda lock: lock.name)
def test_what_is_locked_is_one_version_with_its_hashes(lock: Path) -> None:
    text = lock.read_text()
    entries = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    assert [line for line in entries if not re.match(r"[a-z0-9.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []
    assert "://" not in text  # an index, of which each user has their own


def test_every_requirement_of_the_project_is_locked() -> None:
    said = project()["project"]
    assert isinstance(said, dict)
    extras = said["optional-dependencies"]
    for lock, wanted in {"verify": ["verify"], "test": ["verify", "test"], "dev": ["verify", "test", "dev"]}.items():
        locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "locks" / f"{lock}.txt").read_text(), re.MULTILINE))
        named = {re.split(r"[<>=\[]", one)[0].lower() for name in wanted for one in extras[name]}
        needed = {re.split(r"[<>=]", one)[0].lower() for one in said["dependencies"]} | named - {"nnrewrite"}
        assert needed <= locked, lock


def test_every_package_is_listed() -> None:
    tool = project()["tool"]
    assert isinstance(tool, dict)
    folders = {Path(name).parent.as_posix() for name in sources({".py"}) if name.endswith("__init__.py")}
    expected = {"nnrewrite" if folder == "." else f"nnrewrite.{folder.replace('/', '.')}" for folder in folders}
    assert set(tool["setuptools"]["packages"]) == expected


def test_the_wheel_holds_modules_and_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"nnrewrite/{name}" for name in sources({".py"} | DATA)} <= names
    assert not [name for name in names if name.startswith(("tests/", "nnrewrite/tests/"))]


def test_an_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = "import nnrewrite; from nnrewrite.cli.dispatch import main; print(nnrewrite.__file__); main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    where, said = done.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert said.startswith("rewrite ")
    assert done.returncode == 0

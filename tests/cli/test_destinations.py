"""Where files are written: never over what is read, over each other, or over what is not of this program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import nnrewrite
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from click.testing import CliRunner, Result
from nnrewrite.cli import pages
from nnrewrite.cli.dispatch import app
from nnrewrite.engine.base.atomic_write import open_replacement
from nnrewrite.engine.base.errors import DestinationError
from nnrewrite.partition import partition

WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
PRODUCT = '<ir_version: 8, opset_import: ["": 17]> net (float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }'


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False, prog_name="rewrite")


def read(folder: Path) -> dict[str, bytes]:
    """All files of a folder and of those below it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refuses(message: str, *arguments: str, status: int = 2) -> None:
    """Check that a call is refused in so many words, and that nothing is written."""
    before = read(Path.cwd())
    result = call(*arguments)
    assert message in result.stderr
    assert result.exit_code == status
    assert read(Path.cwd()) == before


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: Callable[..., bytes]) -> Path:
    """The current folder, with a model of ONNX that has weights, and one of TensorFlow Lite."""
    monkeypatch.chdir(tmp_path)
    model = onnx.parser.parse_model(PRODUCT)
    model.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    onnx.save(model, "net.onnx")
    Path("lite.tflite").write_bytes(single("ABS", {"x": ("FLOAT32", [2, 3])}, [("FLOAT32", [2, 3])]))
    return tmp_path


def read_weights(path: str) -> np.ndarray:
    [tensor] = onnx.load(path).graph.initializer
    return onnx.numpy_helper.to_array(tensor)


# ---- what is read, and what else is written


@pytest.mark.parametrize("option", ["--layout-svg", "--report"])
def test_a_model_that_is_read_is_replaced_by_no_picture_and_no_page(option: str) -> None:
    Path("link").symlink_to("net.onnx")
    for name in ("net.onnx", "link"):
        message = f"{option} {name}: the output would replace a model that is read"
        refuses(message, "net.onnx", "-o", "o.onnx", option, name)


@pytest.mark.parametrize("option", ["--layout-svg", "--report"])
@pytest.mark.parametrize("beside", ["", ".data"])
def test_a_result_is_replaced_by_no_picture_and_no_page(option: str, beside: str) -> None:
    where = f"o.onnx{beside}"
    refuses(f"{where}: net.onnx, {option}", "net.onnx", "-o", "o.onnx", "--external-data", option, where)


def test_a_page_is_replaced_by_no_picture() -> None:
    refuses(
        "p.html: --report, --layout-svg", "net.onnx", "-o", "o.onnx", "--report", "p.html", "--layout-svg", "p.html"
    )


def test_the_list_of_pages_is_replaced_by_no_picture() -> None:
    refuses(
        "index.html: --report, --layout-svg",
        "net.onnx", "-o", "o.onnx", "--report", "p/", "--layout-svg", "p/index.html",
    )  # fmt: skip


def test_a_header_is_replaced_by_no_page() -> None:
    refuses("o.h: lite.tflite, --report", "lite.tflite", "-o", "o.cc", "--report", "o.h")


def test_a_model_that_is_timed_is_not_replaced_by_its_page() -> None:
    message = "--report lite.tflite: the output would replace a model that is read"
    refuses(message, "bench", "lite.tflite", "--rounds", "1", "--report", "lite.tflite")


@pytest.mark.slow
def test_a_model_that_is_divided_is_replaced_by_none_of_its_parts() -> None:
    divide = ("partition", "--target", "tensorrt")
    refuses("--report net.onnx: the output would replace", *divide, "net.onnx", "-d", "q", "--report", "net.onnx")
    refuses("manifest.json: -d, --report", *divide, "net.onnx", "-d", "q", "--report", "q/manifest.json")
    assert call(*divide, "net.onnx", "-d", "parts").exit_code == 0
    refuses("-d parts/host.onnx: the output would replace", *divide, "parts/host.onnx", "-d", "parts")
    # What an earlier partition has left is removed when the folder is written anew, and nothing else.
    manifest = json.loads(Path("parts/manifest.json").read_text())
    manifest["steps"].append({"file": "part_7.onnx"})
    Path("parts/manifest.json").write_text(json.dumps(manifest))
    shutil.copy("net.onnx", "parts/part_7.onnx")
    refuses("-d parts/part_7.onnx: the output would replace", *divide, "parts/part_7.onnx", "-d", "parts")
    for name in ("net.onnx", "part_8.onnx"):
        shutil.copy("net.onnx", f"parts/{name}")
        assert call(*divide, f"parts/{name}", "-d", "parts").exit_code == 0
        assert Path(f"parts/{name}").exists()


@pytest.mark.slow
def test_a_model_that_python_divides_is_replaced_by_none_of_its_parts() -> None:
    partition("net.onnx", "tensorrt").save("parts")
    [step] = json.loads(Path("parts/manifest.json").read_text())["steps"]
    for name in ("host.onnx", step["file"], "part_7.onnx"):
        shutil.copy("net.onnx", f"parts/{name}")
        divided = partition(f"parts/{name}", "tensorrt")
        manifest = json.loads(Path("parts/manifest.json").read_text())
        manifest["steps"].append({"file": "part_7.onnx"})  # as a longer partition would have left it
        Path("parts/manifest.json").write_text(json.dumps(manifest))
        before = read(Path("parts"))
        with pytest.raises(DestinationError, match=f"^parts: .*{name} would be replaced, a model that is read"):
            divided.save("parts")
        assert read(Path("parts")) == before


def test_a_model_that_is_called_like_an_option_is_named_once() -> None:
    shutil.copy("net.onnx", "-net.onnx")
    refuses("error: -net.onnx: the output would replace a model that is read: name another by -o", "--", "-net.onnx")


@pytest.mark.parametrize("more", [(), ("--external-data",)])
def test_weights_of_a_model_that_is_read_are_neither_removed_nor_replaced(more: tuple[str, ...]) -> None:
    assert call("net.onnx", "-o", "x.onnx", "--external-data").exit_code == 0
    shutil.copy("x.onnx", "y.onnx")
    refuses("x.onnx.data: the output would replace weights of a model that is read", "y.onnx", "-o", "x.onnx", *more)
    refuses("--report x.onnx.data: the output would", "y.onnx", "-o", "z.onnx", "--report", "x.onnx.data")
    assert np.array_equal(read_weights("y.onnx"), WEIGHTS)


def test_weights_in_bodies_are_those_of_a_model_too() -> None:
    body = onnx.parser.parse_graph("g () => (float[1,64] t) { t = Identity(w) }")
    place = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[1, 64], data_location=1)
    for key, value in {"location": "./o.onnx.data", "length": "256"}.items():
        place.external_data.add(key=key, value=value)
    body.initializer.append(place)
    other = onnx.parser.parse_graph("h () => (float[1,64] t) { t = Identity(x) }")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> net (bool c, float[1,64] x) => (float[1,64] y) { y = If(c) }'
    )
    branches = {"then_branch": body, "else_branch": other}
    model.graph.node[0].attribute.extend(onnx.helper.make_attribute(key, graph) for key, graph in branches.items())
    Path("if.onnx").write_bytes(model.SerializeToString())
    Path("o.onnx.data").write_bytes(WEIGHTS[:4].tobytes()[:256])
    refuses("o.onnx.data: the output would replace weights", "if.onnx", "-o", "o.onnx", "--external-data")


# ---- what is not of this program


def test_a_header_that_somebody_else_wrote_stays() -> None:
    Path("o.h").write_text("int mine();\n")
    refuses("o.h: was not written by nnrewrite", "lite.tflite", "-o", "o.cc", status=1)
    for _ in range(2):
        assert call("lite.tflite", "-o", "2nd.cc").exit_code == 0


@pytest.mark.parametrize("name", ["README.md", "model.py", "model.safetensors"])
def test_a_file_that_somebody_else_wrote_is_not_replaced_by_code(name: str) -> None:
    Path("code").mkdir()
    Path("code", name).write_text("mine")
    refuses(f"{name}: was not written by nnrewrite", "net.onnx", "-o", "code/", status=1)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["made/", "made.keras"])
@pytest.mark.parametrize("more", [(), ("--signature", "all")])
def test_code_is_written_anew_by_the_same_call(place: str, more: tuple[str, ...]) -> None:
    for _ in range(2):
        result = call("net.onnx", "-o", place, *more)
        assert (result.exit_code, result.stderr) == (0, "")


# ---- links


@pytest.mark.parametrize(
    ("model", "link", "made"),
    [("net.onnx", "l.onnx", ["m.onnx", "m.onnx.data"]), ("lite.tflite", "l.cc", ["m.cc", "m.h"])],
)
def test_what_stands_beside_a_link_is_written_where_the_link_leads(model: str, link: str, made: list[str]) -> None:
    for name in ("real", "here"):
        Path(name).mkdir()
    Path("here", link).symlink_to(f"../real/{made[0]}")
    more = ("--external-data",) if link.endswith(".onnx") else ()
    assert call(model, "-o", f"here/{link}", *more).exit_code == 0
    assert sorted(path.name for path in Path("real").iterdir()) == made
    assert [path.name for path in Path("here").iterdir()] == [link]
    if more:
        assert np.array_equal(read_weights("real/m.onnx"), WEIGHTS)


# ---- names


def test_names_of_sources_are_identifiers() -> None:
    for name, made in {"2nd": "model_2nd", "né": "n_", "a-b": "a_b"}.items():
        assert call("lite.tflite", "-o", f"{name}.cc").exit_code == 0
        text = Path(f"{name}.h").read_text(encoding="utf-8") + Path(f"{name}.cc").read_text(encoding="utf-8")
        assert f"const unsigned char {made}_data[] = {{" in text and f"size_t {made}_size" in text


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\udcffb"])
def test_a_name_that_no_source_can_include_is_refused(name: str) -> None:
    result = call("lite.tflite", "-o", f"{name}.cc")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert "no source can include a header of such a name" in result.stderr
    assert sorted(read(Path.cwd())) == ["lite.tflite", "net.onnx"]


def test_a_name_that_is_no_text_is_none_for_weights() -> None:
    refuses("no model can refer to weights beside it", "net.onnx", "-o", "a\udcff.onnx", "--external-data", status=1)


@pytest.mark.parametrize("name", [".onnx", ".tflite", ".CC", "deep/.torch"])
def test_an_ending_alone_is_no_name(name: str) -> None:
    refuses(f"{name}: is an ending without a name before it", "lite.tflite", "-o", name)


@pytest.mark.parametrize("name", ["o.tflite", "o.cc", "o.torch"])
def test_weights_of_other_formats_are_in_no_second_file(name: str) -> None:
    refuses("--external-data is about ONNX models", "net.onnx", "-o", name, "--external-data")


@pytest.mark.parametrize("option", ["-o", "-d", "--report", "--layout-svg", "--trace"])
def test_a_name_longer_than_the_system_takes_is_a_mistake_of_the_call(option: str) -> None:
    long = "x" * 300
    refuses("File name too long" if option != "--trace" else "is read", "net.onnx", f"{option}={long}")
    refuses("File name too long", f"{long}.onnx")


@pytest.mark.parametrize("name", ["a\0b.onnx", "a\ud800b.onnx"])
def test_a_name_that_no_file_can_have_is_a_mistake_of_the_call(name: str) -> None:
    for arguments in ([name], ["net.onnx", "-o", name], ["net.onnx", "--report", name], ["fmt", name]):
        refuses("no file has a name", *arguments)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "", None, b"a"])
def test_a_path_that_nothing_can_be_written_to_is_named(name: str) -> None:
    for ending in ("onnx", "tflite", "cc", "torch"):
        with pytest.raises(nnrewrite.CallError):
            nnrewrite.rewrite("net.onnx", to=ending).save(name)
    with pytest.raises(nnrewrite.CallError):
        partition("net.onnx", "tensorrt").save(name)


def test_a_name_that_gets_too_long_is_told() -> None:
    name = f"{'x' * 248}.onnx"
    shutil.copy("net.onnx", name)
    for more in ((), ("--report", "pages/")):
        result = call(name, "-d", "out", "--to", "tflite", "--quiet", *more)
        assert result.exit_code == (1 if more else 0) and "internal" not in result.stderr
    assert call(name, "-d", "out").exit_code == 0


@pytest.mark.parametrize("member", ["", "."])
def test_a_member_without_a_name_is_told(member: str) -> None:
    with zipfile.ZipFile("net.task", "w") as bundle:
        bundle.write("lite.tflite")
    refuses(f'there is no model "{member}" in this bundle', "net.task", "--member", member, status=1)


def test_the_format_of_a_model_is_not_guessed_by_its_ending() -> None:
    for more in (("--external-data",), ()):
        assert call("--rules", "onnx2onnx", "net.onnx", "-o", "o.json", *more).exit_code == 0
    assert np.array_equal(read_weights("net.onnx"), WEIGHTS)
    assert not Path("o.json.data").exists()


# ---- what the system does


def test_a_page_that_cannot_be_written_costs_no_other_model(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pages", "bad.onnx.html").mkdir(parents=True)
    Path("bad.tflite").write_bytes(b"junk")
    given = ("bad.tflite", "lite.tflite", "-d", "out", "--keep-going", "--report", "pages/")
    result = call(*given)
    assert result.exit_code == 1
    assert "bad.tflite: too short for a model" in result.stderr
    assert "bad.onnx.html: cannot be written" in result.stderr
    assert Path("out", "lite.onnx").exists() and Path("pages", "index.html").exists()
    told = json.loads(call(*given, "--json").stdout)["diagnostics"]
    assert [one["message"].rpartition(": ")[0].rpartition("/")[2] for one in told] == [
        "bad.tflite: too short for a model",
        "bad.onnx.html: cannot be written",
    ]

    def fail(*arguments: object) -> None:
        raise KeyError("page")

    monkeypatch.setattr(pages, "write_refusal", fail)
    result = call(*given)
    assert "bad.tflite: too short for a model" in result.stderr
    assert "internal error: the page of a model that was refused: KeyError" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(1,), (1, 2), (0, 1, 2)])
def test_a_model_is_converted_where_nobody_listens(closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [sys.executable, "-m", "nnrewrite", "net.onnx", "-o", "o.onnx"], preexec_fn=close, check=False, timeout=120
    )
    assert done.returncode == 0
    assert np.array_equal(read_weights("o.onnx"), WEIGHTS)


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_what_is_no_regular_file_is_not_replaced(name: str) -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for to in ("onnx", "tflite"):
        with pytest.raises(DestinationError, match="pipe: not a regular file, cannot be replaced"):
            nnrewrite.rewrite("net.onnx", to=to).save(name)
    assert Path("pipe").is_fifo() and {one.name for one in Path().iterdir()} == {
        "link",
        "lite.tflite",
        "net.onnx",
        "pipe",
    }


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o775])
def test_who_may_read_a_file_may_read_what_replaces_it(mode: int) -> None:
    path = Path("made")
    path.touch()
    path.chmod(mode)
    with open_replacement(path) as file:
        file.write(b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", mode)

"""The library as a user meets it: its names, what a model can be given as, options and their types, what is shown."""

from __future__ import annotations

import dataclasses
import html.parser
import importlib.metadata
import importlib.util
import io
import re
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nnrewrite
import numpy as np
import onnx
import pytest
from nnrewrite.conversion.options import OptionsDict
from nnrewrite.verify import compare_models

ROOT = Path(nnrewrite.__file__).parent


@pytest.fixture(scope="module")
def relu(single: Callable[..., bytes]) -> bytes:
    """A TensorFlow Lite model of one operator."""
    return single("RELU", {"x": ("FLOAT32", (1, 16))}, [("FLOAT32", (1, 16))])


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dir_shows_the_public_names_and_no_others() -> None:
    script = "import nnrewrite; print(*dir(nnrewrite)); print(all(hasattr(nnrewrite, name) for name in dir(nnrewrite)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    names, there = done.stdout.splitlines()
    assert names.split() == sorted(nnrewrite.__all__)
    assert {"__version__", "convert", "rewrite", "Options"} <= set(names.split())
    assert there == "True"


def test_what_saving_and_comparing_raise_can_be_caught_by_a_public_name(relu: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(nnrewrite.DestinationError):
        nnrewrite.rewrite(relu).save(tmp_path / "file" / "net.onnx")
    with pytest.raises(nnrewrite.VerificationError):
        compare_models(relu, b"no model")


def test_the_version_is_that_of_the_installed_package() -> None:
    assert nnrewrite.__version__ == importlib.metadata.version("nnrewrite")


# ---- models ----------------------------------------------------------------------------------------------------------


def test_a_model_is_a_path_bytes_or_an_open_file(relu: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(relu)
    wanted = nnrewrite.convert(relu).SerializeToString()
    written = io.BytesIO()
    written.write(relu)
    spread = memoryview(np.repeat(np.frombuffer(relu, np.uint8), 2))[::2]
    with path.open("rb") as opened:
        for source in (path, f"{path}", bytearray(relu), memoryview(relu), spread, io.BytesIO(relu), written, opened):
            assert nnrewrite.convert(source).SerializeToString() == wanted


def test_a_buffer_may_change_before_the_model_is_saved(single: Callable[..., bytes], tmp_path: Path) -> None:
    operands = {"x": ("FLOAT32", (1, 64)), "w": np.ones((64, 64), np.float32)}
    buffer = bytearray(single("FULLY_CONNECTED", operands, [("FLOAT32", (1, 64))]))
    wanted = nnrewrite.convert(bytes(buffer))
    conversion = nnrewrite.rewrite(buffer)
    buffer[:] = bytes(len(buffer))
    conversion.save(tmp_path / "net.onnx")
    assert onnx.load(tmp_path / "net.onnx") == wanted


def test_models_are_compared_however_they_are_given(relu: bytes) -> None:
    pytest.importorskip("ai_edge_litert")
    model = nnrewrite.convert(relu).SerializeToString()
    assert compare_models(io.BytesIO(relu), memoryview(model)).passed


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "a model is a path, bytes or a file open for reading, got an object of type NoneType"),
        ([b"TFL3"], "got an object of type list"),
        (io.StringIO("text"), "open it with mode 'rb'"),
        ("", "a model's path is empty"),
        ("lite\0.tflite", "no file has a name with a null in it"),
        ("https://example.org/net.tflite", "from files, not from the network: download it first"),
        (Path("https://example.org/net.tflite"), "from files, not from the network: download it first"),
    ],
)
def test_what_is_no_model_is_named(source: Any, message: str) -> None:
    with pytest.raises(nnrewrite.RewriteError, match=f".*{message}"):
        nnrewrite.rewrite(source)


def test_what_stands_before_a_null_in_a_name_is_not_compared(relu: bytes, tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(relu)
    with pytest.raises(nnrewrite.CallError, match="no file has a name with a null in it"):
        compare_models(f"{tmp_path / 'net'}\0.tflite", relu)


def test_a_file_that_was_closed_is_told(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(b"")
    with (tmp_path / "net.tflite").open("rb") as file:
        pass
    with pytest.raises(nnrewrite.ModelError, match=r"net.tflite: cannot be read: .*closed"):
        nnrewrite.rewrite(file)


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": "17"}, 'opset takes an integer, got the text "17"'),
        ({"opset": 17.0}, "opset takes an integer, got the number 17.0"),
        ({"opset": True}, "opset takes an integer, got True"),
        ({"batch": 2.5}, "batch takes an integer or a text, got the number 2.5"),
        ({"exact": 1}, "exact takes True or False, got the number 1"),
        ({"target": 3}, "target takes a text, got the number 3"),
        ({"layout": 3}, "layout takes a text or a sequence of texts, got the number 3"),
        ({"rules": ["tflite2onnx", 7]}, "rules takes a text or a sequence of texts, got ['tflite2onnx', 7]"),
        ({"input_shape": {"x": [1, 2]}}, "input_shape takes a text or a sequence of texts, got an object of type dict"),
        ({"state": "extern"}, 'state takes external or internal, got the text "extern"; did you mean external?'),
        ({"activations": "int16"}, "activations takes int8 or uint8"),
        ({"hybrid": "float"}, "hybrid takes integers or real"),
        ({"opsett": 17}, "there is no option opsett; did you mean opset?"),
        ({"member": "inner.tflite"}, "member inner.tflite is of a bundle, which is read from its path"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_takes(relu: bytes, options: dict[str, Any], message: str) -> None:
    with pytest.raises(nnrewrite.CallError) as caught:
        nnrewrite.rewrite(relu, **options)
    assert message in str(caught.value)


def test_a_file_to_write_is_no_second_argument(relu: bytes) -> None:
    with pytest.raises(nnrewrite.CallError, match=r"nnrewrite\.Options, got 'out\.onnx'.*save\(path\)"):
        nnrewrite.convert(relu, "out.onnx")  # type: ignore[arg-type]


def test_paths_and_single_texts_stand_for_sequences(tmp_path: Path) -> None:
    options = nnrewrite.Options(rules=tmp_path, layout="target", target=tmp_path, opset=np.int64(17))  # type: ignore[arg-type]
    assert (options.rules, options.layout, options.target) == ((f"{tmp_path}",), ("target",), f"{tmp_path}")
    assert type(options.opset) is int
    assert options.replace(layout=["x=NHWC:NCHW"]).layout == ("x=NHWC:NCHW",)


def test_type_checkers_know_every_option_with_its_type() -> None:
    fields = {field.name: field.type for field in dataclasses.fields(nnrewrite.Options)}
    known = {name: told.__forward_arg__ for name, told in OptionsDict.__annotations__.items()}
    wider = {"Sequence[str]": "Names", "str": "Name", "str | None": "Name | None"}
    assert list(known) == list(fields)
    for name, told in known.items():
        assert told in (fields[name], wider.get(fields[name])), name


#: lines of a program, and what mypy says of each
LINES = {
    'nnrewrite.rewrite("net.tflite", opset=17, rules=Path("pack"), layout=["target"]).save("net.onnx")': "",
    'nnrewrite.rewrite("net.tflite", opsett=17)': 'Unexpected keyword argument "opsett" for "rewrite"',
    'nnrewrite.convert("net.tflite", opset="17")': 'Argument "opset" to "convert" has incompatible type "str"',
    "nnrewrite.convert(17)": 'Argument 1 to "convert" has incompatible type "int"',
    "nnrewrite.convrt": 'Module has no attribute "convrt"',
    "len(nnrewrite.__version__)": "",
}


@pytest.mark.thorough
def test_mypy_finds_wrong_calls_and_no_others(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: it comes with the extra `dev`")
    # mypy finds the package by its name; what is installed may be a link to the sources under another.
    (tmp_path / "nnrewrite").symlink_to(ROOT)
    (tmp_path / "user.py").write_text("\n".join(("from pathlib import Path; import nnrewrite; Path()", *LINES)) + "\n")
    # What the library imports itself from others takes long to read and says nothing of its own types.
    silent = "\n".join(f"[mypy-{name}.*]\nfollow_imports = skip" for name in ("onnx", "onnx_ir", "numpy", "lark"))
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\n{silent}\n")
    call = [sys.executable, "-m", "mypy", "user.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    said = dict(re.findall(r"^user\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE))
    for number, (line, message) in enumerate(LINES.items(), 2):
        found = said.pop(f"{number}", "")
        assert message in found if message else not found, f"{line}: {found}"
    assert not said


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_a_conversion_is_shown_in_one_line(relu: bytes) -> None:
    conversion = nnrewrite.rewrite(relu)
    size = len(conversion.model.SerializeToString())
    assert repr(conversion) == f"<Conversion: 1 -> 1 operator, 0 Transposes, opset 18, {size} B>"


class _Tags(html.parser.HTMLParser):
    """The tags that a text has, and whether each is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_a_conversion_in_which_names_of_the_model_are_text(single: Callable[..., bytes]) -> None:
    name = "<script>alert('x')</script>&"
    operands = {name: ("FLOAT32", (1, 4, 4, 3)), "w": np.ones((3, 1, 1, 3), np.float32), "b": np.zeros(3, np.float32)}
    model = single("CONV_2D", operands, [("FLOAT32", (1, 4, 4, 3))], stride_h=1, stride_w=1)
    conversion = nnrewrite.rewrite(model, layout="target")
    assert name in conversion.report.layouts
    page = _Tags()
    page.feed(conversion._repr_html_())
    elements = {"div", "small", "br", "b", "details", "summary", "table", "tr", "th", "td", "p"}
    assert page.seen <= elements and not [tag for tag in page.open if tag != "br"]
    assert name in page.text and "Conv 1" in page.text and "inputs and outputs (2)" in page.text


def test_what_a_notebook_keeps_of_a_conversion_is_small(models_folder: Path) -> None:
    for model in sorted(models_folder.rglob("*.tflite"))[:5]:
        try:
            conversion = nnrewrite.rewrite(model)
        except nnrewrite.RewriteError:
            continue
        assert len(conversion._repr_html_()) < 20_000


def test_the_types_of_the_library_can_be_read_at_run_time() -> None:
    assert typing.get_type_hints(nnrewrite.OptionsDict)["opset"] == int | None

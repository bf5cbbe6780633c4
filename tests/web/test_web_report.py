"""The page of a conversion in a real browser: drawn, searched, walked along by keys, and deaf to what a model says."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from nnrewrite.conversion.inspection import find_sides
from nnrewrite.engine.base.errors import Refusal, UnsupportedError
from nnrewrite.page import Outcome, Timing, collect, render
from onnx import TensorProto, helper

Load = Callable[..., Any]

ATTACKS = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=document.title='taken'>",
    "\"'><svg onload=document.title='taken'>",
    "javascript:document.title='taken'",
    "__proto__",
    "constructor",
    "n" * 100_000,
    "\u202eltr\u0000\u2028",
)


def network(count: int = 6, name: str = "n") -> onnx.ModelProto:
    """A chain with a skip across each pair of nodes, a constant that is computed, and a Transpose in the middle."""
    nodes = [helper.make_node("Neg", ["w"], ["v"], name="folded")]
    last = "x"
    for i in range(count):
        nodes.append(helper.make_node("Relu", [last], [f"r{i}"], name=f"{name}relu{i}"))
        nodes.append(helper.make_node("Add", [f"r{i}", last if i % 2 else "v"], [f"a{i}"], name=f"{name}add{i}"))
        last = f"a{i}"
    nodes.append(helper.make_node("Transpose", [last], ["y"], perm=[0, 2, 1], name="turn"))
    ends = [helper.make_tensor_value_info(one, TensorProto.FLOAT, [1, 4, 4]) for one in "xy"]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights))
    return onnx.shape_inference.infer_shapes(model)


def save(path: Path, **more: Any) -> Path:
    model = network(more.pop("count", 6), more.pop("name", "n"))
    graph = ir.from_proto(model).graph
    after = more.pop("after", graph)
    layers = [
        {"operator": f"nadd{i}", "name": f"a{i}", "verdict": verdict, "relative": error, "error": f"off by {error}"}
        for i, (verdict, error) in enumerate([("equal", 0.0), ("close", 1e-6), ("spread", 1e-3), ("different", 0.2)])
    ]
    outcome = Outcome(
        more.pop("title", "folder/model.onnx"),
        graph,
        after,
        None if after is None else find_sides(after, ("onnx2onnx",)),
        layers=layers,
        timing=Timing([("a", 1.0, 0.9, 1.0), ("b", 2.0, 1.5, 2.0)], [("nrelu0", "Relu", 1.0), ("nadd0", "Add", 0.5)]),
        **more,
    )
    path.write_text(render(collect(outcome)), encoding="utf-8")
    return path


def colours(page: Any, pane: int) -> int:
    """How many colours a canvas shows."""
    return int(
        page.evaluate(
            """(pane) => { panes[pane].paint(); const c = panes[pane].canvas;
            const all = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
            for (let i = 0; i < all.length; i += 4) seen.add(all[i] << 16 | all[i + 1] << 8 | all[i + 2]);
            return seen.size; }""",
            pane,
        )
    )


def details(page: Any) -> str:
    return str(page.inner_text("#details"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_graphs_are_drawn_in_either_scheme(tmp_path: Path, load: Load, scheme: str) -> None:
    page = load(save(tmp_path / "r.html"), color_scheme=scheme)
    assert colours(page, 0) > 20 and colours(page, 1) > 20
    assert page.title() == "folder/model.onnx" and page.inner_text("h1") == "model.onnx"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    page.click("#scheme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_click_on_a_node_tells_of_it_and_lights_up_its_like(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    page.evaluate("document.getElementById('graphs').scrollIntoView()")
    spot = page.evaluate(
        """() => { const p = panes[1], n = p.graph.nodes.find((one) => one.name === "nadd1");
        const box = p.canvas.getBoundingClientRect();
        p.centre(n.at); return [box.x + n.x * p.scale + p.x, box.y + n.y * p.scale + p.y]; }"""
    )
    page.mouse.click(*spot)
    assert "nadd1" in details(page) and "1 \u00d7 4 \u00d7 4" in details(page) and "Stems from" in details(page)
    assert page.evaluate("[...panes[0].hits].map((i) => panes[0].graph.nodes[i].name)") == ["nadd1"]
    page.click("#details li button.link")
    assert "nrelu1" in details(page) or "nadd0" in details(page)


def test_keys_search_walk_and_let_go(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    page.keyboard.press("/")
    page.keyboard.type("nadd")
    assert page.inner_text("#hits") == "6 before, 6 after"
    page.keyboard.press("Enter")
    assert page.inner_text("#hits") == "1 of 12"
    page.keyboard.press("Shift+Enter")
    assert page.inner_text("#hits") == "12 of 12"
    page.keyboard.press("Escape")
    assert page.input_value("#search") == "" and page.evaluate("panes.every((pane) => !pane.hits.size)")
    page.focus("canvas.graph >> nth=1")
    walked = []
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "End"):
        page.keyboard.press(key)
        walked.append(page.evaluate("panes[1].graph.nodes[panes[1].chosen].name"))
    assert walked == ["x", "nrelu0", "nadd0", "nrelu1", "nadd0", "y"]
    before = page.evaluate("panes[1].scale")
    page.keyboard.press("+")
    assert page.evaluate("panes[1].scale") > before
    page.keyboard.press("0")
    whole = """() => { const p = panes[1], b = p.bounds;
        return b.top * p.scale + p.y >= 0 && b.bottom * p.scale + p.y <= p.height; }"""
    assert page.evaluate(whole)


def test_nodes_of_constants_are_hidden_until_they_are_asked_for(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    shown = "panes[0].visible.some((n) => n.name === 'folded')"
    assert not page.evaluate(shown)
    page.click("text=constants >> nth=0")
    assert page.evaluate(shown)


def test_layers_are_plotted_and_lead_to_their_nodes(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    assert page.locator("#plot canvas").count() == 1
    assert page.locator("#layers tbody tr").count() == 4
    page.click("#layers button.link >> nth=2")
    assert "nadd2" in details(page) and "off by 0.001 (spread)" in details(page)
    plot = page.locator("#plot .u-over")
    plot.click(position={"x": plot.bounding_box()["width"] * 0.87, "y": 20})
    assert "nadd3" in details(page)


def test_colours_tell_of_error_and_latency(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    for by, name, other in (("error", "nadd3", "nadd0"), ("latency", "nrelu0", "nadd0")):
        page.select_option("#paint", by)
        fills = page.evaluate(
            "(names) => names.map((name) => panes[1].fill(panes[1].graph.nodes.find((n) => n.name === name)))",
            [name, other],
        )
        assert "100%" in fills[0] and fills[0] != fills[1]
    assert "ms" in page.inner_text("#kernels")


def test_refused_nodes_are_found_from_the_list_of_refusals(tmp_path: Path, load: Load) -> None:
    error = UnsupportedError([Refusal("Add", "nadd2", why="it is not supported")], advice="write a rule")
    page = load(save(tmp_path / "r.html", after=None, error=error))
    assert "it is not supported" in page.inner_text("#refused") and "write a rule" in page.inner_text("#advice")
    page.click("#refusals button.link")
    assert "Why it is refused" in details(page)
    assert not page.is_visible("#costs") and page.locator("canvas.graph").count() == 1


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_model_says_is_shown_and_never_run(tmp_path: Path, load: Load, attack: str) -> None:
    error = UnsupportedError([Refusal(attack, attack, why=attack)])
    page = load(save(tmp_path / "r.html", title=attack, name=attack, error=error))
    page.fill("#search", attack[:50].replace("\0", ""))
    page.keyboard.press("Enter")
    page.focus("canvas.graph >> nth=0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.title() != "taken"
    assert page.locator("img, svg, iframe, object").count() == 0
    assert page.locator("script").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_script_that_is_not_the_page_s_own_is_refused(tmp_path: Path, browser: Any) -> None:
    path = save(tmp_path / "r.html")
    path.write_text(path.read_text(encoding="utf-8").replace("</main>", "<script>window.taken=1</script></main>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("window.taken") is None
    page.close()


def test_ten_thousand_nodes_are_drawn_in_seconds(tmp_path: Path, load: Load) -> None:
    path = save(tmp_path / "r.html", count=5_000)
    assert path.stat().st_size < 10_000_000
    started = time.perf_counter()
    page = load(path)
    assert time.perf_counter() - started < 15
    page.evaluate("panes[1].fit()")
    assert colours(page, 1) > 5


def test_a_narrow_window_has_all_in_one_column(tmp_path: Path, load: Load) -> None:
    page = load(save(tmp_path / "r.html"))
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tops = page.evaluate("[...document.querySelectorAll('canvas.graph')].map((c) => c.getBoundingClientRect().top)")
    assert tops[0] < tops[1]

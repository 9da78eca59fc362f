"""The page of `isoform view` in a headless Chromium: `pytest -m browser`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import CHROMIUM, Browser
from support.viewed import HOSTILE, convolution_with_batch_norm, report_of

from isoform import GraphBuilder, Program
from isoform.compiler.reports.view.page import page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: chromium)"),
]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as found:
        yield found
        assert found.errors == []


def show(browser: Browser, tmp_path: Path, program: Program) -> None:
    show_report(browser, tmp_path, report_of(program))


def show_report(browser: Browser, tmp_path: Path, report: dict[str, Any]) -> None:
    (tmp_path / "page.html").write_text(page(report), "utf-8")
    browser.open(tmp_path / "page.html")


def count(browser: Browser, selector: str) -> int:
    return int(browser.run(f"document.querySelectorAll({json.dumps(selector)}).length"))


def text_of(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def middle(browser: Browser, selector: str) -> tuple[float, float]:
    box = browser.run(
        f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    return box[0], box[1]


def test_both_programs_are_drawn_at_each_level(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    for level in ("graph", "algebra", "kernel"):
        browser.run(f"showLevel('{level}')")
        for side in ("before", "after"):
            drawn, nodes = count(browser, f"#{side} .node"), f"data.levels.{level}.{side}.nodes"
            assert drawn == browser.run(f"{nodes}.length") > 2
    assert "conv" in text_of(browser, "#before .node.ruled text")


def test_a_click_on_a_node_shows_it_and_its_pair(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    k = browser.run("data.levels.graph.before.nodes.findIndex((n) => n.op === 'graph.relu')")
    browser.click(*middle(browser, f"#before .node[data-k='{k}']"))
    assert "graph.relu" in text_of(browser, "#details h2")
    assert "graph.relu" in text_of(browser, "#details pre")
    assert count(browser, "#before .node.on") == count(browser, "#after .node.on") == 1


def test_a_click_on_a_rewrite_shows_ir_before_and_after(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    browser.run("document.querySelectorAll('#rules details').forEach((d) => { d.open = true; })")
    browser.click(*middle(browser, "#rules li button"))
    assert text_of(browser, "#details h2") == "fold-batch-norm"
    shown = text_of(browser, "#details")
    for word in ("IR before", "IR after", "graph.batch_norm", "exact", "price", "conv1"):
        assert word in shown, word
    assert count(browser, "#before .node.on") and count(browser, "#after .node.on")


def test_finding_dims_what_does_not_match(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    browser.run("document.getElementById('find').value = 'relu'; find()")
    assert text_of(browser, "#hits") == "2 found"
    assert count(browser, ".finding .node.hit") == 2
    browser.run("nextHit(1)")
    assert text_of(browser, "#hits") == "1 of 2" and "graph.relu" in text_of(browser, "#details h2")


def test_the_ir_is_searched_where_no_op_or_name_has_it(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    for text, ops in (("conv", ["graph.conv"]), ("strides", ["graph.conv"])):
        browser.run(f"document.getElementById('find').value = '{text}'; find()")
        found = browser.run("hits.map(([side, k]) => data.levels.graph[side].nodes[k].op)")
        assert sorted(set(found)) == ops, text


def test_equal_forms_of_the_e_graph_are_shown(browser: Browser, tmp_path: Path) -> None:
    report = report_of(convolution_with_batch_norm())
    form = {"ir": HOSTILE, "seconds": 1e-6, "rule": "r", "chosen": True}
    other = {**form, "rule": "", "chosen": False, "seconds": 0.0}
    report["rewrites"][0]["equal"] = [{"value": "%y", "forms": [form, other], "more": 3}]
    show_report(browser, tmp_path, report)
    browser.run("chooseRewrite(0)")
    assert count(browser, "#details .forms li") == 3 and count(browser, "#details .chosen") == 1
    shown = text_of(browser, "#details .forms")
    for word in (HOSTILE, "chosen, 1.0", "free, of the program", "and 3 more"):
        assert word in shown, word


def test_a_curve_of_any_length_is_drawn(browser: Browser, tmp_path: Path) -> None:
    report = report_of(convolution_with_batch_norm())
    search = {"strategy": "saturate", "stop_reason": "time", "kept": True, "reason": "why"}
    report["searches"] = [{**search, "curve": [[0.0, 1, 2e-3], [1e12, 9, 1e-3]]}]
    show_report(browser, tmp_path, report)
    browser.run("tab('search')")
    assert 2 < count(browser, "#search .curve text") < 40


def test_columns_that_are_alike_are_laid_out_once(browser: Browser, tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 8))
    for _ in range(600):
        x = b.add(b.relu(x), b.neg(x))
    b.output("y", x)
    report = report_of(b.build())
    for name in ("algebra", "kernel"):
        report["levels"][name] = {"before": None, "after": None}
    show_report(browser, tmp_path, report)
    laid = browser.run(
        "(() => { let n = 0; const own = dagre.layout; dagre.layout = (g) => { n++; own(g); };"
        " const made = layout(data.levels.graph.before.nodes, 0.8); dagre.layout = own;"
        " const at = new Set(made.places.map((p) => `${p.x} ${p.y}`));"
        " return [n, at.size, made.places.length, made.edges.length]; })()"
    )
    reads = "data.levels.graph.before.nodes.reduce((n, node) => n + (node.reads || []).length, 0)"
    assert laid[0] < 15 and laid[1] == laid[2] and laid[3] == browser.run(reads)


def test_the_wheel_zooms_and_a_drag_moves(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    x, y = middle(browser, "#after svg")
    before = browser.run("state.panes.after.k")
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
    assert browser.run("state.panes.after.k") > before
    left = browser.run("state.panes.after.x")
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + 60, y + 10, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 60, y + 10, button="left", clickCount=1)
    assert browser.run("state.panes.after.x") == pytest.approx(left + 60)


def test_light_and_dark_follow_the_system_and_the_switch(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, convolution_with_batch_norm())
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(colour)
    browser.prefer("dark")
    dark = browser.run(colour)
    assert dark != light
    browser.click(*middle(browser, "#theme"))
    assert browser.run(colour) == light


def test_a_hostile_name_does_nothing(browser: Browser, tmp_path: Path) -> None:
    report = report_of(convolution_with_batch_norm(HOSTILE))
    report["source"], report["message"] = HOSTILE, HOSTILE
    report["rejected"] = [{"rule": HOSTILE, "place": HOSTILE, "reason": HOSTILE}]
    show_report(browser, tmp_path, report)
    for name in ("program", "time", "search", "rejected"):
        browser.run(f"tab('{name}')")
    browser.run("chooseRewrite(0)")
    assert count(browser, "img") == 0 and text_of(browser, "#title") == HOSTILE


def test_all_tabs_show_something(browser: Browser, tmp_path: Path) -> None:
    report = report_of(convolution_with_batch_norm())
    search = {"strategy": "saturate", "stop_reason": "time", "kept": True, "reason": "why"}
    report["searches"] = [
        {**search, "curve": [[0.0, 1, 2e-3], [0.5, 9, 1e-3]], "matches": {"r": 3}}
    ]
    report["stages_s"] = {"rewrite": 0.1, "saturate": 0.9}
    show_report(browser, tmp_path, report)
    browser.run("tab('time')")
    assert count(browser, "#time .treemap") == 2 and count(browser, "#time .tile") >= 2
    browser.run("tab('search')")
    assert count(browser, "#search .curve .point") == 2 and count(browser, "#search .stages") == 1
    browser.run("tab('rejected')")
    assert "Nothing was rejected" in text_of(browser, "#rejected")


def seconds_of(nodes: str) -> str:
    clock = "performance.now()"
    return f"(() => {{ const t = {clock}; layout({nodes}, 0.8); return {clock} - t; }})()"


def test_three_thousand_nodes_are_laid_out_in_linear_time(browser: Browser, tmp_path: Path) -> None:
    b = GraphBuilder()
    kept = [b.input("x", (1, 8))]
    for k in range(3000):
        kept.append(b.add(kept[-1], kept[-4]) if k % 4 == 3 else b.relu(kept[-1]))
    b.output("y", kept[-1])
    report = report_of(b.build())
    for name in ("algebra", "kernel"):
        report["levels"][name] = {"before": None, "after": None}
    show_report(browser, tmp_path, report)
    assert count(browser, "#before .node") > 3000
    many, few = "data.levels.graph.before.nodes", "data.levels.graph.before.nodes.slice(0, 300)"
    assert browser.run(seconds_of(few)) * 60 > browser.run(seconds_of(many)), "not linear"
    browser.run("state.panes.before.zoomBy(1.4)")
    assert browser.run("document.querySelector('#before .minimap').hidden") is False

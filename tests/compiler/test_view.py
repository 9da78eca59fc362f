"""`isoform view`: the page's data and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.viewed import HOSTILE, convolution_with_batch_norm, report_of

from isoform import GraphBuilder
from isoform.compiler import api
from isoform.compiler.cli import main
from isoform.compiler.reports.json_schema import first_fault
from isoform.compiler.reports.program_graphs import levels_of
from isoform.compiler.reports.report_schema import REPORT, VERSION
from isoform.compiler.reports.view.data import page_data
from isoform.compiler.reports.view.page import page

LEVELS = ("graph", "algebra", "kernel")
SEARCH = {"strategy": "saturate", "stop_reason": "time", "kept": False, "reason": ""}
COST = {"before": 1.0, "after": 1.0, "kind": "modelled"}


def embedded(text: str) -> Any:
    """The data that a page holds."""
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def test_the_report_keeps_its_schema() -> None:
    assert first_fault(report_of(convolution_with_batch_norm()), REPORT) is None


def test_a_folded_batch_norm_is_shown_with_its_ir_and_price() -> None:
    data = page_data(report_of(convolution_with_batch_norm()))
    fold = next(r for r in data["rewrites"] if r["rule"] == "fold-batch-norm")
    assert "graph.batch_norm" in fold["before"] and "graph.batch_norm" not in fold["after"]
    assert fold["seconds"][1] < fold["seconds"][0]
    assert fold["source"] == "conv1" and data["families"][fold["family"]] == "fold-batch-norm"
    before, after = fold["at"]["graph"]
    nodes = data["levels"]["graph"]
    replaced = [nodes["before"]["nodes"][k]["op"] for k in before]
    assert replaced == ["graph.conv", "graph.batch_norm"]
    assert "graph.conv" in [nodes["after"]["nodes"][k]["op"] for k in after]


def test_nodes_that_stay_are_paired_and_the_others_are_not() -> None:
    level = page_data(report_of(convolution_with_batch_norm()))["levels"]["graph"]
    before, after = (level[side]["nodes"] for side in ("before", "after"))
    pairs = {n["op"]: after[n["pair"]]["op"] for n in before if "pair" in n}
    assert pairs["graph.relu"] == "graph.relu" and pairs["input"] == "input"
    assert [n["op"] for n in before if "pair" not in n] == ["graph.conv", "graph.batch_norm"]
    for side, other in ((before, after), (after, before)):
        assert all(other[n["pair"]]["pair"] == k for k, n in enumerate(side) if "pair" in n)


def test_rewrites_of_ops_without_a_source_node_are_not_guessed() -> None:
    b = GraphBuilder()
    x = b.input("x", (4,))
    for _ in range(4):
        x = b.relu(b.relu(x))
    b.output("y", x)
    rewrites = page_data(report_of(b.build()))["rewrites"]
    assert len(rewrites) > 1
    assert all(r["at"]["graph"] == [[], []] or len(r["at"]["graph"][1]) == 1 for r in rewrites)


def test_every_level_has_nodes_that_read_earlier_ones() -> None:
    levels = page_data(report_of(convolution_with_batch_norm()))["levels"]
    assert list(levels) == ["graph", "algebra", "kernel"]
    for level in levels.values():
        for graph in level.values():
            nodes = graph["nodes"]
            assert nodes[0]["op"] == "input" and nodes[-1]["op"] == "output"
            assert all(read < k for k, n in enumerate(nodes) for read in n.get("reads", []))
            assert nodes[-1]["reads"], "the output reads nothing"


def test_a_program_below_the_graph_level_has_no_graph() -> None:
    from isoform.compiler.targets.levels import lower_to

    data = page_data(report_of(lower_to(convolution_with_batch_norm(), "kernel")))
    assert data["levels"]["graph"] == {"before": None, "after": None}
    assert data["first"] == "kernel" and data["levels"]["kernel"]["after"]["nodes"]


def test_a_hostile_name_stays_text() -> None:
    report = report_of(convolution_with_batch_norm(HOSTILE))
    report["source"] = HOSTILE
    text = page(report)
    assert HOSTILE not in text and "<img" not in text
    assert text.count("</script>") == 3
    data = embedded(text)
    assert data["title"] == HOSTILE
    assert HOSTILE in [n["source"] for n in data["levels"]["graph"]["after"]["nodes"]]


def test_the_page_allows_its_own_programs_only() -> None:
    text = page(report_of(convolution_with_batch_norm()))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="', text)


def test_the_same_report_gives_the_same_bytes() -> None:
    report = report_of(convolution_with_batch_norm())
    again = json.loads(json.dumps(report))
    assert page(report) == page(again)


def test_the_command_reads_what_optimize_wrote(tmp_path: Path) -> None:
    api.save(convolution_with_batch_norm(), tmp_path / "m.mlir")
    model, report, out = (str(tmp_path / name) for name in ("m.mlir", "r.json", "page.html"))
    flags = ["--target", "h100", "--strategy", "saturate", "--budget", "3600", "-q"]
    assert main(["optimize", model, "--report", report, *flags]) == 0
    assert main(["view", report, "-o", out]) == 0
    data = embedded(Path(out).read_text())
    assert data["searches"][0]["name"] == "saturate"
    assert data["kernels"]["kind"] == "modelled" and data["kernels"]["after"]


def test_each_step_of_a_derivation_tells_what_it_made() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 256, 14, 14))
    w = b.weight("w", np.ones((256, 256, 3, 3), np.float32))
    dilated = {"strides": [1, 1], "pads": [2, 2, 2, 2], "dilations": [2, 2]}
    b.output("y", b.conv(x, w, **dilated))
    better = api.optimize(b.build(), "h100", strategy="derive", budget=3600)
    data = page_data({**better.report, "levels": levels_of(better)})
    *steps, match = [r for r in data["rewrites"] if r.get("search") == "derive"]
    assert steps and match["rule"] == "derive match" and "became" not in match
    assert len({step["became"] for step in steps}) == len(steps)
    assert all("algebra.scope" in step["became"] for step in steps)
    assert data["searches"][0]["points"][-1][3] < 1.0


def test_measured_kernels_are_preferred() -> None:
    report = report_of(convolution_with_batch_norm())
    row = {"place": "kernel.conv 'conv1'", "kernel": "k", "seconds": 1e-3}
    report["kernels"] = {"before": [row], "after": []}
    found = page_data(report)["kernels"]
    assert found["kind"] == "measured" and found["after"] == []
    assert found["before"][0]["label"] == "conv conv1"


def test_optimize_measures_kernels_and_tells_what_it_searched() -> None:
    better = api.optimize(convolution_with_batch_norm(), strategy="saturate", budget=3600)
    assert set(better.report["kernels"]) == {"before", "after"}
    assert all(k["seconds"] > 0 for k in better.report["kernels"]["after"])
    assert first_fault({**better.report, "levels": levels_of(better)}, REPORT) is None


def line_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command says when it fails."""
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def graphs(reads: list[int], pair: int) -> dict[str, Any]:
    """A level whose node reads these nodes and has this pair."""
    node = {"op": "graph.relu", "place": "r", "ir": "", "when": "run", "reads": reads, "pair": pair}
    return {"before": {"nodes": [node]}, "after": {"nodes": [node]}}


def report_file(tmp_path: Path, **changes: Any) -> str:
    report = report_of(convolution_with_batch_norm()) | changes
    file = tmp_path / "r.json"
    file.write_text(json.dumps({k: v for k, v in report.items() if v is not None}))
    return str(file)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": VERSION + 1}, f"another isoform: expected version {VERSION}, found"),
        ({"version": None, "format": None}, "run isoform optimize --report again"),
        ({"levels": None}, "this report holds no programs"),
        ({"cost": 3}, "this is not a report of isoform optimize: cost is not an object"),
        ({"rewrites": {}}, "rewrites is not an array"),
        ({"searches": [SEARCH | {"looked_at": 1.0}]}, "searches[0].looked_at is not a string"),
        ({"levels": {}}, "levels.graph is missing"),
        ({"levels": {"graph": None, "algebra": {}, "kernel": {}}}, "levels.graph is not an object"),
        ({"levels": dict.fromkeys(LEVELS, graphs([9], 0))}, "levels.graph: a node reads node 9"),
        ({"levels": dict.fromkeys(LEVELS, graphs([], 7))}, "levels.graph: a node has a pair 7"),
        ({"cost": COST | {"after": float("inf")}}, "a number is not finite"),
        ({"searches": [SEARCH | {"curve": [[1.0]]}]}, "searches[0].curve[0]"),
    ],
)
def test_a_report_that_is_none_is_refused_in_a_line(
    changes: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    line = line_of(["view", report_file(tmp_path, **changes), "-o", str(out)], capsys)
    assert said in line and not out.exists()


@pytest.mark.parametrize("text", ["[]", "3", "nonsense", '{"version": "two"}'])
def test_other_json_is_refused_in_a_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(text)
    line = line_of(["view", str(tmp_path / "r.json"), "-o", str(tmp_path / "p.html")], capsys)
    assert "this is not" in line


def test_other_mistakes_are_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "p.html")
    assert "No such file" in line_of(["view", str(tmp_path / "none.json"), "-o", out], capsys)
    assert "no such file" in line_of(["view", str(tmp_path / "none.mlir"), "-o", out], capsys)
    assert "unknown target" in line_of(["view", "zoo:dcgan", "--target", "x", "-o", out], capsys)
    assert "PAGE.html" in line_of(["view", "zoo:dcgan", "-o", str(tmp_path / "p.txt")], capsys)
    missing = str(tmp_path / "no" / "p.html")
    assert "its folder does not exist" in line_of(["view", "zoo:dcgan", "-o", missing], capsys)

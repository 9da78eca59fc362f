"""Kept nodes that loop nests run compute what onnxruntime does, for random attributes."""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.random_nodes.corners import cornered
from support.random_nodes.draw import Draw, Generator, Sample
from support.random_nodes.judge import (
    by_compiled,
    by_onnxruntime,
    disagreement,
    imported,
    together,
    verdict,
)

import isoform
from isoform.compiler.commands.check import check_model
from isoform.dialects.errors import UserError
from isoform.lowering.node_to_nest import table
from isoform.lowering.node_to_nest.node import KeptNode

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fuzz_nodes.py"
_spec = importlib.util.spec_from_file_location("fuzz_nodes", SCRIPT)
assert _spec is not None and _spec.loader is not None
fuzz_nodes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz_nodes)
GENERATORS: Mapping[str, Generator] = fuzz_nodes.generators()
NATIVE = list(GENERATORS)


def failures(op: str, seeds: range) -> list[str]:
    """With NaN and infinities, empty dims, and dims that fill vectors among the draws."""
    draw = cornered(GENERATORS[op])
    found = [(seed, verdict(draw(Draw(seed)), "compiled")) for seed in seeds]
    wrong = [(s, v) for s, v in found if v != "agrees" and not v.startswith("no kernel")]
    return [f"seed {s}: {v} ({draw(Draw(s))})" for s, v in wrong]


@pytest.mark.parametrize("op", NATIVE)
def test_a_node_that_nests_run_computes_what_onnxruntime_does(op: str) -> None:
    assert failures(op, range(40, 44)) == []


def test_a_campaign_goes_on_where_its_log_ends(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"op": "TopK", "k": k, "verdict": "agrees"} for k in range(125)]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"op": "To')
    known = fuzz_nodes.read_log(log)
    assert fuzz_nodes.tasks(["TopK", "Det"], 200, known) == [
        ("Det", 0, 100), ("TopK", 100, 100), ("Det", 100, 100),
    ]  # fmt: skip
    assert "| TopK | 125 | 125 | 0 | 0 | 0 |" in fuzz_nodes.table(known)


def test_nodes_of_one_opset_are_compiled_as_one_model() -> None:
    """And one that differs is found among them."""
    samples = [GENERATORS["CumSum"](Draw(seed)) for seed in range(3)]
    samples = [replace(sample, opset=14) for sample in samples]
    found = together(samples)
    assert [disagreement(s, f, by_onnxruntime(s)) for s, f in zip(samples, found, strict=True)] == [
        ""
    ] * 3
    found[1] = {name: array + 1 for name, array in found[1].items()}
    assert disagreement(samples[1], found[1], by_onnxruntime(samples[1]))


def test_no_generated_op_is_left_to_the_host() -> None:
    for op in table.TABLE.keys() & set(NATIVE):
        for seed in range(6):
            check = check_model(imported(GENERATORS[op](Draw(seed))))
            assert check.totals["opaque"] == 0, (op, seed, str(GENERATORS[op](Draw(seed))))


# --- corners that random numbers miss ---


def run(sample: Sample) -> dict[str, Any]:
    program = imported(sample)
    session = isoform.compile(program, threads=1, effort="quick")
    return session(**{k: v for k, v in sample.feeds.items() if k in program.inputs})


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 7, 5000])
def test_of_equal_values_the_first_are_kept(n: int, largest: int) -> None:
    x = np.random.default_rng(n).integers(0, 4, (3, n)).astype(np.float32)
    for k in {1, n // 2 + 1, n}:
        sample = Sample("TopK", [x, np.array([k])], {"largest": largest}, 21, (True, True), (1,))
        found = run(sample)
        order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found["y1"], order)
        np.testing.assert_array_equal(found["y0"], np.take_along_axis(x, order, axis=1))


def test_nan_counts_as_the_largest() -> None:
    x = np.array([3, np.nan, 1, np.inf, np.nan, -np.inf], np.float32)
    for largest, order in ((1, [1, 4, 3, 0]), (0, [5, 2, 0, 3])):
        sample = Sample("TopK", [x, np.array([4])], {"largest": largest}, 21, (True, True), (1,))
        np.testing.assert_array_equal(run(sample)["y1"], order)


def test_a_sample_outside_the_image_does_not_read_its_infinities() -> None:
    x = np.full((1, 1, 2, 2), np.inf, np.float32)
    grid = np.full((1, 1, 1, 2), 5.0, np.float32)
    np.testing.assert_array_equal(run(Sample("GridSample", [x, grid], {}, 20))["y0"], [[[[0.0]]]])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_is_scattered_into_empty_tensors(shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    indices = np.zeros(shape, np.int64)
    found = run(Sample("ScatterElements", [x, indices, x], {"axis": 1 - shape[1] // 3}, 18))["y0"]
    assert found.shape == shape


def test_an_index_out_of_range_is_one_line() -> None:
    x, updates = np.zeros((4, 3), np.float32), np.ones((2,), np.float32)
    indices = np.array([[0, 1], [2, 3]])
    with pytest.raises(UserError, match=r"index 3 at .* is out of range") as error:
        run(Sample("ScatterND", [x, indices, updates], {}, 18))
    assert "\n" not in str(error.value)


def test_a_row_is_scanned_in_order() -> None:
    """A product with a triangle of ones would add an infinity times zero."""
    x = np.ones((2, 100), np.float32)
    x[0, 50] = np.inf
    found = run(Sample("CumSum", [x, np.array(1)], {}, 14, (True,), (1,)))["y0"]
    np.testing.assert_array_equal(found, np.cumsum(x, axis=1))


def test_a_wrong_nest_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = table.TABLE["TopK"]

    def wrong(node: KeptNode) -> None:
        node.attributes["largest"] = 1 - node.attributes.get("largest", 1)
        right(node)

    assert failures("TopK", range(4)) == []
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))  # whole programs are kept
    monkeypatch.setattr("isoform.lowering.node_to_nest.find.TABLE", {**table.TABLE, "TopK": wrong})
    assert failures("TopK", range(4)) != []


def test_kept_nodes_with_nests_are_native_in_the_report() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3, 4] x, int64[2, 4] i, float[2, 4] u) => (float[3, 4] y) {
        y = ScatterElements <axis = 0> (x, i, u)
    }"""
    check = check_model(onnx.parser.parse_model(text))
    assert check.totals["native"] == 1
    assert check.blockers == ()


@pytest.mark.parametrize("seed", range(8))
def test_a_given_shape_of_max_unpool_is_filled_from_the_front(seed: int) -> None:
    """As the node test has it, and onnx.reference; onnxruntime counts indices in that shape."""
    d = Draw(seed)
    rank, batch = d.int(1, 3), d.ints(1, 2, 2)
    kernel, size = d.ints(1, 3, rank), d.ints(1, 3, rank)
    strides = [max(k, d.int(1, 3)) for k in kernel]
    full = [(n - 1) * s + k for n, s, k in zip(size, strides, kernel, strict=True)]
    count, room = int(np.prod(size)), int(np.prod(full))
    rows = [d.rng.permutation(room)[:count] + room * k for k in range(batch[0] * batch[1])]
    indices = np.reshape(rows, [*batch, *size]).astype(np.int64)
    wanted = np.array([*batch, *(n + d.int(0, 2) for n in full)], np.int64)
    operands = [d.array("float32", [*batch, *size]), indices, wanted]
    sample = Sample("MaxUnpool", operands, {"kernel_shape": kernel, "strides": strides}, 22)
    expected: Any = ReferenceEvaluator(sample.model()).run(None, sample.feeds)
    assert np.array_equal(by_compiled(sample)["y0"], expected[0])

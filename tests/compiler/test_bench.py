"""Benchmarks: interleaving, statistics, peers that are not installed."""

import importlib.util
import json

import numpy as np
import pytest

from isoform.compiler import bench, peers
from isoform.compiler.cli import main
from isoform.compiler.inputs import draw_inputs
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program


def small() -> Program:
    b = GraphBuilder()
    w = b.weight("w", np.ones((8, 8), np.float32))
    b.output("y", b.relu(b.matmul(b.input("x", (4, 8)), w)))
    return b.build("small")


def test_runs_take_turns() -> None:
    calls: list[str] = []
    times = bench.interleave({n: lambda n=n: calls.append(n) for n in "ab"}, 0.0, least=4)
    assert [len(times[n]) for n in "ab"] == [4, 4]
    timed = calls[2 * bench.WARM_UP :]
    assert timed == list("abbaabba"), "each round starts with another"


def test_medians_and_quartiles() -> None:
    assert bench.median([3, 1, 2]) == 2
    assert bench.quartiles([1, 2, 3, 4, 5]) == (2, 4)


def test_the_machine_is_described() -> None:
    about = bench.machine()
    assert about["cpu"]
    assert about["cores"] >= 1


def test_differences_are_relative_to_the_peers_magnitude() -> None:
    assert bench.difference([np.array([1.0, 10.0])], [np.array([2.0, 10.0])]) == pytest.approx(0.1)
    assert bench.difference([np.zeros(0)], [np.zeros(0)]) == 0.0


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> peers.Peer:
        raise ImportError("no")

    monkeypatch.setitem(peers.PEERS, "openvino", missing)
    found = bench.bench(small(), ["openvino"], threads=1, seconds=0.05)
    assert found["absent"] == ["openvino"]
    assert "openvino is not installed, so it was left out" in bench.format_bench(found)


def test_an_unknown_runtime_is_an_error() -> None:
    with pytest.raises(UserError, match="unknown runtime 'onnx'"):
        bench.bench(small(), ["onnx"], threads=1, seconds=0.05)


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime")
def test_onnxruntime_is_measured_and_agrees() -> None:
    found = bench.bench(small(), ["onnxruntime"], threads=1, seconds=0.1)
    ours, theirs = found["results"]
    assert (ours["runtime"], ours["ratio"]) == ("isoform", 1.0)
    assert theirs["ratio"] == pytest.approx(theirs["median_s"] / ours["median_s"])
    assert theirs["p25_s"] <= theirs["median_s"] <= theirs["p75_s"]
    assert ours["runs"] == theirs["runs"] >= 5
    assert found["differences"]["onnxruntime"] < 1e-5


def test_ncnn_is_measured_at_batch_1_only() -> None:
    with pytest.raises(UserError, match="batch 1 only"):
        peers.ncnn_peer(small(), 1, {"x": np.ones((4, 8), np.float32)})


def convolution() -> Program:
    b = GraphBuilder()
    v = b.weight("v", np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32))
    same = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    b.output("y", b.relu(b.conv(b.input("x", (1, 3, 9, 9)), v, **same)))
    return b.build("convolution")


@pytest.mark.parametrize("name", ["openvino", "torch", "torch-compile", "ncnn"])
def test_every_peer_that_is_installed_computes_the_same(name: str) -> None:
    program = convolution()
    feeds = draw_inputs(program)
    opened, absent = bench.open_peers(program, [name], 1, feeds)
    if absent:
        pytest.skip(f"{name} is not installed")
    exact = [np.asarray(reference.run(program, feeds)["y"])]
    assert bench.difference(opened[0].run(), exact) < 1e-5


def test_bench_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "zoo:dcgan", "--json", "--seconds", "0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"].endswith("dcgan")
    assert found["results"][0]["median_s"] > 0
    assert main(["bench", "zoo:dcgan", "--seconds", "0.1"]) == 0
    assert "median ms" in capsys.readouterr().out

"""Benchmarks: interleaving, statistics, peers that are not installed."""

import importlib.util
import json

import numpy as np
import pytest

from isoform.compiler.cli import main
from isoform.compiler.commands import bench
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers import runtimes as peers
from isoform.compiler.peers import timing
from isoform.compiler.peers.model_file import peer_model
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
    times = timing.interleave({n: lambda n=n: calls.append(n) for n in "ab"}, 0.0, least=4)
    assert [len(times[n]) for n in "ab"] == [4, 4]
    timed = calls[2 * timing.WARM_UP :]
    assert timed == list("abbaabba"), "each round starts with another"


def test_medians_and_quartiles() -> None:
    assert timing.median([3, 1, 2]) == 2
    assert timing.quartiles([1, 2, 3, 4, 5]) == (2, 4)


def test_the_machine_is_described() -> None:
    about = timing.machine()
    assert about["cpu"]
    assert about["cores"] >= 1


def test_differences_are_relative_to_the_peers_magnitude() -> None:
    assert timing.difference([np.array([1.0, 10.0])], [np.array([2.0, 10.0])]) == pytest.approx(0.1)
    assert timing.difference([np.zeros(0)], [np.zeros(0)]) == 0.0


def test_what_is_not_finite_must_stand_at_the_same_positions() -> None:
    nan, inf = float("nan"), float("inf")
    assert timing.difference([np.array([nan, inf, 1.0])], [np.array([nan, inf, 1.0])]) == 0.0
    for other in ([1.0, inf, 1.0], [nan, -inf, 1.0], [nan, 1.0, 1.0]):
        assert timing.difference([np.array([nan, inf, 1.0])], [np.array(other)]) == inf
        assert timing.difference([np.array(other)], [np.array([nan, inf, 1.0])]) == inf
    assert timing.difference([np.zeros((2, 1))], [np.zeros(2)]) == inf


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


def test_a_peer_that_refuses_the_model_is_left_out_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refusing(*_: object) -> peers.Peer:
        raise peers.Refused("openvino refuses the model: no")

    monkeypatch.setitem(peers.PEERS, "openvino", refusing)
    found = bench.bench(small(), ["openvino"], threads=1, seconds=0.05)
    assert found["refused"] == {"openvino": "openvino refuses the model: no"}
    assert "openvino was left out: openvino refuses the model: no" in bench.format_bench(found)


def test_ncnn_is_measured_at_batch_1_only() -> None:
    with peer_model(small()) as model, pytest.raises(UserError, match="batch 1 only"):
        peers.ncnn_peer(model, 1, {"x": np.ones((4, 8), np.float32)})


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
    with peer_model(program) as model:
        opened = bench.open_peers(model, [name], 1, feeds)
        if opened.absent:
            pytest.skip(f"{name} is not installed")
        exact = [np.asarray(reference.run(program, feeds)["y"])]
        assert timing.difference(opened.peers[0].run(), exact) < 1e-5


def test_bench_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "zoo:dcgan", "--json", "--seconds", "0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"].endswith("dcgan")
    assert found["results"][0]["median_s"] > 0
    assert main(["bench", "zoo:dcgan", "--seconds", "0.1"]) == 0
    assert "median ms" in capsys.readouterr().out

"""Other runtimes run the user's own file, a library's export, or ours, and results say which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from isoform.compiler import api, zoo
from isoform.compiler.cli import main
from isoform.compiler.commands import bench
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers import runtimes as peers
from isoform.compiler.peers import timing
from isoform.compiler.peers.model_file import EXPORTED, peer_model
from isoform.compiler.zoo.originals import ORIGINALS, original_of, write_original
from isoform.dialects.errors import UserError

ort = pytest.importorskip("onnxruntime")


def marked(path: Path, factor: float = 2.0) -> Path:
    """A model whose batch has a name and whose file no exporter of ours would write."""
    w = np.full((3, 3), factor, np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["a"], "not ours"),
            helper.make_node("MatMul", ["a", "w"], ["b"]),
            helper.make_node("Relu", ["b"], ["y"]),
        ],
        "own",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(w, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_an_onnx_file_is_given_to_peers_itself_and_its_dims_are_bound(tmp_path: Path) -> None:
    path = marked(tmp_path / "own.onnx")
    program = api.load(path, {"x": (4, 3)})
    with peer_model(program, path) as model:
        assert model.path == path
        assert model.label == "own.onnx, the file itself"
        assert model.named_dim_sizes == {"batch": 4}
        peer = peers.onnxruntime_peer(model, 1, draw_inputs(program, 0))
    assert (peer.model, peer.settings) == (model.label, "ORT_ENABLE_ALL, batch = 4")


def test_dims_that_an_exporter_calls_unknown_are_not_one_dim(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", "?"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["?", "?"])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 17)]
    path = tmp_path / "unknown.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    program = api.load(path, {"x": (4, 3)})
    with peer_model(program, path) as model:
        assert model.named_dim_sizes == {}
        found = peers.onnxruntime_peer(model, 1, draw_inputs(program, 0)).run()
    assert found[0].shape == (4, 3)


def test_peers_have_no_numbers_of_rows_beside_outputs_that_data_size(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (int64[1, n] y) { a = Relu(x)  y = NonZero(a) }"""
    path = tmp_path / "sized.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    program = api.load(path)
    assert program.output_names == ["y", "y.count"]
    feeds = draw_inputs(program, 0)
    with peer_model(program, path) as model, api.compile(program, threads=1) as session:
        (found,) = peers.onnxruntime_peer(model, 1, feeds).run()
        np.testing.assert_array_equal(found, session.run(None, feeds)[0])


def test_a_program_without_a_file_is_exported_and_labelled_so() -> None:
    program = zoo.build("dcgan")
    with peer_model(program, "zoo:dcgan") as model:
        assert model.label == EXPORTED
        assert model.path.exists()
    assert not model.path.exists()


def test_bench_says_what_each_runtime_ran_and_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = marked(tmp_path / "own.onnx"), marked(tmp_path / "other.onnx", 3.0)
    flags = ["--shape", "x=4,3", "--seconds", "0.05"]
    against = ["--against", f"onnxruntime,onnxruntime:{other}"]
    assert main(["bench", str(own), *flags, *against, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(r["runtime"], r["model"]) for r in found["results"][1:]] == [
        ("onnxruntime", "own.onnx, the file itself"),
        (f"onnxruntime:{other}", "other.onnx, the file itself"),
    ]
    assert all(r["settings"] for r in found["results"])
    assert found["differences"]["onnxruntime"] < 1e-6
    assert found["differences"][f"onnxruntime:{other}"] > 0.1
    assert main(["bench", str(own), *flags, *against]) == 0
    text = capsys.readouterr().out
    assert "onnxruntime runs own.onnx, the file itself (ORT_ENABLE_ALL, batch = 4)" in text
    assert f"onnxruntime:{other} computes something else" in text


def test_another_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        bench.bench(zoo.build("dcgan"), [f"onnxruntime:{tmp_path / 'no.onnx'}"], 1, 0.05)


# --- the zoo's originals ---


@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_has_the_zoos_inputs_outputs_and_weights(name: str) -> None:
    program = zoo.build(name, batch=2)
    assert original_of(program) == ORIGINALS[name]


def test_an_original_of_other_sizes_is_not_used() -> None:
    assert original_of(zoo.build("resnet18", image=64)) is None
    assert original_of(zoo.build("dcgan")) is None


def compare_original(name: str, folder: Path, batch: int) -> None:
    program = zoo.build(name, batch=batch, seed=1)
    feeds = draw_inputs(program, 0)
    with peer_model(program, f"zoo:{name}") as model:
        assert "exported by torch.onnx" in model.label
        theirs = peers.onnxruntime_peer(model, 1, feeds).run()
    session = api.compile(api.improve(program), "cpu", 1, "quick")
    assert timing.difference(session.run(None, feeds), theirs) < 1e-5


@pytest.mark.parametrize("name", ["resnet18", "squeezenet"])
def test_an_original_computes_what_the_zoo_model_does(name: str, tmp_path: Path) -> None:
    compare_original(name, tmp_path, batch=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ORIGINALS) - {"resnet18", "squeezenet"}))
def test_every_original_computes_what_the_zoo_model_does(name: str, tmp_path: Path) -> None:
    compare_original(name, tmp_path, batch=1)


def test_every_weight_of_an_original_comes_from_the_zoo(tmp_path: Path) -> None:
    write_original(zoo.build("squeezenet"), tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    program = zoo.build("squeezenet")
    assert {t.name for t in model.graph.initializer} == set(program.weights)
    for proto in model.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(proto), program.weights[proto.name])


# --- what optimize writes ---


def optimized(tmp_path: Path, *more: str) -> dict[str, Any]:
    own = marked(tmp_path / "own.onnx")
    flags = ["--shape", "x=4,3", "--budget", "1", "--report", str(tmp_path / "report.json")]
    written = ["-o", str(tmp_path / "out.onnx")]
    assert main(["optimize", str(own), *flags, *written, *more]) == 0
    return json.loads((tmp_path / "report.json").read_text())


def test_a_written_file_is_compared_with_its_source_in_onnxruntime(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = optimized(tmp_path)["onnxruntime"]
    assert found["source"] == "own.onnx, the file itself"
    assert found["ratio"] == found["source_s"] / found["result_s"]
    assert found["difference"] < 1e-6
    assert "in onnxruntime: " in capsys.readouterr().out
    _, command, model, *flags = found["command"].split(" ")
    assert main([command, model, *flags, "--seconds", "0.05"]) == 0
    assert "out.onnx runs out.onnx, the file itself" in capsys.readouterr().out


def test_a_file_that_is_slower_there_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isoform.compiler.checks import written_onnx

    times = {"source": [1.0], "result": [1.5]}
    monkeypatch.setattr(written_onnx, "interleave", lambda *_, **__: times)
    report = optimized(tmp_path)
    assert report["onnxruntime"]["ratio"] == 1 / 1.5
    assert "slower than its source: 1.50 times the time" in report["message"]


def test_a_file_that_onnxruntime_refuses_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from isoform.lowering.graph_to_onnx import exporter

    def broken(program: Any, path: Path) -> None:
        path.write_bytes(b"no model")

    monkeypatch.setattr(exporter, "export_onnx", broken)
    own = marked(tmp_path / "own.onnx")
    out = tmp_path / "out.onnx"
    assert main(["optimize", str(own), "--shape", "x=4,3", "--budget", "1", "-o", str(out)]) == 1
    assert "onnxruntime does not run the result, so it is not written" in capsys.readouterr().err
    assert not out.exists()


def test_without_onnxruntime_the_report_says_that_nothing_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert "not installed" in optimized(tmp_path)["onnxruntime"]["note"]


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_type_that_onnxruntime_has_no_arrays_of_is_a_note(side: str, tmp_path: Path) -> None:
    given, made = ("bfloat16", "float") if side == "input" else ("float", "bfloat16")
    to = TensorProto.FLOAT if side == "input" else TensorProto.BFLOAT16
    text = f"g ({given}[8] x) => ({made}[8] y) {{ y = Cast<to = {to}>(x) }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')
    onnx.save(model, tmp_path / "own.onnx")
    flags = ["--budget", "1", "-q", "--report", str(tmp_path / "report.json")]
    assert (
        main(["optimize", str(tmp_path / "own.onnx"), "-o", str(tmp_path / "o.onnx"), *flags]) == 0
    )
    note = json.loads((tmp_path / "report.json").read_text())["onnxruntime"]["note"]
    assert "no numpy arrays of bfloat16" in note

"""load, parse, save, optimize, compile, from_torch."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler import api
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.frontends.program_file import used_weights
from isoform.compiler.search.records import Searched
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program


def conv_net(batch: int = 1) -> Program:
    """conv, batch norm, relu, and a weight that nothing uses."""
    rng = np.random.default_rng(0)
    b = GraphBuilder()

    def weight(name: str, *shape: int) -> object:
        return b.weight(name, rng.uniform(0.5, 1.5, shape).astype(np.float32))

    with b.at("layer1"):
        y = b.conv(
            b.input("x", (batch, 3, 8, 8)),
            weight("w", 4, 3, 3, 3),
            strides=[1, 1],
            pads=[1] * 4,
            dilations=[1, 1],
        )
    y = b.batch_norm(y, *(weight(f"bn.{k}", 4) for k in range(4)))
    b.output("y", b.relu(y))
    b.weights.add("unused", np.ones(3, np.float32))
    return b.build("conv_net")


def agree(one: Program, two: Program, tolerance: float = 1e-5) -> None:
    feeds = draw_inputs(one, 3)
    expected, found = reference.run(one, feeds), reference.run(two, feeds)
    assert list(expected) == list(found)
    for name in expected:
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance * scale)


# --- files --------------------------------------------------------------------------------------


def test_mlir_and_weights_make_a_round_trip(tmp_path: Path) -> None:
    program, path = conv_net(), tmp_path / "net.mlir"
    api.save(program, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.mlir", "net.safetensors"]
    again = isoform.load(path)
    assert sorted(again.weights) == sorted(used_weights(program.module))
    assert again.input_names == ["x"]
    assert again.output_names == ["y"]
    agree(program, again, 0.0)


def test_source_names_survive_the_file(tmp_path: Path) -> None:
    api.save(conv_net(), tmp_path / "net.mlir")
    assert 'loc("layer1")' in (tmp_path / "net.mlir").read_text()
    first = isoform.load(tmp_path / "net.mlir")
    api.save(first, tmp_path / "again.mlir")
    text = (tmp_path / "again.mlir").read_text().replace("again.safe", "net.safe")
    assert text == (tmp_path / "net.mlir").read_text()


def test_without_its_weights_a_program_still_optimises(tmp_path: Path) -> None:
    api.save(conv_net(), tmp_path / "net.mlir")
    (tmp_path / "net.safetensors").unlink()
    program = isoform.load(tmp_path / "net.mlir")
    better = isoform.optimize(program)
    assert better.report["cost"]["kind"] == "modelled"
    assert "weights file is absent" in better.report["message"]
    assert "graph.batch_norm" not in [op.name for op in better.main.body.block.ops]
    with pytest.raises(UserError, match=r"weight .* is not in the weights file"):
        isoform.compile(program, target="reference")
    api.save(better, tmp_path / "better.mlir")
    assert not (tmp_path / "better.safetensors").exists()
    assert isoform.load(tmp_path / "better.mlir").output_names == ["y"]


def test_scalars_stay_scalars_in_a_file(tmp_path: Path) -> None:
    b = GraphBuilder()
    b.output("y", b.add(b.input("x", ()), b.weight("w", np.array(2.0, np.float32))))
    api.save(b.build(), tmp_path / "s.mlir")
    session = isoform.compile(isoform.load(tmp_path / "s.mlir"), target="reference")
    assert session(x=np.float32(1))["y"] == 3


def test_bfloat16_weights_make_a_round_trip(tmp_path: Path) -> None:
    import ml_dtypes

    b = GraphBuilder()
    data = np.array([1.5, -2], ml_dtypes.bfloat16)
    b.output("y", b.neg(b.weight("w", data)))
    api.save(b.build(), tmp_path / "h.mlir")
    again = isoform.load(tmp_path / "h.mlir")
    assert again.weights["w"].dtype == data.dtype
    assert (again.weights["w"] == data).all()


def test_a_weights_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    api.save(conv_net(), tmp_path / "net.mlir")
    text = (tmp_path / "net.mlir").read_text()
    for name in ("../net.safetensors", str(tmp_path / "net.safetensors")):
        (folder / "net.mlir").write_text(text.replace("net.safetensors", name))
        with pytest.raises(UserError, match="outside the model's folder"):
            isoform.load(folder / "net.mlir")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module {}", "no func.func @main"),
        ("func.func private @main()", "no body"),
        ("func.func @main() { func.return", "<text>:1"),
        ("func.func @main() { %0 = graph.rleu %0 : tensor<2xf32> }", "did you mean 'graph.relu'"),
    ],
)
def test_bad_text_is_a_one_line_error(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        isoform.parse(text)
    assert "\n" not in str(caught.value)


def test_bad_names_are_one_line_errors(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "x.mlir").write_bytes(b"\xff\xfe")
    (tmp_path / "x.onnx").write_bytes(b"\x00\x01truncated")
    for name, message in (
        ("zoo:nope", "no model 'nope'"),
        ("resnet18", "did you mean 'zoo:resnet18'"),
        (tmp_path / "x.txt", "FILE.onnx, FILE.mlir, FILE.pt2 or zoo:NAME"),
        (tmp_path / "no.mlir", "no such file"),
        (tmp_path / "x.mlir", "not text"),
        (tmp_path / "x.onnx", "x.onnx"),
    ):
        with pytest.raises(UserError, match=message):
            isoform.load(name)
    with pytest.raises(UserError, match=r"FILE.mlir or FILE.onnx"):
        api.save(conv_net(), tmp_path / "x.txt")


def test_onnx_makes_a_round_trip(tmp_path: Path) -> None:
    program = conv_net()
    api.save(program, tmp_path / "net.onnx")
    agree(program, isoform.load(tmp_path / "net.onnx"), 1e-6)


def test_the_zoo_loads_by_name_batch_and_seed() -> None:
    program = isoform.load("zoo:dcgan", batch=2, seed=5)
    assert program.inputs["latent"].get_shape()[0] == 2
    other = isoform.load("zoo:dcgan", seed=6)
    name = used_weights(program.module)[0]
    assert (program.weights[name] != other.weights[name]).any()


# --- optimize -----------------------------------------------------------------------------------


def test_optimize_folds_and_reports() -> None:
    program = conv_net()
    before = str(program.module)
    better = isoform.optimize(program, target="h100", strategy="derive", budget=3600)
    assert str(program.module) == before, "the input is not changed"
    agree(program, better)
    report = better.report
    assert report["cost"]["after"] < report["cost"]["before"]
    assert report["cost"]["unit"] == "s"
    assert [r["rule"] for r in report["rewrites"]].count("fold-batch-norm") == 1
    assert report["rewrites"][0]["place"] == "graph.conv 'layer1'"
    assert report["rewrites"][0]["delta"] < 0
    assert report["stop_reason"] == "finished"
    assert (report["source"], report["target"], report["seed"]) == ("conv_net", "h100", 0)


def test_optimize_measures_on_the_cpu() -> None:
    better = isoform.optimize(conv_net(), target="cpu", strategy="derive", budget=3600)
    assert better.report["cost"]["kind"] == "measured"
    agree(conv_net(), better)


def test_a_slower_result_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    from isoform.compiler.search import optimizer

    slower = optimizer.Comparison(1.0, 1.25, 1.0, "measured")
    monkeypatch.setattr(optimizer, "measure_pair", lambda *_: slower)
    program = conv_net()
    better = isoform.optimize(program, strategy="derive", budget=3600)
    assert str(better.module) == str(program.module)
    assert better.report["stop_reason"] == "no gain found"
    assert better.report["rewrites"] == []
    assert "1.250x as slow" in better.report["message"]
    assert better.cost["after"] == better.cost["before"]


def test_nothing_to_rewrite_is_said() -> None:
    b = GraphBuilder()
    b.output("y", b.relu(b.input("x", (4,))))
    better = isoform.optimize(b.build(), target="v100", strategy="derive")
    assert better.report["stop_reason"] == "no gain found"
    assert "no rewrite applies" in better.report["message"]


def test_a_search_that_ended_early_does_not_say_that_nothing_applies() -> None:
    entries = [
        {"strategy": "saturate", "stop_reason": "finished"},
        {"strategy": "derive", "stop_reason": "time"},
    ]
    searched = Searched(conv_net(), searches=entries)
    assert searched.nothing == "no gain found in the time that derive had: --budget gives more"
    searched.searches.pop()
    assert searched.nothing == "no gain found: no rewrite applies"


def test_the_result_is_the_same_every_time() -> None:
    asked = {"target": "a100", "strategy": "derive", "budget": 3600.0}
    one, two = (isoform.optimize(conv_net(), **asked) for _ in range(2))  # pyright: ignore
    assert str(one.module) == str(two.module)
    timed = ("elapsed_s", "stages_s")
    assert {k: v for k, v in one.report.items() if k not in timed} == {
        k: v for k, v in two.report.items() if k not in timed
    }


def test_strategies_and_targets_are_checked_first() -> None:
    with pytest.raises(UserError, match="did you mean 'optimize'"):
        isoform.optimize(conv_net(), strategy="optimise")
    with pytest.raises(UserError, match="unknown target"):
        isoform.optimize(conv_net(), target="tpu")


# --- torch --------------------------------------------------------------------------------------

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_without_torch_it_says_how_to_install_it() -> None:
    with pytest.raises(UserError, match=r"torch is not installed \(pip install"):
        isoform.from_torch(object(), np.ones(1))


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_a_torch_module_is_imported() -> None:
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    x = torch.ones(2, 3)
    program = isoform.from_torch(module, x)
    session = isoform.compile(program, target="reference")
    np.testing.assert_allclose(
        session(x.numpy())[session.outputs[0].name], module(x).detach(), rtol=1e-5
    )

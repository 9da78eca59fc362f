"""`isoform verify A B`: files in any mix and at any level, one line where nothing is comparable."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.small_network import MODELLED, Command, network

from isoform.compiler import api
from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.same_interface import check_same_interface


@pytest.mark.parametrize("level", ["graph", "algebra", "kernel"])
def test_a_program_equals_itself_at_every_level(
    net: Path, tmp_path: Path, isoform: Command, level: str
) -> None:
    lowered = tmp_path / "lowered.mlir"
    api.save(lower_to(api.load(net), level), lowered)
    for pair in ((net, lowered), (lowered, net)):
        status, out, err = isoform("verify", *pair)
        assert (status, err) == (0, "")
        assert out.startswith("equal: Equal at every output position, over exact arithmetic.")
        assert "output 'scores': equal by " in out
        assert "probability of a wrong answer: at most " in out


@pytest.mark.parametrize("name", ["r.onnx", "r.mlir"])
def test_what_optimize_writes_is_equal_up_to_folding(
    net: Path, tmp_path: Path, isoform: Command, name: str
) -> None:
    result = tmp_path / name
    assert isoform("optimize", net, "-o", result, *MODELLED)[0] == 0
    status, out, _ = isoform("verify", net, result, "--json")
    found = json.loads(out)
    assert (status, found["kind"]) == (0, "equal-up-to-folding")
    assert len(found["folded"]) == 3
    assert all(constant["ulps"] <= 0.5 for constant in found["folded"])


def test_onnx_and_zoo_mix(tmp_path: Path, isoform: Command) -> None:
    path = tmp_path / "dcgan.onnx"
    assert isoform("zoo", "dcgan", "-o", path)[0] == 0
    status, out, _ = isoform("verify", "zoo:dcgan", path)
    assert status == 0
    assert out.startswith("equal: ")


def test_folded_constants_without_their_data_are_no_verdict(
    net: Path, tmp_path: Path, isoform: Command
) -> None:
    result = tmp_path / "r.mlir"
    assert isoform("optimize", net, "-o", result, *MODELLED)[0] == 0
    (tmp_path / "r.safetensors").unlink()
    status, out, err = isoform("verify", net, result)
    assert (status, out) == (1, "")
    assert "made at compile time, are missing" in err
    (tmp_path / "net.safetensors").unlink()
    found = json.loads(isoform("verify", net, net, "--json")[1])
    assert [a["name"] for a in found["assumptions"]] == ["weights-by-name"]


def test_a_difference_is_shown_with_position_and_both_values(
    net: Path, tmp_path: Path, isoform: Command
) -> None:
    program = network()
    head = program.weights["head"].copy()
    head[:, [1, 3]] = head[:, [3, 1]]
    other = tmp_path / "other.mlir"
    swapped = Program(program.module, type(program.weights)(), program.source)
    for name in program.weights:
        swapped.weights.add(name, head if name == "head" else program.weights[name])
    api.save(swapped, other)
    status, out, _ = isoform("verify", net, other)
    assert status == 1
    assert out.startswith("different: Different: output 'scores' at [0, 1] is ")
    assert "2 of 5 positions differ" in out
    assert "on inputs drawn with seed " in out
    found = json.loads(isoform("verify", net, other, "--json")[1])
    place, values = found["difference"]["position"], found["difference"]["values"]
    assert place == [0, 1]
    assert values[0] != values[1]


def test_what_is_not_known_exits_1_with_the_reason(tmp_path: Path, isoform: Command) -> None:
    """2 relu(x) = x + |x|: true, by an identity that is not on the list."""
    paths = [tmp_path / "relu.mlir", tmp_path / "abs.mlir"]
    for path, function in zip(paths, ("relu", "abs"), strict=True):
        b = GraphBuilder()
        x = b.input("x", (4,))
        y = b.op(function, x)
        b.output("y", b.add(y, y if function == "relu" else x))
        api.save(b.build(), path)
    status, out, err = isoform("verify", *paths)
    assert (status, err) == (1, "")
    assert out.startswith("unknown: Unknown: they are not equal for arbitrary functions")
    assert "output 'y': unknown: they are not equal" in out


def test_seed_and_budget_are_accepted_and_the_verdict_is_reproducible(
    net: Path, isoform: Command
) -> None:
    runs = [json.loads(isoform("verify", net, net, "--json", "--seed", "5")[1]) for _ in range(2)]
    for run in runs:
        del run["seconds"]
    assert runs[0] == runs[1]
    assert runs[0]["seed"] == 5


# --- interfaces ---------------------------------------------------------------------------------


def program(inputs: dict[str, tuple[int, ...]], output: str = "y", dtype: str = "f32") -> Program:
    from xdsl.dialects.builtin import f32, f64

    b = GraphBuilder()
    values = [b.input(n, s, {"f32": f32, "f64": f64}[dtype]) for n, s in inputs.items()]
    b.output(output, b.relu(values[0]))
    return b.build()


BASE = program({"x": (2, 3), "z": (1,)})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            program({"x": (2, 3), "w": (1,)}),
            "the second program has no input 'z': expected 'x', 'z', found 'x', 'w' "
            "(inputs correspond by name)",
        ),
        (
            program({"x": (2, 4), "z": (1,)}),
            "input 'x' has another shape: expected [2, 3], found [2, 4]",
        ),
        (
            program({"x": (2, 3), "z": (1,)}, dtype="f64"),
            "input 'x' has another dtype: expected f32, found f64",
        ),
        (
            program({"x": (2, 3)}),
            "the programs have different numbers of inputs: expected 'x', 'z', found 'x'",
        ),
        (
            program({"z": (1,), "x": (2, 3)}),
            "the inputs stand in another order: expected 'x', 'z', found 'z', 'x'",
        ),
        (
            program({"x": (2, 3), "z": (1,)}, output="out"),
            "the second program has no output 'y': expected 'y', found 'out' "
            "(outputs correspond by name)",
        ),
    ],
    ids=["names", "shape", "dtype", "count", "order", "output"],
)
def test_programs_that_cannot_be_compared_say_so_in_one_line(
    tmp_path: Path, isoform: Command, other: Program, message: str
) -> None:
    paths = tmp_path / "a.mlir", tmp_path / "b.onnx"
    api.save(BASE, paths[0])
    api.save(other, paths[1])
    status, out, err = isoform("verify", *paths)
    assert (status, out) == (1, "")
    assert err == f"isoform: error: {message}\n"


def test_outputs_that_nobody_named_correspond_by_position_but_not_permuted() -> None:
    text = "func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{\n{}\n}}"
    first = "%y = graph.relu %x : tensor<2xf32>\n%z = graph.abs %x : tensor<2xf32>\n"
    renamed = first.replace("%y", "%p").replace("%z", "%q")
    give = "func.return {} : tensor<2xf32>, tensor<2xf32>"
    a = api.parse(text.format(first + give.format("%y, %z")))
    check_same_interface(a, api.parse(text.format(renamed + give.format("%p, %q"))))
    swapped = api.parse(text.format(first + give.format("%z, %y")))
    with pytest.raises(UserError, match="outputs stand in another order"):
        check_same_interface(a, swapped)


def test_wrong_usage_exits_2(net: Path, isoform: Command) -> None:
    for files in ([net], [net, net, net]):
        status, out, err = isoform("verify", *files)
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
    assert isoform("verify", net, "none.mlir")[0] == 1


def test_the_shape_flag_binds_dynamic_dims_of_both_models(tmp_path: Path, isoform: Command) -> None:
    import onnx
    from onnx import TensorProto, helper

    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3])

    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [info("x")], [info("y")])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    status, out, _ = isoform("verify", path, path)
    assert status == 0 and "every size" in out
    assert isoform("verify", path, path, "--shape", "x=2,3")[0] == 0
    fixed = tmp_path / "fixed.mlir"
    fixed.write_text(
        SYMBOLIC.format(op="relu").replace(", #graph.dims<n, 3>", "").replace("?", "2")
    )
    status, _, err = isoform("verify", path, fixed)
    assert status == 1 and err.count("\n") == 1
    assert "--shape x=" in err


SYMBOLIC = """func.func @main(%x: tensor<?x3xf32, #graph.dims<n, 3>>)
    -> tensor<?x3xf32, #graph.dims<n, 3>> {{
  %y = graph.{op} %x : tensor<?x3xf32, #graph.dims<n, 3>>
  func.return %y : tensor<?x3xf32, #graph.dims<n, 3>>
}}
"""


def test_programs_with_symbolic_dims_are_compared_at_every_size(
    tmp_path: Path, isoform: Command
) -> None:
    relu, other = tmp_path / "relu.mlir", tmp_path / "abs.mlir"
    relu.write_text(SYMBOLIC.format(op="relu"))
    other.write_text(SYMBOLIC.format(op="abs"))
    status, out, _ = isoform("verify", relu, relu, "--seed", "1")
    assert status == 0
    assert "Equal at every output position and every size" in out
    assert "n >= 4: proved (compared at n=" in out
    status, out, _ = isoform("verify", relu, other, "--seed", "1", "--json")
    assert status == 1
    found = json.loads(out)
    assert found["kind"] == "different"
    assert found["sizes"]["symbols"] == ["n"]
    assert [case["how"] for case in found["sizes"]["cases"]][-1] == "different"
    status, out, _ = isoform("verify", relu, other, "--seed", "1")
    assert status == 1 and "Different at n=" in out
    guarded = SYMBOLIC.replace(" {{", ' attributes {{isoform.guards = ["m <= 4"]}} {{', 1)
    other.write_text(guarded.format(op="relu"))
    status, _, err = isoform("verify", relu, other)
    assert status == 1 and err.count("\n") == 1
    assert "'m <= 4' names no dim of an input" in err


def test_the_installed_command_exits_with_the_verdict(net: Path, tmp_path: Path) -> None:
    text = net.read_text().replace("graph.relu", "graph.abs")
    (tmp_path / "abs.mlir").write_text(text)
    command = [sys.executable, "-m", "isoform.compiler.cli", "verify", "net.mlir", "abs.mlir"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith("different: ")
    assert np.count_nonzero([line.startswith("output") for line in run.stdout.split("\n")]) == 1

"""Whatever values and nodes are called, the names come back from everything that is written."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from isoform.compiler import api, cli, opt
from isoform.compiler.commands.inputs import read_inputs, write_outputs
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program

# What is not ASCII, is empty once cleaned, looks like syntax, a path or a flag, is reserved in
# Python, safetensors or NPZ, or is equal to another once cleaned.
NAMES = (
    *("xä", "xö", "é", 'é"\\', "日本", "🙂", "Σ_1", "Σ_2", "line\u2028end"),
    *("_5", ":0", "%0", "0", "1.5", "$", "/", "..", "../x", "~", "-", "[0]", "{}", "\\n"),
    *("a b", "a/b", 'a"b', "a'b", "a.b", "a%b", "a,b", "a=b", "a:0", "a:1", "a-1", "a\nb", "a\\"),
    *("class", "lambda", "self", "arrays", "named", "file", "nan", "--seed", "@x", "#y", "loc"),
    *("a_1", "a_1_2", "a__1", "x.npy", "x", "val_60", "val_61", "val_", "input0", "output0", "bb0"),
    *("__metadata__", "__metadata___", "n" * 60_000),
)


def model(names: list[str]) -> onnx.ModelProto:
    """outputs = (x + cumsum(w * w)) * 3 - y and (x + cumsum(w * w)) * 3."""
    x, y, w, square, total, moved, scale, one, two, node = names
    nodes = [
        helper.make_node("Mul", [w, w], [square]),
        helper.make_node("CumSum", [square, "axis"], [total], name=node),
        helper.make_node("Add", [x, total], [moved]),
        helper.make_node("Mul", [moved, scale], [one]),
        helper.make_node("Sub", [one, y], [two]),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 20]) for n in (x, y, two, one)]
    data = {w: WEIGHT, scale: np.float32(3), "axis": np.int64(1)}
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in data.items()]
    graph = helper.make_graph(nodes, "g", infos[:2], infos[2:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


WEIGHT = np.linspace(-1, 1, 40, dtype=np.float32).reshape(2, 20)
X, Y = (np.random.default_rng(k).standard_normal((2, 20)).astype(np.float32) for k in (0, 1))


def check(names: list[str], folder: Path) -> None:
    """Straight, through IR text, through passes and through ONNX again: the same values."""
    x, y, *_, one, two, node = names
    source, text, changed, again = (folder / f for f in ("m.onnx", "m.mlir", "c.mlir", "a.onnx"))
    onnx.save(model(names), source)
    write_outputs(folder / "i.npz", {x: X, y: Y})
    assert cli.main(["import", str(source), "-o", str(text)]) == 0
    assert opt.main([str(text), "-p", "canonicalize", "-o", str(changed)]) == 0
    api.save(api.improve(api.load(changed)), again)
    written = onnx.load(again).graph
    assert [i.name for i in written.input] == [x, y]
    assert node in {n.name for n in onnx.load(source).graph.node}
    expected = (X + np.cumsum(WEIGHT * WEIGHT, axis=1)) * 3
    for path in (source, text, changed, again):
        files = ("--inputs", str(folder / "i.npz"), "--output", str(folder / "o.npz"))
        assert cli.main(["run", str(path), "--no-optimize", "--effort", "quick", *files]) == 0
        session = api.compile(api.load(path), "reference")
        found = read_inputs(folder / "o.npz", session.outputs)
        assert list(found) == [two, one]
        np.testing.assert_allclose(found[one], expected, rtol=1e-5)
        np.testing.assert_allclose(found[two], expected - Y, rtol=1e-5, atol=1e-5)
        called = session(**{x: X, y: Y})
        assert list(called) == [two, one]


def drawn(count: int) -> list[list[str]]:
    """Every name at least once, in places drawn from a seed."""
    rng = np.random.default_rng(17)
    order = [NAMES[k] for _ in range(count) for k in rng.permutation(len(NAMES))]
    order += order[: -len(order) % 10]
    return [order[k : k + 10] for k in range(0, len(order), 10)]


@pytest.mark.parametrize("names", drawn(1), ids=lambda names: ascii(names[0][:12]))
def test_names_come_back(names: list[str], tmp_path: Path) -> None:
    check(names, tmp_path)


@pytest.mark.slow
def test_names_come_back_from_many_positions(tmp_path: Path) -> None:
    for names in drawn(20):
        if len(set(names)) == len(names):
            check(names, tmp_path)


def text(body: str) -> Program:
    return api.parse(f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ {body} }}")


def test_values_whose_names_are_only_numbers_can_be_copied() -> None:
    program = text("%_5 = graph.neg %x : tensor<2xf32> func.return %_5 : tensor<2xf32>")
    assert "%_5 = graph.neg" in str(program.clone().module)


def test_names_that_end_in_numbers_are_printed_apart() -> None:
    body = ""
    for new, old in (("a_1_2", "x"), ("a", "a_1_2"), ("a_7", "a"), ("_3", "a_7"), ("_3_1", "_3")):
        body += f"%{new} = graph.neg %{old} : tensor<2xf32> "
    program = text(f"{body} func.return %_3_1 : tensor<2xf32>")
    again = api.parse(str(program.clone().module))
    assert str(again.module) == str(program.module)


def test_a_name_that_no_archive_holds_is_refused(tmp_path: Path) -> None:
    for name in ("a\0b", "n" * 70_000):
        with pytest.raises(UserError, match="no NPZ archive"):
            write_outputs(tmp_path / "o.npz", {name: X})
    assert not list(tmp_path.iterdir())

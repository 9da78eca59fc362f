"""What a program, a session and a result say of themselves at a prompt and in Jupyter."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

import isoform


@pytest.fixture
def program() -> isoform.Program:
    b = isoform.GraphBuilder()
    x = b.input("x", (2, 6))
    w = b.weight("w<1>", np.ones((6, 4), np.float32))
    b.output("y", b.relu(b.matmul(x, w)))
    return b.build("m.onnx")


def test_a_program_tells_interface_ops_and_weights(program: isoform.Program) -> None:
    assert repr(program).splitlines() == [
        "Program m.onnx",
        "  x: float32[2, 6]",
        "  -> y: float32[2, 4]",
        "  2 graph ops: 1 matmul, 1 relu; 1 weight, 96 bytes",
    ]
    shown = program._repr_html_()
    assert "<td>float32[2, 6]</td>" in shown
    assert "graph.matmul" in shown
    assert "<1>" not in shown, "names are escaped"


def test_a_module_without_main_has_a_repr() -> None:
    assert repr(isoform.Program(ModuleOp([]))) == "Program : the module has no func.func @main"


def test_a_model_without_fixed_shapes_tells_its_dims(tmp_path: Path) -> None:
    known = [onnx.helper.make_tensor_value_info(name, 1, ["n", 4]) for name in "xy"]
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", known[:1], known[1:])
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "m.onnx"
    )
    program = isoform.load(tmp_path / "m.onnx")
    assert repr(program).splitlines()[1:] == ["  x: float32[n, 4]"]
    assert "float32[n, 4]" in program._repr_html_()
    session = isoform.compile(program, effort="quick")
    assert repr(session).splitlines() == [
        "DynamicSession",
        "  x: float32[n, 4]",
        "  -> y: float32[n, 4]",
    ]
    assert session.defaults == {}
    assert "float32[n, 4]" in session._repr_html_()
    x = np.ones((2, 4), np.float32)
    with pytest.raises(isoform.UserError, match=r"bound\(feeds\)"):
        session.save(tmp_path / "saved")
    session.bound({"x": x})[0].save(tmp_path / "saved")
    assert isoform.open(tmp_path / "saved")(x=x)["y"].shape == (2, 4)
    assert "kernel.loops" in str(session.profile({"x": x}, rounds=1))


def test_a_result_tells_its_price(program: isoform.Program) -> None:
    better = isoform.optimize(program, target="h100", budget=3600)
    line = repr(better).splitlines()[4]
    assert line.startswith("  for h100: ")
    assert line.endswith("x)")
    assert "(modelled, " in line
    assert "for h100" in better._repr_html_()


def test_a_session_tells_what_runs_it(program: isoform.Program) -> None:
    session = isoform.compile(program, threads=1, effort="quick")
    first, *rest = repr(session).splitlines()
    assert first.startswith("Session on cpu, 1 thread(s): ")
    assert rest == ["  x: float32[2, 6]", "  -> y: float32[2, 4]"]
    assert "<td>y: float32[2, 4]</td>" in session._repr_html_()
    session.close()
    assert repr(session).startswith("Session, closed on cpu")
    reference = isoform.compile(program, target="reference")
    assert repr(reference).startswith("Session (ReferenceRunner)")

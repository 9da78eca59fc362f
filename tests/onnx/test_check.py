"""`isoform check` answers for every model it can parse."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import isoform
from isoform.compiler import cli
from isoform.compiler.commands.check import check_model
from isoform.compiler.reports.check_schema import CHECK
from isoform.compiler.reports.json_schema import first_fault
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

MIXED = """<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
g (float[batch, 8] x, float[batch, m] mask) => (float[batch, 8] y, float[batch, 2] top) {
    k = Constant <value: tensor = int64[1] {2}> ()
    a = Gelu13(x)
    top, positions = TopK(x, k)
    counts = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1,
      mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], pool_int64s = [2, 3]> (positions)
    s = HardSwish(x)
    n = Neg(s)
    b = com.acme.Fancy(n)
    y = Relu(b)
}"""


def test_an_unbound_model_with_unknown_ops() -> None:
    check = check_model(onnx.parser.parse_model(MIXED))
    assert check.totals == {"native": 3, "composed": 1, "folded": 1, "opaque": 1, "unsupported": 2}
    assert not check.ok
    assert check.flags == ("--shape x=1,8", "--shape mask=1,1")
    assert [(b.op, b.kind) for b in check.blockers] == [
        ("Gelu13", "unsupported"),
        ("TfIdfVectorizer", "opaque"),
        ("Fancy", "unsupported"),
    ]
    text = check.as_text()
    assert "add: --shape x=1,8 --shape mask=1,1" in text
    assert "com.acme::Fancy" in text
    assert json.loads(json.dumps(check.as_json()))["totals"]["opaque"] == 1


def test_given_shapes_need_no_flag() -> None:
    check = check_model(onnx.parser.parse_model(MIXED), {"x": [4, 8], "mask": [4, 4]})
    assert check.flags == ()


def test_rows_say_which_graph_ops() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3] x) => (float[2, 3] y) { s = HardSwish(x) y = Relu(s) }"""
    rows = {row.op: row for row in check_model(onnx.parser.parse_model(text)).ops}
    assert rows["Relu"].graph_ops == ("graph.relu",)
    assert "graph.mul" in rows["HardSwish"].graph_ops


def test_a_missing_external_file_is_a_problem_not_a_failure() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    weight = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    proto.graph.initializer.append(weight)
    check = check_model(proto)
    assert not check.ok
    assert "w" in check.problems[0]
    assert check.totals["native"] == 1


def test_inputs_that_are_no_tensors_are_problems() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (seq(float[2]) s, float[2] x) => (float[2] y) { y = Relu(x) }"""
    )
    check = check_model(proto)
    assert check.totals["native"] == 1
    assert "sequence" in check.problems[0]


def test_a_graph_that_is_none_is_an_error() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(z) }'
    )
    with pytest.raises(UserError, match="nothing defines"):
        check_model(proto)


def test_a_program_of_the_builder() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,))
    b.output("y", b.add(x, b.weight("w", np.ones(2, np.float32))))
    check = check_model(b.build())
    assert check.ok
    assert {row.op for row in check.ops} == {"graph.add", "graph.weight"}
    assert "nothing blocks optimisation" in check.as_text()


def test_weights_count_as_values_of_their_type() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    assert check_model(proto).dtypes == {"f32": 3}


def test_each_op_has_its_share_of_work_and_a_reason() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[64, 32] x, float[32, 128] w, int64[1] k) => (float[64, 2] y, int64[64, 2] i) {
        two = Constant <value: tensor = int64[1] {2}> ()
        p = MatMul(x, w)
        r = Relu(p)
        y, i = TopK(r, two)
    }"""
    check = check_model(onnx.parser.parse_model(text))
    rows = {row.op: row for row in check.ops}
    assert rows["MatMul"].flops == 2 * 64 * 32 * 128
    assert rows["Relu"].flops == 64 * 128
    assert rows["Relu"].bytes == 2 * 4 * 64 * 128
    assert rows["TopK"].reasons == ("loop nests run it",)
    flops, bytes_ = zip(*(check.shares(row) for row in check.ops), strict=True)
    assert abs(sum(flops) - 1) < 1e-9
    assert abs(sum(bytes_) - 1) < 1e-9
    assert "98.5%" in check.as_text()
    opaque = check_model(onnx.parser.parse_model(MIXED)).as_text()
    assert "onnx.reference runs it: there are no loop nests for the op" in opaque


def test_work_in_bodies_is_that_of_the_nodes_in_them() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[8, 64] x, float[64, 64] w) => (float[8, 64] y) {
        m = Constant <value_int = 30> ()
        y = Loop (m, , x) <body = b (int64 i, bool on, float[8, 64] s) =>
                                    (bool go, float[8, 64] r) {
            go = Identity(on)
            p = MatMul(s, w)
            h = ReduceSum <keepdims = 0> (p)
            nought = Constant <value_float = 0.0> ()
            c = Less(h, nought)
            r = If (c) <then_branch = t () => (float[8, 64] u) { u = MatMul(p, w) },
                        else_branch = e () => (float[8, 64] v) { v = Neg(p) }>
        }>
    }"""
    proto = onnx.parser.parse_model(text)
    once, program = 2 * 8 * 64 * 64, import_onnx(proto)
    rows = {row.op: row for row in check_model(proto).ops}
    assert (rows["MatMul"].flops, rows["Loop"].flops, rows["If"].flops) == (30 * 2 * once, 0, 0)
    assert rows["Less"].flops == 30
    again = check_model(program)
    lowered = {row.op: row for row in again.ops}
    assert lowered["graph.matmul"].flops == 30 * 2 * once
    assert again.totals["unsupported"] == 0


def test_the_json_follows_its_schema() -> None:
    found = json.loads(json.dumps(check_model(onnx.parser.parse_model(MIXED)).as_json()))
    assert first_fault(found, CHECK) is None
    assert first_fault({**found, "ops": [{**found["ops"][0], "flops": -1}]}, CHECK) is not None


def test_a_condition_that_a_session_takes_is_said_and_its_branch_looked_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    then = helper.make_node("Relu", ["x"], ["t"])
    other = helper.make_node("ReduceSum", ["x"], ["e"], keepdims=0)
    bodies = [
        helper.make_graph(
            [node],
            "body",
            [],
            [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)],
        )
        for node in (then, other)
    ]
    pick = helper.make_node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = helper.make_model(helper.make_graph([pick], "m", [c, x], [y]), ir_version=8)
    onnx.save(made, tmp_path / "pick.onnx")
    found = check_model(tmp_path / "pick.onnx")
    assert found.assumed == ("c",) and found.totals["unsupported"] == 0 and not found.blockers
    assert [row.op for row in found.ops] == ["If", "Relu"]
    assert "decided by input 'c' (true was assumed here)" in found.as_text()
    assert cli.main(["check", str(tmp_path / "pick.onnx")]) == 1
    assert "(a session, and run --inputs, take any value of 'c')" in capsys.readouterr().out
    session = isoform.compile(isoform.load(tmp_path / "pick.onnx"))
    for value, shape in ((True, (4,)), (False, ())):
        assert session(c=np.array(value), x=np.ones(4, np.float32))["y"].shape == shape

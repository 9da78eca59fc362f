"""The cost model: orderings that must hold, what is free, what is measured, the cost file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Operation, SSAValue

from isoform.compiler import zoo
from isoform.compiler.targets.levels import priced, run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.signature import key, signature
from isoform.lowering.graph_to_algebra import GraphToAlgebra
from isoform.lowering.targets import TARGETS, target_named
from isoform.passes.cost.cost_file import CostFile, Measured, entry_for, load_cost_file
from isoform.passes.cost.costs import Costs, load_costs

GPUS = ("p100", "v100", "a100", "h100", "h200")


def conv(
    n: int, c: int, size: int, f: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[Program, Operation]:
    b = GraphBuilder()
    w = b.weight("w", lambda: np.ones(0), (f, c // groups, kernel, kernel), f32)
    x = b.input("x", (n, c, size, size))
    pad = kernel // 2
    y = b.conv(x, w, strides=[stride] * 2, pads=[pad] * 4, dilations=[1, 1], groups=groups)
    return finished(b, y)


def matmul(m: int, k: int, n: int, element: object = f32) -> tuple[Program, Operation]:
    b = GraphBuilder()
    return finished(b, b.matmul(b.input("a", (m, k), element), b.input("b", (k, n), element)))


def finished(b: GraphBuilder, value: SSAValue) -> tuple[Program, Operation]:
    b.output("y", value)
    program = b.build()
    assert isinstance(value.owner, Operation)
    return program, value.owner


def seconds(target: str, pair: tuple[Program, Operation]) -> float:
    return Costs(TARGETS[target]).program(pair[0]).seconds


def test_newer_machines_are_faster() -> None:
    for pair in (matmul(4096, 4096, 4096), conv(16, 64, 56, 64, 3)):
        times = [seconds(name, pair) for name in GPUS]
        assert times == sorted(times, reverse=True)


def test_more_work_costs_more() -> None:
    for target in TARGETS:
        assert seconds(target, matmul(512, 512, 512)) < seconds(target, matmul(512, 512, 1024))
        assert seconds(target, conv(1, 64, 28, 64, 1)) < seconds(target, conv(1, 64, 28, 64, 5))


@pytest.mark.parametrize("target", GPUS)
def test_one_merged_product_beats_two(target: str) -> None:
    two = 2 * seconds(target, matmul(128, 256, 256))
    assert seconds(target, matmul(128, 256, 512)) < two


@pytest.mark.parametrize("target", GPUS)
def test_merging_does_not_pay_at_any_price(target: str) -> None:
    separate = 2 * seconds(target, matmul(4096, 4096, 4096))
    assert separate < seconds(target, matmul(4096, 4096, 16384))


def test_tensor_cores_serve_half_precision_and_double_is_slower() -> None:
    for target in ("v100", "a100", "h100"):
        half, single, double = (
            seconds(target, matmul(4096, 4096, 4096, e)) for e in (f16, f32, f64)
        )
        assert half < single < double


def test_a_convolution_takes_the_cheapest_algorithm_that_applies() -> None:
    costs = Costs(TARGETS["v100"])
    for pair, algorithm in (
        (conv(16, 256, 56, 256, 3), "winograd"),
        (conv(16, 256, 56, 256, 3, stride=2), "implicit-gemm"),
        (conv(16, 256, 56, 256, 1), "implicit-gemm"),
        (conv(16, 256, 56, 256, 3, groups=32), "implicit-gemm"),
        (conv(16, 64, 112, 64, 11), "fft"),
    ):
        assert costs.op(pair[1]).algorithm.startswith(algorithm)


def test_the_cpu_is_not_promised_what_it_has_no_kernels_for() -> None:
    assert Costs(TARGETS["cpu"]).op(conv(1, 64, 56, 64, 3)[1]).algorithm == "implicit-gemm"


def test_what_depends_on_weights_alone_is_free() -> None:
    b = GraphBuilder()
    x, w = b.input("x", (64, 64)), b.weight("w", np.ones((64, 64), np.float32))
    plain = Costs(TARGETS["cpu"])
    alone = finished(b, b.matmul(x, w))[0]
    b = GraphBuilder()
    x, w = b.input("x", (64, 64)), b.weight("w", np.ones((64, 64), np.float32))
    computed = finished(b, b.matmul(x, b.transpose(b.mul(w, w), perm=[1, 0])))[0]
    assert plain.program(computed).seconds == plain.program(alone).seconds


def test_shapes_under_another_name_are_free() -> None:
    b = GraphBuilder()
    program, _ = finished(b, b.reshape(b.input("x", (8, 8)), shape=[64]))
    assert Costs(TARGETS["h100"]).program(program).seconds == 0


def test_parts_are_free_and_their_readers_read_no_more() -> None:
    b = GraphBuilder()
    x = b.input("x", (4096, 4096))
    left, right = b.split(x, axis=1, sizes=[2048, 2048])
    every = b.slice(x, starts=[0, 0], sizes=[2048, 4096], steps=[2, 1])
    for name, value in {"left": left, "right": right, "every": every}.items():
        b.output(name, b.relu(value))
    b.output("whole", b.relu(x))
    costs = Costs(TARGETS["h100"])
    program = b.build()
    kernels = costs.breakdown(priced(program, "h100"))
    *halves, whole = [cost.seconds - TARGETS["h100"].launch for _, cost in kernels]
    assert halves[:2] == [pytest.approx(whole / 2)] * 2
    graph = [op.name for op, _ in costs.breakdown(program)]
    assert graph == ["graph.slice", *["graph.relu"] * 4], "a slice with steps is a copy"


def test_weights_are_read_from_memory_and_activations_may_be_in_cache() -> None:
    b = GraphBuilder()
    x, w = b.input("x", (1, 1024)), b.weight("w", np.ones((1024, 1024), np.float32))
    stored = finished(b, b.matmul(x, w))[0]
    costs = Costs(TARGETS["cpu"])
    assert costs.program(stored).seconds > costs.program(matmul(1, 1024, 1024)[0]).seconds


def test_the_algebra_costs_what_the_graph_does() -> None:
    for pair in (conv(1, 64, 28, 64, 3), matmul(128, 256, 64)):
        program = pair[0]
        lowered = program.clone()
        run_passes(lowered, (GraphToAlgebra(),))
        for target in TARGETS.values():
            costs = Costs(target)
            expected = costs.program(program).seconds
            assert costs.program(lowered).seconds == pytest.approx(expected)


def test_a_fused_kernel_costs_less_than_its_parts() -> None:
    b = GraphBuilder()
    x = b.input("x", (256, 256))
    program, _ = finished(b, b.softmax(b.relu(b.relu(x)), axis=1))
    kernel = program.clone()
    from isoform.compiler.targets.levels import lower_to

    kernel = lower_to(program, "kernel")
    algebra = lower_to(program, "algebra")
    for target in TARGETS.values():
        costs = Costs(target)
        assert costs.program(kernel).seconds < costs.program(algebra).seconds


def test_whole_models_are_costed_quickly_and_in_order() -> None:
    costs = Costs(TARGETS["h100"])
    small, large = (costs.program(zoo.build(n)).seconds for n in ("resnet18", "resnet50"))
    assert 0 < small < large


# --- signatures and files -----------------------------------------------------------------------


def test_names_do_not_change_a_signature() -> None:
    _, one = matmul(2, 3, 4)
    _, two = matmul(2, 3, 4)
    two.results[0].name_hint = "other"
    two.operands[0].name_hint = "input"
    assert signature(one) == signature(two)
    assert signature(one) != signature(matmul(2, 3, 5)[1])


def test_using_one_value_twice_changes_a_signature() -> None:
    b = GraphBuilder()
    x, y = b.input("x", (2,)), b.input("y", (2,))
    twice, once = b.add(x, x).owner, b.add(x, y).owner
    assert signature(twice) != signature(once)


def test_taking_a_signature_leaves_no_use_behind() -> None:
    program, op = matmul(2, 3, 4)
    before = [len(list(value.uses)) for value in op.operands]
    signature(op)
    Costs(TARGETS["cpu"]).program(program)
    assert [len(list(value.uses)) for value in op.operands] == before


def test_a_measured_entry_replaces_the_model(tmp_path: Path) -> None:
    program, op = matmul(64, 64, 64)
    file = CostFile("v100", {"driver": "1"})
    file.add(entry_for(op, 12.5, 12.0, 14.0, "cublas"))
    path = tmp_path / "c.json"
    file.save(path)
    costs = load_costs(target_named("v100"), path)
    assert costs.op(op) == costs.op(op)
    assert (costs.op(op).seconds, costs.op(op).kind) == (pytest.approx(12.5e-6), "measured")
    assert costs.op(op).algorithm == "cublas"
    assert costs.program(program).kind == "measured"
    other = matmul(64, 64, 65)[0]
    assert costs.program(other).kind == "modelled"


def test_a_class_scale_calibrates_the_model() -> None:
    program, _ = matmul(64, 64, 64)
    plain = Costs(TARGETS["v100"]).program(program).seconds
    scaled = Costs(TARGETS["v100"], CostFile("v100", class_scale={"gemm": 2.0}))
    assert scaled.program(program).seconds == pytest.approx(2 * plain)


def test_files_are_the_same_bytes_however_they_were_filled(tmp_path: Path) -> None:
    entries = [Measured(f"op {k}", 1.0 + k, 1.0, 2.0) for k in range(3)]
    for name, order in (("a", entries), ("b", entries[::-1])):
        file = CostFile("cpu")
        for entry in order:
            file.add(entry)
        file.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_files_of_one_target_are_merged() -> None:
    one, two = CostFile("cpu"), CostFile("cpu")
    one.add(Measured("op", 1.0, 1.0, 1.0))
    two.add(Measured("op", 2.0, 2.0, 2.0))
    two.add(Measured("other", 3.0, 3.0, 3.0))
    one.merge(two)
    assert one.ops[key("op")].us == 2.0
    assert len(one.ops) == 2
    with pytest.raises(UserError, match="two targets"):
        one.merge(CostFile("h100"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a cost file"),
        ('{"target": "cpu", "ops": {}}', "another version"),
        ('{"schema": 1, "target": "cpu", "ops": []}', "'ops' is an object"),
        ('{"schema": 1, "target": "cpu", "ops": {"a": 1}}', "needs 'us'"),
        ('{"schema": 1, "target": "cpu", "ops": {}, "class_scale": {"gemm": -1}}', "positive"),
        ('{"schema": 1, "target": "cpu", "ops": {"a": {"us": 1, "signature": "x"}}}', "address"),
    ],
)
def test_broken_files_are_one_line_errors(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        load_cost_file(path)
    assert str(path) in str(caught.value)


def test_a_file_for_another_target_is_refused(tmp_path: Path) -> None:
    CostFile("h100").save(tmp_path / "c.json")
    with pytest.raises(UserError, match="another target: expected cpu, found h100"):
        load_costs(TARGETS["cpu"], tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == 1


def test_threads_scale_a_cpu() -> None:
    two = TARGETS["cpu"].with_units(2)
    assert two.rate("f32") == 2 * TARGETS["cpu"].rate("f32")
    assert two.bandwidth == TARGETS["cpu"].bandwidth
    program = matmul(512, 512, 512)[0]
    assert Costs(two).program(program).seconds < Costs(TARGETS["cpu"]).program(program).seconds
    assert replace(two, name="mine").name == "mine"

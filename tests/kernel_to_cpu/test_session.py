"""A compiled program: what it refuses, how it counts, and that threads change nothing."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import bf16, f16, f32, i1, i8, i64

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import lower_to, place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import OpaqueOp
from isoform.dialects.program import Program
from isoform.dialects.types import tensor, to_numpy
from isoform.lowering.kernel_to_cpu.runtime.execute import ALIGNMENT, room
from isoform.lowering.kernel_to_cpu.session import CpuSession


def classifier() -> Program:
    """A small network with every kind of kernel."""
    data = np.random.default_rng(0)
    b = GraphBuilder()
    x = b.input("x", (2, 3, 17, 19))
    w = b.weight("w", data.normal(size=(16, 3, 3, 3)).astype(np.float32))
    v = b.weight("v", data.normal(size=(16, 33)).astype(np.float32))
    y = b.relu(b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1]))
    pool = {"kernel": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    y = b.reduce_mean(b.max_pool(y, **pool), axes=[2, 3], keep_dims=False)
    b.output("y", b.softmax(b.matmul(y, v), axis=1))
    return b.build()


@pytest.fixture
def session() -> Iterator[CpuSession]:
    made = CpuSession(place(classifier()), threads=2)
    yield made
    made.close()


def draw(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(2, 3, 17, 19)).astype(np.float32)}


def test_inputs_that_do_not_fit_are_named(session: CpuSession) -> None:
    with pytest.raises(UserError, match="input 'x' is missing"):
        session.run({"z": np.zeros(3)})
    with pytest.raises(UserError, match=r"float32\[2, 3, 17, 19\].*float32\[2, 3, 17, 18\]"):
        session.run({"x": np.zeros((2, 3, 17, 18), np.float32)})
    with pytest.raises(UserError, match=r"expected.*float32.*found.*float64"):
        session.run({"x": np.zeros((2, 3, 17, 19))})


def test_a_program_without_positions_says_which_pass_makes_them() -> None:
    with pytest.raises(UserError, match="plan-memory"):
        CpuSession(lower_to(classifier(), "kernel"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_an_arena_takes_no_memory_before_it_is_used() -> None:
    size = 1 << 30
    before = resident()
    arena = room(size)
    assert arena.ctypes.data % ALIGNMENT == 0
    assert (arena.nbytes, int(arena[:: 1 << 28].sum())) == (size, 0)
    assert resident() - before < size // 8


def resident() -> int:
    """Bytes of memory that this process takes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_run_is_one_native_call(session: CpuSession) -> None:
    for count in range(1, 4):
        session.run(draw(count))
        assert session.native_calls == count


def test_inputs_may_lie_anyhow(session: CpuSession) -> None:
    x = draw(0)["x"]
    (expected,) = session.run({"x": x}).values()
    strided = np.asfortranarray(x)
    assert not strided.flags.c_contiguous
    (found,) = session.run({"x": strided}).values()
    assert np.array_equal(found, expected)


def test_results_are_the_callers_own(session: CpuSession) -> None:
    (first,) = session.run(draw(0)).values()
    kept = first.copy()
    session.run(draw(1))
    assert np.array_equal(first, kept)


def test_threads_agree_bit_for_bit() -> None:
    program, results = place(classifier()), []
    for threads in (1, 2, 3):
        session = CpuSession(program, threads=threads)
        results.append(session.run(draw(0))["y"].tobytes())
        session.close()
    assert len(set(results)) == 1


def test_callers_from_several_threads_take_turns(session: CpuSession) -> None:
    expected = {seed: session.run(draw(seed))["y"] for seed in range(4)}
    wrong: list[int] = []

    def call(seed: int) -> None:
        for _ in range(20):
            if not np.array_equal(session.run(draw(seed))["y"], expected[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_opaque_op_splits_the_program() -> None:
    b = GraphBuilder()
    x = b.input("x", (4,))
    node = helper.make_node("Softplus", ["a"], ["b"])
    before = b.add(x, x)
    opaque = OpaqueOp("Softplus", [before], node.SerializeToString(), ["=17"], [tensor([4])])
    b.output("y", b.mul(b.append(opaque), x))
    session = CpuSession(place(b.build()))
    x = np.array([-1.0, 0.0, 0.5, 3.0], np.float32)
    (found,) = session.run({"x": x}).values()
    session.close()
    assert session.native_calls == 2
    assert np.allclose(found, np.log1p(np.exp(2 * x)) * x, rtol=1e-5)
    assert onnx.__version__ and TensorProto.FLOAT == 1


# --- values that pass through -------------------------------------------------------------------


def run(program: Program, **inputs: np.ndarray) -> list[np.ndarray]:
    session = CpuSession(place(program))
    found = session.run(inputs)
    session.close()
    return [found[name] for name in program.output_names]


def test_outputs_may_be_inputs_constants_and_each_other() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    w = b.weight("w", np.arange(4, dtype=np.float32))
    c = b.constant(np.array([[1, -2]], np.int64))
    y = b.relu(x)
    values = (x, w, c, y, y, b.reshape(x, shape=[6]), b.reshape(y, shape=[3, 2]))
    for k, value in enumerate(values):
        b.output(f"y{k}", value)
    data = np.array([[1, -1, 2], [-3, 4, -5]], np.float32)
    found = run(b.build(), x=data)
    top = np.maximum(data, 0)
    expected = [data, np.arange(4), np.array([[1, -2]]), top, top, data.ravel(), top.reshape(3, 2)]
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert np.array_equal(one, other)


def test_an_input_that_is_returned_is_a_copy() -> None:
    b = GraphBuilder()
    b.output("y", b.input("x", (3,)))
    x = np.ones(3, np.float32)
    (found,) = run(b.build(), x=x)
    found[0] = 7
    assert x[0] == 1


def test_scalars_and_empty_tensors() -> None:
    b = GraphBuilder()
    x, e = b.input("x", ()), b.input("e", (0, 3))
    b.output("s", b.exp(x))
    b.output("e", b.relu(e))
    b.output("n", b.reduce_sum(e, axes=[0], keep_dims=False))
    s, empty, none = run(b.build(), x=np.float32(1.0), e=np.zeros((0, 3), np.float32))
    assert s.shape == () and np.isclose(s, np.e, rtol=1e-6)
    assert empty.shape == (0, 3)
    assert np.array_equal(none, np.zeros(3))


@pytest.mark.parametrize("element", [f32, f16, bf16, i64, i8, i1], ids=str)
@pytest.mark.parametrize("extent", [1, 2, 3, 17, 40])
def test_every_dtype_is_moved_and_joined(element, extent: int) -> None:
    dtype = to_numpy(element)
    b = GraphBuilder()
    x, y = b.input("x", (2, extent), element), b.input("y", (2, extent), element)
    b.output("c", b.concat(x, y, axis=0))
    b.output("t", b.transpose(x, perm=[1, 0]))
    data = np.random.default_rng(extent)
    inputs = {name: (data.normal(size=(2, extent)) * 3).astype(dtype) for name in "xy"}
    joined, turned = run(b.build(), **inputs)
    assert np.array_equal(joined, np.concatenate([inputs["x"], inputs["y"]]))
    assert np.array_equal(turned, inputs["x"].T)


def test_a_constant_that_is_convolved_is_laid_out_like_data() -> None:
    text = """
    func.func @main(%b: tensor<2xf32>) -> tensor<1x2x4xf32> {
      %c = graph.constant dense<[[[1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x4xf32>
      %w = graph.constant dense<[[[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]]]> : tensor<2x1x3xf32>
      %y = graph.conv %c, %w, %b {strides = [1], pads = [1, 1], dilations = [1]} : tensor<1x2x4xf32>
      func.return %y : tensor<1x2x4xf32>
    }"""
    (found,) = run(parse(text), b=np.array([0.5, -0.5], np.float32))
    assert np.array_equal(found[0], [[8.5, 14.5, 20.5, 11.5], [-0.5, 0.5, 1.5, 2.5]])


def test_a_window_over_a_product_of_one_row_finds_zeros_outside() -> None:
    """A fused value has no place outside: reads that leave its extent-1 dims must not fuse."""
    b = GraphBuilder()
    x = b.input("x", (4, 1, 1))
    padded = b.pad(b.exp(x), pads=[0, 0, 1, 0, 0, 0])
    b.output("y", b.add(padded, padded))
    data = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    (found,) = run(b.build(), x=data)
    assert np.array_equal(found[:, 0, 0], np.zeros(4))
    assert np.allclose(found[:, 0, 1], 2 * np.exp(data[:, 0, 0]), rtol=1e-6)

"""Outputs are written where the caller gets them, and stay his."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

import isoform
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.compiler.targets.session import Session
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.kernel_to_cpu.runtime.execute import OutputMemory
from isoform.lowering.kernel_to_cpu.session import CpuSession

SIZE = 1 << 15


def relu_of(size: int = SIZE) -> Session:
    b = GraphBuilder()
    x = b.input("x", (size,), f32)
    b.output("y", b.relu(x))
    return isoform.compile(b.build("relu"), threads=1, effort="quick")


def several() -> Program:
    """Outputs of every kind: results, reshapes and slices of them, inputs, constants, twice one."""
    b = GraphBuilder()
    x, z = b.input("x", (4, 6), f32), b.input("z", (4, 6), f32)
    y = b.exp(b.add(x, z))
    t = b.relu(b.transpose(y, perm=(1, 0)))
    b.output("y", y)
    b.output("again", y)
    b.output("flat", b.reshape(y, shape=[24]))
    b.output("rows", b.slice(y, starts=[0, 0], sizes=[2, 6], steps=[1, 1]))
    b.output("x_itself", x)
    b.output("t", b.reshape(t, shape=[2, 12]))
    b.output("both", b.concat(b.tanh(x), b.sin(z), axis=1))
    return b.build("several")


def wanted(x: Array, z: Array) -> dict[str, Array]:
    y = np.exp(x + z)
    t = np.maximum(y.T, 0).reshape(2, 12)
    both = np.concatenate([np.tanh(x), np.sin(z)], 1)
    return {
        "y": y,
        "again": y,
        "flat": y.reshape(24),
        "rows": y[:2],
        "x_itself": x,
        "t": t,
        "both": both,
    }


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_stay_as_they_are_when_the_session_runs_again(threads: int) -> None:
    """From the compiler, and from the cache folder."""
    for _ in range(2):
        session = isoform.compile(several(), threads=threads, effort="quick")
        held: list[tuple[dict[str, Array], dict[str, Array]]] = []
        for seed in range(5):
            x, z = drawn(seed, 4, 6), drawn(seed + 100, 4, 6)
            held.append((session(x=x, z=z), wanted(x, z)))
        for found, right in held:
            for name, array in right.items():
                np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=1e-6, err_msg=name)


def test_no_two_outputs_share_memory() -> None:
    found = isoform.compile(several(), threads=1, effort="quick")(drawn(0, 4, 6), drawn(1, 4, 6))
    names = list(found)
    for k, name in enumerate(names):
        assert found[name].flags.writeable
        assert not any(np.shares_memory(found[name], found[other]) for other in names[:k])


def test_memory_is_given_out_again_only_when_nobody_holds_it() -> None:
    session = relu_of()
    addresses: set[int] = set()
    for seed in range(10):
        addresses.add(session(drawn(seed, SIZE))["y"].ctypes.data)
    assert len(addresses) <= OutputMemory.KEPT
    part = session(drawn(20, SIZE))["y"][5:9]  # a part holds the whole
    view = session(drawn(21, SIZE))["y"].data
    for seed in range(22, 30):
        session(drawn(seed, SIZE))
    assert np.array_equal(part, np.maximum(drawn(20, SIZE), 0)[5:9])
    assert np.array_equal(np.asarray(view), np.maximum(drawn(21, SIZE), 0))


def test_what_is_held_is_not_kept_as_well() -> None:
    """Ten results that the caller holds cost the session two, not ten."""
    memory = OutputMemory(np.dtype(np.float32), (SIZE,))
    held = [memory.take() for _ in range(10)]
    assert len({array.ctypes.data for array in held}) == 10
    assert len(memory._owners) == OutputMemory.KEPT  # pyright: ignore[reportPrivateUsage]


def test_outputs_into_given_arrays() -> None:
    session, x = relu_of(), drawn(3, SIZE)
    space = np.empty(SIZE + 32, np.float32)
    start = -space.ctypes.data % 64 // 4
    for shift in (0, 1):  # written in place, and copied
        mine = space[start + shift : start + shift + SIZE]
        (found,) = session.run(None, {"x": x}, out={"y": mine})
        assert found is mine
        assert np.array_equal(mine, np.maximum(x, 0))
        later = session(drawn(4, SIZE))["y"]
        assert not np.shares_memory(later, mine)
        assert np.array_equal(mine, np.maximum(x, 0))


def test_outputs_into_every_kind() -> None:
    session = isoform.compile(several(), threads=1, effort="quick")
    x, z = drawn(5, 4, 6), drawn(6, 4, 6)
    right = wanted(x, z)
    out = {name: np.empty_like(array) for name, array in right.items()}
    session.run(None, {"x": x, "z": z}, out=out)
    for name, array in right.items():
        np.testing.assert_allclose(out[name], array, rtol=1e-6, atol=1e-6, err_msg=name)


def test_an_output_over_its_input() -> None:
    """The arrays overlap: the result is that of arrays apart."""
    b = GraphBuilder()
    x = b.input("x", (64, 64), f32)
    b.output("y", b.transpose(x, perm=(1, 0)))
    session = isoform.compile(b.build("turned"), threads=1, effort="quick")
    array = drawn(7, 64, 64)
    right = array.T.copy()
    session.run(None, {"x": array}, out={"y": array})
    assert np.array_equal(array, right)


def test_an_output_over_an_input_that_is_an_output_too() -> None:
    session = isoform.compile(several(), threads=1, effort="quick")
    x, z = drawn(8, 4, 6), drawn(9, 4, 6)
    right = wanted(x.copy(), z)
    found = session.run(["x_itself", "y"], {"x": x, "z": z}, out={"y": x})
    np.testing.assert_allclose(found[0], right["x_itself"], rtol=1e-6)
    np.testing.assert_allclose(x, right["y"], rtol=1e-6)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ({"y": np.empty(3, np.float32)}, "does not fit"),
        ({"y": np.empty(SIZE, np.float64)}, "does not fit"),
        ({"z": np.empty(SIZE, np.float32)}, "there is no output 'z'"),
        ({"y": np.broadcast_to(np.float32(0), SIZE)}, "read-only"),
    ],
)
def test_arrays_for_outputs_that_do_not_fit(out: dict[str, Array], words: str) -> None:
    with pytest.raises(isoform.UserError, match=words):
        relu_of().run(None, {"x": drawn(0, SIZE)}, out=out)


def test_timing_kernels_leaves_results_alone() -> None:
    session = CpuSession(place(several(), CpuOptions(1, "quick")))
    found = session.run({"x": drawn(1, 4, 6), "z": drawn(2, 4, 6)})
    for array in found.values():
        array[...] = 7
    session.time(set(session.outputs.values()))
    assert all((array == 7).all() for array in found.values())


def test_threads_hold_their_own_results() -> None:
    session = relu_of()
    wrong: list[int] = []

    def work(seed: int) -> None:
        for k in range(30):
            x = drawn(seed * 100 + k, SIZE)
            if not np.array_equal(session(x)["y"], np.maximum(x, 0)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

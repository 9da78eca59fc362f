"""Memory-bound kernels read by whole vectors, nothing past what is theirs, in chains."""

import ctypes
import mmap
import random

import numpy as np
import pytest

from isoform.compiler.inputs import draw_inputs
from isoform.compiler.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.access import lane_offsets
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession

GEOMETRY = {"pads": [0, 0, 0, 0], "dilations": [1, 1]}


def nearest(b: GraphBuilder, x):
    n, c, h, w = 1, 4, 9, 20
    wide = b.broadcast(x, shape=[n, c, h, 2, w, 2], dims=[0, 1, 2, 4])
    return b.reshape(wide, shape=[n, c, 2 * h, 2 * w])


KERNELS = {
    "pool": ((1, 4, 9, 37), lambda b, x: b.max_pool(x, kernel=[3, 3], strides=[2, 2], **GEOMETRY)),
    "pool of many rows": (
        (1, 65, 15, 18),
        lambda b, x: b.avg_pool(x, kernel=[3, 3], strides=[2, 1], **GEOMETRY),
    ),
    "picture to channels last": ((1, 3, 9, 37), lambda b, x: b.transpose(x, perm=[0, 2, 3, 1])),
    "picture to channels first": ((1, 9, 37, 3), lambda b, x: b.transpose(x, perm=[0, 3, 1, 2])),
    "transpose": ((37, 41), lambda b, x: b.relu(b.transpose(x, perm=[1, 0]))),
    "nearest": ((1, 4, 9, 20), nearest),
    "every third": ((100,), lambda b, x: b.slice(x, starts=[1], sizes=[33], steps=[3])),
    "backwards": ((100,), lambda b, x: b.slice(x, starts=[98], sizes=[33], steps=[-3])),
    "short rows": ((41, 5), lambda b, x: b.reduce_max(x, axes=[1], keep_dims=False)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_element_is_read_by_itself_and_none_past_the_end(isa: Isa, kernel: str):
    """The operand ends where memory that may be read does."""
    shape, make = KERNELS[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    for segment in session.segments:
        assert not any("masked.gather" in call.code.ir for call in segment.calls)
    inputs = draw_inputs(program)
    guarded = at_the_end(inputs["x"])
    found = session.run({"x": guarded})["y"]
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)


def at_the_end(array: np.ndarray) -> np.ndarray:
    """A copy whose last byte is followed by a page that nobody may read."""
    room = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    whole = np.frombuffer(memory, np.uint8)
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is None:
        pytest.skip("this system has no mprotect")
    assert protect(ctypes.c_void_p(whole.ctypes.data + room), mmap.PAGESIZE, 0) == 0
    copy = whole[room - array.nbytes : room].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def test_lane_offsets_are_what_the_index_says():
    """Against the index itself, at random multiples of the lanes; None may be said, not wrongly."""
    r, known = random.Random(0), 0
    for _ in range(2000):
        lanes, step = r.choice((4, 8, 16)), r.choice((-2, 1, 1, 2, 3))
        lane, other = Index.iterator(0), Index.iterator(1)
        inner = lane * r.choice((0, 1, 2)) + other * r.choice((0, 1, 2, 4)) + r.randrange(9)
        flat = lane * step + other * 7 + (inner // r.choice((2, 3, 4, 8))) * r.choice((-3, 1, 5))
        offsets = lane_offsets(flat, 0, lanes)
        if offsets is None:
            continue
        known += 1
        for _ in range(5):
            start, row = lanes * r.randrange(20), r.randrange(20)
            values = [flat.evaluate([start + k, row]) for k in range(lanes)]
            assert tuple(v - values[0] for v in values) == offsets, (flat, start, row)
    assert 500 < known < 1900


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 1024), 1), ((300, 64), 0)], ids=["along the lanes", "across them"]
)
def test_a_long_sum_has_several_chains(shape, axis):
    b = GraphBuilder()
    b.output("y", b.reduce_sum(b.input("x", shape), axes=[axis], keep_dims=False))
    session = CpuSession(place(b.build()), 1)
    (call,) = session.segments[0].calls
    session.close()
    header = max(call.code.ir.split("\nb"), key=lambda block: block.count(" phi <"))
    assert header.count(" phi <") >= 4

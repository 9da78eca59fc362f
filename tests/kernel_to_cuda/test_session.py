"""A program on the emulated device: right results, one graph, inputs taken where they are."""

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.cuda_programs import convolved, random_conv, two_layers

from isoform.compiler.targets.levels import place
from isoform.compiler.targets.session import Session
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.device_array import DeviceArray, device_array
from isoform.lowering.kernel_to_cuda.session import CudaSession, timed
from isoform.testing.cuda_emulator.kernels import ORDERS
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime, convolution

PROGRAM, W, B, V = two_layers()
X = np.random.default_rng(1).standard_normal((20, 30), np.float32)
EXPECTED = np.maximum(X.astype(np.float64) @ W + B, 0) @ V.T


class Counting(EmulatedRuntime):
    """Counts what a session asks for."""

    uploads = graphs = 0

    def upload(self, address, array):
        self.uploads += 1
        super().upload(address, array)

    def capture(self, works):
        self.graphs += 1
        return super().capture(works)


@pytest.fixture
def session() -> CudaSession:
    need_compiler()
    return CudaSession(PROGRAM, Counting())


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_gives_the_right_values(order) -> None:
    need_compiler()
    found = CudaSession(PROGRAM, EmulatedRuntime(order)).run({"x": X})
    np.testing.assert_allclose(found["y"], EXPECTED, rtol=1e-4, atol=1e-4)


def test_one_graph_serves_all_runs(session: CudaSession) -> None:
    for k in range(3):
        found = session.run({"x": X * k})["y"]
        np.testing.assert_allclose(found[0], (np.maximum(X[0] * k @ W + B, 0) @ V.T), rtol=1e-3)
    assert session.runtime.graphs == 1
    assert session.runtime.uploads == 4  # the weights, and three inputs


def test_an_array_on_the_device_is_read_in_place(session: CudaSession) -> None:
    class Elsewhere:
        __cuda_array_interface__ = X.__array_interface__

    for _ in range(2):
        found = session.run({"x": Elsewhere()})["y"]
        np.testing.assert_allclose(found, EXPECTED, rtol=1e-4, atol=1e-4)
    assert session.runtime.uploads == 1  # the weights
    assert session.runtime.graphs == 1


def test_the_public_session_leaves_an_array_where_it_is() -> None:
    """What `isoform.compile(program, target="cuda")` gives, on the emulated device."""
    need_compiler()
    b = GraphBuilder()
    b.output("y", b.relu(b.input("x", (3, 4))))
    program = b.build("relu")
    runtime = Counting()
    printed = cuda_program(place(program, target="cuda"))
    session = Session(program, CudaSession(printed, runtime))
    array = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)

    class Elsewhere:
        __cuda_array_interface__ = array.__array_interface__

        def __array__(self) -> None:
            pytest.fail("it was copied to the host")

    before = runtime.uploads
    np.testing.assert_array_equal(session(x=Elsewhere())["y"], np.maximum(array, 0))
    assert runtime.uploads == before
    with pytest.raises(UserError, match="another shape"):
        session(x=DeviceArray(0, "float32", (4, 3)))
    with pytest.raises(UserError, match="another dtype"):
        session(x=DeviceArray(0, "int32", (3, 4)))


def test_outputs_may_stay_on_the_device(session: CudaSession) -> None:
    y = session.run_on_device({"x": X})["y"]
    assert y.__cuda_array_interface__["shape"] == (20, 8)
    there = np.empty((20, 8), np.float32)
    session.runtime.download(y.address, there)
    np.testing.assert_allclose(there, EXPECTED, rtol=1e-4, atol=1e-4)


class OnDevice:
    """What a tensor of another library looks like."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self):
        return self.array.__dlpack__()


def test_dlpack_is_read_in_place() -> None:
    found = device_array(OnDevice(X[5:]))
    assert found is not None
    assert (found.address, found.dtype, found.shape) == (X[5:].ctypes.data, "float32", (15, 30))
    integers = device_array(OnDevice(np.arange(3)))
    assert integers is not None
    assert integers.dtype == "int64"
    assert device_array(X) is None


def test_gaps_are_refused() -> None:
    with pytest.raises(UserError, match=r"not row-major.*make it contiguous"):
        device_array(OnDevice(X[:, 3:]))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' is missing: found none"),
        ({"x": X[1:]}, "does not fit: expected float32[20, 30], found float32[19, 30]"),
        ({"x": X.astype(np.float64)}, "found float64[20, 30]"),
        ({"x": DeviceArray(0, "int32", (20, 30))}, "found int32[20, 30]"),
    ],
)
def test_a_wrong_input_is_one_line(session: CudaSession, inputs, message) -> None:
    with pytest.raises(UserError) as caught:
        session.run(inputs)
    assert message in str(caught.value)


def test_work_can_be_timed(session: CudaSession) -> None:
    session.run({"x": X})
    for work in session.works():
        assert timed(session.runtime, work, repeats=2).median > 0


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_emulated_convolutions_follow_the_definition(seed: int, transposed: bool) -> None:
    rng = np.random.default_rng(seed)
    step = random_conv(rng, transposed)
    data, filter_ = rng.standard_normal(step.data.dims), rng.standard_normal(step.filter.dims)
    found, expected = convolution(step, data, filter_), convolved(step, data, filter_)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)

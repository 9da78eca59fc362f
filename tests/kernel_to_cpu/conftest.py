"""What the code generation tests share: run a kernel on numpy arrays, and the usual epilogues."""

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from isoform.lowering.kernel_to_cpu import code_cache
from isoform.lowering.kernel_to_cpu.emit.avx512 import emitting
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode, Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import F32
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.products.epilogue import Epilogue
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate every kernel: tests change the generators' constants, which no key covers."""
    monkeypatch.setattr(code_cache, "OURS", ())


class Compiled:
    """A loaded kernel; call it with arrays (or addresses) and, perhaps, a slice of its items."""

    def __init__(self, code: KernelCode, isa: Isa) -> None:
        self.items = code.items
        self._library = Library([compile_object(code.ir, isa)])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._function = kind(self._library.address(code.symbol))

    def __call__(self, *arguments, low: int = 0, high: int | None = None) -> None:
        addresses = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
        table = np.array(addresses, np.uint64)
        self._function(table.ctypes.data, low, self.items if high is None else high)


@pytest.fixture(scope="session", params=[isa.name for isa in runnable()])
def isa(request: pytest.FixtureRequest) -> Isa:
    return Isa.named(request.param)


@pytest.fixture(scope="session")
def compiled() -> Callable[[KernelCode, Isa], Compiled]:
    return Compiled


@pytest.fixture(scope="session")
def run_body(compiled) -> Callable[..., None]:
    """Emit, compile and run a body over all `items`."""

    def run(isa: Isa, body, *arrays: np.ndarray, items: int = 1) -> None:
        with emitting(available=isa.has_avx512):
            code = kernel(Module(), len(arrays), items, body)
        compiled(code, isa)(*arrays)

    return run


@pytest.fixture(scope="session")
def bias_relu() -> Epilogue:
    """max(acc + bias[channel], 0)."""

    def emit(b, acc, index, channel, mask, extras):
        bias = b.load(F32.vector(index.lanes), extras[0], channel, mask=mask)
        return b.maximum(b.add(acc, bias), 0.0)

    return Epilogue(1, emit)


@pytest.fixture(scope="session")
def add_residual() -> Callable[[tuple[int, ...]], Epilogue]:
    """acc + residual at the same coordinates, the residual having these strides."""

    def make(strides: tuple[int, ...]) -> Epilogue:
        def emit(b, acc, index, channel, mask, extras):
            terms = zip(index.coordinates, (*strides, 1), strict=True)
            offset = b.linear(*terms)
            return b.add(acc, b.load(F32.vector(index.lanes), extras[0], offset, mask=mask))

        return Epilogue(1, emit)

    return make


@pytest.fixture
def script() -> Callable[[str], str]:
    """Run Python text in its own process within ten minutes; give what it printed."""

    def run(text: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def _at_the_end(array: np.ndarray) -> np.ndarray:
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


@pytest.fixture(scope="session")
def at_the_end() -> Callable[[np.ndarray], np.ndarray]:
    """Copy an array to where nobody may read what follows it."""
    return _at_the_end

"""The GPU through PyCUDA: the only module that imports it, and only when a device is opened.

It uses the device's primary context, which cuBLAS, cuDNN and other libraries in the process also
use. Graphs are captured on PyCUDA's stream by driver calls: PyCUDA has no graphs.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from ...dialects.errors import UserError, one_line
from ...dialects.types import Array
from .compile import Cubin, compile_kernels
from .cublas import Cublas
from .cudnn import Cudnn
from .device_runtime import DeviceError, Launcher, Work
from .program_data import ConvCall, CudaKernel, Gemm

Compiler = Callable[[Sequence[CudaKernel], int], list[Cubin]]

_INSTALL = "pip install 'isoform[cuda]', or build a wheel with scripts/build_pycuda_wheel.sh"
_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


def open_device(
    number: int = 0, tf32: bool = False, compiler: Compiler = compile_kernels
) -> PyCudaRuntime:
    """Open a GPU.

    Args:
        tf32: let library calls round float32 operands to 10 bits of mantissa.
        compiler: makes cubins of kernels, for an architecture.

    Raises:
        UserError: PyCUDA is not installed; there is no driver; there is no usable device.
    """
    driver = _pycuda()
    try:
        driver.init()
        count = driver.Device.count()
        if number >= count:
            raise UserError(f"no usable device: number {number} of {count}")
        return PyCudaRuntime(driver, driver.Device(number), tf32, compiler)
    except driver.Error as error:
        raise UserError(f"no usable device: {one_line(str(error))}") from error


def _pycuda() -> Any:
    """PyCUDA's driver module. Raises UserError where it or the driver's library is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that the driver may have another version
            import pycuda.driver as driver  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        found = f"no module named '{error.name}'"
        raise UserError("a GPU needs PyCUDA", found=found, hint=_INSTALL) from error
    except ImportError as error:
        if "libcuda" in str(error):
            raise UserError("no NVIDIA driver; compile-only still works") from error
        raise UserError("PyCUDA does not load", found=str(error), hint=_INSTALL) from error
    return driver


class PyCudaEvent:
    """An event on the runtime's stream."""

    def __init__(self, driver: Any, stream: Any) -> None:
        self._event = driver.Event()
        self._event.record(stream)

    def since(self, earlier: PyCudaEvent) -> float:
        """Seconds between two events; waits for this one."""
        self._event.synchronize()
        return self._event.time_since(earlier._event) * 1e-3


class PyCudaRuntime:
    """Implements `DeviceRuntime` on a GPU. Bound work is called on the thread that opened it.

    Attributes:
        architecture: compute capability times ten.
        driver, device, stream: PyCUDA's.
    """

    def __init__(self, driver: Any, device: Any, tf32: bool, compiler: Compiler) -> None:
        self.driver, self.device = driver, device
        major, minor = device.compute_capability()
        self.architecture = 10 * major + minor
        self.description = f"{device.name()}, sm_{self.architecture}"
        self._compiler, self._tf32 = compiler, tf32
        self._context: Any = device.retain_primary_context()
        self._context.push()
        self._home = threading.get_ident()
        self.stream: Any = driver.Stream()
        self._allocations: dict[int, Any] = {}
        self._modules: list[Any] = []
        self._graphs: list[_Graph] = []
        self._libraries: dict[str, Any] = {}
        atexit.register(self.close)

    @contextlib.contextmanager
    def current(self) -> Generator[None]:
        """The context current on the calling thread; on the one that opened it, it always is."""
        if threading.get_ident() == self._home:
            yield
            return
        self._context.push()
        try:
            yield
        finally:
            self._context.pop()

    def alloc(self, size: int) -> int:
        """Device memory. Raises UserError if there is not enough."""
        with self.current():
            try:
                found = self.driver.mem_alloc(size)
            except self.driver.MemoryError as error:
                free, total = self.driver.mem_get_info()
                text = f"{free} bytes free of {total}"
                raise UserError(f"the device lacks {size} bytes", found=text) from error
            self._allocations[int(found)] = found
            return int(found)

    def free(self, address: int) -> None:
        """Free memory, after the stream has finished using it."""
        with self.current():
            self.stream.synchronize()
            self._allocations.pop(address).free()

    def upload(self, address: int, array: Array) -> None:
        """Copy on the stream; the array may change as soon as this returns."""
        with self.current():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if flat.size:
                self.driver.memcpy_htod_async(address, flat, self.stream)
                self.stream.synchronize()

    def download(self, address: int, array: Array) -> None:
        """Copy on the stream, and wait for it."""
        with self.current():
            if array.size:
                self.driver.memcpy_dtoh_async(
                    array.reshape(-1).view(np.uint8), address, self.stream
                )
            self.stream.synchronize()

    def load(self, kernels: Sequence[CudaKernel]) -> list[Launcher]:
        """Compile kernels for the device's architecture and load the cubins.

        Raises:
            UserError: what compiles them is not installed, or lacks the architecture.
        """
        return [self.launcher(cubin) for cubin in self._compiler(kernels, self.architecture)]

    def launcher(self, cubin: Cubin) -> Launcher:
        """Load one cubin."""
        with self.current():
            module = self.driver.module_from_buffer(cubin.image)
            function = module.get_function(cubin.kernel.name)
        self._modules.append(module)
        kernel = cubin.kernel
        function.prepare("P" * len(kernel.parameters))

        def bind(addresses: Sequence[int]) -> Work:
            bound = tuple(addresses)
            call, stream = function.prepared_async_call, self.stream
            return lambda: call(kernel.grid, kernel.block, stream, *bound)

        return bind

    def gemm(self, step: Gemm, addresses: Sequence[int]) -> Work:
        """A product by cuBLAS. Raises UserError where it is not installed."""
        if "cublas" not in self._libraries:
            made = Cublas(self.stream.handle, self._tf32)
            made.use_workspace(self.alloc(made.WORKSPACE))
            self._libraries["cublas"] = made
        return self._libraries["cublas"].bind(step, addresses)

    def conv(self, step: ConvCall, addresses: Sequence[int]) -> Work:
        """A convolution by cuDNN. Raises UserError where it is not installed."""
        if "cudnn" not in self._libraries:
            self._libraries["cudnn"] = Cudnn(self.stream.handle, self._tf32)
        return self._libraries["cudnn"].bind(step, addresses, self.alloc)

    def capture(self, works: Sequence[Work]) -> Work:
        """A CUDA graph, launched from any thread."""
        with self.current():
            graph = _Graph(self.stream.handle, works)
        self._graphs.append(graph)

        def launch() -> None:
            with self.current():
                graph.launch()

        return launch

    def event(self) -> PyCudaEvent:
        """Record an event."""
        return PyCudaEvent(self.driver, self.stream)

    @contextlib.contextmanager
    def profiled(self) -> Generator[None]:
        """The range that a profiler with "capture range: cudaProfilerApi" records."""
        self.driver.start_profiler()
        try:
            yield
        finally:
            self.stream.synchronize()
            self.driver.stop_profiler()

    def close(self) -> None:
        """Free memory and context; closing twice is fine."""
        if self._context is None:
            return
        atexit.unregister(self.close)
        # A failed device refuses this too; its context must leave the stack all the same.
        with self.current(), contextlib.suppress(self.driver.Error, DeviceError, UserError):
            self._release()
        if threading.get_ident() == self._home:
            self._context.pop()
            self._context.detach()  # left to its destructor, PyCUDA would not release but destroy
        self._context = None

    def _release(self) -> None:
        self.stream.synchronize()
        for graph in self._graphs:
            graph.close()
        for library in self._libraries.values():
            library.close()
        for allocation in self._allocations.values():
            allocation.free()
        self._graphs.clear()
        self._libraries.clear()
        self._allocations.clear()
        self._modules.clear()
        self.stream = None


class _Graph:
    """A captured graph, by the driver's own functions."""

    def __init__(self, stream: int, works: Sequence[Work]) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._stream = ctypes.c_void_p(stream)
        graph, self._ready = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, ctypes.c_int(_THREAD_LOCAL))
        try:
            for work in works:
                work()
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        ready = ctypes.byref(self._ready)
        self._call("cuGraphInstantiateWithFlags", ready, graph, ctypes.c_ulonglong(0))
        self._call("cuGraphDestroy", graph)

    def launch(self) -> None:
        """Launch the whole graph on the stream."""
        self._call("cuGraphLaunch", self._ready, self._stream)

    def close(self) -> None:
        """Free it."""
        self._call("cuGraphExecDestroy", self._ready)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
            raise DeviceError(f"{name}: {(text.value or b'unknown error').decode()}")

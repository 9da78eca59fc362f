"""Run a CUDA program on a device: place buffers, bind steps, capture the whole as a graph.

Inputs are numpy arrays, or arrays that are already on the device: those are read in place
(`__cuda_array_interface__`, or DLPack). The graph is bound to addresses; it is captured again if
inputs have other addresses than before.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.errors import UserError
from ...dialects.types import Array, strided
from .device_array import DeviceArray, device_array
from .device_runtime import DTYPES, DeviceRuntime, Work
from .profiler_ranges import profiler_range, ranged
from .program_data import ConvCall, CudaProgram, Gemm, Launch, Port, Step


class CudaSession:
    """A program on a device. Calls from several threads run one after the other.

    Attributes:
        addresses: of every buffer; an input's is its own allocation.
    """

    def __init__(self, program: CudaProgram, runtime: DeviceRuntime) -> None:
        """Load the kernels, place the buffers and copy the weights.

        Raises:
            UserError: the device or the compiler for it is missing something.
        """
        self.program = program
        self.runtime = runtime
        self._lock = threading.Lock()
        self._launchers = runtime.load(program.kernels)
        self._memory: list[int] = []
        self._arena = arena = self._alloc(program.arena_bytes)
        weights = self._alloc(program.weight_bytes)
        if program.weights:
            runtime.upload(weights, np.frombuffer(program.weights, np.uint8))
        bases = {"temporary": arena, "output": arena, "weight": weights}
        self.addresses = [
            bases[buffer.kind] + buffer.offset
            if buffer.kind in bases
            else self._alloc(buffer.elements * DTYPES[buffer.ctype].itemsize)
            for buffer in program.buffers
        ]
        self._graph: tuple[tuple[int, ...], Work] | None = None
        self._inputs: Mapping[str, Any] = {}  # arrays that the device may still be reading

    @staticmethod
    def as_array(given: Any) -> DeviceArray | Array:
        """A caller's array: in place if it is on the device, else as numpy converts it.

        Raises:
            UserError: it is on the device, but not dense and row-major.
        """
        there = device_array(given)
        return np.asarray(given) if there is None else there

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Run once; the outputs are copied to the host.

        Raises:
            UserError: an input is missing or has another shape or dtype.
        """
        with self._lock:
            self._run(inputs)
            return {port.name: self.download(port) for port in self.program.outputs}

    def download(self, port: Port) -> Array:
        """What an output's buffer holds now, row-major on the host."""
        dtype = np.dtype(port.dtype)
        array = np.empty(port.span, dtype)
        self.runtime.download(self._address(port), array)
        if port.strides is None:
            return array.reshape(port.shape)
        steps = [s * dtype.itemsize for s in port.strides]
        return strided(array, port.shape, steps).copy()

    def _address(self, port: Port) -> int:
        """The address of an output's first element."""
        return self.addresses[port.buffer] + port.offset * np.dtype(port.dtype).itemsize

    def run_on_device(self, inputs: Mapping[str, Any]) -> dict[str, DeviceArray]:
        """Run once; the outputs stay on the device, and are overwritten by the next run.

        Raises as `run`.
        """
        with self._lock:
            self._run(inputs)
            return {
                port.name: DeviceArray(
                    self._address(port), port.dtype, port.shape, strides=port.strides
                )
                for port in self.program.outputs
            }

    def works(self) -> list[Work]:
        """The steps one by one, bound to this session's buffers: for checks and timing."""
        return [
            ranged(self._name(step), self._bind(step, self.addresses))
            for step in self.program.steps
        ]

    def _name(self, step: Step) -> str:
        """The name of a step in profilers."""
        if isinstance(step, Launch):
            return self.program.kernels[step.kernel].name
        return "cublas gemm" if isinstance(step, Gemm) else "cudnn conv"

    def poison(self) -> None:
        """Fill temporaries and outputs with NaN: elements that a kernel does not write show."""
        self.runtime.upload(self._arena, np.full(self.program.arena_bytes, 0xFF, np.uint8))

    def close(self) -> None:
        """Free the memory, but keep the device; closing twice is fine."""
        for address in self._memory:
            self.runtime.free(address)
        self._memory.clear()

    def _alloc(self, size: int) -> int:
        self._memory.append(self.runtime.alloc(max(1, size)))
        return self._memory[-1]

    def _run(self, inputs: Mapping[str, Any]) -> None:
        addresses = list(self.addresses)
        for port in self.program.inputs:
            addresses[port.buffer] = self._input(port, inputs)
        key = tuple(addresses)
        if self._graph is None or self._graph[0] != key:
            works = [self._bind(step, addresses) for step in self.program.steps]
            self._graph = key, self.runtime.capture(works)
        self._inputs = dict(inputs)
        with profiler_range("run"):
            self._graph[1]()

    def _input(self, port: Port, inputs: Mapping[str, Any]) -> int:
        """The address of an input: on the device, or that of its copy."""
        if port.name not in inputs:
            found = ", ".join(inputs) or "none"
            raise UserError(f"input '{port.name}' is missing", found=found)
        array = self.as_array(inputs[port.name])
        if tuple(array.shape) != port.shape or str(array.dtype) != port.dtype:
            raise UserError(
                f"input '{port.name}' does not fit",
                expected=f"{port.dtype}{list(port.shape)}",
                found=f"{array.dtype}{list(array.shape)}",
            )
        if isinstance(array, DeviceArray):
            return array.address
        self.runtime.upload(self.addresses[port.buffer], np.ascontiguousarray(array))
        return self.addresses[port.buffer]

    def _bind(self, step: Step, addresses: list[int]) -> Work:
        match step:
            case Launch():
                return self._launchers[step.kernel]([addresses[b] for b in step.buffers])
            case Gemm():
                operands = (step.a, step.b, step.c)
                return self.runtime.gemm(step, [addresses[m.buffer] for m in operands])
            case ConvCall():
                return self.runtime.conv(step, [addresses[t.buffer] for t in step.operands])


@dataclass(frozen=True)
class Timing:
    """Units: seconds; the median of several runs, and percentiles."""

    median: float
    p10: float
    p90: float


def timed(runtime: DeviceRuntime, work: Work, repeats: int = 20) -> Timing:
    """Time some work on the device, after a warm-up."""
    for _ in range(3):
        work()
    found: list[float] = []
    for _ in range(repeats):
        before = runtime.event()
        work()
        found.append(runtime.event().since(before))
    low, middle, high = np.percentile(found, [10, 50, 90])
    return Timing(float(middle), float(low), float(high))

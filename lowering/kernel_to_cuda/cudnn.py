"""cuDNN by its frontend's graphs: one convolution each, with the program's sizes and strides.

A graph can be planned without a GPU, from a description of one (`plan`). The plan says whether
cuDNN has the convolution, how many algorithms it offers, and the workspace of the first.

A bias, a residual and a relu after a convolution are pointwise nodes of the same graph, which
cuDNN runs as one kernel. Its relu may turn NaN into 0.

cuDNN picks channels-last strides where none are set, so the output's are always set. Float32 is
exact to float32 unless TF32 is requested: engines that use tensor cores are excluded.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...dialects.errors import UserError, one_line
from .device_runtime import DTYPES, Work
from .program_data import ConvCall, ConvTensor

_INSTALL = "pip install 'isoform[cuda-plan]'"
_TYPES = {"float": "FLOAT", "double": "DOUBLE", "__half": "HALF", "__nv_bfloat16": "BFLOAT16"}

H100 = {
    "deviceName": "NVIDIA H100",
    "deviceVer": 900,
    "driverVer": 13000,
    "cudaDeviceId": 0,
    "pciDeviceId": 0,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "multiProcessorCount": 132,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000,
    "l2CacheSize": 50 << 20,
    "totalGlobalMem": 80 << 30,
    "warpSize": 32,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536,
    "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 48 << 10,
    "maxSharedMemoryPerBlockOptin": 227 << 10,
    "reservedSharedMemoryPerBlock": 1 << 10,
}
"""cuDNN's own description of a device, as its JSON has it."""


@dataclass(frozen=True)
class CudnnPlan:
    """cuDNN's offer for a convolution.

    Attributes:
        candidates: algorithms that its heuristics name, before strict float32 excludes some.
        workspace: bytes that the chosen one needs.
    """

    candidates: int
    workspace: int


def plan(step: ConvCall, tf32: bool = False) -> CudnnPlan:
    """Plan a convolution for an H100, with no device at hand.

    Raises:
        UserError: cuDNN is not installed, or has no such convolution.
    """
    cudnn = load_cudnn()
    described = cudnn.create_device_properties(json.dumps(H100))
    graph, _ = _graph(cudnn, step, tf32, device_property=described)
    graph.build_plans()
    return CudnnPlan(graph.get_execution_plan_count(), graph.get_workspace_size())


class Cudnn:
    """A handle on a stream."""

    def __init__(self, stream: int, tf32: bool = False) -> None:
        """Load cuDNN. Raises UserError where it is not installed."""
        self._cudnn = load_cudnn()
        self._tf32 = tf32
        self._handle = self._cudnn.create_handle()
        self._cudnn.set_stream(handle=self._handle, stream=stream)

    def bind(self, step: ConvCall, addresses: Sequence[int], alloc: Callable[[int], int]) -> Work:
        """A convolution on the buffers of its operands; its workspace is allocated now.

        Raises:
            UserError: cuDNN has no such convolution.
        """
        graph, tensors = _graph(self._cudnn, step, self._tf32, handle=self._handle)
        graph.build_plans()
        size = graph.get_workspace_size()
        workspace = alloc(size) if size else 0
        width = DTYPES[step.ctype].itemsize
        pointers = {
            tensor: address + part.offset * width
            for tensor, part, address in zip(tensors, step.operands, addresses, strict=True)
        }
        return lambda: graph.execute(pointers, workspace, handle=self._handle)

    def close(self) -> None:
        """Free the handle."""
        self._cudnn.destroy_handle(self._handle)


def load_cudnn() -> Any:
    """The frontend, with cuDNN itself loaded. Raises UserError where either is missing."""
    try:
        cudnn: Any = importlib.import_module("cudnn")
        cudnn.backend_version()
    except (ImportError, OSError, RuntimeError) as error:
        raise UserError("convolutions by the library need cuDNN", hint=_INSTALL) from error
    return cudnn


def _graph(cudnn: Any, step: ConvCall, tf32: bool, **where: Any) -> tuple[Any, tuple[Any, ...]]:
    """A supported graph of one convolution, and its tensors in the order of its operands."""
    if step.ctype not in _TYPES:
        raise UserError(f"cuDNN has no convolution of '{step.ctype}'")
    type_ = getattr(cudnn.data_type, _TYPES[step.ctype])
    compute = type_ if step.ctype == "double" else cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=type_, intermediate_data_type=compute, compute_data_type=compute, **where
    )

    def given(name: str, t: ConvTensor) -> Any:
        return graph.tensor(name=name, dim=_flat(t.dims), stride=_strides(t), data_type=type_)

    data, filter_ = given("data", step.data), given("filter", step.filter)
    geometry = {
        "pre_padding": _padded(step.pads, 0),
        "post_padding": _padded(post_padding(step), 0),
        "stride": _padded(step.strides, 1),
        "dilation": _padded(step.dilations, 1),
    }
    if step.transposed:
        out = graph.conv_dgrad(loss=data, filter=filter_, **geometry)
    else:
        out = graph.conv_fprop(image=data, weight=filter_, **geometry)
    added: list[Any] = []
    if step.fused is not None:
        added = [given(f"added_{k}", t) for k, t in enumerate(step.operands[3:])]
        for term in reversed(added):  # the residual first: its engines need this order
            out = graph.add(out, term)
        out = graph.relu(out)
    out.set_output(True).set_data_type(type_)
    out.set_dim(_flat(step.out.dims)).set_stride(_strides(step.out))
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        if step.ctype == "float" and not tf32:
            graph.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE])
        graph.check_support()
    except (cudnn.cudnnGraphNotSupportedError, RuntimeError) as error:
        reason = one_line(str(error))
        raise UserError("cuDNN has no such convolution", found=reason) from error
    return graph, (data, filter_, out, *added)


def post_padding(step: ConvCall) -> tuple[int, ...]:
    """Pads after the last element, per spatial dim, chosen so that the sizes agree."""
    small, large = (step.data, step.out) if step.transposed else (step.out, step.data)
    found: list[int] = []
    for k, (n, size) in enumerate(zip(small.dims[2:], large.dims[2:], strict=True)):
        reach = (step.filter.dims[2 + k] - 1) * step.dilations[k] + 1
        found.append((n - 1) * step.strides[k] + reach - size - step.pads[k])
    return tuple(max(0, p) for p in found)


def _padded(numbers: Sequence[int], neutral: int) -> list[int]:
    """One number per spatial dim, of which cuDNN wants at least two."""
    return [*([neutral] * (2 - len(numbers))), *numbers]


def _flat(dims: Sequence[int]) -> list[int]:
    return [*dims[:2], *_padded(dims[2:], 1)]


def _strides(tensor: ConvTensor) -> list[int]:
    strides = tensor.strides
    return [*strides[:2], *_padded(strides[2:], strides[2] if len(strides) > 2 else 1)]

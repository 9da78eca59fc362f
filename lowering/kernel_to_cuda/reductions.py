"""Reductions over the threads of a block: shuffles in a warp, shared memory between warps."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from .element_types import is_half

WARP = 32

_STEP = {
    "sum": "value += {0};",
    "prod": "value *= {0};",
    "max": "{{ const T other = {0}; value = value != value || value > other ? value : other; }}",
    "min": "{{ const T other = {0}; value = value != value || value < other ? value : other; }}",
}
_WORD = {"sum": "sum", "prod": "product", "max": "largest", "min": "smallest"}


def _reducer(reduction: str) -> str:
    step = _STEP[reduction]
    return f"""\
// The {_WORD[reduction]} of the values of all threads of a block, in every one of them; `scratch`
// has a slot for each warp.
template <int THREADS, typename T>
__device__ __forceinline__ T block_{reduction}(T value, T *scratch) {{
    for (int distance = 16; distance > 0; distance /= 2)
        {step.format("__shfl_xor_sync(0xffffffffu, value, distance)")}
    if (THREADS == 32) return value;
    __syncthreads();  // what an earlier reduction left may still be read
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < THREADS / 32; ++warp)
        {step.format("scratch[warp]")}
    return value;
}}"""


REDUCERS: dict[str, str] = {f"block_{name}": _reducer(name) for name in _STEP}


def shuffles(element: Attribute) -> bool:
    """Whether a warp can exchange values of this type."""
    if isinstance(element, Float32Type | Float64Type) or is_half(element):
        return True
    return isinstance(element, IntegerType) and element.width.data in (32, 64)

"""What is known of shapes wherever an op makes sense, as conditions over its operands and result.

Operands are called a, b, c, the result `out`, attributes by their names; `i` is any dim. Checked by
execution like the properties.
"""

from __future__ import annotations

from collections.abc import Mapping

_SAME = ("out.rank == a.rank", "out.shape[i] == a.shape[i]")
_BOTH = (*_SAME, "b.rank == a.rank", "b.shape[i] == a.shape[i]")
_CONV = (
    "a.rank >= 3",
    "b.rank == a.rank",
    "out.rank == a.rank",
    "out.shape[0] == a.shape[0]",
    "out.shape[1] == b.shape[0]",
    "a.shape[1] == b.shape[1] * groups",
    "groups == 1 or a.shape[1] != b.shape[1]",
)
_POOL = ("out.rank == a.rank", "out.shape[0] == a.shape[0]", "out.shape[1] == a.shape[1]")
_SPLIT = (
    "out.rank == a.rank",
    "0 <= axis and axis < a.rank",
    "a.shape[axis] == sizes[0] + sizes[1]",
    "sizes[0] >= 1 and sizes[1] >= 1",
    "i == axis or out.shape[i] == a.shape[i]",
)

_KERNEL = (
    "out.rank == 2 + kernel.rank",
    "out.shape[0] == channels",
    "out.shape[1] == 1",
    "kernel.rank != 2 or out.shape[2] == kernel[0]",
    "kernel.rank != 2 or out.shape[3] == kernel[1]",
)

FACTS: Mapping[str, tuple[str, ...]] = {
    "add": _BOTH,
    "mul": _BOTH,
    "relu": _SAME,
    "matmul": (
        "a.rank >= 2",
        "b.rank == a.rank",
        "out.rank == a.rank",
        "transpose_a or out.shape[-2] == a.shape[-2]",
        "transpose_b or out.shape[-1] == b.shape[-1]",
        "transpose_a or transpose_b or a.shape[-1] == b.shape[-2]",
        "i >= a.rank - 2 or out.shape[i] == a.shape[i]",
        "i >= a.rank - 2 or out.shape[i] == b.shape[i]",
    ),
    "concat": (
        "out.rank == a.rank",
        "b.rank == a.rank",
        "0 <= axis and axis < a.rank",
        "out.shape[axis] == a.shape[axis] + b.shape[axis]",
        "i == axis or out.shape[i] == a.shape[i]",
        "i == axis or out.shape[i] == b.shape[i]",
    ),
    "split.0": (*_SPLIT, "out.shape[axis] == sizes[0]"),
    "split.1": (*_SPLIT, "out.shape[axis] == sizes[1]"),
    "transpose": (
        "out.rank == a.rank",
        "a.rank == perm.rank",
        "a.rank != 2 or perm[0] != 1 or out.shape[0] == a.shape[1]",
        "a.rank != 2 or perm[0] != 1 or out.shape[1] == a.shape[0]",
    ),
    "conv": _CONV,
    "conv/3": (*_CONV, "c.rank == 1", "c.shape[0] == b.shape[0]"),
    "avg_pool": _POOL,
    "max_pool": _POOL,
    "pad": ("out.rank == a.rank",),
    "broadcast": ("a.rank == dims.rank", "out.rank == shape.rank", "out.shape[i] == shape[i]"),
    "ones": ("out.rank == shape.rank", "out.shape[i] == shape[i]"),
    "pair_mask": (
        "groups % 2 == 0",
        "shape.rank == 4",
        "out.rank == 4",
        "out.shape[i] == shape[i]",
    ),
    "pool_kernel": _KERNEL,
    "identity_kernel": _KERNEL,
    "identity_matrix": ("out.rank == 2", "out.shape[0] == size", "out.shape[1] == size"),
}

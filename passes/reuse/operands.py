"""What the operands of a nest read: dims as sums of loops, and the boxes that tiles need.

    conv2d [n, f, y, x | c, r, s]   data[n, c, stride y + dilation r, stride x + dilation s]
                                    filters[f, c, r, s]

Loops are numbered, those of the space first. The data of a transposed convolution have their zeros
written out, as TVM has them, so its windows move by one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from .nest import Ints, OperatorNest

Dim: TypeAlias = "tuple[tuple[int, int], ...]"
"""A dim's index: pairs of a loop and its coefficient, to be summed."""
Operand: TypeAlias = "tuple[Dim, ...]"


@lru_cache(maxsize=4096)
def operands(nest: OperatorNest) -> tuple[Operand, ...]:
    """The dims of each operand, the last one nearest in memory."""
    if nest.kind == "matmul":
        return (_plain(0, 1, 3), _plain(0, 2, 3))
    if "conv" not in nest.kind:
        return (_plain(*range(len(nest.loops))),)
    rank, depthwise = len(nest.space), nest.kind.startswith("depthwise-")
    spatial = len(nest.strides)
    first, taps = rank - spatial, len(nest.loops) - spatial
    steps = (1,) * spatial if "transposed" in nest.kind else nest.strides
    windows = tuple(((first + k, steps[k]), (taps + k, nest.dilations[k])) for k in range(spatial))
    window = tuple(range(taps, taps + spatial))
    if depthwise:
        return (*_plain(0, 1), *windows), _plain(1, *window)
    if nest.kind.startswith("grouped-"):
        return (*_plain(0, 1, rank), *windows), _plain(1, 2, rank, *window)
    features = (rank, 1) if "transposed" in nest.kind else (1, rank)
    return (*_plain(0, rank), *windows), _plain(*features, *window)


def _plain(*loops: int) -> Operand:
    return tuple(((loop, 1),) for loop in loops)


def needed(operand: Operand, tile: Ints) -> Ints:
    """The box of an operand that a tile of all loops reads."""
    return tuple(1 + sum(step * (tile[loop] - 1) for loop, step in dim) for dim in operand)


def row_major(shape: Ints) -> Ints:
    """The step of each dim, in elements."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


def offset(operand: Operand, shape: Ints, loop: int) -> int:
    """How far one iteration of a loop moves in an operand of that shape, in elements."""
    steps = row_major(shape)
    return sum(
        step * coefficient
        for dim, step in zip(operand, steps, strict=True)
        for k, coefficient in dim
        if k == loop
    )


def reads_loop(operand: Operand, loop: int) -> bool:
    """Whether an operand's index depends on a loop."""
    return any(k == loop for dim in operand for k, _ in dim)

"""The memory that a loop or a branch needs beside its results, as one buffer of the arena.

It holds the arena of the body (of the larger body), then a second buffer for each carried value: an
iteration reads one of the two and writes the other, so nothing is copied. The number of the
iteration and whether to go on follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .control import ControlOp, LoopOp
from .types import byte_width, element_count, tensor_type

ALIGNMENT = 64


@dataclass(frozen=True)
class Scratch:
    """Offsets in bytes from the start of the buffer, which has `size` bytes."""

    second: Sequence[int]  # of each carried value
    step: int
    going: int
    size: int

    @staticmethod
    def of(op: ControlOp) -> Scratch:
        """The buffer of an op whose bodies are placed."""
        arenas = [] if op.arenas is None else [entry.value.data for entry in op.arenas.data]
        end = _aligned(max(arenas, default=0))
        second: list[int] = []
        for value in op.carried if isinstance(op, LoopOp) else ():
            second.append(end)
            type_ = tensor_type(value)
            end += _aligned(element_count(type_) * byte_width(type_.element_type))
        return Scratch(second, end, end + ALIGNMENT, end + 2 * ALIGNMENT)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT

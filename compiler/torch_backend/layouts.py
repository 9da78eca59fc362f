"""How a strided tensor lies in memory, so that it goes in and out of a program without a copy.

A tensor whose dims are a permutation of a contiguous block, some of them broadcast (stride 0), is
given to the program as that block; graph ops make the tensor of it. They cost nothing: below the
graph they are indices. Any other tensor is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.index import row_major_strides
from ...dialects.types import shape_of


@dataclass(frozen=True)
class Layout:
    """A tensor's shape, and the dims (of extent above 1) of its block, outermost first."""

    shape: tuple[int, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
        """The layout, or None where elements overlap otherwise or leave gaps."""
        if 0 in shape:
            return Layout.contiguous(shape)
        stored = [k for k, n in enumerate(shape) if n != 1 and strides[k] != 0]
        stored.sort(key=lambda k: (-strides[k], k))
        expected = 1
        for k in reversed(stored):
            if strides[k] != expected:
                return None
            expected *= shape[k]
        return Layout(tuple(shape), tuple(stored))

    @staticmethod
    def contiguous(shape: Sequence[int]) -> Layout:
        """The layout of a contiguous tensor."""
        return Layout(tuple(shape), _wide(shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the block's elements are the tensor's, in row-major order."""
        return self.order == _wide(self.shape)

    @property
    def is_broadcast(self) -> bool:
        """Whether elements of the block stand at several places of the tensor."""
        return len(self.order) < len(_wide(self.shape))

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of the block in memory."""
        return self.shape if self.is_contiguous else tuple(self.shape[k] for k in self.order)

    @property
    def block_strides(self) -> tuple[int, ...]:
        """The strides of the block, in elements."""
        return tuple(row_major_strides(self.block))

    def unpack(self, build: GraphBuilder, block: SSAValue) -> SSAValue:
        """The tensor, made of its block."""
        if self.is_contiguous:
            return block
        order = sorted(self.order)
        value = _transposed(build, block, [self.order.index(k) for k in order])
        if self.is_broadcast:
            return build.op("broadcast", value, shape=list(self.shape), dims=order)
        return _reshaped(build, value, self.shape)

    def pack(self, build: GraphBuilder, value: SSAValue) -> SSAValue:
        """The block of a tensor without broadcast dims."""
        if self.is_contiguous:
            return value
        kept = _wide(self.shape)
        value = _reshaped(build, value, [self.shape[k] for k in kept])
        return _transposed(build, value, [kept.index(k) for k in self.order])


def _wide(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(k for k, n in enumerate(shape) if n != 1)


def _transposed(build: GraphBuilder, value: SSAValue, perm: Sequence[int]) -> SSAValue:
    same = list(perm) == list(range(len(perm)))
    return value if same else build.op("transpose", value, perm=list(perm))


def _reshaped(build: GraphBuilder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    same = shape_of(value) == tuple(shape)
    return value if same else build.op("reshape", value, shape=list(shape))

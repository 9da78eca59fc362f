"""The weights of a program as its kernels read them: evaluated, laid out or packed, in one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.index import grid
from ...dialects.kernel import physical
from ...dialects.program import Program
from ...dialects.types import Array, Tensor, byte_width, element_of, strided, tensor_type
from ..kernel_to_cpu.constants import Constants
from .print_contraction import Packed
from .print_reads import without_halo

ALIGNMENT = 64


@dataclass
class WeightsFile:
    """Offsets of constants in the file, and functions that make them."""

    constants: Constants
    size: int = 0
    _parts: list[tuple[int, int, Callable[[], Array]]] = field(
        default_factory=list[tuple[int, int, Callable[[], Array]]]
    )

    def add(self, value: SSAValue, packed: Packed | None) -> tuple[int, int]:
        """Add a constant; return (byte offset, elements)."""
        type_ = without_halo(tensor_type(value))
        if packed is None:
            count = physical(type_)[2]
            made = self._laid_out(value, type_)
        else:
            count = int(np.prod(packed.extents, dtype=np.int64))
            made = self._packed(value, packed)
        return self.reserve(count * byte_width(element_of(value)), made), count

    def reserve(self, size: int, make: Callable[[], Array]) -> int:
        """The byte offset of an array that `make` will return."""
        offset = self.size
        self.size = -(-(offset + size) // ALIGNMENT) * ALIGNMENT
        self._parts.append((offset, size, make))
        return offset

    def _laid_out(self, value: SSAValue, type_: Tensor) -> Callable[[], Array]:
        def make() -> Array:
            array = self.constants[value].reshape(type_.get_shape())
            strides, offset, count = physical(type_)
            buffer = np.zeros(count, array.dtype)
            steps = [s * array.itemsize for s in strides]
            strided(buffer[offset:], array.shape, steps)[...] = array
            return buffer

        return make

    def _packed(self, value: SSAValue, packed: Packed) -> Callable[[], Array]:
        def make() -> Array:
            count = max(packed.iterators, default=-1) + 1
            extents = [1] * count
            for k, n in zip(packed.iterators, packed.extents, strict=True):
                extents[k] = n
            points = grid(extents, packed.iterators)
            index = tuple(np.asarray(e.evaluate(points)) for e in packed.index)
            array = self.constants[value][index]
            return np.ascontiguousarray(np.broadcast_to(array, packed.extents))

        return make

    def contents(self) -> bytes:
        """The bytes of the file. Raises UserError if a weight is missing."""
        data = np.zeros(self.size, np.uint8)
        for offset, size, make in self._parts:
            data[offset : offset + size] = np.ascontiguousarray(make()).view(np.uint8).ravel()
            self.constants.clear()
        return data.tobytes()


def weights_file(program: Program) -> WeightsFile:
    """An empty file for the constants of a program."""
    return WeightsFile(Constants(program))

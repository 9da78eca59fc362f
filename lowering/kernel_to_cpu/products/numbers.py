"""The numbers a product is computed with: operands in memory, sums in registers, one step between.

A step multiplies `group` neighbours of the left operand by as many weights and adds the products
to a sum. Floats take one a step. Bytes take four where the processor multiplies four at once
(VNNI), or pairs of 16 bits in two turns, else one; sums are exact in 32 bits. Every lane of
packed weights is one word as wide as a sum, so all strides of weights count words; a step of pairs
has two rows of words, for its even neighbours and for the odd ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type, f32, f64, i32
from xdsl.ir import Attribute

from ....dialects.types import Array, is_float, is_half, is_unsigned
from ..emit.access import memory_type
from ..emit.emitter import Emitter
from ..emit.types import F32, F64, I8, I16, I32, Index, Type, Value
from ..isa import Isa

Step = Literal["multiply", "bytes", "pairs"]
"""An ordinary multiplication and addition; four bytes; twice two numbers of 16 bits."""

# Products of bytes that floats of 32 bits add without rounding: 2^24 / 255^2.
MOST_EXACT = 258
_FLIP = 0x80808080 - (1 << 32)  # the sign bits of four bytes
_DTYPES = {F32: np.float32, F64: np.float64, I32: np.int32}


@dataclass(frozen=True)
class Numbers:
    """How operands lie in memory, and how they are multiplied.

    Attributes:
        data, right: of the left operand and of an unpacked right one, in memory.
        total: of the sums, and of a packed word.
        result: of what is stored.
        signed: whether the left operand's integers are.
        bfloat: whether 16 bits in memory are a bfloat.
        start: whether sums start from a packed row: that of -128 times the columns' sums.
    """

    data: Type = F32
    right: Type = F32
    total: Type = F32
    result: Type = F32
    signed: bool = True
    bfloat: bool = False
    step: Step = "multiply"

    @property
    def group(self) -> int:
        """Count the neighbours of the left operand that a step takes."""
        return 1 if self.step == "multiply" else 4

    @property
    def words(self) -> int:
        """Count the rows of words of a step."""
        return 2 if self.step == "pairs" else 1

    @property
    def is_integer(self) -> bool:
        """Say whether bytes are multiplied."""
        return self.data == I8

    @property
    def start(self) -> bool:
        """Say whether bytes are made unsigned, which adds 128 times a column's sum."""
        return self.step == "bytes" and self.signed

    def steps(self, depth: int) -> int:
        """Count the steps over `depth` neighbours."""
        return -(-depth // self.group)

    def tail(self, depth: int) -> int:
        """Count the neighbours in the last step; 0 if it is a whole one."""
        return depth % self.group

    def rows(self, depth: int) -> int:
        """Count the rows of words of a packed panel: its steps, then what its sums start from."""
        return self.steps(depth) * self.words + int(self.start)

    # --- packing ---

    @property
    def dtype(self) -> type[np.generic]:
        """The words of packed weights."""
        return _DTYPES[self.total]

    def packed(self, rows: Array) -> Array:
        """Neighbouring rows of weights as rows of words, the last ones filled up with zeros.

        Shapes: [k, lanes] to [steps * words, lanes].
        """
        dtype = self.dtype
        if self.step == "multiply":
            return rows.astype(dtype, copy=False)
        short = np.int8 if self.step == "bytes" else np.int16
        gap = self.steps(len(rows)) * self.group - len(rows)
        filled = np.pad(rows, ((0, gap), (0, 0))).astype(short)
        apart = filled.reshape(-1, self.group // self.words, self.words, rows.shape[1])
        together = np.ascontiguousarray(apart.transpose(0, 2, 3, 1))
        return together.view(dtype).reshape(-1, rows.shape[1])

    def panel(self, runs: Array) -> Array:
        """A packed panel: the words of each run of neighbours, then what its sums start from.

        Shapes: [runs, k, lanes] to [rows, lanes].
        """
        words = [self.packed(rows) for rows in runs]
        if self.start:
            total = runs.astype(np.int64).sum(axis=(0, 1))
            words.append((-128 * total).astype(np.int32)[None])
        return np.concatenate(words)

    # --- emission ---

    def widened(self, b: Emitter, value: Value) -> Value:
        """Loaded numbers of the left operand as numbers of the sums' type."""
        if self.bfloat:
            return b.from_bfloat_bits(value)
        if value.type.is_int and self.total == F32:  # through 32 bits, as instructions do
            value = b.cast(value, I32, signed=self.signed)
        return b.cast(value, self.total, signed=self.signed)

    def spread(
        self, b: Emitter, source: Value, at: Index, lanes: int, count: int = 0
    ) -> list[Value]:
        """What a step multiplies with each of its words: neighbours from element `at` on, in
        every lane.

        Units: `count` is how many exist, if not a whole group.
        """
        if self.step == "multiply":
            return [b.broadcast(self.widened(b, b.load(self.data, source, at)), lanes)]
        word = self._bytes(b, source, at, count or 4)
        if self.step == "bytes":
            word = b.logic("xor", word, _FLIP) if self.signed else word
            return [b.broadcast(word, lanes)]
        pairs = b.bitcast(b.broadcast(word, lanes), I16.vector(2 * lanes))
        if self.signed:
            return [b.logic("ashr", b.logic("shl", pairs, 8), 8), b.logic("ashr", pairs, 8)]
        return [b.logic("and", pairs, 0xFF), b.logic("lshr", pairs, 8)]

    def _bytes(self, b: Emitter, source: Value, at: Index, count: int) -> Value:
        """A word of `count` bytes and zeros; nothing past them is read."""
        address = b.address(I8, source, at)
        if count == 4:
            return b.load(I32, address, align=1)
        word = b.cast(b.load(I8 if count == 1 else I16, address, align=1), I32, signed=False)
        if count == 3:
            last = b.cast(b.load(I8, address, 2), I32, signed=False)
            word = b.logic("or", word, b.logic("shl", last, 16))
        return word

    def multiplied(self, b: Emitter, spread: Value, weights: Value, total: Value) -> Value:
        """The sums after one step."""
        lanes = total.type.lanes
        if self.step == "multiply":
            return (
                b.fma(spread, weights, total)
                if self.total.is_float
                else _plain(b, spread, weights, total)
            )
        if self.step == "bytes":
            words = I8.vector(4 * lanes)
            args = [total, b.bitcast(spread, words), b.bitcast(weights, words)]
            name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
            return b.call(name, total.type, args, declare=True)
        pairs = I16.vector(2 * lanes)
        name = "llvm.x86.avx512.pmaddw.d.512" if lanes == 16 else "llvm.x86.avx2.pmadd.wd"
        args = [b.bitcast(spread, pairs), b.bitcast(weights, pairs)]
        return b.add(total, b.call(name, total.type, args, declare=True))

    def finished(self, b: Emitter, total: Value) -> Value:
        """A sum as the first scope's result: floats that added bytes become integers."""
        if self.data != I8 or self.total != F32:
            return total
        whole = I32.vector(total.type.lanes)
        return b.op(whole, f"fptosi {total} to {whole}")  # they are far from 2^31


def _plain(b: Emitter, x: Value, y: Value, total: Value) -> Value:
    return b.add(total, b.mul(x, y))


FLOATS = Numbers()


def numbers_of(left: Attribute, right: Attribute, result: Attribute, isa: Isa) -> Numbers:
    """How a product of two operands is computed: they are of one float type, or both bytes."""
    data, other, stored = map(memory_type, (left, right, result))
    if is_float(left):
        total = F64 if isinstance(left, Float64Type) else F32
        return Numbers(data, other, total, stored, bfloat=isinstance(left, BFloat16Type))
    return Numbers(data, other, I32, stored, signed=not is_unsigned(left), step=_step(isa))


def _step(isa: Isa) -> Step:
    """The widest exact step of the processor."""
    if isa.multiplies_bytes:
        return "bytes"
    return "pairs" if isa.vector_bytes >= 32 else "multiply"


def in_floats(numbers: Numbers, products: int) -> Numbers:
    """The same by float multiplications, for lanes that are channels: exact for few products.

    Bytes that are more than floats can add are added in 32 bits, one by one.
    """
    if numbers.data != I8:
        return numbers
    return replace(numbers, step="multiply", total=F32 if products <= MOST_EXACT else I32)


def takes(left: Attribute, right: Attribute, result: Attribute) -> bool:
    """Whether kernels multiply these element types: one float type, or two of 8 bits in 32."""
    if is_float(left):
        whole = isinstance(left, Float32Type | Float64Type) or is_half(left)
        wanted = {f32} if not isinstance(left, Float64Type) else {f64}
        return whole and left == right and result in wanted
    return result == i32 and memory_type(left) == I8 == memory_type(right)

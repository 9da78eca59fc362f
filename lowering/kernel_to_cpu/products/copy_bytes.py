"""Emit the copy of a panel of bytes that are computed into the words that a step multiplies."""

from collections.abc import Sequence

from ..emit.emitter import Emitter
from ..emit.types import I8, I32, Index, Value, constant
from .blocks import Panel
from .numbers import Numbers


def copy_bytes(
    b: Emitter,
    source: Value,
    target: Value,
    strides: tuple[int, int],
    panel: Panel,
    lanes: int,
    depth: int,
    numbers: Numbers,
) -> None:
    """Copy a panel of `depth` rows of signed bytes as `Numbers.panel` packs constant ones.

    Units: `strides` are the source's, from row to row and from column to column.
    """
    copy = _Copy(b, source, target, strides, panel.vectors * lanes, depth, numbers)
    if strides[1] == 1:
        for v in range(panel.vectors):
            copy.columns(v * lanes, lanes, panel.channels - v * lanes)
        return
    with b.loop(0, panel.channels, unroll=1) as column:
        copy.columns(column, 0)
    rows = numbers.rows(depth)
    for column in range(panel.channels, panel.vectors * lanes):
        with b.loop(0, rows, unroll=1) as row:
            b.store(b.value(0, I32), target, b.add(b.mul(row, copy.width), column))


class _Copy:
    """What all columns of a panel share."""

    def __init__(
        self,
        b: Emitter,
        source: Value,
        target: Value,
        strides: tuple[int, int],
        width: int,
        depth: int,
        numbers: Numbers,
    ) -> None:
        self.b, self.source, self.target = b, source, target
        self.strides, self.width, self.depth, self.numbers = strides, width, depth, numbers

    def columns(self, first: Index, lanes: int, valid: int = 1) -> None:
        """Copy a vector of columns, or one column if `lanes` is 0."""
        b, group = self.b, self.numbers.group
        whole, tail = divmod(self.depth, group)
        zero = constant(I32.vector(lanes), 0) if lanes else b.value(0, I32)
        with b.fold(0, whole, [zero], unroll=1) as loop:
            loop.next([self._step(loop.index, group, first, (lanes, valid), loop.values[0])])
        total = loop.results[0]
        if tail:
            total = self._step(whole, tail, first, (lanes, valid), total)
        if self.numbers.start:
            row = self.numbers.steps(self.depth) * self.width
            b.store(b.mul(total, -128), self.target, b.add(first, row))

    def _step(
        self, step: Index, count: int, first: Index, size: tuple[int, int], total: Value
    ) -> Value:
        """Copy the neighbours of one step, and add them to the columns' sums."""
        b, (lanes, valid) = self.b, size
        row = b.mul(step, self.numbers.group)
        parts: list[Value] = []
        for k in range(count):
            at = b.linear((b.add(row, k), self.strides[0]), (first, self.strides[1]))
            byte = I8.vector(lanes) if lanes else I8
            mask = valid if lanes else None
            parts.append(b.cast(b.load(byte, self.source, at, mask=mask), I32, signed=True))
        words = self._words(parts)
        for number, word in enumerate(words):
            place = b.add(b.mul(step, len(words)), number)
            b.store(word, self.target, b.add(b.mul(place, self.width), first))
        if self.numbers.start:
            for part in parts:
                total = b.add(total, part)
        return total

    def _words(self, parts: Sequence[Value]) -> list[Value]:
        """The words of a step: neighbours side by side, those that do not exist 0."""
        b, words = self.b, self.numbers.words
        bits = 32 * words // self.numbers.group
        made: list[Value] = []
        for number in range(words):
            mine = parts[number::words]
            word = self._side(mine[0], bits) if mine else b.mul(parts[0], 0)
            for k, part in enumerate(mine[1:], 1):
                side = b.logic("shl", self._side(part, bits), k * bits)
                word = b.logic("or", word, side)
            made.append(word)
        return made

    def _side(self, part: Value, bits: int) -> Value:
        """The low bits of a number."""
        return part if bits == 32 else self.b.logic("and", part, (1 << bits) - 1)

"""Cut a result into register blocks: panels of columns, runs of rows, and what a block costs."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from ..emit.emitter import Emitter
from ..emit.types import Index, Value
from ..isa import Isa


@dataclass(frozen=True)
class Panel:
    """Describe `count` equal panels of output channels, each `vectors` registers wide.

    Units: `first` and `vector` are the panels and the vectors of weights before these, `channel`
    the output channels before them; all within one group, where groups do not share a panel.
    `channels` exist in each panel. `groups` is how many convolution groups a panel holds.
    """

    count: int
    vectors: int
    channels: int
    groups: int
    first: int = 0
    vector: int = 0
    channel: int = 0

    def then(self, vectors: int, channels: int, groups: int) -> "Panel":
        """Describe the one panel that follows these."""
        vector = self.count * self.vectors
        return Panel(1, vectors, channels, groups, self.count, vector, self.count * self.channels)


def cut_panels(channels: int, vectors: int, lanes: int) -> list[Panel]:
    """Cut channels into panels of `vectors` registers, and one narrower panel for the rest."""
    width = vectors * lanes
    full, rest = divmod(channels, width)
    whole = Panel(full, vectors, width, 1)
    tail = [whole.then(-(-rest // lanes), rest, 1)] if rest else []
    return ([whole] if full else []) + tail


def each_kind(b: Emitter, kinds: list[Panel], panel: Index, work: Callable[[Panel], None]) -> None:
    """Emit `work` for each kind of panel, selected by the number `panel`."""
    if len(kinds) == 1:
        work(kinds[0])
        return
    whole, tail = kinds

    def run(kind: Panel) -> list[Value]:
        work(kind)
        return []

    b.if_else(b.compare("lt", panel, whole.count), lambda: run(whole), lambda: run(tail))


def balanced(total: int, most: int) -> tuple[int, ...]:
    """Cut `total` into the fewest parts of at most `most`, as equal as possible, large first."""
    parts = -(-total // most)
    size, larger = divmod(total, parts)
    return (size + 1,) * larger + (size,) * (parts - larger)


def block_loops(
    b: Emitter,
    sizes: tuple[int, ...],
    chunk: tuple[Index, int] | None,
    work: Callable[[Index, int, Index], None],
) -> None:
    """Emit `work(number, size, first row)` in a loop for every run of equal blocks.

    With `chunk` (its number and length) only those blocks are visited.
    """
    block = first = 0
    for size, run in groupby(sizes):
        count = len(list(run))
        low: Index = block
        high: Index = block + count
        if chunk is not None:
            start = b.mul(chunk[0], chunk[1])
            low, high = b.maximum(start, low), b.minimum(b.add(start, chunk[1]), high)
        with b.loop(low, high, unroll=1) as number:
            work(number, size, b.add(b.mul(b.sub(number, block), size), first))
        block, first = block + count, first + count * size


def register_blocks(isa: Isa, words: int = 1) -> list[tuple[int, int]]:
    """List (rows, vectors) whose accumulators, weights and one input fit the registers.

    Units: `words` is how many rows of weights a step multiplies; then an input takes two registers.
    """
    wide = isa.registers == 32
    if words == 1:
        blocks = [(14, 2), (9, 3), (6, 4), (13, 2), (12, 2), (8, 3), (14, 1)]
        return blocks if wide else [(6, 2), (4, 3), (5, 2), (12, 1), (7, 1)]
    return [(12, 2), (7, 3), (10, 2), (14, 1)] if wide else [(5, 2), (4, 2), (12, 1), (7, 1)]


def block_cycles(rows: int, vectors: int, depth: int) -> float:
    """Model the cycles of one block.

    A step takes as long as its multiply-adds or its loads, two of each a cycle. Too few
    accumulators leave additions waiting for each other, but `chains_for` sees to that. A block
    costs a call besides.
    """
    return max(rows * vectors, rows + vectors) / 2 * depth + 20 + rows * vectors

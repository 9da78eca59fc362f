"""Print the innermost part of a tiled contraction: one step's tiles multiplied in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .print_fetch import SharedTile
from .schedule import Level4, TileSizes
from .writer import CudaWriter, level


@dataclass
class ProductNames:
    """The names in a product: tiles in shared memory, a thread's coordinates, its sums."""

    writer: CudaWriter
    tiling: TileSizes
    ctype: str  # of the sums
    a: SharedTile
    b: SharedTile
    thread_row: str
    thread_column: str
    sums: str

    def step(self, stage: str) -> None:
        """Multiply one step's tiles: depth, inner results, depth, innermost results."""
        writer, t = self.writer, self.tiling
        with (
            level(writer, "k", t.depth[0], t.unroll) as k,
            level(writer, "row_run", t.rows[2]) as rows,
            level(writer, "column_run", t.columns[2]) as columns,
            level(writer, "kk", t.depth[1]) as kk,
        ):
            deep = linear([(k, t.depth[1]), (kk, 1)])
            a = self._part(self.a, t.rows, (stage, deep, self.thread_row, rows))
            b = self._part(self.b, t.columns, (stage, deep, self.thread_column, columns))
            self._multiply(a, b, rows, columns)

    def _part(self, tile: SharedTile, sizes: Level4, at: tuple[str, str, str, str]) -> str:
        """Load what a thread needs of one line of a tile; the name of the array."""
        writer, (virtual, threads, runs, innermost) = self.writer, sizes
        stage, deep, thread, run = at
        name = writer.names.fresh(f"{tile.name}_part")
        writer.line(f"__align__(16) {self.ctype} {name}[{virtual * innermost}];")
        with level(writer, "v", virtual) as v:
            wide = 4 if innermost % 4 == 0 and self.ctype == "float" else 1
            with level(writer, "j", innermost // wide) as j:
                offsets = [(v, threads * runs * innermost), (thread, runs * innermost)]
                offset = linear([*offsets, (run, innermost), (j, wide)])
                source = f"{tile.name}[{stage}][{deep}][{offset}]"
                slot = linear([(v, innermost), (j, wide)])
                if wide == 1:
                    writer.line(f"{name}[{slot}] = {source};")
                else:
                    writer.helpers |= {"load4", "store4"}
                    writer.line(f"store4(&{name}[{slot}], load4(&{source}));")
        return name

    def _multiply(self, a: str, b: str, rows: str, columns: str) -> None:
        """All products of the values that a thread has loaded."""
        writer, t = self.writer, self.tiling
        high, wide = t.rows[0] * t.rows[3], t.columns[0] * t.columns[3]
        with level(writer, "i", high) as i, level(writer, "j", wide) as j:
            row, column = _slot(i, rows, t.rows), _slot(j, columns, t.columns)
            writer.line(f"{self.sums}[{row}][{column}] += {a}[{i}] * {b}[{j}];")


def _slot(i: str, run: str, sizes: Level4) -> str:
    """Number among a thread's results of the `i`-th part in a run."""
    innermost = sizes[3]
    if sizes[2] == 1:
        return i
    if sizes[0] == 1:
        return linear([(run, innermost), (i, 1)])
    quotient, rest = (f"{i} / {innermost}", f"{i} % {innermost}")
    return linear([(quotient, sizes[2] * innermost), (run, innermost), (rest, 1)])


def linear(terms: Sequence[tuple[str, int]]) -> str:
    """A sum of products, without the terms that are 0."""
    parts = [name if times == 1 else f"{name} * {times}" for name, times in terms if name != "0"]
    return " + ".join(parts) or "0"

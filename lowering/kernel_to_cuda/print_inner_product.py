"""Print the innermost part of a tiled contraction: one step's tiles multiplied in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .print_fetch import SharedTile
from .schedule import Level4, TileSizes
from .writer import CudaWriter, unrolled_loop


@dataclass
class ProductPrinter:
    """Prints a product from the names in it: tiles in shared memory, a thread's coordinates, sums.

    Rows and columns are tiled on four levels (schedule.py): virtual threads, threads, inner tiles
    and innermost tiles.
    """

    writer: CudaWriter
    tiling: TileSizes
    ctype: str  # of the sums
    a: SharedTile
    b: SharedTile
    thread_row: str
    thread_column: str
    sums: str

    def step(self, stage: str) -> None:
        """Print the loops over one step's tiles: outer k, inner tiles, inner k, innermost tiles.

        Args:
            stage: which half of the double buffer holds the step.
        """
        writer, t = self.writer, self.tiling
        with (
            unrolled_loop(writer, "k", t.depth[0], t.unroll) as k,
            unrolled_loop(writer, "row_run", t.rows[2]) as rows,
            unrolled_loop(writer, "column_run", t.columns[2]) as columns,
            unrolled_loop(writer, "kk", t.depth[1]) as kk,
        ):
            k_index = linear([(k, t.depth[1]), (kk, 1)])
            a = self._part(self.a, t.rows, (stage, k_index, self.thread_row, rows))
            b = self._part(self.b, t.columns, (stage, k_index, self.thread_column, columns))
            self._multiply(a, b, rows, columns)

    def _part(self, tile: SharedTile, sizes: Level4, at: tuple[str, str, str, str]) -> str:
        """Load what a thread needs of one row of a tile (one k); the name of the array.

        Args:
            at: the stage, k, the thread's number, and the number of the inner tile.
        """
        writer, (virtual, threads, inner_tiles, innermost) = self.writer, sizes
        stage, k_index, thread, inner_tile = at
        name = writer.names.fresh(f"{tile.name}_part")
        writer.line(f"__align__(16) {self.ctype} {name}[{virtual * innermost}];")
        with unrolled_loop(writer, "v", virtual) as v:
            width = 4 if innermost % 4 == 0 and self.ctype == "float" else 1
            with unrolled_loop(writer, "j", innermost // width) as j:
                offsets = [
                    (v, threads * inner_tiles * innermost),
                    (thread, inner_tiles * innermost),
                ]
                offset = linear([*offsets, (inner_tile, innermost), (j, width)])
                source = f"{tile.name}[{stage}][{k_index}][{offset}]"
                slot = linear([(v, innermost), (j, width)])
                if width == 1:
                    writer.line(f"{name}[{slot}] = {source};")
                else:
                    writer.helpers |= {"load4", "store4"}
                    writer.line(f"store4(&{name}[{slot}], load4(&{source}));")
        return name

    def _multiply(self, a: str, b: str, rows: str, columns: str) -> None:
        """All products of the values that a thread has loaded."""
        writer, t = self.writer, self.tiling
        row_count, column_count = t.rows[0] * t.rows[3], t.columns[0] * t.columns[3]
        with (
            unrolled_loop(writer, "i", row_count) as i,
            unrolled_loop(writer, "j", column_count) as j,
        ):
            row, column = _slot(i, rows, t.rows), _slot(j, columns, t.columns)
            writer.line(f"{self.sums}[{row}][{column}] += {a}[{i}] * {b}[{j}];")


def _slot(i: str, inner_tile: str, sizes: Level4) -> str:
    """Index in a thread's sums of value `i` of an inner tile."""
    innermost = sizes[3]
    if sizes[2] == 1:
        return i
    if sizes[0] == 1:
        return linear([(inner_tile, innermost), (i, 1)])
    quotient, rest = (f"{i} / {innermost}", f"{i} % {innermost}")
    return linear([(quotient, sizes[2] * innermost), (inner_tile, innermost), (rest, 1)])


def linear(terms: Sequence[tuple[str, int]]) -> str:
    """A sum of products, without the terms that are 0."""
    parts = [name if times == 1 else f"{name} * {times}" for name, times in terms if name != "0"]
    return " + ".join(parts) or "0"

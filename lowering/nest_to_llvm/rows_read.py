"""What one item of a nest writes, where only some rows of the result need be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import SSAValue

from ...dialects.nest import ForOp, NestOp, StoreOp
from ...dialects.nest_access import numbers_in
from ..kernel_to_cpu.emit.rows_read import RowsRead
from ..kernel_to_cpu.emit.types import Index


@dataclass(frozen=True)
class ItemPart:
    """The elements that an item writes, counted from that at index 0 of all dims.

    Attributes:
        rows: the dims of which only the first rows are read.
        kept: those of which the first rows are there already.
        steps: elements from one place of each parallel loop to the next.
        first: the first element of item 0.
        reach: how far behind its first element the last one of an item is.
    """

    rows: tuple[RowsRead, ...]
    kept: tuple[RowsRead, ...]
    steps: tuple[int, ...]
    first: int
    reach: int

    def place(self, places: Sequence[Index]) -> list[tuple[Index, int]]:
        """The first element that an item at these places of the parallel loops writes."""
        return [*zip(places, self.steps, strict=True), (1, self.first)]


def items_of(nest: NestOp, parallel: Sequence[ForOp]) -> ItemPart | None:
    """What an item writes; None if all must be written, or it is not known what an item writes."""
    groups = [_groups(nest.rows), _groups(nest.kept)]
    if not any(groups):
        return None
    result = nest.body.block.args[-1]
    writes = [op for op in nest.walk() if isinstance(op, StoreOp) and op.buffer is result]
    stores = [_store(op, nest, parallel) for op in writes]
    found = [store for store in stores if store is not None]
    if len(found) < len(stores) or len({steps for steps, _, _ in found}) != 1:
        return None
    start = min(low for _, low, _ in found)
    reach = max(high for _, _, high in found) - start
    rows, kept = (tuple(RowsRead(-1, *group[:3]) for group in part) for part in groups)
    return ItemPart(rows, kept, found[0][0], start - (groups[0] or groups[1])[0][3], reach)


def _groups(numbers: DenseArrayBase | None) -> list[Sequence[int]]:
    """The groups of four numbers in `rows` or `kept`."""
    found = [] if numbers is None else numbers_in(numbers)
    return [found[k : k + 4] for k in range(0, len(found), 4)]


def _store(
    op: StoreOp, nest: NestOp, parallel: Sequence[ForOp]
) -> tuple[tuple[int, ...], int, int] | None:
    """Of a store: the steps of the parallel loops, and in item 0 its first and last element.

    None where a loop starts at an expression, an address has floors, or goes back.
    """
    loops = {loop.iterator: loop for loop in nest.walk() if isinstance(loop, ForOp)}
    (flat,), places = op.indices, list(op.places)
    steps: dict[SSAValue, int] = {p: flat.coefficient(k) for k, p in enumerate(places)}
    inner = [loops.get(p) for p in places]
    if flat.has_floor or any(step < 0 for step in steps.values()) or None in inner:
        return None
    outside = [loop.iterator for loop in parallel]
    if any(loop is not None and loop.lowers.value.data for loop in inner):
        return None
    spans = (steps[p] * (loops[p].width - 1) for p in places if p not in outside)
    last = flat.constant + sum(spans)
    return tuple(steps.get(p, 0) for p in outside), flat.constant, last


__all__ = ["ItemPart", "items_of"]

"""Tile entries of a kernel's schedule: attributes that passes set and printers read."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr

from .kernel import KernelOp

TILES = "tiles"
"""The entry with the number of tiles that a product works on at a time."""


def tile_of(op: KernelOp) -> tuple[int, ...] | None:
    """The tile extents of the result's traversals, if the schedule has them."""
    found = op.schedule.data.get("tile") if op.schedule is not None else None
    return tuple(int(n) for n in found.get_values()) if isinstance(found, DenseArrayBase) else None


def tiles_of(op: KernelOp) -> int | None:
    """The number of tiles worked on at a time, if the schedule has it."""
    found = op.schedule.data.get(TILES) if op.schedule is not None else None
    return found.value.data if isinstance(found, IntegerAttr) else None

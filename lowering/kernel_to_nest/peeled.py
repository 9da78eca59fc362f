"""Rows of a large result that start anywhere in a cache line: whole lines go past the caches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects.index import Index
from ...dialects.nest import STACK, AllocOp, ForOp, LoadOp, StoreOp, is_local
from ..kernel_to_cpu.emit.access import lane_offsets
from ..kernel_to_cpu.nests.nontemporal import LEAST_VECTORS, LINE
from . import rewrites
from .guards import assume_inside, inside_lanes


def peel(loop: ForOp, lanes: int) -> bool:
    """Store whole lines of a row past the caches, its ends plainly.

    False where it is short, or the lanes of a read are not known places apart.
    """
    (store,) = (op for op in loop.block.ops if isinstance(op, StoreOp))
    low, high = inside_lanes(loop)
    inside = high - low >= LEAST_VECTORS * lanes
    if not inside:  # a part of a row, say, anywhere in it: guards stay
        low, high = 0, loop.size
    places = [p for p in store.places if p is not loop.iterator]
    images = [Index.iterator(places.index(p)) if p in places else Index(low) for p in store.places]
    first = store.indices[0].substitute(images)
    # Counted in common steps, so that floors of reads are seen to go with the lanes.
    step = math.gcd(lanes, low, first.constant, *(c for _, c in first.terms))
    if high - low < LEAST_VECTORS * lanes or _is_scattered(loop, lanes, step):
        return False
    begin = -(first // step) % (lanes // step) * step + low
    whole = (high - begin) // lanes
    end = begin + whole * lanes
    counts = -(-(low + lanes - 1) // lanes), -(-(loop.size - high + lanes - 1) // lanes)
    _piece(loop, places, (counts[0], lanes), Index(0), begin)
    middle = _piece(loop, places, ((high - low) // lanes, lanes), begin, None, whole)
    if inside:
        assume_inside(middle)
    for op in middle.block.ops:
        if isinstance(op, StoreOp):
            rewrites.store_nontemporal(op, LINE)
    _piece(loop, places, (counts[1], lanes), end, loop.size - end)
    rewrites.erase(loop)
    return True


def _is_scattered(loop: ForOp, lanes: int, step: int) -> bool:
    """Whether lanes of a read are not always as far apart, in vectors at multiples of `step`."""
    reads = (op for op in loop.block.ops if isinstance(op, LoadOp) and loop.iterator in op.places)
    return any(
        lane_offsets(op.indices[0], list(op.places).index(loop.iterator), lanes, step) is None
        for op in reads
        if op.indices[0].has_floor
    )


def _piece(
    loop: ForOp,
    places: Sequence[SSAValue],
    sizes: tuple[int, int],
    start: Index,
    count: Index | None,
    whole: Index | None = None,
) -> ForOp:
    """A copy of a loop before it, as at most (vectors, lanes) of `sizes`, from a place on.

    Args:
        places: what `start`, the count of places, and the number of vectors are over.
    """
    upper = [] if whole is None else [whole]
    run, lane = ForOp(sizes[0], upper=upper, places=places if upper else []), loop.clone()
    rewrites.insert_before(loop, run)
    run.block.add_op(lane)
    rewrites.resize(rewrites.mark(lane, "vector", sizes[1]), sizes[1])
    vector = Index.iterator(len(places)) * sizes[1]
    over = [*places, run.iterator]
    image = start + vector + Index.iterator(len(over))
    rewrites.substitute_index(lane.iterator, [*over, lane.iterator], image)
    if count is not None:
        lane.replace_places(over, [count - vector])
    return lane


def stage_rows(run: ForOp, stack: ForOp | None, lanes: int) -> None:
    """Keep rows that a loop makes on the stack, and store them when they are whole.

    Neighbours of a stack share vectors, but start at different places of a line.

    Args:
        stack: the loop over neighbours within `run`, where there are several.
    """
    (store,) = (op for op in run.walk() if isinstance(op, StoreOp) and not is_local(op.buffer))
    pitch = (run.size // lanes + 2) * lanes
    count = 1 if stack is None else stack.size
    row = AllocOp(store.value.type, count * pitch, STACK)
    rewrites.insert_before(run, row)
    terms = [(run.iterator, 1)] + ([] if stack is None else [(stack.iterator, pitch)])
    places = [place for place, _ in terms]
    at = rewrites.linear(places, terms)
    each, along = ForOp(count), ForOp(run.size)
    moved = {run.iterator: along.iterator} | (
        {} if stack is None else {stack.iterator: each.iterator}
    )
    value = LoadOp(row.result, [moved[p] for p in places], at)
    target = [moved.get(p, p) for p in store.places]
    along.block.add_ops([value, StoreOp(value.result, store.buffer, target, store.indices[0])])
    each.block.add_op(along)
    rewrites.insert_after(run, each)
    rewrites.insert_before(store, StoreOp(store.value, row.result, places, at))
    rewrites.erase(store)
    peel(along, lanes)

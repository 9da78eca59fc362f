"""Elementwise ops on operands that broadcast together: affine nests over vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.index import Index
from ...dialects.nest import ForOp, LoadOp, StoreOp
from .code import Code, NestBuffer, Scalar

LANES = 16
_BLOCK = 64 * LANES

Body = Callable[..., Scalar]


@dataclass(frozen=True)
class _Dims:
    """Dims after merging: extents, and for each operand the step along each."""

    extents: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


def elementwise(code: Code, operands: Sequence[NestBuffer], result: NestBuffer, body: Body) -> None:
    """Stages that compute `body` of the operands at each point of the result."""
    if result.size == 0:
        return
    dims = _merged(result.shape, [_steps(b.shape, result.shape) for b in operands])
    *outer, n = dims.extents
    if outer:
        _stage(code, operands, result, body, dims, math.prod(outer), n)
        return
    whole, rest = divmod(n, _BLOCK)
    if whole:
        _stage(code, operands, result, body, dims, whole, _BLOCK)
    if rest:
        _stage(code, operands, result, body, dims, 1, rest, whole * _BLOCK)


def _steps(shape: Sequence[int], full: Sequence[int]) -> list[int]:
    """How far neighbours along each dim of the result lie apart; 0 along those that repeat."""
    lead = len(full) - len(shape)
    own = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [0] * lead + [0 if n == 1 else s for n, s in zip(shape, own, strict=True)]


def _merged(shape: Sequence[int], steps: Sequence[Sequence[int]]) -> _Dims:
    """Put neighbouring dims together where every operand goes on from one to the other."""
    extents: list[int] = []
    rows: list[list[int]] = [[] for _ in steps]
    for k in reversed(range(len(shape))):
        if shape[k] == 1:
            continue
        if extents and all(s[k] == row[0] * extents[0] for s, row in zip(steps, rows, strict=True)):
            extents[0] *= shape[k]
            continue
        extents.insert(0, shape[k])
        for s, row in zip(steps, rows, strict=True):
            row.insert(0, s[k])
    if not extents:
        return _Dims((1,), tuple((0,) for _ in rows))
    return _Dims(tuple(extents), tuple(map(tuple, rows)))


def _stage(
    code: Code,
    operands: Sequence[NestBuffer],
    result: NestBuffer,
    body: Body,
    dims: _Dims,
    items: int,
    n: int,
    shift: int = 0,
) -> None:
    """A nest over items, each of n points in a row."""
    nest = code.nest()
    item = ForOp(items, "parallel", hint="item")
    nest.body.block.add_op(item)
    *outer, last = dims.extents
    starts = [_start(s, outer) if outer else Index.iterator(0) * (n * s[-1]) for s in dims.steps]
    target = Index.iterator(0) * (last if outer else n)

    def vectors(loop: ForOp, places: Sequence[ForOp], along: Index) -> None:
        with code.at(loop.block):
            iterators = [p.iterator for p in places]
            values: list[Scalar] = []
            for operand, first, steps in zip(operands, starts, dims.steps, strict=True):
                address = first + (along + shift) * steps[-1]
                used = sorted(address.iterators)
                images = [
                    Index.iterator(used.index(k)) if k in used else Index(0) for k in range(3)
                ]
                load = LoadOp(
                    operand.buffer, [iterators[k] for k in used], address.substitute(images)
                )
                code.add(load)
                values.append(Scalar(code, load.result, operand.element))
            made = body(*values)
            assert made.element == result.element
            code.add(StoreOp(made.value, result.buffer, iterators, target + along + shift))

    whole, rest = divmod(n, LANES)
    lane = Index.iterator(2)
    if whole:
        blocks, lanes = ForOp(whole, hint="block"), ForOp(LANES, "vector", LANES, hint="lane")
        item.block.add_op(blocks)
        blocks.block.add_op(lanes)
        vectors(lanes, [item, blocks, lanes], Index.iterator(1) * LANES + lane)
    if rest:
        lanes = ForOp(rest, "vector", LANES, hint="lane")
        item.block.add_op(lanes)
        vectors(lanes, [item, item, lanes], lane + whole * LANES)


def _start(steps: Sequence[int], outer: Sequence[int]) -> Index:
    """Where an operand's row begins, by the item's number."""
    found, inner = Index(0), math.prod(outer)
    for n, step in zip(outer, steps, strict=False):
        inner //= n
        found = found + (Index.iterator(0) // inner) % n * step
    return found


__all__ = ["elementwise"]

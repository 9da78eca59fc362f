"""Sums of products of residues over named iterators: matrix products, small results first."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from .residues import Lanes, Residues

# An array over some iterators (ascending), after the lane axis.
Part: TypeAlias = "tuple[Lanes, tuple[int, ...]]"


def contract(field: Residues, parts: Sequence[Part], kept: Container[int]) -> Part:
    """The product of parts, summed over the iterators that are not kept."""
    left = list(parts)
    if not left:
        return np.ones((1,)), ()
    while len(left) > 1:
        pairs = [(i, j) for i in range(len(left)) for j in range(i + 1, len(left))]
        i, j = min(pairs, key=lambda p: _result_size(left, p, kept))
        rest = {k for n, part in enumerate(left) if n not in (i, j) for k in part[1]}
        made = _pair(field, left[i], left[j], rest, kept)
        left = [part for n, part in enumerate(left) if n not in (i, j)] + [made]
    return _sum_out(field, left[0], set(), kept)


def _sum_out(field: Residues, part: Part, rest: set[int], kept: Container[int]) -> Part:
    """Sum over the iterators that no other part uses."""
    value, used = part
    dead = tuple(1 + n for n, k in enumerate(used) if k not in kept and k not in rest)
    if dead:
        value = field.reduce(value.sum(axis=dead))
    return value, tuple(k for k in used if k in kept or k in rest)


def _pair(field: Residues, a: Part, b: Part, rest: set[int], kept: Container[int]) -> Part:
    x, xs = _sum_out(field, a, rest | set(b[1]), kept)
    y, ys = _sum_out(field, b, rest | set(xs), kept)
    stay = {k for k in (*xs, *ys) if k in kept or k in rest}
    batch = [k for k in xs if k in ys and k in stay]
    inner = [k for k in xs if k in ys and k not in stay]
    rows, columns = [k for k in xs if k not in ys], [k for k in ys if k not in xs]
    if not inner:
        used = tuple(sorted(stay))
        return field.reduce(spread(x, xs, used) * spread(y, ys, used)), used
    size = _sizes(((x, xs), (y, ys)))
    left = _blocks(x, xs, (batch, rows, inner), size)
    right = _blocks(y, ys, (batch, inner, columns), size)
    made = field.matmul(left, right)
    order = [*batch, *rows, *columns]
    made = made.reshape(-1, *(size[k] for k in order))
    used = tuple(sorted(order))
    return made.transpose(0, *(1 + order.index(k) for k in used)), used


def spread(value: Lanes, its: Sequence[int], used: Sequence[int]) -> Lanes:
    """Give an array over `its` one axis for each of `used`, a superset in ascending order."""
    at = {k: value.shape[1 + n] for n, k in enumerate(its)}
    return value.reshape(value.shape[0], *(at.get(k, 1) for k in used))


def _sizes(parts: Sequence[Part]) -> dict[int, int]:
    return {k: n for value, used in parts for k, n in zip(used, value.shape[1:], strict=True)}


def _blocks(
    value: Lanes, its: Sequence[int], groups: Sequence[Sequence[int]], size: Mapping[int, int]
) -> Lanes:
    """Merge groups of axes into one axis each."""
    its = list(its)
    order = [1 + its.index(k) for group in groups for k in group]
    shape = [math.prod(size[k] for k in group) for group in groups]
    return value.transpose(0, *order).reshape(value.shape[0], *shape)


def _result_size(
    parts: Sequence[Part], pair: tuple[int, int], kept: Container[int]
) -> tuple[int, int]:
    rest = {k for n, part in enumerate(parts) if n not in pair for k in part[1]}
    size = _sizes([parts[n] for n in pair])
    return math.prod(n for k, n in size.items() if k in kept or k in rest), math.prod(size.values())

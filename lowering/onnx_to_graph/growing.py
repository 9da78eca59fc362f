"""Carried values whose number of rows an iteration changes: as large as they become, and a count.

A decoder that appends a frame in each iteration carries a value of one row more; a filter carries
one of fewer. Both become a value of the largest size, with its number of rows carried beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from ...dialects.types import Tensor, element_of, shape_of, tensor
from .node import OnnxNode
from .padded import PaddedDim
from .regions import LoopParts, SubgraphBody
from .shaping import MAX_CONSTANT
from .value_ranges import ValueRange
from .values import OnnxValue


@dataclass(frozen=True)
class Growth:
    """The dim of a carried value whose rows change in number.

    Attributes:
        most: rows after all iterations.
        step: rows that an iteration adds.
    """

    dim: int
    most: int
    step: int = 0


Growths = Mapping[int, Growth]


class ChangedTypes(UserError):
    """Raised where an iteration changes the types of carried values.

    Attributes:
        pairs: the types before and after, by number; of all that change.
        inside, results: the iteration.
    """

    def __init__(
        self,
        message: str,
        pairs: Mapping[int, tuple[OnnxValue, OnnxValue]],
        inside: SubgraphBody,
        results: Sequence[OnnxValue],
    ):
        before, after = next(iter(pairs.values()))
        super().__init__(
            message,
            expected=f"{list(before.shape)} of {before.element}",
            found=f"{list(after.shape)} of {after.element}",
        )
        self.pairs = pairs
        self.inside, self.results = inside, results


def growths(error: ChangedTypes, trips: float) -> Growths:
    """How the values grow in at most so many iterations. Raises the error where they do not."""
    found: dict[int, Growth] = {}
    for k, (before, after) in error.pairs.items():
        pairs = list(zip(before.shape, after.shape, strict=False))
        dims = [j for j, (m, n) in enumerate(pairs) if m != n]
        alike = before.element == after.element and len(before.shape) == len(after.shape)
        if not alike or len(dims) != 1:
            raise error
        (dim,) = dims
        m, n = pairs[dim]
        most = max(m, n, m + trips * (n - m))
        if not most * math.prod(after.shape) // max(n, 1) <= MAX_CONSTANT:
            raise error
        found[k] = Growth(dim, int(most), max(n - m, 0))
    return found


def filtered(inside: SubgraphBody, results: Sequence[OnnxValue]) -> Growths:
    """The results of which data decide the number of rows, as values that never grow."""
    found: dict[int, Growth] = {}
    for k, value in enumerate(results):
        rows = None if value.computed is None else inside.importer.sizes.counts.get(value.computed)
        if rows is not None:
            found[k] = Growth(rows.dim, value.shape[rows.dim])
    return found


def widened(type_: Tensor, growth: Growth | None) -> Tensor:
    """The type of the most rows."""
    if growth is None:
        return type_
    shape = [growth.most if k == growth.dim else n for k, n in enumerate(type_.get_shape())]
    return tensor(shape, type_.element_type)


def number_rows(inside: SubgraphBody, inputs: Sequence[OnnxValue], grown: Growths) -> None:
    """Add an argument for the number of rows of each growing value, behind the carried ones."""
    sizes = inside.importer.sizes
    for k, growth in grown.items():
        number = inside.argument(tensor([], i64), "rows").computed
        value = inputs[k].computed
        assert number is not None and value is not None
        sizes.ranges[number] = ValueRange.of(0, growth.most)
        sizes.counts[value] = PaddedDim(growth.dim, number)


def carry_rows(node: OnnxNode, inside: SubgraphBody, parts: LoopParts, grown: Growths) -> None:
    """Carry the growing values and their numbers of rows. Raises UserError where more changes."""
    carried, nexts = list(parts.carried), list(parts.nexts)
    within = inside.importer.build
    for k, growth in grown.items():
        after, before = nexts[k], shape_of(carried[k])
        rows = inside.importer.sizes.counts.get(after)
        shape = shape_of(after)
        if rows is None:
            whole = within.constant(np.asarray(shape[growth.dim], np.int64), i64)
            rows = PaddedDim(growth.dim, whole)
        if rows.dim != growth.dim or _others(shape, growth) != _others(before, growth):
            raise UserError("data decide two dims of a carried value", where=node.where)
        if shape[growth.dim] > growth.most + growth.step:
            raise UserError(
                "a carried value grows by more rows in each iteration",
                where=node.where,
                hint="its size after all of them has no bound",
            )
        nexts[k] = _of_rows(within, after, growth)
        nexts.append(rows.count)
        carried[k] = _of_rows(node.build, carried[k], growth)
        carried.append(node.build.constant(np.asarray(before[growth.dim], np.int64), i64))
    parts.carried, parts.nexts = carried, nexts


def _others(shape: Sequence[int], growth: Growth) -> list[int]:
    return [n for k, n in enumerate(shape) if k != growth.dim]


def _of_rows(build: GraphBuilder, x: SSAValue, growth: Growth) -> SSAValue:
    """A value cut, or extended with zeros, to the most rows."""
    shape, dim, most = shape_of(x), growth.dim, growth.most
    rank = range(len(shape))
    if shape[dim] > most:
        sizes = [most if k == dim else n for k, n in enumerate(shape)]
        return build.slice(x, starts=[0 for _ in rank], sizes=sizes, steps=[1 for _ in rank])
    if shape[dim] == most:
        return x
    more = [most - n if k == dim else n for k, n in enumerate(shape)]
    zeros = build.expand(build.constant(np.asarray(0), element_of(x)), more)
    return zeros if shape[dim] == 0 else build.concat(x, zeros, axis=dim)


__all__ = [
    "ChangedTypes",
    "Growth",
    "Growths",
    "carry_rows",
    "filtered",
    "growths",
    "number_rows",
    "widened",
]

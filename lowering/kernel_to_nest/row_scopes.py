"""Scopes that share outer loops, as plain loops: one after the other at each point of these."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ...dialects.index import Index, row_major_strides
from ...dialects.kernel import KernelOp
from ...dialects.nest import AllocOp, ForOp, LoadOp, NestOp, StoreOp
from ...dialects.types import tensor_type
from ..kernel_to_cpu.nests.nest import NestPlan, ScopePlan
from .build import Builder, Site, rounded
from .points import sum_groups


@dataclass
class ScopeLoops:
    """The loops of a scope at a point: `own`, outermost first, and those of its total.

    Loops over summations are known where the scope has no loops of its own.
    """

    scope: ScopePlan
    own: list[ForOp]
    sums: list[ForOp]


class RowBuilder(Builder):
    """Put scopes at points: rows of values in local buffers, a whole number of vectors each.

    Attributes:
        nontemporal: the alignment in bytes of the result's stores past the caches, or 0.
    """

    def __init__(
        self, op: KernelOp, plan: NestPlan, nest: NestOp, space: StringAttr, lanes: int
    ) -> None:
        super().__init__(op, plan, nest)
        self.space, self.lanes, self.nontemporal = space, lanes, 0

    def scope(self, site: Site, scope: ScopePlan) -> ScopeLoops:
        """One scope: what it makes stays in a local buffer, or is the kernel's result."""
        if not scope.own:
            return ScopeLoops(scope, [], self.keep(site, scope))
        row, place = self._room(scope)
        if scope is not self.plan.root:
            site.add(row)
        own = list[ForOp]()
        for k in scope.own:
            loop, site = site.loop(k, self.plan.extents[k])
            own.append(loop)
        value = self.value(site, scope)
        if scope is self.plan.root:
            self.store(site, value, self.nontemporal)
        else:
            self.rows[scope.op.result] = row.result, place
            places, (flat,) = site.expressed(place)
            site.add(StoreOp(value, row.result, places, flat))
        return ScopeLoops(scope, own, [])

    def value(self, site: Site, scope: ScopePlan) -> SSAValue:
        """What a scope makes at a point of its own loops."""
        if not scope.sums:
            return self.body(site, scope)
        load = LoadOp(self.total(site, scope, sum_groups(scope, self.plan))[0], [], Index(0))
        site.add(load)
        return rounded(site, load.result)

    def _room(self, scope: ScopePlan) -> tuple[AllocOp, Index]:
        """Room for a row, and where the scope's own point is in it."""
        last, *outer = [self.plan.extents[k] for k in reversed(scope.own)]
        sizes = [*reversed(outer), -(-last // self.lanes) * self.lanes]
        steps = zip(scope.own, row_major_strides(sizes), strict=True)
        place = sum((Index.iterator(k) * stride for k, stride in steps), Index(0))
        element = tensor_type(scope.op.result).element_type
        return AllocOp(element, math.prod(sizes), self.space), place

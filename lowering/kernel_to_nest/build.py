"""Build the plain nest of a kernel op: a loop for each iterator, scalar bodies, no schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.index import Index
from ...dialects.kernel import FAST_MATH, KernelOp, physical
from ...dialects.nest import (
    AccumulateOp,
    AllocOp,
    ForOp,
    IdentityOp,
    InsideOp,
    LoadOp,
    NestOp,
    StoreOp,
)
from ...dialects.nest_access import flat_buffer
from ...dialects.types import Tensor, is_narrow_float, tensor_type
from ..kernel_to_cpu.emit.types import PTR, Value
from ..kernel_to_cpu.nests.nest import (
    Buffers,
    NestOperand,
    NestPlan,
    Part,
    ScopePlan,
    access,
    guards_of,
)

CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
REASSOCIATE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC])


def rounded(site: Site, value: SSAValue) -> SSAValue:
    """Round a value as a tensor does: narrow floats are computed with more digits."""
    if not is_narrow_float(value.type):
        return value
    wide = arith.ExtFOp(value, f32)
    narrow = arith.TruncFOp(wide.result, value.type)  # pyright: ignore[reportArgumentType]
    site.add(wide)
    site.add(narrow)
    return narrow.result


class Unsupported(Exception):
    """Say what no nest is built of yet: the kernel is generated the old way.

    Cause: a form of scopes that kernel_to_nest does not know. It is caught by whoever asks for a
    nest, never seen by a user.
    """


@dataclass
class Site:
    """Where ops are put, and what is known there: iterators by number, values of scopes."""

    block: Block
    places: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def add(self, op: Operation) -> None:
        """Put an op at the end."""
        self.block.add_op(op)

    def loop(self, iterator: int, extent: int, kind: str = "serial") -> tuple[ForOp, Site]:
        """A loop over an iterator of the plan at the end, and its body."""
        loop = ForOp(extent, kind, hint=f"i{iterator}")
        self.add(loop)
        places = {**self.places, iterator: loop.iterator}
        return loop, Site(loop.block, places, dict(self.values))

    def expressed(self, *indices: Index) -> tuple[list[SSAValue], list[Index]]:
        """The iterators that expressions use, and the expressions over these."""
        used = sorted({k for e in indices for k in e.iterators})
        images = [Index(0)] * (max(used, default=-1) + 1)
        for n, k in enumerate(used):
            images[k] = Index.iterator(n)
        return [self.places[k] for k in used], [e.substitute(images) for e in indices]


def buffer_type(type_: Tensor) -> MemRefType[Attribute]:
    """A tensor's buffer, flat, with its halo and room."""
    return flat_buffer(type_.element_type, physical(type_)[2])


def empty_nest(op: KernelOp) -> NestOp:
    """A nest with the op's buffers: those of its operands, then its result's."""
    nest = NestOp([buffer_type(tensor_type(v)) for v in (*op.inputs, op.result)])
    for k, argument in enumerate(nest.body.block.args):
        argument.name_hint = f"x{k}" if k < len(op.inputs) else "y"
    return nest


class Builder:
    """Put what scopes compute into a nest.

    Attributes:
        buffers: the nest's argument for each operand, by the region's argument.
        reading: what tells where a read finds its elements.
        rows: values that an earlier scope left in a local buffer: it, and the place there of the
            scope's own point.
        inside: those of which no read is outside, whatever ranges say.
    """

    def __init__(self, op: KernelOp, plan: NestPlan, nest: NestOp):
        self.op, self.plan, self.nest = op, plan, nest
        arguments: list[SSAValue] = list(op.body.block.args)
        pairs = zip(arguments, op.inputs, strict=True)
        self.types: dict[SSAValue, Tensor] = {a: tensor_type(v) for a, v in pairs}
        self.buffers = dict(zip(arguments, nest.body.block.args, strict=False))
        self.rows: dict[SSAValue, tuple[SSAValue, Index]] = {}
        self.inside = set[SSAValue]()
        self.reading = Buffers(dict.fromkeys(arguments, Value("", PTR)), self.types)
        self._made: dict[SSAValue, ScopePlan] = {s.op.result: s for s in plan.scopes}
        self._flags = REASSOCIATE if FAST_MATH in op.attributes else None

    def read(self, site: Site, operand: NestOperand) -> SSAValue:
        """Load what a scope reads."""
        source = operand.source
        if source in site.values:
            return site.values[source]
        if source in self.rows:
            return self._row(site, operand)
        if source not in self.types:
            return self._ones(site, operand)
        found = access(operand, self.reading, self.plan.extents)
        places, (flat, *guards) = site.expressed(found.flat, *(e for e, _ in found.guards))
        sized = [(e, n) for e, (_, n) in zip(guards, found.guards, strict=True)]
        load = LoadOp(self.buffers[source], places, flat, sized, operand.outside, found.size)
        site.add(load)
        return load.result

    def _ones(self, site: Site, operand: NestOperand) -> SSAValue:
        type_ = tensor_type(operand.source)
        guards = guards_of(operand.index, type_.get_shape(), self.plan.extents, None, 1.0)
        places, indices = site.expressed(*(e for e, _ in guards))
        sized = [(e, n) for e, (_, n) in zip(indices, guards, strict=True)]
        inside = InsideOp(type_.element_type, places, sized)
        site.add(inside)
        return inside.result

    def _row(self, site: Site, operand: NestOperand) -> SSAValue:
        """Load from a local buffer: the scope's own iterators are where the read is."""
        buffer, place = self.rows[operand.source]
        made = self._made[operand.source]
        images = [Index.iterator(k) for k in range(len(self.plan.extents))]
        dims = [d for d, e in enumerate(made.here) if e.iterators & set(made.own)]
        for d in dims:
            (k,) = made.here[d].iterators
            images[k] = operand.index[d]
        shape = tensor_type(operand.source).get_shape()
        along, sizes = [operand.index[d] for d in dims], [shape[d] for d in dims]
        found = guards_of(along, sizes, self.plan.extents, None, operand.outside)
        found = () if operand.source in self.inside else found
        places, (flat, *guards) = site.expressed(place.substitute(images), *(e for e, _ in found))
        sized = [(e, n) for e, (_, n) in zip(guards, found, strict=True)]
        load = LoadOp(buffer, places, flat, sized, operand.outside)
        site.add(load)
        return rounded(site, load.result) if made.sums and not made.own else load.result

    def body(self, site: Site, scope: ScopePlan) -> SSAValue:
        """The scope's body at a point of all its iterators."""
        reads = [self.read(site, operand) for operand in scope.reads]

        def emit(block: Block, parts: Sequence[Part]) -> SSAValue:
            made = [reads[p] if isinstance(p, int) else emit(p.block, p.parts) for p in parts]
            return self._inlined(site, block, made, scope.op.is_sum)

        value = emit(scope.op.body.block, scope.parts)
        return value if scope.sums or scope is self.plan.root else rounded(site, value)

    def _inlined(
        self, site: Site, block: Block, arguments: Sequence[SSAValue], summed: bool
    ) -> SSAValue:
        """A body's ops on other arguments; what a sum adds may contract with the addition."""
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
        last = block.last_op
        assert last is not None
        (result,) = last.operands
        for op in block.ops:
            if not op.results:
                continue
            copy = op.clone(values)
            flags = self._flags or (CONTRACT if summed and op.results[0] is result else None)
            if flags is not None and "fastmath" in copy.properties:
                copy.properties["fastmath"] = flags
            site.add(copy)
        return values[result]

    def total(
        self, site: Site, scope: ScopePlan, groups: Sequence[Sequence[int]] = ()
    ) -> tuple[SSAValue, list[ForOp]]:
        """Reduce a scope at a point into a local buffer: (it, the loops over its summations).

        Args:
            groups: summations in groups, the totals of each being what the one before it takes.
                The loops of the first are given. By default there is one.
        """
        element = tensor_type(scope.op.result).element_type
        total, start = AllocOp(element, 1), IdentityOp(scope.reduction, element)
        for op in (total, start, StoreOp(start.result, total.result, [], Index(0))):
            site.add(op)
        now, *rest = groups or [scope.sums]
        inner, loops = site, list[ForOp]()
        for k in now:
            loop, inner = inner.loop(k, self.plan.extents[k])
            loops.append(loop)
        if rest:
            load = LoadOp(self.total(inner, scope, rest)[0], [], Index(0))
            inner.add(load)
            value = load.result
        else:
            value = self.body(inner, scope)
        inner.add(AccumulateOp(scope.reduction, value, total.result))
        return total.result, loops

    def keep(
        self, site: Site, scope: ScopePlan, groups: Sequence[Sequence[int]] = ()
    ) -> list[ForOp]:
        """Leave what a scope makes at a point in a local buffer; gives the loops of its total."""
        loops = list[ForOp]()
        if scope.sums:
            buffer, loops = self.total(site, scope, groups)
        else:
            held = AllocOp(tensor_type(scope.op.result).element_type, 1)
            site.add(held)
            value = self.body(site, scope)
            site.add(StoreOp(value, held.result, [], Index(0)))
            buffer = held.result
        self.rows[scope.op.result] = buffer, Index(0)
        if scope is self.plan.root:
            load = LoadOp(buffer, [], Index(0))
            site.add(load)
            self.store(site, load.result)
        return loops

    def store(self, site: Site, value: SSAValue, nontemporal: int = 0) -> StoreOp:
        """Write the kernel's result."""
        strides, offset, _ = physical(self.op.type)
        steps = zip(self.plan.root.here, strides, strict=True)
        flat = sum((e * stride for e, stride in steps), Index(offset))
        places, (flat,) = site.expressed(flat)
        made = StoreOp(value, self.nest.body.block.args[-1], places, flat, nontemporal)
        site.add(made)
        return made

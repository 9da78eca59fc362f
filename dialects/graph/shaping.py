"""Ops that move data: their scopes are single reads, so they cost nothing after fusion."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, TensorType
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ..dims import broadcasts
from ..index import Index, flatten, iterators, normalise, row_major_strides, unflatten
from ..scalars import Expr
from ..scope_builder import ScopeBuilder, Source
from ..types import Tensor, dims_of, tensor
from .base import GraphOp, ints_def


@irdl_op_definition
class ReshapeOp(GraphOp):
    """The same elements in row-major order under another shape. ONNX Reshape, Flatten, Squeeze."""

    name = "graph.reshape"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    shape = ints_def()
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        x, shape = self.operand_type(0), self.ints("shape")
        if any(n < 0 for n in shape):
            raise self.fail("extents are at least 0", found=list(shape))
        if math.prod(shape) != math.prod(dims_of(x)):
            raise self.fail("the element counts differ", expected=x, found=list(shape))
        return tensor(shape, x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        shape = self.ints("shape")
        flat = flatten(iterators(len(shape)), row_major_strides(shape))
        index = [normalise(e, shape) for e in unflatten(flat, x.shape)]
        return build.pointwise(self.type, x[index])


@irdl_op_definition
class TransposeOp(GraphOp):
    """Result dim k is operand dim `perm[k]`. ONNX Transpose."""

    name = "graph.transpose"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    perm = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        x, perm = self.operand_type(0), self.ints("perm")
        if sorted(perm) != list(range(len(dims_of(x)))):
            raise self.fail("'perm' is not a permutation of the dims", found=list(perm))
        return tensor([dims_of(x)[k] for k in perm], x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        here = iterators(len(x.shape))
        index = [here[self.ints("perm").index(k)] for k in range(len(x.shape))]
        return build.pointwise(self.type, x[index])


@irdl_op_definition
class BroadcastOp(GraphOp):
    """Operand dim k becomes result dim `dims[k]`, of its extent, or from extent 1.

    `dims` is increasing; the other result dims are new. ONNX Expand, and implicit broadcasting.
    """

    name = "graph.broadcast"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    shape = ints_def()
    dims = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        x, shape, dims = self.operand_type(0), self.ints("shape"), self.ints("dims")
        if len(dims) != len(dims_of(x)) or sorted(set(dims)) != list(dims):
            raise self.fail("'dims' needs one increasing entry per operand dim", found=list(dims))
        for k, d in enumerate(dims):
            if not 0 <= d < len(shape) or not broadcasts(dims_of(x)[k], shape[d]):
                raise self.fail(f"operand dim {k} does not broadcast to {list(shape)}", found=x)
        return tensor(shape, x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        here, dims = iterators(len(self.ints("shape"))), self.ints("dims")
        index = [here[d] if x.shape[k] != 1 else Index(0) for k, d in enumerate(dims)]
        return build.pointwise(self.type, x[index])


@irdl_op_definition
class ConcatOp(GraphOp):
    """Operands one after another along `axis`. ONNX Concat."""

    name = "graph.concat"
    MOVES: ClassVar[bool] = True
    inputs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        if not self.operands:
            raise self.fail("at least one operand is needed")
        types, axis = [self.operand_type(k) for k in range(len(self.operands))], self.value("axis")
        first = dims_of(types[0])
        if not 0 <= axis < len(first):
            raise self.fail(f"axis {axis} is not in [0, {len(first)})")
        for t in types:
            same = len(dims_of(t)) == len(first) and all(
                a == b for k, (a, b) in enumerate(zip(dims_of(t), first, strict=True)) if k != axis
            )
            if not same or t.element_type != types[0].element_type:
                raise self.fail("operands differ beside the axis", expected=types[0], found=t)
        total = sum(dims_of(t)[axis] for t in types)
        return tensor([*first[:axis], total, *first[axis + 1 :]], types[0].element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        """A sum of shifted reads: each is 0 outside its own part, so they do not overlap.

        A select on the position instead of a sum keeps booleans and -0.0 exact.
        """
        axis = self.value("axis")
        here = iterators(len(operands[0].shape))
        starts = [0]
        for x in operands[:-1]:
            starts.append(starts[-1] + x.shape[axis])
        return build.scope(self.type, _pieces(build, operands, here, axis, starts))


def _pieces(
    build: ScopeBuilder,
    operands: tuple[Source, ...],
    here: list[Index],
    axis: int,
    starts: list[int],
) -> Expr:
    """Operand j where the point lies in its part; guards are boolean reads of ones."""
    from xdsl.dialects.builtin import i1

    from ..scope_builder import select

    def piece(j: int) -> Expr:
        at = [e - starts[j] if k == axis else e for k, e in enumerate(here)]
        return operands[j][at]

    expr = piece(len(operands) - 1)
    for j in reversed(range(len(operands) - 1)):
        inside = build.ones([operands[j].shape[axis]], i1)
        expr = select(inside[here[axis] - starts[j]], piece(j), expr)
    return expr


@irdl_op_definition
class SliceOp(GraphOp):
    """Elements start + step * i, i in [0, size), per dim; steps may be negative. ONNX Slice."""

    name = "graph.slice"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    starts = ints_def()
    sizes = ints_def()
    steps = ints_def()
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        x = self.operand_type(0)
        shape = dims_of(x)
        starts, sizes, steps = self.ints("starts"), self.ints("sizes"), self.ints("steps")
        if not len(starts) == len(sizes) == len(steps) == len(shape):
            raise self.fail("one start, size and step per dim are needed", found=x)
        for k, n in enumerate(shape):
            if sizes[k] < 0 or not _inside(starts[k], sizes[k], steps[k], n):
                raise self.fail(f"the slice leaves dim {k} of extent {n}")
        return tensor(sizes, x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        here = iterators(len(x.shape))
        starts, steps = self.ints("starts"), self.ints("steps")
        index = [e * steps[k] + starts[k] for k, e in enumerate(here)]
        return build.pointwise(self.type, x[index])


def _inside(start: int, size: int, step: int, n: int) -> bool:
    """Whether a slice stays in an extent; an empty one does."""
    if step == 1 and start >= 0 and start + size <= n:  # first: it does not ask whether it is empty
        return True
    last = start + step * (size - 1)
    return size == 0 or (0 <= start < n and 0 <= last < n)


@irdl_op_definition
class SplitOp(GraphOp):
    """Consecutive parts of `sizes` along `axis`, one result each. ONNX Split."""

    name = "graph.split"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    sizes = ints_def()
    parts = var_result_def(TensorType)

    def infer(self) -> list[Tensor]:
        x, axis, sizes = self.operand_type(0), self.value("axis"), self.ints("sizes")
        shape = dims_of(x)
        if not 0 <= axis < len(shape) or sum(sizes) != shape[axis] or min(sizes, default=-1) < 0:
            raise self.fail(f"sizes {list(sizes)} do not make up dim {axis}", found=x)
        return [tensor([*shape[:axis], n, *shape[axis + 1 :]], x.element_type) for n in sizes]

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> list[Source]:
        (x,) = operands
        axis, start, parts = self.value("axis"), 0, list[Source]()
        here = iterators(len(x.shape))
        for n in self.ints("sizes"):
            shape = [*x.shape[:axis], n, *x.shape[axis + 1 :]]
            index = [e + start if k == axis else e for k, e in enumerate(here)]
            parts.append(build.pointwise(tensor(shape, x.element), x[index]))
            start += n
        return parts


@irdl_op_definition
class PadOp(GraphOp):
    """Pad with `fill`: `pads` are begins then ends, negative ones crop. ONNX Pad (constant)."""

    name = "graph.pad"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    pads = ints_def()
    fill = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"fill": 0.0}

    def infer(self) -> Tensor:
        x, pads = self.operand_type(0), self.ints("pads")
        rank = len(dims_of(x))
        if len(pads) != 2 * rank:
            raise self.fail(f"{2 * rank} pads are needed", found=list(pads))
        shape = [n + pads[k] + pads[k + rank] for k, n in enumerate(dims_of(x))]
        if any(n < 0 for n in shape):
            raise self.fail("the pads crop more than there is", found=shape)
        return tensor(shape, x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        here, pads = iterators(len(x.shape)), self.ints("pads")
        index = [e - pads[k] for k, e in enumerate(here)]
        return build.pointwise(self.type, x.at(index, self.value("fill")))


SHAPING_OPS = (
    ReshapeOp,
    TransposeOp,
    BroadcastOp,
    ConcatOp,
    SliceOp,
    SplitOp,
    PadOp,
)

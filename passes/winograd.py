"""winograd: minimal filtering as three kernels in place of a direct convolution.

Y = A^T [ (G w G^T) * (B^T x B) ] A per tile of m x m outputs (Winograd 1980; Lavin and Gray 2015).
The matrices are made from the interpolation points below, exactly, in rationals: points are a few
eighths, so that B^T and A^T are exact in floating point, and G's rows carry the divisors: nothing
is rounded before run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    f32,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.graph import ConstantOp
from ..dialects.index import Index, iterators
from ..dialects.kernel import (
    ConvOp,
    GemmOp,
    KernelOp,
    LayoutAttr,
    LoopsOp,
    YieldOp,
    layout_of,
    logical,
    with_layout,
)
from ..dialects.program import add_provenance, main_of, provenance
from ..dialects.scope_builder import ScopeBuilder, Source
from ..dialects.types import Tensor, shape_of, tensor, tensor_type
from ..lowering.algebra_to_kernel.match import ConvMatch, match_conv
from ..lowering.kernel_to_cpu.tiled_product import TILES

TAPS = 3
# Which points give the least error is found by trying them: those of F(4, 3) err least on random
# data with 512 channels, of the pairs of eighths up to 2 that were best with 32. Lavin and Gray's
# 0, 1, -1, 2, -2 err four times as much (Barabasz et al. 2020 is about why).
POINTS: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}


@dataclass(frozen=True)
class Matrices:
    """F(m, 3): A^T [m, a], G [a, 3] split into integers and row divisors, B^T [a, a]; a = m + 2."""

    at: np.ndarray
    g: np.ndarray
    divisors: np.ndarray
    bt: np.ndarray


def matrices(m: int) -> Matrices:
    """Toom-Cook matrices for the points of F(m, 3) and infinity."""
    points = POINTS[m]
    a = m + TAPS - 1
    at = [[p**k for p in points] + [Fraction(int(k == m - 1))] for k in range(m)]
    g = [[p**k for k in range(TAPS)] for p in points] + [[Fraction(0)] * (TAPS - 1) + [Fraction(1)]]
    divisors = [_norm(points, i) for i in range(len(points))] + [Fraction(1)]
    bt = [[*_without(points, i), Fraction(0)] for i in range(len(points))]
    bt.append(_polynomial(points))
    assert all(len(row) == a for row in bt)
    as_array = [
        np.array([[float(x) for x in row] for row in part], np.float32) for part in (at, g, bt)
    ]
    return Matrices(
        as_array[0], as_array[1], np.array([float(d) for d in divisors], np.float32), as_array[2]
    )


def _norm(points: Sequence[Fraction], i: int) -> Fraction:
    product = Fraction(1)
    for j, p in enumerate(points):
        if j != i:
            product *= points[i] - p
    return product


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of prod (x - root), lowest first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [c * root for c in coefficients] + [Fraction(0)]
        coefficients = [s - t for s, t in zip(shifted, scaled, strict=True)]
    return coefficients


def _without(points: Sequence[Fraction], i: int) -> list[Fraction]:
    return _polynomial([p for j, p in enumerate(points) if j != i])


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Replace direct 3x3 convolutions of stride 1 by Winograd's F(m, 3) in both spatial dims.

    Exact in real arithmetic; in floating point the error grows with m, and infinities and NaN
    spread over a tile. So nothing applies it unasked: `tune` chooses it, per convolution, where it
    is measured faster and `--tolerance` allows it. `only` names one result by its SSA name;
    `tiles` is for fuse-tiles, which makes one kernel of all.

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... sum (c: 64, r: 3, s: 3) ... }

    After:

        %v = kernel.loops (%0 = %x, %1 = %bt) schedule {tile = array<i64: 1, 1, 1, 1, 4, 4>} { ... }
        %u = kernel.loops (%0 = %w, ...) { ... }
        %m = kernel.gemm (%0 = %v, %1 = %u) { ... }
        %y = kernel.loops (%0 = %m, %1 = %at) schedule {tile = array<i64: 1, 1, 2, 2>} { ... }
    """

    name = "winograd"
    m: int = 2
    only: str | None = None
    tiles: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for conv in list(main_of(op).body.block.ops):
            wanted = self.only is None or (conv.results and conv.results[0].name_hint == self.only)
            if isinstance(conv, ConvOp) and wanted and applies(conv):
                rewrite(conv, self.m, self.tiles)


def applies(op: ConvOp) -> bool:
    """Whether F(m, 3) computes this convolution: 3x3, stride 1, undilated, one group."""
    found = match_conv(op.scopes[0])
    return (
        found is not None
        and not found.transposed
        and found.kernel == (TAPS, TAPS)
        and set(found.strides) == set(found.dilations) == {1}
        and found.groups == 1
        and min(found.channels_per_group, op.type.get_shape()[1]) > 1  # lanes run over channels
        and shape_of(op.scopes[0].result) == op.type.get_shape()
    )


def tiles_of(op: ConvOp, m: int) -> int:
    """How many tiles F(m, 3) cuts the result's images into."""
    n, _, height, width = op.type.get_shape()
    return n * -(-height // m) * -(-width // m)


def rewrite(op: ConvOp, m: int, tiles: int | None = None) -> list[Operation]:
    """Replace the convolution by its transforms, product and inverse transform.

    Args:
        tiles: for fuse-tiles, how many to work on at a time.
    """
    found = match_conv(op.scopes[0])
    assert found is not None
    steps = _Steps(op, found, m)
    made = steps.build()
    for new in made:
        if isinstance(new, GemmOp) and tiles is not None:
            new.properties["schedule"] = DictionaryAttr({TILES: IntegerAttr(tiles, i64)})
    for new in made:
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
    last = made[-1]
    last.results[0].name_hint = op.result.name_hint
    add_provenance(last, [*provenance(op), f"winograd-f{m}"])
    Rewriter.replace_op(op, [], [last.results[0]])
    return made


class _Steps:
    """Dims of every intermediate: n, channel, tile row, tile column, then the place in a tile."""

    def __init__(self, op: ConvOp, found: ConvMatch, m: int):
        self.op, self.found, self.m = op, found, m
        self.a = m + TAPS - 1
        self.n, self.features, self.height, self.width = op.type.get_shape()
        self.rows, self.columns = -(-self.height // m), -(-self.width // m)
        arguments = list(op.body.block.args)
        self.data = op.inputs[arguments.index(found.data.source)]  # pyright: ignore
        self.weights = op.inputs[arguments.index(found.weights.source)]  # pyright: ignore
        self.channels = shape_of(self.data)[1]
        made = matrices(m)
        self.bt, self.at = ConstantOp(made.bt, f32), ConstantOp(made.at, f32)
        self.g, self.divisors = ConstantOp(made.g, f32), ConstantOp(made.divisors, f32)

    def build(self) -> list[Operation]:
        self.data = grow_halo(
            self.data, self.found, self.rows * self.m + 2, self.columns * self.m + 2
        )
        data, weights = self._data_transform(), self._weight_transform()
        product = self._product(data.result, weights.result)
        inverse = self._inverse(product.result)
        constants = [self.bt, self.at, self.g, self.divisors]
        return [*constants, data, weights, product, inverse]

    def _data_transform(self) -> LoopsOp:
        """V[n, c, t, u, i, j] = sum_k sum_l BT[i, k] BT[j, l] x[n, c, m t + k - p, m u + l - q]."""
        kernel = KernelBuilder([self.data, self.bt.result])
        x, bt = kernel.sources
        n, c, t, u, i, j, k = iterators(7)
        p, q = self.found.pads
        shape = [self.n, self.channels, self.rows, self.columns, self.a, self.a]
        half = kernel.scope(
            tensor(shape), x[n, c, t * self.m + k - p, u * self.m + j - q] * bt[i, k], [self.a]
        )
        full = kernel.scope(tensor(shape), half[n, c, t, u, i, k] * bt[j, k], [self.a])
        layout = LayoutAttr.of([4, 5, 0, 2, 3, 1])
        return kernel.loops(full, with_layout(tensor(shape), layout), [1, 1, 1, 1, self.a, self.a])

    def _weight_transform(self) -> LoopsOp:
        """U[f, c, i, j] = sum_r sum_s G[i, r] G[j, s] w[f, c, r, s] / (d[i] d[j]); a constant."""
        kernel = KernelBuilder([self.weights, self.g.result, self.divisors.result])
        w, g, d = kernel.sources
        f, c, i, j, r, s = iterators(6)
        at: dict[str | int, Index] = {"f": f, "c": c, 0: r, 1: s, "one": Index(0)}
        shape = tensor([self.features, self.channels, self.a, self.a])
        taps = w[[at[dim] for dim in self.found.weight_dims]]
        sums = kernel.scope(shape, taps * g[i, r] * g[j, s], [TAPS, TAPS])
        return kernel.loops(kernel.scope(shape, sums.here() / d[i] / d[j]), shape)

    def _product(self, data: SSAValue, weights: SSAValue) -> GemmOp:
        """M[n, f, t, u, i, j] = sum_c V[n, c, t, u, i, j] U[f, c, i, j]: a batch of products."""
        kernel = KernelBuilder([data, weights])
        v, u_ = kernel.sources
        n, f, t, u, i, j, c = iterators(7)
        shape = tensor([self.n, self.features, self.rows, self.columns, self.a, self.a])
        out = kernel.scope(shape, v[n, c, t, u, i, j] * u_[f, c, i, j], [self.channels])
        kernel.block.add_op(YieldOp(out.value))
        layout = LayoutAttr.of([4, 5, 0, 2, 3, 1])
        return GemmOp(kernel.inputs, Region(kernel.block), with_layout(shape, layout))

    def _inverse(self, product: SSAValue) -> LoopsOp:
        """Y[n, f, mt + y, mu + z] = sum_i sum_j AT[y, i] AT[z, j] M[n, f, t, u, i, j]; epilogue."""
        arguments = list(self.op.body.block.args)
        gone = {self.found.data.source, self.found.weights.source}
        read_later = {r.source for s in self.op.scopes[1:] for r in s.reads()}
        kept = [k for k, arg in enumerate(arguments) if arg not in gone or arg in read_later]
        kernel = KernelBuilder([product, self.at.result, *(self.op.inputs[k] for k in kept)])
        m_, at = kernel.sources[:2]
        n, f, t, u, y, z, k = iterators(7)
        lead = [self.n, self.features, self.rows, self.columns]
        rows = kernel.scope(
            tensor([*lead, self.m, self.a]), m_[n, f, t, u, k, z] * at[y, k], [self.a]
        )
        tile = kernel.scope(
            tensor([*lead, self.m, self.m]), rows[n, f, t, u, y, k] * at[z, k], [self.a]
        )
        n, f, h, w = iterators(4)
        place = [n, f, h // self.m, w // self.m, h % self.m, w % self.m]
        whole = kernel.scope(logical(self.op.type), tile[place])
        values: dict[SSAValue, SSAValue] = {self.op.scopes[0].result: whole.value}
        for position, k_ in enumerate(kept, start=2):
            values[arguments[k_]] = kernel.sources[position].value
        result = copy_epilogue(self.op, kernel.block, values)
        return kernel.loops(Source(result), self.op.type, [1, 1, self.m, self.m])


def copy_epilogue(op: KernelOp, block: Block, values: dict[SSAValue, SSAValue]) -> SSAValue:
    """Clone the scopes after the first; the last value is the kernel's result."""
    for inner in op.body.block.ops:
        if isinstance(inner, YieldOp):
            return values[inner.value]
        if inner is op.scopes[0]:
            continue
        copy = inner.clone(values)
        values.update(zip(inner.results, copy.results, strict=True))
        block.add_op(copy)
    raise AssertionError("a kernel's region ends with kernel.yield")


class KernelBuilder:
    """Builds the region of one kernel."""

    def __init__(self, inputs: list[SSAValue]):
        self.inputs = inputs
        self.block = Block(arg_types=[logical(v.type) for v in inputs])
        self.sources = [Source(arg) for arg in self.block.args]

    def scope(self, type_: Tensor, expr, sums: Sequence[int] = ()) -> Source:  # pyright: ignore
        build = ScopeBuilder()
        source = build.scope(type_, expr, sums)
        self.block.add_op(build.ops[0])
        return source

    def loops(self, result: Source, type_: Tensor, tile: Sequence[int] | None = None) -> LoopsOp:
        self.block.add_op(YieldOp(result.value))
        schedule = {"tile": DenseArrayBase.from_list(i64, tile)} if tile is not None else None
        return LoopsOp(self.inputs, Region(self.block), type_, schedule)


def grow_halo(value: SSAValue, found: ConvMatch, rows: int, columns: int) -> SSAValue:
    """Widen the data's halo so that tiles hanging over the edge read zeros, not other memory.

    Returns the value that stands for the old one.
    """
    type_ = tensor_type(value)
    layout = layout_of(type_)
    low, high = (list(side) for side in zip(*layout.halo, strict=True))
    for dim, (reach, pad) in enumerate(zip((rows, columns), found.pads, strict=True), start=2):
        low[dim] = max(low[dim], pad)
        high[dim] = max(high[dim], reach - pad - type_.get_shape()[dim])
    return Rewriter.replace_value_with_new_type(
        value, with_layout(logical(type_), LayoutAttr.of(layout.dims, low, high))
    )

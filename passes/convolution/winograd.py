"""winograd: minimal filtering as three kernels instead of a direct convolution.

Y = A^T [ (G w G^T) * (B^T x B) ] A per tile of m x m outputs (Winograd 1980; Lavin and Gray 2015),
for windows in any number of dims. A dim of one tap is not transformed; each other dim is cut into
tiles. winograd_matrices.py makes the matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

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

from ...dialects.contraction_attr import ConvParameters
from ...dialects.floats import MIXED, Floats
from ...dialects.graph import ConstantOp
from ...dialects.index import Index, iterators
from ...dialects.kernel import (
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
from ...dialects.program import add_provenance, main_of, printed_names, provenance
from ...dialects.schedule import TILES
from ...dialects.scope_builder import ScopeBuilder, Source
from ...dialects.types import Tensor, element_of, shape_of, tensor, tensor_type
from .winograd_matrices import POINTS, matrices

T = TypeVar("T")

# Groups with fewer channels or features leave most lanes of a product's vectors empty.
LEAST_OF_GROUP = 8
# Most positions of a tile: transforms are unrolled, and larger ones take long to compile.
MAX_POSITIONS = 64


@dataclass(frozen=True)
class WinogradForm:
    """F(m, taps) in every dim of more than one tap.

    A window of more than `taps` is the sum of blocks of `taps`, the last one padded with zeros.
    Their products are summed before they are transformed back. Without `taps` it is one block.
    """

    m: int
    taps: int | None = None

    @property
    def name(self) -> str:
        """Its name in `session.algorithms` and cost files."""
        return f"winograd-f{self.m}" + ("" if self.taps is None else f"-taps{self.taps}")

    def dims(self, kernel: Sequence[int], sizes: Sequence[int]) -> list[_Dim]:
        """How the spatial dims of a convolution are cut."""
        return [_Dim.of(self, taps, size) for taps, size in zip(kernel, sizes, strict=True)]


@dataclass(frozen=True)
class _Dim:
    """A spatial dim: `tiles` of `m` results, from `blocks` of `taps`, at `positions`."""

    m: int
    taps: int
    blocks: int
    tiles: int

    @classmethod
    def of(cls, form: WinogradForm, window: int, size: int) -> _Dim:
        m = form.m if window > 1 else 1
        taps = min(window, form.taps or window)
        return cls(m, taps, -(-window // taps), -(-size // m))

    @property
    def positions(self) -> int:
        return self.m + self.taps - 1

    @property
    def reach(self) -> int:
        """How much of the data, with its padding, all tiles read."""
        return self.tiles * self.m + self.blocks * self.taps - 1


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Replace direct convolutions of stride 1 by Winograd's F(m, taps) in all spatial dims.

    Exact in real arithmetic. In floating point the error grows with m and the taps, and infinities
    and NaN spread over a tile. So it is never applied by default: `tune` chooses it for a
    convolution if it is measured faster and `--tolerance` allows it. Windows of more than `taps`
    are summed by blocks of `taps`. `only` is the printed name of one result. `tiles` is for
    fuse-tiles, which makes one kernel of all.

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... sum (c: 64, r: 3, s: 3) ... }

    After:

        %v = kernel.loops (%0 = %x, %1 = %bt) schedule {tile = array<i64: 1, 1, 1, 1, 4, 4>} { ... }
        %u = kernel.loops (%0 = %w, ...) { ... }
        %m = kernel.gemm (%0 = %v, %1 = %u) { ... }
        %y = kernel.loops (%0 = %m, %1 = %at) schedule {tile = array<i64: 1, 1, 2, 2>} { ... }
    """

    name = "winograd"
    floats: ClassVar[Floats] = MIXED
    m: int = 2
    taps: int | None = None
    only: str | None = None
    tiles: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        form = WinogradForm(self.m, self.taps)
        convs = [o for o in main_of(op).body.block.ops if isinstance(o, ConvOp)]
        names = printed_names(op, [conv.result for conv in convs]) if self.only else {}
        for conv in convs:
            if self.only in (None, names.get(conv.result)) and applies(conv, form):
                rewrite(conv, form, self.tiles)


def applies(op: ConvOp, form: WinogradForm) -> bool:
    """Whether a form computes this: f32, stride 1, undilated, no narrow groups."""
    found = op.parameters
    if element_of(found.data) != f32 or found.transposed or max(found.kernel) == 1:
        return False
    if form.taps is not None and (form.taps < 2 or max(found.kernel) <= form.taps):
        return False  # a single block does the same
    if form.taps is not None and found.groups > 1:
        return False  # blocks and channels of a group are no one range of the product's sum
    dims = form.dims(found.kernel, found.sizes)
    return (
        all(dim.positions in POINTS for dim in dims if dim.taps > 1)
        and math.prod(dim.positions * dim.blocks for dim in dims) <= MAX_POSITIONS
        and set(found.strides) == set(found.dilations) == {1}
        and _lanes(found) >= (LEAST_OF_GROUP if found.groups > 1 else 2)
        and shape_of(op.scopes[0].result) == op.type.get_shape()
    )


def _lanes(found: ConvParameters) -> int:
    """The fewest channels that the vectors of a product run over."""
    return min(found.channels_per_group, found.features // found.groups)


def is_square(op: ConvOp, taps: int) -> bool:
    """Whether the window has this many taps in each of two dims."""
    return op.parameters.kernel == (taps, taps)


def longest_window(op: ConvOp) -> int:
    """The largest number of taps of a window's dims."""
    return max(op.parameters.kernel)


def sizes_of(op: ConvOp, form: WinogradForm) -> tuple[int, int, int]:
    """How many tiles a form cuts the images into, the positions of one, and the blocks it sums."""
    found = op.parameters
    dims = form.dims(found.kernel, found.sizes)
    return (
        found.images * math.prod(dim.tiles for dim in dims),
        math.prod(dim.positions for dim in dims),
        found.channels_per_group * math.prod(dim.blocks for dim in dims),
    )


def rewrite(op: ConvOp, form: WinogradForm, tiles: int | None = None) -> list[Operation]:
    """Replace the convolution by its transforms, product and inverse transform.

    Args:
        tiles: for fuse-tiles, how many to work on at a time.
    """
    made = _Steps(op, op.parameters, form).build()
    for new in made:
        if isinstance(new, GemmOp) and tiles is not None:
            new.properties["schedule"] = DictionaryAttr({TILES: IntegerAttr(tiles, i64)})
    for new in made:
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
    last = made[-1]
    last.results[0].name_hint = op.result.name_hint
    add_provenance(last, [*provenance(op), form.name])
    Rewriter.replace_op(op, [], [last.results[0]])
    return made


class _Constants:
    """The literal matrices of one step, by the number of taps that they transform."""

    def __init__(self, dims: Sequence[_Dim], part: str):
        made = {dim.taps: matrices(dim.m, dim.taps) for dim in dims if dim.taps > 1}
        self.ops = {taps: ConstantOp(getattr(found, part), f32) for taps, found in made.items()}

    @property
    def values(self) -> list[SSAValue]:
        return [op.result for op in self.ops.values()]

    def named(self, sources: Sequence[Source]) -> dict[int, Source]:
        """Their arguments in a kernel, by number of taps."""
        return dict(zip(self.ops, sources, strict=True))


class _Steps:
    """Dims of every intermediate: n, channel, the tile per dim, then the position in a tile.

    The data's and the weights' have a dim for each spatial dim that is cut into blocks of taps.
    """

    def __init__(self, op: ConvOp, found: ConvParameters, form: WinogradForm):
        self.op, self.found = op, found
        self.n, self.features, self.channels = found.images, found.features, found.channels
        self.groups, self.inner = found.groups, found.channels_per_group
        self.dims = form.dims(found.kernel, found.sizes)
        self.rank = len(self.dims)
        self.cut = [k for k, dim in enumerate(self.dims) if dim.taps > 1]
        self.split = [k for k, dim in enumerate(self.dims) if dim.blocks > 1]
        self.blocks = [self.dims[k].blocks for k in self.split]
        self.tiles = [dim.tiles for dim in self.dims]
        self.positions = [dim.positions for dim in self.dims]
        self.data, self.weights = op.outer(found.data), op.outer(found.weights)
        parts = ("bt", "at", "g", "divisors")
        self.bt, self.at, self.g, self.divisors = (_Constants(self.dims, part) for part in parts)

    @property
    def _of_features(self) -> list[int]:
        """The extents that the product has for features: of one group one, else two."""
        each = self.features // self.groups
        return [self.groups, each] if self.groups > 1 else [each]

    def build(self) -> list[Operation]:
        self.data = grow_halo(self.data, self.found, [dim.reach for dim in self.dims])
        data, weights = self._data_transform(), self._weight_transform()
        product = self._product(data.result, weights.result)
        inverse = self._inverse(product.result)
        parts = (self.bt, self.at, self.g, self.divisors)
        constants = [op for part in parts for op in part.ops.values()]
        return [*constants, data, weights, product, inverse]

    def _layout(self, blocks: int = 0, channels: int = 1) -> LayoutAttr:
        """Positions in a tile first, then tiles, then blocks of taps; dims of channels last."""
        own = 1 + channels
        tile, position, end = own + blocks, own + blocks + self.rank, own + blocks + 2 * self.rank
        inner = (*range(own, tile), *range(1, own))
        return LayoutAttr.of([*range(position, end), 0, *range(tile, position), *inner])

    def _data_transform(self) -> LoopsOp:
        """V[n, c, t, u, i, j] = sum_k sum_l BT[i, k] BT[j, l] x[n, c, m t + k - p, m u + l - q]."""
        kernel = KernelBuilder([self.data, *self.bt.values])
        value, bt = kernel.sources[0], self.bt.named(kernel.sources[1:])
        n, c, *rest, k = iterators(3 + len(self.split) + 2 * self.rank)
        block = dict(zip(self.split, rest, strict=False))
        tile, position = rest[-2 * self.rank : -self.rank], rest[-self.rank :]
        shape = tensor([self.n, self.channels, *self.blocks, *self.tiles, *self.positions])
        for number, d in enumerate(self.cut):
            inner = [k if e == d else i for e, i in enumerate(position)]
            at = [n, c, *block.values(), *tile, *inner]
            if number == 0:
                at = [n, c]
                for e, (dim, pad) in enumerate(zip(self.dims, self.found.pads, strict=True)):
                    step = inner[e] + block[e] * dim.taps if e in block else inner[e]
                    at.append(tile[e] * dim.m + step - pad)
            dim = self.dims[d]
            if number == 0:
                at = in_dims(at, self.found.data_order)
            value = kernel.scope(shape, value[at] * bt[dim.taps][position[d], k], [dim.positions])
        whole = [1] * 2 + self.blocks + [1] * self.rank + self.positions
        return kernel.loops(value, with_layout(shape, self._layout(len(self.split))), whole)

    def _weight_transform(self) -> LoopsOp:
        """U[f, c, i, j] = sum_r sum_s G[i, r] G[j, s] w[f, c, r, s] / (d[i] d[j]); a constant."""
        kernel = KernelBuilder([self.weights, *self.g.values, *self.divisors.values])
        w, *rest = kernel.sources
        g, d = self.g.named(rest[: len(self.g.ops)]), self.divisors.named(rest[len(self.g.ops) :])
        f, *its = iterators(2 + len(self.split) + self.rank + len(self.cut))
        block, c = dict(zip(self.split, its, strict=False)), its[len(self.split)]
        position, taps = its[len(self.split) + 1 :][: self.rank], its[-len(self.cut) :]
        at: dict[str | int, Index] = {"f": f, "c": c, "_": Index(0)}
        at |= dict.fromkeys(range(self.rank), Index(0))
        for k, tap in zip(self.cut, taps, strict=True):
            at[k] = tap + block[k] * self.dims[k].taps if k in block else tap
        shape = tensor([self.features, *self.blocks, self.inner, *self.positions])
        product = w[[at[dim] for dim in self.found.filter_dims]]
        for k, tap in zip(self.cut, taps, strict=True):
            product = product * g[self.dims[k].taps][position[k], tap]
        value = kernel.scope(shape, product, [self.dims[k].taps for k in self.cut]).here()
        for k in self.cut:
            value = value / d[self.dims[k].taps][position[k]]
        return kernel.loops(kernel.scope(shape, value), shape)

    def _product(self, data: SSAValue, weights: SSAValue) -> GemmOp:
        """M[n, f, t, u, i, j] = sum_c V[n, c, t, u, i, j] U[f, c, i, j]: a batch of products.

        Of several groups, f are two dims: the group, and the feature within it.
        """
        kernel = KernelBuilder([data, weights])
        v, u = kernel.sources
        n, *its = iterators(1 + len(self._of_features) + 2 * self.rank + len(self.split) + 1)
        own, its = its[: len(self._of_features)], its[len(self._of_features) :]
        its, (*block, c) = its[: 2 * self.rank], its[2 * self.rank :]
        channel, feature = c, own[-1]
        if self.groups > 1:
            channel, feature = c + own[0] * self.inner, feature + own[0] * self._of_features[1]
        shape = tensor([self.n, *self._of_features, *self.tiles, *self.positions])
        pairs = v[[n, channel, *block, *its]] * u[[feature, *block, c, *its[self.rank :]]]
        out = kernel.scope(shape, pairs, [*self.blocks, self.inner])
        kernel.block.add_op(YieldOp(out.value))
        layout = self._layout(channels=len(self._of_features))
        return GemmOp(kernel.inputs, Region(kernel.block), with_layout(shape, layout))

    def _inverse(self, product: SSAValue) -> LoopsOp:
        """Y[n, f, mt + y, mu + z] = sum_i sum_j AT[y, i] AT[z, j] M[n, f, t, u, i, j]; epilogue."""
        arguments = list(self.op.body.block.args)
        gone = {self.found.data, self.found.weights}
        read_later = {r.source for s in self.op.scopes[1:] for r in s.reads()}
        kept = [k for k, arg in enumerate(arguments) if arg not in gone or arg in read_later]
        inputs = [product, *self.at.values, *(self.op.inputs[k] for k in kept)]
        kernel = KernelBuilder(inputs)
        own = 1 + len(self.at.ops)
        at = self.at.named(kernel.sources[1:own])
        whole = self._whole(kernel, self._back(kernel, at))
        values: dict[SSAValue, SSAValue] = {self.op.scopes[0].result: whole.value}
        for position, k in enumerate(kept, start=own):
            values[arguments[k]] = kernel.sources[position].value
        result = copy_epilogue(self.op, kernel.block, values)
        tile = in_dims([1, 1, *(dim.m for dim in self.dims)], self.found.out_order)
        return kernel.loops(Source(result), self.op.type, tile)

    def _back(self, kernel: KernelBuilder, at: dict[int, Source]) -> Source:
        """Results tile by tile, in the result's order: one dim after the other is transformed."""
        value, left = kernel.sources[0], list(self.positions)
        *dims, k = iterators(3 + 2 * self.rank)
        own, position = dims[: 2 + self.rank], dims[2 + self.rank :]
        order = self.found.out_order
        lead = in_dims([self.n, self.features, *self.tiles], order)
        for number, d in enumerate(self.cut):
            dim, inner = self.dims[d], [k if e == d else i for e, i in enumerate(position)]
            left[d] = dim.m
            here = self._features_apart([own[p] for p in order]) if number == 0 else own
            sums = value[[*here, *inner]] * at[dim.taps][position[d], k]
            value = kernel.scope(tensor([*lead, *left]), sums, [dim.positions])
        return value

    def _features_apart(self, at: Sequence[Index]) -> list[Index]:
        """A position of a result in the dims of the product."""
        n, f, *tile = at
        each = self.features // self.groups
        return [n, *([f // each, f % each] if self.groups > 1 else [f]), *tile]

    def _whole(self, kernel: KernelBuilder, tiles: Source) -> Source:
        """The result, each position read from its tile."""
        lead = iterators(2 + self.rank)
        pairs = [(lead[p], dim) for p, dim in zip(self.found.out_order[2:], self.dims, strict=True)]
        inside = [i % dim.m for i, dim in pairs]
        for p, (i, dim) in zip(self.found.out_order[2:], pairs, strict=True):
            lead[p] = i // dim.m
        return kernel.scope(logical(self.op.type), tiles[[*lead, *inside]])


def in_dims(parts: Sequence[T], order: Sequence[int]) -> list[T]:
    """Values for images, channels and spatial dims, in the order of a tensor's dims."""
    return [parts[order.index(dim)] for dim in range(len(order))]


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


def grow_halo(value: SSAValue, found: ConvParameters, reach: Sequence[int]) -> SSAValue:
    """Widen the data's halo so that tiles hanging over the edge read zeros, not other memory.

    Returns the value that replaces the old one.

    Args:
        reach: positions that tiles read, per spatial dim.
    """
    type_ = tensor_type(value)
    layout = layout_of(type_)
    low, high = (list(side) for side in zip(*layout.halo, strict=True))
    for dim, positions, pad in zip(found.data_order[2:], reach, found.pads, strict=True):
        low[dim] = max(low[dim], pad)
        high[dim] = max(high[dim], positions - pad - type_.get_shape()[dim])
    return Rewriter.replace_value_with_new_type(
        value, with_layout(logical(type_), LayoutAttr.of(layout.dims, low, high))
    )

"""Algorithms for products and convolutions: gemm, Winograd, FFT, each under its constraints.

A GPU computes a batch of products in tiles of the output. Tiles occupy units, so a product with few
tiles leaves units idle. A tile's operands come from the last cache, each element as often as
tiles need it. Where rows of the second operand overlap from one batch entry to the next (a band), a
tile needs only the distinct rows.

A `Target` with cuDNN runs Winograd and FFT as four kernels in a row: transform the input, transform
the weights, multiply, transform back. It transforms the weights at each call, and writes and reads
every intermediate. A cpu's kernels transform the weights when the program is compiled and do the
rest in one pass.

Constants. Fitted by scripts/fit_gpu_costs.py to the five V100 times of PET's Table 4 that we have,
and to nothing else. Five constants for five times: the fit does not show how well the form holds.
tests/passes/test_gpu_costs.py tests it by the order of EinNet's Table 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...dialects.algebra import ScopeOp
from ...dialects.contraction import Operand, Window, window_of
from ...dialects.contraction_attr import ConvParameters, contraction_in
from ...lowering.targets import Target
from .winograd import LEAST_OF_GROUP

# F(m x m, taps x taps) by taps, and additions of the transforms per tile: input, output (Lavin and
# Gray 2015, sec. 4; those of two taps counted from passes/convolution/winograd_matrices.py).
WINOGRAD_TILES = {3: (2, 4), 2: (3,)}
_TRANSFORMS = {(2, 3): (32, 24), (4, 3): (156, 90), (3, 2): (32, 42)}
KERNELS = 4
"""Kernels of a library's Winograd or FFT."""


TILE = 64
"""Side of a tile if there are few, which fills the units."""
LARGE_TILE = 128
"""Side of a tile if there are many, which reuses the cache."""


@dataclass(frozen=True)
class Product:
    """A batch of m x n results, each a sum of k products; a band if `dilation` > 0.

    In a band `m` counts its rows and a tile of `b` has rows `dilation` apart that overlap.
    """

    batch: int
    m: int
    n: int
    k: int
    dilation: int = 0

    @property
    def tiles(self) -> int:
        """Tiles of the output."""
        return self.batch * math.ceil(self.m / TILE) * math.ceil(self.n / TILE)

    def traffic(self, width: int) -> float:
        """Bytes that the tiles read from the last cache, at `width` bytes an element."""
        side_m, side_n = min(self.m, LARGE_TILE), min(self.n, LARGE_TILE)
        tiles = self.batch * math.ceil(self.m / side_m) * math.ceil(self.n / side_n)
        columns = side_m + self.dilation * side_n if self.dilation else side_n
        return float(width) * tiles * self.k * (side_m + columns)

    @classmethod
    def of(cls, scope: ScopeOp) -> Product | None:
        """The product of a sum of products of two reads, from its iterator groups."""
        found = contraction_in(scope)
        if found is None:
            return None
        groups, extents = found.groups, found.extents
        k = math.prod(extents[found.rank :])

        def size(iterators: Iterable[int]) -> int:
            return math.prod(extents[i] for i in iterators)

        for rows, own, operand in (("n", "m", found.first), ("m", "n", found.second)):
            band = None if groups[rows] else _band(operand, groups["batch"], groups[own])
            if band is not None:
                rest = size(i for i in groups["batch"] if i != band.outer)
                apart = max(1, abs(band.dilation) // band.stride)
                return cls(rest, extents[band.outer], size(groups[own]), k, apart)
        return cls(size(groups["batch"]), size(groups["m"]), size(groups["n"]), k)


def _band(operand: Operand[int], batch: Sequence[int], columns: Sequence[int]) -> Window | None:
    """The rows that overlap their neighbours; among a row's digits, that of the columns' step."""
    pairs = itertools.product(batch, columns)
    windows = [w for b, c in pairs if (w := window_of(operand, b, c)) is not None]
    return min(windows, key=lambda w: (abs(w.stride - abs(w.dilation)), w.outer), default=None)


@dataclass(frozen=True)
class Fitted:
    """The constants fitted to PET's Table 4, for a GPU's convolutions."""

    half_tiles: float
    """Tiles per unit at which half of the units' time is used."""
    setup: float
    """Extra steps of k that a tile of an implicit gemm with more than one tap costs."""
    stage: float
    """Launches that one of several kernels in a row costs."""
    fft_bandwidth: float
    """Share of the bandwidth that the transforms of an FFT reach."""
    winograd_bandwidth: float
    """Share of the bandwidth that Winograd's transforms reach."""


FITTED = Fitted(
    half_tiles=0.5007, setup=1104.0, stage=0.6725, fft_bandwidth=0.4276, winograd_bandwidth=0.7171
)


@dataclass(frozen=True)
class Estimate:
    """One algorithm for an op: its class of efficiency, its operations, and their product.

    `extra_bytes` are moved in addition to the op's operands and results. If `kernels` is more than
    one, they run one after the other, at a `bandwidth` share.
    """

    class_: str
    flops: float
    algorithm: str
    extra_bytes: float = 0.0
    product: Product | None = None
    setup: float = 0.0  # steps of k that starting a product costs
    kernels: int = 1
    bandwidth: float = 1.0


@dataclass(frozen=True)
class ConvolutionProblem:
    """Everything that the cost of a convolution depends on."""

    images: int  # the batch
    filters: int  # of all groups
    pixels: tuple[int, ...]  # of the result, per spatial dim
    channels: int  # of one group
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    transposed: bool = False

    @property
    def narrowest(self) -> int:
        """The channels or features of a group, whichever are fewer."""
        return min(self.channels, self.filters // self.groups)

    @classmethod
    def of(cls, found: ConvParameters) -> ConvolutionProblem:
        """The problem of a scope or kernel with these parameters."""
        return cls(
            found.images,
            found.features,
            found.sizes,
            found.channels_per_group,
            tuple(found.kernel),
            tuple(found.strides),
            tuple(found.dilations),
            found.groups,
            found.transposed,
        )


def conv_algorithms(
    conv: ConvolutionProblem, macs: float, target: Target, fitted: Fitted = FITTED
) -> list[Estimate]:
    """Implicit gemm, and Winograd and FFT where they apply and the target has them."""
    narrow = conv.groups > 1 and conv.channels < 8
    setup = fitted.setup if math.prod(conv.kernel) > 1 and not narrow else 0.0
    class_ = "grouped" if narrow else "conv"
    product = conv_product(conv)
    algorithms = [Estimate(class_, 2.0 * macs, "implicit-gemm", product=product, setup=setup)]
    plain = set(conv.strides) == {1} and set(conv.dilations) == {1}
    # Libraries have neither for groups; our own Winograd takes groups that fill vectors.
    groups = "cudnn" not in target.libraries and conv.narrowest >= LEAST_OF_GROUP
    plain = plain and (conv.groups == 1 or groups)
    if not plain or conv.transposed or len(conv.kernel) != 2:
        return algorithms
    if "winograd" in target.convolutions and len(set(conv.kernel)) == 1:
        # Libraries have it only for three taps.
        taps = conv.kernel[0] if conv.kernel[0] == 3 or "cudnn" not in target.libraries else 0
        tiles = WINOGRAD_TILES.get(taps, ())
        algorithms += [_winograd(conv, tile, target, fitted) for tile in tiles]
    if "fft" in target.convolutions and max(conv.kernel) > 1 and conv.groups == 1:
        algorithms.append(_fft(conv, fitted))
    return algorithms


def conv_product(conv: ConvolutionProblem) -> Product:
    """A convolution as implicit gemm: filters x pixels x taps (if transposed, the live ones)."""
    taps = math.prod(conv.kernel)
    if conv.transposed:
        taps = math.ceil(taps / math.prod(conv.strides))
    pixels = conv.images * math.prod(conv.pixels)
    return Product(conv.groups, conv.filters // conv.groups, pixels, conv.channels * taps)


def _winograd(conv: ConvolutionProblem, tile: int, target: Target, fitted: Fitted) -> Estimate:
    """F(tile x tile, r x r): (tile + r - 1)^2 products per tile instead of (r tile)^2."""
    n, f, (h, w), (taps, _) = conv.images, conv.filters, conv.pixels, conv.kernel
    c, points = conv.channels, (tile + taps - 1) ** 2
    tiles = n * math.ceil(h / tile) * math.ceil(w / tile)
    into, out = _TRANSFORMS[tile, taps]
    flops = 2.0 * tiles * points * c * f + tiles * (into * c * conv.groups + out * f)
    product = Product(points * conv.groups, f // conv.groups, tiles, c)
    weights, data = 4.0 * points * c * f, 4.0 * points * tiles * (c * conv.groups + f)
    name = f"winograd{tile}"
    if "cudnn" not in target.libraries:
        # Transformed weights and tiles are read instead of the operands, at four bytes a number.
        return Estimate("winograd", flops, name, weights - 4.0 * taps**2 * c * f + data, product)
    return Estimate(
        "winograd", flops, name, 2 * (weights + data), product, 0.0, KERNELS,
        fitted.winograd_bandwidth,
    )  # fmt: skip


def _fft(conv: ConvolutionProblem, fitted: Fitted) -> Estimate:
    """Transforms of every map (2.5 P log2 P, real) and half a spectrum of complex products."""
    n, f, (h, w), c = conv.images, conv.filters, conv.pixels, conv.channels
    sides = [
        1 << math.ceil(math.log2(size + k - 1)) for size, k in zip((h, w), conv.kernel, strict=True)
    ]
    points = math.prod(sides)
    maps = n * (c + f) + c * f
    transforms = maps * 2.5 * points * math.log2(max(points, 2))
    flops = transforms + 8.0 * n * c * f * points / 2
    product = Product(points // 2, f, n, c)
    extra = 2 * 4.0 * points * maps
    return Estimate("fft", flops, "fft", extra, product, 0.0, KERNELS, fitted.fft_bandwidth)

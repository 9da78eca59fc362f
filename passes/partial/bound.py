"""A lower bound for the time of a mutant, by the model of its target.

A mutant with its corrections multiplies as often as its program, including zeros outside an image:
as a convolution or a matrix product with as many filters, positions and channels. Other images
change the modelled time only through algorithms that tile them. So a mutant takes at least as long
as the cheapest algorithm whose tiles fit exactly. Strides, dilations and groups count as removed;
views and corrections as free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.types import byte_size, element_of, tensor_type
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm
from ..convolution.conv_algorithms import ConvolutionProblem, Estimate, Product, conv_algorithms
from ..cost.costs import Costs
from ..derivation.bound import has_fast_form

# Side of the tile that Winograd's tiles of every size divide.
_TILE = 4
# FFT of sides up to this power of two.
_FFT = 9


def least_modelled(op: ScopeOp, root: Scope, costs: Costs) -> float | None:
    """A lower bound of the modelled seconds of any mutant of a contraction; None if unknown.

    Args:
        root: the op as an interned scope.
    """
    algorithms = list(_algorithms(op, root, costs))
    if not algorithms:
        return None
    block = op.parent_block()
    known = weights_only(() if block is None else block.ops)
    values = [v for v in dict.fromkeys(op.operands) if not isinstance(v.owner, OnesOp)]
    weights = sum(byte_size(tensor_type(v)) for v in values if v in known)
    moved = sum(byte_size(tensor_type(v)) for v in (*values, op.result) if v not in known)
    element = element_of(op.operands[0])
    return min(costs.seconds(algorithm, element, weights, moved) for algorithm in algorithms)


def _algorithms(op: ScopeOp, root: Scope, costs: Costs) -> Iterator[Estimate]:
    """The algorithms for a product of the same work, with exact tiles."""
    if match_gemm(op) is not None:
        yield Estimate("gemm", 2.0 * math.prod(op.extents), "gemm", product=Product.of(op))
        return
    found = match_conv(op)
    if found is None or found.transposed:
        return
    given = ConvolutionProblem.of(found)
    ones = (1,) * len(given.kernel)
    plain = replace(given, strides=ones, dilations=ones, groups=1)
    positions = given.images * math.prod(given.pixels)
    macs = float(math.prod(op.extents))
    yield conv_algorithms(plain, macs, costs.target, costs.fitted)[0]
    for sides in _exact(plain, root):
        tiled = replace(plain, images=math.ceil(positions / math.prod(sides)), pixels=sides)
        yield from conv_algorithms(tiled, macs, costs.target, costs.fitted)[1:]


def _exact(conv: ConvolutionProblem, root: Scope) -> Iterator[tuple[int, ...]]:
    """Images that tiles fit: for Winograd, if its windows are suitable, and for FFT."""
    if len(conv.kernel) != 2 or max(conv.kernel) == 1:
        return
    if has_fast_form(root):
        yield _TILE, _TILE
    for power in range(1, _FFT):
        sides = tuple((1 << power) - taps + 1 for taps in conv.kernel)
        if min(sides) > 0:
            yield sides


def is_regular(op: ScopeOp) -> bool:
    """Whether it is a matrix product, or a convolution with no stride, dilation or groups."""
    if match_gemm(op) is not None:
        return True
    found = match_conv(op)
    return found is not None and is_plain(op) and {*found.strides, *found.dilations} == {1}


def is_plain(op: ScopeOp) -> bool:
    """Whether it is a convolution of one group, not transposed."""
    found = match_conv(op)
    return found is not None and not found.transposed and found.groups == 1

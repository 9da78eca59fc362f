"""Write the contraction of a correction as the cheapest library kernel takes it."""

from __future__ import annotations

from ...dialects.canonical_types import Scope
from ...lowering.algebra_to_kernel.table import matches
from ..derivation.instantiate import instantiate
from ..derivation.price import ScopePrices
from .operators import gathered


def in_library_form(part: Scope, prices: ScopePrices) -> Scope:
    """The scope with its operands laid out for a library kernel; itself where none takes it.

    A restriction of a convolution reads an image from some place on, or through a view: what it
    needs is copied (the images' windows, or all taps), and the rest is a convolution or a matrix
    product as every other.
    """
    found = matches(part, prices.table)
    if not found:
        return part
    best = min(found, key=prices.match)
    step = instantiate(best)
    if step.image is None:
        return step.new
    return gathered(step.new, step.image, part.shape)

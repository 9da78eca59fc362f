"""Write the contraction of a correction in the cheapest library kernel's form."""

from __future__ import annotations

from ...dialects.canonical_types import Scope
from ...lowering.algebra_to_kernel.table import matches
from ..derivation.instantiate import instantiate
from ..derivation.price import ScopePrices
from .operators import gathered


def in_library_form(part: Scope, prices: ScopePrices) -> Scope:
    """The scope with its operands laid out for a library kernel; unchanged if none matches.

    A restricted convolution reads an image from some position on, or through a view. The part it
    needs is copied (the image's windows, or all taps); the rest is an ordinary convolution or
    matrix product.
    """
    found = matches(part, prices.table)
    if not found:
        return part
    best = min(found, key=prices.match)
    step = instantiate(best)
    if step.image is None:
        return step.new
    return gathered(step.new, step.image, part.shape)

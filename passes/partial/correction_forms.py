"""The forms that the corrections of a mutant can have, each by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.canonical_types import Leaf, Scope, Source
from ..derivation.price import ScopePrices
from .correct import Correction, Cover, Form, by_library, correct, covers, cut, plain
from .fuse import fused
from .generate import Mutant
from .region import Mask

Corrected = tuple[Correction, ...]
"""For each program of a search its correction."""

FORMS: tuple[Form, ...] = ("plain", "library", "pieces", "fused")


def corrected_forms(
    programs: Sequence[Scope],
    mutant: Mutant,
    full: Mapping[Leaf, Source],
    masks: Sequence[Mask],
    prices: ScopePrices,
) -> dict[Form, Corrected]:
    """Every form of a mutant's corrections at full size; an exact mutant has one."""
    made = mutant.build(full)
    given = list(zip(programs, mutant.index, masks, strict=True))
    right = [None if m.any() else correct(p, made, index, m) for p, index, m in given]
    exact = tuple(one for one in right if one is not None)
    if len(exact) == len(given):
        return {"plain": exact}
    wrong = [covers(p, made, index, m)[0] if m.any() else None for p, index, m in given]
    found: dict[Form, Corrected] = {}
    for form in FORMS:
        made_so = [
            known if cover is None else _in_form(form, cover, mutant, full, prices)
            for known, cover in zip(right, wrong, strict=True)
        ]
        corrections = tuple(one for one in made_so if one is not None)
        if len(corrections) == len(given):
            found[form] = corrections
    return found


def _in_form(
    form: Form, cover: Cover, mutant: Mutant, full: Mapping[Leaf, Source], prices: ScopePrices
) -> Correction | None:
    match form:
        case "plain":
            return plain(cover)
        case "library":
            return by_library(cover, prices)
        case "pieces":
            pieces = cut(cover)
            return by_library(pieces, prices, form) if pieces.wrong != cover.wrong else None
        case "fused":
            # Outputs that share a product would each enlarge it: only one output is fused.
            if mutant.operands is None or len(mutant.index) > 1:
                return None
            return fused(cover, *mutant.operands(full))

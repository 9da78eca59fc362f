"""The forms that the corrections of a mutant can have, each by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.canonical_types import Leaf, Scope, Source
from ..derivation.price import Prices
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
    prices: Prices,
) -> dict[Form, Corrected]:
    """Every form of a mutant's corrections at the programs' size; an exact mutant has one."""
    made = mutant.build(full)
    given = list(zip(programs, mutant.index, masks, strict=True))
    if mutant.exact:
        return {"plain": tuple(correct(p, made, index, mask) for p, index, mask in given)}
    found: dict[Form, Corrected] = {}
    for form in FORMS:
        corrections: list[Correction] = []
        for program, index, mask in given:
            if not mask.any():
                corrections.append(correct(program, made, index, mask))
                continue
            cover = covers(program, made, index, mask)[0]
            one = _in_form(form, cover, mutant, full, prices)
            if one is not None:
                corrections.append(one)
        if len(corrections) == len(given):
            found[form] = tuple(corrections)
    return found


def _in_form(
    form: Form, cover: Cover, mutant: Mutant, full: Mapping[Leaf, Source], prices: Prices
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
            # Outputs that share a product would each enlarge it: one output alone.
            if mutant.operands is None or len(mutant.index) > 1:
                return None
            return fused(cover, *mutant.operands(full))

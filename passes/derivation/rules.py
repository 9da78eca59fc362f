"""The derivation rules, as data: one line each; the laws are in docs/derivation.md.

No rule names an operator or an extent. Every rule is sound by its side condition alone, which the
functions check before they give a step.
"""

from __future__ import annotations

from ...dialects.floats import BITS, DISTRIBUTED, DROPPED, GUARDED, ROUNDING
from .merges import every_traversal_merge
from .step import DerivationRule, nothing
from .sums import (
    every_delta_elim,
    every_delta_intro,
    every_shear_sum,
    every_split_sum,
    every_sum_split,
)
from .traversals import (
    every_drop_dead,
    every_expression_split,
    every_reindex,
    every_split_traversal,
    every_tighten,
    every_tighten_sums,
)

EINNET = "EinNet (OSDI 2023), Table 1"

RULES: tuple[DerivationRule, ...] = (
    DerivationRule(
        "sum-split",
        every_sum_split,
        "the inner sums are some of the sums, not all: products distribute over sums",
        EINNET,
        DISTRIBUTED,
        limit=1,
    ),
    DerivationRule(
        "reindex",
        every_reindex,
        "each index's traversal part is an integer combination of the new coordinates",
        f"{EINNET}: variable substitution, boundary relaxing",
        GUARDED,
    ),
    DerivationRule(
        "split-sum",
        every_split_sum,
        "the digit is less than the extent; places past the extent get a guard",
        f"{EINNET}: variable substitution",
        GUARDED,
        limit=2,
    ),
    DerivationRule(
        "split-traversal",
        every_split_traversal,
        "the digit is less than the extent",
        f"{EINNET}: variable substitution",
        GUARDED,
        limit=2,
    ),
    DerivationRule(
        "shear-sum",
        every_shear_sum,
        "for each place of the traversal it is a bijection of the sum's; a guard keeps its range",
        f"{EINNET}: variable substitution",
        GUARDED,
        limit=1,
    ),
    DerivationRule(
        "delta-intro",
        every_delta_intro,
        "a guard says that the division is whole",
        "EinNet, section 4",
        GUARDED,
        limit=1,
    ),
    DerivationRule(
        "delta-elim",
        every_delta_elim,
        "the guard e == 0 has coefficient 1 or -1 at the sum; the solution gets a guard",
        "EinNet, section 4",
        DROPPED,
    ),
)

EAGER: tuple[DerivationRule, ...] = (
    DerivationRule(
        "tighten-sums",
        every_tighten_sums,
        "at the places left out an index is out of bounds whatever the other iterators are",
        f"{EINNET}: boundary tightening",
        DROPPED,
        eager=True,
    ),
    DerivationRule(
        "tighten",
        every_tighten,
        "at the places left out an index is out of bounds whatever the other iterators are",
        f"{EINNET}: boundary tightening",
        DROPPED,
        eager=True,
    ),
    DerivationRule(
        "drop-dead",
        every_drop_dead,
        "no index uses the traversals left out",
        f"{EINNET}: variable substitution",
        BITS,
        eager=True,
    ),
)

# Not proposed for one scope by the search: they undo what it does, need to know the readers, or
# speak of several scopes (the search applies the first three itself).
BY_HAND: tuple[DerivationRule, ...] = (
    DerivationRule(
        "merge-shared-operand",
        nothing,
        "a bijection of their iterators makes the indices the same, and the extents but the "
        "stacked one, whose iterator indexes one dim of their own operands alone",
        f"{EINNET}: expression merging; TASO's concat",
        GUARDED,
    ),
    DerivationRule(
        "merge-batch",
        nothing,
        "a bijection of their iterators makes the indices the same, and all extents agree",
        "EinNet, section 5: expressions with different inputs batched; PET's batched products",
        ROUNDING,
    ),
    DerivationRule(
        "merge-copies",
        nothing,
        "what is read is one read of something else; guards keep the read inside it",
        f"{EINNET}: traversal merging",
        GUARDED,
        eager=True,
    ),
    DerivationRule(
        "traversal-merge",
        every_traversal_merge,
        "what is read is one sum of products; guards keep the read inside it",
        f"{EINNET}: traversal merging",
        DISTRIBUTED,
    ),
    DerivationRule(
        "expression-split",
        every_expression_split,
        "the position lies inside the traversal: each piece is 0 outside its own places",
        f"{EINNET}: expression splitting",
        BITS,
    ),
    DerivationRule(
        "expression-fuse",
        nothing,
        "the two pieces are what expression-split makes of the whole",
        f"{EINNET}: expression fusion",
        BITS,
    ),
    DerivationRule(
        "restrict",
        nothing,
        "no reader reads the places left out",
        "EinNet, section 4: boundary tightening",
        BITS,
    ),
)


def named(name: str) -> DerivationRule:
    """The rule of that name."""
    return next(rule for rule in (*RULES, *EAGER, *BY_HAND) if rule.name == name)

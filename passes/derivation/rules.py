"""The derivation rules, as data: one line each; the laws are in docs/derivation.md.

No rule names an operator or an extent. Every rule is sound by its side condition alone, which the
functions check before they return a step.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, DISTRIBUTED, DROPPED, GUARDED, ROUNDING
from .factor import factor_sum, inner_contractions
from .flattening import every_flatten, flatten, merge_rows
from .lift import family
from .merges import copies_read_through, every_traversal_merge, expression_fuse, merge_into_reader
from .parts import merge_parts
from .side_by_side import merge_batch, merge_shared
from .step import DerivationRule, OnBody, OnPair, OnScope, RuleOption, propose_nothing, single_step
from .sums import (
    delta_elim,
    delta_intro,
    every_delta_elim,
    every_delta_intro,
    every_shear_sum,
    every_split_sum,
    every_sum_split,
    shear_sum,
    split_sum,
    sum_split,
)
from .traversals import (
    drop_dead,
    every_expression_split,
    every_reindex,
    every_split_traversal,
    every_split_traversals,
    expression_split,
    readers_within,
    reindex,
    restrict,
    split_traversal,
    split_traversals,
    tighten,
    tighten_sums,
)

EINNET = "EinNet (OSDI 2023), Table 1"

SUMS = RuleOption("sums", "sums", "summation iterators")
SUM = RuleOption("sum", "sum", "a summation iterator")
TRAVERSAL = RuleOption("traversal", "traversal", "a traversal iterator")
TRAVERSALS = RuleOption("traversals", "traversals", "traversal iterators, the outermost first")
ALONG = RuleOption("along", "traversal", "a traversal that moves along an index with it")
PHI = RuleOption("phi", "indices", "the new coordinates, as expressions in the traversals")
BY = RuleOption("by", "number", "how many values the inner digit has")
GUARD = RuleOption("guard", "number", "the guard's number among the scope's guards", 0)
LOW = RuleOption("low", "number", "the first position that is kept")
HIGH = RuleOption("high", "number", "the position after the last that is kept")
POSITION = RuleOption("position", "number", "where the second piece begins")
READ = RuleOption("read", "scope", "the scope that is read")
FIRST = RuleOption("first", "scope", "one of the two scopes")
SECOND = RuleOption("second", "scope", "the other")


def _its_inputs(op: ScopeOp) -> Callable[[ScopeOp], bool]:
    return lambda other: other.result in op.inputs


def _copies(op: ScopeOp) -> Callable[[ScopeOp], bool] | None:
    """The copies that a scope reads, as a filter; if some were derived with it, only those."""
    read = [v.owner for v in op.inputs if isinstance(v.owner, ScopeOp)]
    copies = [c for c in read if c.is_pointwise and len(c.inputs) == 1]
    own = family(op)
    chosen = [c for c in copies if own(c)] or copies
    return (lambda other: other in chosen or own(other)) if chosen else None


RULES: tuple[DerivationRule, ...] = (
    DerivationRule(
        "sum-split",
        every_sum_split,
        "the inner sums are some of the sums, not all: products distribute over sums",
        EINNET,
        DISTRIBUTED,
        OnBody(sum_split, (SUMS,)),
        limit=1,
    ),
    DerivationRule(
        "reindex",
        every_reindex,
        "each index's traversal part is an integer combination of the new coordinates",
        f"{EINNET}: variable substitution, boundary relaxing",
        GUARDED,
        OnBody(reindex, (PHI,)),
    ),
    DerivationRule(
        "split-sum",
        every_split_sum,
        "the digit is less than the extent; positions past the extent get a guard",
        f"{EINNET}: variable substitution",
        GUARDED,
        OnBody(split_sum, (SUMS, BY)),
        limit=2,
    ),
    DerivationRule(
        "split-traversal",
        every_split_traversal,
        "the digit is less than the extent",
        f"{EINNET}: variable substitution",
        GUARDED,
        OnBody(split_traversal, (TRAVERSAL, BY)),
        limit=2,
    ),
    DerivationRule(
        "split-traversals",
        every_split_traversals,
        "the digit is less than each extent",
        f"{EINNET}: variable substitution",
        GUARDED,
        OnBody(split_traversals, (TRAVERSALS, BY)),
        limit=1,
    ),
    DerivationRule(
        "shear-sum",
        every_shear_sum,
        "a bijection of the sum at each position of the traversal; a guard keeps its range",
        f"{EINNET}: variable substitution",
        GUARDED,
        OnBody(shear_sum, (SUM, ALONG)),
        limit=1,
    ),
    DerivationRule(
        "delta-intro",
        every_delta_intro,
        "a guard says that the division is whole",
        "EinNet, section 4",
        GUARDED,
        OnBody(delta_intro, (GUARD,), canonical=True),
        limit=1,
    ),
    DerivationRule(
        "delta-elim",
        every_delta_elim,
        "the guard e == 0 has coefficient 1 or -1 at the sum; the solution gets a guard",
        "EinNet, section 4",
        DROPPED,
        OnBody(delta_elim, (GUARD, SUM)),
    ),
)

EAGER: tuple[DerivationRule, ...] = (
    DerivationRule(
        "tighten-sums",
        single_step(tighten_sums),
        "at the positions left out an index is out of bounds whatever the other iterators are",
        f"{EINNET}: boundary tightening",
        DROPPED,
        OnBody(tighten_sums),
        eager=True,
    ),
    DerivationRule(
        "tighten",
        single_step(tighten),
        "at the positions left out an index is out of bounds whatever the other iterators are",
        f"{EINNET}: boundary tightening",
        DROPPED,
        OnBody(tighten),
        eager=True,
    ),
    DerivationRule(
        "drop-dead",
        single_step(drop_dead),
        "no index uses the traversals left out",
        f"{EINNET}: variable substitution",
        BITS,
        OnBody(drop_dead),
        eager=True,
    ),
)

# Not proposed for one scope by the search: they undo its steps, depend on the readers, or involve
# several scopes (the search applies the first three itself).
BY_HAND: tuple[DerivationRule, ...] = (
    DerivationRule(
        "merge-shared-operand",
        propose_nothing,
        "a bijection of their iterators makes the indices the same, and the extents but the "
        "stacked one, whose iterator indexes one dim of their own operands alone",
        f"{EINNET}: expression merging; TASO's concat",
        GUARDED,
        OnPair(merge_shared, (FIRST, SECOND)),
    ),
    DerivationRule(
        "merge-batch",
        propose_nothing,
        "a bijection of their iterators makes the indices the same, and all extents agree",
        "EinNet, section 5: expressions with different inputs batched; PET's batched products",
        ROUNDING,
        OnPair(merge_batch, (FIRST, SECOND)),
    ),
    DerivationRule(
        "merge-parts",
        propose_nothing,
        "a bijection of their iterators makes the indices the same but for places in one tensor, "
        "which lie at equal distances",
        "EinNet, section 5: expressions with different inputs batched; PET's batched products",
        ROUNDING,
        OnPair(merge_parts, (FIRST, SECOND)),
    ),
    DerivationRule(
        "merge-rows",
        propose_nothing,
        "the shared operand's indices agree: its traversals in the second are integer combinations "
        "of the first's, its windows move by one step; the own operands have guards elsewhere",
        f"{EINNET}: expression merging; section 2, Figure 3",
        GUARDED,
        OnPair(merge_rows, (FIRST, SECOND)),
    ),
    DerivationRule(
        "flatten",
        every_flatten,
        "the places of a box are numbered: a bijection",
        f"{EINNET}: variable substitution",
        GUARDED,
        OnBody(flatten, (TRAVERSALS,)),
    ),
    DerivationRule(
        "merge-copies",
        propose_nothing,
        "what is read is one read of something else; guards keep the read inside it",
        f"{EINNET}: traversal merging",
        GUARDED,
        OnScope(copies_read_through, _copies),
        eager=True,
    ),
    DerivationRule(
        "traversal-merge",
        every_traversal_merge,
        "what is read is one sum of products; guards keep the read inside it",
        f"{EINNET}: traversal merging",
        DISTRIBUTED,
        OnBody(merge_into_reader, (READ,)),
    ),
    DerivationRule(
        "factor-sum",
        propose_nothing,
        "an order of their sums makes the shared reads equal, which use sums",
        "distributivity",
        DISTRIBUTED,
        OnScope(factor_sum, lambda op: inner_contractions(op).__contains__),
    ),
    DerivationRule(
        "expression-split",
        every_expression_split,
        "the position lies inside the traversal: each piece is 0 outside its own positions",
        f"{EINNET}: expression splitting",
        BITS,
        OnBody(expression_split, (TRAVERSAL, POSITION)),
    ),
    DerivationRule(
        "expression-fuse",
        propose_nothing,
        "the two pieces are what expression-split makes of the whole",
        f"{EINNET}: expression fusion",
        BITS,
        OnScope(expression_fuse, _its_inputs),
    ),
    DerivationRule(
        "restrict",
        propose_nothing,
        "no reader reads the positions left out",
        "EinNet, section 4: boundary tightening",
        BITS,
        OnBody(restrict, (TRAVERSAL, LOW, HIGH), allows=readers_within),
    ),
)


def named(name: str) -> DerivationRule:
    """The rule of that name."""
    return next(rule for rule in (*RULES, *EAGER, *BY_HAND) if rule.name == name)

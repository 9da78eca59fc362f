"""What rewrites do to floats: three labels, and what the user allows.

    bits        the same floats, infinities and NaN included
    rounding    differs by rounding while inputs and the source's intermediates are finite and 2^16
                below overflow; `infinities` says what happens to infinities and NaN
    values      may differ otherwise: like terms combined, constants cancelled

Reassociating or distributing is `rounding`, of elementwise ops too. Combining or cancelling terms
is `values`, outside of a contraction (a sum over iterators). Two things count as the same floats:
NaN of any payload, and zeros of either sign where a maximum or minimum of both is taken.

Every pass, rule and search carries its `Floats`; none has a default. docs/trust.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .errors import UserError


class Label(StrEnum):
    """How far floats may differ; see the module."""

    BITS = "bits"
    ROUNDING = "rounding"
    VALUES = "values"


@dataclass(frozen=True)
class Floats:
    """What a rewrite does to floats.

    Attributes:
        infinities: what happens to infinities and NaN, in words; empty where they are kept.
    """

    label: Label
    infinities: str = ""

    def entry(self) -> dict[str, str]:
        """The fields of a report's entry."""
        return {"floats": self.label.value, "infinities": self.infinities or "kept"}

    def __or__(self, other: Floats) -> Floats:
        """The combined effect of two rewrites, one after the other."""
        order = list(Label)
        label = max(self.label, other.label, key=order.index)
        words = dict.fromkeys(filter(None, (self.infinities, other.infinities)))
        return Floats(label, "; ".join(words))


BITS = Floats(Label.BITS)
ROUNDING = Floats(Label.ROUNDING)
VALUES = Floats(Label.VALUES, "as the rewritten program has them")
# What several rewrites do to infinities. A product is distributed over a sum, or factored out.
DISTRIBUTED = Floats(Label.ROUNDING, "inf times a sum is not the sum of the products")
# A position where a factor is 0 anyway is skipped.
DROPPED = Floats(Label.ROUNDING, "products with 0 are left out: inf times 0 is no NaN there")
# A position that must not count is multiplied by a guard, which is 0 there.
GUARDED = Floats(Label.ROUNDING, "what must not count is multiplied by 0: inf times 0 is NaN")
# Inputs are added before they are multiplied.
MIXED = Floats(Label.ROUNDING, "inf and NaN spread over the tile that they are added up in")


@dataclass(frozen=True)
class Allowed:
    """What the user allows rewrites to do to floats.

    Attributes:
        fast_math: also `values`.
        strict_nan: nothing that changes infinities or NaN.

    Raises:
        UserError: both are set.
    """

    fast_math: bool = False
    strict_nan: bool = False

    def __post_init__(self) -> None:
        if self.fast_math and self.strict_nan:
            hint = "choose one"
            raise UserError("--fast-math and --strict-nan exclude each other", hint=hint)

    def allows(self, floats: Floats) -> bool:
        """Whether a rewrite may be used."""
        if floats.label is Label.VALUES:
            return self.fast_math
        return not (self.strict_nan and floats.infinities)

    def why_not(self, floats: Floats) -> str:
        """The reason why a rewrite is not used, for reports and errors."""
        if floats.label is Label.VALUES:
            return "it may change values: it needs --fast-math"
        return f"--strict-nan: {floats.infinities}"

    @property
    def key(self) -> str:
        """A key that separates cached results by permissions; empty for the defaults."""
        return " ".join(n for n in ("fast_math", "strict_nan") if getattr(self, n))

"""The seconds that programs take, modelled or measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cost.costs import Costs
from ..derivation.price import ScopePrices
from ..search_result import Measure


@dataclass(frozen=True)
class Prices:
    """The seconds that programs take.

    Attributes:
        measure: median seconds of programs, run in turn; None where the target does not run here,
            and the model of `costs` decides.
    """

    costs: Costs
    measure: Measure | None = None

    def scopes(self, known: Sequence[str]) -> ScopePrices:
        """Modelled prices of scopes, of leaves of which these are weights."""
        return ScopePrices(known, costs=self.costs)

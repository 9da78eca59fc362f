"""Substitution in a row of searches: it ends some programs after the best one."""

from __future__ import annotations

from ...dialects.program import Program
from ..cost.costs import Costs
from ..search_result import Limits, SearchResult
from . import search as substitution

# On the zoo's models the best program came at most 140 programs after the second best.
PATIENCE = 150


def search(program: Program, costs: Costs, limits: Limits) -> SearchResult:
    """The best program by modelled cost that the generated rules reach."""
    settings = substitution.SubstitutionSettings(patience=PATIENCE)
    return substitution.search(program, costs, limits, settings=settings)

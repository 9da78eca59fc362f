"""Equivalence of two programs at every output position; verdict.py defines what is claimed."""

from .compare import compare, correspondence, fresh_seed
from .verdict import (
    Assumption,
    Difference,
    FoldedConstant,
    Kind,
    OutputVerdict,
    Verdict,
)

__all__ = [
    "Assumption",
    "Difference",
    "FoldedConstant",
    "Kind",
    "OutputVerdict",
    "Verdict",
    "compare",
    "correspondence",
    "fresh_seed",
]

"""Schedule reuse (ETO): tune few operators in full, and build the others' programs from theirs.

Source: Fang, Shen, Wang, Chen: ETO: accelerating optimization of DNN operators by high-performance
tensor program reuse. PVLDB 15(2), 2022. docs/schedule-reuse.md is the guide.
"""

from .kernel_nests import nest_of, nests_of
from .nest import OperatorNest, bridges, can_reuse, reuse_pairs
from .pair_cost import pair_cost
from .select import Arc, ReusePlan, select

__all__ = [
    "Arc",
    "OperatorNest",
    "ReusePlan",
    "bridges",
    "can_reuse",
    "nest_of",
    "nests_of",
    "pair_cost",
    "reuse_pairs",
    "select",
]

"""Schedule reuse (ETO): tune few operators in full, and build the others' programs from theirs.

    nests_of(program)                       the loops of each kernel's main work
    select(nests, hops)                     a plan: who is tuned in full, who starts from whom
    search(a, b, known, machine, measure)   a's programs, built from the known one of b

Source: Fang, Shen, Wang, Chen: ETO: accelerating optimization of DNN operators by high-performance
tensor program reuse. PVLDB 15(2), 2022.
"""

from .gpu_schedule_model import ModelledGpu
from .hierarchical import Task, Trials, hierarchical_search
from .kernel_nests import kernel_nest, nest_of, nests_of, operator_of
from .machine import Cpu, Gpu
from .nest import OperatorNest, bridges, can_reuse, reuse_pairs
from .pair_cost import back_end_cost, pair_cost
from .select import Arc, ReusePlan, select
from .simple_sketches import FusedSchedule, search, search_parts
from .tile_schedule import TileSchedule

__all__ = [
    "Arc",
    "Cpu",
    "FusedSchedule",
    "Gpu",
    "ModelledGpu",
    "OperatorNest",
    "ReusePlan",
    "Task",
    "TileSchedule",
    "Trials",
    "back_end_cost",
    "bridges",
    "can_reuse",
    "hierarchical_search",
    "kernel_nest",
    "nest_of",
    "nests_of",
    "operator_of",
    "pair_cost",
    "reuse_pairs",
    "search",
    "search_parts",
    "select",
]

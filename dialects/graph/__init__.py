"""The graph dialect: DNN operators on ranked tensors.

Regular by construction (base.py): one class for an op, one file for a family. Elementwise ops take
equal shapes. Broadcasting, padding and layout changes are ops of their own; they become index
expressions when lowered, and then cost nothing.
"""

from xdsl.ir import Dialect

from ..dims_attr import DimsAttr
from .base import Canonicalization, GraphOp
from .canonical import PATTERNS
from .contraction import CONTRACTION_OPS
from .data import DATA_OPS, ConstantOp, OpaqueOp, WeightOp
from .elementwise import ELEMENTWISE_OPS
from .pooling import POOLING_OPS
from .reduction import REDUCTION_OPS
from .shaping import SHAPING_OPS

OPS = (
    *ELEMENTWISE_OPS,
    *CONTRACTION_OPS,
    *POOLING_OPS,
    *REDUCTION_OPS,
    *SHAPING_OPS,
    *DATA_OPS,
)
GRAPH = Dialect("graph", list(OPS), [DimsAttr])
Canonicalization.patterns.update(PATTERNS)

__all__ = ["GRAPH", "OPS", "ConstantOp", "GraphOp", "OpaqueOp", "WeightOp"]

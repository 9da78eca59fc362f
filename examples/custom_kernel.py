"""A library kernel: isoform-opt m.mlir --plugin custom_kernel.py -p algebra-to-kernel"""

from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.kernel import KernelOp
from isoform.dialects.scalars import factors
from isoform.lowering.algebra_to_kernel.table import SOME, LibraryKernel


@irdl_op_definition
class OuterOp(KernelOp):
    """The product of each element of one tensor with each of another."""

    name = "demo.outer"


def is_outer(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """Whether a scope multiplies two reads whose iterators are all different ones."""
    reads = factors(scope.expr()) or []
    used = [k for read in reads for index in read.index for k in index.iterators]
    return len(reads) == 2 and sorted(used) == list(range(len(scope.extents)))


NONE = (0, 0)
GROUPS = {"batch": NONE, "m": SOME, "n": SOME, "k": NONE}

DIALECTS = [Dialect("demo", [OuterOp])]
KERNELS = [LibraryKernel("outer", GROUPS, strided=True, op=OuterOp, takes=is_outer)]

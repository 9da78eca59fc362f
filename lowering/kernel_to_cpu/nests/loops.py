"""Generate the code of `kernel.loops`: fused scopes, through loop nests."""

from __future__ import annotations

from ....dialects.kernel import KernelOp
from ..emit.module import KernelCode
from ..isa import Isa


def emit_loops(op: KernelOp, isa: Isa) -> KernelCode:
    """Emit one kernel. Arguments: the operands in order, then the result."""
    # Imported when there is such a kernel: with xDSL's ops, nests take a while to import.
    from ...kernel_to_nest.schedule import loops
    from ...nest_to_llvm.printer import print_llvm

    return print_llvm(loops(op, isa))

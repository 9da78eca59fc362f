"""A machine with a library of its own.

    isoform optimize m.onnx --plugin custom_target.py --target dsp
    isoform-opt m.mlir --plugin custom_target.py -p algebra-to-kernel -t dsp

Three lists say it all. MACHINES: what the cost model knows of the machine. KERNELS: what its
library computes, here outer products, as an entry of the table of library kernels. TARGETS: how a
program is printed for it, here as calls of the library.
"""

from dataclasses import dataclass, replace
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.utils.target import Target

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.kernel import KernelOp
from isoform.dialects.program import main_of, printed_names
from isoform.dialects.scalars import factors
from isoform.lowering.algebra_to_kernel.table import SOME, LibraryKernel
from isoform.lowering.targets import CPU


@irdl_op_definition
class OuterOp(KernelOp):
    """The product of each element of one tensor with each of another, by the library."""

    name = "dsp.outer"


def is_outer(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """Whether a scope multiplies two reads whose iterators are all different ones."""
    reads = factors(scope.expr()) or []
    used = [k for read in reads for index in read.index for k in index.iterators]
    return len(reads) == 2 and sorted(used) == list(range(len(scope.extents)))


@dataclass(frozen=True)
class DspCalls(Target):
    """Prints a call a kernel: `y = dsp_outer(a, b)`."""

    name: ClassVar[str] = "dsp"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the program line by line."""
        block = main_of(module).body.block
        values = [*block.args, *(result for op in block.ops for result in op.results)]
        names = printed_names(module, values)
        for op in block.ops:
            given = ", ".join(names[value] for value in op.operands)
            if isinstance(op, ReturnOp):
                output.write(f"return {given}\n")
            else:
                made = ", ".join(names[value] for value in op.results)
                output.write(f"{made} = {op.name.replace('.', '_')}({given})\n")


NONE = (0, 0)
GROUPS = {"batch": NONE, "m": SOME, "n": SOME, "k": NONE}

DIALECTS = [Dialect("dsp", [OuterOp])]
KERNELS = [LibraryKernel("outer", GROUPS, strided=True, op=OuterOp, takes=is_outer)]
TARGETS = [DspCalls]
MACHINES = [
    replace(
        CPU,
        name="dsp",
        text="a signal processor at 8 GFLOP/s with 256 KiB on the chip",
        peak={"f32": 8e9},
        bandwidth=2e9,
        caches=(256 << 10,),
        cache_bandwidth=16e9,
        launch=5e-6,
        libraries=("dsp",),
        runs_here=False,
    )
]

"""fast-math: let generated code reassociate elementwise arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from ..dialects.floats import VALUES, Floats
from ..dialects.kernel import FAST_MATH, KernelOp
from ..dialects.program import main_of


@dataclass(frozen=True)
class FastMath(ModulePass):
    """Mark every kernel: its elementwise adds and multiplications may be taken in any order.

    Code generation then lets LLVM reassociate, contract and cancel: `(x + c) - c` is x. Without
    this pass arithmetic is computed as written. `--fast-math` adds it, last of all.

    Before:

        %y = kernel.loops (%0 = %x, %1 = %c) { ... (%0[i] + %1[]) - %1[] ... }

    After:

        %y = kernel.loops (%0 = %x, %1 = %c) { ... (%0[i] + %1[]) - %1[] ... } {isoform.fast_math}
    """

    name = "fast-math"
    floats: ClassVar[Floats] = VALUES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Mark."""
        for kernel in main_of(op).body.block.ops:
            if isinstance(kernel, KernelOp):
                kernel.attributes[FAST_MATH] = UnitAttr()

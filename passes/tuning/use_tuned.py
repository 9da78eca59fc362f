"""use-tuned: give kernels the schedules that `isoform tune` found for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.cache_folder import tuned_file
from ...dialects.floats import ROUNDING, Floats
from ...dialects.kernel import KernelOp
from ...dialects.program import main_of
from ...dialects.schedule import Schedule
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.schedule_space import OTHERS
from ...lowering.targets import CPU
from .measure_schedules import processor_here, task_of
from .tuned_kernels import TunedKernels


@dataclass(frozen=True)
class UseTuned(ModulePass):
    """Set the schedule of each kernel that the database has a tuned one for, on this processor.

    Kernels that have a schedule keep it. Sums may be taken in another order.

    Options: `database` is the file; without it, that of the user's cache folder.

    Before:

        %y = kernel.gemm (%0 = %x, %1 = %w) { ... }

    After:

        %y = kernel.gemm (%0 = %x, %1 = %w) schedule {depth = 384 : i64, ...} { ... }
    """

    name = "use-tuned"
    floats: ClassVar[Floats] = ROUNDING
    database: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look up every kernel."""
        path = tuned_file() if self.database is None else Path(self.database)
        if path is None or not path.exists():
            return
        known = TunedKernels(path)
        processor, _ = processor_here()
        if processor not in known.processors():
            return
        constants = constant_values(op)
        for kernel in main_of(op).body.block.ops:
            if not isinstance(kernel, KernelOp) or kernel.result in constants:
                continue
            space = CPU.generator().space(kernel, constants)
            if space is None or Schedule.on(kernel, OTHERS).entries:
                continue
            found = known.schedule(task_of(kernel, constants).signature, processor)
            # Buffers shared with others have other strides than the kernel had by itself.
            if found is not None and space.refusal(found) is None:
                found.put_on(kernel)

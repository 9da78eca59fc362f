"""tune: measure the ways each kernel can run on this machine, and keep the fastest allowed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.errors import UserError
from ...dialects.kernel import ConvOp, GemmOp, KernelOp
from ...dialects.program import main_of
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.kernel_to_cpu.isa import Isa
from ..cost_file import CostFile, Measured, load_cost_file
from ..signature import key, signature
from .alternatives import DIRECT, EFFORTS, Alternative, alternatives, named
from .measure import Result, isolate, measure

# An alternative must win by this much: less is noise, and the direct way is the safer one.
MARGIN = 0.97


@dataclass(frozen=True)
class Tune(ModulePass):
    """Measure how each convolution and product runs fastest on this machine, and rewrite it so.

    Options: `effort` quick (measure nothing), default (direct against Winograd F(2,3) and F(4,3))
    or max (register blocks too); `tolerance` bounds the error, relative to the largest magnitude on
    random data, that an inexact algorithm may add; `cost-file` holds what was measured before, and
    receives what is measured now: with it, the same choices are made again.

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... sum (c: 64, r: 3, s: 3) ... }

    After (where F(4,3) was measured faster, and close enough):

        %m = kernel.gemm (%0 = %v, %1 = %u) { ... }
        %y = kernel.loops (%0 = %m, %1 = %at) schedule {tile = array<i64: 1, 1, 4, 4>} { ... }
    """

    name = "tune"
    effort: str = "default"
    tolerance: float = 1e-5
    threads: int = 1
    seed: int = 0
    cost_file: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.effort not in EFFORTS:
            raise UserError(
                f"unknown effort '{self.effort}'", where="tune", expected=", ".join(EFFORTS)
            )
        isa = Isa.host()
        constants = constant_values(op)
        kernels = [
            kernel
            for kernel in main_of(op).body.block.ops
            if isinstance(kernel, ConvOp | GemmOp) and kernel.result not in constants
        ]
        known = self._known()
        for group in _by_signature(kernels, constants):
            chosen = self._choose(group[0], constants, isa, known)
            for kernel in group:
                chosen.apply(kernel)
        if self.cost_file is not None:
            known.save(self.cost_file)

    def _known(self) -> CostFile:
        if self.cost_file is not None and Path(self.cost_file).exists():
            return load_cost_file(self.cost_file)
        return CostFile("cpu")

    def _choose(
        self, op: KernelOp, constants: set[SSAValue], isa: Isa, known: CostFile
    ) -> Alternative:
        """The alternative to use: what the cost file says, else what is measured now."""
        label = f"tune {isa.name} threads={self.threads} tolerance={self.tolerance:g} {self.effort}"
        text = f"{label}: {core_signature(op, constants)}"
        before = known.ops.get(key(text))
        if before is not None and (old := named(before.algorithm, op, isa)) is not None:
            return old
        choices = alternatives(op, isa, self.effort)
        if len(choices) == 1:
            return choices[0]
        results = measure(op, constants, choices, self.threads, self.seed)
        best = self._best(results)
        known.add(
            Measured(
                text, best.seconds * 1e6, best.low * 1e6, best.high * 1e6, best.alternative.name
            )
        )
        return best.alternative

    def _best(self, results: list[Result]) -> Result:
        direct = next(r for r in results if r.alternative.name == DIRECT)
        allowed = [r for r in results if r.alternative.exact or r.error <= self.tolerance]
        best = min(allowed, key=lambda r: r.seconds)
        return best if best.seconds < direct.seconds * MARGIN else direct


def core_signature(op: KernelOp, constants: set[SSAValue]) -> str:
    """What a kernel's choice depends on: its contraction, layouts, which operands are constant."""
    program, core = isolate(op, constants, 0)
    text = signature(core)
    program.module.drop_all_references()
    return text


def _by_signature(kernels: Iterable[KernelOp], constants: set[SSAValue]) -> list[list[KernelOp]]:
    """Kernels grouped by what their choice depends on, in program order."""
    groups: dict[str, list[KernelOp]] = {}
    for kernel in kernels:
        groups.setdefault(core_signature(kernel, constants), []).append(kernel)
    return list(groups.values())

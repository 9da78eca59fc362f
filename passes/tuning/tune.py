"""tune: measure each kernel's implementations on this machine, keep the fastest allowed one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.deadline import check_time
from ...dialects.errors import UserError
from ...dialects.floats import MIXED, Allowed, Floats
from ...dialects.kernel import ConvOp, GemmOp, KernelOp
from ...dialects.program import main_of
from ...dialects.signature import key, signature
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.targets import CPU
from ..cost.cost_file import CostFile, Measured
from ..margins import ACCEPT
from .alternatives import DIRECT, EFFORTS, Alternative, alternatives, named
from .database import TARGET, add_choices, prune, read_choices
from .measure_alternatives import Measurement, isolate_contraction, measure
from .note import add_note, chosen_algorithm, mark_algorithm

# Incremented when alternatives or their errors change: choices of older generations are not used.
GENERATION = 4


@dataclass(frozen=True)
class Tune(ModulePass):
    """Measure the implementations of each convolution and product here, and use the fastest.

    Options: `effort` quick (measure nothing), default (direct against Winograd) or max (also
    register blocks); `tolerance` bounds the error, relative to the largest magnitude on random
    data, that an inexact algorithm may add. `cost-file` holds earlier measurements and receives new
    ones: with it, the same choices are made again. With `strict-nan` no algorithm that changes
    infinities or NaN is used. `database` is shared by all programs of a user: one that is broken,
    or cannot be written, is ignored.

    One thread is measured, by its own clock: a busy machine changes no choice, and a program gives
    the same results on any number of threads. A measured kernel says so in its schedule
    (`algorithm`), and is not measured again: a written program keeps its choices.

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... sum (c: 64, r: 3, s: 3) ... }

    After (where F(4,3) was measured faster, and close enough):

        %m = kernel.gemm (%0 = %v, %1 = %u) { ... }
        %y = kernel.loops (%0 = %m, %1 = %at) schedule {tile = array<i64: 1, 1, 4, 4>} { ... }
    """

    name = "tune"
    floats: ClassVar[Floats] = MIXED
    effort: str = "default"
    tolerance: float = 1e-5
    seed: int = 0
    cost_file: str | None = None
    database: str | None = None
    strict_nan: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose once for each contraction, and rewrite every kernel that computes it."""
        if self.effort not in EFFORTS:
            raise UserError(
                f"unknown effort '{self.effort}'", where="tune", expected=", ".join(EFFORTS)
            )
        known, new = self._known(), CostFile(TARGET)
        if self.effort == "quick":
            return  # there is nothing to compare
        constants = constant_values(op)
        kernels = [
            kernel
            for kernel in main_of(op).body.block.ops
            if isinstance(kernel, ConvOp | GemmOp)
            and kernel.result not in constants
            and chosen_algorithm(kernel) is None
        ]
        try:
            with CPU.generator().keep_workers():
                for text, group in _by_signature(kernels, constants).items():
                    check_time()
                    choice = self._choose(text, group[0], constants, known, new)
                    for kernel in group:
                        _apply(choice, kernel)
        finally:  # measurements before an interruption are kept
            for path in (self.cost_file, self.database):
                if path is not None and new.ops:
                    self._keep(Path(path), new)

    def _known(self) -> CostFile:
        """Earlier measurements; the cost file takes precedence over the database."""
        known = CostFile(TARGET)
        if self.database is not None:
            known.merge(read_choices(Path(self.database), broken_is_empty=True))
        if self.cost_file is not None:
            known.merge(read_choices(Path(self.cost_file), broken_is_empty=False))
        return known

    def _keep(self, path: Path, new: CostFile) -> None:
        if str(path) == self.cost_file:
            add_choices(path, new, broken_is_empty=False)
            return
        with contextlib.suppress(OSError, UserError):  # no cache folder: measured again next time
            path.parent.mkdir(parents=True, exist_ok=True)
            add_choices(path, new, broken_is_empty=True)
            prune(path)

    def _choose(
        self, text: str, op: KernelOp, constants: set[SSAValue], known: CostFile, new: CostFile
    ) -> _Choice:
        """The alternative to use, from earlier measurements or a new one."""
        generator = CPU.generator()
        label = f"tune {GENERATION} {generator.name} tolerance={self.tolerance:g} {self.effort}"
        label += " strict-nan" if self.strict_nan else ""
        entry = known.ops.get(key(f"{label}: {text}"))
        if (
            entry is not None
            and (old := named(entry.algorithm, op, constants, generator)) is not None
        ):
            return _Choice(old, entry)
        allowed = Allowed(strict_nan=self.strict_nan)
        choices = [
            c
            for c in alternatives(op, constants, generator, self.effort)
            if allowed.allows(c.floats)
        ]
        if len(choices) == 1:
            return _Choice(choices[0], None)
        results = self._measure(op, constants, choices)
        best = self._best(results)
        direct = next(r for r in results if r.alternative.name == DIRECT)
        times = (best.seconds * 1e6, best.low * 1e6, best.high * 1e6)
        more = (best.alternative.name, direct.seconds * 1e6, best.error)
        entry = Measured(f"{label}: {text}", *times, *more)
        new.add(entry)
        return _Choice(best.alternative, entry)

    def _measure(
        self, op: KernelOp, constants: set[SSAValue], choices: list[Alternative]
    ) -> list[Measurement]:
        """All alternatives except spare ones, unless no other inexact one is exact enough."""
        spare = [c for c in choices if c.spare]
        results = measure(op, constants, [c for c in choices if not c.spare], self.seed)
        inexact = [r for r in results if not r.alternative.exact]
        if not spare or any(r.error <= self.tolerance for r in inexact):
            return results
        return results + measure(op, constants, [choices[0], *spare], self.seed)[1:]

    def _best(self, results: list[Measurement]) -> Measurement:
        direct = next(r for r in results if r.alternative.name == DIRECT)
        allowed = [r for r in results if r.alternative.exact or r.error <= self.tolerance]
        best = min(allowed, key=lambda r: r.seconds)
        return best if best.seconds < direct.seconds * ACCEPT.kernel else direct


def core_signature(op: KernelOp, constants: set[SSAValue]) -> str:
    """The key of a kernel's choice: its contraction, layouts, which operands are constant."""
    program, core = isolate_contraction(op, constants, 0)
    text = signature(core)
    program.module.drop_all_references()
    return text


def _by_signature(
    kernels: Iterable[KernelOp], constants: set[SSAValue]
) -> dict[str, list[KernelOp]]:
    """Kernels grouped by the key of their choice, in program order."""
    groups: dict[str, list[KernelOp]] = {}
    for kernel in kernels:
        groups.setdefault(core_signature(kernel, constants), []).append(kernel)
    return groups


@dataclass(frozen=True)
class _Choice:
    """The alternative for a kernel, and the measurement that selects it."""

    alternative: Alternative
    measured: Measured | None


def _apply(choice: _Choice, kernel: KernelOp) -> None:
    """Rewrite a kernel; the op that gives its result records the gain."""
    made = list(choice.alternative.apply(kernel))
    entry = choice.measured
    if entry is None:
        return
    for op in made:
        if isinstance(op, ConvOp | GemmOp):
            mark_algorithm(op, choice.alternative.name)
    if choice.alternative.name == DIRECT:
        return
    direct = entry.us if entry.direct_us is None else entry.direct_us
    delta = (entry.us - direct) * 1e-6
    floats = choice.alternative.floats
    add_note(made[-1], choice.alternative.name, floats, delta, entry.error or 0.0)

"""How a program is compiled for the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialects.errors import UserError
from ...dialects.floats import Allowed
from ...lowering.kernel_to_cpu.runtime.cores import processors

EFFORTS = ("quick", "default", "max")
TOLERANCE = 1e-5
# This many threads are accepted on any machine.
MOST_THREADS = 64


@dataclass(frozen=True)
class CpuOptions:
    """How a program is compiled.

    Attributes:
        effort: what is measured: nothing, algorithms, or algorithms and register blocks.
        tolerance: relative error that an inexact algorithm (Winograd) may add.
        cost_file: measured choices to use and extend, instead of those in the cache folder.
        floats: what rewrites may do to floats.
    """

    threads: int
    effort: str = "default"
    tolerance: float = TOLERANCE
    cost_file: str | None = None
    floats: Allowed = field(default_factory=Allowed)

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise UserError(
                f"unknown effort '{self.effort}'", where="--effort", expected=", ".join(EFFORTS)
            )
        whole = isinstance(self.threads, int)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or self.threads < 1:
            raise UserError("a whole number above 0", where="--threads", found=self.threads)
        most = max(MOST_THREADS, 2 * processors())
        if self.threads > most:
            raise UserError(
                "more threads than this machine can use",
                where="--threads",
                expected=f"at most {most} (it has {processors()} processors)",
                found=self.threads,
            )
        if not self.tolerance >= 0:
            raise UserError(
                "a tolerance is a number from 0 up", where="--tolerance", found=self.tolerance
            )

    @property
    def uses_tuned(self) -> bool:
        """Whether kernels take the schedules that `isoform tune` found."""
        return self.effort != "quick" and self.cost_file is None

    @property
    def key(self) -> str:
        """What the kernels of a program depend on; they are the same on any number of threads."""
        return f"{self.effort} {self.tolerance!r} {self.floats.key}"

"""What passes may ask of a target whose kernels run here, whatever prints them.

`Target.generator` (targets.py) gives the one of a target. Passes import no code generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from xdsl.ir import SSAValue

from ..dialects.kernel import KernelOp
from ..dialects.program import Program
from ..dialects.types import Array


class TimedSession(Protocol):
    """A compiled program whose kernels can be timed one by one."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Inputs by name, of the exact shapes and dtypes."""
        ...

    def time(self, values: set[SSAValue]) -> float:
        """Seconds that the kernels making these values take, on what the last run left behind."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class CodeGenerator(Protocol):
    """A printer of kernels and the machine that it prints for."""

    @property
    def name(self) -> str:
        """The instruction set, as choices that were measured name it."""
        ...

    @property
    def lanes(self) -> int:
        """How many float32 numbers a vector holds."""
        ...

    def machine_kind(self) -> str:
        """What a measured time depends on beside the program: machine, compiler, sources."""
        ...

    def register_blocks(self, op: KernelOp) -> list[tuple[int, int]]:
        """Register blocks (rows, vectors) worth comparing with the default one."""
        ...

    def block_tiles(self, tiles: int, places: int, channels: int, features: int) -> int:
        """How many tiles of a transformed product to work on at a time.

        0 where blocks fit no cache, or are too few to share out.
        """
        ...

    def sessions(self, programs: Sequence[Program]) -> Sequence[TimedSession]:
        """Programs compiled for one thread, their kernels side by side."""
        ...

    def keep_workers(self) -> AbstractContextManager[None]:
        """Keep what compiles side by side alive for several calls of `sessions`."""
        ...

"""The interface between passes and a target's code generator, whatever its output.

`Target.generator` (targets.py) returns a target's generator. Passes import no code generator.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from xdsl.ir import SSAValue

from ..dialects.kernel import KernelOp
from ..dialects.program import Program
from ..dialects.types import Array
from .schedule_space import Space


class TimedSession(Protocol):
    """A compiled program whose kernels can be timed one by one."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Inputs by name, of the exact shapes and dtypes."""
        ...

    def time(self, values: set[SSAValue], times: int = 1) -> float:
        """Seconds that the kernels defining these values take, on the buffers of the last run.

        Args:
            times: how often they run, one after the other; the seconds are for one run.
        """
        ...

    def close(self) -> None:
        """Free its memory and threads."""
        ...


class CodeGenerator(Protocol):
    """A code generator and the machine it generates for."""

    @property
    def name(self) -> str:
        """The instruction set, as measured choices name it."""
        ...

    @property
    def lanes(self) -> int:
        """How many float32 numbers a vector holds."""
        ...

    @property
    def processor(self) -> str:
        """The processor's name."""
        ...

    def machine_kind(self) -> str:
        """All that a measured time depends on beside the program: machine, compiler, sources."""
        ...

    def space(self, op: KernelOp, constants: Container[SSAValue]) -> Space | None:
        """What may vary in how a kernel is run; None if nothing.

        Args:
            constants: values that are known at compile time.
        """
        ...

    def block_tiles(self, tiles: int, positions: int, channels: int, features: int) -> int:
        """How many tiles of a transformed product to work on at a time.

        0 if blocks fit no cache, or are too few for the threads.
        """
        ...

    def sessions(self, programs: Sequence[Program]) -> Sequence[TimedSession]:
        """Programs compiled for one thread; their kernels are compiled in parallel."""
        ...

    def keep_workers(self) -> AbstractContextManager[None]:
        """Keep the parallel compilers alive for several calls of `sessions`."""
        ...

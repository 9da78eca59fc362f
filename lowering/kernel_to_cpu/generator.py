"""The CPU's implementation of `CodeGenerator`, the interface that passes use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ...dialects.executor import kept_workers
from ...dialects.kernel import ConvOp, GemmOp, KernelOp
from ...dialects.program import Program
from .emit.types import F32
from .isa import Isa
from .measurement_key import machine_kind
from .products import tiled_product
from .products.contraction import conv_schedules, gemm_schedules
from .session import CpuSession


@dataclass(frozen=True)
class CpuGenerator:
    """The CPU's code generator, by default for this machine's instruction set."""

    isa: Isa = field(default_factory=Isa.host)

    @property
    def name(self) -> str:
        """The name of the instruction set."""
        return self.isa.name

    @property
    def lanes(self) -> int:
        """How many float32 numbers a vector register holds."""
        return self.isa.lanes(F32)

    def machine_kind(self) -> str:
        """The instruction set, the compiler of the kernels, and the sources that make them."""
        return machine_kind()

    def register_blocks(self, op: KernelOp) -> list[tuple[int, int]]:
        """Register blocks of convolutions and products; other kernels have one."""
        match op:
            case ConvOp():
                return conv_schedules(op, self.isa)
            case GemmOp():
                return gemm_schedules(op, self.isa)
            case _:
                return []

    def block_tiles(self, tiles: int, positions: int, channels: int, features: int) -> int:
        """As many tiles as keep the block in the second-level cache."""
        return tiled_product.block_tiles(tiles, positions, channels, features)

    def sessions(self, programs: Sequence[Program]) -> Sequence[CpuSession]:
        """Sessions with one thread each."""
        return CpuSession.together(programs, threads=1)

    def keep_workers(self) -> AbstractContextManager[None]:
        """Keep the compiling processes alive."""
        return kept_workers()

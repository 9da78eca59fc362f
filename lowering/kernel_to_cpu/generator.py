"""The CPU's implementation of `CodeGenerator`, the interface that passes use."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ...dialects.executor import kept_workers
from ...dialects.kernel import ConvOp, GemmOp, KernelOp, LoopsOp
from ...dialects.program import Program
from ...dialects.schedule import tile_of, tiles_of
from ..schedule_space import Space
from .emit.types import F32
from .isa import Isa
from .measurement_key import machine_kind
from .products import transformed_product
from .products.contraction import conv_space, gemm_in, gemm_space
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

    @property
    def processor(self) -> str:
        """LLVM's name of the processor."""
        return self.isa.cpu

    def machine_kind(self) -> str:
        """The instruction set, the compiler of the kernels, and the sources that make them."""
        return machine_kind()

    def space(self, op: KernelOp, constants: Container[SSAValue]) -> Space | None:
        """What may vary in a convolution, a product or a generated nest; None of other kernels."""
        # Imported when there is such a kernel: with xDSL's ops, nests take a while to import.
        from ..kernel_to_nest.schedule import loops_space

        match op:
            case ConvOp():
                return conv_space(op, self.isa)
            case GemmOp() if tiles_of(op) is None:
                return gemm_space(op, op.outer(gemm_in(op).b.source) in constants, self.isa)
            case LoopsOp() if tile_of(op) is None:
                return loops_space(op, self.isa)
            case _:
                return None

    def block_tiles(self, tiles: int, positions: int, channels: int, features: int) -> int:
        """As many tiles as keep the block in the second-level cache."""
        return transformed_product.block_tiles(tiles, positions, channels, features)

    def sessions(self, programs: Sequence[Program]) -> Sequence[CpuSession]:
        """Sessions with one thread each."""
        return CpuSession.together(programs, threads=1)

    def keep_workers(self) -> AbstractContextManager[None]:
        """Keep the compiling processes alive."""
        return kept_workers()

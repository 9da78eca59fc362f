"""`isoform-opt -t nest-llvm`, `-t nest-cuda`: the nests of a module as text, by either printer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ...dialects.nest import NestOp


def _nests(module: ModuleOp) -> list[tuple[str, NestOp]]:
    """The name and op of each kernel: a `nest.kernel`, called a nest for short."""
    nests = [op for op in module.body.block.ops if isinstance(op, NestOp)]
    return [
        (f"kernel{k}" if nest.sym_name is None else nest.sym_name.data, nest)
        for k, nest in enumerate(nests)
    ]


@dataclass(frozen=True)
class NestLlvmTarget(Target):
    """Print each nest as a module of LLVM IR. Its items are iterations of the parallel loops.

    Example:

        isoform-opt kernels.mlir -p kernel-to-nest -t nest-llvm
    """

    name = "nest-llvm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from ...lowering.nest_to_llvm.printer import print_llvm

        for name, nest in _nests(module):
            code = print_llvm(nest)
            output.write(f"; {name}: {code.items} items\n{code.ir}\n")


@dataclass(frozen=True)
class NestCudaTarget(Target):
    """Print each nest as a CUDA kernel, a thread for each iteration of its parallel loops.

    Example:

        isoform-opt kernels.mlir -p kernel-to-nest -t nest-cuda
    """

    name = "nest-cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from ...lowering.kernel_to_cuda.writer import identifier
        from ...lowering.nest_to_cuda import print_cuda

        for name, nest in _nests(module):
            output.write(print_cuda(nest, f"{identifier(name)}_kernel").source + "\n")

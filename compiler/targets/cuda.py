"""`isoform-opt -t cuda`: a whole program as CUDA, and the weights file that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ...dialects.errors import UserError
from ...dialects.files import write_whole
from ...dialects.program import Program
from ...dialects.weights import Weights, load_safetensors


@dataclass(frozen=True)
class CudaTarget(Target):
    """Print a program, at any level, as one .cu file: kernels, a launch for each step, and a main.

    The text needs no weights. With `data` the weights file that the built program reads is written
    too, from the program's literals and the safetensors file `weights`. `libraries` may name
    `cublas` and `cudnn`: products and convolutions then call them where they can.

    Example:

        isoform-opt r.mlir -t 'cuda{weights="r.safetensors" data="r.weights"}' -o r.cu
    """

    name = "cuda"

    weights: str = ""
    data: str = ""
    libraries: tuple[str, ...] = ()

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from ...lowering.kernel_to_cuda.build_program import cuda_program
        from ...lowering.kernel_to_cuda.print_cu_file import print_file
        from .levels import place

        unknown = [name for name in self.libraries if name not in ("cublas", "cudnn")]
        if unknown:
            raise UserError(f"unknown library '{unknown[0]}'", hint="cublas, cudnn")
        weights = load_safetensors(Path(self.weights)) if self.weights else Weights()
        program = place(Program(module.clone(), weights), target="cuda")
        made = cuda_program(program, with_weights=bool(self.data), libraries=self.libraries)
        if self.data:
            write_whole(self.data, made.weights)
        output.write(print_file(made, Path(self.data).stem if self.data else "program"))

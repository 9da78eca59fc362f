"""The cuda target: run a program on the GPU that is present."""

from __future__ import annotations

from ...dialects.errors import UserError
from ...dialects.program import Program
from ..frontends.program_file import check_weights
from .session import Runner


def compile_cuda(program: Program) -> Runner:
    """Print, compile and load a program for the present GPU, and copy its weights there.

    Products and convolutions call cuBLAS and cuDNN where these are installed.

    Raises:
        UserError: there is no GPU or driver package; an op has no CUDA code.
    """
    from ...lowering.kernel_to_cuda.build_program import cuda_program
    from ...lowering.kernel_to_cuda.pycuda_runtime import open_device
    from ...lowering.kernel_to_cuda.session import CudaSession
    from .levels import place

    runtime = open_device()
    check_weights(program)
    return CudaSession(
        cuda_program(place(program, target="cuda"), libraries=installed_libraries()), runtime
    )


def installed_libraries() -> tuple[str, ...]:
    """Which of cuBLAS and cuDNN load here."""
    from ...lowering.kernel_to_cuda.cublas import load_cublas
    from ...lowering.kernel_to_cuda.cudnn import load_cudnn

    found: list[str] = []
    for name, load in (("cublas", load_cublas), ("cudnn", load_cudnn)):
        try:
            load()
        except UserError:
            continue
        found.append(name)
    return tuple(found)

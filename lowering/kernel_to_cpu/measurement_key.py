"""A key of everything that a measured time depends on beside the program.

It hashes the sources that make kernels: times of older ones do not apply to new ones. It is
computed when something is compiled or looked up, never at start-up.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import llvmlite

from ...dialects.files import hash_of_sources
from .isa import Isa

_PACKAGE = Path(__file__).resolve().parents[2]
# The generators of kernels, the alternative algorithms, and the code that times them.
SOURCES = (
    "lowering/kernel_to_cpu",
    "lowering/kernel_to_nest",
    "lowering/nest_to_llvm",
    "lowering/node_to_nest",
    "passes/tuning",
    "passes/convolution/winograd.py",
    "passes/convolution/winograd_matrices.py",
    "passes/convolution/transposed_product.py",
    "passes/fusion/fuse_tiles.py",
)


def machine_kind() -> str:
    """The instruction set, the compiler of the kernels, and the sources that make them."""
    return f"{Isa.host()!r} {llvmlite.__version__} {_of_sources()}"


@cache
def _of_sources() -> str:
    return hash_of_sources([_PACKAGE / name for name in SOURCES])

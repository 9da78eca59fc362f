"""What a time measured on this machine depends on beside the program.

A hash of the sources that make kernels: times of older ones say nothing of today's. It is computed
where something is compiled or looked up, never at start-up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import llvmlite

from .isa import Isa

_PACKAGE = Path(__file__).resolve().parents[2]
# What writes the kernels, the other algorithms that they are compared with, and how they are timed.
SOURCES = (
    "lowering/kernel_to_cpu",
    "passes/tuning",
    "passes/winograd.py",
    "passes/winograd_matrices.py",
    "passes/transposed_product.py",
    "passes/fuse_tiles.py",
)


def machine_kind() -> str:
    """The instruction set, the compiler of the kernels, and the sources that make them."""
    return f"{Isa.host()!r} {llvmlite.__version__} {_of_sources()}"


@cache
def _of_sources() -> str:
    return hash_of_sources([_PACKAGE / name for name in SOURCES])


def hash_of_sources(paths: Sequence[Path]) -> str:
    """A hash of the contents of Python files, and of those in folders, by name."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.name}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()

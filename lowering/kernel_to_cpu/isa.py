"""Describe the vector unit that code is generated for."""

import os
import platform
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from .emit.types import Type

_LEVELS = ("plain", "avx2", "avx512")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Isa:
    """The properties that code generation depends on; part of every cache key.

    Units: `vector_bytes` is the width of one vector register, `registers` how many there are.
    """

    name: str
    cpu: str  # LLVM's name
    features: str  # LLVM's list
    vector_bytes: int
    registers: int

    @property
    def keeps_nan(self) -> bool:
        """Say whether one instruction takes a maximum that is NaN if an operand is."""
        return not _is_x86()

    @property
    def has_avx512(self) -> bool:
        """Say whether all instructions of AVX-512's first set, and those on bytes, are there."""
        return _is_x86() and self.vector_bytes == 64

    @property
    def multiplies_bytes(self) -> bool:
        """Say whether one instruction multiplies four bytes in every lane and adds them exactly."""
        wanted = "+avx512vnni" if self.vector_bytes == 64 else "+avxvnni"
        return self.vector_bytes >= 32 and wanted in self.features.split(",")

    def lanes(self, dtype: Type) -> int:
        """Count the elements of `dtype` that fill one vector register."""
        return max(1, self.vector_bytes // dtype.element.bytes)

    @staticmethod
    def host() -> "Isa":
        """Describe this machine, or the lower level that ISOFORM_ISA names."""
        forced = os.environ.get("ISOFORM_ISA")
        return Isa.named(forced) if forced else _host()

    @staticmethod
    def named(name: str) -> "Isa":
        """Describe the level `name`: "avx512", "avx2" or "plain".

        On a machine that is not x86 only "plain" exists.

        Raises: ValueError for a name that is unknown, or that this architecture lacks.
        """
        host = _host()
        if name == host.name:
            return host
        if name == "plain" and not _is_x86():
            return Isa("plain", "generic", "", 16, 32)
        if name not in _LEVELS or not _is_x86():
            choices = ", ".join(_LEVELS if _is_x86() else ("plain",))
            raise ValueError(f"no instruction set named {name!r}; choose one of {choices}")
        if name == "avx512":
            return Isa("avx512", "x86-64-v4", "", 64, 32)
        if name == "avx2":
            return Isa("avx2", "x86-64-v3", "", 32, 16)
        return Isa("plain", "x86-64", "", 16, 16)


def runnable() -> tuple[Isa, ...]:
    """List the levels this machine can execute, lowest first."""
    top = _host().name
    return tuple(Isa.named(name) for name in _LEVELS[: _LEVELS.index(top) + 1])


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


@cache
def _host() -> Isa:
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    if not _is_x86():
        return Isa("plain", cpu, features.flatten(), 16, 32)
    if all(features.get(name) for name in _AVX512):
        return Isa("avx512", cpu, features.flatten(), 64, 32)
    if features.get("avx2") and features.get("fma"):
        return Isa("avx2", cpu, features.flatten(), 32, 16)
    return Isa("plain", "x86-64", "", 16, 16)

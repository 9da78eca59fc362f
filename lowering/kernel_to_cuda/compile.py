"""Compile kernels to cubins with NVRTC, on machines without a GPU, and check their resources.

NVRTC comes from pip (extra `cuda-compile`); registers, spills and memory are read from its log. A
cubin runs on one architecture; PTX would be compiled again by every driver.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from .program_data import CudaKernel

ARCHITECTURES = {"a100": 80, "h100": 90, "h200": 90}
"""Compute capability, times ten, of the targets that kernels are compiled for."""
REGISTERS = 65536
"""Registers of one multiprocessor; a block must fit."""
SHARED_BYTES = 48 << 10
"""Static shared memory that a block may have."""
THREADS = 1024
_OPTIONS = ("--std=c++17", "--ptxas-options=-v")
_INSTALL = "pip install 'isoform[cuda-compile]'"


@dataclass(frozen=True)
class Cubin:
    """A compiled kernel and its resources, as the compiler reports them.

    Attributes:
        architecture: compute capability times ten.
        spill_bytes: values that do not fit into registers: stored, and loaded again.
        stack_bytes: arrays indexed by values that are only known at run time.
        notes: the compiler's warnings, one line each.
    """

    kernel: CudaKernel
    architecture: int
    image: bytes  # the machine code
    registers: int  # per thread
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    notes: tuple[str, ...]

    @property
    def block_registers(self) -> int:
        """Registers of one block: warps allocate them in units of 256."""
        warps = -(-self.kernel.threads // 32)
        return warps * (-(-self.registers * 32 // 256) * 256)

    def problems(self) -> list[str]:
        """Problems that keep the kernel from running, or from running well, if any."""
        found: list[str] = []
        if self.spill_bytes:
            found.append(f"spills {self.spill_bytes} bytes")
        if self.block_registers > REGISTERS:
            found.append(f"a block needs {self.block_registers} registers of {REGISTERS}")
        if self.shared_bytes > SHARED_BYTES:
            found.append(f"a block needs {self.shared_bytes} bytes of shared memory")
        if self.shared_bytes != self.kernel.shared_bytes:
            said = self.kernel.shared_bytes
            found.append(f"takes {self.shared_bytes} bytes of shared memory, not {said} as said")
        if self.kernel.threads > THREADS:
            found.append(f"a block has {self.kernel.threads} threads of {THREADS}")
        return found


class CompileError(Exception):
    """NVRTC rejects a kernel; the message names it and the first error.

    Cause: a bug of the code generator: no program or input may lead to it.

    Example: `tiled: line 12: identifier "zz" is undefined`
    """


def compile_kernel(kernel: CudaKernel, architecture: int = 90) -> Cubin:
    """Compile one kernel for one architecture.

    Raises:
        UserError: NVRTC is not installed, lacks the architecture, or a header is missing.
        CompileError: the text is not CUDA C.
    """
    nvrtc = _nvrtc()
    _check_architecture(architecture)
    made = _ok(nvrtc.nvrtcCreateProgram(kernel.source.encode(), b"kernel.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture=sm_{architecture}", *_OPTIONS, *_includes(kernel)]
        (status,) = nvrtc.nvrtcCompileProgram(made, len(options), [o.encode() for o in options])
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, made)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{kernel.name}: {_first_error(log)}")
        image = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, made)
    finally:
        nvrtc.nvrtcDestroyProgram(made)
    return _read_log(kernel, architecture, image, log)


def compile_kernels(kernels: Sequence[CudaKernel], architecture: int = 90) -> list[Cubin]:
    """Compile kernels, equal texts once. Raises as `compile_kernel`."""
    found: dict[str, Cubin] = {}
    for kernel in kernels:
        if kernel.source not in found:
            found[kernel.source] = compile_kernel(kernel, architecture)
    return [found[kernel.source] for kernel in kernels]


def architecture_of(target: str) -> int:
    """The architecture of a target. Raises UserError if kernels are not compiled for it."""
    if target not in ARCHITECTURES:
        hint = f"compiled for: {', '.join(ARCHITECTURES)}"
        raise UserError(f"no CUDA is compiled for '{target}'", where="--target", hint=hint)
    return ARCHITECTURES[target]


# --- the log ------------------------------------------------------------------------------------


def _read_log(kernel: CudaKernel, architecture: int, image: bytes, log: str) -> Cubin:
    def number(pattern: str) -> int:
        return sum(int(n) for n in re.findall(pattern, log))

    warnings = re.findall(r"kernel\.cu\((\d+)\): warning #[\w-]+: (.*)", log)
    return Cubin(
        kernel,
        architecture,
        image,
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes smem"),
        tuple(f"line {line}: {text}" for line, text in warnings),
    )


def _first_error(log: str) -> str:
    found = re.search(r"kernel\.cu\((\d+)\): (?:catastrophic )?error: (.*)", log)
    if found is not None:
        return f"line {found[1]}: {found[2].strip()}"
    lines = [line for line in log.splitlines() if "error" in line.lower()]
    return " ".join((lines or log.splitlines() or ["no reason given"])[0].split())


# --- NVRTC --------------------------------------------------------------------------------------


@cache
def _nvrtc() -> Any:
    """The binding of NVRTC, with its library loaded. Raises UserError if either is missing."""
    try:
        from cuda.bindings import nvrtc  # pyright: ignore[reportMissingImports]

        nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError) as error:
        raise UserError("compiling CUDA needs NVRTC", hint=_INSTALL) from error
    return nvrtc


@cache
def _check_architecture(architecture: int) -> None:
    known = _ok(_nvrtc().nvrtcGetSupportedArchs())
    if architecture not in known:
        expected = ", ".join(f"sm_{n}" for n in known)
        raise UserError(
            "this NVRTC lacks the architecture", expected=expected, found=f"sm_{architecture}"
        )


def _ok(result: Any) -> Any:
    """The value of a call that can only fail through a bug of ours."""
    status, value = result
    assert int(status) == 0, f"NVRTC: {status}"
    return value


def _bytes(size: Any, get: Any, program: Any) -> bytes:
    buffer = b" " * _ok(size(program))
    (status,) = get(program, buffer)
    assert int(status) == 0, f"NVRTC: {status}"
    return buffer


def _text(size: Any, get: Any, program: Any) -> str:
    return _bytes(size, get, program).rstrip(b"\0").decode(errors="replace")


def _includes(kernel: CudaKernel) -> list[str]:
    """The folder of CUDA's headers, if the text needs any (16-bit floats do)."""
    if "#include" not in kernel.source:
        return []
    for folder in _header_folders():
        if (folder / "cuda_fp16.h").is_file():
            return [f"--include-path={folder}"]
    hint = f"{_INSTALL}, or set CUDA_HOME"
    raise UserError("16-bit floats need CUDA's headers", where=kernel.name, hint=hint)


def _header_folders() -> list[Path]:
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    found = [Path(home) / "include" for home in [*homes, "/usr/local/cuda"] if home]
    wheels = importlib.util.find_spec("nvidia")
    folders = wheels.submodule_search_locations if wheels is not None else None
    for folder in folders or ():
        found += [Path(folder) / "cu13" / "include", Path(folder) / "cuda_runtime" / "include"]
    return found

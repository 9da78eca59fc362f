"""Run CUDA kernels on the CPU: the same text, compiled as C++, every access checked.

A kernel's threads are fibers that run one at a time, in one of three orders. Shared memory is
filled with NaN before every block, and a buffer knows its end (shim/). It detects wrong values, a
missing or misplaced barrier, accesses outside a buffer or an array, and misaligned vectors. It
cannot detect races that only the memory model allows; it has no tensor cores, and says nothing
about speed. It needs g++.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from ...dialects.errors import UserError
from ...lowering.kernel_to_cuda.device_runtime import DTYPES
from ...lowering.kernel_to_cuda.program_data import CudaKernel, CudaParameter

Order: TypeAlias = Literal["forward", "backward", "shuffled"]
ORDERS: tuple[Order, ...] = ("forward", "backward", "shuffled")

SIZES = {ctype: dtype.itemsize for ctype, dtype in DTYPES.items()}
"""Bytes of an element, by its type in CUDA C."""

SHIM = Path(__file__).parent / "shim"
_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-fno-gnu-unique", f"-I{SHIM}")
_CHECKS = ("-fsanitize=bounds,alignment", "-fno-omit-frame-pointer")
_MESSAGE = 1024


class EmulationError(Exception):
    """A thread of a kernel did something illegal, or the kernel's text is not valid C++.

    Cause: a bug of the code generator: no program or input may lead to it.

    Example: `tiled: access outside 'a': element 4096 of 4096, block (3, 0, 0), thread (0, 7, 0)`
    """


def compiler() -> str | None:
    """The C++ compiler, `CXX` or g++; None where there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


@dataclass(frozen=True)
class EmulatedKernel:
    """A kernel compiled for the CPU."""

    kernel: CudaKernel
    function: int  # its address
    touch: int  # likewise, of one that marks it as used
    library: ctypes.CDLL

    def launch(
        self, addresses: Sequence[int], order: Order = "forward", seed: int = 1, workers: int = 1
    ) -> None:
        """Run it on buffers in host memory, with its parameters' sizes, 16-byte aligned.

        Args:
            order: in which threads and blocks run.
            workers: OS threads that share the blocks.

        Raises:
            EmulationError: a thread did something illegal.
        """
        parameters = self.kernel.parameters
        assert len(addresses) == len(parameters), "one buffer per parameter"
        message = ctypes.create_string_buffer(_MESSAGE)
        count = len(parameters)
        launch = _Launch(
            self.function,
            self.touch,
            (ctypes.c_void_p * count)(*addresses),
            (ctypes.c_long * count)(*(p.elements * SIZES[p.ctype] for p in parameters)),
            (ctypes.c_char_p * count)(*(p.name.encode() for p in parameters)),
            count,
            _Index3(*self.kernel.grid),
            _Index3(*self.kernel.block),
            int(waits(self.kernel)),
            ORDERS.index(order),
            seed,
            workers,
            ctypes.cast(message, ctypes.c_void_p),
            _MESSAGE,
        )
        if _scheduler().isoform_launch(ctypes.byref(launch)):
            raise EmulationError(f"{self.kernel.name}: {message.value.decode()}")


def waits(kernel: CudaKernel) -> bool:
    """Whether a kernel's threads wait for each other: then each needs a fiber."""
    return re.search(r"__sync|__shfl", kernel.source) is not None


def emulate(kernels: Sequence[CudaKernel]) -> list[EmulatedKernel]:
    """Compile kernels as C++.

    Those with shared memory get a library each: its writable data is filled with NaN.

    Raises:
        UserError: there is no C++ compiler.
        EmulationError: a text is not valid C++, or its parameters differ from the stated ones.
    """
    _scheduler()
    alone = [[k] for k, kernel in enumerate(kernels) if "__shared__" in kernel.source]
    together = [k for k, kernel in enumerate(kernels) if "__shared__" not in kernel.source]
    found: dict[int, EmulatedKernel] = {}
    for group in [*alone, together] if together else alone:
        texts = [_translated(kernels[k], number) for number, k in enumerate(group)]
        text = _head([kernels[k] for k in group]) + "".join(texts)
        library = ctypes.CDLL(str(_library(text)))
        for number, k in enumerate(group):
            run, touch = (
                _address(library, f"isoform_{what}_{number}") for what in ("run", "touch")
            )
            found[k] = EmulatedKernel(kernels[k], run, touch, library)
    return [found[k] for k in range(len(kernels))]


# --- text ---------------------------------------------------------------------------------------


def _head(kernels: Sequence[CudaKernel]) -> str:
    includes = {
        line
        for kernel in kernels
        for line in re.findall(r"^#include .*$", kernel.source, re.MULTILINE)
    }
    return "\n".join(['#include "device.h"', *sorted(includes), ""])


def _translated(kernel: CudaKernel, number: int) -> str:
    """The kernel in a namespace, with its parameters as checked buffers, and a way to call it."""
    head = re.compile(
        r'extern\s+"C"\s+__global__\s+(?:__launch_bounds__\([^)]*\)\s*)?void\s+'
        rf"(?:__launch_bounds__\([^)]*\)\s*)?{kernel.name}\s*\((?P<parameters>[^)]*)\)"
    )
    found = head.search(kernel.source)
    if found is None:
        raise EmulationError(f"{kernel.name}: its text declares no such kernel")
    _check_parameters(kernel, found["parameters"])
    buffers = [_buffer_type(p) for p in kernel.parameters]
    lines = found[0].count("\n")
    declared = ", ".join(f"{t} {p.name}" for t, p in zip(buffers, kernel.parameters, strict=True))
    text = kernel.source[: found.start()] + f"static void {kernel.name}({declared})" + "\n" * lines
    text = re.sub(r"^#include .*$", "", text + kernel.source[found.end() :], flags=re.MULTILINE)
    passed = ", ".join(
        f'{t}{{(char*)p[{k}], 0, {p.elements * SIZES[p.ctype]}L, "{p.name}"}}'
        for k, (t, p) in enumerate(zip(buffers, kernel.parameters, strict=True))
    )
    return (
        f'namespace kernel_{number} {{\n#line 1 "{kernel.name}"\n{text}\n}}\n'
        f'extern "C" void isoform_run_{number}(void* const* p) '
        f"{{ kernel_{number}::{kernel.name}({passed}); }}\n"
        f"static thread_local volatile char touched_{number};\n"
        f'extern "C" void isoform_touch_{number}() {{ touched_{number} = 1; }}\n'
    )


def _check_parameters(kernel: CudaKernel, text: str) -> None:
    """Check that the text's parameters are the kernel's: name, type and whether written."""
    texts = [" ".join(part.replace("*", " * ").split()) for part in text.split(",") if part.strip()]
    wanted = [f"{'' if p.written else 'const '}{p.ctype} * {p.name}" for p in kernel.parameters]
    if [part.replace("__restrict__ ", "") for part in texts] != wanted:
        raise EmulationError(f"{kernel.name}: its text takes ({text}), not ({', '.join(wanted)})")


def _buffer_type(parameter: CudaParameter) -> str:
    return f"Buffer<{'' if parameter.written else 'const '}{parameter.ctype}>"


# --- libraries ----------------------------------------------------------------------------------


class _Index3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class _Launch(ctypes.Structure):
    """`Launch` of shim/scheduler.h."""

    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("touch", ctypes.c_void_p),
        ("pointers", ctypes.POINTER(ctypes.c_void_p)),
        ("bytes", ctypes.POINTER(ctypes.c_long)),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("count", ctypes.c_long),
        ("grid", _Index3),
        ("block", _Index3),
        ("waits", ctypes.c_int),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint),
        ("workers", ctypes.c_int),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_long),
    ]


@cache
def _folder() -> Path:
    """A folder for libraries, removed at exit."""
    folder = tempfile.TemporaryDirectory(prefix="isoform-emulated-")
    weakref.finalize(_Launch, folder.cleanup)
    return Path(folder.name)


@cache
def _scheduler() -> ctypes.CDLL:
    """The library that runs launches; the kernels' libraries use its symbols."""
    library = _folder() / "libscheduler.so"
    _compile([str(SHIM / "scheduler.cpp"), "-O2", "-pthread"], library)
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def _library(text: str) -> Path:
    handle, name = tempfile.mkstemp(".cpp", dir=_folder())
    with os.fdopen(handle, "w") as file:
        file.write(text)
    library = Path(name).with_suffix(".so")
    _compile([name, "-O1", *_CHECKS], library)
    return library


def _compile(arguments: Sequence[str], library: Path) -> None:
    found = compiler()
    if found is None:
        raise UserError("emulation needs a C++ compiler", hint="install g++, or set CXX")
    command = [found, *_FLAGS, *arguments, "-o", str(library)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        errors = [line for line in run.stderr.splitlines() if "error" in line]
        raise EmulationError(f"g++ refuses the text: {(errors or [run.stderr])[0]}")


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address

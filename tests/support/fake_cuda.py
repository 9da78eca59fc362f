"""Build a fake CUDA driver and run Python against it, with the real PyCUDA."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from isoform.lowering.kernel_to_cuda.compile import Cubin
from isoform.lowering.kernel_to_cuda.program_data import CudaKernel
from isoform.testing.cuda_emulator import kernels as emulated

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent


class Image(ctypes.Structure):
    """`FakeImage` of fake_libcuda.c: an emulated kernel in the place of a cubin."""

    _fields_ = [
        ("magic", ctypes.c_char * 8),
        ("launch", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("touch", ctypes.c_void_p),
        ("waits", ctypes.c_long),
        ("count", ctypes.c_long),
        ("bytes", ctypes.c_long * 32),
        ("name", ctypes.c_char * 128),
    ]


def compile_fake(kernels: Sequence[CudaKernel], architecture: int) -> list[Cubin]:
    """Emulated kernels as images that the fake driver loads."""
    launch = ctypes.cast(emulated._scheduler().isoform_launch, ctypes.c_void_p).value
    found = []
    for made in emulated.emulate(kernels):
        kernel = made.kernel
        sizes = [p.elements * emulated.SIZES[p.ctype] for p in kernel.parameters]
        image = Image(
            b"FAKECUBN",
            launch,
            made.function,
            made.touch,
            int(emulated.waits(kernel)),
            len(sizes),
            (ctypes.c_long * 32)(*sizes),
            kernel.name.encode(),
        )
        cubin = Cubin(kernel, architecture, bytes(image), 1, 0, 0, kernel.shared_bytes, ())
        found.append(cubin)
    return found


def need_pycuda() -> None:
    """Skip where PyCUDA is not installed: it is built by scripts/build_pycuda_wheel.sh."""
    if importlib.util.find_spec("pycuda") is None:
        pytest.skip("PyCUDA is not installed (scripts/build_pycuda_wheel.sh builds it)")


def build_driver(folder: Path) -> Path:
    """The fake libcuda.so.1 and libcublas.so.13, in a folder."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no C compiler (gcc): the fake driver is not built")
    sources = TESTS / "kernel_to_cuda"
    flags = [gcc, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
    driver = folder / "libcuda.so.1"
    name = "-Wl,-soname,libcuda.so.1"
    subprocess.run([*flags, name, sources / "fake_libcuda.c", "-o", driver], check=True)
    library = folder / "libcublas.so.13"
    command = [*flags, sources / "fake_libcublas.c", driver, "-o", library]
    subprocess.run(command, check=True)
    return folder


def run_python(
    code: str, driver: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with a driver or with none."""
    variables = {**os.environ, "PYTHONWARNINGS": "ignore", **environment}
    paths = [str(TESTS), variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    if driver is not None:
        variables["LD_LIBRARY_PATH"] = str(driver)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

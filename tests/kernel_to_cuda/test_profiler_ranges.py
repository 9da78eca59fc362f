"""Runs and steps are ranges that a profiler shows; without nvtx nothing happens."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.cuda_programs import two_layers

from isoform.lowering.kernel_to_cuda import profiler_ranges
from isoform.lowering.kernel_to_cuda.program_data import Gemm
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime


@pytest.mark.parametrize("installed", [True, False])
def test_runs_and_steps_are_named(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    need_compiler()
    seen: list[str] = []

    @contextmanager
    def annotate(name: str, domain: str) -> Generator[None]:
        assert domain == "isoform"
        seen.append(name)
        yield

    fake = SimpleNamespace(annotate=annotate) if installed else None
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    profiler_ranges._nvtx.cache_clear()  # pyright: ignore[reportPrivateUsage]
    printed, *_ = two_layers()
    session = CudaSession(printed, EmulatedRuntime())
    session.run({p.name: np.zeros(p.shape, p.dtype) for p in printed.inputs})
    for work in session.works():
        work()
    profiler_ranges._nvtx.cache_clear()  # pyright: ignore[reportPrivateUsage]
    names = ["cublas gemm" if isinstance(s, Gemm) else "bias_relu" for s in printed.steps]
    assert seen == (["run", *names] if installed else [])

"""Measure single kernels of the CPU target against the machine's peak of multiply-adds.

    python benchmarks/kernels.py                      convolutions, products, grouped, depthwise
    python benchmarks/kernels.py conv grouped --effort max
    python benchmarks/kernels.py gemm --json

Each kernel runs alone, warm, on one thread, by the thread's own clock. The peak is measured anew
around each kernel's runs, so that a core which slows down slows both; the share is of that peak.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.commands.subcommands import table
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import ConvOp, GemmOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.testing.peaks import fma_peak

ROUNDS = 25


@dataclass(frozen=True)
class Conv:
    """A square convolution of batch 1: channels, features, input size, kernel, stride, groups."""

    channels: int
    features: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1

    def __str__(self) -> str:
        shape = f"{self.channels}-{self.features}@{self.size} {self.kernel}x{self.kernel}"
        stride = f" stride {self.stride}" if self.stride > 1 else ""
        return shape + stride + (f" groups {self.groups}" if self.groups > 1 else "")

    @property
    def flops(self) -> int:
        """Multiplications and additions, padding counted as if it were data."""
        pixels = math.ceil(self.size / self.stride) ** 2
        return 2 * pixels * self.features * self.channels // self.groups * self.kernel**2

    def program(self) -> Program:
        """The convolution alone, its weights constant."""
        b = GraphBuilder()
        x = b.input("x", (1, self.channels, self.size, self.size))
        shape = (self.features, self.channels // self.groups, self.kernel, self.kernel)
        pad = self.kernel // 2
        geometry = {"strides": [self.stride] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
        y = b.conv(x, b.weight("w", _draw(shape)), groups=self.groups, **geometry)
        b.output("y", b.relu(y))
        return b.build()


@dataclass(frozen=True)
class Gemm:
    """A product [m, k] times constant [k, n]."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k

    def program(self) -> Program:
        """The product alone."""
        b = GraphBuilder()
        y = b.matmul(b.input("x", (self.m, self.k)), b.weight("w", _draw((self.k, self.n))))
        b.output("y", b.relu(y))
        return b.build()


SHAPES: dict[str, tuple[Conv | Gemm, ...]] = {
    "conv": (
        Conv(64, 64, 56, 3),
        Conv(128, 128, 28, 3),
        Conv(256, 256, 14, 3),
        Conv(512, 512, 7, 3),
        Conv(64, 256, 56, 1),
        Conv(256, 512, 56, 1, 2),
    ),
    "gemm": (
        Gemm(512, 768, 768),
        Gemm(128, 768, 768),
        Gemm(128, 3072, 768),
        Gemm(128, 768, 3072),
        Gemm(3136, 64, 576),
        Gemm(3136, 64, 64),
        Gemm(49, 512, 4608),
        Gemm(2048, 2048, 2048),
    ),
    "grouped": (
        Conv(128, 128, 56, 3, groups=32),
        Conv(256, 256, 28, 3, groups=32),
        Conv(512, 512, 14, 3, groups=32),
        Conv(1024, 1024, 7, 3, groups=32),
    ),
    "depthwise": (
        Conv(96, 96, 112, 3, 2, groups=96),
        Conv(144, 144, 56, 3, groups=144),
        Conv(384, 384, 14, 3, groups=384),
        Conv(960, 960, 7, 3, groups=960),
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description="Measure single kernels against the peak")
    add = parser.add_argument
    add("kinds", nargs="*", metavar="KIND", help=f"{', '.join(SHAPES)} (default: all)")
    add("--effort", default="quick", choices=("quick", "max"), help="max: measure register blocks")
    add("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    unknown = set(parsed.kinds) - set(SHAPES)
    if unknown:
        parser.error(f"no kind {min(unknown)!r}; choose among {', '.join(SHAPES)}")
    kinds = parsed.kinds or list(SHAPES)
    found = [measure(kind, shape, parsed.effort) for kind in kinds for shape in SHAPES[kind]]
    print(json.dumps(found, indent=2) if parsed.json else format_rows(found))


def measure(kind: str, shape: Conv | Gemm, effort: str) -> dict[str, Any]:
    """One kernel's median time and its share of the peak.

    Direct convolution only: Winograd does fewer operations and has no share of this peak.
    """
    placed = place(shape.program(), CpuOptions(1, effort, tolerance=0.0))
    session = CpuSession(placed, 1)
    session.run(draw_inputs(placed))
    ops = [op for op in placed.main.body.block.ops if isinstance(op, ConvOp | GemmOp)]
    values: set[SSAValue] = {op.result for op in ops}
    before = _peak()
    seconds = statistics.median(session.time(values) for _ in range(ROUNDS))
    peak = max(before, _peak())
    session.close()
    rate = shape.flops / seconds
    return {
        "kind": kind,
        "shape": str(shape),
        "us": seconds * 1e6,
        "gflops": rate / 1e9,
        "peak_gflops": peak / 1e9,
        "share": rate / peak,
    }


def _peak() -> float:
    """The peak as it is now."""
    fma_peak.cache_clear()
    return fma_peak(1)


def _draw(shape: tuple[int, ...]) -> np.ndarray:
    fan_in = max(1, math.prod(shape[1:]))
    return (np.random.default_rng(0).standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)


def format_rows(rows: Sequence[dict[str, Any]]) -> str:
    """The kernels as a table."""
    cells = [
        [
            row["kind"],
            row["shape"],
            f"{row['us']:.1f}",
            f"{row['gflops']:.1f}",
            f"{row['peak_gflops']:.1f}",
            f"{row['share']:.0%}",
        ]
        for row in rows
    ]
    return table(["kind", "shape", "us", "GFLOP/s", "peak", "share"], cells)


if __name__ == "__main__":
    main()

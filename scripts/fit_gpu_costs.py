"""Fit the constants of conv_algorithms.py to PET's Table 4 (V100), and nothing else.

python scripts/fit_gpu_costs.py        print the constants beside those in use

We have five times of the table and use all of them: as many as there are constants. The two
operators are PET's conv [1,48,38,38] x [64,48,5,5], whose mutant folds the image into
[16,48,10,10], and its dilated conv [1,512,14,14] x [256,512,3,3], whose mutant is the regular one
of its artifact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NoReturn

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from isoform.dialects.builder import GraphBuilder
from isoform.lowering.targets import TARGETS
from isoform.passes.convolution.conv_algorithms import FITTED, Fitted
from isoform.passes.cost.costs import Costs

STEPS = 60


@dataclass(frozen=True)
class Figure:
    """A published time: input [n, c, side, side], weights [f, c, kernel, kernel], same padding."""

    n: int
    c: int
    side: int
    f: int
    kernel: int
    dilation: int
    algorithm: str
    """Prefix of the algorithm that took it; empty for the fastest."""
    us: float

    def op(self) -> Operation:
        """The convolution, on a weight."""
        b = GraphBuilder()
        shape = (self.f, self.c, self.kernel, self.kernel)
        x, w = b.input("x", (self.n, self.c, self.side, self.side)), b.weight("w", _no, shape, f32)
        pads = [self.kernel // 2 * self.dilation] * 4
        y = b.conv(x, w, strides=[1, 1], pads=pads, dilations=[self.dilation] * 2)
        b.output("y", y)
        b.build()
        assert isinstance(y.owner, Operation)
        return y.owner

    def modelled(self, fitted: Fitted) -> float:
        """Microseconds by the model."""
        ways = Costs(TARGETS["v100"], fitted=fitted).algorithms(self.op(), (False, True))
        return 1e6 * min(t for t, name in ways if name.startswith(self.algorithm))


def _no() -> NoReturn:
    raise AssertionError("no cost reads weights")


CONV = Figure(1, 48, 38, 64, 5, 1, "implicit-gemm", 90.0)
CONV_FFT = replace(CONV, algorithm="fft", us=352.0)
MUTANT = Figure(16, 48, 10, 64, 5, 1, "fft", 51.0)
DILATED = Figure(1, 512, 14, 256, 3, 2, "implicit-gemm", 153.0)
REGULAR = Figure(1, 512, 14, 256, 3, 1, "winograd", 79.0)
FIGURES = (CONV, CONV_FFT, MUTANT, DILATED, REGULAR)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function crosses 0, by bisection."""
    rising = function(high) > function(low)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if (function(middle) > 0) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def solve(figure: Figure, fitted: Fitted, name: str, low: float, high: float) -> Fitted:
    """The constant `name` that gives one figure, with the others fixed."""

    def error(value: float) -> float:
        return figure.modelled(replace(fitted, **{name: value})) - figure.us

    return replace(fitted, **{name: root(error, low, high)})


def fit(fitted: Fitted = FITTED) -> Fitted:
    """All five: two pairs of constants for two figures each, and one for the last."""

    def gemm(half_tiles: float) -> Fitted:
        return solve(CONV, replace(fitted, half_tiles=half_tiles), "setup", 0.0, 1e5)

    half_tiles = root(lambda v: DILATED.modelled(gemm(v)) - DILATED.us, 0.05, 1.0)
    fitted = gemm(half_tiles)

    def fft(stage: float) -> Fitted:
        return solve(CONV_FFT, replace(fitted, stage=stage), "fft_bandwidth", 0.02, 2.0)

    stage = root(lambda v: MUTANT.modelled(fft(v)) - MUTANT.us, 0.0, 5.0)
    return solve(REGULAR, fft(stage), "winograd_bandwidth", 0.02, 5.0)


def main() -> None:
    """Print the fit."""
    found = fit()
    for field in fields(Fitted):
        new, used = (getattr(constants, field.name) for constants in (found, FITTED))
        print(f"{field.name:20} {new:10.4g} {used:10.4g}")
    for figure in FIGURES:
        shape = f"[{figure.n},{figure.c},{figure.side},{figure.side}]"
        print(f"{shape:16} {figure.algorithm:14} {figure.us:6.0f} {figure.modelled(found):8.1f} us")


if __name__ == "__main__":
    main()

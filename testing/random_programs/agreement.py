"""Compare a target's results with the reference, as far as rounding allows.

The reference computes in float64; a target rounds to its dtypes. The effect of rounding is
measured: the program is evaluated again with every operation off by a few units in the last place
of its dtype (noise.py). Where these noisy values spread, a target may differ. Where they spread too
far (a floor, a comparison or a cast near a tie, an overflow) the position is not compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute

from ...compiler.targets.levels import lower_to
from ...dialects import reference
from ...dialects.program import Program
from ...dialects.types import Array, Tensor, is_float, to_numpy
from .noise import noisy_run, unit

# Noisy runs, in pairs of opposite signs: at a tie, one of a pair falls on each side. Two pairs may
# both happen to move one position very little, so more are run before a difference is
# reported.
RUNS = 4
MORE_RUNS = 20
# Values within this multiple of the noisy values' spread agree.
SLACK = 8.0
# Positions whose noisy values spread more than this, relatively, are not compared.
UNSTABLE = 0.05


@dataclass(frozen=True)
class Mismatch:
    """The first position at which two results disagree."""

    output: str
    position: tuple[int, ...]
    expected: float
    found: float
    tolerance: float

    def __str__(self) -> str:
        return (
            f"output '{self.output}' at {list(self.position)}: expected {self.expected!r}, "
            f"found {self.found!r} (tolerance {self.tolerance:.3g})"
        )


@dataclass
class Agreement:
    """The expected outputs of a program on given inputs, with tolerances.

    Attributes:
        compared: output elements that the last `difference` compared.
        total: all output elements.
    """

    exact: dict[str, Array]  # outputs in float64
    types: dict[str, Tensor]
    noisy: Iterator[list[Array]]  # outputs with all data changed a little
    tolerance: dict[str, Array] = field(default_factory=dict)
    compared: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        self._runs: list[list[Array]] = []
        self._add_runs(RUNS)

    def _add_runs(self, count: int) -> bool:
        """Add noisy runs up to `count` and widen the tolerances; return whether any was added."""
        new = list(itertools.islice(self.noisy, count - len(self._runs)))
        self._runs += new
        if new:
            self.tolerance = {
                name: _tolerance(exact, [run[k] for run in self._runs], self.types[name])
                for k, (name, exact) in enumerate(self.exact.items())
            }
        return bool(new)

    @staticmethod
    def of(program: Program, inputs: Mapping[str, Array]) -> Agreement:
        """Evaluate a program of any level, in float64 without and with noise.

        Raises:
            UserError: as dialects.reference.
        """
        exact = reference.run(program, inputs)
        lowered = lower_to(program, "algebra") if _is_graph(program) else program
        noisy = (noisy_run(lowered, inputs, k // 2, 1.0 - k % 2 * 2) for k in range(MORE_RUNS))
        return Agreement(exact, program.outputs, noisy)

    def difference(self, found: Mapping[str, Array]) -> Mismatch | None:
        """The first disagreement of a target's results (any order of the same names)."""
        first = self._difference(found)
        return self._difference(found) if first is not None and self._add_runs(MORE_RUNS) else first

    def _difference(self, found: Mapping[str, Array]) -> Mismatch | None:
        self.compared = self.total = 0
        for name, exact in self.exact.items():
            got = np.asarray(found[name])
            if got.shape != exact.shape:
                return Mismatch(name, (), exact.size, got.size, 0.0)
            bound = self.tolerance[name]
            self.total += exact.size
            self.compared += int(np.isfinite(bound).sum())
            values = got.astype(exact.dtype)
            with np.errstate(all="ignore"):
                close = np.abs(values.astype(float) - exact.astype(float)) <= bound
            same = (values == exact) | (_is_nan(values) & _is_nan(exact))
            wrong = ~(close | same) & np.isfinite(bound)
            if wrong.any():
                position = tuple(int(k) for k in np.argwhere(wrong)[0])
                return Mismatch(
                    name,
                    position,
                    float(exact[position]),
                    float(values[position]),
                    float(bound[position]),
                )
        return None


def _is_graph(program: Program) -> bool:
    return all(
        op.name.startswith("graph.") or isinstance(op, ReturnOp)
        for op in program.main.body.block.ops
    )


def _is_nan(array: Array) -> Array:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)


def _smallest_normal(element: Attribute) -> float:
    """Return the smallest normal number of a float type: what is below it may become 0."""
    dtype = to_numpy(element)
    return float(ml_dtypes.finfo(dtype).smallest_normal)


def _tolerance(exact: Array, noisy: list[Array], type_: Tensor) -> Array:
    """Return the allowed absolute difference per position; inf if it is not compared."""
    element = type_.element_type
    with np.errstate(all="ignore"):
        if not is_float(element):
            stable = np.all([run == exact for run in noisy], axis=0)
            return np.where(stable, 0.0, np.inf)
        spread = np.max([np.abs(run - exact) for run in noisy], axis=0, initial=0.0)
        same_finiteness = np.all([_finiteness(run) == _finiteness(exact) for run in noisy], axis=0)
        magnitude = np.abs(exact)
        bound = SLACK * spread + 4 * unit(element) * magnitude + 16 * _smallest_normal(element)
        stable = same_finiteness & (
            ~np.isfinite(exact) | (spread <= UNSTABLE * np.maximum(magnitude, 1e-3))
        )
    bound = np.where(np.isfinite(exact), bound, 0.0)
    return np.where(stable, bound, np.inf)


def _finiteness(array: Array) -> Array:
    """Return 0 for finite numbers, 1 for NaN, 2 and 3 for the infinities."""
    return np.isnan(array) * 1 + np.isposinf(array) * 2 + np.isneginf(array) * 3

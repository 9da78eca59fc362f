"""Climb to an input that shows a fault in weights, where no drawn input shows it.

A wrong number may change no output on nearly all inputs: a relu after it may give 0 anyway. Then
nothing shows the direction to search in. So the fault is made larger: in place of
`other`, what the other program has, the weight is `other + k (own - other)`. The smallest k that
changes an output is how far an input is from showing the fault; at k = 1 it shows it.

Inputs are sums of normal draws. Each generation adds draws to the best input and takes them away,
weighs them by how much a fault of 2 k changes the outputs (an evolution strategy with mirrored
samples: Wierstra et al., "Natural evolution strategies", 2014), and goes that way, in steps of
several lengths. It needs no derivative, whatever the ops are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.reference import run
from ...dialects.types import Array, is_float
from .roundings import Nearness
from .witness import FoundDifference, ProgramPair, Steps, differing, inputs_of, with_weights

# Draws of one generation; lengths of its steps and distance of mirrored samples, relative to the
# input; most generations.
_DRAWN, _LENGTHS, _ASIDE, _GENERATIONS = 10, (0.15, 0.3, 0.6, 1.2), 0.25, 20
# Least and largest exponent of k, and the precision of the bisection.
_LEAST, _MOST, _FINE = -8.0, 24.0, 0.125
# Most seconds, and the largest share of the time left to the deadline.
_SECONDS, _PART = 60.0, 0.8
# Few: at most this share of a weight's numbers.
_FEW = 0.05
# Relative differences above this are not rounding.
_COARSE = 2.0**-10
# The largest norm of an input, in draws: beyond it rounding and overflow hide the fault.
_FARTHEST = 200.0

Confirm: TypeAlias = "Callable[[Steps, float], FoundDifference | None]"


@dataclass(frozen=True)
class Fault:
    """Weights of one program that differ from the other's.

    Attributes:
        side: "a" or "b".
        numbers: by weight, the other program's array and its own.
    """

    side: str
    numbers: Mapping[str, tuple[Array, Array]]

    @cached_property
    def positions(self) -> Mapping[str, Array]:
        """Where they differ, by flat index."""
        return {n: np.flatnonzero(own != other) for n, (other, own) in self.numbers.items()}

    @property
    def coarse(self) -> Fault:
        """Only numbers that differ by more than rounding; all if there are none.

        Otherwise amplified rounding would show first.
        """
        numbers: dict[str, tuple[Array, Array]] = {}
        for name, (other, own) in self.numbers.items():
            size = np.maximum(np.abs(other), _COARSE * np.abs(other).max(initial=0.0))
            far = np.abs(own - other) > _COARSE * size
            if far.any():
                numbers[name] = other, np.where(far, own, other)
        return Fault(self.side, numbers) if numbers else self


def few_apart(a: Program, b: Program, mine: Sequence[str], theirs: Sequence[str]) -> Fault | None:
    """The weights of the second program that differ in few numbers from one of the first.

    Args:
        mine, theirs: the weights that have no equal in the other program.
    """
    numbers: dict[str, tuple[Array, Array]] = {}
    for name in theirs:
        own = b.weights[name]
        for other in (a.weights[n] for n in mine):
            if own.dtype.kind in "iub" or own.shape != other.shape or own.dtype != other.dtype:
                continue
            if 0 < np.count_nonzero(own != other) <= max(1, _FEW * own.size):
                numbers[name] = other.astype(np.float64), own.astype(np.float64)
                break
    return Fault("b", numbers) if numbers else None


@dataclass
class Climber:
    """The search from one seed, over inputs that are sums of draws.

    Attributes:
        seed: of the first draw; later draws use the next seeds.
        confirm: the difference that an input shows, if it counts as one.
        deadline: on the monotonic clock.
        excused: whether the fault showed, but only as rounding.
    """

    program_pair: ProgramPair
    fault: Fault
    limits: Nearness
    seed: int
    confirm: Confirm
    deadline: float
    best: float = math.inf  # the least log2 k
    sign: float = 1.0  # of that k
    center: dict[int, float] = field(default_factory=dict[int, float])
    found: FoundDifference | None = None
    excused: bool = False

    def climb(self) -> FoundDifference | None:
        """A difference, None where none was found in time. Raises UserError: nothing can be run."""
        program = self.program_pair.a if self.fault.side == "a" else self.program_pair.b
        if not any(is_float(t.element_type) for t in program.inputs.values()):
            return None
        now = time.monotonic()
        self.deadline = min(self.deadline, now + min(_SECONDS, _PART * (self.deadline - now)))
        for generation in range(_GENERATIONS):
            seeds = [self.seed + generation * _DRAWN + k for k in range(_DRAWN)]
            self._generation(seeds)
            if self._is_over():
                break
        return self.found

    def _generation(self, seeds: Sequence[int]) -> None:
        """Try draws at first, later steps from the best input, until the search is over."""
        if not self.center:
            for seed in seeds:
                self._try({seed: 1.0})
                if self._is_over():
                    return
            return
        direction = self._direction(seeds)
        start, size = dict(self.center), _norm(self.center)
        for length in _LENGTHS if direction else ():
            steps = _sum(start, direction, length * size)
            if self._is_over() or _norm(steps) > _FARTHEST:
                return
            self._try(steps)

    def _direction(self, seeds: Sequence[int]) -> dict[int, float]:
        """The direction, as long as one draw, in which the fault shows most.

        Each draw is added and taken away, with the fault twice as large as it must be to show.
        """
        aside, k = _ASIDE * _norm(self.center), self.sign * 2.0 ** (self.best + 1)
        parts: dict[int, float] = {}
        for seed in seeds:
            both = (_sum(self.center, {seed: 1.0}, turn * aside) for turn in (1, -1))
            one, other = (self._effect_on_outputs(steps, k) for steps in both)
            parts[seed] = one - other
            if self._is_over():
                return {}
        return _unit(parts)

    def _effect_on_outputs(self, steps: Mapping[int, float], k: float) -> float:
        """How much a fault that is k times as large changes the outputs, for inputs of one size."""
        amplified = _Amplified(
            self.program_pair, self.fault, self.seed, tuple(sorted(steps.items()))
        )
        try:
            whole, faulty = amplified.outputs(0.0), amplified.outputs(k)
        finally:
            self.program_pair.remembering.forget()
        pairs = [(x, y) for x, y in zip(whole, faulty, strict=True) if x.dtype.kind == "f"]
        change = math.sqrt(sum(float(np.sum(np.square(x - y))) for x, y in pairs))
        return change / _norm(steps) if math.isfinite(change) else 0.0

    def _is_over(self) -> bool:
        return self.found is not None or self.excused or time.monotonic() > self.deadline

    def _try(self, steps: Mapping[int, float]) -> float:
        """How far an input is from showing the fault; the nearest one is the next center."""
        distance = self._distance(tuple(sorted(steps.items())))
        if distance < self.best:
            self.best, self.center = distance, dict(steps)
        return distance

    def _distance(self, steps: Steps) -> float:
        """The logarithm of the least k, of either sign, that changes an output."""
        amplified = _Amplified(self.program_pair, self.fault, self.seed, steps)
        try:
            whole = amplified.outputs(0.0)
            if self._differ(whole, amplified.outputs(1.0)):
                self.found = self.confirm(steps, _norm(dict(steps)))
                self.excused = self.found is None
                return 0.0
            least = math.inf
            for sign in (1.0, -1.0):
                found = self._least(amplified, whole, sign, least)
                if found < min(least, self.best):
                    self.sign = sign
                least = found
            return least
        finally:
            self.program_pair.remembering.forget()

    def _least(self, it: _Amplified, whole: Sequence[Array], sign: float, below: float) -> float:
        """The least exponent of one sign, by bisection; `below` if it is not less."""
        low, high = _LEAST, min(below, _MOST)
        if not self._differ(whole, it.outputs(sign * 2.0**high)):
            return below
        while high - low > _FINE:
            middle = (low + high) / 2
            if self._differ(whole, it.outputs(sign * 2.0**middle)):
                high = middle
            else:
                low = middle
        return high

    def _differ(self, one: Sequence[Array], other: Sequence[Array]) -> bool:
        pairs = zip(one, other, strict=True)
        return any(differing(x, y, self.limits.part, unbounded=False).any() for x, y in pairs)


class _Amplified:
    """One program on one input, with its fault made larger or left out.

    What is computed before the fault is remembered from one run to the next.
    """

    def __init__(self, program_pair: ProgramPair, fault: Fault, seed: int, steps: Steps):
        program, other = (
            (program_pair.a, program_pair.b)
            if fault.side == "a"
            else (program_pair.b, program_pair.a)
        )
        drawn = inputs_of(program_pair.a, seed, 1.0, steps)
        names = program.input_names
        if set(names) != set(drawn):
            drawn = dict(zip(names, drawn.values(), strict=False))
        self.program_pair, self.fault, self.inputs = program_pair, fault, drawn
        self.program: Program = with_weights(program, seed, other.weights)
        args = program.main.body.block.args
        given = {arg: drawn[n] for n, arg in zip(names, args, strict=True)}
        self.known: dict[SSAValue, Array] = given | program_pair.known(fault.side)
        ops = program.main.body.block.ops
        self.faulty = [o for o in ops if isinstance(o, WeightOp) and o.key in fault.numbers]

    def outputs(self, k: float) -> list[Array]:
        """The outputs where the fault is k times as large; 0 leaves it out."""
        for op in self.faulty:
            other, own = self.fault.numbers[op.key]
            positions = self.fault.positions[op.key]
            made = other.reshape(-1).copy()
            made[positions] += k * (own.reshape(-1)[positions] - made[positions])
            self.known[op.result] = made.reshape(other.shape)
        evaluate = self.program_pair.remembering
        found = run(self.program, self.inputs, Arithmetic.REAL, self.known, evaluate)
        return list(found.values())


def _sum(
    one: Mapping[int, float], other: Mapping[int, float], times: float = 1.0
) -> dict[int, float]:
    return {k: one.get(k, 0.0) + times * other.get(k, 0.0) for k in one.keys() | other.keys()}


def _norm(steps: Mapping[int, float]) -> float:
    return math.sqrt(sum(part * part for part in steps.values()))


def _unit(steps: Mapping[int, float]) -> dict[int, float]:
    """Of norm 1; empty if there is none."""
    size = _norm(steps)
    return {k: part / size for k, part in steps.items()} if math.isfinite(size) and size else {}


def climb(climber: Climber) -> FoundDifference | None:
    """See `Climber.climb`; None also where these programs cannot be run."""
    try:
        return climber.climb()
    except UserError:
        return None


__all__ = ["Climber", "Fault", "climb", "few_apart"]

"""Concrete inputs on which two programs differ, by the float64 reference meaning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.discrete import discrete_constants
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.reference import Evaluate, run
from ...dialects.types import Array, Tensor, is_float, to_numpy
from ...dialects.weights import Weights
from .draws import Pool, Steps, draw, inputs_of
from .memoised_evaluation import MemoisedEvaluator
from .roundings import EXACT, TOLERANCE, Change, Foreign, Nearness, changed, moved, rounded
from .verdict import Difference

# Scales of the inputs, tried in order, each with the next seed: faults may hide beyond a clip, near
# zero, or where several relus are 0. Small programs are tried more often, for this many seconds;
# large ones less often.
SCALES = (1.0, 0.05, 1.0, 8.0, 200.0)
MAX_DRAWS, SECONDS, MAX_SECONDS = 50, 0.5, 8.0
# Functions that soon leave the range of float64: large inputs then show rounding, not meaning.
STEEP = frozenset({"exp", "expm1", "sinh", "cosh", "pow", "log", "tan", "reduce.prod"})
# At one position a difference counts if it exceeds this part of the values there, and this many
# times the effect of small changes of all data in some runs; and always the last number, at scale
# 1.
_LOCAL, NOISY_TIMES, _NOISY_RUNS, _LEAST = 1e-3, 64.0, 2, 1e-9
# The effect of rounded constants in one run, times this factor, bounds the effect in another.
_ROUNDED_TIMES = 8.0

# Elements of weights kept in float64 between runs.
_MAX_HELD = 1 << 27
# Draws whose outputs are kept.
_MAX_KEPT = 8


@dataclass(frozen=True)
class FoundDifference:
    """A difference of an output on the inputs of `inputs_of(program, seed, scale, steps, pool)`."""

    output: int  # its number
    position: tuple[int, ...]  # of the first difference
    values: tuple[float, float]
    positions: int  # that differ
    elements: int  # of the output
    scale: float
    seed: int
    steps: Steps = ()
    pool: Pool = ()

    def named(self, output: str) -> Difference:
        """As a verdict shows it."""
        return Difference(
            output,
            self.position,
            self.values,
            self.positions,
            self.elements,
            witness=True,
            seed=self.seed,
            scale=self.scale,
            steps=self.steps,
            pool=self.pool,
        )


@dataclass
class ProgramPair:
    """Two programs that are run on the same inputs, several times.

    Attributes:
        order: the output of `b` for each output of `a`.
        identity: the key under which two weights are one; equal weights are stored once.
        held: for each program the values common to all runs: weights in float64, discrete
            constants.
        remembering: evaluates ops; `drop` it at the end.
        outputs: of earlier draws, by seed, scale and arithmetic.
    """

    a: Program
    b: Program
    order: Sequence[int]
    identity: Callable[[WeightOp, Program], str] | None = None
    held: dict[str, dict[SSAValue, Array]] = field(default_factory=dict[str, dict[SSAValue, Array]])
    remembering: MemoisedEvaluator = field(default_factory=MemoisedEvaluator)
    outputs: dict[object, tuple[list[Array], list[Array]]] = field(
        default_factory=dict[object, tuple[list[Array], list[Array]]]
    )

    def known(self, side: str) -> dict[SSAValue, Array]:
        """The values common to all runs of "a" or "b"; as many weights as there is room for."""
        if not self.held:
            wide: dict[str, Array] = {}
            self.held = {s: self._known(p, wide) for s, p in (("a", self.a), ("b", self.b))}
        return self.held[side]

    def _known(self, program: Program, wide: dict[str, Array]) -> dict[SSAValue, Array]:
        ops = program.main.body.block.ops
        found = discrete_constants(ops, program.weights)
        for op in ops:
            if not isinstance(op, WeightOp) or op.key not in program.weights:
                continue
            if not is_float(op.type.element_type):
                continue
            name = f"{id(program)} {op.key}"
            name = name if self.identity is None else self.identity(op, program)
            if name not in wide:
                array = program.weights[op.key]
                if sum(w.size for w in wide.values()) + array.size > _MAX_HELD:
                    continue
                wide[name] = array.astype(np.float64)
            found[op.result] = wide[name]
        return found


def find(
    program_pair: ProgramPair,
    seed: int,
    scale: float,
    limits: Nearness,
    foreign: Foreign | None = None,
    given: ProgramPair | None = None,
    steps: Steps = (),
) -> list[FoundDifference]:
    """The differences on one draw.

    A difference counts if it exceeds a part of the output's largest value, or the effect of
    rounding at its own position (`beyond_noise`).

    Args:
        limits: that part, and the size of the noise.
        foreign: weights that may be rounded; differences that this explains do not count.
        given: the original programs, where weights of the program_pair have other numbers.
            A difference must exceed twice the effect of that change; values are the original ones.
        steps: see `inputs_of`.

    Raises:
        UserError: the reference cannot run one of them.
    """
    pair = PairRun(program_pair, seed, scale, steps)
    first, second = pair.values()
    mine, theirs = (first, second) if given is None else PairRun(given, seed, scale, steps).values()
    found: list[FoundDifference] = []
    for k, (x, y) in enumerate(zip(first, second, strict=True)):
        wrong = differing(x, y, limits.part, unbounded=scale <= 1.0)
        if not wrong.any() and (doubtful := suspicious(x, y)).any():
            wrong = pair.beyond_noise(k, x, y, doubtful, limits.noise)
        if wrong.any() and foreign:
            wrong &= pair.beyond_folding(k, x, y, foreign)
        if given is not None:
            wrong &= np.abs(x - y) > 2 * _largest(x - mine[k], y - theirs[k])
        if wrong.any():
            position = tuple(int(axis) for axis in np.argwhere(wrong)[0])
            values = (float(mine[k][position]), float(theirs[k][position]))
            found.append(
                FoundDifference(
                    k, position, values, int(wrong.sum()), int(x.size), scale, seed, steps
                )
            )
    return found


def _largest(*changes: Array) -> float:
    """The sum of the largest of each."""
    return sum(float(np.abs(change).max(initial=0.0)) for change in changes)


@dataclass
class PairRun:
    """Two programs on the inputs of one draw; absent weights are drawn as well."""

    program_pair: ProgramPair
    seed: int
    scale: float  # of the inputs
    steps: Steps = ()
    arithmetic: Arithmetic = Arithmetic.REAL
    pool: Pool = ()
    evaluate: Evaluate | None = None  # in place of the pair's own
    noise: dict[tuple[int, str], list[Array]] = field(
        default_factory=dict[tuple[int, str], list[Array]]
    )
    folded: list[list[Array]] = field(default_factory=list[list[Array]])

    def values(self) -> tuple[list[Array], list[Array]]:
        """The outputs of both, those of the second in the order of the first."""
        key = (self.seed, self.scale, self.steps, self.pool, self.arithmetic)
        kept = self.program_pair.outputs
        if key in kept:
            return kept[key]
        self.program_pair.remembering.forget()
        try:
            found = self._run("a"), self._run("b")
        finally:
            self.program_pair.remembering.forget()
        if len(kept) < _MAX_KEPT and sum(x.size for side in found for x in side) < 1 << 22:
            kept[key] = found
        return found

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """The outputs by name in the first program, in its order."""
        types = self.program_pair.a.inputs
        drawn = inputs_of(self.program_pair.a, self.seed, self.scale, self.steps, self.pool)
        return {n: self.arithmetic.tensor(x, types[n].element_type) for n, x in drawn.items()}

    def _run(
        self, side: str, change: Change | None = None, only: Foreign | None = None
    ) -> list[Array]:
        """Run one program, with inputs and weights changed, or some weights only."""
        a, b = self.program_pair.a, self.program_pair.b
        program, other = (a, b) if side == "a" else (b, a)
        inputs = self.inputs
        if change is not None and only is None:
            inputs = {n: change(x, k, None) for k, (n, x) in enumerate(inputs.items())}
        if set(b.input_names) != set(a.input_names):
            inputs = dict(zip(program.input_names, inputs.values(), strict=False))
        given = with_weights(program, self.seed, other.weights)
        evaluate = self.program_pair.remembering
        if change is None:
            args = program.main.body.block.args
            known = {arg: inputs[n] for n, arg in zip(program.input_names, args, strict=True)}
            known |= self.program_pair.known(side)
            found = run(given, inputs, self.arithmetic, known, self.evaluate or evaluate)
        else:
            found = run(changed(given, change, only), inputs, self.arithmetic, None, evaluate)
            evaluate.forget()
        outputs = list(found.values())
        return outputs if side == "a" else [outputs[k] for k in self.program_pair.order]

    def beyond_noise(self, number: int, x: Array, y: Array, among: Array, noise: float) -> Array:
        """Where two values of an output differ by more than their data's rounding explains.

        The effect at a position of changing every input and weight by a relative 2^-20 bounds the
        effect of rounding there by far. Where the values of an output differ much in size, its
        largest one gives no bound for the others.

        Args:
            among: the positions to check.
            noise: the relative change; the same in all calls.
        """
        spread: Array = np.zeros(x.shape)
        x, y = x.astype(np.float64), y.astype(np.float64)  # booleans have no differences
        far = among
        for k, side in itertools.product(range(_NOISY_RUNS), "ab"):
            if (k, side) not in self.noise:
                change_ = partial(moved, seed=(self.seed, k), noise=noise)
                self.noise[k, side] = self._run(side, change_)
            with np.errstate(all="ignore"):
                change = np.abs(self.noise[k, side][number] - (x if side == "a" else y))
                spread = np.maximum(spread, change)
                far = np.abs(x - y) > np.maximum(NOISY_TIMES * spread, _LEAST * self.scale)
            far = far & among
            if not far.any():
                break
        return far & np.isfinite(spread)

    def beyond_folding(self, number: int, x: Array, y: Array, foreign: Foreign) -> Array:
        """Where two values of an output differ by more than rounded constants explain.

        The constants are changed by up to 16 units in their last place (half floats by one). The
        largest effect of this anywhere in the output counts, eight times.
        """
        if x.dtype.kind != "f":
            return np.ones(x.shape, bool)
        if not self.folded:
            for k, side in itertools.product(range(_NOISY_RUNS), "ab"):
                change_ = partial(rounded, seed=(self.seed, k))
                self.folded.append(self._run(side, change_, foreign))
        spread = 0.0
        with np.errstate(all="ignore"):
            for moved_, value in zip(self.folded, (x, y) * _NOISY_RUNS, strict=True):
                change = np.abs(moved_[number] - value)
                spread = max(spread, float(change[np.isfinite(change)].max(initial=0.0)))
            near = np.abs(x - y) <= _ROUNDED_TIMES * spread
        return ~near


def differing(x: Array, y: Array, tolerance: float, unbounded: bool = True) -> Array:
    """Where two values of one output differ by more than a part of the largest.

    Integers and booleans differ if they are not equal. With `unbounded`, infinities and NaN must
    be equal as well; large inputs may overflow in one order of operations only.
    """
    if x.dtype.kind != "f":
        return x != y
    both = np.isfinite(x) & np.isfinite(y)
    sizes = (np.abs(np.where(both, v, 0.0)).max(initial=0.0) for v in (x, y))
    with np.errstate(invalid="ignore"):
        wrong = both & (np.abs(x - y) > tolerance * max(sizes))
    return wrong | (~both & ~same_special(x, y)) if unbounded else wrong


def same_special(x: Array, y: Array) -> Array:
    """Where both are NaN, or the same infinity."""
    return (np.isnan(x) & np.isnan(y)) | (x == y)


def suspicious(x: Array, y: Array, part: float = _LOCAL) -> Array:
    """Where two finite floats differ by more than a part of themselves."""
    if x.dtype.kind != "f":
        return np.zeros(x.shape, bool)
    with np.errstate(invalid="ignore"):
        far = np.abs(x - y) > part * np.maximum(np.abs(x), np.abs(y))
    return far & np.isfinite(x) & np.isfinite(y)


def with_weights(program: Program, seed: int, other: Weights | None = None) -> Program:
    """The program with absent weights taken from the other one, or drawn by name."""
    missing: Mapping[str, Tensor] = {
        op.key: op.type
        for op in program.main.body.block.ops
        if isinstance(op, WeightOp) and op.key not in program.weights
    }
    if not missing:
        return program
    drawn: dict[str, Array] = {}
    for name, type_ in missing.items():
        given = other[name] if other is not None and name in other else None
        same = given is not None and given.shape == type_.get_shape()
        same = same and given is not None and given.dtype == to_numpy(type_.element_type)
        drawn[name] = given if same and given is not None else draw(name, type_, seed, 1.0)
    store = Weights({**{n: program.weights[n] for n in program.weights}, **drawn})
    return Program(program.module, store, program.source)


__all__ = ["EXACT", "SCALES", "TOLERANCE", "Foreign", "FoundDifference", "Nearness", "Pool"]
__all__ += ["Steps", "UserError", "draw", "find", "inputs_of"]

"""Inputs of few numbers, to find differences at single points, and the check of such a point.

Normal draws never meet `x == 77.25`, a tie or a bound. Here inputs hold numbers of a small pool:
the programs' own constants, these plus and minus one and one half, halves and small integers.

At a tie rounding alone may decide, so a point found in float64 is run again carefully: a draw is
dropped as soon as it may depend on rounding, or on what real arithmetic does not model.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.op_reference import Steps, evaluate_op
from ...dialects.program import Program
from ...dialects.scalars import Call
from ...dialects.types import Array, element_of, is_bool, is_float, is_narrow_float, tensor_type
from . import witness
from .prove import Prover
from .roundings import numbers
from .verdict import Difference

# Draws, ops run in all of them, and numbers of a pool. Programs with larger tensors have no points.
_DRAWS, _WORK, _POOL, _LARGEST = 160, 4096, 40, 1 << 12
# After so many differences that may be rounding no more are tried.
_DOUBTS = 12
# Products in all sums of one op; those of more are inexact.
_MOST_SUMMED = 1 << 16
# Constants taken from each program, of weights with at most so many elements.
_CONSTANTS, _FEW = 8, 4096
_SMALL = (0, 1, -1, 0.5, 2, -0.5, 1.5, -1.5, 2.5, -2, 3, -2.5, 4, 7)
# A float that uses more bits may be the rounding of another number.
_SHORT_BITS = 18
# Nearer than this part of the largest number of a run, inexact values count as a tie.
_TIE = 2.0**-30
_MOVING = frozenset({"max", "min", "neg", "abs", "select", "and", "or", "xor"})
_COMPARING = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_STEPPING = frozenset({"floor", "ceil", "roundeven", "trunc"})
_SUMS: Mapping[str, Callable[[Iterable[Fraction]], Fraction]] = {
    "sum": lambda row: sum(row, Fraction(0)),
    "prod": lambda row: math.prod(row, start=Fraction(1)),
}


def by_points(
    pair: witness.ProgramPair, wanted: Sequence[bool], prover: Prover, limits: witness.Nearness
) -> Difference | None:
    """A difference on an input whose numbers are of a small pool, in a `wanted` output.

    Args:
        limits: see `witness.find`.
    """
    if not any(wanted) or not _suitable(pair):
        return None
    pool = pool_of(pair.a, pair.b)
    ops = sum(1 for p in (pair.a, pair.b) for _ in p.module.walk())
    doubts = 0
    for k in range(min(_DRAWS, _WORK // ops)):
        if doubts > _DOUBTS or time.monotonic() > prover.deadline:
            return None
        run = witness.PairRun(pair, prover.seed + k, 1.0, pool=pool)
        try:
            outputs = zip(*run.values(), strict=True)
            hits = [n for n, (x, y) in enumerate(outputs) if wanted[n] and _apart(x, y, limits)]
            found = _careful(run, hits, limits) if hits else None
        except UserError:  # these inputs do not suit it, or the reference cannot run it at all
            continue
        doubts += bool(hits)
        if found is not None:
            return found.named(pair.a.output_names[found.output])
    return None


def _apart(x: Array, y: Array, limits: witness.Nearness) -> bool:
    return bool(witness.differing(x, y, limits.part, unbounded=False).any())


def decided_by_rounding(pair: witness.ProgramPair, seed: int, scale: float) -> bool:
    """Whether a jump of small programs, on a normal draw, depends on how float64 rounds."""
    if not (all(map(_is_small, (pair.a, pair.b))) and any(map(_jumps, (pair.a, pair.b)))):
        return False
    arithmetic = _Careful(strict=False)
    run = witness.PairRun(pair, seed, scale, arithmetic=arithmetic, evaluate=arithmetic.evaluate)
    try:
        run.values()
    except _DoubtError:
        return True
    return False


def _careful(
    run: witness.PairRun, outputs: Sequence[int], limits: witness.Nearness
) -> witness.FoundDifference | None:
    """The first difference that rounding cannot have made."""
    arithmetic = _Careful()
    try:
        first, second = replace(run, arithmetic=arithmetic, evaluate=arithmetic.evaluate).values()
    except _DoubtError:
        return None
    for number in outputs:
        x, y = first[number], second[number]
        wrong = witness.differing(x, y, limits.part, unbounded=False)
        if wrong.any():
            at = tuple(int(axis) for axis in np.argwhere(wrong)[0])
            values, many = (float(x[at]), float(y[at])), int(wrong.sum())
            return witness.FoundDifference(
                number, at, values, many, int(x.size), run.scale, run.seed, pool=run.pool
            )
    return None


# --- the pool -------------------------------------------------------------------------------------


def pool_of(a: Program, b: Program) -> witness.Pool:
    """The numbers that inputs hold: constants of both programs, and what is near them."""
    own = [_constants(p) for p in (a, b)]
    known = list(
        dict.fromkeys(n for pair in itertools.zip_longest(*own) for n in pair if n is not None)
    )
    near = [m for n in known for m in (-n, n + 1, n - 1, n + 0.5, n - 0.5)]
    both = [m for x, y in itertools.permutations(known, 2) for m in _combined(x, y)]
    every = [*known, *_SMALL[:8], *near, *_SMALL, *both]
    return tuple(dict.fromkeys(n for n in every if math.isfinite(n)))[:_POOL]


def _combined(x: float, y: float) -> Iterator[float]:
    """Where `y a + x` crosses 0, or `y a` is `x`."""
    yield x - y
    if y:
        yield x // y if isinstance(x, int) and x % y == 0 else x / y


def _constants(program: Program) -> list[int | float]:
    """The first few different constants of a program."""
    found: dict[int | float, None] = {}
    for array in _numbers(program):
        if array.size > _FEW or array.dtype.kind == "b":
            continue
        plain = array if array.dtype.kind in "iu" else array.astype(np.float64)
        some = np.unique(plain)
        found.update(dict.fromkeys(some.tolist() if some.size <= _CONSTANTS else ()))
    return [n for n in found if math.isfinite(n)][:_CONSTANTS]


def _numbers(program: Program) -> Iterator[Array]:
    """Its literals, weights, and attributes of ops."""
    yield from numbers(program, weights=True)
    for op in program.module.walk():
        given = [a.value.data for a in op.properties.values() if isinstance(a, FloatAttr)]
        yield np.array(given, np.float64)


def _suitable(pair: witness.ProgramPair) -> bool:
    """Whether points may decide: small tensors, no halves, no constants that may be rounded."""
    both = (pair.a, pair.b)
    narrow = (is_narrow_float(element_of(v)) for p in both for v in _values(p))
    return all(map(_is_small, both)) and not any(narrow) and _long(pair.a) == _long(pair.b)


def _values(program: Program) -> Iterator[SSAValue]:
    block = program.main.body.block
    yield from block.args
    for op in block.ops:
        yield from op.results


def _is_small(program: Program) -> bool:
    return all(math.prod(tensor_type(v).get_shape()) <= _LARGEST for v in _values(program))


def _jumps(program: Program) -> bool:
    """Whether it makes booleans or integers, or rounds to whole numbers."""
    names = {op.name.rpartition(".")[2] for op in program.module.walk()}
    return bool(names & _STEPPING) or not all(is_float(element_of(v)) for v in _values(program))


def _long(program: Program) -> frozenset[object]:
    """The sizes of all float constants that may be rounded; large weights by their bytes."""
    found: set[object] = set()
    for array in _numbers(program):
        if array.dtype.kind in "iub":
            continue
        if array.size > _FEW:
            found.add(array.tobytes())
            continue
        sizes = np.abs(array.astype(np.float64))
        parts, _ = np.frexp(sizes[np.isfinite(sizes)])
        long = np.ldexp(parts, _SHORT_BITS) != np.rint(np.ldexp(parts, _SHORT_BITS))
        found.update(sizes[np.isfinite(sizes)][long].tolist())
    return frozenset(found)


# --- careful arithmetic ---------------------------------------------------------------------------


class _DoubtError(Exception):
    """What a run gives may depend on rounding, or real arithmetic does not model it."""


@dataclass(eq=False)
class _Careful(Arithmetic):
    """Real arithmetic that notices where float64 rounds, and where that may decide.

    Attributes:
        inexact: sizes of numbers that came of rounding, or of other such numbers. One that is exact
            elsewhere counts, too: that may cost a point, and claims nothing.
        largest: the largest number so far.
        strict: doubt also what real arithmetic does not model, and what ops choose unseen.
    """

    contracts = False
    strict: bool = True
    inexact: set[float] = field(default_factory=set[float])
    largest: float = 1.0

    def evaluate(
        self,
        op: Operation,
        operands: Sequence[Array],
        weights: Mapping[str, Array],
        arithmetic: Arithmetic,
    ) -> Sequence[Array]:
        """See `evaluate_op`. Raises _DoubtError."""
        if isinstance(op, OpaqueOp) or (op.regions and not isinstance(op, ScopeOp)):
            self._outside()
            return evaluate_op(op, operands, weights, Arithmetic.REAL)
        if isinstance(op, ScopeOp | OnesOp | ConstantOp | WeightOp):
            return evaluate_op(op, operands, weights, arithmetic)
        if isinstance(op, GraphOp) and type(op).has_scopes():
            steps = Steps.of(op)
            try:
                if all(isinstance(step, ScopeOp | OnesOp) for step in steps.ops):
                    return steps.evaluate(operands, arithmetic)
            finally:
                steps.drop()
        results = evaluate_op(op, operands, weights, Arithmetic.REAL)
        self._elsewhere(operands, results)
        return results

    def _elsewhere(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Judge an op that no scope expresses: it may move numbers, and choose by exact ones."""
        given = {n for array in operands if array.dtype.kind == "f" for n in array.flat}
        made = {n for array in results if array.dtype.kind == "f" for n in array.flat} - given
        chosen = bool(made) or any(array.dtype.kind != "f" for array in results)
        if not all(map(math.isfinite, given)) or (chosen and any(map(self._inexact, given))):
            self._outside()
        self._note(made, inexact=True)

    def tensor(self, value: Array, element: Attribute) -> Array:
        """As in real arithmetic."""
        return Arithmetic.REAL.tensor(value, element)

    def cast(self, value: Array, source: Attribute | None, target: Attribute) -> Array:
        """As in real arithmetic; to an integer only where it does not saturate."""
        found = super().cast(value, source, target)
        if source is None or source == target:
            return found
        for x, y in zip(value.ravel().tolist(), found.ravel().tolist(), strict=True):
            if not (math.isfinite(x) and math.isfinite(y)):
                self._outside()
            elif is_float(target):
                inexact = self._inexact(x) if is_float(source) else Fraction(x) != Fraction(y)
                self._note([y], inexact)
            elif is_float(source):
                if not is_bool(target) and abs(x - y) >= 1.0:
                    self._outside()
                self._margin(x, x if is_bool(target) else x - round(x))
        return found

    def call(self, node: Call, args: Sequence[Array], operand: Attribute | None) -> Array:
        """As in real arithmetic, where a result is finite and a jump is not near."""
        found, name = super().call(node, args, operand), node.function
        if (operand is not None and not is_float(operand)) or name in _MOVING:
            return found
        flat = [np.broadcast_to(a, found.shape).ravel().tolist() for a in args]
        for result, *given in zip(found.ravel().tolist(), *flat, strict=True):
            doubtful = any(map(self._inexact, given))
            jumps = doubtful and name in ("rem", "atan2")
            if jumps or not all(map(math.isfinite, (result, *given))):
                self._outside()
            elif name in _COMPARING:
                for value in given:
                    self._margin(value, given[0] - given[1])
            elif name in _STEPPING:
                (x,) = given
                self._margin(x, x - (math.floor(x) + 0.5 if name == "roundeven" else round(x)))
            else:
                self._note([result], doubtful or not _is_exact(name, result, given))
        return found

    def reduce(self, kind: str, value: Array, axes: tuple[int, ...]) -> Array:
        """As in real arithmetic."""
        found = super().reduce(kind, value, axes)
        if value.dtype.kind != "f" or kind not in ("sum", "prod"):
            return found
        last = tuple(range(-len(axes), 0))
        rows = np.moveaxis(value, axes, last).reshape(found.size, -1).tolist()
        for result, row in zip(found.ravel().tolist(), rows, strict=True):
            if not all(map(math.isfinite, (result, *row))):
                self._outside()
                continue
            long = value.size > _MOST_SUMMED or any(map(self._inexact, row))
            self._note([result], long or _SUMS[kind](map(Fraction, row)) != Fraction(result))
        return found

    def _inexact(self, value: float) -> bool:
        return abs(value) in self.inexact

    def _note(self, values: Iterable[float], inexact: bool) -> None:
        for value in values:
            self.largest = max(self.largest, abs(value))
            if inexact:
                self.inexact.add(abs(value))

    def _margin(self, value: float, distance: float) -> None:
        """Raise if an inexact number is that near to a jump.

        Where not strict, one exactly at it counts as meant: it mostly is a copy of what it meets.
        """
        if not self._inexact(value) or (distance == 0 and not self.strict):
            return
        if abs(distance) <= _TIE * (self.largest if self.strict else max(1.0, abs(value))):
            raise _DoubtError

    def _outside(self) -> None:
        if self.strict:
            raise _DoubtError


def _is_exact(name: str, result: float, args: Sequence[float]) -> bool:
    """Whether float64 gave the exact value of a function."""
    r, given = Fraction(result), [Fraction(a) for a in args]
    match name:
        case "add":
            return r == given[0] + given[1]
        case "sub":
            return r == given[0] - given[1]
        case "mul":
            return r == given[0] * given[1]
        case "div":
            return r * given[1] == given[0]
        case "sqrt":
            return r * r == given[0]
        case "rem":
            return True
        case "pow" if given[1] in range(9):
            return r == given[0] ** int(given[1])
        case _:  # exp(0), log(1), cos(0), ...
            return all(a in (0.0, 1.0) for a in args) and result in (0.0, 1.0)


__all__ = ["by_points", "pool_of"]

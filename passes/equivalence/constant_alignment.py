"""Remove the effect of rounded constants from two programs, so that small differences show.

Where constants were folded by another tool, a fault may be smaller than the effect of rounding
them. So the values of both programs are matched once more, without proofs: near values count as
equal, and their constants are compared. A weight within `most_ulps` of the other program's value
there is replaced by it, in float64. Programs whose constants were only rounded then agree to the
last places of float64; the remaining difference is the fault.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ...dialects.canonical_scope import Apply, Read, Source
from ...dialects.graph import WeightOp
from ...dialects.program import Program, where
from ...dialects.types import Array, to_numpy
from ...dialects.weights import Weights as Store
from .climbing import Fault
from .evaluator import sources_of
from .folded_constants import ConstantFactors, ConstantGroup, Data, coefficients, distances
from .layout_search import Digits
from .matcher import Matcher
from .prove import Proof
from .recognised_weights import ConstantValues
from .roundings import doubt, most_ulps
from .witness import Foreign, ProgramPair

# Values this near, relative to the largest, count as equal: a fault changes later values.
_NEAR = 2.0**-7
# A weight is replaced if it differs by at most this many times what counts as rounding.
_MAX_TIMES = 8.0
_SAME = 1e-12
# With fewer coefficients than this, most of them need not be near.
_FEW = 4


@dataclass
class ConstantAligner(Matcher):
    """Match values to compare their constants. The matches are no evidence of equality.

    Attributes:
        tied: by token of a weight, the other program's numbers for it.
        explained: tokens of weights whose numbers match the other program's except for rounding,
            or whose unmatched counterparts in the other are known.
        doubtful: by token of a weight, which of its numbers do not match.
        laid: by token of a weight with doubtful numbers, the other program's numbers for it.
        half: whether half floats hold the constants. Then a fault may be smaller than rounding, and
            values are one if most of their elements are near, and most of their coefficients.
        begins: the first op of the second program with coefficients that are too far apart.
    """

    tied: dict[str, Array] = field(default_factory=dict[str, Array])
    explained: set[str] = field(default_factory=set[str])
    doubtful: dict[str, Array] = field(default_factory=dict[str, Array])
    laid: dict[str, Array] = field(default_factory=dict[str, Array])
    begins: str = ""
    near: float = _NEAR
    half: bool = False
    beyond: bool = False

    def merge(self, source: Source, op: Operation) -> Source:
        """As `Matcher.merge`; also record the first number that rounding does not explain."""
        self.beyond = False
        found = super().merge(source, op)
        if self.beyond and not self.begins:
            self.begins = where(op)
        return found

    def lies(self, wanted: Array, found: Array) -> Digits | None:
        """As `Matcher.lies`, of half floats also if most elements are near: a fault moves some."""
        digits = super().lies(wanted, found)
        if digits is not None or not self.half or wanted.size != found.size or not wanted.size:
            return digits
        apart = np.abs(wanted.reshape(-1) - found.reshape(-1))
        size = math.sqrt(float(np.mean(np.square(wanted))))
        return ((wanted.size, 1),) if float(np.median(apart)) <= self.near * size else None

    def left(self, mine: Mapping[str, str], theirs: Mapping[str, str]) -> Foreign:
        """The weights that rounding does not explain, of the second program, else of the first.

        Args:
            mine, theirs: for each program the weights that the other lacks, with their tokens.
        """
        assert self.constants is not None
        found: dict[str, Array | None] = {}
        for name, token in (*mine.items(), *theirs.items()):
            if (doubtful := self.doubtful.get(token)) is not None:
                found[name] = doubtful * doubt(self.constants[token]())
        unknown = [
            {n for n, token in tokens.items() if token not in self.explained}
            for tokens in (theirs, mine)
        ]
        return found | dict.fromkeys(unknown[0] or unknown[1])

    def fault(self, side: str, tokens: Mapping[str, str]) -> Fault | None:
        """The doubtful numbers of one program's weights; None where there are none.

        Args:
            tokens: of the weights that the other program has not.
        """
        assert self.constants is not None
        numbers = {
            name: (np.where(self.doubtful[t], self.laid[t], self.tied[t]), self.tied[t])
            for name, t in sorted(tokens.items())
            if t in self.doubtful
        }
        return Fault(side, numbers) if numbers else None

    def compare(self, a: Source, b: Source) -> Proof:
        """Treat two values as equal if they are identical, or near and of the same structure."""
        cut = self._common(a, b, frozenset(self.matched))
        return self._prove(a, b, cut)

    def _prove(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        assert self.constants is not None
        if a is b:
            return Proof(True, "structural")
        if self.leaves_of(a) == self.leaves_of(b):
            return self.prover.prove(a, b, cut)
        groups = coefficients(self.prover, a, b, cut, self.constants)
        if groups is None or not all(side for g, _ in groups for side in g.parts):
            return super()._prove(a, b, cut)
        if not all(self._are_near(group) for group, _ in groups):
            return Proof(None)
        for group, _ in groups:
            self._tie(group, to_numpy(a.element), self.constants)
        return Proof(True, "near")

    def _tie(self, group: ConstantGroup, dtype: np.dtype[Any], data: Data) -> None:
        """Record the constants of a group, if one side's constants are a single weight."""
        for mine, other in ((0, 1), (1, 0)):
            only = group.whence[mine][0] if len(group.whence[mine]) == 1 else None
            plain = None if only is None else _plain(only)
            if only is None or plain is None or plain[0].token not in data:
                continue
            (source, axes), token = plain, plain[0].token
            total = sum(group.parts[other][1:], start=group.parts[other][0])
            laid = _laid(only, source, axes, total / float(only.coefficient))
            with np.errstate(all="ignore"):
                far = _laid(only, source, axes, ~(distances(group, dtype) <= most_ulps(dtype)))
            self._note_tie(token, data[token](), laid, far)
            self.beyond = self.beyond or bool(far.any())
            self.explained |= {
                s.token
                for side in group.whence
                for made in side
                for f in made.factors
                for s in sources_of_factor(f)
                if s.token in data
            }
            return

    def _are_near(self, group: ConstantGroup) -> bool:
        """Whether most coefficients of both sides are near; else the values are by chance."""
        one, other = (sum(side[1:], start=side[0]) for side in group.parts)
        if not self.half or max(one.size, other.size) < _FEW:
            return True
        with np.errstate(all="ignore"):
            apart = np.median(np.abs(one - other))
            return not apart > self.near * np.median(np.maximum(np.abs(one), np.abs(other)))

    def recognise(self, leaf: Source, values: ConstantValues) -> None:
        """Tie a weight to the value that the other program computes, if they are near."""
        assert self.constants is not None
        array = self.constants[leaf.token]()
        found = values.nearest(array, leaf, self.near)
        if found is not None:
            self._note_tie(leaf.token, array, found.numbers, found.far)
            self.explained |= {leaf.token, *self.leaves_of(found.source)}

    def _note_tie(self, token: str, array: Array, laid: Array, far: Array) -> None:
        """One weight, its value in the other program, and where they differ."""
        unit = np.spacing(np.abs(array)).astype(np.float64)
        with np.errstate(all="ignore"):
            most = _MAX_TIMES * most_ulps(array.dtype) * unit
            far = far | ~(np.abs(array.astype(np.float64) - laid) <= most)
            known = self.tied.get(token)
            if known is not None:  # read twice, as two constants that are near
                far = far | ~(np.abs(known - laid) <= _SAME * np.abs(laid))
        doubtful = far | self.doubtful.get(token, False)
        self.tied[token] = np.where(doubtful, array, laid if known is None else known)
        if doubtful.any():
            self.doubtful[token] = doubtful
            self.laid[token] = np.where(np.isfinite(laid), laid, array)


@dataclass(frozen=True)
class Tied:
    """Two programs with their rounded constants set equal.

    Attributes:
        left: the constants that rounding does not explain.
        begins: where the first of them is.
        faults: the numbers among them, by program.
    """

    program_pair: ProgramPair
    left: Foreign
    begins: str
    faults: Sequence[Fault]


def sources_of_factor(f: object) -> list[Source]:
    """The source that a factor reads."""
    if isinstance(f, Read):
        return [f.source]
    return [s for a in f.args for s in sources_of(a)] if isinstance(f, Apply) else []


def _plain(made: ConstantFactors) -> tuple[Source, list[int | None]] | None:
    """The weight that is a coefficient, and for each of its dims the coefficient's axis."""
    only = made.factors[0] if len(made.factors) == 1 else None
    if not isinstance(only, Read) or only.outside != 0.0:
        return None
    axes: list[int | None] = []
    for e, size in zip(only.index, only.source.shape, strict=True):
        k = e.terms[0][0] if e.constant == 0 and len(e.terms) == 1 and e.terms[0][1] == 1 else None
        if size == 1 and not e.terms:
            axes.append(None)
        elif isinstance(k, int) and k in made.axes and made.wide[k] == size:
            axes.append(made.axes.index(k))
        else:
            return None
    used = [axis for axis in axes if axis is not None]
    return (only.source, axes) if len(set(used)) == len(used) else None


def _laid(made: ConstantFactors, source: Source, axes: Sequence[int | None], total: Array) -> Array:
    """The coefficient's values in the layout of its weight."""
    total = np.broadcast_to(total, np.broadcast_shapes(total.shape, (1,) * len(made.axes)))
    kept = [axis for axis in axes if axis is not None]
    other = tuple(axis for axis in range(total.ndim) if axis not in kept)
    order = [sorted(kept).index(axis) for axis in kept]
    found = total.max(axis=other).transpose(order)  # the largest, where numbers differ
    positions = [slice(None) if axis is not None else None for axis in axes]
    return np.broadcast_to(found[tuple(positions)], source.shape)


def replaced(program: Program, tied: Mapping[str, Array], tokens: Mapping[str, str]) -> Program:
    """A program with the numbers of some weights replaced.

    Args:
        tokens: by weight, the token of its source.
    """
    names = {op.key for op in program.main.body.block.ops if isinstance(op, WeightOp)}
    changed = {n: tied[tokens[n]] for n in sorted(names & tokens.keys()) if tokens[n] in tied}
    kept = {n: (lambda n=n: program.weights[n]) for n in program.weights if n not in changed}
    return Program(program.module, Store({**kept, **changed}), program.source)


__all__ = ["ConstantAligner", "Tied", "replaced"]

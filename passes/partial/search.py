"""The best corrected mutants of one scope, proved equal to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.canonical_types import Leaf, Scope, Source, scope
from ..derivation.lift import leaves_of
from ..equivalence.prove import FIELD, OutOfTimeError, Prover
from ..equivalence.shrink import shrink
from ..search_result import Proof
from .correct import Correction, correct
from .generate import Count, Generator, Mutant, Options, work_of
from .region import Mask

# Dims up to this extent are not shrunk, so that views may change them.
_KEPT = 16

Price = Callable[[Scope], float]


@dataclass(frozen=True)
class Candidate:
    """A program equal to the one asked for, with the proof's method.

    Units: seconds are modelled.
    """

    mutant: Mutant
    correction: Correction
    method: str
    seconds: float

    @property
    def result(self) -> Scope:
        return self.correction.result

    @property
    def proof(self) -> Proof:
        """How it is known to be equal; residues may be wrong, with the prover's bound."""
        return "checked" if self.method.startswith(FIELD) else "exact"


@dataclass(frozen=True)
class Found:
    """Candidates, the cheapest first, what was counted, and why others were dropped."""

    candidates: tuple[Candidate, ...]
    count: Count
    unproved: int


def search_mutants(program: Scope, options: Options, price: Price, most: int = 16) -> Found:
    """Mutants of a program, corrected and proved, the cheapest by `price` first.

    The mutants are generated with as few channels as decide equality (the shrinking theorem of
    equivalence/shrink.py: a dim that is only read plainly), and then built at the program's size;
    what counts is the proof there.

    Args:
        most: mutants that are built, corrected, proved and priced: those of the least work.
    """
    started = time.monotonic()
    small, full = shrunk(program)
    generator = Generator([small], options, free_dims(full))
    found = sorted(generator.run(), key=lambda m: (_work(m), m.depth, m.text))
    prover = Prover(seed=options.seed, deadline=started + 4 * options.seconds)
    candidates: list[Candidate] = []
    unproved = 0
    for mutant in found[:most]:
        made = mutant.build(full)
        if made is program:
            continue
        (index,), (mask,) = mutant.index, mutant.masks
        correction = correct(program, made, index, grown(mask, program.shape))
        try:
            proof = prover.prove(program, correction.result)
        except OutOfTimeError:
            generator.count.stopped = "time"
            break
        if not proof.equal:
            unproved += 1
            continue
        seconds = price(correction.result)
        candidates.append(Candidate(mutant, correction, proof.method, seconds))
    ranked = sorted(candidates, key=lambda c: (c.seconds, c.mutant.depth, c.mutant.text))
    return Found(tuple(ranked), generator.count, unproved)


def _work(mutant: Mutant) -> float:
    """Work of a mutant with its correction, over that of the program; whole percents."""
    return round(mutant.work + mutant.wrong, 2)


def shrunk(program: Scope) -> tuple[Scope, dict[Leaf, Source]]:
    """The program with fewer channels, and the inputs that its inputs stand for."""
    expr, _, shape = shrink(program.expr, program.expr, program.shape, _KEPT)
    small = scope(shape, program.element, expr)
    of = {f"shrunk {leaf.token}": leaf for leaf in leaves_of(program)}
    names = {leaf: of.get(leaf.identity, leaf) for leaf in leaves_of(small)}
    return small, dict(names)


def free_dims(full: Mapping[Leaf, Source]) -> dict[Leaf, list[int]]:
    """The dims of each small input that a view may change: those that were not shrunk."""
    return {
        leaf: [d for d, n in enumerate(leaf.shape) if n == source.shape[d]]
        for leaf, source in full.items()
    }


def grown(mask: Mask, shape: Sequence[int]) -> Mask:
    """A mask at the full size: a dim that was shrunk is wrong everywhere if it is anywhere."""
    for dim, (have, want) in enumerate(zip(mask.shape, shape, strict=True)):
        if have != want:
            mask = np.asarray(mask.any(axis=dim, keepdims=True))
    return np.broadcast_to(mask, tuple(shape)).copy()


def correction_share(candidate: Candidate, program: Scope) -> float:
    """Multiplications of the correction over those of the program."""
    return sum(map(work_of, candidate.correction.parts)) / max(work_of(program), 1.0)


__all__ = [
    "Candidate",
    "Found",
    "correction_share",
    "free_dims",
    "grown",
    "search_mutants",
    "shrunk",
]

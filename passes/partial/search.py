"""The best corrected mutants of one scope, or of several with shared inputs, proved equal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.canonical_types import Extents, Leaf, Scope, Source, scope
from ..derivation.lift import leaves_of
from ..equivalence.inline import Inliner
from ..equivalence.prove import FIELD, OutOfTimeError, Prover
from ..equivalence.shrink import shrink
from ..search_result import Proof
from .correct import Correction, correct, restricted
from .generate import Count, Generator, Mutant, Options, work_of
from .operators import side_by_side_scope
from .region import Mask

# The dim along which programs that are searched together stand side by side.
_ALONG = 1
# Dims up to this extent are not shrunk, so that views may change them.
_KEPT = 16

Price = Callable[[Sequence[Scope]], float]


@dataclass(frozen=True)
class Candidate:
    """Programs equal to the ones asked for, of one product, with the proofs' methods.

    Units: seconds are modelled.
    """

    mutant: Mutant
    corrections: tuple[Correction, ...]
    methods: tuple[str, ...]
    seconds: float

    @property
    def results(self) -> tuple[Scope, ...]:
        return tuple(correction.result for correction in self.corrections)

    @property
    def proof(self) -> Proof:
        """How they are known to be equal; residues may be wrong, with the prover's bound."""
        return "checked" if any(m.startswith(FIELD) for m in self.methods) else "exact"


@dataclass(frozen=True)
class Found:
    """Candidates, the cheapest first, what was counted, and why others were dropped."""

    candidates: tuple[Candidate, ...]
    count: Count
    unproved: int


def search_mutants(
    programs: Sequence[Scope], options: Options, price: Price, most: int = 16
) -> Found:
    """Mutants that hold every one of some programs, corrected and proved, the cheapest first.

    The mutants are generated with as few channels as decide equality (the shrinking theorem of
    equivalence/shrink.py: a dim that is only read plainly), and then built at the programs' size;
    what counts is the proof there.

    Args:
        programs: several are of one shape but for the second dim (`groupable`).
        most: mutants that are built, corrected, proved and priced: those of the least work.
    """
    started = time.monotonic()
    small, full = shrunk(programs)
    generator = Generator(small, options, free_dims(full))
    found = sorted(generator.run(), key=lambda m: (_work(m), m.depth, m.text))
    prover = Prover(seed=options.seed, deadline=started + 4 * options.seconds)
    candidates: list[Candidate] = []
    unproved = 0
    for mutant in found[:most]:
        if mutant.build(full) in programs:
            continue
        try:
            made = _corrected(programs, mutant, full, prover, price)
        except OutOfTimeError:
            generator.count.stopped = "time"
            break
        if made is None:
            unproved += 1
        else:
            candidates.append(made)
    ranked = sorted(candidates, key=lambda c: (c.seconds, c.mutant.depth, c.mutant.text))
    return Found(tuple(ranked), generator.count, unproved)


def named_mutant(programs: Sequence[Scope], options: Options, name: str) -> Candidate | None:
    """The mutant of that name (`Mutant.name`), corrected and proved; None if none is found."""
    small, full = shrunk(programs)
    generator = Generator(small, options, free_dims(full))
    mutant = next((m for m in generator.run() if m.name == name), None)
    if mutant is None:
        return None
    return _corrected(programs, mutant, full, Prover(seed=options.seed), lambda _: 0.0)


def _corrected(
    programs: Sequence[Scope],
    mutant: Mutant,
    full: Mapping[Leaf, Source],
    prover: Prover,
    price: Price,
) -> Candidate | None:
    """A mutant at the programs' size with its corrections; None where that is not proved equal.

    Raises OutOfTimeError.
    """
    made = mutant.build(full)
    corrections = tuple(
        correct(program, made, index, grown(mask, program.shape))
        for program, index, mask in zip(programs, mutant.index, mutant.masks, strict=True)
    )
    results = [correction.result for correction in corrections]
    proofs = [prover.prove(p, r) for p, r in zip(programs, results, strict=True)]
    if not all(proof.equal for proof in proofs):
        return None
    return Candidate(mutant, corrections, tuple(p.method for p in proofs), price(results))


def _work(mutant: Mutant) -> float:
    """Work of a mutant with its correction, over that of the program; whole percents."""
    return round(mutant.work + mutant.wrong, 2)


def shrunk(programs: Sequence[Scope]) -> tuple[list[Scope], dict[Leaf, Source]]:
    """The programs with fewer channels, and the inputs that their inputs stand for.

    Several are shrunk as one, side by side along the second dim; the dims of one output, which
    then are cut at the seams, stay as they are.
    """
    joined = programs[0] if len(programs) == 1 else side_by_side_scope(programs, _ALONG)
    expr = joined.expr if len(programs) == 1 else Inliner().whole(joined)
    expr, _, shape = shrink(expr, expr, joined.shape, _KEPT)
    whole = scope(shape, joined.element, expr)
    small = [whole] if len(programs) == 1 else _apart(whole, programs)
    of = {f"shrunk {leaf.token}": leaf for program in programs for leaf in leaves_of(program)}
    leaves = [leaf for program in small for leaf in leaves_of(program)]
    return small, {leaf: of.get(leaf.identity, leaf) for leaf in leaves}


def _apart(whole: Scope, programs: Sequence[Scope]) -> list[Scope]:
    """What stands side by side in `whole`, each on its own."""
    made: list[Scope] = []
    start = 0
    for program in programs:
        box = [(0, n) for n in whole.shape]
        box[_ALONG] = (start, start + program.shape[_ALONG])
        made.append(restricted(whole, tuple(box)))
        start += program.shape[_ALONG]
    return made


def groupable(shapes: Sequence[Extents]) -> bool:
    """Whether programs of these shapes can be searched together."""
    return len({shape[:_ALONG] + shape[_ALONG + 1 :] for shape in shapes}) == 1


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


def correction_share(candidate: Candidate, programs: Sequence[Scope]) -> float:
    """Multiplications of the corrections over those of the programs."""
    parts = [part for correction in candidate.corrections for part in correction.parts]
    return sum(map(work_of, parts)) / max(sum(map(work_of, programs)), 1.0)


__all__ = [
    "Candidate",
    "Found",
    "correction_share",
    "free_dims",
    "groupable",
    "grown",
    "named_mutant",
    "search_mutants",
    "shrunk",
]

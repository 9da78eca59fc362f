"""The best corrected mutants of one scope, or of several with shared inputs, proved equal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...dialects.canonical_types import Extents, Leaf, Read, Scope, Source, scope
from ...dialects.index import range_of
from ..cost.costs import Costs
from ..derivation.lift import is_known, leaves_of
from ..derivation.price import ScopePrices
from ..equivalence.inline import Inliner
from ..equivalence.prove import FIELD, OutOfTimeError, Prover
from ..equivalence.shrink import shrink
from ..search_result import Proof
from ..work_clock import charge, now, wall_seconds
from .correct import Correction, Form, restricted
from .correction_forms import Corrected, corrected_forms
from .generate import GenerationCounts, Generator, Mutant, Options, work_of
from .operators import gathered, side_by_side_scope
from .region import Mask

# The dim along which programs that are searched together are placed side by side.
_ALONG = 1
# As parts of the generation's time: when pricing ends, and when proofs end.
_PRICING, _PROVING = 1.5, 2.0
# How many times more mutants are priced without their corrections than with.
_LOOKED = 8
# Dims up to this extent are not shrunk, so that views may change them.
_KEPT = 16
# What building and pricing one takes, or its corrections.
_SECONDS_A_MUTANT = 3e-3

Price = Callable[[Sequence[Scope]], float]


@dataclass(frozen=True)
class Candidate:
    """One product equal to the requested programs, with the proofs' methods.

    Units: seconds are modelled.
    """

    mutant: Mutant  # the product
    corrections: tuple[Correction, ...]  # where it is wrong
    methods: tuple[str, ...]  # of the proofs
    seconds: float  # of all of it

    @property
    def results(self) -> tuple[Scope, ...]:
        return tuple(correction.result for correction in self.corrections)

    @property
    def form(self) -> Form:
        """How its corrections are computed."""
        forms: list[Form] = [c.form for c in self.corrections if c.form != "plain"]
        return forms[0] if forms else "plain"

    @property
    def reorders(self) -> bool:
        """Whether the product has exactly the programs' positions: its views are inverses.

        Those of neighbours cancel.
        """
        return self.mutant.exact and self.mutant.work == 1.0

    @property
    def proof(self) -> Proof:
        """How they are known to be equal; residues may be wrong, within the prover's bound."""
        return "checked" if any(m.startswith(FIELD) for m in self.methods) else "exact"


@dataclass(frozen=True)
class FoundCandidates:
    """Candidates, the cheapest first, with counters, and reasons for dropped ones.

    Attributes:
        priced: mutants that were corrected and priced, in each form.
    """

    candidates: tuple[Candidate, ...]
    count: GenerationCounts
    unproved: int
    priced: int = 0


def search_mutants(
    programs: Sequence[Scope],
    options: Options,
    price: Price,
    most: int = 16,
    costs: Costs | None = None,
    enough: int = 8,
    below: float = math.inf,
) -> FoundCandidates:
    """Mutants that contain each of some programs, corrected and proved, the cheapest first.

    The mutants are generated with the fewest channels that decide equality (the shrinking theorem
    of equivalence/shrink.py: a dim that is only read plainly), and then built at the programs'
    size, where they are proved. The cheapest form of a mutant's corrections counts. Time left over
    from generation goes to prices and proofs, and as much again.

    Args:
        programs: several must have one shape except for the second dim (`groupable`).
        most: mutants that are corrected and priced: the cheapest of those with the least work.
        enough: candidates that are proved, the cheapest first.
        costs: of the target, for which corrections choose kernels; the cpu's by default.
        below: seconds; candidates modelled to take as long or longer are not proved.
    """
    started = now()
    small, full = shrunk(programs)
    generator = Generator(small, options, free_dims(full))
    wanted = (m for m in generator.run() if options.kinds in ("both", _kind(m)))
    found = sorted(wanted, key=lambda m: (_work(m), m.depth, m.text))
    prices = prices_of(full, costs)
    until = started + _PRICING * options.seconds
    ranked: list[Candidate] = []
    for mutant in _cheapest(programs, found[: _LOOKED * most], full, prices, below, until)[:most]:
        charge(_SECONDS_A_MUTANT)
        if now() > until:
            generator.count.stopped = "time"
            break
        for form, made in forms_of(programs, mutant, full, prices).items():
            if mutant.exact or form in options.forms:
                ranked.append(Candidate(mutant, made, (), price([c.result for c in made])))
    left = wall_seconds(started + _PROVING * options.seconds - now())
    prover = Prover(seed=options.seed, deadline=time.monotonic() + left)
    candidates: list[Candidate] = []
    unproved = 0
    for candidate in sorted(ranked, key=lambda c: (c.seconds, c.mutant.depth, c.mutant.text)):
        if len(candidates) == enough or candidate.seconds >= below:
            break
        if any(candidate.mutant is known.mutant for known in candidates):
            continue  # in a form that costs more
        try:
            proved = _proved(programs, candidate, prover)
        except OutOfTimeError:
            generator.count.stopped = "time"
            break
        unproved += proved is None
        candidates += [] if proved is None else [proved]
    return FoundCandidates(tuple(candidates), generator.count, unproved, len(ranked))


def _cheapest(
    programs: Sequence[Scope],
    mutants: Sequence[Mutant],
    full: Mapping[Leaf, Source],
    prices: ScopePrices,
    below: float,
    until: float,
) -> list[Mutant]:
    """The mutants by their modelled time with roughly their corrections, cheapest first.

    Those that are too slow without corrections are left out, and the programs themselves, and those
    for which there is no time.
    """
    found: list[tuple[float, int]] = []
    for number, mutant in enumerate(mutants):
        charge(_SECONDS_A_MUTANT)
        if now() > until:
            break
        made = mutant.build(full)
        if made in programs:
            continue
        pairs = zip(programs, mutant.index, strict=True)
        alone = prices.program([gathered(made, index, p.shape) for p, index in pairs]).seconds
        if alone < below or below == math.inf:
            # Roughly the cost of a correction: a kernel, and its share of the work.
            more = prices.target.launch + alone * mutant.wrong if mutant.wrong else 0.0
            found.append((alone + more, number))
    return [mutants[number] for _, number in sorted(found)]


def named_mutant(
    programs: Sequence[Scope],
    options: Options,
    name: str,
    form: str = "plain",
    costs: Costs | None = None,
    also: str = "",
) -> Candidate | None:
    """The mutant of that name, corrected in that form and proved; None if there is none.

    Args:
        also: another name to look for.
    """
    small, full = shrunk(programs)
    generator = Generator(small, options, free_dims(full))
    mutant = next((m for m in generator.run() if m.name in (name, also)), None)
    if mutant is None:
        return None
    forms = forms_of(programs, mutant, full, prices_of(full, costs))
    made = next((made for known, made in forms.items() if known == form), None)
    if made is None:
        return None
    return _proved(programs, Candidate(mutant, made, (), 0.0), Prover(seed=options.seed))


def prices_of(full: Mapping[Leaf, Source], costs: Costs | None) -> ScopePrices:
    """The costs that choose the library kernels of corrections."""
    known = [x.token for x in full.values() if isinstance(x, Leaf) and is_known(x)]
    return ScopePrices(known, costs=costs)


def forms_of(
    programs: Sequence[Scope], mutant: Mutant, full: Mapping[Leaf, Source], prices: ScopePrices
) -> dict[Form, Corrected]:
    """Every form of a mutant's corrections, none of them proved.

    Args:
        full: the programs' inputs, as `shrunk` gives them.
    """
    masks = [grown(m, p.shape) for p, m in zip(programs, mutant.masks, strict=True)]
    return corrected_forms(programs, mutant, full, masks, prices)


def _proved(programs: Sequence[Scope], given: Candidate, prover: Prover) -> Candidate | None:
    """The candidate with the methods of its proofs; None if it is not proved.

    Raises OutOfTimeError.
    """
    proofs = [prover.prove(p, r) for p, r in zip(programs, given.results, strict=True)]
    if not all(proof.equal for proof in proofs):
        return None
    return replace(given, methods=tuple(proof.method for proof in proofs))


def _kind(mutant: Mutant) -> str:
    return "exact" if mutant.exact else "partial"


def _work(mutant: Mutant) -> float:
    """Work of a mutant with its correction, over the program's, in whole percents."""
    return round(mutant.work + mutant.wrong, 2)


def shrunk(programs: Sequence[Scope]) -> tuple[list[Scope], dict[Leaf, Source]]:
    """The programs with fewer channels, and the inputs that their inputs replace.

    Several are shrunk as one, side by side along the second dim. The dims of one output, which
    is then cut at the seams, are not shrunk.
    """
    joined = programs[0] if len(programs) == 1 else side_by_side_scope(programs, _ALONG)
    expr = joined.expr if len(programs) == 1 else Inliner().inline_scope(joined)
    expr, _, shape = shrink(expr, expr, joined.shape, _KEPT)
    whole = scope(shape, joined.element, expr)
    small = [whole] if len(programs) == 1 else _separate_parts(whole, programs)
    of = {f"shrunk {leaf.token}": leaf for program in programs for leaf in leaves_of(program)}
    leaves = [leaf for program in small for leaf in leaves_of(program)]
    return small, {leaf: of.get(leaf.identity, leaf) for leaf in leaves}


def _separate_parts(whole: Scope, programs: Sequence[Scope]) -> list[Scope]:
    """The parts that are side by side in `whole`, separately."""
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
    apart = {shape[:_ALONG] + shape[_ALONG + 1 :] for shape in shapes}
    return len(apart) == 1 and all(len(shape) > _ALONG for shape in shapes)


def free_dims(full: Mapping[Leaf, Source]) -> dict[Leaf, list[int]]:
    """The dims of each small input that a view may change: those that were not shrunk."""
    return {
        leaf: [d for d, n in enumerate(leaf.shape) if n == source.shape[d]]
        for leaf, source in full.items()
    }


def grown(mask: Mask, shape: Sequence[int]) -> Mask:
    """A mask at full size: a dim that was shrunk is wrong everywhere if it is anywhere."""
    for dim, (have, want) in enumerate(zip(mask.shape, shape, strict=True)):
        if have != want:
            mask = np.asarray(mask.any(axis=dim, keepdims=True))
    return np.broadcast_to(mask, tuple(shape)).copy()


def correction_share(candidate: Candidate, programs: Sequence[Scope]) -> float:
    """Multiplications of the corrections over those of the programs."""
    parts = [part for correction in candidate.corrections for part in correction.parts]
    return sum(map(work_of, parts)) / max(sum(map(work_of, programs)), 1.0)


def correction_bytes(candidate: Candidate, programs: Sequence[Scope]) -> float:
    """Elements that the corrections read and write, over those of the programs."""
    parts = [part for correction in candidate.corrections for part in correction.parts]
    return sum(map(_touched, parts)) / max(sum(map(_touched, programs)), 1.0)


def _touched(root: Scope) -> float:
    """Elements of the result, and of each operand within its indices' range."""
    total = float(math.prod(root.shape))
    for term in root.expr.terms:
        extents = root.shape + term.sums
        for read in (f for f in term.factors if isinstance(f, Read)):
            sides = zip(read.index, read.source.shape, strict=True)
            ranges = [(*range_of(e, extents), n) for e, n in sides]
            total += math.prod(min(high, n - 1) - max(low, 0) + 1 for low, high, n in ranges)
    return total


__all__ = [
    "Candidate",
    "FoundCandidates",
    "correction_bytes",
    "correction_share",
    "forms_of",
    "free_dims",
    "groupable",
    "grown",
    "named_mutant",
    "prices_of",
    "search_mutants",
    "shrunk",
]

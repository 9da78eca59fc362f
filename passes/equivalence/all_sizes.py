"""Decide whether two programs with symbolic dims are equal at every size.

Both are compared as usual at a few sizes. A proof there is about smaller tensors (shrink.py): where
the proofs of all sizes drawn state the same, they prove it for every size from which on the dims
are at least as large as the smaller ones. Where a proof needs no statement, because both sides have
one canonical form at each size drawn, it counts as one for all sizes above what scopes reach beside
a position (size_reach.py): that a form is one formula in the sizes is assumed, and the verdict says
so. Smaller sizes are tried one by one; while one symbol is fixed, the others are treated in the
same way. A symbol that is divided by a number is treated apart for each remainder.

    seq >= 4         compared at 6, 17 and 44, the same statements: proved
    seq = 0 .. 3     four comparisons
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from typing import TypeAlias

from ...dialects.errors import UserError, one_line
from ...dialects.extent_math import Expression, Sizes, symbol
from ...dialects.extent_text import guard_text
from ...dialects.program import Program
from ...dialects.shape_guards import shape_env
from .compare import compare_with_proofs
from .folded_constants import METHOD as COEFFICIENTS
from .prove import SYMBOLIC, OutOfTimeError, Proof
from .size_claim import SAME_FORMULA, LeftOut, SizeCase, SizeClaim, sizes_text
from .size_reach import Reach, SourceNames, reach_of
from .size_regions import PROBES, RANGES, Region, SymbolTable, numbers_of
from .verdict import DIFFERENT, ORDER, UNKNOWN, Kind, OutputVerdict, Verdict

# Sizes below this are always tried: iterators of one point have a form of their own.
_SMALL = 4
# Of more sizes than this below a region that is proved, only the first `_SMALL` are tried.
_MAX_SINGLE = 12
_ANOTHER_WAY = "the programs are proved equal in another way at each size"
# Sizes tried where nothing can be proved.
_MAX_TRIED = 125


@dataclass(frozen=True)
class ProgramFamily:
    """A program for each choice of its symbols' numbers.

    Attributes:
        symbolic: the program with symbols.
        at: the program for sizes. Raises UserError where there is none.
        part: the family for sizes at which a guard of this one does not hold. Raises UserError
            where there is none. Without it the guards say which sizes there are.
    """

    symbolic: Program
    at: Callable[[Sizes], Program]
    part: Callable[[Sizes], ProgramFamily] | None = None

    def holds(self, sizes: Sizes) -> bool:
        """Whether its guards hold at sizes of all symbols."""
        return shape_env(self.symbolic.main).broken(sizes) is None


@dataclass(frozen=True)
class _Draw:
    """A comparison at sizes that says what it proved."""

    sizes: Sizes
    proofs: Sequence[Proof]
    reaches: Mapping[str, Reach]  # of the scopes by token, in order
    dims: Mapping[int, Sequence[Expression]]  # by their number


_Choose: TypeAlias = "Callable[[Region, int, random.Random], dict[str, int] | None]"


class _DifferentError(Exception):
    """The programs differ at some size."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict


class _NoProofError(Exception):
    """A region is not proved; the message is the reason."""


class _NoSizeError(_NoProofError):
    """No sizes of a region were found: the guards may allow none with these remainders."""


def compare_at_all_sizes(
    a: ProgramFamily, b: ProgramFamily, *, seed: int = 0, budget: float = 600.0
) -> Verdict:
    """The verdict on two families; `sizes` says for which sizes it holds and how.

    Args:
        seed: of the draws of sizes and of those of each comparison.
        budget: seconds; what is not compared by then is unknown.

    Raises:
        UserError: inputs or outputs differ in names, dims or types.
    """
    comparison = _Comparison(a, b, seed, time.monotonic() + budget)
    return comparison.run()


@dataclass
class _Comparison:
    a: ProgramFamily
    b: ProgramFamily
    seed: int
    deadline: float
    cases: list[SizeCase] = field(default_factory=list[SizeCase])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    proved: Mapping[str, int] | None = None  # smaller sizes are fixed, one after the other

    def run(self) -> Verdict:
        """Explore all sizes; the first difference ends it."""
        started = time.monotonic()
        self.symbols = SymbolTable.of((self.a.symbolic, self.b.symbolic))
        self.rng = random.Random(self.seed)
        try:
            every = Region({}, self._least_of_all())
            if self.symbols.undecided:
                self._try_some(every)
            else:
                self._explore(every)
        except OutOfTimeError:
            rest = SizeCase("the sizes that are left", "unknown", (), "the time budget is spent")
            self.cases.append(rest)
        except _DifferentError as found:
            claim = self._claim()
            return replace(found.verdict, seconds=time.monotonic() - started, sizes=claim)
        return replace(self._joined(), seconds=time.monotonic() - started)

    def _claim(self) -> SizeClaim:
        guards = self.symbols.guards
        if self._has_parts and self.proved is not None:  # the other sizes have cases of their own
            guards = self.symbols.open_guards(self.proved)
        texts = tuple(guard_text(guard) for guard in guards)
        return SizeClaim(self.symbols.names, texts, tuple(self.cases), tuple(self.left_out))

    def _least_of_all(self) -> dict[str, int]:
        """The least number of each symbol that there is a program for."""
        least = self.symbols.least
        return least if not self._has_parts else dict.fromkeys(least, 0)

    @property
    def _has_parts(self) -> bool:
        return self.a.part is not None and self.b.part is not None

    # --- regions ---

    def _explore(self, region: Region) -> None:
        """Large sizes at once, then each small one of each symbol."""
        if self.symbols.broken(region.fixed) is not None:
            self._elsewhere(region)
            return
        if not region.least:
            self._single(dict(region.fixed))
            return
        few = next((n for n in region.least if self.symbols.is_few(n, region.least[n])), None)
        if few is not None:
            self._one_by_one(region, few, int(self.symbols.bounds[few][1]) + 1)
            return
        found = [self._large(part) for part in self.symbols.parts(region)]
        if not region.fixed:
            self.proved = {name: max(part[name] for part in found) for name in region.least}
        for name in region.least:
            end = max(least[name] for least in found)
            region = self._one_by_one(region, name, end)

    def _elsewhere(self, region: Region) -> None:
        """A region at which a guard does not hold, by the families that are for it."""
        free = zip(region.least.items(), PROBES[0], strict=False)
        sizes = {**region.fixed, **{name: max(n, example) for (name, n), example in free}}
        families: list[ProgramFamily] = []
        for family in (self.a, self.b):
            if not family.holds(sizes):
                if family.part is None:
                    return  # there are no such sizes
                try:
                    family = family.part(sizes)
                except UserError as error:
                    where = region.text(self.symbols.periods)
                    self.left_out.append(LeftOut(where, one_line(str(error))))
                    return
            families.append(family)
        outer = self.a, self.b, self.symbols
        self.a, self.b = families
        self.symbols = SymbolTable.of([family.symbolic for family in families])
        try:
            if self.symbols.undecided or self.symbols.broken(region.fixed) is not None:
                reason = self.symbols.undecided or "a guard holds at no such size"
                self._note(region, "unknown", (), reason)
            else:
                self._explore(region)
        finally:
            self.a, self.b, self.symbols = outer

    def _one_by_one(self, region: Region, name: str, end: int) -> Region:
        """Try a symbol's numbers below `end`; the region that is left."""
        least = region.least[name]
        stop = end
        if end - least > _MAX_SINGLE:
            stop = least + _SMALL
            rest = replace(region, least={**region.least, name: stop})
            where = f"{rest.text({})}, {name} < {end}"
            self.cases.append(SizeCase(where, "unknown", (), "these sizes were not tried"))
        for number in range(least, stop):
            self._explore(region.with_fixed(name, number))
        return replace(region, least={**region.least, name: end})

    def _try_some(self, every: Region) -> None:
        """Look for a difference where nothing can be proved."""
        self._note(every, "unknown", (), self.symbols.undecided)
        choices = [(None, *range(least, least + _SMALL)) for least in every.least.values()]
        together = (zip(every.least, sizes, strict=True) for sizes in product(*choices))
        alone = [
            [(name, least + k)]
            for name, least in every.least.items()
            for k in range(_SMALL, self.symbols.periods.get(name, 0))
        ]
        for number, fixed in enumerate(islice(chain(together, alone), _MAX_TRIED)):
            region = every
            for name, size in fixed:
                region = region if size is None else region.with_fixed(name, size)
            sizes = self.symbols.draw(region, number % len(RANGES), self.rng)
            if sizes is not None:
                self._single(sizes)

    def _single(self, sizes: Sizes) -> None:
        found = self._compared(sizes, sizes)
        if found is not None:
            verdict, _ = found
            how, reason = ("compared", "") if verdict.is_equal else ("unknown", verdict.reason)
            self.cases.append(SizeCase(sizes_text(sizes), how, (sizes_text(sizes),), reason))

    def _large(self, part: Region) -> Mapping[str, int]:
        """Prove a region but for its smallest sizes; the sizes from which on it is proved."""
        start = replace(part, least={name: max(n, _SMALL) for name, n in part.least.items()})
        try:
            least, draws = self._proved(start)
        except _NoSizeError as error:
            if not self.symbols.is_empty(part):
                self._note(part, "unknown", (), str(error))
            return start.least
        except _NoProofError as error:
            self._note(part, "unknown", (), str(error))
            return start.least
        self._note(replace(part, least=least), "proved", draws)
        return least

    def _proved(self, region: Region) -> tuple[Mapping[str, int], list[_Draw]]:
        """The sizes from which on a region is proved, and what was compared for it.

        Raises:
            _NoProofError: it is not.
        """
        whole = replace(region, residues={})
        probes = [self._drawn(whole, n, self.symbols.probe) for n in range(len(PROBES))]
        above = self._above(region, self._reach(probes, [[*p.reaches] for p in probes], max))
        draws = self._draws(above)
        for number in _need_opening(draws):
            opened = [_proof(probe, number).opened for probe in probes]
            above = self._above(above, self._reach(probes, opened, sum))
        if any(above.least[name] > draw.sizes[name] for draw in draws for name in above.least):
            draws = self._draws(above)
            _need_opening(draws)
        needs: list[tuple[Expression, int]] = []
        for draw in draws:
            for extent, smaller in {pair for proof in draw.proofs for pair in proof.shrinkings}:
                needs += [(dim, smaller - 1) for dim in draw.dims.get(extent, [])]
                if extent not in draw.dims:
                    raise _NoProofError("a proof is about a size that is no dim of the programs")
        return self._above(above, needs).least, draws

    def _above(self, region: Region, needs: Iterable[tuple[Expression, int]]) -> Region:
        """The part of a region in which each dim is larger than a number."""
        least = self.symbols.least_for(region, needs)
        if least is None:
            raise _NoProofError("a dim may be small at every size")
        return replace(region, least=least)

    def _reach(
        self,
        probes: Sequence[_Draw],
        scopes: Sequence[Sequence[str]],
        joined: Callable[[Iterable[int]], int],
    ) -> list[tuple[Expression, int]]:
        """By dim, how far some scopes reach: what is found at every probe.

        Args:
            scopes: their tokens at each probe.
            joined: of the reach of several scopes.
        """
        if len({len(tokens) for tokens in scopes}) > 1:
            raise _NoProofError("the programs have other scopes at each size")
        found: dict[Expression, list[int]] = {}
        for group in zip(*scopes, strict=True):
            sets: list[set[tuple[Expression, int]]] = []
            for probe, token in zip(probes, group, strict=True):
                reach = probe.reaches.get(token, set())
                sets.append({(d, far) for size, far in reach for d in self._dims_of(probe, size)})
            own: dict[Expression, int] = {}
            for dim, far in set[tuple[Expression, int]].intersection(*sets):
                own[dim] = max(own.get(dim, 0), far)
            for dim, far in own.items():
                found.setdefault(dim, []).append(far)
        return [(dim, joined(far)) for dim, far in found.items()]

    def _dims_of(self, probe: _Draw, size: int) -> Sequence[Expression]:
        """The dims that are a number; of one that is no dim of the programs, every symbol."""
        every = [symbol(name) for name in self.symbols.names]
        return probe.dims.get(size, every)

    def _draws(self, region: Region) -> list[_Draw]:
        """A comparison for each range of sizes."""
        return [self._drawn(region, n, self.symbols.draw) for n in range(len(RANGES))]

    def _drawn(self, region: Region, number: int, draw: _Choose) -> _Draw:
        """A comparison at sizes of a region, equal.

        Raises:
            _NoProofError: there are none, or nothing is known.
        """
        sizes = draw(region, number, self.rng)
        if sizes is None:
            raise _NoSizeError("no such sizes that the guards allow were found")
        found = self._compared(sizes, region.fixed)
        if found is None:
            raise _NoProofError("one of the programs does not exist at a size drawn")
        verdict, made = found
        if not verdict.is_equal:
            raise _NoProofError(f"at {sizes_text(sizes)}: {verdict.reason}")
        return made

    # --- comparisons ---

    def _compared(self, sizes: Sizes, fixed: Collection[str]) -> tuple[Verdict, _Draw] | None:
        """The verdict at sizes and what it proved; None where there is no program.

        Raises:
            _DifferentError: the programs differ there.
            OutOfTimeError: the budget is spent.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTimeError
        try:
            first, second = self.a.at(sizes), self.b.at(sizes)
        except UserError as error:
            self.left_out.append(LeftOut(sizes_text(sizes), one_line(str(error))))
            return None
        names = SourceNames()
        verdict, proofs = compare_with_proofs(first, second, self.seed, left, names)
        self.verdicts.append(verdict)
        if verdict.kind == DIFFERENT:
            at = sizes_text(sizes)
            self.cases.append(SizeCase(at, "different", (at,)))
            raise _DifferentError(verdict)
        dims = self.symbols.dims_at(sizes)
        numbers = numbers_of(dims, fixed)
        found = {token: reach_of(s, numbers) for token, s in names.scopes.items()}
        return verdict, _Draw(sizes, proofs, found, dims)

    def _note(self, region: Region, how: str, draws: Sequence[_Draw], reason: str = "") -> None:
        tried = tuple(sizes_text(draw.sizes) for draw in draws)
        self.cases.append(SizeCase(region.text(self.symbols.periods), how, tried, reason))

    def _joined(self) -> Verdict:
        """One verdict from those at all sizes."""
        claim = self._claim()
        if not self.verdicts:
            outputs = tuple(OutputVerdict(n, UNKNOWN) for n in self.a.symbolic.output_names)
            return Verdict(UNKNOWN, outputs, 0.0, 0.0, self.seed, reason=claim.gap, sizes=claim)
        worst = max(self.verdicts, key=lambda v: ORDER.index(v.kind))
        kind: Kind = UNKNOWN if claim.gap else worst.kind
        methods: dict[str, int] = {}
        for name, count in (pair for v in self.verdicts for pair in v.methods):
            methods[name] = methods.get(name, 0) + count
        assumed = {a.name: a for v in self.verdicts for a in v.assumptions}
        if any(case.how == "proved" for case in claim.cases):
            assumed[SAME_FORMULA.name] = SAME_FORMULA
        outputs = tuple(
            replace(o, kind=kind, reason=claim.gap or o.reason) if claim.gap else o
            for o in worst.outputs
        )
        return replace(
            worst,
            kind=kind,
            outputs=outputs,
            error_bound=min(1.0, sum(v.error_bound for v in self.verdicts)) if not claim.gap else 0,
            methods=tuple(sorted(methods.items())),
            primes=tuple(sorted({p for v in self.verdicts for p in v.primes})),
            assumptions=tuple(assumed[name] for name in sorted(assumed)),
            reason=claim.gap,
            sizes=claim,
        )


def _need_opening(draws: Sequence[_Draw]) -> list[int]:
    """The numbers of the proofs that are the same at each draw only once scopes are opened.

    Raises:
        _NoProofError: one is not the same then either.
    """
    if len({len(draw.proofs) for draw in draws}) > 1:
        raise _NoProofError(_ANOTHER_WAY)
    found: list[int] = []
    for number, group in enumerate(zip(*(draw.proofs for draw in draws), strict=True)):
        first = group[0]
        if len({(p.place, p.method) for p in group}) > 1 or first.method == COEFFICIENTS:
            raise _NoProofError(_depends(first))
        if len({proof.statements[:1] for proof in group}) == 1:
            continue
        found.append(number)
        said = [proof.statements[1:] for proof in group]
        # One form at each size, or one statement at all of them.
        one_form = not any(said) and first.method.startswith(SYMBOLIC)
        if not one_form and (not all(said) or len(set(said)) > 1):
            raise _NoProofError(_depends(first))
    return found


def _proof(draw: _Draw, number: int) -> Proof:
    if number >= len(draw.proofs):
        raise _NoProofError(_ANOTHER_WAY)
    return draw.proofs[number]


def _depends(proof: Proof) -> str:
    of = f" of {proof.place.op}" if proof.place is not None and proof.place.op else ""
    return f"the proof{of} depends on the size"

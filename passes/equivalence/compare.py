"""Compare two programs: match their values, judge each output, look for a witness."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...dialects.canonical_scope import Source, leaf
from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Array, Tensor
from . import cancellation, folded_constants, witness
from .climbing import few_apart
from .constant_alignment import ConstantAligner, Tied, replaced
from .differences import (
    Pairs,
    by_climbing,
    by_residues,
    by_witness,
    depends_on,
    first_lost,
    foreign_constants,
    narrower,
)
from .identities import STATEMENTS
from .loops import by_loops
from .matcher import Matcher
from .points import by_points
from .prove import FIELD, OutOfTimeError, Proof, Prover
from .recognised_weights import ConstantValues
from .roundings import Roundings
from .run_check import agree, is_special
from .sampler import Sampler
from .size_reach import SourceNames
from .translate import Translator
from .verdict import (
    DIFFERENT,
    EQUAL,
    FOLDING,
    FUNCTIONS,
    ORDER,
    UNKNOWN,
    Assumption,
    Difference,
    FoldedConstant,
    Kind,
    OutputVerdict,
    Verdict,
)
from .weight_identities import WeightIdentities

# Multiplications of one field check: before the search for a witness, and after it.
_LIGHT, _HEAVY = 3e9, 6e10


def compare(a: Program, b: Program, *, seed: int = 0, budget: float = 60.0) -> Verdict:
    """Decide whether two programs compute the same function, at every output position.

    Levels may be mixed, within and between the programs. Inputs and outputs correspond by name
    (outputs by position if their names differ and were not given by the user).

    Args:
        seed: together with both programs' texts it chooses primes, random values and witnesses, so
            that nobody can write a program for known draws.
        budget: seconds; after them, everything unproved is unknown.

    Raises:
        UserError: inputs or outputs differ in names, shapes or types, so they cannot be compared.
    """
    deadline = time.monotonic() + budget
    found, _ = compare_with_proofs(a, b, seed, budget, names=None)

    def parts(mine: Program, other: Program) -> Verdict:
        return compare(mine, other, seed=seed, budget=max(deadline - time.monotonic(), 0.0))

    if found.kind == UNKNOWN:
        by_parts = by_loops(a, b, parts)
        if by_parts is not None:
            seconds = budget - (deadline - time.monotonic())
            return replace(by_parts, seed=seed, seconds=seconds)
    return found


def compare_with_proofs(
    a: Program, b: Program, seed: int, budget: float, names: SourceNames | None
) -> tuple[Verdict, list[Proof]]:
    """As `compare`, value by value, with the proofs of the values, in order.

    Args:
        names: filled with a name for each source, by token; then proofs say what they proved.
    """
    started = time.monotonic()
    order = correspondence(a, b)
    comparison = _Comparison(a, b, order, _draws(a, b, seed), started + budget, names)
    found = replace(comparison.run(), seed=seed, seconds=time.monotonic() - started)
    return found, comparison.proofs


def fresh_seed() -> int:
    """A fresh, unpredictable seed, which JSON and the command line represent exactly."""
    return secrets.randbits(48)


def _draws(a: Program, b: Program, seed: int) -> int:
    """The root of all random draws of one comparison."""
    texts = [hashlib.sha256(str(p.module).encode()).hexdigest() for p in (a, b)]
    joined = hashlib.sha256(f"{seed} {texts[0]} {texts[1]}".encode()).digest()
    return int.from_bytes(joined[:6], "big")


def correspondence(a: Program, b: Program) -> list[int]:
    """For each output of `a`, the number of the output of `b` to compare it with.

    Raises:
        UserError: the signatures differ; says how in one line.
    """
    _same_types("input", a.inputs, b.inputs)
    mine, theirs = a.output_names, b.output_names
    if sorted(mine) != sorted(theirs):
        given = a.main.res_attrs is not None and b.main.res_attrs is not None
        if given or len(mine) != len(theirs):
            raise UserError(
                "the programs have different outputs",
                expected=", ".join(mine),
                found=", ".join(theirs),
            )
        order = list(range(len(mine)))
    else:
        order = [theirs.index(name) for name in mine]
    for name, k in zip(mine, order, strict=True):
        type_, other = a.outputs[name], b.outputs[theirs[k]]
        if _signature(type_) != _signature(other):
            raise UserError(f"output '{name}' differs in type", expected=type_, found=other)
    return order


def _same_types(kind: str, mine: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    if sorted(mine) != sorted(theirs):
        raise UserError(
            f"the programs have different {kind}s",
            expected=", ".join(mine),
            found=", ".join(theirs),
        )
    for name, type_ in mine.items():
        if _signature(type_) != _signature(theirs[name]):
            raise UserError(f"{kind} '{name}' differs in type", expected=type_, found=theirs[name])


def _signature(type_: Tensor) -> tuple[object, ...]:
    """Shape and element type, without the layout."""
    return type_.get_shape(), type_.element_type


@dataclass
class _Comparison:
    a: Program
    b: Program
    order: Sequence[int]
    seed: int
    deadline: float
    names: SourceNames | None = None
    proofs: list[Proof] = field(default_factory=list[Proof])
    state: tuple[Matcher, Pairs, list[Proof]] | None = None
    foreign: Sequence[Sequence[str]] = ()

    def run(self) -> Verdict:
        """The verdict; memoised data are dropped afterwards."""
        self.program_pair = witness.ProgramPair(self.a, self.b, self.order)
        self.roundings = Roundings.of(self.a, self.b)
        try:
            return self._run()
        finally:
            self.program_pair.remembering.drop()

    def _run(self) -> Verdict:
        self.weights = WeightIdentities(self.a, self.b)
        self.program_pair.identity = self.weights.identity
        self.prover = Prover(self.seed, self.deadline, most_work=_LIGHT, names=self.names)
        self.sampler = Sampler(self._inputs(), self.weights.data, self.prover.check)
        found: list[Verdict] = []
        for more in (False, True):
            try:
                verdict = self._match(more)
            except OutOfTimeError:
                found.append(self._unknown("the time budget is spent"))
                break
            if verdict.kind != UNKNOWN:
                return self._agreed(verdict)
            found.append(verdict)
        try:
            different = self._by_a_little() or self._by_residues() or self._by_points()
        except OutOfTimeError:
            different = None
        return found[0] if different is None else different

    def _agreed(self, verdict: Verdict) -> Verdict:
        """The verdict, after runs where exact arithmetic alone does not justify it."""
        if not verdict.is_equal or not self._needs_runs(verdict):
            return verdict
        assumed = {a.name for a in verdict.assumptions}
        # A constant made at compile time is rounded, though by no unit in the last place.
        rounded = bool(self.weights.folded) or folded_constants.NAME in assumed
        folded = self.roundings if rounded else None
        found = agree(self.program_pair, self.prover.seed, self.prover.deadline, folded)
        if found.different is not None:
            outputs = tuple(
                OutputVerdict(name, DIFFERENT, ("reference",))
                if name == found.different.output
                else OutputVerdict(name, UNKNOWN)
                for name in self.a.output_names
            )
            return self._base(DIFFERENT, outputs, difference=found.different)
        return self._unknown(found.reason) if found.reason else verdict

    def _needs_runs(self, verdict: Verdict) -> bool:
        names = {a.name for a in verdict.assumptions}
        if names & {cancellation.NAME, folded_constants.NAME} or verdict.largest_ulps > 0:
            return True
        shared = self.weights.shared
        return any(is_special(p, weights=not shared) for p in (self.a, self.b))

    def _match(self, more: bool) -> Verdict:
        """Match all values; `more` allows identities of functions, and constants by their value."""
        matcher = Matcher(self.prover, self.sampler, functions=more)
        if self.names is not None:
            self.names.clear()
        if more:
            matcher.constants, matcher.near = self.weights.data, self.roundings.near
            if not self.weights.shared:
                made = {id(p): ConstantValues(p, self._of_constants(p)) for p in (self.a, self.b)}
                self.weights.values = made
        first = self._translator("a", self.a, matcher).program(self.a, self.a.input_names)
        other = self._translator("b", self.b, matcher)
        second = other.program(self.b, self.b.input_names)
        pairs: Pairs = [(x, second[self.order[k]]) for k, x in enumerate(first)]
        proofs = [self._output(matcher, x, y) for x, y in pairs]
        if not more:
            self.state = matcher, pairs, proofs
        if not all(p.equal for p in proofs) and not more:
            different = self._different(matcher, pairs, proofs)
            if different is not None:
                return different
            self.foreign = foreign_constants(matcher, pairs)
            self.prover.most_work = _HEAVY if not any(self.foreign) else _LIGHT
            proofs = [
                proof if proof.equal else self._output(matcher, x, y)
                for (x, y), proof in zip(pairs, proofs, strict=True)
            ]
        return self._verdict(matcher, proofs)

    def _inputs(self) -> dict[str, Callable[[], Array]]:
        """The data of weights, and one draw of inputs."""
        drawn = {
            leaf(f"input {name}", t.get_shape(), t.element_type).token: (name, t)
            for name, t in self.a.inputs.items()
        }
        ours = {
            token: partial(witness.draw, name, type_, self.seed - self.seed % 3, 1.0)
            for token, (name, type_) in drawn.items()
        }
        return ours

    def _translator(self, side: str, program: Program, matcher: Matcher) -> Translator:
        translator = Translator(
            weight=lambda op: self.weights.source(op, program),
            merge=matcher.add if side == "a" else matcher.merge,
            side=side,
            data=lambda op: program.weights.get(op.key),
            called=self.sampler.called,
            discrete=lambda array, element: self.weights.discrete(array, element, program),
        )
        translator.literal_expression = lambda op: self.weights.literal(op, program)
        if self.names is not None:
            translator.made = self.names.see
        return translator

    def _of_constants(self, program: Program) -> Translator:
        """The proof of outputs that do not depend on inputs; they need no matching."""
        return Translator(
            weight=lambda op: self.weights.stated(op, program),
            data=lambda op: program.weights.get(op.key),
            called=self.sampler.called,
            discrete=lambda array, element: self.weights.discrete(array, element, program),
            literal_expression=lambda op: self.weights.literal(op, program),
        )

    def _output(self, matcher: Matcher, a: Source, b: Source) -> Proof:
        known = matcher.matched.get(b.token)
        if a is b:
            return Proof(True, "structural") if known is None else known
        if not matcher.agree(a, b) or matcher.is_out_of_reach(b):
            return Proof(None)
        try:
            proof = matcher.compare(a, b)
        except OutOfTimeError:
            return Proof(None, reason="the time budget is spent")
        if proof.equal:
            matcher.matched[a.token] = proof
            matcher.proofs.append(matcher.placed(a, proof))
        return proof

    # --- the verdict ---

    def _verdict(self, matcher: Matcher, proofs: Sequence[Proof]) -> Verdict:
        self.proofs = matcher.proofs
        bound = min(1.0, sum(p.bound for p in matcher.proofs))
        assumed = sorted({name for p in matcher.proofs for name in p.assumptions})
        if self.weights.recognised:
            assumed = sorted({*assumed, folded_constants.NAME})
        folded = bool(self.weights.folded) or folded_constants.NAME in assumed
        functions = any(name != folded_constants.NAME for name in assumed)
        kind: Kind = FUNCTIONS if functions else FOLDING if folded else EQUAL
        outputs: list[OutputVerdict] = []
        for name, proof in zip(self.a.output_names, proofs, strict=True):
            if proof.equal:
                outputs.append(OutputVerdict(name, kind, (proof.method,), bound))
                continue
            foreign = self.foreign[len(outputs)] if self.foreign else []
            outputs.append(OutputVerdict(name, UNKNOWN, (), 0.0, self._reason(proof, foreign)))
        kinds: list[Kind] = [o.kind for o in outputs]
        worst: Kind = max(kinds, key=ORDER.index)
        reasons = [o.reason for o in outputs if o.reason]
        return self._base(
            worst,
            tuple(outputs),
            bound=bound,
            reason=reasons[0] if reasons else "",
            matcher=matcher,
            assumed=assumed,
        )

    def _reason(self, proof: Proof, foreign: Sequence[str]) -> str:
        if self.weights.wrong:
            name, constant = next(iter(sorted(self.weights.wrong.items())))
            return f"constant '{name}' is {constant.ulps:.3g} ulp from the expression it carries"
        if self.weights.alone:
            name = self.weights.alone[0]
            return (
                f"the data of weight '{name}' is absent, and only one program has it by that type"
            )
        if foreign:
            several = len(foreign) > 1
            one = f"{len(foreign)} constants" if several else "a constant"
            are, carry = ("are", "carry") if several else ("is", "carries")
            return (
                f"{one} of one program {are} not in the other, and {carry} no expression over "
                f"its weights: '{foreign[0]}'{', ...' if several else ''}; on the inputs "
                "tried the outputs agree but for rounding"
            )
        if proof.reason:
            return proof.reason
        return (
            "they are not equal for arbitrary functions in place of the nonlinear ones, "
            "and no input was found that shows a difference"
        )

    def _base(
        self,
        kind: Kind,
        outputs: tuple[OutputVerdict, ...],
        bound: float = 0.0,
        reason: str = "",
        matcher: Matcher | None = None,
        assumed: Sequence[str] = (),
        difference: Difference | None = None,
    ) -> Verdict:
        proofs = matcher.proofs if matcher is not None else []
        counts: dict[str, int] = {}
        for proof in proofs:
            counts[proof.method] = counts.get(proof.method, 0) + 1
        primes = [p.primes for p in proofs if p.primes]
        equal = kind in (EQUAL, FOLDING, FUNCTIONS)
        statements = {**STATEMENTS, folded_constants.NAME: folded_constants.STATEMENT}
        statements[cancellation.NAME] = cancellation.STATEMENT
        assumptions = [Assumption(name, statements[name]) for name in assumed]
        if self.weights.by_name:
            listed = ", ".join(f"'{name}'" for name in self.weights.by_name)
            statement = f"weights of one name whose data is absent are the same: {listed}"
            assumptions.append(Assumption("weights-by-name", statement))
        folded = dict(self.weights.folded)
        if matcher is not None and any(folded_constants.NAME in p.assumptions for p in proofs):
            names = sorted({name for group in self.foreign for name in group})
            folded |= {name: FoldedConstant(name, "", matcher.apart) for name in names}
        folded |= self.weights.recognised if equal else {}
        return Verdict(
            kind=kind,
            outputs=outputs,
            error_bound=bound if equal else 0.0,
            seconds=0.0,
            seed=self.seed,
            methods=tuple(sorted(counts.items())),
            primes=tuple(sorted({p for group in primes for p in group})),
            lanes=max((len(group) for group in primes), default=0),
            difference=difference,
            folded=tuple(c for _, c in sorted(folded.items())),
            assumptions=tuple(assumptions),
            reason=reason,
        )

    def _unknown(self, reason: str) -> Verdict:
        outputs = tuple(OutputVerdict(n, UNKNOWN, (), 0.0, reason) for n in self.a.output_names)
        return self._base(UNKNOWN, outputs, reason=reason)

    def _different(self, matcher: Matcher, pairs: Pairs, proofs: Sequence[Proof]) -> Verdict | None:
        """The verdict "different", if a concrete input shows more than rounding can make."""
        wanted = self._decidable(pairs, proofs)
        found = by_witness(self.program_pair, pairs, wanted, self.prover, self.roundings.limits)
        return None if found is None else self._differing(found, matcher, pairs, proofs)

    def _by_a_little(self) -> Verdict | None:
        """As `_different`, for a small difference that rounding of constants does not explain.

        Literals need no more doubt: rounded ones were tried and are not the only difference. Those
        of half floats have too few digits for that.
        """
        if self.state is None:
            return None
        matcher, pairs, proofs = self.state
        wanted = self._decidable(pairs, proofs)
        small = self.roundings.limits if self.roundings.literals else witness.EXACT
        if not any(self.foreign) or self.weights.shared:
            found = by_witness(self.program_pair, pairs, wanted, self.prover, small)
            return None if found is None else self._differing(found, matcher, pairs, proofs)
        tied = self._tied()
        more = tied.left, self.program_pair
        found = by_witness(tied.program_pair, pairs, wanted, self.prover, small, *more)
        if found is None:
            found = by_climbing(tied, wanted, self.prover, small, *more)
        if found is None:
            return None
        return self._differing(found, matcher, pairs, proofs, tied.begins)

    def _tied(self) -> Tied:
        """Both programs with rounded constants set equal."""
        tier = ConstantAligner(
            self.prover, self.sampler, functions=True, constants=self.weights.data
        )
        tier.near, tier.half = max(tier.near, self.roundings.one), self.roundings.half
        for side, program in (("a", self.a), ("b", self.b)):
            self._translator(side, program, tier).program(program, program.input_names)
        own = {id(p): self.weights.own(p) for p in (self.a, self.b)}
        for program, other in ((self.a, self.b), (self.b, self.a)):
            for leaf_ in own[id(program)].values():
                if leaf_.token in self.weights.data and id(other) in self.weights.values:
                    tier.recognise(leaf_, self.weights.values[id(other)])
        mine, theirs = ({n: s.token for n, s in own[id(p)].items()} for p in (self.a, self.b))
        a, b = replaced(self.a, tier.tied, mine), replaced(self.b, tier.tied, theirs)
        tied = witness.ProgramPair(a, b, self.order, remembering=self.program_pair.remembering)
        few = few_apart(self.a, self.b, sorted(mine), sorted(theirs))
        every = (few, tier.fault("b", theirs), tier.fault("a", mine))
        faults = [f.coarse for f in every if f is not None][:1]
        return Tied(tied, tier.left(mine, theirs), tier.begins, faults)

    def _decidable(self, pairs: Pairs, proofs: Sequence[Proof]) -> list[bool]:
        """The outputs that may be shown to differ: those that depend on no unknown weight."""
        unknown = frozenset(f"weight name {key}" for key in self.weights.alone)
        return [
            not proof.equal and not any(depends_on(source, unknown) for source in pair)
            for pair, proof in zip(pairs, proofs, strict=True)
        ]

    def _by_points(self) -> Verdict | None:
        """The verdict "different", if they differ at points that normal draws never meet."""
        if self.state is None:
            return None
        matcher, pairs, proofs = self.state
        wanted = self._decidable(pairs, proofs)
        found = by_points(self.program_pair, wanted, self.prover, self.roundings.limits)
        return None if found is None else self._differing(found, matcher, pairs, proofs)

    def _by_residues(self) -> Verdict | None:
        """The verdict "different", if outputs are polynomials of the inputs alone."""
        if self.state is None:
            return None
        matcher, pairs, proofs = self.state
        wanted = self._decidable(pairs, proofs)
        found = by_residues(self.a, self.b, pairs, wanted, self.prover)
        return None if found is None else self._differing(found, matcher, pairs, proofs)

    def _differing(
        self,
        found: Difference,
        matcher: Matcher,
        pairs: Pairs,
        proofs: Sequence[Proof],
        begins: str = "",
    ) -> Verdict:
        inside, why = begins or first_lost(matcher, pairs, proofs), narrower(self.a, self.b)
        found = replace(found, inside=inside, why=why)
        method = "reference" if found.witness else FIELD
        outputs = tuple(
            OutputVerdict(name, EQUAL if p.equal else UNKNOWN, (p.method,) if p.equal else ())
            if name != found.output
            else OutputVerdict(name, DIFFERENT, (method,))
            for name, p in zip(self.a.output_names, proofs, strict=True)
        )
        return self._base(DIFFERENT, outputs, matcher=matcher, difference=found)


__all__ = ["compare", "correspondence", "fresh_seed"]

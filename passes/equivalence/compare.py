"""Compare two programs: match their values, judge each output, look for a witness."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ...dialects.canonical_scope import Apply, Leaf, Read, Reduce, Scope, Source, Symbol
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program, where
from ...dialects.types import Tensor, is_bool
from . import witness
from .field import Evaluator, TooLargeError, schedule
from .identities import STATEMENTS
from .match import Matcher
from .prove import OutOfTimeError, Proof, Prover
from .residues import BadPrimeError, Residues, draw_primes
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
    Kind,
    OutputVerdict,
    Verdict,
)
from .weights import Weights

# With constants of unknown origin, differences below this may be their rounding.
_LOOSE = 1e-4
# Multiplications of one field check: before a witness was looked for, and after.
_LIGHT, _HEAVY = 3e9, 6e10


def compare(a: Program, b: Program, *, seed: int = 0, budget: float = 60.0) -> Verdict:
    """Decide whether two programs compute the same function, at every output position.

    Levels may be mixed, in and between the programs. Inputs and outputs correspond by name (outputs
    by place where names differ and are not given by the user).

    Args:
        seed: chooses primes, random values and witnesses.
        budget: seconds; past it what is not proved is unknown.

    Raises:
        UserError: inputs or outputs differ in names, shapes or types, so nothing can be compared.
    """
    started = time.monotonic()
    order = correspondence(a, b)
    comparison = _Comparison(a, b, order, seed, started + budget)
    found = comparison.run()
    return replace(found, seconds=time.monotonic() - started)


def correspondence(a: Program, b: Program) -> list[int]:
    """For each output of `a`, the number of the output of `b` that it is compared with.

    Raises:
        UserError: in one line, what differs between the signatures.
    """
    _same_types("input", a.inputs, b.inputs)
    mine, theirs = list(a.outputs), list(b.outputs)
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
    types = list(b.outputs.values())
    for k, (name, type_) in enumerate(a.outputs.items()):
        other = types[order[k]]
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
    """Shape and element type, layouts aside."""
    return type_.get_shape(), type_.element_type


@dataclass
class _Comparison:
    a: Program
    b: Program
    order: Sequence[int]
    seed: int
    deadline: float

    def run(self) -> Verdict:
        self.weights = Weights(self.a, self.b)
        self.prover = Prover(self.seed, self.deadline, most_work=_LIGHT)
        found: list[Verdict] = []
        for functions in (False, True):
            try:
                verdict = self._match(functions)
            except OutOfTimeError:
                found.append(self._unknown("the time budget is spent"))
                break
            if verdict.kind != UNKNOWN:
                return verdict
            found.append(verdict)
        different = self._by_residues()
        return found[0] if different is None else different

    def _match(self, functions: bool) -> Verdict:
        matcher = Matcher(self.prover, functions=functions)
        first = self._translator("a", self.a, matcher).program(self.a, self.a.input_names)
        other = self._translator("b", self.b, matcher)
        second = other.program(self.b, self.b.input_names)
        pairs = [(x, second[self.order[k]]) for k, x in enumerate(first)]
        proofs = [self._output(matcher, x, y) for x, y in pairs]
        if not functions:
            self.state = matcher, pairs, proofs
        if not all(p.equal for p in proofs) and not functions:
            different = self._different(matcher, pairs, proofs)
            if different is not None:
                return different
            self.prover.most_work = _HEAVY
            proofs = [
                proof if proof.equal else self._output(matcher, x, y)
                for (x, y), proof in zip(pairs, proofs, strict=True)
            ]
        return self._verdict(matcher, proofs)

    def _translator(self, side: str, program: Program, matcher: Matcher) -> Translator:
        translator = Translator(
            weight=lambda op: self.weights.source(op, program),
            merge=matcher.add if side == "a" else matcher.merge,
            side=side,
        )
        translator.literal_expression = lambda op: self.weights.literal(op, program)
        return translator

    def _output(self, matcher: Matcher, a: Source, b: Source) -> Proof:
        known = matcher.matched.get(b.token)
        if a is b:
            return Proof(True, "structural") if known is None else known
        try:
            proof = matcher.compare(a, b)
        except OutOfTimeError:
            return Proof(None, reason="the time budget is spent")
        if proof.equal:
            matcher.matched[a.token] = proof
            matcher.proofs.append(proof)
        return proof

    # --- the verdict ---

    def _verdict(self, matcher: Matcher, proofs: Sequence[Proof]) -> Verdict:
        bound = min(1.0, sum(p.bound for p in matcher.proofs))
        assumed = sorted({name for p in matcher.proofs for name in p.assumptions})
        kind: Kind = FUNCTIONS if assumed else FOLDING if self.weights.folded else EQUAL
        outputs: list[OutputVerdict] = []
        for name, proof in zip(self.a.output_names, proofs, strict=True):
            if proof.equal:
                outputs.append(OutputVerdict(name, kind, (proof.method,), bound))
            else:
                outputs.append(OutputVerdict(name, UNKNOWN, (), 0.0, self._reason(proof)))
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

    def _reason(self, proof: Proof) -> str:
        if self.weights.wrong:
            name, constant = next(iter(sorted(self.weights.wrong.items())))
            return f"constant '{name}' is {constant.ulps:.3g} ulp from the expression it carries"
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
        assumptions = [Assumption(name, STATEMENTS[name]) for name in assumed]
        if self.weights.by_name:
            statement = "weights without data are the same where they have the same name"
            assumptions.append(Assumption("weights-by-name", statement))
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
            folded=tuple(c for _, c in sorted(self.weights.folded.items())),
            assumptions=tuple(assumptions),
            reason=reason,
        )

    def _unknown(self, reason: str) -> Verdict:
        outputs = tuple(OutputVerdict(n, UNKNOWN, (), 0.0, reason) for n in self.a.output_names)
        return self._base(UNKNOWN, outputs, reason=reason)

    # --- differences ---

    def _different(
        self, matcher: Matcher, pairs: Sequence[tuple[Source, Source]], proofs: Sequence[Proof]
    ) -> Verdict | None:
        """The verdict "different" with a concrete witness, or with residues where these suffice."""
        found = self._witness(pairs, proofs)
        inside = self._inside(matcher, pairs, proofs)
        if found is not None:
            difference = Difference(
                output=self.a.output_names[found.output],
                position=found.position,
                values=found.values,
                positions=found.positions,
                elements=found.elements,
                witness=True,
                seed=found.seed,
                scale=found.scale,
                inside=inside,
            )
        else:
            difference = self._by_residues(pairs, proofs, inside)
        if difference is None:
            return None
        outputs = tuple(
            OutputVerdict(name, EQUAL if p.equal else UNKNOWN, (p.method,) if p.equal else ())
            if name != difference.output
            else OutputVerdict(name, DIFFERENT, ("reference" if found is not None else "field",))
            for name, p in zip(self.a.output_names, proofs, strict=True)
        )
        return self._base(DIFFERENT, outputs, matcher=matcher, difference=difference)

    def _witness(
        self, pairs: Sequence[tuple[Source, Source]], proofs: Sequence[Proof]
    ) -> witness.Found | None:
        scales = _scales(pairs)
        tolerance = _LOOSE if self._foreign_constants() else witness.TOLERANCE
        begun = time.monotonic()
        for k in range(witness.MOST_DRAWS):
            started = time.monotonic()
            if k >= len(scales) and started > begun + witness.SECONDS:
                return None
            seed, scale = self.seed + k, scales[k % len(scales)]
            try:
                found = witness.find(self.a, self.b, list(self.order), seed, scale, tolerance)
            except UserError:  # these inputs suit it not, or the reference cannot run it at all
                continue
            for difference in found:
                if not proofs[difference.output].equal:
                    return difference
            spent = time.monotonic() - started
            if time.monotonic() + spent > self.deadline:
                return None
        return None

    def _foreign_constants(self) -> bool:
        """Whether a program holds data that the other one does not: it may be folded."""
        names = [
            {
                self.weights.identity(op, p)
                for op in p.main.body.block.ops
                if isinstance(op, WeightOp)
            }
            for p in (self.a, self.b)
        ]
        return names[0] != names[1]

    def _inside(
        self, matcher: Matcher, pairs: Sequence[tuple[Source, Source]], proofs: Sequence[Proof]
    ) -> str:
        """The first op of `b` on the way to a wrong output whose value `a` does not have."""
        wrong = [b for (_, b), p in zip(pairs, proofs, strict=True) if not p.equal]
        cut = frozenset(matcher.matched)
        below = {n.token for source in wrong for n in schedule(source, cut - {source.token})}
        lost: dict[str, Operation] = {t: op for t, op in matcher.unmatched.items() if t in below}
        first = next(iter(lost.values()), None)
        return "" if first is None else where(first)

    def _by_residues(
        self, pairs: Sequence[tuple[Source, Source]], proofs: Sequence[Proof], inside: str
    ) -> Difference | None:
        """A difference of polynomials in the inputs alone is a difference: no witness is needed."""
        for k, ((a, b), proof) in enumerate(zip(pairs, proofs, strict=True)):
            if proof.equal or not (self._is_polynomial(a) and self._is_polynomial(b)):
                continue
            primes = draw_primes(2, self.seed)
            evaluator = Evaluator(Residues(primes, self.seed), (), self.prover.check)
            try:
                x, y = evaluator.value(a), evaluator.value(b)
            except (BadPrimeError, TooLargeError, OutOfTimeError):
                continue
            wrong = ~evaluator.field.equal(x, y)
            if not wrong.any():
                continue
            place = tuple(int(i) for i in zip(*wrong.nonzero(), strict=True).__next__())
            values = (float(x[(0, *place)]), float(y[(0, *place)]))
            name = self.a.output_names[k]
            count = int(wrong.sum())
            return Difference(name, place, values, count, wrong.size, False, inside=inside)
        return None

    def _is_polynomial(self, source: Source) -> bool:
        """Whether a source is a polynomial in inputs, and in weights whose data is absent."""
        for node in schedule(source):
            if isinstance(node, Leaf):
                known = node.label in self.a.weights or node.label in self.b.weights
                named = node.label in self.a.input_names
                if node.operands or is_bool(node.element) or (known and not named) or not named:
                    return False
            elif isinstance(node, Scope):
                factors = [f for t in node.expr.terms for f in t.factors]
                if any(isinstance(f, Apply | Reduce | Symbol) for f in factors):
                    return False
                if any(isinstance(f, Read) and f.outside != 0.0 for f in factors):
                    return False
        return True


def _scales(pairs: Sequence[tuple[Source, Source]]) -> Sequence[float]:
    """Scales of inputs on which float64 can be trusted: no large ones where values may overflow."""
    used = {f for pair in pairs for source in pair for f in functions_of(source)}
    steep = used & witness.STEEP or any(f.startswith("raw.") for f in used)
    return [s for s in witness.SCALES if s <= 1.0] if steep else witness.SCALES


def functions_of(source: Source) -> set[str]:
    """Names of the functions that a source applies, at any depth."""
    found: set[str] = set()
    stack = [node.expr for node in schedule(source) if isinstance(node, Scope)]
    while stack:
        for f in (f for term in stack.pop().terms for f in term.factors):
            if isinstance(f, Apply):
                found.add(f.function)
                stack.extend(f.args)
            elif isinstance(f, Reduce):
                found.add(f"reduce.{f.kind}")
                stack.append(f.arg)
    return found


__all__ = ["compare", "correspondence", "functions_of"]

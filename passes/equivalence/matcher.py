"""Match the values of two programs from the inputs on, so that proofs stay local.

The first program is translated. While the second one is, each of its scopes that is also a scope of
the first is found by identity. Other scopes are compared with scopes of the first that depend on
the same leaves and have the same shape. A scope proved equal is replaced by its counterpart, so its
readers are again found by identity. Proofs take the values matched so far as arbitrary: what is
equal for all values is equal for these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ...dialects.canonical_body import only_moves
from ...dialects.canonical_scope import Scope, Source
from ...dialects.program import where
from ...dialects.types import Array
from .dependencies import Dependencies
from .evaluator import dependency_order, sources_of
from .folded_constants import Data, prove_up_to_constants
from .identities import prove_up_to_functions
from .layout_search import Digits, layout, through
from .prove import STRUCTURAL, Place, Proof, Prover
from .sampler import Sampler

# Candidates tried for one scope, and how often a proof is repeated over an earlier cut.
MAX_CANDIDATES = 4
MAX_WIDENINGS = 3
# Proofs tried for values that depend on one whose proof failed.
MAX_AFTER = 2
# Drawn values nearer than this, relative to the largest, may be equal.
_EXACT = 3e-12
# With more scopes than this between a value and the cut, the value is not compared on the way.
MAX_BETWEEN = 32
# Of these scopes, at most this many may be unknown to the first program. With more, equal values
# are a coincidence (a softmax that is 0 or 1), or too far from the cut.
MAX_APART = 10


@dataclass
class Matcher:
    """The values of the first program, and their known counterparts in the second.

    Attributes:
        sampler: values on drawn inputs, which select candidates.
        functions: whether identities of functions may be used.
        constants: the data of weights, if coefficients may be compared by value; `apart` is the
            largest distance, in ulps, of those taken as equal.
        near: drawn values nearer than this may be equal, if constants may have been rounded.
    """

    prover: Prover  # settings of the proofs
    sampler: Sampler
    first: dict[str, Source] = field(default_factory=dict[str, Source])
    origin: dict[str, Operation] = field(default_factory=dict[str, Operation])  # the op of each
    order: dict[str, int] = field(default_factory=dict[str, int])  # their number, operands first
    matched: dict[str, Proof] = field(default_factory=dict[str, Proof])
    proofs: list[Proof] = field(default_factory=list[Proof])  # in order
    unmatched: dict[str, Operation] = field(default_factory=dict[str, Operation])
    stuck: dict[str, int] = field(default_factory=dict[str, int])
    leaves: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    by_size: dict[object, list[Scope]] = field(default_factory=dict[object, list[Scope]])
    needed: Dependencies = field(default_factory=Dependencies)  # what values depend on
    functions: bool = False
    constants: Data | None = None
    apart: float = 0.0
    near: float = 1e-5

    def add(self, source: Source, op: Operation) -> Source:
        """Add a scope of the first program."""
        if isinstance(source, Scope) and source.token not in self.first:
            self.first[source.token] = source
            self.origin[source.token] = op
            self.order[source.token] = len(self.order)
            self.by_size.setdefault(_size(source), []).append(source)
        return source

    def merge(self, source: Source, op: Operation) -> Source:
        """Add a scope of the second program and return its replacement."""
        if not isinstance(source, Scope):
            return source
        moves = only_moves(source.expr)
        if moves and not self._reads_unmatched(source):
            return source
        if source.token in self.first:
            if source.token not in self.matched:
                self._note(source, Proof(True, STRUCTURAL))
            return source
        if not self.is_hopeless(source):
            for candidate, value in self._candidates(source):
                proof = self.compare(value, source)
                if proof.equal:
                    self._note(candidate, proof)
                    return value
                self.stuck.setdefault(source.token, 0)
            self._count_stuck(source)
        if not moves:
            self.unmatched[source.token] = op
        return source

    def is_hopeless(self, source: Source) -> bool:
        """Whether a value whose proof failed, with its reader, is an operand of this one."""
        nodes = dependency_order(source, frozenset(self.matched)) if self.stuck else []
        return any(self.stuck.get(node.token, 0) >= MAX_AFTER for node in nodes)

    def is_out_of_reach(self, source: Source) -> bool:
        """Whether a proof is hopeless: far from every matched value."""
        nodes = dependency_order(source, frozenset(self.matched))
        return len(nodes) > MAX_BETWEEN and self.is_hopeless(source)

    def _count_stuck(self, source: Source) -> None:
        """Count a failed proof: a limited number may follow the first one."""
        if source.token not in self.stuck:
            return
        for node in dependency_order(source, frozenset(self.matched)):
            if node.token in self.stuck and node is not source:
                self.stuck[node.token] += 1

    def _reads_unmatched(self, source: Scope) -> bool:
        """Whether a scope reads a part of a scope without counterpart."""
        read = sources_of(source.expr)
        return any(isinstance(s, Scope) and s.token not in self.first for s in read)

    def _note(self, source: Source, proof: Proof) -> None:
        """A read of a scope that only moves data reads that scope's source."""
        self.proofs.append(self.placed(source, proof))
        self.matched.setdefault(source.token, proof)
        if isinstance(source, Scope) and only_moves(source.expr):
            for inner in sources_of(source.expr):
                if isinstance(inner, Scope):
                    self.matched.setdefault(inner.token, proof)

    def placed(self, source: Source, proof: Proof) -> Proof:
        """A proof that says of which value of the first program it is, and when, if anybody asks.

        How many values have names by then says which value of the second program it is.
        """
        names, op = self.prover.names, self.origin.get(source.token)
        if names is None:
            return proof
        return replace(proof, place=Place("" if op is None else where(op), len(names)))

    def _candidates(self, source: Scope) -> Iterator[tuple[Scope, Source]]:
        """Scopes of the first program with the same value on drawn inputs, and their layouts.

        Those with the same shape and without a counterpart come first.
        """
        cut = frozenset(self.matched)
        between = dependency_order(source, cut)
        apart = [n for n in between if n.token in self.unmatched and n.token not in self.stuck]
        if len(between) > MAX_BETWEEN or len(apart) > MAX_APART:
            return
        among = self.by_size.get(_size(source), [])
        value = self.sampler.value(source) if among else None
        if value is None:
            return
        ranked = sorted(
            (c.shape != source.shape, c.token in self.matched, only_moves(c.expr), k)
            for k, c in enumerate(among)
        )
        tried = 0
        for *_, k in ranked:
            other = self.sampler.value(among[k])
            digits = None if other is None else self.lies(value, other)
            if digits is None:
                continue
            yield among[k], through(among[k], digits, source)
            tried += 1
            if tried == MAX_CANDIDATES:
                return

    def agree(self, a: Source, b: Source) -> bool:
        """Whether two sources agree on drawn inputs, or one has no value there."""
        mine, theirs = self.sampler.value(a), self.sampler.value(b)
        if mine is None or theirs is None or not mine.size:
            return True
        return self.lies(mine, theirs) == ((mine.size, 1),)

    def lies(self, wanted: Array, found: Array) -> Digits | None:
        """How the elements of a drawn value lie in another that may be the same."""
        return layout(wanted, found, self.tolerance)

    @property
    def tolerance(self) -> float:
        return self.near if self.functions else _EXACT

    def compare(self, a: Source, b: Source) -> Proof:
        """Prove a pair over the matched values; if that fails, over earlier ones.

        Values that only one of the two depends on are opened before the first attempt: proofs
        seldom need them as arbitrary values, and a failed attempt takes the longest.
        """
        cut = frozenset(self.matched)
        proof = Proof(None)
        for _ in range(MAX_WIDENINGS):
            cut = self._common(a, b, cut)
            proof = self._prove(a, b, cut)
            if proof.equal:
                return proof
            shared = self._frontier(a, cut) & self.order.keys()
            if not shared:
                return proof
            cut -= {max(shared, key=self.order.__getitem__)}
        return proof

    def _common(self, a: Source, b: Source, cut: frozenset[str]) -> frozenset[str]:
        """Cuts without the values that only one of the two reads, the last of them first."""
        while only := (self._frontier(a, cut) ^ self._frontier(b, cut)) & self.order.keys():
            cut -= {max(only, key=self.order.__getitem__)}
        return cut

    def _prove(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        """Prove a pair; if constants differ, first by coefficients, which is fastest.

        A value that only one side reads may cancel. If each side reads something of its own, it has
        constants that the other lacks.
        """
        ours, theirs = self.leaves_of(a), self.leaves_of(b)
        apart = not (ours <= theirs or theirs <= ours)
        if apart and self.constants is None:
            return Proof(None)
        proof = self._by_coefficients(a, b, cut) if apart else self.prover.prove(a, b, cut)
        if not proof.equal and self.functions:
            found = prove_up_to_functions(self.prover, a, b, cut)
            proof = found if found.equal else proof
        if not proof.equal and not apart and self.constants is not None:
            found = self._by_coefficients(a, b, cut)
            proof = found if found.equal else proof
        return proof

    def _by_coefficients(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        assert self.constants is not None
        proof, apart = prove_up_to_constants(self.prover, a, b, cut, self.constants)
        self.apart = max(self.apart, apart) if proof.equal else self.apart
        return proof

    def _frontier(self, source: Source, cut: frozenset[str]) -> frozenset[str]:
        nodes = dependency_order(source, cut - {source.token})
        return frozenset(n.token for n in nodes if n.token in cut)

    def leaves_of(self, source: Source) -> frozenset[str]:
        """Tokens of the leaves that a source depends on."""
        for node in dependency_order(source, frozenset(self.leaves)):
            if node.token not in self.leaves:
                self.leaves[node.token] = self.needed.of(node)
        return self.leaves[source.token]


def _size(source: Scope) -> object:
    return math.prod(source.shape), source.element

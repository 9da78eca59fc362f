"""Match the values of two programs from the inputs on, so that proofs stay local.

The first program is translated; while the second one is, each of its scopes that is a scope of the
first is found by identity, and the others are compared with scopes of the first that depend on the
same leaves and have the same shape. A scope proved equal is replaced by its counterpart, so that
what reads it is found by identity again. Proofs are over the values matched so far, taken as
arbitrary: what is equal for all of them is equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation

from ...dialects.canonical_body import moves_data
from ...dialects.canonical_scope import Scope, Source
from .constants import Data, prove_up_to_constants
from .field import schedule
from .identities import prove_up_to_functions
from .needed import Needed
from .prove import STRUCTURAL, Proof, Prover

# Candidates tried for one scope, and times that a proof is repeated over an earlier cut.
MOST_CANDIDATES, FEW_CANDIDATES = 6, 3
MOST_WIDENINGS = 4
# Scopes between a value and the cut, past which a value is not compared on the way.
MOST_BETWEEN = 32


@dataclass
class Matcher:
    """The values of the first program, and which of them the second one is known to compute.

    Attributes:
        functions: whether identities of functions may be used.
        constants: the data of weights, where coefficients may be compared by value; `apart` is how
            many ulps those taken as equal are apart.
    """

    prover: Prover
    first: dict[str, Source] = field(default_factory=dict[str, Source])
    origin: dict[str, Operation] = field(default_factory=dict[str, Operation])
    matched: dict[str, Proof] = field(default_factory=dict[str, Proof])
    proofs: list[Proof] = field(default_factory=list[Proof])
    unmatched: dict[str, Operation] = field(default_factory=dict[str, Operation])
    leaves: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    by_shape: dict[object, list[Scope]] = field(default_factory=dict[object, list[Scope]])
    needed: Needed = field(default_factory=Needed)
    functions: bool = False
    constants: Data | None = None
    apart: float = 0.0

    def add(self, source: Source, op: Operation) -> Source:
        """Take a scope of the first program."""
        if isinstance(source, Scope) and source.token not in self.first:
            self.first[source.token] = source
            self.origin[source.token] = op
            key = self._key(source)
            self.by_shape.setdefault(key, []).append(source)
        return source

    def merge(self, source: Source, op: Operation) -> Source:
        """Take a scope of the second program and return what stands for it."""
        if not isinstance(source, Scope) or moves_data(source.expr):
            return source
        if source.token in self.first:
            if source.token not in self.matched:
                self._note(source, Proof(True, STRUCTURAL))
            return source
        for candidate in self._candidates(source):
            proof = self.compare(candidate, source)
            if proof.equal:
                self._note(candidate, proof)
                return candidate
        self.unmatched[source.token] = op
        return source

    def _note(self, source: Source, proof: Proof) -> None:
        self.matched[source.token] = proof
        self.proofs.append(proof)

    def _candidates(self, source: Scope) -> list[Scope]:
        """Scopes of the first program to compare with, those over the same values first."""
        cut = frozenset(self.matched)
        if len(schedule(source, cut)) > MOST_BETWEEN:
            return []
        wanted = self._below(source, cut)
        alike: list[Scope] = []
        others: list[Scope] = []
        for candidate in self.by_shape.get(self._key(source), ()):
            if candidate.token not in self.matched:
                same = self._below(candidate, cut) == wanted
                (alike if same else others).append(candidate)
        if self.constants is not None:
            return alike[:MOST_CANDIDATES]
        return [*alike, *others][: MOST_CANDIDATES if alike else FEW_CANDIDATES]

    def _below(self, source: Source, cut: frozenset[str]) -> frozenset[str]:
        """What a source is computed from: matched values and leaves, but for constants."""
        found = Needed(cut).of(source)
        return found if self.constants is None else found - self.constants.keys()

    def _key(self, source: Source) -> object:
        """What candidates share: shape, type, leaves (constants aside where these may differ)."""
        leaves = self.leaves_of(source)
        if self.constants is not None:
            leaves = frozenset(token for token in leaves if token not in self.constants)
        return source.shape, source.element, leaves

    def compare(self, a: Source, b: Source) -> Proof:
        """Prove a pair over the matched values, then over earlier ones where that fails."""
        cut = frozenset(self.matched)
        proof = Proof(None)
        for _ in range(MOST_WIDENINGS):
            proof = self._prove(a, b, cut)
            if proof.equal:
                return proof
            only = self._frontier(a, cut) ^ self._frontier(b, cut)
            if not only:
                return proof
            cut -= only
        return proof

    def _prove(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        if self.constants is not None and self.leaves_of(a) != self.leaves_of(b):
            proof, apart = prove_up_to_constants(self.prover, a, b, cut, self.constants)
            self.apart = max(self.apart, apart) if proof.equal else self.apart
            return proof
        proof = self.prover.prove(a, b, cut)
        if proof.equal or not self.functions:
            return proof
        found = prove_up_to_functions(self.prover, a, b, cut)
        return found if found.equal else proof

    def _frontier(self, source: Source, cut: frozenset[str]) -> frozenset[str]:
        nodes = schedule(source, cut - {source.token})
        return frozenset(n.token for n in nodes if n.token in cut)

    def leaves_of(self, source: Source) -> frozenset[str]:
        """Tokens of the leaves that a source depends on."""
        for node in schedule(source, frozenset(self.leaves)):
            if node.token not in self.leaves:
                self.leaves[node.token] = self.needed.of(node)
        return self.leaves[source.token]

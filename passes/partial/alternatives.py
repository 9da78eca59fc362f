"""Alternatives for scopes: corrected mutants, or programs that rules derive.

Both are proved equal to the scopes at every position. A mutant may be derived from, and a derived
program may be mutated: rounds (`rounds.py`) use either.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError
from ...dialects.program import main_of
from ...dialects.weights_only import weights_only
from ..cost.costs import Costs
from ..derivation.apply_steps import find_scope
from ..derivation.derive import apply_found, is_unchanged
from ..derivation.lift import Lift, family, scope_ops
from ..derivation.price import ScopePrices
from ..derivation.search import DerivationSettings, FoundProgram, Searcher
from ..equivalence.prove import OutOfTimeError, Prover
from ..search_result import Proof
from ..work_clock import now, wall_seconds
from .apply import RULE, apply_to
from .search import Candidate

# The pass that repeats a mutation, and its default search depth.
PASS, DEPTH = "algebra-mutate", 4
# How far one round derives; the next goes on from there. CPU seconds.
DERIVED = DerivationSettings(depth=2, states=400, budget=5.0)


class ScopeAlternative(Protocol):
    """One alternative for scopes.

    Attributes:
        rule: its name in reports; text, trail: identify it.
        reorders: whether its views are inverses, so that those of neighbours cancel.
    """

    @property
    def rule(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def trail(self) -> str: ...
    @property
    def proof(self) -> Proof: ...
    @property
    def reorders(self) -> bool: ...

    def apply(self, module: ModuleOp, names: Sequence[str]) -> tuple[list[ScopeOp], str]:
        """Replace the scopes of these names by it, in place.

        Returns the new scopes, in order, and the passes that repeat it.

        Raises:
            UserError: that is impossible there; earlier steps remain applied.
        """
        ...


@dataclass(frozen=True)
class Mutation:
    """A corrected mutant, found for a target by a search of that depth."""

    candidate: Candidate
    target: str = "cpu"
    depth: int = DEPTH
    rule: str = RULE

    @property
    def text(self) -> str:
        return self.candidate.mutant.name

    @property
    def trail(self) -> str:
        """The key with which the same search finds the mutant again: `named_mutant`."""
        return f"{self.candidate.form}: {self.text}"

    @property
    def proof(self) -> Proof:
        return self.candidate.proof

    @property
    def reorders(self) -> bool:
        return self.candidate.reorders

    def apply(self, module: ModuleOp, names: Sequence[str]) -> tuple[list[ScopeOp], str]:
        """Replace the scopes by the mutant."""
        made = apply_to(module, [find_scope(module, name) for name in names], self.candidate)
        return made, self.replay(names)

    def replay(self, names: Sequence[str]) -> str:
        """The pass that rewrites the scopes of these names so."""
        words = {"at": ",".join(names), "mutant": self.candidate.mutant.name}
        if self.candidate.form != "plain":
            # The target's prices decide which library kernel computes a correction.
            words |= {"form": self.candidate.form, "target": self.target}
        text = " ".join(f'{key}="{word}"' for key, word in words.items())
        deeper = f" depth={self.depth}" if self.depth > DEPTH else ""
        return f"{PASS}{{{text}{deeper}}}"


@dataclass(frozen=True)
class DerivedProgram:
    """A program that rules derive from one contraction."""

    searcher: Searcher  # that found it
    found: FoundProgram
    proof: Proof  # that it is equal
    reorders: bool = False  # whether only the order of dims changes

    @property
    def rule(self) -> str:
        return "derive " + " ".join(self.found.state.rules() or ("match",))

    @property
    def text(self) -> str:
        return f"{self.rule} {self.found.state.trail()} {self.found.priced.seconds:.6g}"

    @property
    def trail(self) -> str:
        return self.text

    def apply(self, module: ModuleOp, names: Sequence[str]) -> tuple[list[ScopeOp], str]:
        """Apply the rules. Scopes that only read the result at other indices are not new."""
        ops, before = [find_scope(module, name) for name in names], set(scope_ops(module))
        own = [family(op) for op in ops]
        done = apply_found(module, ops, self.searcher, self.found)
        if done is None:
            raise UserError("the derivation does not fit here", where=f"%{names[0]}")
        new = [op for op in scope_ops(module) if op not in before]
        return [op for op in new if any(of(op) for of in own)], done.pipeline


class Deriver:
    """The cheapest programs that rules derive from contractions; equal ones are derived once.

    Args:
        most: programs of one contraction.
        end: on the clock of searches; derivation stops then with what it has.
    """

    def __init__(self, costs: Costs, most: int, end: float = math.inf) -> None:
        self.costs, self.most, self.end = costs, most, end
        self.known: dict[tuple[Scope, tuple[str, ...]], list[DerivedProgram]] = {}

    def alternatives(self, module: ModuleOp, name: str) -> list[DerivedProgram]:
        """The alternatives for the contraction of that name, each proved equal to it."""
        op = find_scope(module, name)
        known = weights_only(main_of(module).body.block.ops)
        lift = Lift(module, family(op), known, positional=True)
        key = lift.scope(op), tuple(lift.known())
        if key not in self.known:
            self.known[key] = self._derived(op, *key)
        return self.known[key]

    def _derived(self, op: ScopeOp, root: Scope, known: Sequence[str]) -> list[DerivedProgram]:
        left = max(self.end - now(), 0.0)
        settings = replace(DERIVED, budget=min(DERIVED.budget, left))
        searcher = Searcher(ScopePrices(known, costs=self.costs), settings)
        prover = Prover(deadline=time.monotonic() + wall_seconds(left))
        made: list[DerivedProgram] = []
        for found in searcher.search((root,)).best[: self.most]:
            try:
                proof = prover.prove(root, found.state.roots[0])
            except OutOfTimeError:
                break
            if proof.equal and not _is_given(found, op):
                exact = proof.bound == 0.0
                made.append(DerivedProgram(searcher, found, "exact" if exact else "checked"))
        return made


def _is_given(found: FoundProgram, op: ScopeOp) -> bool:
    """Whether a program is the op as it already runs."""
    return is_unchanged(found, op) or (found.state.parent is None and not found.priced.choices)


def renumbered(mutant: str) -> str:
    """A mutant's name for a program that reads its two operands in the other order."""
    return re.sub(r"input ([01])\b", lambda found: f"input {1 - int(found[1])}", mutant)


__all__ = [
    "DEPTH",
    "PASS",
    "DerivedProgram",
    "Deriver",
    "Mutation",
    "ScopeAlternative",
    "renumbered",
]

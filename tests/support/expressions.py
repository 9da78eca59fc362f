"""Canonical scopes of single-output programs, for tests of the equivalence engine's parts."""

from __future__ import annotations

from isoform.dialects.canonical_scope import Expr, Scope
from isoform.dialects.program import Program
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.inline import Inliner
from isoform.passes.equivalence.residues import Residues
from isoform.passes.equivalence.translate import Translator, whole


def output(program: Program) -> Scope:
    """The scope of the only output; programs share what they share."""
    translator = Translator(lambda op: no_weight(op.key))
    (made,) = translator.program(program, program.input_names)
    return whole(made)


def no_weight(name: str) -> Scope:
    raise AssertionError(f"weight {name} in a program without weights")


def inlined(scope: Scope) -> Expr:
    """One expression over the inputs."""
    return Inliner().inline_scope(scope)


def field_equal(a: Scope, b: Scope, primes: tuple[int, ...], seed: int) -> bool:
    """Whether two scopes agree at every position on one random draw."""
    evaluator = Evaluator(Residues(primes, seed))
    same = evaluator.field.equal(evaluator.value(a), evaluator.value(b))
    return bool(same.all())

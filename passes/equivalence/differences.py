"""Show that two programs differ, and find where the difference begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...dialects.canonical_scope import Apply, Leaf, Read, Reduce, Scope, Source, Symbol
from ...dialects.errors import UserError
from ...dialects.program import Program, where
from ...dialects.types import element_of, is_float, is_half
from . import witness
from .climbing import Climber, climb
from .constant_alignment import Tied
from .evaluator import Evaluator, TooLargeError, dependency_order
from .matcher import Matcher
from .points import decided_by_rounding
from .prove import Proof, Prover
from .residues import BadPrimeError, Residues, draw_primes
from .roundings import numbers
from .verdict import Difference
from .witness import FoundDifference

# Coarsely rounded float types, by their printed names.
_NARROW = {"f16": "float16", "bf16": "bfloat16"}
# Weights of up to so many numbers give scales of inputs, the largest few of those below a limit.
_FEW, _MOST_FAR, _FAR, _FAR_HALF = 4096, 3, 2.0**60, 2.0**12
# For each output its source in both programs.
Pairs: TypeAlias = "Sequence[tuple[Source, Source]]"


def by_witness(
    program_pair: witness.ProgramPair,
    pairs: Pairs,
    wanted: Sequence[bool],
    prover: Prover,
    limits: witness.Nearness,
    foreign: witness.Foreign | None = None,
    given: witness.ProgramPair | None = None,
) -> Difference | None:
    """A difference of float64 values on drawn inputs, in a `wanted` output.

    Args:
        limits, foreign, given: see `witness.find`.
    """
    if not any(wanted):
        return None
    scales = _scales(pairs, program_pair)
    begun = time.monotonic()
    for k in range(witness.MAX_DRAWS):
        started = time.monotonic()
        spent = started - begun
        if spent > (witness.SECONDS if k >= len(scales) else witness.MAX_SECONDS):
            return None
        seed, scale = prover.seed + k, scales[k % len(scales)]
        try:
            found = witness.find(program_pair, seed, scale, limits, foreign, given)
        except UserError:  # these inputs do not suit it, or the reference cannot run it at all
            continue
        for d in found:
            if wanted[d.output] and not decided_by_rounding(program_pair, seed, scale):
                return d.named(program_pair.a.output_names[d.output])
        if 2 * time.monotonic() - started > prover.deadline:
            return None
    return None


def by_climbing(
    tied: Tied,
    wanted: Sequence[bool],
    prover: Prover,
    limits: witness.Nearness,
    foreign: witness.Foreign,
    given: witness.ProgramPair,
) -> Difference | None:
    """A difference on an input found by search, where few numbers of weights differ.

    Args:
        limits, foreign, given: see `witness.find`.
    """

    def confirm(steps: witness.Steps, scale: float) -> FoundDifference | None:
        found = witness.find(tied.program_pair, prover.seed, scale, limits, foreign, given, steps)
        return next((d for d in found if wanted[d.output]), None)

    for fault in tied.faults if any(wanted) else ():
        climber = Climber(tied.program_pair, fault, limits, prover.seed, confirm, prover.deadline)
        found = climb(climber)
        if found is not None:
            return found.named(given.a.output_names[found.output])
    return None


def _scales(pairs: Pairs, program_pair: witness.ProgramPair) -> Sequence[float]:
    """Scales of inputs on which float64 is reliable: no large ones if values may overflow.

    A clip at 10,000 shows on inputs beyond it, so numbers of the programs are scales as well.
    """
    used = {f for pair in pairs for source in pair for f in functions_of(source)}
    steep = used & witness.STEEP or any(f.startswith("raw.") for f in used)
    if steep:
        return [s for s in witness.SCALES if s <= 1.0]
    inputs = program_pair.a.inputs.values()
    farthest = _FAR_HALF if any(is_half(t.element_type) for t in inputs) else _FAR
    far = {
        2.0 * float(size)
        for program in (program_pair.a, program_pair.b)
        for array in numbers(program, True)
        if 0 < array.size <= _FEW
        and array.dtype.kind not in "iub"
        and max(witness.SCALES) < (size := np.abs(array.astype(np.float64)).max()) < farthest
    }
    return [*witness.SCALES, *sorted(far)[-_MOST_FAR:]]


def depends_on(source: Source, identities: frozenset[str]) -> bool:
    """Whether a source depends on a leaf with one of these identities."""
    if not identities:
        return False
    seen: set[str] = set()
    stack = [source]
    while stack:
        for node in dependency_order(stack.pop()):
            if isinstance(node, Leaf) and node.token not in seen:
                if node.identity in identities:
                    return True
                seen.add(node.token)
                stack.extend(node.operands)
    return False


def functions_of(source: Source) -> set[str]:
    """Names of the functions that a source applies, at any depth."""
    found: set[str] = set()
    stack = [node.expr for node in dependency_order(source) if isinstance(node, Scope)]
    while stack:
        for f in (f for term in stack.pop().terms for f in term.factors):
            if isinstance(f, Apply):
                found.add(f.function)
                stack.extend(f.args)
            elif isinstance(f, Reduce):
                found.add(f"reduce.{f.kind}")
                stack.append(f.arg)
    return found


def by_residues(
    a: Program, b: Program, pairs: Pairs, wanted: Sequence[bool], prover: Prover
) -> Difference | None:
    """A difference of polynomials in the inputs alone needs no witness."""
    for name, (x, y), sought in zip(a.output_names, pairs, wanted, strict=True):
        if not sought or not all(_is_polynomial(s, (a, b)) for s in (x, y)):
            continue
        field = Residues(draw_primes(2, prover.seed), prover.seed)
        evaluator = Evaluator(field, (), prover.check)
        try:
            left, right = evaluator.value(x), evaluator.value(y)
        except (BadPrimeError, TooLargeError):
            continue
        wrong = ~field.equal(left, right)
        if not wrong.any():
            continue
        position = tuple(int(axis[0]) for axis in wrong.nonzero())
        values = (float(left[(0, *position)]), float(right[(0, *position)]))
        return Difference(name, position, values, int(wrong.sum()), wrong.size, False)
    return None


def _is_polynomial(source: Source, programs: Sequence[Program]) -> bool:
    """Whether a source is a polynomial in inputs, and in weights without data.

    Over floats only: different polynomials may be one function of integers modulo 2^n.
    """
    inputs = programs[0].input_names
    for node in dependency_order(source):
        if not is_float(node.element):
            return False
        if isinstance(node, Leaf):
            if node.data is not None:
                continue
            absent = not any(node.label in p.weights for p in programs)
            given = node.label in inputs or (absent and node.label != "literal")
            if node.operands or not given:
                return False
        elif isinstance(node, Scope):
            factors = [f for t in node.expr.terms for f in t.factors]
            if any(isinstance(f, Apply | Reduce | Symbol) for f in factors):
                return False
            if any(isinstance(f, Read) and f.outside != 0.0 for f in factors):
                return False
    return True


def foreign_constants(matcher: Matcher, pairs: Pairs) -> list[list[str]]:
    """For each pair the names of the weights and literals that the other program lacks.

    Those of the second program, or of the first if the second has none.
    """
    sides = zip(*pairs, strict=True)
    every = [frozenset[str]().union(*map(matcher.leaves_of, side)) for side in sides]
    labels = {
        node.token: node.label
        for pair in pairs
        for source in pair
        for node in dependency_order(source)
        if isinstance(node, Leaf) and node.identity.startswith(("weight ", "literal "))
    }

    def apart(pair: tuple[Source, Source]) -> list[str]:
        mine, theirs = (matcher.leaves_of(source) for source in pair)
        only = (theirs - every[0]) & labels.keys() or (mine - every[1]) & labels.keys()
        return sorted(labels[token] for token in only)

    return [apart(pair) for pair in pairs]


def narrower(a: Program, b: Program) -> str:
    """Describe the narrow float types that only one of two programs computes in."""
    used = [
        {str(element_of(v)) for op in p.main.body.block.ops for v in op.results} for p in (a, b)
    ]
    for mine, theirs, which in ((*used, "first"), (*used[::-1], "second")):
        found = sorted(_NARROW[name] for name in _NARROW.keys() & mine - theirs)
        if found:
            return (
                f"the {which} program computes in {' and '.join(found)}, which rounds; "
                "the other does not"
            )
    return ""


def first_lost(matcher: Matcher, pairs: Pairs, proofs: Sequence[Proof]) -> str:
    """The first op without a counterpart that an output of the second program depends on."""
    wrong = [b for (_, b), p in zip(pairs, proofs, strict=True) if not p.equal]
    cut = frozenset(matcher.matched)
    below = {n.token for source in wrong for n in dependency_order(source, cut - {source.token})}
    first = next((op for token, op in matcher.unmatched.items() if token in below), None)
    return "" if first is None else where(first)

"""Corrections of every form are equal to the program; what is wrong in a mutant is never read."""

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import Float32Type

from isoform.dialects import reference
from isoform.dialects.canonical_scope import collect, normal
from isoform.dialects.canonical_types import ONE, Leaf, Read, Scope, leaf, scope
from isoform.dialects.program import Program
from isoform.passes.derivation.lift import leaves_of, program_of_scope
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.equivalence.prove import Prover
from isoform.passes.partial.correction_forms import corrected_forms
from isoform.passes.partial.generate import Generator, Mutant, Options
from isoform.testing.derivation_cases import conv

F32 = Float32Type()
FEW = Options(depth=3, seconds=600, strides=(1,), dilations=(1,), groups=(1,), gaps=())
SEAM = conv((4, 2, 6, 6), 2, (3, 3))
DILATED = conv((1, 2, 10, 10), 2, (3, 3), dilation=2)


def partial_mutants(root: Scope, depth: int = 3) -> tuple[Generator, list[Mutant]]:
    generator = Generator([root], replace(FEW, depth=depth))
    return generator, [m for m in generator.run() if not m.exact]


@pytest.mark.parametrize(("root", "depth"), [(SEAM, 3), (DILATED, 4)])
@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_every_form_is_equal(root: Scope, depth: int, count: int) -> None:
    generator, found = partial_mutants(root, depth)
    seen: dict[str, int] = {}
    for mutant in found[:: max(1, len(found) // count)][:count]:
        forms = corrected_forms([root], mutant, generator.same, mutant.masks, ScopePrices())
        for form, (correction,) in forms.items():
            proof = Prover().prove(root, correction.result)
            assert proof.equal, (form, mutant.text)
            seen[form] = seen.get(form, 0) + 1
    assert {"plain", "fused"} <= set(seen)


def test_a_fused_correction_is_one_product() -> None:
    generator, found = partial_mutants(SEAM)
    forms = corrected_forms([SEAM], found[0], generator.same, found[0].masks, ScopePrices())
    (plain,), (fused,) = forms["plain"], forms["fused"]
    assert len(products(plain.result)) == 1 + len(plain.parts)
    assert len(products(fused.result)) == 1


def test_what_a_fused_mutant_has_in_the_mask_is_never_read() -> None:
    """The mutant's wrong positions are NaN in the enlarged product; the result is what it was."""
    generator, found = partial_mutants(SEAM)
    poisoned = 0
    for mutant in found[:6]:
        forms = corrected_forms([SEAM], mutant, generator.same, mutant.masks, ScopePrices())
        if "fused" not in forms:
            continue
        (correction,) = forms["fused"]
        (made,) = products(correction.result)
        inputs = {s: np.random.default_rng(5).random(s.shape) for s in leaves_of(SEAM)}
        values, (index,), (mask,) = run(made, inputs), mutant.index, mutant.masks
        own = mutant.build(generator.same).shape
        at = [np.broadcast_to(e.evaluate(list(np.indices(SEAM.shape))), SEAM.shape) for e in index]
        inside = np.all([(a >= 0) & (a < n) for a, n in zip(at, own, strict=True)], axis=0) & mask
        values[tuple(a[inside] for a in at)] = np.nan
        poisoned += int(inside.sum())
        given = leaf("made", made.shape, F32)
        result = read_instead(correction.result, given)
        np.testing.assert_allclose(
            run(result, {**inputs, given: values}), run(SEAM, inputs), rtol=1e-6
        )
    assert poisoned


def products(root: Scope) -> list[Scope]:
    """The scopes with sums that a scope reads, itself included."""
    found: dict[Scope, None] = {}
    pending = [root]
    while pending:
        one = pending.pop()
        if any(term.sums for term in one.expr.terms):
            found[one] = None
        reads = [f for t in one.expr.terms for f in t.factors if isinstance(f, Read)]
        pending += [f.source for f in reads if isinstance(f.source, Scope)]
    return list(found)


def read_instead(root: Scope, given: Leaf) -> Scope:
    """A scope that reads one source, reading another."""
    terms = []
    for term in root.expr.terms:
        (read,) = term.factors
        assert isinstance(read, Read)
        terms += normal((ONE, (), (Read(given, read.index),)), root.shape)
    return scope(root.shape, root.element, collect(terms))


def run(root: Scope, inputs: dict[Leaf, np.ndarray]) -> np.ndarray:
    program = Program(program_of_scope(root))
    feeds = zip(program.inputs, leaves_of(root), strict=True)
    values = {name: inputs[source].astype(np.float32) for name, source in feeds}
    (result,) = reference.run(program, values).values()
    return np.array(result)

"""What the enumeration leaves out, it may leave out."""

import random
from dataclasses import replace

import numpy as np
import pytest
from support.moved import moved
from xdsl.dialects.builtin import Float32Type

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.canonical_types import Scope, Source, leaf
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation.lift import program_of_scope, scope_ops
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.partial import generate
from isoform.passes.partial.bound import least_modelled
from isoform.passes.partial.generate import Generator, Options
from isoform.passes.partial.lookup import ResultKeys, Sieve, keys
from isoform.passes.partial.mutate import modelled
from isoform.passes.partial.operators import Conv
from isoform.passes.partial.point_evaluation import points_of, product_at, read_at
from isoform.passes.partial.search import free_dims, shrunk
from isoform.passes.partial.values import Inputs, InputValue, drawn
from isoform.passes.partial.views import moves
from isoform.testing.derivation_cases import conv

F32 = Float32Type()
FIELD = Residues(draw_primes(2, 0), 0)
FEW = Options(depth=3, seconds=600, strides=(1,), dilations=(1,), groups=(1,), gaps=(1,))


def test_one_number_has_a_name_and_another_number_another() -> None:
    x, y = leaf("x", (), F32), leaf("y", (), F32)
    made = [(Evaluator(FIELD).value(s), frozenset([s])) for s in (x, x, y)]
    names = [InputValue(value, holds, "x", _no_scope, ()).name() for value, holds in made]
    assert names[0] == names[1] != names[2]


def test_positions_of_a_moved_value_are_where_the_moves_put_them() -> None:
    rng, tried = random.Random(2), 0
    for number in range(120):
        shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(2, 5)))
        x = leaf(f"x{number}", shape, F32)
        made = Evaluator(FIELD).value(x)
        value = InputValue(made, frozenset([x]), "x", _no_scope, ())
        for _ in range(rng.randint(1, 3)):
            choice = list(moves(value.shape, range(len(shape)), (1, 2)))
            if choice:
                step = rng.choice(choice)
                value = replace(value, steps=(*(value.steps or ()), step))
                made = moved(made, step)
        at = drawn(value.shape, 50)
        np.testing.assert_array_equal(value.sample(at), made[(slice(None), *at)])
        np.testing.assert_array_equal(value.values, made)
        tried += len(value.steps or ()) > 1
    assert tried > 60


@pytest.mark.parametrize(
    "product", [Conv(s, 2, g, same) for s in (1, 2) for g in (1, 2) for same in (True, False)]
)
def test_a_sample_of_a_product_is_what_it_computes_there(product: Conv) -> None:
    shapes = (2, 4, 9, 8), (4, 4 // product.groups, 3, 3)
    x, w = (leaf(f"operand {k}", shape, F32) for k, shape in enumerate(shapes))
    evaluator = Evaluator(FIELD)
    whole = evaluator.value(product.build(x, w))
    sums, *indices = product.reads(*shapes)
    at = drawn(whole.shape[1:], 40)
    read = [read_at(*given, points_of(at, sums)) for given in zip(indices, shapes, strict=True)]
    values = [InputValue(evaluator.value(s), frozenset(), s.label, _no_scope) for s in (x, w)]
    found = product_at(FIELD, [v.sample(*r) for v, r in zip(values, read, strict=True)])
    np.testing.assert_array_equal(found, whole[(slice(None), *at)])


def test_a_sample_rejects_what_holds_too_little() -> None:
    target = keys(FIELD.draw("target", (40, 50)), FIELD)
    other = keys(FIELD.draw("other", (40, 50)), FIELD)
    sieve = Sieve(ResultKeys(target), right=0.5)
    rng = np.random.default_rng(3)
    for share, passes in ((1.0, True), (0.6, True), (0.2, False), (0.0, False)):
        mixed = np.where(rng.random(target.shape) < share, target, other)
        sample = mixed[drawn(target.shape, 200)]
        assert sieve.passes(sample, mixed.size) is passes
    # In four times as many positions an eighth is enough.
    assert sieve.passes(np.where(rng.random(200) < 0.125, target[:20, :10].ravel(), 1), 4 * 2000)


def test_exact_mutants_of_chains_that_are_left_out_are_there_as_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = conv((1, 2, 8, 8), 2, (3, 3))
    options = replace(FEW, depth=4, gaps=())
    few = Generator([root], options)
    kept = {m.build(few.same).shape for m in few.run() if m.exact}
    monkeypatch.setattr(generate, "is_redundant", lambda *_: False)
    every = Generator([root], options)
    assert {m.build(every.same).shape for m in every.run() if m.exact} == kept
    assert len(kept) > 1
    assert every.count.products > 1.2 * few.count.products


@pytest.mark.parametrize("dilation", [1, 2])
def test_no_mutant_is_modelled_to_beat_the_bound(dilation: int) -> None:
    root = conv((1, 64, 8, 8), 64, (3, 3), dilation=dilation)
    small, full = shrunk([root])
    options = replace(FEW, depth=4, dilations=tuple({1, dilation}))
    made = {m.build(full) for m in Generator(small, options, free_dims(full)).run() if m.exact}
    assert len(made) > 3
    for target in ("v100", "h100"):
        costs = Costs(target_named(target))
        least = least_modelled(only_scope(root), root, costs)
        assert least is not None
        prices = [modelled([one], costs) for one in (root, *made)]
        assert least <= min(prices) < 1.5 * least


def _no_scope(inputs: Inputs) -> Source:
    raise NotImplementedError


def only_scope(root: Scope) -> ScopeOp:
    (op,) = scope_ops(program_of_scope(root))
    return op


def test_of_a_target_of_zeros_nothing_is_found() -> None:
    """All windows of a convolution may lie in its padding."""
    sieve = Sieve(ResultKeys(np.zeros((2, 3), np.int64)), right=0.5)
    assert not sieve.passes(np.array([0, 0, 5]), 12)

"""A move as an index map is what numpy makes of values: pad, split, transpose, merge."""

import random

import numpy as np
from support.moved import moved
from xdsl.dialects.builtin import Float32Type

from isoform.dialects.canonical_types import leaf
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.partial.views import moves, swaps, view

F32 = Float32Type()


def test_values_and_index_maps_of_moves_agree() -> None:
    rng, tried = random.Random(1), 0
    field = Residues(draw_primes(2, 0), 0)
    for number in range(150):
        shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(2, 4)))
        x = leaf(f"x{number}", shape, F32)
        evaluator = Evaluator(field)
        values, steps = evaluator.value(x), []
        for _ in range(2):
            found = values.shape[1:]
            choice = [*moves(found, range(len(shape)), (1, 2)), *swaps(found)]
            if not choice:
                break
            steps.append(rng.choice(choice))
            values = moved(values, steps[-1])
        if steps:
            made = view(x, steps)
            assert made.shape == values.shape[1:]
            np.testing.assert_array_equal(evaluator.value(made), values, err_msg=str(steps))
            tried += 1
    assert tried > 100

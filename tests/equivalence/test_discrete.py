"""Constants past a jump: two programs are one only if they compute the same steps.

The right steps are found here in numpy, op by op in float32, apart from isoform.
"""

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i64

from isoform.compiler.targets.levels import run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.passes.equivalence import compare
from isoform.passes.fold_constants import FoldConstants

POSITIONS = np.arange(8, 128, dtype=np.float32)
WIDTH = np.float32(8.0)
LOG = np.float32(np.log(16.0))
TABLE = np.random.default_rng(5).normal(size=(16, 3)).astype(np.float32)


def expected(jump, reorder=False):
    """What float32 makes of log(x / 8) / log 16 * 8, and of the jump after it."""
    log = np.log((POSITIONS / WIDTH).astype(np.float64)).astype(np.float32)
    value = log * (WIDTH / LOG) if reorder else log / LOG * WIDTH
    assert value.dtype == np.float32
    return {
        "cast": lambda: value.astype(np.int64),
        "floor": lambda: np.floor(value),
        "compare": lambda: value >= np.float32(2.0),
    }[jump]()


def program(jump, steps=None, reorder=False):
    """T5's buckets, or what is made of the given steps in their place."""
    b = GraphBuilder()
    z = b.input("z", (len(POSITIONS), 3))
    full = lambda v: b.expand(b.constant(np.float32(v)), POSITIONS.shape)  # noqa: E731
    if steps is None:
        x = b.div(b.weight("places", POSITIONS), full(WIDTH))
        if reorder:
            value = b.mul(b.log(x), b.div(full(WIDTH), full(LOG)))
        else:
            value = b.mul(b.div(b.log(x), full(LOG)), full(WIDTH))
        made = {
            "cast": lambda: b.cast(value, to=i64),
            "floor": lambda: b.floor(value),
            "compare": lambda: b.greater_equal(value, full(2.0)),
        }[jump]()
    else:
        made = b.weight("steps", steps)
    if jump == "cast":
        y = b.add(b.gather(b.weight("table", TABLE), made, axis=0), z)
    else:
        if jump == "compare":
            made = b.cast(made, to=f32)
        y = b.mul(z, b.expand(b.reshape(made, shape=[len(POSITIONS), 1]), (len(POSITIONS), 3)))
    b.output("y", y)
    return b.build()


JUMPS = ["cast", "floor", "compare"]


def wrong_steps(jump):
    """As float64 would have them: at whole buckets one less."""
    value = np.log(POSITIONS.astype(np.float64) / 8.0) / float(LOG) * 8.0
    steps = {"cast": value.astype(np.int64), "floor": np.floor(value), "compare": value >= 2.0}
    found = steps[jump].astype(expected(jump).dtype)
    assert (found != expected(jump)).any()
    return found


@pytest.mark.parametrize("jump", JUMPS)
def test_steps_folded_elsewhere_are_the_steps_computed(jump) -> None:
    found = compare(program(jump), program(jump, expected(jump)))
    assert found.kind in ("equal", "equal-up-to-folding"), found


@pytest.mark.parametrize("jump", JUMPS)
def test_steps_folded_in_float64_are_another_program(jump) -> None:
    right, wrong = program(jump), program(jump, wrong_steps(jump))
    assert compare(right, wrong).kind == "different"
    assert compare(wrong, right).kind == "different"


@pytest.mark.parametrize("jump", JUMPS)
def test_one_step_that_differs_is_found(jump) -> None:
    steps = expected(jump).copy()
    steps[-1] = not steps[-1] if jump == "compare" else steps[-1] - 1
    assert compare(program(jump), program(jump, steps)).kind == "different"


@pytest.mark.parametrize("jump", JUMPS)
def test_another_order_before_a_jump_is_judged_by_what_it_gives(jump) -> None:
    same = bool((expected(jump) == expected(jump, reorder=True)).all())
    kind = compare(program(jump), program(jump, reorder=True)).kind
    assert (kind != "different") == same
    if not same:
        assert not kind.startswith("equal")


@pytest.mark.parametrize("jump", JUMPS)
def test_our_own_folding_is_recognised(jump) -> None:
    source = program(jump)
    folded = source.clone()
    run_passes(folded, (FoldConstants(),))
    assert all(op.name != "graph.log" for op in folded.main.body.block.ops)
    assert compare(source, folded).kind in ("equal", "equal-up-to-folding")
    assert compare(program(jump, wrong_steps(jump)), folded).kind == "different"

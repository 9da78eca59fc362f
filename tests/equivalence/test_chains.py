"""Long chains, and what is computed side by side: sizes that no evaluation reaches.

Substitutions multiply weights at compile time and put products side by side. The checker opens such
a product only as far as it is read, orders the sums of a long chain by their neighbours, and counts
as needed only what is read.
"""

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import add, bind, factor, leaf, multiply
from isoform.dialects.canonical_types import Guard, Read, scope
from isoform.dialects.index import Index, iterators
from isoform.dialects.program import Program
from isoform.dialects.types import f32
from isoform.dialects.weights import Weights
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.compare import _Comparison, correspondence
from isoform.passes.equivalence.dependencies import Dependencies
from isoform.passes.equivalence.matcher import Matcher
from isoform.passes.equivalence.prove import Prover

WIDE, LAYERS = 768, 6


def plain(layers: int = LAYERS, wide: int = WIDE) -> Program:
    """Layers without a function between them, each with a second product of its operand."""
    b = GraphBuilder()
    x = b.input("x", (8, wide))
    for k in range(layers):
        b.output(f"y{k}", b.matmul(x, weight(b, f"side{k}", wide)))
        x = b.matmul(x, weight(b, f"main{k}", wide))
    b.output("last", x)
    return b.build()


def merged(layers: int = LAYERS, wide: int = WIDE, wrong: int | None = None) -> Program:
    """The same as one product with all weights multiplied and put side by side, split again."""
    b = GraphBuilder()
    x = b.input("x", (8, wide))
    side = [weight(b, f"side{k}", wide) for k in range(layers)]
    main = [weight(b, f"main{k}", wide) for k in range(layers)]
    if wrong is not None:
        main[wrong], main[wrong - 1] = main[wrong - 1], main[wrong]
    weights = b.concat(side[-1], main[-1], axis=1)
    for k in reversed(range(layers - 1)):
        weights = b.concat(side[k], b.matmul(main[k], weights), axis=1)
    parts = b.split(b.matmul(x, weights), axis=1, sizes=[wide] * (layers + 1))
    for k, part in enumerate(parts[:-1]):
        b.output(f"y{k}", part)
    b.output("last", parts[-1])
    return b.build()


def weight(b: GraphBuilder, name: str, wide: int) -> object:
    return b.weight(name, np.full((wide, wide), 0.5, np.float32))


def test_weights_multiplied_at_compile_time_are_proved_at_full_size() -> None:
    verdict = compare(unnamed(plain()), unnamed(merged()), budget=600.0)
    assert verdict.kind == "equal", verdict.text()
    assert verdict.error_bound == 0.0


def test_two_weights_of_a_chain_in_each_others_place_are_not_proved() -> None:
    verdict = compare(unnamed(plain(3, 16)), unnamed(merged(3, 16, wrong=2)))
    assert verdict.kind == "different", verdict.text()


def test_no_weight_is_called_foreign_that_the_other_program_has() -> None:
    verdict = compare(unnamed(plain(3, 256)), unnamed(merged(3, 256, wrong=2)), budget=20.0)
    assert verdict.kind != "equal"
    assert "constants" not in verdict.reason, verdict.text()


def unnamed(program: Program) -> Program:
    """The program without its data: weights are one where their names are."""
    program.weights = Weights()
    return program


@pytest.mark.parametrize("length", (4, 9, 12))
def test_a_chain_has_one_form_however_it_is_built(length: int) -> None:
    """Three chains of equal weights that differ in their ends: more ties than orders are tried."""
    n = 16
    shared = [leaf(f"w{k}", (n, n), f32) for k in range(length)]
    ends = [leaf(f"end{k}", (n, n), f32) for k in range(3)]

    def chain(end: object, backwards: bool) -> object:
        every = [*shared, end]
        order = list(range(len(every)))
        extents = (n, n)
        sums = [n] * length
        names = [Index.iterator(0), *(Index.iterator(2 + k) for k in range(length))]
        if backwards:
            names[1:] = names[:0:-1]
        names.append(Index.iterator(1))
        value = None
        for k in order:
            read = factor(Read(every[k], (names[k], names[k + 1]), 0.0), (*extents, *sums))
            value = read if value is None else multiply(value, read, (*extents, *sums))
        return bind(value, extents, tuple(sums))

    forms = set()
    for backwards in (False, True):
        made = [chain(end, backwards) for end in ends]
        ordered = made if backwards else made[::-1]
        product = multiply(multiply(ordered[0], ordered[1], (n, n)), ordered[2], (n, n))
        forms.add(product.token)
    assert len(forms) == 1


def test_half_of_a_product_needs_one_of_two_weights() -> None:
    a, b = halves(side_by_side=False), halves(side_by_side=True)
    comparison = _Comparison(a, b, correspondence(a, b), 0, float("inf"))
    assert comparison.run().kind == "equal"
    matcher = Matcher(Prover(), comparison.sampler)
    comparison._translator("a", a, matcher).program(a, a.input_names)
    comparison._translator("b", b, matcher).program(b, b.input_names)
    assert not [op.name for op in matcher.unmatched.values() if op.name == "graph.relu"]


@pytest.mark.parametrize(("first", "names"), ((0, "v"), (2, "vw"), (4, "w")))
def test_every_part_that_is_read_is_needed(first: int, names: str) -> None:
    """Four positions of v and w put together, eight in all, from `first` on."""
    parts = {name: leaf(name, (4,), f32) for name in "vw"}
    (i,) = iterators(1)
    both = (Read(parts["v"], (i,), 0.0), Read(parts["w"], (i - 4,), 0.0))
    together = scope((8,), f32, add(*(factor(read, (8,)) for read in both)))
    spread = [
        multiply(
            factor(Guard(i - 4 * k, 4), (8,)), factor(Read(parts[n], (Index(0),), 0.0), (8,)), (8,)
        )
        for k, n in enumerate("vw")
    ]
    for whole in (together, scope((8,), f32, add(*spread))):
        piece = scope((4,), f32, factor(Read(whole, (i + first,), 0.0), (4,)))
        assert Dependencies().of(piece) == {parts[name].token for name in names}


def halves(side_by_side: bool) -> Program:
    b = GraphBuilder()
    x = b.input("x", (8, 64))
    v, w = (b.weight(name, np.ones((64, 64), np.float32)) for name in "vw")
    if side_by_side:
        first, second = b.split(b.matmul(x, b.concat(v, w, axis=1)), axis=1, sizes=[64, 64])
    else:
        first, second = b.matmul(x, v), b.matmul(x, w)
    b.output("y", b.matmul(b.relu(first), b.relu(second), transpose_b=True))
    return unnamed(b.build())

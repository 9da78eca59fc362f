"""Products of one operand become one product of their rows, whatever the rows were made of."""

import random

import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_types import Guard, Read, Scope, leaf
from isoform.dialects.index import Index, iterators
from isoform.passes.derivation import flattening
from isoform.passes.derivation.body import Link, body_of, build
from isoform.passes.derivation.flattening import flatten, merge_rows
from isoform.passes.derivation.replace import Replacer
from isoform.passes.derivation.side_by_side import Merger, merge_shared
from isoform.passes.derivation.traversals import split_traversal
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes


def equal(a: Scope, b: Scope, seed: int) -> bool:
    evaluator = Evaluator(Residues(draw_primes(2, seed), seed))
    return bool(evaluator.field.equal(evaluator.value(a), evaluator.value(b)).all())


def merged(first: Scope, second: Scope) -> Merger | None:
    bodies = body_of(first), body_of(second)
    assert bodies[0] is not None
    assert bodies[1] is not None
    return merge_rows(bodies[0], bodies[1])


def keeps(first: Scope, second: Scope, made: Merger, seed: int = 3) -> bool:
    """Whether both are what the new scope says, read past their edges too."""
    here = [Index.iterator(k) - 1 for k in range(max(len(first.shape), len(second.shape)))]
    results: list[bool] = []
    for old, step in ((first, made.first), (second, made.second)):
        shape = [n + 2 for n in old.shape]
        root = build(shape, (), [Read(old, tuple(here[: len(shape)]))], f32)
        (new,) = Replacer().replace((root,), old, step)
        results.append(equal(root, new, seed))
    return all(results)


def windows(
    name: str, filters: int, taps: tuple[int, int], *, stride: int = 1, dilation: int = 1
) -> Scope:
    """The places of a 7 x 6 image of four channels under these taps."""
    f, h, w, c, r, s = iterators(6)
    image = leaf("x", (4, 7, 6), f32)
    kernel = leaf(name, (filters, 4, *taps), f32)
    at = (
        h * stride + (r - taps[0] // 2) * dilation,
        w * stride + (s - taps[1] // 2) * dilation,
    )
    shape = (filters, -(-7 // stride), -(-6 // stride))
    factors = [Read(image, (c, *at)), Read(kernel, (f, c, r, s))]
    return build(shape, (4, *taps), factors, f32)


@pytest.mark.parametrize(
    ("first", "second", "sums"),
    [
        (windows("a", 3, (3, 3)), windows("b", 2, (1, 1)), (3, 3, 4)),
        (windows("a", 3, (1, 1)), windows("b", 5, (3, 3)), (3, 3, 4)),
        (windows("a", 3, (3, 3)), windows("b", 2, (5, 5)), (4, 5, 5)),
        (windows("a", 3, (3, 1)), windows("b", 3, (1, 3)), (3, 3, 4)),
        (windows("a", 3, (4, 2)), windows("b", 2, (3, 5)), (4, 4, 5)),
        (windows("a", 3, (3, 3), stride=2), windows("b", 2, (1, 1), stride=2), (3, 3, 4)),
        (windows("a", 3, (3, 3)), windows("b", 2, (1, 1), stride=2), (3, 3, 4)),
        (windows("a", 2, (3, 3), dilation=2), windows("b", 1, (1, 1)), (3, 3, 4)),
    ],
)
def test_a_window_is_widened_to_the_taps_of_both(
    first: Scope, second: Scope, sums: tuple[int, ...]
) -> None:
    made = merged(first, second)
    assert made is not None
    assert made.new.shape[0] == first.shape[0] + second.shape[0]
    assert sorted(made.new.expr.terms[0].sums) == sorted(sums)
    assert keeps(first, second, made)


def test_windows_of_unlike_steps_stay_apart() -> None:
    assert merged(windows("a", 3, (3, 3)), windows("b", 2, (3, 3), dilation=2)) is None


def taps_of(name: str, shape: tuple[int, ...]) -> Scope:
    """For each filter and tap, the product with every place of the image: rows of any make."""
    f, *taps = iterators(len(shape) - 1)
    c = Index.iterator(len(shape) + 1)
    h, w = iterators(2, len(shape) - 1)
    image, kernel = leaf("x", (4, 7, 6), f32), leaf(name, shape, f32)
    factors = [Read(image, (c, h, w)), Read(kernel, (f, c, *taps))]
    return build((shape[0], *shape[2:], 7, 6), (4,), factors, f32)


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ((5, 4, 3, 3), (2, 4), 47),
        ((5, 4, 3, 3), (2, 4, 5, 5), 95),
        ((3, 4, 3), (3, 4, 2, 2), 21),
        ((5, 4), (7, 4, 3), 26),
    ],
)
def test_rows_stack_whatever_they_are_made_of(
    one: tuple[int, ...], other: tuple[int, ...], count: int
) -> None:
    first, second = taps_of("a", one), taps_of("b", other)
    bodies = body_of(first), body_of(second)
    assert bodies[0] is not None
    assert bodies[1] is not None
    assert merge_shared(bodies[0], bodies[1]) is None
    made = merged(first, second)
    assert made is not None
    assert made.new.shape == (count, 7, 6)
    assert keeps(first, second, made)


def random_product(rng: random.Random, name: str, dims: int) -> Scope:
    """A product of the shared image and an operand of its own, each dim with its own window."""
    own = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
    order = list(range(len(own) + dims))
    rng.shuffle(order)
    private, outer = order[: len(own)], order[len(own) :]
    extents, sums, index, kernel = [0] * len(order), [], [], list[tuple[Index, int]]()
    for k, n in zip(private, own, strict=True):
        extents[k] = n
        kernel.append((Index.iterator(k), n))
    for k in outer:
        extents[k] = rng.randint(2, 4)
        row = Index.iterator(k) * rng.choice((1, 1, 2)) + rng.randint(-2, 1)
        if rng.random() < 0.6:
            tap, n = Index.iterator(len(order) + len(sums)), rng.randint(2, 4)
            sums.append(n)
            kernel.append((tap, n))
            row += tap * rng.choice((1, 1, 2))
        index.append(row)
    channel = Index.iterator(len(order) + len(sums))
    kernel.append((channel, 3))
    factors: list[Link] = [
        Read(leaf("x", (3, *(5,) * dims), f32), (channel, *index)),
        Read(leaf(name, [n for _, n in kernel], f32), tuple(e for e, _ in kernel)),
    ]
    if private and rng.random() < 0.3:
        factors.append(Guard(Index.iterator(private[0]) - 1, 2))
    return build(extents, [*sums, 3], factors, f32)


def random_pairs(count: int) -> list[tuple[Scope, Scope, Merger]]:
    rng, found = random.Random(7), list[tuple[Scope, Scope, Merger]]()
    while len(found) < count:
        dims = rng.randint(1, 2)
        first, second = random_product(rng, "a", dims), random_product(rng, "b", dims)
        bodies = body_of(first), body_of(second)
        made = merge_rows(bodies[0], bodies[1]) if bodies[0] and bodies[1] else None
        if made is not None:
            found.append((first, second, made))
    return found


def test_a_merger_keeps_what_random_products_compute() -> None:
    for number, (first, second, made) in enumerate(random_pairs(60)):
        assert keeps(first, second, made, number), (first.expr.token, second.expr.token)


def test_without_its_guards_a_merger_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows and taps past an operand's own are read as if they were its own."""
    monkeypatch.setattr(flattening, "Guard", lambda index, extent: Guard(index * 0, 1))
    wrong = sum(not keeps(first, second, made) for first, second, made in random_pairs(30))
    assert wrong > 5


def test_flattened_traversals_split_again() -> None:
    body = body_of(taps_of("a", (5, 4, 3, 2)))
    assert body is not None
    flat = flatten(body, (0, 1, 2))
    assert flat is not None
    assert flat.new.shape == (30, 7, 6)
    for by in (2, 3):
        inner = body_of(flat.new)
        assert inner is not None
        back = split_traversal(inner, 0, by)
        assert back is not None
        flat = back
    assert flat.new is body.scope()


def test_one_traversal_is_not_flattened() -> None:
    body = body_of(windows("a", 3, (3, 3)))
    assert body is not None
    assert flatten(body, (1,)) is None
    assert flatten(body, (1, 1)) is None

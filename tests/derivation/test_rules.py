"""Each rule keeps what a scope computes, on random scopes read past their edges too."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_types import Guard, Read, Scope, leaf
from isoform.dialects.index import Index, iterators
from isoform.passes.derivation import sums, traversals
from isoform.passes.derivation.body import SumOfProducts, body_of, build, substituted
from isoform.passes.derivation.merges import expression_fuse, merge_copies
from isoform.passes.derivation.replace import Replacer
from isoform.passes.derivation.rules import BY_HAND, EAGER, RULES, named
from isoform.passes.derivation.side_by_side import Merge, merge_batch, merge_shared
from isoform.passes.derivation.step import DerivationRule, ProposalOptions, propose_nothing
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.testing.derivation_cases import all_cases

ROOT = Path(__file__).resolve().parents[2] / "passes" / "derivation"
RULE_FILES = (
    "rules",
    "step",
    "body",
    "basis",
    "sums",
    "traversals",
    "merges",
    "side_by_side",
    "flattening",
    "together",
    "replace",
    "search",
)
OPERATORS = re.compile(r"conv(\d.*|olution.*|s)?|matmul.*|gemm.*|pool.*|g2bmm|band|im2col|dilat.*")
PROPOSING = [r for r in (*RULES, *EAGER, *BY_HAND) if r.propose is not propose_nothing]


@pytest.mark.parametrize("name", RULE_FILES)
def test_no_rule_file_names_an_operator_or_a_size(name: str) -> None:
    text = (ROOT / f"{name}.py").read_text()
    words = re.findall(r"[A-Za-z0-9]+", text.lower())
    found = [w for w in words if OPERATORS.fullmatch(w)]
    assert not found, f"{name}.py names an operator: {found}"
    sizes = {str(n) for c in all_cases() for root in c.roots for n in root.shape if n > 8}
    assert not sizes & set(words), f"{name}.py names a size of a case"


def test_every_rule_has_a_name_a_condition_and_a_source() -> None:
    rules = (*RULES, *EAGER, *BY_HAND)
    assert len({r.name for r in rules}) == len(rules)
    assert all(r.condition and r.source for r in rules)
    assert all(named(r.name) is r for r in rules)


def random_index(rng: random.Random, count: int) -> Index:
    total = Index(rng.randint(-2, 2))
    for k in rng.sample(range(count), min(count, rng.choice((1, 1, 2, 2, 3)))):
        total += Index.iterator(k) * rng.choice((1, 1, 1, -1, 2, -2, 3))
    return total // rng.choice((2, 3)) if rng.random() < 0.2 else total


def random_scope(rng: random.Random) -> Scope:
    """A sum of products of two reads, sometimes guarded."""
    shape = [rng.randint(2, 5) for _ in range(rng.randint(1, 3))]
    sums_ = [rng.randint(2, 5) for _ in range(rng.randint(1, 3))]
    count = len(shape) + len(sums_)
    factors: list = []
    for name in "ab":
        rows = [random_index(rng, count) for _ in range(rng.randint(1, 3))]
        source = leaf(f"{name}{len(rows)}", [rng.randint(3, 6) for _ in rows], f32)
        factors.append(Read(source, tuple(rows)))
    if rng.random() < 0.3:
        e = random_index(rng, count)
        factors.append(Guard(e % 2 if rng.random() < 0.5 else e, 1))
    return build(shape, sums_, factors, f32)


def reader_of(rng: random.Random, scope: Scope) -> Scope:
    """A scope that reads another one, here and there past its edges."""
    here = iterators(len(scope.shape))
    index = tuple(e + rng.choice((-1, 0, 0, 1, 2)) for e in here)
    return build(scope.shape, (), [Read(scope, index), Read(weights(scope), tuple(here))], f32)


def weights(scope: Scope) -> Scope:
    return leaf("weights", scope.shape, f32)  # type: ignore[return-value]


def equal(a: Scope, b: Scope, seed: int) -> bool:
    evaluator = Evaluator(Residues(draw_primes(2, seed), seed))
    return bool(evaluator.field.equal(evaluator.value(a), evaluator.value(b)).all())


@pytest.mark.parametrize("rule", PROPOSING, ids=[r.name for r in PROPOSING])
def test_a_rule_keeps_what_random_scopes_compute(rule: DerivationRule) -> None:
    rng = random.Random(rule.name)
    applied = 0
    for trial in range(200):
        scope = random_scope(rng)
        body = open_body(rng, rule, scope)
        if body is None:
            continue
        scope = body.scope()
        root = reader_of(rng, scope)
        for step in rule.propose(body, ProposalOptions(block=2)):
            (new,) = Replacer().replace((root,), scope, step)
            assert equal(root, new, trial), f"{step.parameters} of {scope.expr.token}"
            applied += 1
        if applied > 60:
            break
    assert applied > 0, "the rule applied to none of the random scopes"


def open_body(rng: random.Random, rule: DerivationRule, scope: Scope) -> SumOfProducts | None:
    """The scope opened so that the rule may find something to do."""
    body = body_of(scope)
    if rule.name == "delta-elim" and body is not None:
        if not body.sums:
            return None
        position, other = rng.randrange(len(body.sums)), random_index(rng, body.rank)
        delta = Guard(Index.iterator(body.rank + position) - other, 1)
        factors = (*body.factors, delta)
        return SumOfProducts(body.shape, body.sums, body.coefficient, factors, body.element)
    if rule.name == "traversal-merge" and body is not None:
        return body_of(reader_of(rng, scope))
    return body


def test_a_guard_is_what_keeps_relaxed_positions_out() -> None:
    rng = random.Random(1)
    wrong: Counter[str] = Counter()
    for trial in range(150):
        scope = random_scope(rng)
        root = reader_of(rng, scope)
        body = body_of(scope)
        if body is None:
            continue
        for rule in RULES:
            for step in rule.propose(body, ProposalOptions()):
                (new,) = Replacer(guards=False).replace((root,), scope, step)
                wrong[rule.name] += not equal(root, new, trial)
    assert wrong["split-traversal"] > 0
    assert wrong["reindex"] > 0
    assert wrong["sum-split"] == wrong["split-sum"] == 0


def test_pieces_fuse_again() -> None:
    rng = random.Random(4)
    fused = 0
    for _ in range(40):
        body = body_of(random_scope(rng))
        split = traversals.expression_split(body, 0, 1) if body is not None else None
        if split is None:
            continue
        step = expression_fuse(split.new)
        if step is not None:
            assert body is not None
            assert step.new is body.scope()
            fused += 1
    assert fused > 0


def test_copies_are_read_through_with_guards() -> None:
    x = leaf("x", (4, 9), f32)
    i, j = iterators(2)
    copy = build((5, 4), (), [Read(x, (j, i + 2))], f32)
    reader = build((5,), (4,), [Read(copy, (i + 1, j)), Read(leaf("w", (4,), f32), (j,))], f32)
    step = merge_copies(reader)
    assert step is not None
    assert equal(reader, step.new, 3)
    body = body_of(step.new)
    assert body is not None
    assert body.guards, "the copy ends where the tensor goes on"


def test_products_that_share_an_operand_are_one() -> None:
    m, n, k = iterators(3)
    a, b, c = leaf("a", (5, 4), f32), leaf("b", (4, 9), f32), leaf("c", (4, 2), f32)
    first = build((5, 3), (4,), [Read(a, (m, k)), Read(b, (k, n))], f32)
    second = build((5, 2), (4,), [Read(a, (m, k)), Read(c, (k, n))], f32)
    bodies = body_of(first), body_of(second)
    assert bodies[0] is not None
    assert bodies[1] is not None
    made = merge_shared(*bodies)
    assert made is not None
    assert made.new.shape == (5, 5)
    for old, step in ((first, made.first), (second, made.second)):
        (new,) = Replacer().replace((old,), old, step)
        assert equal(old, new, 8)


def test_products_that_share_nothing_are_not_merged() -> None:
    m, n, k = iterators(3)
    a, b, c = leaf("a", (5, 4), f32), leaf("b", (4, 3), f32), leaf("d", (5, 4), f32)
    first = body_of(build((5, 3), (4,), [Read(a, (m, k)), Read(b, (k, n))], f32))
    second = body_of(build((5, 3), (4,), [Read(c, (m, k)), Read(b, (k, n))], f32))
    e = leaf("e", (5, 3), f32)
    other = body_of(build((4, 3), (5,), [Read(a, (k, m)), Read(e, (k, n))], f32))
    assert first is not None
    assert second is not None
    assert other is not None
    assert merge_shared(first, other) is None
    assert merge_shared(first, second) is not None, "the right operand is shared"


@pytest.mark.parametrize("merge", [merge_shared, merge_batch])
def test_a_merger_keeps_what_random_scopes_compute(merge: Merge) -> None:
    rng = random.Random(merge.__name__)
    applied = 0
    for trial in range(200):
        body = body_of(random_scope(rng))
        if body is None or len(body.reads) != 2:
            continue
        seed, shared = rng.random(), merge is merge_shared
        kept = (0,) if shared else ()
        first = alike(random.Random(seed), body, "c", 3, kept)
        second = alike(random.Random(seed + shared), body, "d", 3 + shared, kept)
        bodies = body_of(first), body_of(second)
        made = merge(*bodies) if bodies[0] is not None and bodies[1] is not None else None
        if made is None:
            continue
        roots = reader_of(rng, first), reader_of(rng, second)
        new = Replacer().replace(roots, first, made.first)
        new = Replacer().replace(new, second, made.second)
        assert all(equal(a, b, trial) for a, b in zip(roots, new, strict=True))
        applied += 1
    assert applied > 10


def alike(
    rng: random.Random, body: SumOfProducts, name: str, extent: int, kept: Sequence[int]
) -> Scope:
    """The same products of other operands, the second with a dim more, in another order.

    Args:
        extent: of the traversal that indexes the new dim.
        kept: numbers of the reads that stay.
    """
    rank = body.rank
    order = rng.sample(range(rank + 1), rank + 1)
    images = [Index.iterator(order.index(k)) for k in range(rank)]
    images += iterators(len(body.sums), rank + 1)
    factors: list = [substituted(g, images) for g in body.guards]
    for number, read in enumerate(body.reads):
        index = substituted(read, images).index
        shape = read.source.shape
        if number == 1:
            index, shape = (*index, Index.iterator(order.index(rank))), (*shape, extent)
        named = "kept" if number in kept else name
        factors.append(Read(leaf(f"{named} {number}", shape, f32), index))
    extents = [*body.shape, extent]
    return build([extents[k] for k in order], body.sums, factors, f32, body.coefficient)


def test_a_batch_of_unequal_products_is_refused() -> None:
    m, n, k = iterators(3)
    a, b, c = leaf("a", (5, 4), f32), leaf("b", (4, 3), f32), leaf("c", (6, 4), f32)
    first = body_of(build((5, 3), (4,), [Read(a, (m, k)), Read(b, (k, n))], f32))
    second = body_of(build((6, 3), (4,), [Read(c, (m, k)), Read(b, (k, n))], f32))
    assert first is not None
    assert second is not None
    assert merge_batch(first, second) is None
    assert merge_shared(first, second) is not None


def test_operands_are_not_stacked_where_one_is_padded_and_the_other_goes_on() -> None:
    """Past its edge the shorter one is 0; a stack of both would need one edge for both."""
    n, h, r = iterators(3)
    k = leaf("k", (3,), f32)

    def windows(name: str, rows: int) -> SumOfProducts | None:
        x = leaf(name, (2, rows), f32)
        return body_of(build((2, 5), (3,), [Read(x, (n, h + r - 1)), Read(k, (r,))], f32))

    first, second, longer = windows("x", 5), windows("y", 5), windows("z", 6)
    assert first is not None
    assert second is not None
    assert longer is not None
    made = merge_shared(first, second)
    assert made is not None
    assert made.new.shape == (4, 5)
    assert merge_shared(first, longer) is None


def test_delta_intro_turns_a_gather_into_a_scatter() -> None:
    case = next(c for c in all_cases() if c.name == "transposed-gather")
    (gather,) = case.small
    (scatter,) = next(c for c in all_cases() if c.name == "transposed-delta").small
    body = body_of(gather)
    for _ in range(2):
        assert body is not None
        step = sums.delta_intro(body, 0)
        assert step is not None
        body = body_of(step.new)
    assert body is not None
    tight = traversals.tighten_sums(body)
    assert tight is not None
    assert tight.new is scatter

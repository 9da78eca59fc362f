"""The memory plan: buffers in use never overlap, and little is wasted."""

import random

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr

from isoform.compiler.targets.levels import place as placed
from isoform.dialects.kernel import ViewOp
from isoform.dialects.program import main_of
from isoform.passes.plan_memory import (
    ALIGNMENT,
    ARENA,
    Lifetime,
    largest_live_set,
    lifetimes,
    place,
)
from isoform.testing.random_programs import random_graph


def overlaps(buffers: list[Lifetime], offsets: list[int]) -> list[tuple[int, int]]:
    """Pairs of buffers that are needed at one time and share a byte."""
    found = []
    for i, a in enumerate(buffers):
        for j, b in enumerate(buffers[:i]):
            together = a.first <= b.last and b.first <= a.last
            apart = offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]
            if together and not apart and a.size and b.size:
                found.append((i, j))
    return found


def random_buffers(seed: int) -> list[Lifetime]:
    rng = random.Random(seed)
    found = []
    for k in range(rng.randint(1, 40)):
        first = rng.randint(0, 30)
        size = ALIGNMENT * rng.choice((0, 1, 1, 2, 5, 30))
        found.append(Lifetime(k, size, first, first + rng.choice((0, 1, 2, 3, 20))))
    return found


@pytest.mark.parametrize("chunk", range(5))
def test_random_lifetimes_never_overlap(chunk: int) -> None:
    for seed in range(chunk * 100, (chunk + 1) * 100):
        buffers = random_buffers(seed)
        offsets, total = place(buffers)
        assert set(offsets) == {b.value for b in buffers}
        assert overlaps(buffers, [offsets[b.value] for b in buffers]) == [], seed
        assert all(offset % ALIGNMENT == 0 for offset in offsets.values())
        assert total == max(offsets[b.value] + b.size for b in buffers)
        assert largest_live_set(buffers) <= total


def test_the_check_above_sees_an_overlap() -> None:
    buffers = [Lifetime(0, 128, 0, 2), Lifetime(1, 64, 2, 3), Lifetime(2, 64, 3, 3)]
    assert overlaps(buffers, [0, 64, 0]) == [(1, 0)]
    assert overlaps(buffers, [0, 128, 0]) == []


def test_a_chain_needs_two_buffers_whatever_its_length() -> None:
    buffers = [Lifetime(k, 64, k, k + 1) for k in range(50)]
    assert place(buffers)[1] == 128


def test_programs_are_planned_as_their_lifetimes_say() -> None:
    for seed in range(40):
        module = placed(random_graph(seed)).module
        offsets: dict[object, int] = {}
        for op in main_of(module).body.block.ops:
            offset, several = op.properties.get("offset"), op.properties.get("offsets")
            if isinstance(offset, IntegerAttr):
                offsets[op.results[0]] = offset.value.data
            if isinstance(several, ArrayAttr):
                offsets |= {r: o.value.data for r, o in zip(op.results, several, strict=True)}
        buffers = [b for b in lifetimes(module) if b.value in offsets]
        assert overlaps(buffers, [offsets[b.value] for b in buffers]) == [], seed
        ends = [offsets[b.value] + b.size for b in buffers]
        assert max(ends, default=0) <= module.attributes[ARENA].value.data


def test_a_view_is_its_source_for_as_long_as_it_is_read() -> None:
    for seed in range(120):
        module = placed(random_graph(seed, families=("reshape", "binary", "unary"))).module
        ops = list(main_of(module).body.block.ops)
        number = {op: k for k, op in enumerate(ops)}
        last = {b.value: b.last for b in lifetimes(module)}
        for op in ops:
            source = op.source if isinstance(op, ViewOp) else None
            while source is not None and isinstance(source.owner, ViewOp):
                source = source.owner.source
            if source in last:
                uses = [number[use.operation] for use in op.results[0].uses]
                assert last[source] >= max(uses, default=0), seed

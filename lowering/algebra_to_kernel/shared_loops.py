"""The loops that scopes of one kernel share: used by fusion and by code generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.index import Index, range_of


def loop_extents(scope: ScopeOp) -> tuple[int, ...]:
    """Traversal extents without the 1s: the actual loops."""
    return tuple(n for n in scope.traversal if n != 1)


Names = Mapping[SSAValue, SSAValue]
"""Other values under which a scope's result is read: a region argument that will replace it."""


def _made(scopes: Sequence[ScopeOp], names: Names) -> dict[SSAValue, ScopeOp]:
    made: dict[SSAValue, ScopeOp] = {scope.result: scope for scope in scopes}
    return made | {name: made[value] for name, value in names.items() if value in made}


def _reads_among(
    scopes: Sequence[ScopeOp], names: Names
) -> Iterator[tuple[ScopeOp, tuple[Index, ...], ScopeOp]]:
    """Each read of one scope's result by another: the reader, where it reads, what it reads."""
    for source, made in _made(scopes, names).items():
        for reader in dict.fromkeys(use.operation for use in source.uses):
            if isinstance(reader, ScopeOp) and reader in scopes:
                yield from ((reader, read.index, made) for read in reader.reads_of(source))


def shared_loops(scopes: Sequence[ScopeOp], names: Names = MappingProxyType({})) -> int:
    """The number of leading loops that all scopes share; reads among them use just these."""
    shared = min(len(loop_extents(s)) for s in scopes)
    first = loop_extents(scopes[0])
    while shared and any(loop_extents(s)[:shared] != first[:shared] for s in scopes):
        shared -= 1
    for reader, index, made in _reads_among(scopes, names):
        shared = min(shared, _aligned(reader, index, made))
    return shared


def reads_single_positions(scopes: Sequence[ScopeOp], names: Names = MappingProxyType({})) -> bool:
    """Whether reads among the scopes stay inside the extent-1 dims of their sources.

    A fused intermediate has no loop there, so generated code cannot see a read outside.
    """
    return all(
        range_of(e, reader.extents) == (0, 0)
        for reader, index, made in _reads_among(scopes, names)
        for e, n in zip(index, made.traversal, strict=True)
        if n == 1
    )


def _aligned(reader: ScopeOp, index: tuple[Index, ...], made: ScopeOp) -> int:
    """Number of leading loops of `made` that are read at the reader's own iterators."""
    own = [k for k, n in enumerate(reader.traversal) if n != 1]
    count = 0
    loops = [(d, n) for d, n in enumerate(made.traversal) if n != 1]
    for (dim, _), iterator in zip(loops, own, strict=False):
        if index[dim] != Index.iterator(iterator):
            break
        count += 1
    return count

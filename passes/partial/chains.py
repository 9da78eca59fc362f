"""Contractions beside a mutated one, which may become the same mutant.

Alone, a small contraction saves less than its views cost. Beside one that became the same mutant,
the view between them meets its inverse and costs nothing; the last view of the chain moves on by
one. The whole programs show whether the longer chain is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ..derivation.lift import scope_names

# Elementwise scopes in a row that are looked through.
_BETWEEN = 6


def neighbours(module: ModuleOp) -> dict[str, set[str]]:
    """For each contraction by name those before and after it, with elementwise scopes between."""
    names = scope_names(module)
    found: dict[str, set[str]] = {}
    for op, name in names.items():
        for before in _before(op, _BETWEEN) if op.summation else ():
            found.setdefault(name, set()).add(names[before])
            found.setdefault(names[before], set()).add(name)
    return found


def _before(op: ScopeOp, between: int) -> Iterator[ScopeOp]:
    for value in op.inputs:
        owner = _scope(value)
        if owner is not None and owner.summation:
            yield owner
        elif owner is not None and between:
            yield from _before(owner, between - 1)


def _scope(value: SSAValue) -> ScopeOp | None:
    return value.owner if isinstance(value.owner, ScopeOp) else None

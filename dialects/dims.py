"""Dims of a shape that is not known yet: numbers, symbols, or None for any number."""

from __future__ import annotations

from collections.abc import Sequence

Dim = int | str | None


def fits(dims: Sequence[Dim] | None, shape: Sequence[int]) -> bool:
    """Whether a shape has the declared rank and numbers; symbols match anything."""
    if dims is None:
        return True
    if len(dims) != len(shape):
        return False
    return all(d == n for d, n in zip(dims, shape, strict=True) if isinstance(d, int))


def shown(dims: Sequence[Dim] | None) -> str:
    """Dims as a user writes them, `?` for one without a name."""
    if dims is None:
        return "of unknown rank"
    return "[" + ", ".join("?" if d is None else str(d) for d in dims) + "]"

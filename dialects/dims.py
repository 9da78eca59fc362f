"""Dims of a shape that is not known yet: numbers, symbols, or None for any number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Dim = int | str | None


def fits(dims: Sequence[Dim] | None, shape: Sequence[int]) -> bool:
    """Whether a shape has the declared rank and numbers; symbols match anything."""
    if dims is None:
        return True
    if len(dims) != len(shape):
        return False
    return all(d == n for d, n in zip(dims, shape, strict=True) if isinstance(d, int))


def is_symbolic(values: Iterable[object]) -> bool:
    """Whether a shape, or an array of data, has extents among its elements."""
    if isinstance(values, np.ndarray):
        if values.dtype != object:
            return False
        values = values.ravel()
    return any(not isinstance(v, int | np.generic | str | bytes) for v in values)


def extent_named(text: str) -> Any:
    """The extent that a text names, of the active `ShapeEnv`. Raises UserError where it is none."""
    from .extent_text import read_extent
    from .extents import active_env, extent

    return extent(read_extent(text), active_env())


def same_dims(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are one. Unlike tuples' `==` it asks nothing of shapes of other ranks."""
    return len(a) == len(b) and all(m == n for m, n in zip(a, b, strict=True))


def surely_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are known to be one: what is not decided is no guard on a symbol.

    For ops that change nothing where they are one: such an op is right, too.
    """
    return len(a) == len(b) and all(_is_surely(m, n) for m, n in zip(a, b, strict=True))


def _is_surely(m: Any, n: Any) -> bool:
    if is_symbolic([m]):
        return m.is_surely(n)
    return n.is_surely(m) if is_symbolic([n]) else m == n


def broadcasts(n: Any, wanted: Any) -> bool:
    """Whether an extent is repeated to another. A number 1 does without asking of symbols."""
    return (isinstance(n, int) and n == 1) or n == wanted or n == 1


def broadcast_shapes(*shapes: Sequence[Any]) -> tuple[Any, ...]:
    """The common shape by numpy's rule; extents may be symbolic.

    Raises:
        ValueError: there is none.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    found: list[Any] = [1] * rank
    for shape in shapes:
        for k, n in enumerate(shape, rank - len(shape)):
            found[k] = _broadcast(found[k], n)
    return tuple(found)


def _broadcast(a: Any, b: Any) -> Any:
    # Numbers are asked first: what they decide is no guard on a symbol.
    for one, other in sorted(((a, b), (b, a)), key=lambda pair: not isinstance(pair[0], int)):
        if isinstance(one, int) and one == 1:
            return other
    if str(a) == str(b) or a == b:
        return a
    if a == 1 or b == 1:
        return b if a == 1 else a
    raise ValueError(f"{a} and {b} do not broadcast")


def shown(dims: Sequence[Dim] | None) -> str:
    """Dims as a user writes them, `?` for one without a name."""
    if dims is None:
        return "of unknown rank"
    return "[" + ", ".join("?" if d is None else str(d) for d in dims) + "]"

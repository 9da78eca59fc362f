"""Write a matched scope in its library kernel's form, with layout scopes before it.

The result is a `DerivationStep`: the new scope computes the same values in other coordinates.
Its operands are the old ones where they can be used in place, else scopes that copy them into the
kernel's layout (with padding, kernel flips and guards).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dialects.canonical_types import Read, Scope
from ...dialects.contraction import Window
from ...dialects.index import Index, iterators
from ...lowering.algebra_to_kernel.table import Match
from .body import Link, build, mapped, substituted
from .step import DerivationStep

Digits = tuple[int, ...]


def instantiate(match: Match) -> DerivationStep:
    """The form of a matched scope that its kernel takes."""
    if match.kernel.window is None:
        return _gemm(match)
    return _band(match) if match.kernel.window.outer == "batch" else _conv(match)


def _step(match: Match, new: Scope, image: Sequence[Index]) -> DerivationStep:
    return DerivationStep("match", new, (("kernel", match.kernel.name),), tuple(image))


# --- matrix products ----------------------------------------------------------------------------


def _gemm(match: Match) -> DerivationStep:
    """Iterators in the order batch, m, n, k; others than views are copied in it."""
    found, groups = match.contraction, match.groups
    peeled = () if match.batch is None else (match.batch,)
    m, n = (tuple(k for k in groups[g] if k not in peeled) for g in ("m", "n"))
    outer, inner = match.order, groups["k"]
    order = [*outer, *inner]
    names = _renamed(len(found.extents), order)
    factors: list[Link] = []
    for position, line in ((0, m), (1, n)):
        if match.direct[position]:
            factors.append(substituted(found.operands[position].read, names))
            continue
        own = [*groups["batch"], *(k for k in peeled if k in _used(match, position))]
        own += [*line, *inner] if position == 0 else [*inner, *line]
        copied = _copy(match, position, own)
        factors.append(Read(copied, tuple(names[k] for k in own)))
    extents = [found.extents[k] for k in order]
    count = len(outer)
    element = found.scope.element
    new = build(extents[:count], extents[count:], factors, element, found.coefficient)
    return _step(match, new, [Index.iterator(k) for k in outer])


def _used(match: Match, position: int) -> frozenset[int]:
    return match.contraction.operands[position].uses


def _renamed(count: int, order: Sequence[int]) -> list[Index]:
    names = [Index(0)] * count
    for position, k in enumerate(order):
        names[k] = Index.iterator(position)
    return names


def _copy(match: Match, position: int, order: Sequence[int]) -> Scope:
    """An operand, with its guards, over these iterators as dims."""
    found = match.contraction
    operand, names = found.operands[position], _renamed(len(found.extents), order)
    factors = [substituted(f, names) for f in (operand.read, *operand.guards)]
    return build([found.extents[k] for k in order], (), factors, found.scope.element)


# --- windows ------------------------------------------------------------------------------------


class _Frame:
    """Coordinates that combine several iterators each, as digits, the first outermost."""

    def __init__(self, match: Match, coordinates: Sequence[Digits]):
        self.match = match
        self.extents = match.contraction.extents
        self.shape = [match.extent(digits) for digits in coordinates]
        self.names = [Index(0)] * len(self.extents)
        for position, digits in enumerate(coordinates):
            self._name(Index.iterator(position), digits)

    def _name(self, coordinate: Index, digits: Digits) -> None:
        left = math.prod(self.extents[k] for k in digits)
        for number, k in enumerate(digits):
            left //= self.extents[k]
            digit = coordinate // left
            self.names[k] = digit if number == 0 else digit % self.extents[k]

    def flip(self, windows: Sequence[Window]) -> None:
        """Count inner iterators of negative dilation backwards."""
        for w in windows:
            if w.dilation < 0:
                self.names[w.inner] = self.extents[w.inner] - 1 - self.names[w.inner]


def _joined(match: Match, digits: Digits) -> Index:
    """The coordinate that combines these iterators."""
    total = Index(0)
    for k in digits:
        total = total * match.contraction.extents[k] + Index.iterator(k)
    return total


def _unrolled(match: Match, dims: Sequence[Digits], windows: Sequence[int]) -> Scope:
    """The first operand with one dim for each window; `windows[d]` is the window of dim d or -1."""
    found = match.contraction
    frame = _Frame(match, dims)
    shape = list(frame.shape)
    for dim, number in enumerate(windows):
        if number >= 0:
            w = match.windows[number]
            steps = found.extents[w.outer] - 1, found.extents[w.inner] - 1
            shape[dim] = w.stride * steps[0] + abs(w.dilation) * steps[1] + 1
    positions = {number: dim for dim, number in enumerate(windows) if number >= 0}

    def through(e: Index) -> Index:
        rest, moved = e, Index(0)
        for number, w in enumerate(match.windows):
            c = e.coefficient(w.outer)
            rest -= Index.iterator(w.outer) * c + Index.iterator(w.inner) * e.coefficient(w.inner)
            at = Index.iterator(positions[number])
            if w.dilation < 0:
                at += w.dilation * (found.extents[w.inner] - 1)
            moved += at * (c // w.stride)
        return rest.substitute(frame.names) + moved

    factors = [mapped(f, through) for f in (found.first.read, *found.first.guards)]
    return build(shape, (), factors, found.scope.element)


def _second(match: Match, dims: Sequence[Digits]) -> Scope:
    """The second operand over these dims, flipped where a window runs backwards."""
    found = match.contraction
    frame = _Frame(match, dims)
    frame.flip(match.windows)
    factors = [substituted(f, frame.names) for f in (found.second.read, *found.second.guards)]
    return build(frame.shape, (), factors, found.scope.element)


def _conv(match: Match) -> DerivationStep:
    """out[m, batch n, outer..] = sum over k, inner.. of first[m, batch k, at..] * second[..]."""
    found, groups, windows = match.contraction, match.groups, match.windows
    batch, k = groups["batch"], groups["k"]
    features, outers = (*batch, *groups["n"]), [(w.outer,) for w in windows]
    out: list[Digits] = [groups["m"], features, *outers]
    sums: list[Digits] = [k, *((w.inner,) for w in windows)]
    frame = _Frame(match, [*out, *sums])
    frame.flip(windows)
    here = iterators(len(frame.shape))
    per_group, channel = match.extent(groups["n"]), len(out)
    factors: list[Link] = []
    if match.direct[0] and len(found.first.index) == len(out):
        factors.append(substituted(found.first.read, frame.names))
    else:
        blank: list[Digits] = [() for _ in windows]
        dims = [groups["m"], (*batch, *k), *blank]
        first = _unrolled(match, dims, [-1, -1, *range(len(windows))])
        position = (here[1] // per_group) * match.extent(k) + here[channel]
        at = [here[0], position]
        for number, w in enumerate(windows):
            tap = here[channel + 1 + number]
            at.append(here[2 + number] * w.stride + tap * abs(w.dilation))
        factors.append(Read(first, tuple(at)))
    if match.direct[1] and not any(w.dilation < 0 for w in windows):
        factors.append(substituted(found.second.read, frame.names))
    else:
        second = _second(match, [features, *sums])
        factors.append(Read(second, (here[1], *here[channel:])))
    count, element = len(out), found.scope.element
    new = build(frame.shape[:count], frame.shape[count:], factors, element, found.coefficient)
    return _step(match, new, [_joined(match, digits) for digits in out])


def _band(match: Match) -> DerivationStep:
    """out[batch, outer, inner] = sum over k of second[batch, outer, k] * first[batch, at, k]."""
    found, groups = match.contraction, match.groups
    (w,) = match.windows
    batch, k = groups["batch"], groups["k"]
    frame = _Frame(match, [batch, (w.outer,), (w.inner,), k])
    here = iterators(4)
    factors: list[Link] = []
    if match.direct[0] and w.dilation > 0:
        factors.append(substituted(found.first.read, frame.names))
    else:
        first = _unrolled(match, [batch, (), k], [-1, 0, -1])
        band = here[1] + here[2] * abs(w.dilation)
        factors.append(Read(first, (here[0], band, here[3])))
    if match.direct[1]:
        factors.append(substituted(found.second.read, frame.names))
    else:
        second = _second(match, [batch, (w.outer,), k])
        factors.append(Read(second, (here[0], here[1], here[3])))
    element = found.scope.element
    new = build(frame.shape[:3], frame.shape[3:], factors, element, found.coefficient)
    inner = Index.iterator(w.inner)
    if w.dilation < 0:
        inner = found.extents[w.inner] - 1 - inner
    return _step(match, new, [_joined(match, batch), Index.iterator(w.outer), inner])

"""The table of library kernels as data, and the engine that matches scopes modulo layout.

A library kernel states how many iterators of a contraction it takes in each group
(dialects/contraction.py) and which pairs of groups may move along one index together (a window,
stride * x + dilation * r). Matching is modulo layout: an operand that the kernel cannot take in
position gets a layout copy, whose bytes are the distance of the match. Guards belong to the operand
that has all their iterators. A scope with any other guard, or an iterator in no group, is not a
contraction. Source: EinNet section 5; windows by proportional coefficient columns are ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Extents, Guard, Read, Scope
from ...dialects.contraction import (
    GROUPS,
    Contraction,
    Operand,
    Window,
    window_of,
    with_guards,
)
from ...dialects.index import Index, flatten, is_chain, range_of, row_major_strides
from ...dialects.kernel import ConvOp, GemmOp, KernelOp
from .match import takes_conv, takes_gemm


@dataclass(frozen=True)
class WindowRule:
    """Pairs that move along one index of the first operand: an output iterator and another."""

    outer: str  # role of the output iterator
    inner: str  # role of the other
    least: int  # fewest such pairs
    most: int  # most such pairs
    unit_stride: bool = False  # whether strides have to be 1


@dataclass(frozen=True)
class LibraryKernel:
    """One line of the table.

    Attributes:
        groups: for each group the least and most iterators, without those of windows.
        window: None for a kernel without windows.
        order: the dims of a dense first operand, by what indexes them.
        strided: operands may be strided views with unit stride and a leading dimension; otherwise
            they must be dense.
        padding: whether the first operand may be read out of bounds along a window (zero padding).
        batch_stride_zero: whether an operand may stay in place while the batch moves on.
        op: the op that algebra-to-kernel makes of a scope which the kernel `takes` without
            changes; without an op only searches use the kernel.
    """

    name: str
    groups: dict[str, tuple[int, int | None]]
    window: WindowRule | None = None
    order: tuple[str, ...] = ()
    strided: bool = False
    padding: bool = False
    batch_stride_zero: bool = False
    op: type[KernelOp] | None = None
    takes: Callable[[ScopeOp, set[SSAValue]], bool] = lambda scope, constants: False


ANY: tuple[int, int | None] = (0, None)
SOME: tuple[int, int | None] = (1, None)

# To add a library kernel, add a line here; plug-ins list theirs in KERNELS.
TABLE: tuple[LibraryKernel, ...] = (
    LibraryKernel(
        "gemm",
        {"batch": (0, 0), "m": ANY, "n": ANY, "k": SOME},
        strided=True,
        batch_stride_zero=True,
        op=GemmOp,
        takes=takes_gemm,
    ),
    LibraryKernel("batched-gemm", {"batch": SOME, "m": ANY, "n": ANY, "k": SOME}, strided=True),
    LibraryKernel(
        "conv",
        {"batch": ANY, "m": ANY, "n": ANY, "k": ANY},
        window=WindowRule("m", "k", 1, 2),
        order=("m", "k", "window"),
        padding=True,
        op=ConvOp,
        takes=takes_conv,
    ),
    LibraryKernel(
        "band-matmul",
        {"batch": ANY, "m": (0, 0), "n": (0, 0), "k": SOME},
        window=WindowRule("batch", "m", 1, 1, unit_stride=True),
        order=("batch", "window", "k"),
        padding=True,
    ),
)


_ADDED: ContextVar[tuple[LibraryKernel, ...]] = ContextVar("library kernels", default=())


def library_kernels() -> tuple[LibraryKernel, ...]:
    """What plug-ins in use add, then the table."""
    return (*_ADDED.get(), *TABLE)


@contextmanager
def adding(kernels: Sequence[LibraryKernel]) -> Generator[None]:
    """Add kernels in the block."""
    token = _ADDED.set((*_ADDED.get(), *kernels))
    try:
        yield
    finally:
        _ADDED.reset(token)


@dataclass(frozen=True)
class ScopeContraction(Contraction[Read]):
    """A canonical scope as a contraction, times `coefficient`."""

    scope: Scope
    coefficient: Fraction


@dataclass(frozen=True)
class Match:
    """A library kernel that computes a contraction.

    Attributes:
        groups: iterators of each group, without those of windows.
        direct: whether each operand can be used in place.
        batch: the iterator that moves one operand only; the other has batch stride 0.
    """

    kernel: LibraryKernel
    contraction: ScopeContraction
    groups: dict[str, tuple[int, ...]]
    windows: tuple[Window, ...]
    direct: tuple[bool, bool]
    batch: int | None = None

    def extent(self, iterators: Sequence[int]) -> int:
        return math.prod(self.contraction.extents[k] for k in iterators)

    @property
    def order(self) -> tuple[int, ...]:
        """The output iterators in the order of the kernel's result, outermost first.

        m and n of a matrix product may be swapped: the kernel then computes the transpose.
        """
        groups, windows = self.groups, self.windows
        peeled = () if self.batch is None else (self.batch,)
        m, n = (tuple(k for k in groups[g] if k not in peeled) for g in ("m", "n"))
        if self.kernel.window is None:
            first, second = (*groups["batch"], *peeled, *m, *n), (*groups["batch"], *peeled, *n, *m)
            return second if list(second) == sorted(second) else first
        outers = tuple(w.outer for w in windows)
        if self.kernel.window.outer == "batch":
            return (*groups["batch"], *outers, *(w.inner for w in windows))
        return (*m, *groups["batch"], *n, *outers)

    @property
    def in_order(self) -> bool:
        """Whether the kernel's result is the scope's own, in row-major order."""
        return list(self.order) == sorted(self.order)

    def moved(self, position: int) -> int:
        """How often an operand is read: once, or once for each position of a batch it lacks."""
        operand = self.contraction.operands[position]
        stays = self.batch is not None and self.batch not in operand.iterators
        return self.contraction.extents[self.batch] if stays and self.batch is not None else 1

    @property
    def flops(self) -> int:
        return 2 * math.prod(self.contraction.extents)


# Which operands are used in place, and the iterator that moves only one of them.
Placement: TypeAlias = tuple[tuple[bool, bool], "int | None"]


def contraction_of(scope: Scope) -> ScopeContraction | None:
    """The scope as a contraction; None if it is not one."""
    if len(scope.expr.terms) != 1:
        return None
    term = scope.expr.terms[0]
    reads = [f for f in term.factors if isinstance(f, Read) and f.outside == 0.0]
    guards = [f for f in term.factors if isinstance(f, Guard)]
    if len(reads) != 2 or len(reads) + len(guards) != len(term.factors):
        return None
    first, second = (Operand(read, read.index, read.source.shape) for read in reads)
    parts = with_guards(first, second, guards)
    if parts is None:
        return None
    rank, extents = len(scope.shape), scope.shape + term.sums
    return ScopeContraction(extents, rank, *parts, scope, term.coefficient)


def matches(scope: Scope, table: Sequence[LibraryKernel] | None = None) -> list[Match]:
    """Every match of a kernel of the table with the scope, in the order of the table."""
    table = library_kernels() if table is None else table
    found = contraction_of(scope)
    if found is None:
        return []
    made: list[Match] = []
    swapped = replace(found, first=found.second, second=found.first)
    for kernel in table:
        sides = (found,) if kernel.window is None else (found, swapped)
        for side in sides:
            made += _matches(kernel, side)
    return made


def _matches(kernel: LibraryKernel, found: ScopeContraction) -> Iterator[Match]:
    if found.loose:
        return
    groups = found.groups
    for windows in _windows(kernel.window, found, groups):
        own = {k for w in windows for k in (w.outer, w.inner)}
        left = {name: tuple(k for k in its if k not in own) for name, its in groups.items()}
        if all(_fits(len(left[name]), kernel.groups[name]) for name in GROUPS):
            placements = (_strided if kernel.strided else _dense)(kernel, found, left, windows)
            for direct, batch in placements:
                yield Match(kernel, found, left, windows, direct, batch)


def _fits(count: int, bounds: tuple[int, int | None]) -> bool:
    least, most = bounds
    return count >= least and (most is None or count <= most)


# --- windows ------------------------------------------------------------------------------------


def _windows(
    rule: WindowRule | None, found: ScopeContraction, groups: dict[str, tuple[int, ...]]
) -> Iterator[tuple[Window, ...]]:
    """Every assignment of inner iterators to outer ones; also an empty one where allowed."""
    if rule is None:
        yield ()
        return
    if any(e.has_floor for e in (*found.first.index, *(g.index for g in found.first.guards))):
        return
    choices: list[list[Window | None]] = []
    for inner in groups[rule.inner]:
        fitting = [w for o in groups[rule.outer] if (w := window_of(found.first, o, inner))]
        fitting = [w for w in fitting if not rule.unit_stride or w.stride == 1]
        if fitting:
            choices.append([*fitting, None])
    for choice in itertools.product(*choices):
        windows = tuple(w for w in choice if w is not None)
        outers = [w.outer for w in windows]
        if rule.least <= len(windows) <= rule.most and len(set(outers)) == len(outers):
            yield tuple(sorted(windows, key=lambda w: w.outer))


def _dense(
    kernel: LibraryKernel,
    found: ScopeContraction,
    groups: dict[str, tuple[int, ...]],
    windows: Sequence[Window],
) -> list[Placement]:
    """Which operands are indexed by single iterators, windows and legal padding alone."""
    first = not found.first.guards and all(
        _is_dense_row(e, size, found, windows, kernel.padding)
        for e, size in zip(found.first.index, found.first.shape, strict=True)
    )
    second = not found.second.guards and all(
        _is_dense_row(e, size, found, (), False)
        for e, size in zip(found.second.index, found.second.shape, strict=True)
    )
    merged = all(len(its) <= 1 for its in groups.values())
    dims = {**groups, "window": tuple(w.outer for w in windows)}
    ordered = _ordered(found.first, [k for name in kernel.order for k in dims[name]])
    whole = all(not its for name, its in groups.items() if name not in (*kernel.order, "n"))
    return [((first and ordered and merged and whole, second and merged), None)]


def _ordered(read: Operand[Read], wanted: Sequence[int]) -> bool:
    """Whether the dims come in the order of these iterators."""
    positions = [k for e in read.index for k in wanted if k in e.iterators]
    return positions == [k for k in wanted if k in positions]


def _is_dense_row(
    e: Index, size: int, found: ScopeContraction, windows: Sequence[Window], padding: bool
) -> bool:
    if not e.terms:
        return e.constant == 0 and size == 1
    if len(e.terms) == 1 and e.constant == 0 and e.terms[0][1] == 1:
        k = e.terms[0][0]
        return isinstance(k, int) and found.extents[k] == size
    for w in windows:
        a, b = e.coefficient(w.outer), e.coefficient(w.inner)
        times = a // w.stride
        if len(e.terms) == 2 and times > 0 and a == times * w.stride and b == times * w.dilation:
            if padding and w.dilation > 0:
                return True
            low, high = range_of(e, found.extents)
            return w.dilation > 0 and low >= 0 and high < size
    return False


# --- strided operands ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """One operand as a strided view: for each group its iterators in order and its stride."""

    orders: dict[str, tuple[int, ...]]
    strides: dict[str, int]


def _strided(
    kernel: LibraryKernel,
    found: ScopeContraction,
    groups: dict[str, tuple[int, ...]],
    windows: Sequence[Window],
) -> list[Placement]:
    """Which operands are strided views for BLAS; then again with a batch iterator split off."""
    lines = ("m", "n")
    views = [_operand_view(found, p, groups, lines[p]) for p in (0, 1)]
    placements: list[Placement] = [(_in_place(found, views), None)]
    for position in (0, 1) if kernel.batch_stride_zero else ():
        if views[position] is None:
            view, batch = _peeled(found, position, groups, lines[position])
            if view is not None:
                changed = [view if p == position else v for p, v in enumerate(views)]
                placements.append((_in_place(found, changed), batch))
    return placements


def _in_place(found: ScopeContraction, views: Sequence[_View | None]) -> tuple[bool, bool]:
    """Which operands stay in place: both only if they agree in the order of shared iterators."""
    a, b = views
    direct = [a is not None, b is not None]
    if a is not None and b is not None and any(a.orders[g] != b.orders[g] for g in ("k", "batch")):
        direct[1 if _is_smaller(found.second, found.first) else 0] = False
    return direct[0], direct[1]


def _is_smaller(one: Operand[Read], other: Operand[Read]) -> bool:
    return math.prod(one.shape) <= math.prod(other.shape)


def _operand_view(
    found: ScopeContraction, position: int, groups: dict[str, tuple[int, ...]], line: str
) -> _View | None:
    """An operand as a view with one stride for its line (m or n), one for k, one for the batch."""
    operand = found.operands[position]
    if operand.guards or not operand.stays_inside(found.extents):
        return None
    flat = flatten(operand.index, row_major_strides(operand.shape))
    if flat.has_floor:
        return None
    orders: dict[str, tuple[int, ...]] = {}
    strides: dict[str, int] = {}
    for name in ("batch", line, "k"):
        order = _chain(flat, groups[name], found.extents)
        if order is None:
            return None
        orders[name] = order
        strides[name] = flat.coefficient(order[-1]) if order else 1
    rows = math.prod(found.extents[k] for k in groups[line])
    inner = math.prod(found.extents[k] for k in groups["k"])
    return _View(orders, strides) if _blas(strides[line], rows, strides["k"], inner) else None


def _blas(line: int, rows: int, k: int, inner: int) -> bool:
    """Unit stride in one direction, and a leading dimension of at least the extent in the other."""
    if line <= 0 or k <= 0:
        return False
    return (k == 1 and (line >= inner or rows == 1)) or (line == 1 and (k >= rows or inner == 1))


def _chain(flat: Index, group: Sequence[int], extents: Extents) -> tuple[int, ...] | None:
    """The group's iterators, outermost first, if they cover one strided range."""
    order = sorted(group, key=lambda k: -abs(flat.coefficient(k)))
    strides = [flat.coefficient(k) for k in order]
    return tuple(order) if is_chain(strides, [extents[k] for k in order]) else None


def _peeled(
    found: ScopeContraction, position: int, groups: dict[str, tuple[int, ...]], line: str
) -> tuple[_View | None, int | None]:
    """Move one iterator of the line to the batch; the other operand has stride 0 there."""
    if len(groups[line]) < 2:
        return None, None
    for k in groups[line]:
        left = tuple(j for j in groups[line] if j != k)
        view = _operand_view(found, position, {**groups, line: left, "batch": (k,)}, line)
        if view is not None:
            return _View({**view.orders, "batch": ()}, view.strides), k
    return None, None

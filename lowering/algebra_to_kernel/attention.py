"""Match attention: two matrix products, with any ops on single rows of scores between them.

    s[b, q, k] = sum over d of Q[b, q, d] * K[b, k, d]
    ...                          scale, mask, softmax: over [b, q, k] and, reduced over k, [b, q]
    y[b, q, e] = sum over k of p[b, q, k] * V[b, k, e]
    ...                          over [b, q, e]; last of all perhaps a transpose or reshape

The ops between must read scores, and values derived from them, at their own b, q and k. The
generated kernel computes a block of rows at a time, as the ops are written.

All scopes use one numbering of iterators: the loops over b and q (several, in any order),
then k, d and e. Loops of extent 1 are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.index import Index, flatten, iterators, normalise
from ...dialects.scalars import Call, Read, factors
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_count, element_of, shape_of, tensor_type
from .match import Strides, row_major
from .shared_loops import Names


@dataclass(frozen=True)
class Matrix:
    """An operand of a product: its source, and the element read, in common iterators."""

    source: SSAValue
    flat: Index


@dataclass(frozen=True)
class MappedScope:
    """A scope with its iterators mapped to common iterators."""

    scope: ScopeOp
    images: tuple[Index, ...]

    @property
    def here(self) -> tuple[Index, ...]:
        """The index of its result, dim by dim."""
        return self.images[: len(self.scope.traversal)]

    def reduces(self, iterator: int) -> bool:
        """Whether it reduces over a common iterator."""
        return any(iterator in e.iterators for e in self.images[len(self.scope.traversal) :])

    def moves(self, iterator: int) -> bool:
        """Whether its value depends on a common iterator."""
        return any(iterator in e.iterators for e in self.here)


@dataclass(frozen=True)
class Attention:
    """Both products, the ops between and after them, and the position of the result.

    `rows` are the values that the second product reads: the first one's `scores`, or derived from
    them. `extents` are those of the loops over b and q, then of k, d and e. `query` is the loop
    whose steps are the rows of a block: neither K nor V depends on it.
    """

    extents: tuple[int, ...]
    query: int
    left: Matrix  # Q
    right: Matrix  # K
    values: Matrix  # V
    scores: ScopeOp  # the first product
    rows: SSAValue
    between: tuple[MappedScope, ...]  # ops between the products
    context: ScopeOp  # the second product
    behind: tuple[MappedScope, ...]  # ops after it
    out: Index  # offset of a result element

    @property
    def loops(self) -> int:
        """The number of loops over b and q; the iterators after these are k, d and e."""
        return len(self.extents) - 3


@dataclass(frozen=True)
class Softmax:
    """A softmax right before the second product: one maximum and one sum for each query.

    `attention` omits the division by the sum, which divides the result instead.
    """

    attention: Attention
    scores: SSAValue  # what it is the softmax of
    top: SSAValue  # the maximum
    total: SSAValue  # the sum


def match_softmax(found: Attention) -> Softmax | None:
    """Match exp(x - max x) / sum of these, x a score or a value derived from one; None otherwise.

    Such rows can be computed a block of keys at a time: a later, greater maximum only rescales the
    earlier sums. Source: Milakov and Gimelshein 2018, Online normalizer calculation.
    """
    placed = list(found.between)
    if len(placed) < 4:
        return None
    last, total, powers = placed.pop(), placed.pop(), placed.pop()
    body = powers.scope.expr()
    match body:
        case Call("exp", (Read(x),)) if x is placed[-1].scope.result and len(placed) > 1:
            body = Call("exp", (placed.pop().scope.expr(),))  # the difference is its own scope
        case _:
            pass
    top = placed.pop()
    match top.scope.expr(), body, total.scope.expr(), last.scope.expr():
        case (
            Read(x),
            Call("exp", (Call("sub", (Read(same), Read(shift))),)),
            Read(summed),
            Call("div", (Read(above), Read(below))),
        ):
            pairs = [(shift, top), (summed, powers), (above, powers), (below, total)]
        case _:
            return None
    key = found.loops
    kinds = [(p.scope.reduction.data, p.reduces(key)) for p in (top, total)]
    if x is not same or any(v is not p.scope.result for v, p in pairs):
        return None
    if kinds != [("max", True), ("sum", True)] or not all(p.moves(key) for p in placed):
        return None
    if any(element_of(p.scope.result) != f32 for p in (top, powers, total, last)):
        return None
    rest = replace(found, rows=powers.scope.result, between=found.between[:-1])
    return Softmax(rest, x, top.scope.result, total.scope.result)


def match_attention(
    scopes: Sequence[ScopeOp],
    strides: Strides = row_major,
    names: Names = MappingProxyType({}),
) -> Attention | None:
    """Match a kernel's scopes, or those of several kernels to be merged; None otherwise.

    Args:
        scopes: in order; the last one is the result.
        strides: of values in memory.
        names: other values under which a scope's result is read.
    """
    if len(scopes) < 2:
        return None
    first = scopes[0]
    lengths = [n for n in first.traversal if n != 1]
    depth = [n for n in first.summation if n != 1]
    if len(lengths) < 2 or len(depth) != 1 or not _is_product(first):
        return None
    match = _Matcher(lengths[:-1], lengths[-1], depth[0], strides, names)
    return match.run(scopes)


def _is_product(scope: ScopeOp) -> bool:
    """Whether a scope sums products of two float32 reads, both inside their tensors."""
    reads = factors(scope.expr())
    return (
        reads is not None
        and len(reads) == 2
        and scope.reduction.data == "sum"
        and bool(scope.summation)
        and element_of(scope.result) == f32
        and all(element_of(r.source) == f32 and in_bounds(r, scope.extents) for r in reads)
        and not any(isinstance(r.source.owner, OnesOp) for r in reads)
    )


class _Matcher:
    """The common numbering, and the index of each scope's result in it."""

    def __init__(
        self, loops: Sequence[int], keys: int, depth: int, strides: Strides, names: Names
    ) -> None:
        self.loops = tuple(loops)
        self.key, self.depth, self.width = (len(loops) + k for k in range(3))
        self.extents = [*loops, keys, depth, 1]
        self.strides, self.names = strides, names
        self.made: dict[SSAValue, tuple[Index, ...]] = {}

    def run(self, scopes: Sequence[ScopeOp]) -> Attention | None:
        scores, *rest = scopes
        images = self._row_images(scores, self.depth)
        pair = None if images is None else self._scores(scores, images)
        if images is None or pair is None:
            return None
        between: list[MappedScope] = []
        last = self._note(MappedScope(scores, images))
        while rest and (placed := self._between(rest[0])) is not None:
            between.append(placed)
            last = self._note(placed)
            rest = rest[1:]
        product = self._context(rest[0], last) if rest else None
        if product is None:
            return None
        context, values = product
        self._note(context)
        behind, out = self._behind(context, rest[1:])
        query = None if out is None else self._query(*pair, values)
        if out is None or query is None:
            return None
        middle, tail = tuple(between), tuple(behind)
        extents = tuple(self.extents)
        left, right = pair
        return Attention(
            extents,
            query,
            left,
            right,
            values,
            scores,
            last.scope.result,
            middle,
            context.scope,
            tail,
            out,
        )

    def _note(self, placed: MappedScope) -> MappedScope:
        self.made[placed.scope.result] = placed.here
        return placed

    def _source(self, read: Read) -> SSAValue:
        return self.names.get(read.source, read.source)

    def _row_images(self, scope: ScopeOp, summed: int) -> tuple[Index, ...] | None:
        """Map the iterators of a scope whose loops are those over b, q and perhaps k."""
        images: list[Index] = []
        wanted = [*enumerate(self.extents[: self.key + 1])]
        for n in scope.traversal:
            if n != 1 and (not wanted or wanted[0][1] != n):
                return None
            images.append(Index(0) if n == 1 else Index.iterator(wanted.pop(0)[0]))
        sums = [n for n in scope.summation if n != 1]
        if len(wanted) > 1 or (sums and (len(sums) > 1 or sums[0] != self.extents[summed])):
            return None
        if sums and summed == self.key and not wanted:
            return None  # a reduction along one row for each element of another
        images += [Index(0) if n == 1 else Index.iterator(summed) for n in scope.summation]
        return tuple(images)

    def _scores(self, scope: ScopeOp, images: tuple[Index, ...]) -> tuple[Matrix, Matrix] | None:
        """Q and K: K is the operand that depends on k."""
        pair = [self._matrix(read, images) for read in factors(scope.expr()) or ()]
        moves = [m.flat.coefficient(self.key) != 0 for m in pair]
        if any(m.flat.has_floor or not m.flat.coefficient(self.depth) for m in pair):
            return None
        if sorted(moves) != [False, True]:
            return None
        return (pair[1], pair[0]) if moves[0] else (pair[0], pair[1])

    def _matrix(self, read: Read, images: tuple[Index, ...]) -> Matrix:
        steps, offset = self.strides(read.source)
        flat = flatten([e.substitute(images) for e in read.index], steps) + offset
        return Matrix(read.source, normalise(flat, self.extents))

    def _between(self, scope: ScopeOp) -> MappedScope | None:
        images = self._row_images(scope, self.key)
        return self._reads_here(scope, images) if images is not None else None

    def _reads_here(self, scope: ScopeOp, images: tuple[Index, ...]) -> MappedScope | None:
        """The scope in common iterators, if it reads other results at their own index."""
        for read in scope.reads():
            here = self.made.get(self._source(read))
            index = tuple(normalise(e.substitute(images), self.extents) for e in read.index)
            if here is not None and index != here:
                return None
        return MappedScope(scope, images)

    def _context(self, scope: ScopeOp, rows: MappedScope) -> tuple[MappedScope, Matrix] | None:
        """The second product and V, with loops numbered by how it reads the rows."""
        reads = factors(scope.expr()) if _is_product(scope) else None
        if reads is None:
            return None
        ours = [r for r in reads if self._source(r) is rows.scope.result]
        others = [r for r in reads if self._source(r) not in self.made]
        if len(ours) != 1 or len(others) != 1:
            return None
        images = self._column_images(scope, ours[0], rows.here)
        if images is None:
            return None
        values = self._matrix(others[0], images)
        flat = values.flat
        if flat.has_floor or not flat.coefficient(self.key) or flat.coefficient(self.width) != 1:
            return None
        return MappedScope(scope, images), values

    def _column_images(
        self, scope: ScopeOp, rows: Read, here: tuple[Index, ...]
    ) -> tuple[Index, ...] | None:
        known: dict[int, int] = {}
        for index, wanted in zip(rows.index, here, strict=True):
            if wanted == Index(0):
                continue
            ((number, _),) = wanted.terms
            position = next((k for k in index.iterators if index == Index.iterator(k)), None)
            if position is None or scope.extents[position] != self.extents[number]:  # pyright: ignore
                return None
            known[position] = number  # pyright: ignore[reportArgumentType]
        rank = len(scope.traversal)
        free = [k for k, n in enumerate(scope.extents) if n != 1 and k not in known]
        summed = [k for k in known if k >= rank]
        if len(known) != self.key + 1 or [known[k] for k in summed] != [self.key]:
            return None
        if len(free) != 1 or free[0] >= rank:
            return None
        known[free[0]] = self.width
        self.extents[self.width] = scope.extents[free[0]]
        return tuple(
            Index.iterator(known[k]) if k in known else Index(0) for k in range(len(scope.extents))
        )

    def _behind(
        self, context: MappedScope, rest: Sequence[ScopeOp]
    ) -> tuple[list[MappedScope], Index | None]:
        """The pointwise ops after the products, and the position of the result in its buffer."""
        behind: list[MappedScope] = []
        made = context.scope
        for scope in rest:
            rank, last = len(context.scope.traversal), scope is rest[-1]
            pointwise = scope.is_pointwise and scope.traversal == context.scope.traversal
            placed = self._reads_here(scope, context.images[:rank]) if pointwise else None
            if placed is None:
                moved = self._moved(scope, made, context) if last else None
                return behind, moved
            behind.append(self._note(placed))
            made = scope
        if element_of(made.result) != f32:
            return behind, None
        steps, offset = self.strides(made.result)
        return behind, self._stored(flatten(context.here, steps) + offset)

    def _moved(self, copy: ScopeOp, made: ScopeOp, context: MappedScope) -> Index | None:
        """The position of each element after a last scope that only moves elements."""
        read = copy.expr()
        if not isinstance(read, Read) or self._source(read) is not made.result:
            return None
        steps, offset = self.strides(copy.result)
        moved = scattered(copy, read, steps)
        return None if moved is None else self._stored(flatten(context.here, moved) + offset)

    def _stored(self, out: Index) -> Index | None:
        """The position of a result, whose columns must be adjacent."""
        return out if out.coefficient(self.width) == 1 else None

    def _query(self, left: Matrix, right: Matrix, values: Matrix) -> int | None:
        """The innermost loop that only Q depends on."""
        for k in reversed(range(self.key)):
            still = not any(m.flat.coefficient(k) for m in (right, values))
            if still and left.flat.coefficient(k):
                return k
        return None


def scattered(copy: ScopeOp, read: Read, steps: Sequence[int]) -> tuple[int, ...] | None:
    """Strides that store a copy's source directly at the copy's positions; None if there are none.

    `copy[t] = x[e1(t), ..., er(t)]` reads every element of x once. x[i1, ..., ir] belongs at
    i1 * s1 + ... + ir * sr, where e1(t) * s1 + ... + er(t) * sr = t * steps for every t. Such a sum
    differs for all t, so reading as many elements as x has means reading each of them.
    """
    shape, extents = shape_of(read.source), copy.traversal
    same = element_count(tensor_type(read.source)) == element_count(tensor_type(copy.result))
    if not copy.is_pointwise or not same or not in_bounds(read, extents):
        return None
    target = normalise(flatten(iterators(len(extents)), steps), extents)
    index = [normalise(e, extents) for e in read.index]
    atoms = dict.fromkeys(atom for e in (*index, target) for atom, _ in e.terms)
    wanted = {atom: target.coefficient(atom) for atom in atoms}
    found: dict[int, int] = {d: 0 for d, n in enumerate(shape) if n == 1}
    progress = True
    while progress:
        progress = False
        for atom, total in wanted.items():
            parts = {d: e.coefficient(atom) for d, e in enumerate(index)}
            free = [d for d, c in parts.items() if c and d not in found]
            rest = total - sum(c * found[d] for d, c in parts.items() if d in found)
            if len(free) == 1 and rest % parts[free[0]] == 0:
                found[free[0]] = rest // parts[free[0]]
                progress = True
    strides = tuple(found.get(d, 0) for d in range(len(shape)))
    right = normalise(flatten(index, strides), extents) == target
    return (
        strides
        if right and all(s > 0 for s, n in zip(strides, shape, strict=True) if n > 1)
        else None
    )

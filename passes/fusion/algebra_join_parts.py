"""algebra-join-parts: what all parts of a product go through is computed of the whole product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import Index, iterators
from ...dialects.program import main_of
from ...dialects.scalars import Call, Cast, Expr, Read, map_reads, reads_of
from ...dialects.types import element_of, tensor, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from ..copies.algebra_inline_copies import AlgebraInlineCopies, copied


@dataclass(frozen=True)
class AlgebraJoinParts(ModulePass):
    """Compute elementwise scopes of the parts of a product as one scope of the whole product.

    It becomes the product's epilogue; its own parts are views. The parts must make up the product,
    side by side along one dim, and go through the same functions. Where these read weights, each
    part may read its own: side by side they are one weight.

    What the whole product goes through first, its bias say, does not hinder that.

    Before:

        %p = algebra.scope (m: 74, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<74x6xf32>
        %q = algebra.scope (m: 74, n: 4) %p[m, n] + %b[n] : tensor<74x4xf32>
        %r = algebra.scope (m: 74, n: 2) %p[m, n + 4] + %c[n] : tensor<74x2xf32>

    After:

        %p = algebra.scope (m: 74, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<74x6xf32>
        %0 = algebra.scope (n: 6) select(%ones[n], %b[n], %c[n - 4]) : tensor<6xf32>
        %1 = algebra.scope (m: 74, n: 6) %p[m, n] + %0[n] : tensor<74x6xf32>
        %q = algebra.scope (m: 74, n: 4) %1[m, n] : tensor<74x4xf32>
        %r = algebra.scope (m: 74, n: 2) %1[m, n + 4] : tensor<74x2xf32>
    """

    name = "algebra-join-parts"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Join, then again what the joined parts go through next."""
        constants, block = constant_values(op), main_of(op).body.block
        wholes = [_with_epilogue(s) for s in block.ops if isinstance(s, ScopeOp) and s.is_sum]
        while wholes:
            # One after the other: what adds parts of two products is joined with the first.
            joined = [_joined(whole, constants) for whole in wholes]
            wholes = [_with_epilogue(whole) for whole in joined if whole is not None]
            if wholes:
                AlgebraInlineCopies().apply(ctx, op)


def _with_epilogue(whole: ScopeOp) -> ScopeOp:
    """The last of the elementwise scopes that a whole goes through undivided, or itself."""
    while len(uses := list(whole.result.uses)) == 1:
        reader = uses[0].operation
        if not isinstance(reader, ScopeOp) or not reader.is_pointwise or copied(reader):
            break
        if reader.traversal != whole.traversal:
            break
        moves = {_moves(read, reader) for read in reader.reads_of(whole.result)}
        if moves != {(Index(0),) * len(whole.traversal)}:
            break
        whole = reader
    return whole


@dataclass(frozen=True)
class _Parts:
    """Scopes that each read a part of a product: along `dim`, from `starts` on."""

    dim: int
    starts: tuple[int, ...]
    scopes: tuple[ScopeOp, ...]

    def places(self, part: int) -> list[Index]:
        """A part's iterators, in those of the whole."""
        found = iterators(len(self.scopes[0].traversal))
        found[self.dim] -= self.starts[part]
        return found

    def __len__(self) -> int:
        return len(self.scopes)


def _moves(read: Read, reader: ScopeOp) -> tuple[Index, ...]:
    """Each index of a read less the reader's iterator; where there is one place, both are 0."""
    here = [
        Index(0) if n == 1 else k
        for n, k in zip(reader.traversal, iterators(len(reader.traversal)), strict=True)
    ]
    return tuple(e.substitute(here) - k for e, k in zip(read.index, here, strict=True))


def _parts_of(product: ScopeOp) -> _Parts | None:
    """The readers of a product as its parts; None if they are not, or if nothing is computed."""
    readers = list(dict.fromkeys(use.operation for use in product.result.uses))
    scopes = [op for op in readers if isinstance(op, ScopeOp) and op.is_pointwise]
    if len(scopes) < 2 or len(scopes) != len(readers) or any(copied(s) for s in scopes):
        return None
    shape = product.traversal
    found: dict[int, ScopeOp] = {}
    dims = set[int]()
    for scope in scopes:
        if len(scope.traversal) != len(shape):
            return None
        ways = {_moves(read, scope) for read in scope.reads_of(product.result)}
        if len(ways) != 1:
            return None
        (moves,) = ways
        dims |= {k for k, n in enumerate(scope.traversal) if n != shape[k]}
        start = sum(move.constant for move in moves)
        if len(dims) != 1 or start in found or any(m.terms for m in moves):
            return None
        if any(m.constant for k, m in enumerate(moves) if k not in dims):
            return None
        found[start] = scope
    (dim,), end = dims, 0
    for start, scope in sorted(found.items(), key=lambda item: item[0]):
        if start != end:
            return None
        end += scope.traversal[dim]
    parts = sorted(found.items(), key=lambda item: item[0])
    return _Parts(dim, *zip(*parts, strict=True)) if end == shape[dim] else None  # pyright: ignore


def _joined(product: ScopeOp, constants: set[SSAValue]) -> ScopeOp | None:
    """The scope of the whole that a product's parts were joined in; None if they were not."""
    parts = None if product.result in constants else _parts_of(product)
    return None if parts is None else _join(product, parts, constants)


def _join(product: ScopeOp, parts: _Parts, constants: set[SSAValue]) -> ScopeOp | None:
    """The scope of the whole, whose parts the scopes now are; None if there is none."""
    elements = {element_of(scope.result) for scope in parts.scopes}
    joiner = _Joiner(product, parts, constants)
    moved = [_moved(scope, parts.places(k), product) for k, scope in enumerate(parts.scopes)]
    expr = joiner.joined(moved)
    place = next(op for op in _block(product).ops if op in parts.scopes)
    late = [] if expr is None else _late([expr, *joiner.made], place, joiner.made)
    if expr is None or len(elements) != 1 or any(op.results[0] not in constants for op in late):
        for made in reversed(joiner.made):
            made.drop_all_references()
        return None
    for op in late:
        op.detach()
    first = parts.scopes[0]
    whole = ScopeOp(tensor(product.traversal, elements.pop()), expr, names=first.names)
    whole.location = first.location
    Rewriter.insert_op([*late, *joiner.made, whole], InsertPoint.before(place))
    here = iterators(len(product.traversal))
    for start, scope in zip(parts.starts, parts.scopes, strict=True):
        index = tuple(e + start if k == parts.dim else e for k, e in enumerate(here))
        part = ScopeOp(tensor_type(scope.result), Read(whole.result, index), names=scope.names)
        part.attributes |= scope.attributes
        part.location, part.result.name_hint = scope.location, scope.result.name_hint
        Rewriter.replace_op(scope, part)
    constants.update(op.results[0] for op in joiner.made)
    return whole


def _block(op: Operation) -> Block:
    block = op.parent
    assert block is not None
    return block


def _moved(scope: ScopeOp, places: Sequence[Index], product: ScopeOp) -> Expr:
    """What a part computes, over the iterators of the whole."""
    here = tuple(iterators(len(places)))

    def moved(read: Read) -> Read:
        if read.source is product.result:
            return replace(read, index=here)
        return replace(read, index=tuple(e.substitute(places) for e in read.index))

    return map_reads(scope.expr(), moved)


def _late(
    users: Sequence[Expr | Operation], place: Operation, made: Sequence[Operation]
) -> list[Operation]:
    """The ops that these need and that do not come before a place, in the order of the block."""
    found: dict[Operation, None] = {}
    stack: list[SSAValue] = []
    for user in users:
        stack += (
            user.operands if isinstance(user, Operation) else [r.source for r in reads_of(user)]
        )
    while stack:
        op = stack.pop().owner
        if isinstance(op, Operation) and op not in made and not op.is_before_in_block(place):
            found[op] = None
            stack += op.operands
    return sorted(found, key=_block(place).get_operation_index)


@dataclass
class _Joiner:
    """Makes one expression of the parts'; `made` are the weights that it needs, in order."""

    product: ScopeOp
    parts: _Parts
    constants: set[SSAValue]
    made: list[Operation] = field(default_factory=list[Operation])

    def joined(self, exprs: Sequence[Expr]) -> Expr | None:
        """The expression of all parts; None where they compute different things."""
        first = exprs[0]
        if all(expr == first for expr in exprs):
            return first
        match first:
            case Call(function, args):
                same = [e for e in exprs if isinstance(e, Call) and e.function == function]
                if len(same) != len(exprs):
                    return None
                found = [self.joined([e.args[k] for e in same]) for k in range(len(args))]
                kept = [e for e in found if e is not None]
                return Call(function, tuple(kept)) if len(kept) == len(found) else None
            case Cast(element, _):
                args_ = [e.arg for e in exprs if isinstance(e, Cast) and e.element == element]
                inner = self.joined(args_) if len(args_) == len(exprs) else None
                return None if inner is None else Cast(element, inner)
            case Read():
                reads = [e for e in exprs if isinstance(e, Read) and e.source in self.constants]
                kinds = {element_of(read.source) for read in reads}
                whole = len(reads) == len(exprs) and len(kinds) == 1
                return self._side_by_side(reads) if whole else None
            case _:
                return None

    def _side_by_side(self, reads: Sequence[Read]) -> Read:
        """The parts' weights as one."""
        dim, shape = self.parts.dim, self.product.traversal
        used = {k for read in reads for e in read.index for k in e.iterators}
        own = sorted(used | {dim})
        images = [Index.iterator(own.index(k)) if k in own else Index(0) for k in range(len(shape))]
        expr: Expr | None = None
        for part, read in reversed(list(enumerate(reads))):
            piece = replace(read, index=tuple(e.substitute(images) for e in read.index))
            if expr is None:
                expr = piece
                continue
            ones = OnesOp(tensor([self.parts.scopes[part].traversal[dim]], i1))
            self.made.append(ones)
            inside = Read(ones.result, (images[dim] - self.parts.starts[part],))
            expr = Call("select", (inside, piece, expr))
        assert expr is not None
        type_ = tensor([shape[k] for k in own], element_of(reads[0].source))
        scope = ScopeOp(type_, expr)
        self.made.append(scope)
        return Read(scope.result, tuple(Index.iterator(k) for k in own))

"""Kernels with a block, or a thread, for each point of the loops that all scopes share."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from ...dialects.errors import UserError
from ...dialects.index import Index
from ...dialects.program import where
from ..kernel_to_cpu.nests.nest import ScopePlan
from .nest import Nest, point_number, thread_number, threads_of
from .print_index import decode
from .print_reads import StagedRow, finished, intermediate_type, scope_value, start_total, take
from .print_scalars import Text
from .reductions import WARP

MOST_THREADS = 256
# Static shared memory of a block on every architecture.
SHARED_BYTES = 48 << 10


def print_rows(nest: Nest, by_block: bool) -> tuple[int, int]:
    """Print the kernel's body; (blocks, threads of each).

    Raises:
        UserError: a row that a block keeps does not fit in shared memory.
    """
    writer, over, extents = nest.writer, nest.over, nest.plan.extents
    shared = nest.ordered([k for k in range(nest.plan.shared) if extents[k] != 1])
    count = math.prod(extents[k] for k in shared)
    if by_block:
        threads = threads_of(nest.op, _threads(nest))
        numbered = [(over.names[k], extents[k]) for k in shared]
        block = "blockIdx.x" if writer.kind == "int" else f"({writer.kind})blockIdx.x"
        for text in decode(block, numbered, writer.kind):
            writer.line(text)
        _Rows(nest, threads).run()
        return count, threads
    threads = threads_of(nest.op, MOST_THREADS)
    if shared:
        point_number(writer, over, shared, threads)
    else:
        thread_number(writer, writer.names.fresh("point"), threads, 1)
    _Rows(nest, 1).run()
    return -(-count // threads), threads


def _threads(nest: Nest) -> int:
    """Threads for the longest loop within a row: a power of two, from a warp up."""
    parts = [part for s in nest.plan.scopes for part in (s.own, s.sums if not s.own else ())]
    longest = max(math.prod(nest.plan.extents[k] for k in part) for part in parts)
    return min(MOST_THREADS, max(WARP, 1 << (longest - 1).bit_length()))


@dataclass
class _Rows:
    """The scopes one after the other, `threads` threads sharing each one's loops."""

    nest: Nest
    threads: int
    scratch: dict[str, str] = field(default_factory=dict[str, str])

    def run(self) -> None:
        """Print all scopes."""
        self._reserve()
        for scope in self.nest.plan.scopes:
            if scope.op.result in self.nest.env.inlined:
                continue
            if scope.own:
                self._row(scope)
            else:
                self._scalar(scope)

    def _reserve(self) -> None:
        """Declare rows and scratch; rows that do not fit are recomputed where they are read."""
        room = SHARED_BYTES
        for scope in self.nest.plan.scopes:
            ctype, width = intermediate_type(scope.op.result)
            if scope.own or not scope.sums or self.threads == 1 or ctype in self.scratch:
                continue
            name = self.nest.writer.names.fresh("scratch")
            self.nest.writer.shared(ctype, width, name, [self.threads // WARP])
            self.scratch[ctype] = name
            room -= WARP * width
        for scope in self.nest.plan.scopes[:-1]:
            if scope.own:
                room -= self._reserve_row(scope, room)

    def _reserve_row(self, scope: ScopePlan, room: int) -> int:
        """Declare one row; return the bytes of shared memory it takes."""
        nest, writer = self.nest, self.nest.writer
        count = math.prod(nest.plan.extents[k] for k in scope.own)
        ctype, width = intermediate_type(scope.op.result)
        size = -(-count * width // 16) * 16
        if self.threads > 1 and size > room:
            if scope.sums:
                raise UserError(
                    "a row of intermediate values does not fit shared memory",
                    where=where(nest.op),
                    found=f"{size} bytes",
                )
            nest.env.inlined[scope.op.result] = scope
            return 0
        name = writer.names.fresh("row")
        nest.env.rows[scope.op.result] = StagedRow(name, scope)
        if self.threads == 1:
            writer.line(f"{ctype} {name}[{count}];")
            return 0
        writer.shared(ctype, width, name, [count])
        return size

    def _row(self, scope: ScopePlan) -> None:
        """All elements of a row, distributed over the threads."""
        nest, writer = self.nest, self.nest.writer
        last = scope is nest.plan.root
        with self._spread(nest.ordered(scope.own) if last else scope.own):
            value = scope_value(writer, nest.env, scope)
            if last:
                nest.store(value)
            else:
                offset = nest.over.text(_offset(scope.own, nest.plan.extents))
                writer.line(f"{nest.env.rows[scope.op.result].name}[{offset}] = {value.text};")
        if self.threads > 1 and not last:
            writer.line("__syncthreads();")

    def _scalar(self, scope: ScopePlan) -> None:
        """One value for the whole row, known to every thread."""
        nest, writer = self.nest, self.nest.writer
        if scope.sums and self.threads > 1:
            value = self._reduced(scope)
        else:
            value = scope_value(writer, nest.env, scope)
            if (
                len(value.text) > 1
                and not value.text.isidentifier()
                and scope is not nest.plan.root
            ):
                name = writer.names.fresh("value")
                writer.line(f"const {intermediate_type(scope.op.result)[0]} {name} = {value.text};")
                value = Text(name)
        nest.env.values[scope.op.result] = value
        if scope is not nest.plan.root:
            return
        alone = writer.block("if (threadIdx.x == 0)") if self.threads > 1 else nullcontext()
        with alone:
            nest.store(value)

    def _reduced(self, scope: ScopePlan) -> Text:
        """Each thread reduces a share, then the block reduces these."""
        nest, writer = self.nest, self.nest.writer
        total = start_total(writer, scope)
        with self._spread(scope.sums):
            take(writer, nest.env, scope, total)
        reducer = f"block_{scope.reduction}"
        writer.helpers.add(reducer)
        scratch = self.scratch[intermediate_type(scope.op.result)[0]]
        writer.line(f"{total} = {reducer}<{self.threads}>({total}, {scratch});")
        return finished(writer, scope, Text(total))

    @contextmanager
    def _spread(self, iterators: Sequence[int]) -> Generator[None]:
        """Loops over iterators, the last one fastest, with rounds distributed over the threads."""
        nest, writer = self.nest, self.nest.writer
        names, extents = nest.over.names, nest.plan.extents
        if self.threads == 1:
            with self._nested(iterators):
                yield
            return
        count = math.prod(extents[k] for k in iterators)
        alone = len(iterators) == 1
        flat = names[iterators[0]] if alone else writer.names.fresh("element")
        steps = f"{flat} = threadIdx.x; {flat} < {count}; {flat} += {self.threads}"
        with writer.block(f"for ({writer.kind} {steps})"):
            if not alone:
                numbered = [(names[k], extents[k]) for k in iterators]
                for text in decode(flat, numbered, writer.kind):
                    writer.line(text)
            yield

    @contextmanager
    def _nested(self, iterators: Sequence[int]) -> Generator[None]:
        if not iterators:
            yield
            return
        first = iterators[0]
        with (
            self.nest.writer.loop(self.nest.over.names[first], self.nest.plan.extents[first]),
            self._nested(iterators[1:]),
        ):
            yield


def _offset(own: Sequence[int], extents: Sequence[int]) -> Index:
    """Place of an element in its row."""
    offset, stride = Index(0), 1
    for k in reversed(own):
        offset += Index.iterator(k) * stride
        stride *= extents[k]
    return offset

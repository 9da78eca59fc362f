"""Print a contraction as a tiled kernel: `kernel.gemm`, `kernel.conv`, and equivalent loops.

A block computes a tile of results. It walks the depth in steps. All threads together fetch each
step's tiles of both operands (four neighbours at once where memory allows) into registers while the
step before is multiplied, and then store them in the other of two stages of shared memory: one
barrier per step. The ops after the contraction are computed on each finished sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ...dialects.index import Index, row_major_strides
from ...dialects.kernel import ConvOp, KernelOp
from ...dialects.types import element_of
from ..kernel_to_cpu.nests.nest import ScopePlan, plan_nest
from .element_types import compute_type, memory_type, stored
from .match_contraction import MatrixProduct, ProductOperand, match_contraction
from .nest import parameter
from .print_fetch import SharedTile, TileFetch
from .print_index import INT_LIMIT, Iterators, decode
from .print_inner_product import ProductPrinter, linear
from .print_reads import Environment, operand_types, scope_value
from .print_scalars import Body, Text, rounded
from .program_data import CudaKernel, CudaParameter
from .schedule import Level4, tile_text, tiling_of
from .writer import CudaWriter, Names, described, finish, origin, unrolled_loop


@dataclass(frozen=True)
class Packed:
    """A constant operand in the order in which it is read: one dim for each iterator."""

    index: tuple[Index, ...]
    iterators: tuple[int, ...]
    extents: tuple[int, ...]


@dataclass(frozen=True)
class TileOperand:
    """The object of a kernel's parameter: a value's buffer, or a packed copy of a constant."""

    value: SSAValue
    packed: Packed | None = None


def print_contraction(
    op: KernelOp, found: MatrixProduct, constants: set[SSAValue], name: str
) -> tuple[CudaKernel, list[TileOperand]]:
    """The kernel, and the objects of its parameters (without the result).

    Raises:
        UserError: the op's schedule is malformed or asks for more than a block has.
    """
    printer = _Tiled(op, found, constants)
    return printer.kernel(name), printer.operands


@dataclass(frozen=True)
class _Line:
    """Results along rows or columns: iterators, their number, the number per block, tile sizes."""

    group: tuple[int, ...]
    count: int
    tile: int
    sizes: Level4


@dataclass
class _Tiled:
    op: KernelOp
    found: MatrixProduct
    constants: set[SSAValue]
    operands: list[TileOperand] = field(default_factory=list[TileOperand])

    def __post_init__(self) -> None:
        found, op = self.found, self.op
        self.element = element_of(op.scopes[0].result)
        self.ctype = compute_type(self.element)
        self.width = 8 if self.ctype == "double" else 4
        self.rows, self.columns = found.size(found.rows), found.size(found.columns)
        self.depth, self.batch = found.size(found.depth), found.size(found.batch)
        sizes = (self.rows, self.columns, self.depth, self.batch)
        self.tiling = tiling_of(op, *sizes, self.width)
        self.parameters = self._parameters()
        names = Names([p.name for p in self.parameters])
        over = Iterators(tuple(names.fresh(n) for n in found.names), found.extents)
        self.writer = CudaWriter(names, self._index_type(over))
        self.over = over

    # --- parameters ---

    def _parameters(self) -> tuple[CudaParameter, ...]:
        """Both operands, then the epilogue's reads, then the result."""
        op, found = self.op, self.found
        first, second = ("data", "weights") if isinstance(op, ConvOp) else ("a", "b")
        sides = [
            self._tile_operand(first, found.a, found.rows),
            self._tile_operand(second, found.b, found.columns),
        ]
        self.a, self.b = (side for _, side in sides)
        arguments = list(op.body.block.args)
        later = {v for scope in op.scopes[1:] for v in scope.inputs}
        self.extras = [arg for arg in arguments if arg in later]
        extra_names = ["z"] if len(self.extras) == 1 else [f"z{k}" for k in range(len(self.extras))]
        self.operands += [TileOperand(self._outer(arg)) for arg in self.extras]
        extras = [
            parameter(name, self._outer(arg), written=False)
            for name, arg in zip(extra_names, self.extras, strict=True)
        ]
        return (*(p for p, _ in sides), *extras, parameter("y", op.result, written=True))

    def _outer(self, argument: SSAValue) -> SSAValue:
        return self.op.inputs[list(self.op.body.block.args).index(argument)]  # pyright: ignore

    def _tile_operand(
        self, name: str, side: ProductOperand, group: tuple[int, ...]
    ) -> tuple[CudaParameter, ProductOperand]:
        """A parameter for one operand; a constant is packed in the order of its fetches."""
        value = self._outer(side.source)
        if value not in self.constants or side.guards:
            self.operands.append(TileOperand(value))
            return parameter(name, value, written=False), side
        used = frozenset[int]().union(*(e.iterators for e in side.index))
        order = [*self.found.batch, *self.found.depth, *group]
        kept = tuple(k for k in order if k in used)
        extents = tuple(self.found.extents[k] for k in kept)
        offset = Index(0)
        for k, stride in zip(kept, row_major_strides(extents), strict=True):
            offset += Index.iterator(k) * stride
        self.operands.append(TileOperand(value, Packed(side.index, kept, extents)))
        packed = CudaParameter(name, memory_type(element_of(value)), math.prod(extents), False)
        return packed, replace(side, offset=offset)

    def _index_type(self, over: Iterators) -> str:
        offsets = [self.a.offset, self.b.offset, self.found.out, *self.a.index, *self.b.index]
        fits = all(over.fits_int(offset) for offset in offsets)
        counts = (self.rows, self.columns, self.depth, self._blocks())
        most = max(*counts, *(p.elements for p in self.parameters))
        return "int" if fits and most < INT_LIMIT - 4096 else "long long"

    def _blocks(self) -> int:
        rows, columns = self._tiles()
        return rows * columns * self.batch

    def _tiles(self) -> tuple[int, int]:
        """Tiles over rows and over columns."""
        t = self.tiling
        return -(-self.rows // t.block_rows), -(-self.columns // t.block_columns)

    # --- text ---

    def kernel(self, name: str) -> CudaKernel:
        self._declare()
        self._product()
        self._results()
        names = {self.found.b.source: self.parameters[1].name}
        names[self.found.a.source] = self.parameters[0].name
        extras = zip(self.extras, self.parameters[2:-1], strict=True)
        names = {arg: p.name for arg, p in extras} | names
        shown = [names.get(arg, "unused") for arg in self.op.body.block.args]
        comment = [
            f"// {origin(self.op)}",
            *described(self.op, shown, "y"),
            *self._remarks(),
        ]
        threads = self.tiling.threads
        return finish(self.writer, name, comment, self.parameters, self._blocks(), threads)

    def _remarks(self) -> list[str]:
        """Facts that the text does not show: the levels of tiles, the order of packed data."""
        t, names = self.tiling, self.over.names
        lines = [
            f"// rows {', '.join(names[k] for k in self.found.rows)}: {tile_text(t.rows)} (virtual "
            "threads x threads x inner x innermost)",
            f"// columns {', '.join(names[k] for k in self.found.columns)}: {tile_text(t.columns)}",
            f"// depth {', '.join(names[k] for k in self.found.depth)}: {tile_text(t.depth)} a "
            "step",
        ]
        for p, operand in zip(self.parameters, self.operands, strict=False):
            if operand.packed is not None:
                order = ", ".join(names[k] for k in operand.packed.iterators)
                lines.append(f"// {p.name} is packed as [{order}]")
        return lines

    def _declare(self) -> None:
        writer, t = self.writer, self.tiling
        fresh = writer.names.fresh
        self.thread, self.first_row, self.first_column = (
            fresh(n) for n in ("thread", "first_row", "first_column")
        )
        self.thread_row, self.thread_column = fresh("thread_row"), fresh("thread_column")
        tiles = [
            SharedTile(fresh("a_tile"), t.step, t.block_rows),
            SharedTile(fresh("b_tile"), t.step, t.block_columns),
        ]
        for tile in tiles:
            writer.shared(self.ctype, self.width, tile.name, tile.dims)
        writer.line(f"const int {self.thread} = threadIdx.x;")
        writer.line(f"const int {self.thread_row} = {self.thread} / {t.columns[1]};")
        writer.line(f"const int {self.thread_column} = {self.thread} % {t.columns[1]};")
        block = "blockIdx.x" if writer.kind == "int" else f"({writer.kind})blockIdx.x"
        rows, columns = self._tiles()
        levels = [
            (self.first_row, rows, t.block_rows),
            (self.first_column, columns, t.block_columns),
        ]
        stride = rows * columns
        for name, count, size in levels:
            stride //= count
            text = block if stride == 1 else f"{block} / {stride}"
            text = text if count * stride == self._blocks() else f"{text} % {count}"
            text = "0" if count == 1 else f"{text} * {size}"
            writer.line(f"const {writer.kind} {name} = {text};")
        flat = block if rows * columns == 1 else f"{block} / {rows * columns}"
        batch = [(self.over.names[k], self.over.extents[k]) for k in self.found.batch]
        for line in decode(flat, batch, writer.kind):
            writer.line(line)
        groups = (
            (self.a, self.found.rows, self.first_row),
            (self.b, self.found.columns, self.first_column),
        )
        self.fetches = [
            TileFetch(
                writer,
                self.over,
                t,
                tile,
                side,
                group,
                self.found.depth,
                p.name,
                first,
                self.thread,
                self.element,
            )
            for tile, (side, group, first), p in zip(tiles, groups, self.parameters, strict=False)
        ]

    def _product(self) -> None:
        """The loop over the depth, two stages deep."""
        writer, t, fresh = self.writer, self.tiling, self.writer.names.fresh
        kind = writer.kind
        fetch, keep, start, stage = (fresh(n) for n in ("fetch", "keep", "start", "stage"))
        for part in self.fetches:
            part.declare()
        writer.line("// Fetch this thread's share of the tiles that begin at a depth ...")
        with writer.block(f"const auto {fetch} = [&]({kind} {start})", end="};"):
            for part in self.fetches:
                part.fetch(start)
        writer.line("// ... and keep it in a stage of shared memory.")
        with writer.block(f"const auto {keep} = [&](int {stage})", end="};"):
            for part in self.fetches:
                part.keep(stage)
        high, wide = (a[0] * a[2] * a[3] for a in (t.rows, t.columns))
        self.sums = fresh("sum")
        writer.line(f"{self.ctype} {self.sums}[{high}][{wide}] = {{}};")
        writer.line(f"{fetch}(0);")
        writer.line(f"{keep}(0);")
        writer.line("__syncthreads();")
        a, b = (part.tile for part in self.fetches)
        coordinates = (self.thread_row, self.thread_column)
        product = ProductPrinter(writer, t, self.ctype, a, b, *coordinates, self.sums)
        end = -(-self.depth // t.step) * t.step
        if end == t.step:
            product.step("0")
            return
        head = (
            f"for ({kind} {start} = 0, {stage} = 0; {start} < {end}; "
            f"{start} += {t.step}, {stage} ^= 1)"
        )
        with writer.block(head):
            more = f"if ({start} + {t.step} < {end})"
            writer.line(f"{more} {fetch}({start} + {t.step});")
            product.step(f"{stage}")
            writer.line(f"{more} {keep}({stage} ^ 1);")
            writer.line("__syncthreads();")

    # --- results ---

    def _results(self) -> None:
        """Finish each sum and store it."""
        writer, t, found = self.writer, self.tiling, self.found
        high, wide = (a[0] * a[2] * a[3] for a in (t.rows, t.columns))
        with unrolled_loop(writer, "i", high) as i:
            leave = "continue" if high > 1 else "return"
            row = _Line(found.rows, self.rows, t.block_rows, t.rows)
            self._point(i, row, self.first_row, self.thread_row, leave)
            with unrolled_loop(writer, "j", wide) as j:
                leave = "continue" if high * wide > 1 else "return"
                column = _Line(found.columns, self.columns, t.block_columns, t.columns)
                self._point(j, column, self.first_column, self.thread_column, leave)
                self._store(f"{self.sums}[{i}][{j}]")

    def _point(self, i: str, line: _Line, first: str, thread: str, leave: str) -> None:
        """Give a group's iterators their values at result `i` of a thread, if it exists."""
        writer, (virtual, threads, runs, innermost), over = self.writer, line.sizes, self.over
        run = runs * innermost
        which = "0" if virtual == 1 else i if run == 1 else f"{i} / {run}"
        within = "0" if run == 1 else i if virtual == 1 else f"{i} % {run}"
        offset = linear([(first, 1), (which, threads * run), (thread, run), (within, 1)])
        alone = len(line.group) == 1
        name = over.names[line.group[0]] if alone else writer.names.fresh("place")
        writer.line(f"const {writer.kind} {name} = {offset};")
        if line.count % line.tile:
            writer.line(f"if ({name} >= {line.count}) {leave};")
        if not alone:
            numbered = [(over.names[k], over.extents[k]) for k in line.group]
            for text in decode(name, numbered, writer.kind):
                writer.line(text)

    def _store(self, total: str) -> None:
        """The ops after the contraction, on one sum, and the store."""
        types = operand_types(self.op)
        extras = zip(self.extras, self.parameters[2:-1], strict=True)
        env = Environment(self.over, {arg: p.name for arg, p in extras}, types)  # pyright: ignore
        epilogue = self._epilogue()
        body, value = Body(), Text(total)
        if epilogue:  # else the sum is the result, and rounded when stored
            value = rounded(value, element_of(self.op.scopes[0].result), body)
        self.writer.add(body)
        env.values[self.op.scopes[0].result] = value
        for scope in epilogue:
            value = env.values[scope.op.result] = scope_value(self.writer, env, scope)
        offset = self.over.text(self.found.out)
        self.writer.line(f"y[{offset}] = {stored(value.text, self.element)};")

    def _epilogue(self) -> list[ScopePlan]:
        """The scopes after the contraction, read in its iterators."""
        op = self.op
        moving = [k for k, n in enumerate(op.scopes[0].traversal) if n != 1]
        images = [self.found.traversal[k] for k in moving]
        plans = plan_nest(op.scopes, len(moving)).scopes[1:]
        images += [Index(0)] * (len(op.scopes[0].extents))
        return [
            replace(
                scope,
                reads=tuple(
                    replace(r, index=tuple(e.substitute(images) for e in r.index))
                    for r in scope.reads
                ),
            )
            for scope in plans
        ]


def is_tiled(op: KernelOp) -> MatrixProduct | None:
    """The contraction that an op is printed as, with its following ops; None for other ops."""
    scopes = op.scopes
    if any(not s.is_pointwise or s.traversal != scopes[0].traversal for s in scopes[1:]):
        return None
    return match_contraction(op)

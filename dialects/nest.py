"""The nest dialect: one kernel as loops over affine addresses, below `kernel`.

A `nest.kernel` computes what a kernel op does, on the buffers of its operands and its result. Loops
have constant extents and a kind. Their bodies are scalar (`arith`, `math`) between loads and stores
at quasi-affine addresses. Schedules are rewrites of the loops
(lowering/kernel_to_nest/rewrites.py). The CPU printer (lowering/nest_to_llvm) and the CUDA
printer (lowering/nest_to_cuda.py) read the same ops. Places and loops that depend on data are in
nest_computed.py.

    nest.kernel (%x: memref<6144xf32>, %y: memref<6144xf32>) {
      nest.for %i < 8 parallel {
        nest.for %j < 48 {
          nest.for %l < 16 vector {
            %0 = nest.load %x[768 * %i + 16 * %j + %l] : memref<6144xf32>
            %1 = math.exp %0 : f32
            nest.store %1, %y[768 * %i + 16 * %j + %l] : memref<6144xf32>
          }
        }
      }
    }

A loop's kind says how it runs. The default is serial. `parallel` loops, the outermost ones, are
items of a thread pool or threads of a grid. The body of an `unrolled` loop is written once for each
iteration. The iterations of a `vector` loop are lanes of vectors; if `lanes` exceeds the extent,
the last lanes are masked off. The kind does not change the result: that of the iterations in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator
from xdsl.utils.exceptions import VerifyException

from . import nest_text as text
from .index import Index
from .nest_access import (
    LOOP,
    REDUCTIONS,
    AccessOp,
    AccumulateOp,
    Guard,
    InsideOp,
    LoadOp,
    PlacedOp,
    PrefetchOp,
    StoreOp,
    flat_buffer,
    integer,
    is_local,
    map_of,
    numbers_in,
    sizes_of,
    verify_reduction,
)
from .nest_computed import COMPUTED

__all__ = [
    "KIND",
    "NEST",
    "REDUCTIONS",
    "REGISTERS",
    "STACK",
    "AccessOp",
    "AccumulateOp",
    "AllocOp",
    "ForOp",
    "Guard",
    "IdentityOp",
    "IfOp",
    "InsideOp",
    "LoadOp",
    "NestOp",
    "PlacedOp",
    "PrefetchOp",
    "StoreOp",
    "TransposeOp",
    "WhenOp",
    "is_local",
    "loop_of",
    "parallel_loops",
]

KIND = {kind: StringAttr(kind) for kind in ("serial", "parallel", "unrolled", "vector")}
INDEX = IndexType()
REGISTERS, STACK = StringAttr("registers"), StringAttr("stack")


@irdl_op_definition
class NestOp(IRDLOperation):
    """Hold one kernel's loops. Arguments: the buffers of its operands, then of its result.

    `rows` says that only a part of the result is read, in groups of four numbers: the argument that
    says how many rows, the elements from one row to the next, those from one run of rows to the
    next (0 if there is one run), and where they begin in the buffer. The others may be anything.
    `kept` says in the same way that the first rows are in the buffer before.
    """

    name = "nest.kernel"
    sym_name = opt_prop_def(StringAttr)
    rows = opt_prop_def(DenseArrayBase)
    kept = opt_prop_def(DenseArrayBase)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove())

    def __init__(self, buffers: Sequence[MemRefType[Attribute]]):
        super().__init__(regions=[Region(Block(arg_types=buffers))])

    def print(self, printer: Printer) -> None:
        if self.sym_name is not None:
            printer.print_string(" ")
            printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" (")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") ")
        for name, numbers in (("rows", self.rows), ("kept", self.kept)):
            if numbers is not None:
                printer.print_string(f"{name} ")
                printer.print_attribute(numbers)
                printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> NestOp:
        name = parser.parse_optional_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        properties: dict[str, Attribute] = {} if name is None else {"sym_name": name}
        for part in ("rows", "kept"):
            if parser.parse_optional_keyword(part) is not None:
                properties[part] = parser.parse_attribute()
        return cls.create(properties=properties, regions=[parser.parse_region(arguments)])


@irdl_op_definition
class ForOp(PlacedOp):
    """Run the body at each value of an iterator, from 0 up to an extent.

    With expressions, it starts at the largest `from` and ends below the smallest `below`, as for a
    tile cut off at the end of a dim; the extent is then the most iterations. `lowers` counts the
    `from` expressions in the map. `unroll 1` tells LLVM not to unroll a serial loop.
    """

    name = LOOP
    extent = prop_def(IntegerAttr)
    kind = prop_def(StringAttr)
    lanes = prop_def(IntegerAttr)
    lowers = prop_def(IntegerAttr)
    unroll = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(
        self,
        extent: int,
        kind: str = "serial",
        lanes: int = 0,
        *,
        lower: Sequence[Index] = (),
        upper: Sequence[Index] = (),
        places: Sequence[SSAValue] = (),
        unroll: int | None = None,
        hint: str | None = None,
    ):
        block = Block(arg_types=[INDEX])
        block.args[0].name_hint = hint
        properties = _loop_properties(extent, kind, lanes, len(lower), unroll)
        properties["map"] = map_of((*lower, *upper), len(places))
        self.initialise(places, properties, regions=[Region(block)])

    @property
    def block(self) -> Block:
        return self.regions[0].block

    @property
    def iterator(self) -> SSAValue:
        return self.regions[0].block.args[0]

    @property
    def size(self) -> int:
        """The largest number of iterations."""
        return self.extent.value.data

    @property
    def width(self) -> int:
        """Iterations, the lanes that are masked off included."""
        return max(self.lanes.value.data, self.size)

    @property
    def bounds(self) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
        """The expressions of its start and of its end."""
        count = self.lowers.value.data
        return self.indices[:count], self.indices[count:]

    def verify_(self) -> None:
        super().verify_()
        if self.kind.data not in KIND:
            raise VerifyException(f"nest.for: '{self.kind.data}' is none of {', '.join(KIND)}")
        if self.size < 1:
            raise VerifyException("nest.for: the extent is at least 1")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.iterator)
        printer.print_string(f" < {self.size}")
        if self.kind.data != "serial":
            printer.print_string(f" {self.kind.data}")
        if self.lanes.value.data > self.size:
            printer.print_string(f" lanes {self.lanes.value.data}")
        if self.unroll is not None:
            printer.print_string(f" unroll {self.unroll.value.data}")
        for word, indices in zip(("from", "below"), self.bounds, strict=True):
            if indices:
                printer.print_string(f" {word} ")
                text.print_indices(printer, list(self.places), indices)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        name = parser.parse_argument(expect_type=False)
        parser.parse_characters("<")
        extent = parser.parse_integer()
        words = (k for k in KIND if parser.parse_optional_keyword(k) is not None)
        kind = next(words, "serial")
        lanes = extent if kind == "vector" else 0
        if parser.parse_optional_keyword("lanes") is not None:
            lanes = parser.parse_integer()
        unroll = None
        if parser.parse_optional_keyword("unroll") is not None:
            unroll = parser.parse_integer()
        bounds = [
            text.parse_indices(parser) if parser.parse_optional_keyword(word) is not None else None
            for word in ("from", "below")
        ]
        low, high = (([], []) if found is None else found for found in bounds)
        places, indices = text.joined(low, high)
        properties = _loop_properties(extent, kind, lanes, len(low[1]), unroll)
        properties["map"] = map_of(tuple(indices), len(places))
        body = parser.parse_region([name.resolve(IndexType())])
        return cls.create(operands=places, properties=properties, regions=[body])


def _loop_properties(
    extent: int, kind: str, lanes: int, lowers: int, unroll: int | None
) -> dict[str, Attribute]:
    numbers = {"extent": extent, "lanes": lanes, "lowers": lowers}
    if unroll is not None:
        numbers["unroll"] = unroll
    return {"kind": KIND[kind], **{name: integer(n) for name, n in numbers.items()}}


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Allocate elements in registers or on the stack, with undefined values."""

    name = "nest.alloc"
    result = result_def(MemRefType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, element: Attribute, count: int, space: StringAttr = REGISTERS):
        Operation.__init__(self, result_types=[flat_buffer(element, count, space)])


@irdl_op_definition
class IdentityOp(IRDLOperation):
    """Give the neutral element of a reduction."""

    name = "nest.identity"
    reduction = prop_def(StringAttr)
    result = result_def(AnyAttr())

    def __init__(self, reduction: str, element: Attribute):
        super().__init__(properties={"reduction": StringAttr(reduction)}, result_types=[element])

    def verify_(self) -> None:
        verify_reduction(self.name, self.reduction.data)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.reduction.data}")
        text.print_type(printer, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IdentityOp:
        reduction = parser.parse_identifier()
        parser.parse_punctuation(":")
        return cls(reduction, parser.parse_type())


class BranchOp(IRDLOperation):
    """Run one of two bodies."""

    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(NoTerminator())

    def print_bodies(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.then, print_empty_block=False)
        printer.print_string(" else ")
        printer.print_region(self.otherwise, print_empty_block=False)


def _parse_bodies(parser: Parser) -> list[Region]:
    first = parser.parse_region()
    parser.parse_keyword("else")
    bodies = [first, parser.parse_region()]
    for body in bodies:
        if not body.blocks:
            body.add_block(Block())
    return bodies


@irdl_op_definition
class IfOp(PlacedOp):
    """Run the first body where every guard holds (0 <= index < size), else the second.

    Guards are over iterators, so printers know them; `nest.when` tests a computed value.
    """

    name = "nest.if"
    sizes = prop_def(DenseArrayBase)
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, places: Sequence[SSAValue], guards: Sequence[Guard]):
        bodies = [Region(Block()), Region(Block())]
        self.initialise(places, _if_properties(guards, len(places)), regions=bodies)

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(zip(self.indices, numbers_in(self.sizes), strict=True))

    def print(self, printer: Printer) -> None:
        text.print_guards(printer, list(self.places), self.guards, " ")
        # An op has one base class, here PlacedOp; the regions are those of BranchOp.
        BranchOp.print_bodies(self, printer)  # pyright: ignore

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        places, indices = text.parse_indices(parser)
        guards = list(zip(indices, text.parse_sizes(parser), strict=True))
        return cls.create(
            operands=places,
            properties=_if_properties(guards, len(places)),
            regions=_parse_bodies(parser),
        )


def _if_properties(guards: Sequence[Guard], count: int) -> Mapping[str, Attribute]:
    return {"map": map_of(tuple(e for e, _ in guards), count), "sizes": sizes_of(guards)}


@irdl_op_definition
class WhenOp(BranchOp):
    """Run the first body where a computed condition holds, else the second.

    `nest.if` tests bounds of iterators.
    """

    name = "nest.when"
    condition = operand_def(AnyAttr())

    def __init__(self, condition: SSAValue):
        super().__init__(operands=[condition], regions=[Region(Block()), Region(Block())])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        self.print_bodies(printer)

    @classmethod
    def parse(cls, parser: Parser) -> WhenOp:
        from xdsl.dialects.builtin import i1

        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        return cls.create(operands=[condition], regions=_parse_bodies(parser))


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Transpose a buffer in registers in place: from `rows` x `columns` to `columns` x `rows`."""

    name = "nest.transpose"
    buffer = operand_def(MemRefType)
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)

    def __init__(self, buffer: SSAValue, rows: int, columns: int):
        super().__init__(
            operands=[buffer],
            properties={"rows": integer(rows), "columns": integer(columns)},
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_string(f" [{self.rows.value.data}, {self.columns.value.data}]")
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        name = parser.parse_unresolved_operand()
        rows, columns = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_integer
        )
        return cls(text.parse_buffer(parser, name), rows, columns)


def parallel_loops(kernel: NestOp) -> list[ForOp]:
    """The loops whose iterations are work items: the outermost parallel ones, nested perfectly."""
    found: list[ForOp] = []
    block = kernel.body.block
    while (
        isinstance(first := block.first_op, ForOp)
        and first is block.last_op
        and first.kind.data == "parallel"
    ):
        found.append(first)
        block = first.block
    return found


def loop_of(place: SSAValue) -> ForOp:
    """The loop of an iterator."""
    owner = place.owner
    assert isinstance(owner, Block)
    loop = owner.parent_op()
    assert isinstance(loop, ForOp)
    return loop


NEST = Dialect(
    "nest",
    [
        NestOp,
        ForOp,
        AllocOp,
        LoadOp,
        InsideOp,
        StoreOp,
        AccumulateOp,
        PrefetchOp,
        IdentityOp,
        IfOp,
        WhenOp,
        TransposeOp,
        *COMPUTED,
    ],
)

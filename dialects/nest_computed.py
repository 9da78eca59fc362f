"""The ops of the nest dialect whose places and loops depend on data.

What is no tensor expression (a scatter, a scan, a search, a sort) is a nest with these: elements at
computed addresses, loops with computed bounds, and loops that a computed condition ends. Addresses
and bounds are i64 scalars. All of them run in order, within one item of a parallel loop.

    nest.for %i < 8 parallel {
      %row = nest.index [%i]
      nest.range %k from %row to %end {
        %at = nest.read %indices[%k] : memref<64xi64>
        nest.write %value, %y[%at] : memref<100xf32>
      }
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, MemRefType, i1, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator

from . import nest_text as text
from .index import Index
from .nest_access import PlacedOp, map_of, scalar_type


def _element(buffer: SSAValue) -> Attribute:
    assert isinstance(buffer.type, MemRefType)
    return scalar_type(buffer.type.element_type)


def _print_place(printer: Printer, buffer: SSAValue, place: SSAValue) -> None:
    printer.print_ssa_value(buffer)
    printer.print_string("[")
    printer.print_ssa_value(place)
    printer.print_string("]")


def _parse_place(parser: Parser) -> tuple[SSAValue, SSAValue]:
    """(buffer, place) of `%x[%k] : memref<...>`."""
    name = parser.parse_unresolved_operand()
    with parser.in_square_brackets():
        place = parser.resolve_operand(parser.parse_unresolved_operand(), i64)
    return text.parse_buffer(parser, name), place


@irdl_op_definition
class IndexOp(PlacedOp):
    """Give the value of an expression over iterators as an i64."""

    name = "nest.index"
    result = result_def(IntegerType)

    def __init__(self, places: Sequence[SSAValue], index: Index):
        self.initialise(places, {"map": map_of((index,), len(places))}, [i64])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        text.print_indices(printer, list(self.places), self.indices)

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        places, (index,) = text.parse_indices(parser)
        return cls(places, index)


@irdl_op_definition
class ReadOp(IRDLOperation):
    """Read the element at a computed address, which lies in the buffer."""

    name = "nest.read"
    buffer = operand_def(MemRefType)
    place = operand_def(IntegerType)
    result = result_def(AnyAttr())

    def __init__(self, buffer: SSAValue, place: SSAValue):
        super().__init__(operands=[buffer, place], result_types=[_element(buffer)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_place(printer, self.buffer, self.place)
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        return cls(*_parse_place(parser))


@irdl_op_definition
class WriteOp(IRDLOperation):
    """Write the element at a computed address, which lies in the buffer."""

    name = "nest.write"
    value = operand_def(AnyAttr())
    buffer = operand_def(MemRefType)
    place = operand_def(IntegerType)

    def __init__(self, value: SSAValue, buffer: SSAValue, place: SSAValue):
        super().__init__(operands=[value, buffer, place])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        _print_place(printer, self.buffer, self.place)
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> WriteOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer, place = _parse_place(parser)
        return cls(parser.resolve_operand(value, _element(buffer)), buffer, place)


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copy the bits of so many elements into a buffer whose elements have the same size."""

    name = "nest.copy"
    source = operand_def(MemRefType)
    start = operand_def(IntegerType)
    target = operand_def(MemRefType)
    place = operand_def(IntegerType)
    count = operand_def(IntegerType)

    def __init__(
        self, source: SSAValue, start: SSAValue, target: SSAValue, place: SSAValue, count: SSAValue
    ):
        super().__init__(operands=[source, start, target, place, count])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.count)
        printer.print_string(" from ")
        _print_place(printer, self.source, self.start)
        text.print_type(printer, self.source.type)
        printer.print_string(" to ")
        _print_place(printer, self.target, self.place)
        text.print_type(printer, self.target.type)

    @classmethod
    def parse(cls, parser: Parser) -> CopyOp:
        count = parser.resolve_operand(parser.parse_unresolved_operand(), i64)
        parser.parse_keyword("from")
        source, start = _parse_place(parser)
        parser.parse_keyword("to")
        return cls(source, start, *_parse_place(parser), count)


@irdl_op_definition
class RangeOp(IRDLOperation):
    """Run the body at each value of an i64 from a computed start up to a computed end, in order."""

    name = "nest.range"
    low = operand_def(IntegerType)
    high = operand_def(IntegerType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, low: SSAValue, high: SSAValue, hint: str | None = None):
        block = Block(arg_types=[i64])
        block.args[0].name_hint = hint
        super().__init__(operands=[low, high], regions=[Region(block)])

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def iterator(self) -> SSAValue:
        return self.body.block.args[0]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.iterator)
        for word, value in (("from", self.low), ("to", self.high)):
            printer.print_string(f" {word} ")
            printer.print_ssa_value(value)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> RangeOp:
        name = parser.parse_argument(expect_type=False)
        ends: list[SSAValue] = []
        for word in ("from", "to"):
            parser.parse_keyword(word)
            ends.append(parser.resolve_operand(parser.parse_unresolved_operand(), i64))
        return cls.create(operands=ends, regions=[parser.parse_region([name.resolve(i64)])])


@irdl_op_definition
class AgainOp(IRDLOperation):
    """End the body of `nest.repeat`: it runs again where the condition holds."""

    name = "nest.again"
    condition = operand_def(IntegerType)
    traits = traits_def(IsTerminator())

    def __init__(self, condition: SSAValue):
        super().__init__(operands=[condition])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)

    @classmethod
    def parse(cls, parser: Parser) -> AgainOp:
        return cls(parser.resolve_operand(parser.parse_unresolved_operand(), i1))


@irdl_op_definition
class RepeatOp(IRDLOperation):
    """Run the body once, and again as long as its last op, `nest.again`, says."""

    name = "nest.repeat"
    body = region_def("single_block")

    def __init__(self):
        super().__init__(regions=[Region(Block())])

    @property
    def block(self) -> Block:
        return self.body.block

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> RepeatOp:
        return cls.create(regions=[parser.parse_region()])


@irdl_op_definition
class RemainderOp(IRDLOperation):
    """Give C's fmod of floats, with the sign of the dividend: `arith` has it for integers only."""

    name = "nest.remainder"
    x = operand_def(AnyAttr())
    y = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    def __init__(self, x: SSAValue, y: SSAValue):
        super().__init__(operands=[x, y], result_types=[x.type])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        text.print_type(printer, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> RemainderOp:
        names = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        x, y = (parser.resolve_operand(name, type_) for name in names)
        return cls(x, y)


COMPUTED = (IndexOp, ReadOp, WriteOp, CopyOp, RangeOp, RepeatOp, AgainOp, RemainderOp)

"""The ops of the nest dialect that access buffers, with addresses over iterators.

nest.py has the loops and the dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from . import nest_text as text
from .index import Index, from_affine
from .scope_text import literal_text

REDUCTIONS = ("sum", "prod", "max", "min", "numeric_max", "numeric_min", "or")
"""`numeric_max` and `numeric_min` may lose a NaN: one instruction instead of three for `max`."""

LOOP = "nest.for"

Guard = tuple[Index, int]
"""A bound: an expression that must be at least 0 and less than a size."""


@lru_cache(maxsize=1 << 14)
def map_of(results: tuple[Index, ...], count: int) -> AffineMapAttr:
    """Expressions over a number of iterators, as an attribute."""
    return AffineMapAttr(AffineMap(count, 0, tuple(e.to_affine() for e in results)))


@lru_cache(maxsize=1 << 12)
def _indices_of(map_: AffineMapAttr) -> tuple[Index, ...]:
    return tuple(from_affine(e) for e in map_.data.results)


@lru_cache(maxsize=1 << 12)
def integer(value: int) -> IntegerAttr:
    """A number as an attribute."""
    return IntegerAttr(value, i64)


@lru_cache(maxsize=1 << 8)
def _number(value: float) -> FloatAttr:
    return FloatAttr(value, f64)


def numbers_in(attribute: DenseArrayBase) -> list[int]:
    """The integers of an attribute."""
    return [int(n) for n in attribute.get_values()]  # pyright: ignore[reportAttributeAccessIssue]


def sizes_of(guards: Sequence[Guard]) -> DenseArrayBase:
    """The sizes of guards as an attribute."""
    return _array(tuple(n for _, n in guards))


@lru_cache(maxsize=1 << 10)
def _array(numbers: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, numbers)


@lru_cache(maxsize=1 << 12)
def flat_buffer(
    element: Attribute, count: int, space: Attribute | None = None
) -> MemRefType[Attribute]:
    """The type of a buffer of so many elements."""
    return MemRefType(element, [count], memory_space=NoneAttr() if space is None else space)


def scalar_type(element: Attribute) -> Attribute:
    """The type of a value read from a buffer: integers there have no sign."""
    if isinstance(element, IntegerType) and element.signedness.data == Signedness.UNSIGNED:
        return IntegerType(element.width.data)
    return element


def _written(parser: Parser, value: UnresolvedOperand, element: Attribute) -> SSAValue:
    """A value that goes into a buffer: an op of a body may say its sign, a read one has none."""
    known = parser.ssa_values.get(value.operand_name)
    signed = known is not None and known[value.index].type == element
    return parser.resolve_operand(value, element if signed else scalar_type(element))


class PlacedOp(IRDLOperation):
    """An op with expressions over iterators of loops; the iterators are the operands `places`."""

    places = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)

    def initialise(
        self,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
        results: Sequence[Attribute] = (),
        regions: Sequence[Region] = (),
    ) -> None:
        """Initialise the op, without the checks of `IRDLOperation`: nests are many ops."""
        Operation.__init__(
            self, operands=operands, properties=properties, result_types=results, regions=regions
        )

    @property
    def indices(self) -> tuple[Index, ...]:
        """The expressions; iterator k is `places[k]`."""
        map_ = self.map
        cache = vars(self)
        if cache.get("indexed") is not map_:
            cache |= {"indexed": map_, "index": _indices_of(map_)}
        return cache["index"]

    def replace_places(self, places: Sequence[SSAValue], indices: Sequence[Index]) -> None:
        """Replace the expressions and the iterators."""
        operands = self.operands
        self.operands = [*operands[: len(operands) - self.map.data.num_dims], *places]
        self.properties["map"] = map_of(tuple(indices), len(places))

    def verify_(self) -> None:
        if self.map.data.num_dims != len(self.places):
            raise VerifyException(f"{self.name}: the map needs one iterator for each of its dims")
        owners = (p.owner.parent_op() for p in self.places if isinstance(p.owner, Block))
        loops = [owner for owner in owners if owner is not None and owner.name == LOOP]
        if len(loops) < len(self.places):
            raise VerifyException(f"{self.name}: addresses are over iterators of loops")


class AccessOp(PlacedOp):
    """An op that accesses a buffer: the first expression is the address, the others are guards."""

    sizes = prop_def(DenseArrayBase)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards, which must hold for the element to exist."""
        return tuple(zip(self.indices[1:], numbers_in(self.sizes), strict=True))

    def keep_guards(self, kept: Sequence[Guard]) -> None:
        """Keep only these guards."""
        if len(kept) < len(self.guards):
            self.properties |= _access(self.indices[0], kept, len(self.places))


def _access(address: Index, guards: Sequence[Guard], count: int) -> dict[str, Attribute]:
    return {"map": map_of((address, *(e for e, _ in guards)), count), "sizes": sizes_of(guards)}


def _print_access(printer: Printer, op: AccessOp, buffer: SSAValue) -> None:
    printer.print_ssa_value(buffer)
    text.print_indices(printer, list(op.places), op.indices[:1])
    text.print_guards(printer, list(op.places), op.guards, " if ")


def _parse_access(parser: Parser) -> tuple[UnresolvedOperand, list[SSAValue], dict[str, Attribute]]:
    """(buffer, iterators, properties) of `%x[...] if [...] < [...]`."""
    buffer = parser.parse_unresolved_operand()
    at = text.parse_indices(parser)
    *guarded, sizes = text.parse_guards(parser)
    places, (address, *guards) = text.joined(at, guarded)  # pyright: ignore
    return buffer, places, _access(address, list(zip(guards, sizes, strict=True)), len(places))


def _parse_literal(parser: Parser) -> float:
    """A number, `inf` or `nan`, as `literal_text` prints them."""
    sign = -1.0 if parser.parse_optional_punctuation("-") is not None else 1.0
    for name in ("inf", "nan"):
        if parser.parse_optional_keyword(name) is not None:
            return sign * float(name)
    return sign * float(parser.parse_number())


@irdl_op_definition
class LoadOp(AccessOp):
    """Read an element; `else` where a guard fails.

    The first `room` elements of the buffer may be read whatever the guards say. So may those of
    masked lanes, those from the extent of a vector loop on, if the buffer is `padded`.
    """

    name = "nest.load"
    buffer = operand_def(MemRefType)
    outside = prop_def(FloatAttr)
    room = prop_def(IntegerAttr)
    padded = opt_prop_def(UnitAttr)
    result = result_def(AnyAttr())

    def __init__(
        self,
        buffer: SSAValue,
        places: Sequence[SSAValue],
        address: Index,
        guards: Sequence[Guard] = (),
        outside: float = 0.0,
        room: int = 0,
    ):
        assert isinstance(buffer.type, MemRefType)
        properties = _access(address, guards, len(places)) | {
            "outside": _number(outside),
            "room": integer(room),
        }
        self.initialise([buffer, *places], properties, [scalar_type(buffer.type.element_type)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_access(printer, self, self.buffer)
        if self.guards:
            printer.print_string(" else ")
            printer.print_string(literal_text(self.outside.value.data))
        if self.room.value.data:
            printer.print_string(f" room {self.room.value.data}")
        if self.padded is not None:
            printer.print_string(" padded")
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        name, places, properties = _parse_access(parser)
        outside, room = 0.0, 0
        if parser.parse_optional_keyword("else") is not None:
            outside = _parse_literal(parser)
        if parser.parse_optional_keyword("room") is not None:
            room = parser.parse_integer()
        properties |= {"outside": _number(outside), "room": integer(room)}
        if parser.parse_optional_keyword("padded") is not None:
            properties["padded"] = UnitAttr()
        buffer = text.parse_buffer(parser, name)
        return cls.create(
            operands=[buffer, *places],
            properties=properties,
            result_types=[scalar_type(buffer.type.element_type)],  # pyright: ignore
        )


@irdl_op_definition
class InsideOp(AccessOp):
    """Say whether all guards hold: 1 or 0. The first expression is not used."""

    name = "nest.inside"
    result = result_def(AnyAttr())

    def __init__(self, element: Attribute, places: Sequence[SSAValue], guards: Sequence[Guard]):
        self.initialise(places, _access(Index(0), guards, len(places)), [element])

    def print(self, printer: Printer) -> None:
        text.print_guards(printer, list(self.places), self.guards, " if ")
        text.print_type(printer, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> InsideOp:
        places, indices, sizes = text.parse_guards(parser)
        parser.parse_punctuation(":")
        element = parser.parse_type()
        return cls(element, places, list(zip(indices, sizes, strict=True)))


@irdl_op_definition
class StoreOp(AccessOp):
    """Write an element; vectors with this alignment in bytes use non-temporal stores."""

    name = "nest.store"
    value = operand_def(AnyAttr())
    buffer = operand_def(MemRefType)
    nontemporal = prop_def(IntegerAttr)

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        places: Sequence[SSAValue],
        address: Index,
        nontemporal: int = 0,
    ):
        properties = _access(address, (), len(places))
        properties["nontemporal"] = integer(nontemporal)
        self.initialise([value, buffer, *places], properties)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        _print_access(printer, self, self.buffer)
        if self.nontemporal.value.data:
            printer.print_string(f" nontemporal {self.nontemporal.value.data}")
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        name, places, properties = _parse_access(parser)
        past = 0
        if parser.parse_optional_keyword("nontemporal") is not None:
            past = parser.parse_integer()
        buffer = text.parse_buffer(parser, name)
        stored = _written(parser, value, buffer.type.element_type)  # pyright: ignore
        properties["nontemporal"] = integer(past)
        return cls.create(operands=[stored, buffer, *places], properties=properties)


@irdl_op_definition
class AccumulateOp(AccessOp):
    """Add a value to an accumulator, by a reduction.

    If it is `masked`, masked lanes keep their total. If it is `fused`, a product and the
    sum are one multiply-add, which may round once.
    """

    name = "nest.accumulate"
    value = operand_def(AnyAttr())
    buffer = operand_def(MemRefType)
    reduction = prop_def(StringAttr)
    masked = opt_prop_def(UnitAttr)
    fused = opt_prop_def(UnitAttr)

    def __init__(
        self,
        reduction: str,
        value: SSAValue,
        buffer: SSAValue,
        places: Sequence[SSAValue] = (),
        address: Index | None = None,
    ):
        properties = _access(Index(0) if address is None else address, (), len(places))
        properties["reduction"] = StringAttr(reduction)
        self.initialise([value, buffer, *places], properties)

    def verify_(self) -> None:
        super().verify_()
        verify_reduction(self.name, self.reduction.data)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.reduction.data} ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        _print_access(printer, self, self.buffer)
        for word in ("masked", "fused"):
            if word in self.properties:
                printer.print_string(f" {word}")
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> AccumulateOp:
        reduction = parser.parse_identifier()
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        name, places, properties = _parse_access(parser)
        properties["reduction"] = StringAttr(reduction)
        for word in ("masked", "fused"):
            if parser.parse_optional_keyword(word) is not None:
                properties[word] = UnitAttr()
        buffer = text.parse_buffer(parser, name)
        taken = _written(parser, value, buffer.type.element_type)  # pyright: ignore
        return cls.create(operands=[taken, buffer, *places], properties=properties)


def verify_reduction(where: str, reduction: str) -> None:
    """Check a reduction's name. Raises VerifyException."""
    if reduction not in REDUCTIONS:
        raise VerifyException(f"{where}: '{reduction}' is none of {', '.join(REDUCTIONS)}")


@irdl_op_definition
class PrefetchOp(AccessOp):
    """Prefetch the cache line of an element, at any address; nothing where a guard fails."""

    name = "nest.prefetch"
    buffer = operand_def(MemRefType)

    def __init__(
        self,
        buffer: SSAValue,
        places: Sequence[SSAValue],
        address: Index,
        guards: Sequence[Guard] = (),
    ):
        self.initialise([buffer, *places], _access(address, guards, len(places)))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_access(printer, self, self.buffer)
        text.print_type(printer, self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        name, places, properties = _parse_access(parser)
        buffer = text.parse_buffer(parser, name)
        return cls.create(operands=[buffer, *places], properties=properties)


def is_local(buffer: SSAValue) -> bool:
    """Whether a buffer is local to the kernel, not an argument."""
    return isinstance(buffer.owner, Operation)

"""The text of nest ops: addresses as `%x[16 * %i + %l]`, guards as `if [%h - 1] < [56]`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from .index import Index, from_affine

Guards = Sequence[tuple[Index, int]]
_MARK = "\0"


def print_indices(printer: Printer, places: Sequence[SSAValue], indices: Sequence[Index]) -> None:
    """Print `[2 * %i + %j, %k]`."""
    marks = [f"{_MARK}{k}{_MARK}" for k in range(len(places))]
    text = "[" + ", ".join(e.text(marks) for e in indices) + "]"
    for n, part in enumerate(text.split(_MARK)):
        if n % 2:
            printer.print_ssa_value(places[int(part)])
        else:
            printer.print_string(part)


def parse_indices(parser: Parser) -> tuple[list[SSAValue], list[Index]]:
    """Parse the output of `print_indices`: iterators, and expressions over these."""
    found, places = parser.parse_affine_map_of_ssa_ids()
    dims = [AffineDimExpr(k) for k in range(len(places))]
    results = [e.replace_dims_and_symbols([], dims) for e in found.results]
    return list(places), [from_affine(e) for e in results]


def joined(
    first: tuple[Sequence[SSAValue], Sequence[Index]],
    second: tuple[Sequence[SSAValue], Sequence[Index]],
) -> tuple[list[SSAValue], list[Index]]:
    """The expressions of two lists over the iterators of both."""
    places = list(dict.fromkeys([*first[0], *second[0]]))

    def moved(these: Sequence[SSAValue], e: Index) -> Index:
        return e.substitute([Index.iterator(places.index(p)) for p in these])

    return places, [moved(these, e) for these, all_ in (first, second) for e in all_]


def print_guards(printer: Printer, places: Sequence[SSAValue], guards: Guards, word: str) -> None:
    """Print ` if [%h - 1] < [56]`, nothing for none."""
    if guards:
        printer.print_string(f"{word}")
        print_indices(printer, places, [e for e, _ in guards])
        printer.print_string(f" < {[n for _, n in guards]}")


def parse_sizes(parser: Parser) -> list[int]:
    """Parse ` < [56, 56]`."""
    parser.parse_characters("<")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def parse_guards(parser: Parser) -> tuple[list[SSAValue], list[Index], list[int]]:
    """Parse the output of `print_guards`, if present."""
    if parser.parse_optional_keyword("if") is None:
        return [], [], []
    places, indices = parse_indices(parser)
    return places, indices, parse_sizes(parser)


def print_type(printer: Printer, type_: Attribute) -> None:
    """Print ` : type`."""
    printer.print_string(" : ")
    printer.print_attribute(type_)


def parse_buffer(parser: Parser, name: UnresolvedOperand) -> SSAValue:
    """Parse `: memref<...>`, and find the buffer."""
    parser.parse_punctuation(":")
    start = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, MemRefType):
        parser.raise_error("a buffer is a memref", start, parser.pos)
    return parser.resolve_operand(name, type_)

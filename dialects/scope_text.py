"""The text of `algebra.scope`: iterators and reads in mathematical notation.

    scope   ::= `(` iters `)` (`sum` | `max` | `min` | `prod` `(` iters `)`)? body attrs? `:` type
    iters   ::= (name `:` extent (`,` name `:` extent)*)?
    body    ::= expr | `[` read (`,` read)* `]` region      (the region form for large bodies)
    expr    ::= term ((`+` | `-`) term)*        term ::= unary ((`*` | `/`) unary)*
    unary   ::= `-` unary | literal | read | name `(` expr (`,` expr)* `)` | `(` expr `)`
    read    ::= %value `[` index (`,` index)* `]` (`else` literal)?

A name applied to arguments is a scalar function (scalars.FUNCTIONS) or an element type (a cast).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .errors import UserError, suggest
from .index import Index
from .scalars import FUNCTIONS, Call, Cast, Const, Expr, Read, Scalar, call, size
from .types import float_types, tensor_type

if TYPE_CHECKING:
    from .algebra import ScopeOp

_SUMMATIONS = re.compile(r"\s*\(\s*[A-Za-z_][\w$.]*\s*:")

# A larger body prints as a region: the expression's text would repeat shared parts.
INLINE_NODES = 120

_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
_FLOAT_TYPES: dict[str, Attribute] = {str(e): e for e in float_types()}
_LITERALS = {"inf": float("inf"), "nan": float("nan"), "true": True, "false": False}


# --- printing -----------------------------------------------------------------------------------


def print_scope(op: ScopeOp, printer: Printer) -> None:
    """Print everything after the op's name."""
    rank = len(op.traversal)
    printer.print_string(" ")
    _print_iterators(printer, op.names[:rank], op.traversal)
    if op.summation:
        printer.print_string(f" {op.reduction.data} ")
        _print_iterators(printer, op.names[rank:], op.summation)
    expr = op.expr()
    if size(expr) <= INLINE_NODES:
        printer.print_string(" ")
        _print_expr(printer, expr, op.names, 0)
    else:
        _print_region_form(printer, op)
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)
    printer.print_string(" : ")
    printer.print_attribute(op.result.type)


def _print_iterators(printer: Printer, names: Sequence[str], extents: Sequence[int]) -> None:
    pairs = ", ".join(f"{name}: {n}" for name, n in zip(names, extents, strict=True))
    printer.print_string(f"({pairs})")


def _print_region_form(printer: Printer, op: ScopeOp) -> None:
    printer.print_string(" [")
    printer.print_list(op.reads(), lambda read: _print_read(printer, read, op.names))
    printer.print_string("] ")
    printer.print_region(op.body)


def _print_read(printer: Printer, read: Read, names: Sequence[str]) -> None:
    printer.print_ssa_value(read.source)
    printer.print_string("[" + ", ".join(e.text(names) for e in read.index) + "]")
    if repr(float(read.outside)) != "0.0":
        printer.print_string(f" else {literal_text(read.outside)}")


def literal_text(value: float | int | bool) -> str:
    """A number as the IR's lexer reads it: `true`, `3`, `0.5`, `1.0e-30`, `-inf`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e", 1) if "e" in text else text


def _print_expr(printer: Printer, expr: Expr, names: Sequence[str], above: int) -> None:
    match expr:
        case Read():
            _print_read(printer, expr, names)
        case Const(value):
            printer.print_string(literal_text(value))
        case Cast(element, arg):
            printer.print_attribute(element)
            _print_arguments(printer, (arg,), names)
        case Call(function, (left, right)) if function in _INFIX:
            sign, level = _INFIX[function]
            if level < above:
                printer.print_string("(")
            _print_expr(printer, left, names, level)
            printer.print_string(f" {sign} ")
            _print_expr(printer, right, names, level + 1)
            if level < above:
                printer.print_string(")")
        case Call(function, args):
            printer.print_string(function)
            _print_arguments(printer, args, names)
        case _:
            raise TypeError(f"not a scalar expression: {expr}")


def _print_arguments(printer: Printer, args: Sequence[Expr], names: Sequence[str]) -> None:
    printer.print_string("(")
    printer.print_list(args, lambda a: _print_expr(printer, a, names, 0))
    printer.print_string(")")


# --- parsing ------------------------------------------------------------------------------------


def parse_scope(cls: type[ScopeOp], parser: Parser) -> ScopeOp:
    """Parse everything after the op's name."""
    names, traversal = _parse_iterators(parser)
    sum_names: list[str] = []
    sums: list[int] = []
    reduction = "sum"
    for word in ("sum", "max", "min", "prod"):
        if _at_reduction(parser, word):
            reduction = word
            sum_names, sums = _parse_iterators(parser)
            break
    reader = _BodyParser(parser, names + sum_names)
    if parser.parse_optional_punctuation("[") is not None:
        region_form = reader.reads()
        region = parser.parse_region()
    else:
        region_form, region = None, None
        expr = reader.expr()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    parser.parse_punctuation(":")
    position = parser.pos
    result = parser.parse_type()
    if not isinstance(result, TensorType) or list(result.get_shape()) != traversal:
        parser.raise_error(
            f"the traversal extents {traversal} are not the shape of the result type", position
        )
    all_names = names + sum_names
    if region is not None and region_form is not None:
        from .scope_body import body_to_expr

        expr = body_to_expr(region.block, region_form)
    try:
        op = cls(result, expr, sums, reduction, all_names)  # pyright: ignore
    except UserError as error:
        parser.raise_error(str(error), position)
    if attributes is not None:
        op.attributes |= attributes.data
    return op


def _at_reduction(parser: Parser, word: str) -> bool:
    """`max (k: 3)` opens summations; `max(a, b)` is a call: the next tokens decide."""
    token = parser._current_token  # pyright: ignore[reportPrivateUsage]
    if token.text != word or _SUMMATIONS.match(token.span.input.content, token.span.end) is None:
        return False
    return parser.parse_optional_keyword(word) is not None


def _parse_iterators(parser: Parser) -> tuple[list[str], list[int]]:
    def pair() -> tuple[str, int]:
        name = parser.parse_identifier()
        parser.parse_punctuation(":")
        return name, parser.parse_integer(allow_boolean=False, allow_negative=False)

    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, pair)
    return [name for name, _ in pairs], [n for _, n in pairs]


def defined_operand(parser: Parser) -> SSAValue:
    """Parse the use of a value that is defined above: the custom formats omit operand types."""
    unresolved = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(unresolved.operand_name)
    if values is None or unresolved.index >= len(values):
        parser.raise_error(
            f"value %{unresolved.operand_name} is used before it is defined",
            unresolved.span.start,
            unresolved.span.end,
        )
    return values[unresolved.index]


def parse_index(text: str, names: Sequence[str]) -> Index:
    """Read one index expression, `h + 2 * r`, over iterators of these names.

    Raises:
        UserError: it is none, or names another iterator.
    """
    parser = Parser(Context(), text)
    try:
        found = _BodyParser(parser, names).index()
        if parser._current_token.kind != MLIRTokenKind.EOF:  # pyright: ignore[reportPrivateUsage]
            parser.raise_error("it goes on")
    except ParseError as error:
        hint = f"iterators: {', '.join(names)}"
        raise UserError(f"'{text}' is not an index expression", hint=hint) from error
    return found


class _BodyParser:
    """Recursive descent over the body of one scope."""

    def __init__(self, parser: Parser, names: Sequence[str]):
        self.parser = parser
        self.names = list(names)

    def reads(self) -> list[Read]:
        found = [self.read()]
        while self.parser.parse_optional_punctuation(",") is not None:
            found.append(self.read())
        self.parser.parse_punctuation("]")
        return found

    def expr(self) -> Expr:
        return self._infix(self._term, (("+", "add"), ("-", "sub")))

    def _term(self) -> Expr:
        return self._infix(self._unary, (("*", "mul"), ("/", "div")))

    def _infix(self, operand, table: Sequence[tuple[str, str]]) -> Expr:  # pyright: ignore
        left: Expr = operand()
        while True:
            for sign, name in table:
                if self.parser.parse_optional_punctuation(sign) is not None:  # pyright: ignore
                    left = call(name, left, operand())
                    break
            else:
                return left

    def _unary(self) -> Expr:
        if self.parser.parse_optional_punctuation("-") is not None:
            inner = self._unary()
            return Const(-inner.value) if isinstance(inner, Const) else -inner
        if self.parser.parse_optional_punctuation("(") is not None:
            inner = self.expr()
            self.parser.parse_punctuation(")")
            return inner
        if (number := self.parser.parse_optional_number()) is not None:
            return Const(number)
        name = self.parser.parse_optional_identifier()
        return self.read() if name is None else self._named(name)

    def _named(self, name: str) -> Expr:
        if name in _LITERALS:
            return Const(_LITERALS[name])
        args = self.parser.parse_comma_separated_list(self.parser.Delimiter.PAREN, self.expr)
        element = _element_type(name)
        if element is not None and len(args) == 1:
            return Cast(element, args[0])
        if name not in FUNCTIONS:
            close = suggest(name, FUNCTIONS)
            hint = "" if close is None else f", did you mean '{close}'?"
            self.parser.raise_error(f"unknown scalar function '{name}'{hint}")
        return call(name, *args)

    def read(self) -> Read:
        source = defined_operand(self.parser)
        if not isinstance(source.type, TensorType):
            self.parser.raise_error("a scope reads tensors only")
        index = self.parser.parse_comma_separated_list(self.parser.Delimiter.SQUARE, self.index)
        rank = len(tensor_type(source).get_shape())
        if len(index) != rank:
            self.parser.raise_error(f"a tensor of rank {rank} is read at {len(index)} indices")
        outside: Scalar = 0.0
        if self.parser.parse_optional_keyword("else") is not None:
            literal = self._unary()
            if not isinstance(literal, Const):
                self.parser.raise_error("`else` needs a literal")
            outside = literal.value
        return Read(source, tuple(index), float(outside))

    def index(self) -> Index:
        total = self._index_term()
        while True:
            if self.parser.parse_optional_punctuation("+") is not None:
                total += self._index_term()
            elif self.parser.parse_optional_punctuation("-") is not None:
                total -= self._index_term()
            else:
                return total

    def _index_term(self) -> Index:
        left = self._index_primary()
        while True:
            if self.parser.parse_optional_punctuation("*") is not None:
                right = self._index_primary()
                if left.terms and right.terms:
                    self.parser.raise_error("an index may not multiply iterators")
                left = left * right.constant if left.terms else right * left.constant
            elif self.parser.parse_optional_keyword("floordiv") is not None:
                left = left // self._divisor()
            elif self.parser.parse_optional_keyword("mod") is not None:
                left = left % self._divisor()
            else:
                return left

    def _divisor(self) -> int:
        number = self.parser.parse_integer(allow_boolean=False, allow_negative=False)
        if number == 0:
            self.parser.raise_error("division of an index by zero")
        return number

    def _index_primary(self) -> Index:
        if self.parser.parse_optional_punctuation("-") is not None:
            return -self._index_primary()
        if self.parser.parse_optional_punctuation("(") is not None:
            inner = self.index()
            self.parser.parse_punctuation(")")
            return inner
        if (number := self.parser.parse_optional_integer(allow_boolean=False)) is not None:
            return Index(number)
        name = self.parser.parse_identifier()
        if name not in self.names:
            self.parser.raise_error(f"'{name}' is not an iterator of this scope ({self.names})")
        return Index.iterator(self.names.index(name))


def _element_type(name: str) -> Attribute | None:
    if name in _FLOAT_TYPES:
        return _FLOAT_TYPES[name]
    digits = name.removeprefix("ui").removeprefix("i")
    if not digits.isdigit() or not name.startswith(("i", "ui")):
        return None
    unsigned = Signedness.UNSIGNED if name.startswith("ui") else Signedness.SIGNLESS
    return IntegerType(int(digits), unsigned)

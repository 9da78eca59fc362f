"""Repairs of what the pinned xDSL reads wrongly, in one place.

xDSL 0.75 prints infinities, NaN and some float32 numbers of a `dense<...>` literal in hexadecimal,
as MLIR does, and reads them back as integers: `dense<[0x7F800000]>` becomes 2139095040.0. MLIR
means the number's bits; this repair does, too.

It prints non-ASCII characters of a string as `\\C3\\A4`, and reads such a string back as bytes,
which is not a name or location. MLIR has strings only; the repair reads UTF-8 bytes as a string.

It removes one `_1` from the end of a value's name and adds `_1` where two printed names are equal.
So the name `_1` became empty, which no value may copy, and `a_1_2` (kept as `a_1`) beside two
values `a` was printed as the second of them. The repair removes all such endings, as long as
something is left.
"""

from __future__ import annotations

import re
from typing import Any

import xdsl.ir.core
from xdsl.dialects.builtin import AnyFloat
from xdsl.parser import AttrParser
from xdsl.utils.lexer import Position, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

_Element: Any = AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage]
_to_type = _Element.to_type
_Lexer: Any = MLIRLexer
_lex_string = _Lexer._lex_string_literal


def _to_type_by_bits(element: Any, parser: AttrParser, type_: Any) -> Any:
    if isinstance(type_, AnyFloat) and element.span.text.startswith("0x"):
        raw = int(element.value).to_bytes(type_.size, "little")
        return type_.unpack(raw, 1)[0]
    return _to_type(element, parser, type_)


def _string_of_utf8(lexer: MLIRLexer, start: Position) -> Token[MLIRTokenKind]:
    token = _lex_string(lexer, start)
    if token.kind != MLIRTokenKind.BYTES_LIT:
        return token
    try:
        StringLiteral.from_span(token.span).bytes_contents.decode()
    except UnicodeDecodeError:
        return token
    return Token(MLIRTokenKind.STRING_LIT, token.span)


def install() -> None:
    """Repair reading and naming from now on."""
    _Element.to_type = _to_type_by_bits
    _Lexer._lex_string_literal = _string_of_utf8
    core: Any = xdsl.ir.core
    core._VALUE_NAME_SUFFIX_PATTERN = re.compile(r"(?<=.)(_\d+)+$")

"""Parse IR text into a module, remembering where each operation stands, with errors a user can act
on."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    Float80Type,
    Float128Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnknownLoc,
)
from xdsl.ir import Operation
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    UnregisteredConstructException,
)
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from ...dialects.errors import UserError, did_you_mean, one_line

# The version of the IR text, in the module attribute `VERSION`. It goes up when a text that was
# valid gets another meaning or none; new ops and attributes alone do not change it.
IR_VERSION = 1
VERSION = "isoform.ir_version"
BYTECODE = b"ML\xefR"  # how MLIR's begins
_STAMP = re.compile(
    rf"^[^/\"\n]*\battributes *\{{[^\n]*\b{re.escape(VERSION)} = (\d+)", re.MULTILINE
)


@dataclass(frozen=True)
class SourceText:
    """A named text; `line_offset` is the number of lines of the file before it (split input)."""

    name: str
    text: str
    line_offset: int = 0

    def location(self, position: int) -> str:
        """Return `file:line:column` of a position in the text, line and column counted from 1."""
        line = self.text.count("\n", 0, position) + 1 + self.line_offset
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return f"{self.name}:{line}:{column}"

    @staticmethod
    def decode(name: str, data: bytes, line_offset: int = 0) -> "SourceText":
        """Read bytes as UTF-8 text, behind a byte order mark or not.

        Raises: UserError where they are not.
        """
        try:
            return SourceText(name, data.decode("utf-8-sig"), line_offset)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1 + line_offset
            hint = "write it as text: str(exported.mlir_module()), mlir-opt FILE"
            raise UserError(
                "this is not text (UTF-8)" + (" but MLIR bytecode" if data[:4] == BYTECODE else ""),
                where=f"{name}:{line}",
                hint=hint if data[:4] == BYTECODE else None,
            ) from error


@dataclass(frozen=True)
class SourceLocations:
    """Where each operation of a parsed module stands in its source."""

    source: SourceText
    starts: dict[Operation, int] = field(default_factory=dict[Operation, int])
    # What `{-# external_resources: {NAME: {KEY: VALUE}} #-}` at the end of the text says.
    resources: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def of(self, op: Operation) -> str:
        """Return the location of `op`; for one that a pass made, its `loc` or else the file."""
        if op in self.starts:
            return self.source.location(self.starts[op])
        if isinstance(op.location, UnknownLoc):
            return self.source.name
        return f"{self.source.name}: {op.location}"


class SourceLexer(MLIRLexer):
    """xDSL's lexer, which takes exponential time on a string that is not closed."""

    # The same language as xDSL's expression, but a run of plain characters is never split again.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class SourceParser(Parser):
    """xDSL's parser, with the start of each operation recorded and unknown names explained."""

    def __init__(self, context: Context, source: SourceText) -> None:
        self.source = source
        self.locations = SourceLocations(source)
        self._open: list[int] = []
        super().__init__(context, "", source.name)
        self._resume_from(ParserState(SourceLexer(Input(source.text, source.name))))

    def parse_operation(self) -> Operation:
        """Parse one operation and record where it starts."""
        self._open.append(self._current_token.span.start)
        op = super().parse_operation()
        self.locations.starts[op] = self._open.pop()
        return op

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a number; those of a type that xDSL cannot print are errors."""
        found = super().parse_optional_builtin_int_or_float_attr()
        if found is not None and isinstance(found.type, (Float80Type, Float128Type)):
            self.raise_error(f"a number of type {found.type} is not supported")
        return found

    def _parse_external_resources(self) -> None:
        """Parse `{NAME: {KEY: VALUE, ...}, ...}`, where a value is a string, a number or a word."""
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_group)

    def _parse_external_group(self) -> None:
        name = self._key()
        pairs = self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_pair)
        self.locations.resources[name] = dict(pairs)

    def _parse_external_pair(self) -> tuple[str, str]:
        name, text = self._key(), self.parse_optional_str_literal()
        if text is None:
            text = self._current_token.text
            self._consume_token()
        return name, text

    def _key(self) -> str:
        name = self._parse_token(MLIRTokenKind.BARE_IDENT, "expected a name").text
        self._parse_token(MLIRTokenKind.COLON, "expected `:`")
        return name

    def here(self) -> str:
        """Return the location of the token about to be parsed."""
        return self.source.location(self._current_token.span.start)

    def at_end(self) -> bool:
        """Say whether no token is left."""
        return self._current_token.kind == MLIRTokenKind.EOF

    def undefined_values(self) -> list[str]:
        """Return the names of values that were used and, so far, never defined."""
        return list(self.forward_ssa_references)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        if (op := self.ctx.get_optional_op(name, dialect_stack=stack)) is not None:
            return op
        self._unknown("operation", name, (op.name for op in self.ctx.loaded_ops))

    def _unknown(self, kind: str, name: str, known: Iterable[str]) -> NoReturn:
        """Raise the error for an operation whose name nobody registered."""
        position = self.source.text.find(name, self._open[-1] if self._open else 0)
        where = self.source.location(max(position, 0))
        dialect, dot, _ = name.partition(".")
        dialects = set(self.ctx.registered_dialect_names)
        if dot and dialect not in dialects:
            raise UserError(
                f"unknown dialect '{dialect}' of {kind} '{name}'",
                where=where,
                hint=did_you_mean(dialect, dialects)
                or "--allow-unregistered-dialect accepts it, --plugin adds it",
            )
        raise UserError(f"unknown {kind} '{name}'", where=where, hint=did_you_mean(name, known))


def check_version(source: SourceText) -> None:
    """Refuse a text that a newer isoform wrote, before its new ops are errors of their own.

    Raises: UserError where its stamp is newer than `IR_VERSION`.
    """
    stamp = _STAMP.search(source.text)
    if stamp is not None and int(stamp[1]) > IR_VERSION:
        raise UserError(
            "a newer isoform wrote this",
            where=source.location(stamp.start(1)),
            expected=f"IR version {IR_VERSION} or older",
            found=stamp[1],
            hint="update isoform, or save it there with -o OUT.onnx",
        )


def parse_source(
    context: Context, source: SourceText, *, implicit_module: bool = True
) -> tuple[ModuleOp, SourceLocations]:
    """Parse a module (an empty text is an empty module) and where its operations stand.

    Raises: UserError with file, line and column.
    """
    parser = None
    check_version(source)
    try:
        parser = SourceParser(context, source)
        if implicit_module and parser.at_end():
            return ModuleOp([]), parser.locations
        return parser.parse_module(implicit_module), parser.locations
    except ParseError as error:
        raise _explain_parse_error(error, parser, source) from error
    except RecursionError as error:
        raise UserError("this is nested too deeply", where=source.name) from error
    except NotImplementedError as error:
        where = source.name if parser is None else parser.here()
        raise UserError("a number of this type is not supported", where=where) from error
    except (DiagnosticException, UnregisteredConstructException, ValueError) as error:
        where = source.name if parser is None else parser.here()
        raise UserError(one_line(str(error)), where=where) from error


def _explain_parse_error(
    error: ParseError, parser: SourceParser | None, source: SourceText
) -> UserError:
    """Turn xDSL's error into ours, pointing at the first use of an undefined value."""
    where = source.location(error.span.start)
    message = one_line(error.msg)
    undefined = parser.undefined_values() if parser is not None else []
    if undefined and message.startswith("values used but not defined"):
        return _undefined_value(undefined[0], source)
    match = re.fullmatch(r"'([\w$]+)\.([\w.$]+)' is not registered", message)
    if match is None or parser is None:
        return UserError(message, where=where)
    dialect, name = match.group(1), match.group(0).split("'")[1]
    where = source.location(max(source.text.rfind(name, 0, error.span.end), 0))
    if dialect not in set(parser.ctx.registered_dialect_names):
        hint = did_you_mean(dialect, parser.ctx.registered_dialect_names)
        return UserError(f"unknown dialect '{dialect}' of '{name}'", where=where, hint=hint)
    known = [a.name for a in (*parser.ctx.loaded_types, *parser.ctx.loaded_attrs)]
    return UserError(
        f"unknown type or attribute '{name}'", where=where, hint=did_you_mean(name, known)
    )


def _undefined_value(name: str, source: SourceText) -> UserError:
    """Say that `%name` is used and nothing defines it."""
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), source.text)
    use = re.search(rf"%{re.escape(name)}(?![\w$.-])", code)
    defined = {d for d in re.findall(r"%([\w$.-]+)(?=[^\n%]*[=:])", code) if d != name}
    close = did_you_mean(f"%{name}", (f"%{d}" for d in defined))
    location = source.name if use is None else source.location(use.start())
    return UserError(f"%{name} is used but nothing defines it", where=location, hint=close)

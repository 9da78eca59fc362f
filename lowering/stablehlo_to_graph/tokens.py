"""Tokens, attributes and types of StableHLO text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar

from ...dialects.errors import UserError
from ...dialects.types import Tensor, element_types, tensor
from .literals import dense, resource

Place: TypeAlias = Callable[[int], str]
T = TypeVar("T")

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
      | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
      | (?P<tensor>tensor<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)
      | (?P<value>%[\w$.\-]+(?:\#\d+)?)
      | (?P<symbol>@(?:"[^"]*"|[\w$.\-]+))
      | (?P<hash>\#[\w$.]+)
      | (?P<block>\^\w+)
      | (?P<kind>![\w.]+)
      | (?P<number>-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?![\w.])|\d+))
      | (?P<word>[A-Za-z_][\w$.]*)
      | (?P<mark>->|\{-\#|\#-\}|[{}()\[\]<>,:=?*+\-/|])""",
    re.VERBOSE | re.DOTALL,
)
_ELEMENTS = {str(element): element for element in element_types()}
_SCALAR = re.compile(r"(?:[su]?i\d+|b?f\d+\w*|index|none)\Z")


class Tokens:
    """A text as tokens, each of a kind, and the attributes and types that they make."""

    def __init__(self, text: str, place: Place) -> None:
        self.text, self.place = text, place
        self._next = 0
        self._kinds: list[str] = []
        self._texts: list[str] = []
        self._starts: list[int] = []
        self._types: dict[str, Tensor] = {}
        self.aliases: dict[str, Any] = {}
        end = 0
        for match in _TOKEN.finditer(text):
            if match.start() != end:
                break
            end = match.end()
            kind = match.lastgroup or ""
            if kind != "skip":
                self._kinds.append(kind)
                self._texts.append(match.group())
                self._starts.append(match.start())
        if end != len(text):
            raise UserError(f"unexpected {text[end]!r}", where=place(end))
        self._kinds.append("end")
        self._texts.append("")
        self._starts.append(len(text))

    # --- tokens ---

    @property
    def kind(self) -> str:
        return self._kinds[self._next]

    @property
    def peek(self) -> str:
        return self._texts[self._next]

    @property
    def position(self) -> int:
        return self._starts[self._next]

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        """Raise the error of the token about to be read."""
        at = self.position if position is None else position
        raise UserError(message, where=self.place(at))

    def take(self, kind: str = "") -> str:
        """The next token, of this kind."""
        if kind and self.kind != kind:
            self.fail(f"expected a {kind}, found '{self.peek[:40]}'")
        if self.kind == "end":
            self.fail("the text ends too early")
        self._next += 1
        return self._texts[self._next - 1]

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these, and no string."""
        return self.peek in texts and self.kind != "string"

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.at(text):
            self._next += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Take this token."""
        if not self.accept(text):
            self.fail(f"expected '{text}', found '{self.peek[:40]}'")

    def listed(self, end: str, item: Callable[[], T]) -> list[T]:
        """Items with commas between them, up to a closing mark."""
        found: list[T] = []
        while not self.accept(end):
            found.append(item())
            if not self.at(end):
                self.expect(",")
        return found

    def skip_balanced(self) -> str:
        """Skip `(...)`, and return its text."""
        start, depth = self.position, 0
        while True:
            text = self.peek if self.kind == "mark" else ""
            self.take()
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return self.text[start : self.position].strip()

    # --- types ---

    def type(self) -> Tensor:
        """A tensor type.

        Raises: UserError of another type, a dim without a number or an unknown element type.
        """
        position = self.position
        if self.kind != "tensor":
            self.fail(f"a tensor type is expected, found '{self._other_type()}'", position)
        text = self.take()
        if text not in self._types:
            self._types[text] = self._tensor(text[7:-1].strip(), position)
        return self._types[text]

    def types(self) -> list[Tensor]:
        """One type, or several in parentheses."""
        return self.listed(")", self.type) if self.accept("(") else [self.type()]

    def _other_type(self) -> str:
        start = self.position
        self.take()
        return self.text[start : self.position].strip()[:60]

    def _tensor(self, text: str, position: int) -> Tensor:
        body = text.split(",")[0].strip()
        *dims, element = body.split("x")
        if "?" in dims:
            self.fail("a size is not fixed ('?'): export it with numbers for all sizes", position)
        if "complex<" in body:
            self.fail("complex numbers are not supported", position)
        if element not in _ELEMENTS or not all(d.isdecimal() for d in dims):
            self.fail(f"tensor type '{text}' is not supported", position)
        return tensor([int(d) for d in dims], _ELEMENTS[element])

    # --- attributes ---

    def attribute(self) -> Any:
        """An attribute as a Python value: number, string, bool, list, dict, array, type, symbol."""
        kind, text = self.kind, self.peek
        match kind, text:
            case "number", _:
                return self._number()
            case "string", _:
                found = self.take()[1:-1]
                self._suffix()
                return found
            case "tensor", _:
                return self.type()
            case "symbol" | "kind", _:
                return self.take()
            case "hash", _:
                return self._hash()
            case "mark", "[":
                self.take()
                return self.listed("]", self.attribute)
            case "mark", "{":
                return self.dictionary()
            case "mark", "<":
                return self._fields()
            case "word", "dense":
                return self._dense()
            case "word", "dense_resource":
                return self._resource()
            case "word", "array":
                return self._array()
            case "word", "true" | "false":
                return self.take() == "true"
            case "word", _:
                return self.take()
            case _:
                self.fail(f"unexpected '{text[:40]}'")

    def _number(self) -> int | float:
        text = self.take("number")
        if self.at(":") and _SCALAR.match(self._texts[self._next + 1]):
            self._suffix()
        if "0x" in text:
            return int(text, 16)
        return float(text) if any(c in text for c in ".eE") else int(text)

    def _suffix(self) -> None:
        """Skip `: i64` after a number."""
        if self.at(":") and _SCALAR.match(self._texts[self._next + 1]):
            self.take()
            self.take()

    def dictionary(self) -> dict[str, Any]:
        """`{key = value, unit}`."""
        self.expect("{")
        return dict(self.listed("}", self._entry))

    def _entry(self) -> tuple[str, Any]:
        key = self.take().strip('"')
        return key, self.attribute() if self.accept("=") else True

    def _fields(self) -> Any:
        """`<key = value, ...>`, or `<WORD>` or `<name WORD>`, whose last word is returned."""
        self.expect("<")
        if self._texts[self._next + 1] == "=":
            return dict(self.listed(">", self._entry))
        found: Any = None
        while not self.accept(">"):
            if self.at("{"):
                found = self.dictionary()
            else:
                found = self.attribute()
            self.accept(",")
        return found

    def _hash(self) -> Any:
        position, name = self.position, self.take()
        if name == "#stablehlo.conv":
            self.expect("<")
            found = self.dim_numbers()
            self.expect(">")
            return found
        if self.at("<"):
            return self._fields()
        if name not in self.aliases:
            self.fail(f"attribute '{name}' is not defined before its use", position)
        return self.aliases[name]

    def dim_numbers(self) -> list[list[Any]]:
        """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        first = self.attribute()
        self.expect("x")
        second = self.attribute()
        self.expect("->")
        return [first, second, self.attribute()]

    def _array(self) -> list[Any]:
        self.take()
        self.expect("<")
        self.take("word")
        if self.accept(">"):
            return []
        self.expect(":")
        return self.listed(">", self.attribute)

    def _dense(self) -> Any:
        """`dense<...> : tensor<...>` as an array; its type is kept beside it."""
        self.take()
        self.expect("<")
        position = self.position
        data = [] if self.at(">") else self._elements()
        self.expect(">")
        self.expect(":")
        type_ = self.type()
        try:
            return dense(data, type_)
        except (ValueError, OverflowError) as error:
            self.fail(f"the literal does not fit {type_}: {error}", position)

    def _elements(self) -> Any:
        """Nested lists of the texts of numbers, a text alone, or a string of bytes."""
        if self.accept("["):
            return self.listed("]", self._elements)
        if self.at("("):
            self.fail("complex numbers are not supported")
        return self.take()

    def _resource(self) -> Any:
        self.take()
        self.expect("<")
        position, name = self.position, self.take()
        self.expect(">")
        self.expect(":")
        type_ = self.type()
        try:
            return resource(self.text, name.strip('"'), type_)
        except ValueError as error:
            self.fail(str(error), position)


__all__ = ["Place", "Tokens"]

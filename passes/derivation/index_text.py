"""Read index expressions as people write them: `h + 2 * r`, `(h + 1) floordiv 2`, `h mod 2`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...dialects.errors import UserError
from ...dialects.index import Index

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w$.]*)|([-+*()]))")
_DIVISIONS = ("floordiv", "mod")


def words(text: str) -> list[str]:
    """The iterator names in an expression."""
    return [w for w in re.findall(r"[A-Za-z_][\w$.]*", text) if w not in _DIVISIONS]


def parse_indices(texts: Sequence[str], names: Sequence[str]) -> list[Index]:
    """Expressions over iterators of these names.

    Raises:
        UserError: one cannot be read, or names another iterator.
    """
    return [_Reader(text, names).whole() for text in texts]


class _Reader:
    def __init__(self, text: str, names: Sequence[str]):
        self.text = text
        self.names = list(names)
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error()
            self.tokens.append(found[0].strip())
            at = found.end()
        self.tokens.append("")

    def error(self) -> UserError:
        return UserError(
            f"'{self.text}' is no index expression", hint=f"iterators: {', '.join(self.names)}"
        )

    def whole(self) -> Index:
        made = self._sum()
        if self.tokens != [""]:
            raise self.error()
        return made

    def _take(self) -> str:
        return self.tokens.pop(0) if self.tokens[0] else ""

    def _sum(self) -> Index:
        total = self._product()
        while self.tokens[0] in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            total += self._product() * sign
        return total

    def _product(self) -> Index:
        value = self._atom()
        while self.tokens[0] in ("*", *_DIVISIONS):
            operation, other = self._take(), self._atom()
            if operation == "*" and not value.terms:
                value, other = other, value
            if other.terms or (operation != "*" and other.constant < 1):
                raise self.error()
            n = other.constant
            if operation == "*":
                value = value * n
            else:
                value = value // n if operation == "floordiv" else value % n
        return value

    def _atom(self) -> Index:
        token = self._take()
        if token.isdigit():
            return Index(int(token))
        if token == "-":
            return -self._atom()
        if token == "(":
            inner = self._sum()
            if self._take() != ")":
                raise self.error()
            return inner
        if token in self.names:
            return Index.iterator(self.names.index(token))
        raise self.error()

"""A node as the writers of nests see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...dialects.types import Array
from .code import Code, NestBuffer


class NoNest(Exception):
    """Say that this use of an op has no nest: onnx.reference runs it. No user sees it."""


@dataclass
class IndexAlarm:
    """Which operand holds indices, and the size of the dim they select from.

    Several sizes are those of the columns along the last dim.
    """

    operand: int
    sizes: tuple[int, ...]


@dataclass
class KeptNode:
    """Operands and results by their ONNX position, None where omitted.

    Attributes:
        attributes: those that are given.
        known: the data of an operand where compilation knows them, else None.
        alarm: set by a writer whose nests may set the alarm.
    """

    op_type: str
    attributes: dict[str, Any]
    version: int
    code: Code
    operands: Sequence[NestBuffer | None]
    results: Sequence[NestBuffer | None]
    known: Callable[[int], Array | None]
    alarm: IndexAlarm | None = None

    def __getitem__(self, k: int) -> NestBuffer:
        """Operand `k`. Raises NoNest where it is omitted."""
        found = self.operands[k] if k < len(self.operands) else None
        if found is None:
            raise NoNest
        return found

    def has(self, k: int) -> bool:
        return k < len(self.operands) and self.operands[k] is not None

    @property
    def result(self) -> NestBuffer:
        """The first result. Raises NoNest where nothing reads it."""
        if self.results[0] is None:
            raise NoNest
        return self.results[0]

    def second(self) -> NestBuffer | None:
        return self.results[1] if len(self.results) > 1 else None

    def get(self, name: str, default: Any) -> Any:
        """An attribute; strings as text."""
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else found

    def axis(self, rank: int, default: int) -> int:
        return int(self.get("axis", default)) % max(rank, 1)

    def int_operand(self, k: int, default: int | None = None) -> int:
        """A scalar that must be known. Raises NoNest where it is not."""
        if not self.has(k) and default is not None:
            return default
        found = self.known(k)
        if found is None or found.size != 1:
            raise NoNest
        return int(found.reshape(-1)[0])


Writer: TypeAlias = Callable[[KeptNode], None]

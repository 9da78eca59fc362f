"""Schedules of kernels: attributes that passes set and printers read."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from .errors import UserError
from .kernel import KernelOp

TILES = "tiles"
"""The entry with the number of tiles that a product works on at a time."""

Entry: TypeAlias = "int | str"


@dataclass(frozen=True)
class Schedule:
    """A point of a kernel's schedule space: entries by name; the generator chooses the others.

    Its text is canonical (`depth=256 rows=6`): equal points have equal texts. On an op it is the
    attribute `schedule {depth = 256 : i64, rows = 6 : i64}`.
    """

    entries: tuple[tuple[str, Entry], ...] = ()

    @classmethod
    def of(cls, entries: Mapping[str, Entry]) -> Schedule:
        """The point with these entries."""
        return cls(tuple(sorted(entries.items())))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The point that a text stands for.

        Raises:
            UserError: a word is not NAME=VALUE.
        """
        found: dict[str, Entry] = {}
        for word in text.split():
            name, equals, value = word.partition("=")
            if not (name and equals and value):
                raise UserError("a schedule is NAME=VALUE ...", where="schedule", found=word)
            found[name] = int(value) if value.isdecimal() else value
        return cls.of(found)

    @classmethod
    def on(cls, op: KernelOp, other: Container[str] = ()) -> Schedule:
        """The entries of an op's schedule that are numbers or words, but for the `other` ones."""
        data = {} if op.schedule is None else op.schedule.data
        found = {name: _entry(a) for name, a in data.items() if name not in other}
        return cls.of({name: entry for name, entry in found.items() if entry is not None})

    @property
    def text(self) -> str:
        """The canonical text."""
        return " ".join(f"{name}={value}" for name, value in self.entries)

    def as_dict(self) -> dict[str, Entry]:
        """The entries by name."""
        return dict(self.entries)

    def put_on(self, op: KernelOp) -> None:
        """Set these entries of an op's schedule."""
        before = {} if op.schedule is None else op.schedule.data
        new = {name: _attribute(value) for name, value in self.entries}
        if before or new:
            op.properties["schedule"] = DictionaryAttr(dict(sorted({**before, **new}.items())))


def _entry(attribute: Attribute) -> Entry | None:
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case _:
            return None


def _attribute(entry: Entry) -> Attribute:
    return StringAttr(entry) if isinstance(entry, str) else IntegerAttr(entry, i64)


def tile_of(op: KernelOp) -> tuple[int, ...] | None:
    """The tile extents of the result's traversals, if the schedule has them."""
    found = op.schedule.data.get("tile") if op.schedule is not None else None
    return tuple(int(n) for n in found.get_values()) if isinstance(found, DenseArrayBase) else None


def tiles_of(op: KernelOp) -> int | None:
    """The number of tiles worked on at a time, if the schedule has it."""
    found = op.schedule.data.get(TILES) if op.schedule is not None else None
    return found.value.data if isinstance(found, IntegerAttr) else None

"""One call of generated code: the kernel, and what its argument table holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue

from ...dialects.kernel import CallOp
from ...dialects.types import Array
from .emit.module import KernelCode


@dataclass(frozen=True)
class BufferStart:
    """The start of a value's buffer: an outside array's number, or an address in the arena or of a
    constant.

    A program's inputs are its first outside arrays, the outputs handed out follow.
    """

    address: int = 0
    outside: int | None = None
    constant: bytes | None = None


@dataclass(frozen=True)
class Argument:
    """An entry of a kernel's argument table: a value's buffer, or data made at compile time.

    `offset` counts elements from the start of the buffer. An `alarm` is an i64 that is 0 before
    each run and that the kernel sets where an index of this gather is out of range. `outside` is
    the number of an outside array, `arena` an offset in bytes in the program's arena. An entry
    without any of these is filled when the program is linked.
    """

    value: SSAValue | None = None
    data: Array | None = None
    offset: int = 0
    alarm: CallOp | None = None
    outside: int | None = None
    arena: int | None = None

    @property
    def is_linked(self) -> bool:
        """Whether the entry is filled when the program is linked."""
        given = (self.value, self.data, self.alarm, self.outside, self.arena)
        return all(entry is None for entry in given)


@dataclass(frozen=True)
class KernelCall:
    """One kernel to run and its arguments, the result's buffer last.

    One with a `body` runs that in a loop, as its first argument says (runtime/control_ir.py).
    """

    code: KernelCode
    arguments: tuple[Argument, ...]
    body: CallBody | None = None


class Places(Protocol):
    """A lowered program."""

    def place(self, argument: Argument) -> tuple[BufferStart, int]:
        """Where an entry of an argument table points: a start, and the bytes after it."""
        ...


class CallBody(Places, Protocol):
    """What a loop runs: a lowered body."""

    @property
    def calls(self) -> Sequence[KernelCall]:
        """The calls of one iteration."""
        ...

    def patches(self) -> Sequence[tuple[int, int, int]]:
        """Each entry of its argument tables that holds an outside array's address: its position in
        all of them, the array's number, the bytes after its start."""
        ...

"""Store whole compiled programs on disk: kernels, packed weights and the table of calls.

A file is a magic number, the header's checksum and size, the header (JSON), and then the bytes that
the header names by offset and size: objects, and constants as the kernels read them. Addresses
are stored as pairs (buffer, offset); the buffers are the outside arrays (inputs, and outputs handed
out), the arena and the constants.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...dialects.cache_folder import CacheFolder
from ...dialects.errors import UserError
from ...dialects.files import atomic_write
from ...dialects.types import Array
from .runtime.execute import ALIGNMENT, Alarm, Execution, Outside, Patch, View, alarms_in, room
from .runtime.jit import Library
from .runtime.runner import LOOP, ROW, KernelTable, Pool

if TYPE_CHECKING:  # running a compiled program does not import the compiler
    from xdsl.ir import SSAValue

    from .kernel_call import BufferStart, KernelCall
    from .session import CpuSession

MAGIC = b"isoform\x04"
_HEAD = len(MAGIC) + 4 + 8  # then checksum and size of the header
ARENA, OUTSIDE = -1, -2
# A stored program may take this share of the cache; larger ones are compiled each time.
SHARE = 4

# (buffer, offset): a constant's number, or `ARENA` and an offset; `OUTSIDE - k` is outside array
# number k.
Pair: TypeAlias = "tuple[int, int]"
# Symbol, items, arguments; of a loop also the lines of its body.
Line: TypeAlias = "tuple[str, int, Sequence[Pair], Sequence[Line] | None]"


class StoredSession:
    """A program compiled earlier, by this or another process.

    Attributes:
        notes: the notes given to `save`.
    """

    def __init__(self, header: Mapping[str, Any], data: Array, threads: int) -> None:
        self.notes = header["notes"]
        self.header = header
        self.data = data  # contains the constants
        self._arena = room(header["arena"])  # unwritten elements are 0, as in a fresh session
        self._constants = [data[start : start + size] for start, size in header["constants"]]
        objects = [data[start : start + size].tobytes() for start, size in header["objects"]]
        self._library = Library(objects)
        self._patches: list[Patch] = []
        self._tables: list[Array] = []
        inputs, handed = (
            [Outside(n, np.dtype(d), tuple(shape)) for n, d, shape in header[key]]
            for key in ("inputs", "handed_out")
        )
        self.execution = Execution(inputs, handed, self._patches, threads)
        self.execution.steps.append(KernelTable(self._rows(header["rows"])[0]))
        self.execution.outputs = {name: self._view(view) for name, *view in header["outputs"]}
        self.execution.alarms = [
            Alarm(0, row, self._view(view) if view else None, tuple(sizes), where)
            for row, sizes, where, *view in header["alarms"]
        ]
        self.execution.alarmed = alarms_in(self._arena, len(header["alarms"]))

    @property
    def labels(self) -> list[tuple[str, str]]:
        """As `CpuSession.labels`."""
        return [(place, symbol) for place, symbol in self.header["labels"]]

    @property
    def native_calls(self) -> int:
        """Count native calls so far, one per run."""
        return self.execution.calls

    @property
    def arena_bytes(self) -> int:
        """Bytes of all intermediate buffers together."""
        return self._arena.nbytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of constants and packed weights."""
        return sum(constant.nbytes for constant in self._constants)

    @property
    def pool(self) -> Pool:
        """The number of threads that the program uses."""
        return self.execution.pool

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Inputs by name, of the exact shapes and dtypes.

        Raises:
            UserError: an input is missing or has another shape or dtype.
        """
        return self.execution.run(inputs)

    def run_into(
        self,
        inputs: Mapping[str, Array],
        out: Mapping[str, Array],
        shared: Collection[str] = (),
    ) -> dict[str, Array]:
        """As `run`, with arrays that outputs are written into, by name.

        Args:
            shared: as in `Execution.run`.
        """
        return self.execution.run(inputs, out, shared)

    def close(self) -> None:
        """Stop the worker threads."""
        self.execution.close()

    def _rows(self, lines: Sequence[Line], top: bool = True) -> tuple[Array, Array]:
        """Make the table of calls of a program (`top`) or of a loop's body, and their arguments."""
        rows = np.zeros(len(lines), ROW)
        block = np.zeros(sum(len(arguments) for _, _, arguments, _ in lines), np.uint64)
        self._tables += [rows, block]
        end = 0
        for row, (symbol, items, arguments, body) in zip(rows, lines, strict=True):
            table = block[end : end + len(arguments)]
            end += len(arguments)
            for position, (buffer, offset) in enumerate(arguments):
                if buffer > OUTSIDE:
                    table[position] = self._address(buffer) + offset
                elif top:  # the loop around a body does this for those of the body
                    self._patches.append(Patch(table, position, OUTSIDE - buffer, offset))
            row["args"] = table.ctypes.data
            row["items"] = items
            if body is None:
                row["fn"] = self._library.address(symbol)
                continue
            row["flags"] = LOOP
            table[1:3] = [array.ctypes.data for array in self._rows(body, top=False)]
        return rows, block

    def _address(self, buffer: int) -> int:
        return (self._arena if buffer == ARENA else self._constants[buffer]).ctypes.data

    def _view(self, saved: Sequence[Any]) -> View:
        dtype, shape, strides, (buffer, start), offset, size = saved
        known = np.dtype(dtype)
        inside = tuple(shape), tuple(strides)
        if buffer <= OUTSIDE:
            return View(known, *inside, offset=offset, size=size, outside=OUTSIDE - buffer)
        return View(known, *inside, self._address(buffer) + start, offset, size)


class ProgramStore:
    """Stored programs in the cache folder; unreadable or unwritable ones count as missing."""

    def __init__(self, folder: CacheFolder | None = None) -> None:
        self.folder = CacheFolder() if folder is None else folder

    def load(self, key: str, threads: int) -> StoredSession | None:
        """The program stored under a key, ready to run; None if it is missing or damaged."""
        file = self.folder.file(f"{key}.program")
        if file is None:
            return None
        found = read_program(file)
        if found is None:
            return None
        self.folder.touch(file)
        return StoredSession(*found, threads)

    def save(self, key: str, session: CpuSession, notes: Any = None) -> bool:
        """Store a program, if it is one native call and not larger than its share."""
        file = self.folder.file(f"{key}.program")
        size = session.packed_bytes + sum(map(len, session.objects))
        if file is None or size > self.folder.limit // SHARE:
            return False
        with contextlib.suppress(OSError, UserError):
            self.folder.prepare()
            write_program(file, session, notes)
            self.folder.written(file)
            return True
        return False


# --- describing a session -----------------------------------------------------------------------


def _lines(session: CpuSession) -> list[Line] | None:
    """The rows of the one native table; None if there is host work."""
    if len(session.segments) != 1 or session.segments[0].table is None:
        return None
    (segment,) = session.segments
    assert segment.table is not None
    return _lines_of(session, segment.calls, segment.table.rows)


def _lines_of(session: CpuSession, calls: Sequence[KernelCall], rows: Array) -> list[Line]:
    lines: list[Line] = []
    for call, row in zip(calls, rows, strict=True):
        address = int(row["args"])
        entries = [session.entries[address, k] for k in range(len(call.arguments))]
        pairs = [_pair(session, start, shift) for start, shift in entries]
        body = None
        if call.body is not None:
            inner = session.nested[int(session.tables[address][1])]
            body = _lines_of(session, call.body.calls, inner)
        lines.append((call.code.symbol, call.code.items, pairs, body))
    return lines


def _pair(session: CpuSession, start: BufferStart, shift: int = 0) -> Pair:
    if start.outside is not None:
        return OUTSIDE - start.outside, shift
    if start.constant is not None:
        return list(session.kept).index(start.constant), shift
    return ARENA, start.address - session.arena.ctypes.data + shift


def _arrays(arrays: Sequence[Outside]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(a.name, a.dtype.name, a.shape) for a in arrays]


def _outputs(session: CpuSession) -> list[tuple[Any, ...]]:
    views = session.execution.outputs
    return [(n, *_saved(session, session.outputs[n], view)) for n, view in views.items()]


def _alarms(session: CpuSession) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for op, alarm in zip(session.alarming, session.execution.alarms, strict=True):
        value = session.indices_of(op)
        saved = () if value is None or alarm.indices is None else (value, alarm.indices)
        indices = _saved(session, *saved) if saved else ()
        found.append((alarm.row, alarm.sizes, alarm.where, *indices))
    return found


def _saved(session: CpuSession, value: SSAValue, view: View) -> tuple[Any, ...]:
    pair = _pair(session, session.start(value))
    return view.dtype.name, view.shape, view.strides, pair, view.offset, view.size


# --- the file -----------------------------------------------------------------------------------


def write_program(file: Path, session: CpuSession | StoredSession, notes: Any = None) -> None:
    """Write a compiled program.

    Raises:
        UserError: it has ops without native code, or the file cannot be written.
    """
    if isinstance(session, StoredSession):
        _write_file(file, session.header, [session.data.data])
        return
    lines = _lines(session)
    if lines is None:
        names = ", ".join(session.host_seconds) or "no kernels at all"
        raise UserError(f"it cannot be stored: ops without native code ({names})")
    objects = [np.frombuffer(data, np.uint8) for data in dict.fromkeys(session.objects)]
    constants = [a.reshape(-1).view(np.uint8) for a in session.kept.values()]
    entries: list[tuple[int, int]] = []
    start, checksum = 0, 0
    for part in (*constants, *objects):
        entries.append((start, part.nbytes))
        start += -(-part.nbytes // ALIGNMENT) * ALIGNMENT
    for part in _padded([*constants, *objects]):
        checksum = zlib.crc32(part, checksum)
    header = {
        "notes": notes,
        "arena": session.arena.nbytes,
        "inputs": _arrays(session.execution.inputs),
        "handed_out": _arrays(session.execution.handed_out),
        "outputs": _outputs(session),
        "alarms": _alarms(session),
        "rows": lines,
        "labels": session.labels,
        "constants": entries[: len(constants)],
        "objects": entries[len(constants) :],
        "size": start,
        "checksum": checksum,
    }
    _write_file(file, header, _padded([*constants, *objects]))


def _write_file(file: Path, header: Mapping[str, Any], parts: Sequence[Any]) -> None:
    text = json.dumps(header).encode()
    with atomic_write(file) as out:
        out.write(MAGIC + zlib.crc32(text).to_bytes(4, "little"))
        out.write(len(text).to_bytes(8, "little") + text)
        for part in parts:
            out.write(part)


def _padded(parts: Sequence[Array]) -> list[Any]:
    """The parts, each followed by padding to a multiple of the alignment."""
    padded: list[Any] = []
    for part in parts:
        padded += [part.data, bytes(-part.nbytes % ALIGNMENT)]
    return padded


def read_program(file: Path) -> tuple[Mapping[str, Any], Array] | None:
    """Header and bytes of a stored program with valid checksums."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
            if len(head) < _HEAD or not head.startswith(MAGIC):
                return None
            checksum = int.from_bytes(head[len(MAGIC) : len(MAGIC) + 4], "little")
            size = int.from_bytes(head[len(MAGIC) + 4 :], "little")
            text = stream.read(min(size, file.stat().st_size))
            if zlib.crc32(text) != checksum:
                return None
            header = json.loads(text)
            data = room(header["size"])
            if stream.readinto(data.data) != len(data):
                return None
    except OSError:
        return None
    return (header, data) if zlib.crc32(data.data) == header["checksum"] else None

"""Write files whole or not at all: aside first, then one rename."""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from .errors import UserError, did_you_mean

# Temporary files that are being written.
_UNFINISHED: set[Path] = set()
# Files that are open, by path, inode, size and time.
_OPEN: "WeakValueDictionary[tuple[str, int, int, int], ArrayFile]" = WeakValueDictionary()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """Open a binary file beside `path` that replaces it when the block ends without an error.

    A failure in the block leaves `path` unchanged and no temporary file. A path that is
    not a regular file (`/dev/stdout`, a pipe) cannot be replaced and is written directly.

    Raises: UserError where the folder is missing or may not be written, or the disk is full.
    """
    destination = Path(os.path.realpath(path))
    try:
        if destination.exists() and not destination.is_file() and not destination.is_dir():
            aside, stream = None, destination.open("wb")
        else:
            aside, stream = _open_aside(destination)
    except OSError as error:
        raise cannot("write", path, error) from error
    try:
        with stream:
            yield stream
        if aside is not None:
            aside.replace(destination)
            _UNFINISHED.discard(aside)
    except BaseException as error:
        if aside is not None:
            aside.unlink(missing_ok=True)
            _UNFINISHED.discard(aside)
        if isinstance(error, OSError):  # the disk is full, a quota or limit is met
            raise cannot("write", path, error) from error
        raise


def remove_unfinished() -> None:
    """Remove temporary files that are being written: the process is about to end at once."""
    for aside in list(_UNFINISHED):
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Replace the file at `path` by `content` (text as UTF-8), or leave it as it was.

    Raises: UserError where it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_write(path) as stream:
        stream.write(data)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Read the file at `path`.

    Raises: UserError where it is missing or cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise cannot("read", path, error) from error


def check_outputs(outputs: Sequence[str | None], sources: Sequence[str | None] = ()) -> None:
    """Refuse files that cannot be written, or would replace another, before any work is done.

    Args:
        sources: files that are read, which no output may replace.

    Raises: UserError where a folder is missing, a path is a folder, or two paths are one file.
    """
    files = [path for path in outputs if path not in (None, "-")]
    taken = {os.path.realpath(path): "it is read" for path in sources if path not in (None, "-")}
    for path in files:
        real = Path(os.path.realpath(path))
        if not real.parent.is_dir():
            raise UserError("cannot write file: its folder does not exist", where=path)
        if real.is_dir():
            raise UserError("cannot write file: Is a directory", where=path)
        if real.is_file() or not real.exists():  # not a pipe or a device
            if str(real) in taken:
                raise UserError(f"cannot write file: {taken[str(real)]}, too", where=path)
            taken[str(real)] = "another output goes there"


class ArrayFile:
    """An open file whose parts are read as arrays when they are asked for.

    It is opened once, so a file that is renamed over it changes nothing; one that is written into
    is noticed. Nothing is mapped: to read a mapped file that has become shorter ends the process.

    Raises: OSError where it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._stream = open(path, "rb")  # noqa: SIM115 - open as long as arrays may be asked for
        self._state = _state(os.fstat(self._stream.fileno()))

    @staticmethod
    def of(path: str | os.PathLike[str]) -> "ArrayFile":
        """The file at a path, opened once for all that ask while it stays the same."""
        key = (os.path.realpath(path), *_state(os.stat(path)))
        file = _OPEN.get(key)
        if file is None:
            file = _OPEN[key] = ArrayFile(path)
        return file

    def read(self, start: int, size: int) -> bytes:
        """Bytes of the file. Raises UserError as `array`."""
        return self.array(np.dtype(np.uint8), start, (size,)).tobytes()

    def array(self, dtype: np.dtype[Any], start: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array whose data begin at a byte of the file.

        Raises: UserError where the file is too short, cannot be read, or was written into.
        """
        found = np.empty(math.prod(shape), dtype)
        left: memoryview = found.view(np.uint8).data
        try:
            while left and (count := os.preadv(self._stream.fileno(), [left], start)):
                left, start = left[count:], start + count
            changed = _state(os.fstat(self._stream.fileno())) != self._state
        except OSError as error:
            raise cannot("read", self.path, error) from error
        if left or changed:
            text = "the file changed after it was opened" if changed else "the file is too short"
            raise UserError(text, where=os.fspath(self.path))
        return found.reshape(shape)


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def similar_name(path: str | os.PathLike[str]) -> str | None:
    """The hint for a missing file: the closest name beside it, if one is close."""
    file = Path(path)
    with suppress(OSError):
        others = [other.name for other in file.parent.iterdir() if other.name != file.name]
        return did_you_mean(file.name, others)
    return None


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a file as JSON.

    UserError: it cannot be read, is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(read_whole(path))
    except ValueError as error:
        raise UserError("this is not JSON", where=os.fspath(path)) from error
    except RecursionError as error:
        raise UserError("this JSON is nested too deeply", where=os.fspath(path)) from error


def hash_of_sources(paths: Sequence[Path]) -> str:
    """A hash of the contents of Python files, and of those in folders and below, by name."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(path.parent).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def cannot(verb: str, path: str | os.PathLike[str], error: OSError) -> UserError:
    """Turn an operating system's refusal about `path` into a `UserError`."""
    where = os.fspath(path) or "''"
    return UserError(f"cannot {verb} file: {error.strerror or error}", where=where)


def _open_aside(destination: Path) -> tuple[Path, IO[bytes]]:
    """Create a file with the usual permissions in the folder of `destination`."""
    if destination.is_dir():
        raise IsADirectoryError(21, "Is a directory")
    handle, name = tempfile.mkstemp(prefix=f".{destination.name[:100]}.", dir=destination.parent)
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(handle, 0o666 & ~mask)
    _UNFINISHED.add(Path(name))
    return Path(name), os.fdopen(handle, "wb")

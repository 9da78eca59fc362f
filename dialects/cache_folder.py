"""The folder that holds compiled code: its path and its size limit.

A folder that cannot be used means no cache, never an error. Files are written aside and renamed, so
no reader sees half a file; several processes may read, write and evict at the same time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from functools import cache
from pathlib import Path

from .errors import UserError, warn
from .files import write_whole

LIMIT_MIB = 1024

# A sweep looks at every file: a quarter of a second for 30,000. So short processes share one sweep:
# this file's age shows when the folder was last swept.
SWEPT = ".swept"
SWEEP_AFTER = 3600.0  # seconds


class CacheFolder:
    """A folder of files that anybody may delete at any time.

    Units: `limit` is bytes. When the folder holds more, the least recently used files are deleted.
    """

    def __init__(self, path: Path | str | None = None, limit: int | None = None) -> None:
        self.path = safe(Path(path) if path is not None else default_folder())
        self.limit = default_limit() if limit is None else limit
        self._written = 0  # since the last sweep, in bytes
        self._asked = False  # whether the age of the last sweep was checked

    @property
    def usable(self) -> bool:
        """Whether there is a folder with a limit above zero."""
        return self.path is not None and self.limit > 0

    def file(self, name: str) -> Path | None:
        """Where a file of this name is, or would be; None without a folder."""
        return self.path / name if self.path is not None and self.usable else None

    def touch(self, file: Path) -> None:
        """Mark a file as used."""
        with contextlib.suppress(OSError):
            os.utime(file)

    def prepare(self) -> None:
        """Make the folder. Raises OSError where that is impossible."""
        if self.path is not None:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, file: Path, data: bytes) -> None:
        """Write a whole file, or nothing if that is impossible."""
        with contextlib.suppress(OSError, UserError):
            self.prepare()
            write_whole(file, data)
            self.written(file)

    def written(self, file: Path) -> None:
        """Count a written file; sweep now and then."""
        with contextlib.suppress(OSError):
            self._written += file.stat().st_size
            if self._written > self.limit // 16 or self._is_due(file.parent):
                self._written = 0
                self._sweep(file)

    def _is_due(self, folder: Path) -> bool:
        """Whether no process swept lately. Checked once; afterwards the bytes written count."""
        if self._asked:
            return False
        self._asked = True
        try:
            return time.time() - (folder / SWEPT).stat().st_mtime > SWEEP_AFTER
        except FileNotFoundError:
            return True

    def _sweep(self, newest: Path) -> None:
        """Delete the least recently used files until the rest is within the limit."""
        (newest.parent / SWEPT).touch()
        found: list[tuple[float, int, str]] = []
        with os.scandir(newest.parent) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may be sweeping too
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode):
                        found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            if path != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size


@cache
def safe(path: Path | None) -> Path | None:
    """The folder, unless others may write to it: code in it is run. A warning says so, once."""
    try:
        status = None if path is None else path.stat()
    except OSError:  # it is not there yet
        return path
    if path is None or status is None or os.name != "posix":
        return path
    if status.st_uid not in (os.getuid(), 0):
        warn("this cache folder belongs to another user: it is not used", str(path))
        return None
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        hint = f"chmod go-w {path}"
        warn(f"others may write to this cache folder: it is not used ({hint})", str(path))
        return None
    return path


def default_folder() -> Path | None:
    """The cache folder: $ISOFORM_CACHE, else a folder in the home; None without a home."""
    named = os.environ.get("ISOFORM_CACHE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "isoform"
    except RuntimeError:
        return None


def default_limit() -> int:
    """Bytes that the folder may hold: $ISOFORM_CACHE_LIMIT (in MiB; 0 is not cache), else 1 GiB.

    Raises: UserError where the variable holds something else.
    """
    given = os.environ.get("ISOFORM_CACHE_LIMIT", str(LIMIT_MIB))
    if not given.isdecimal():
        raise UserError(
            "the cache's limit is a whole number of MiB", where="ISOFORM_CACHE_LIMIT", found=given
        )
    return int(given) << 20


def tuned_file() -> Path | None:
    """The file of this user's tuned kernels, whether it exists or not; None without a folder."""
    folder = CacheFolder()
    if folder.path is None or not folder.usable:
        return None
    return folder.path / "costs" / "tuned.json"

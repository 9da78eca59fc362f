"""The measured choices that all programs of a user share: one cost file for each kind of machine.

It lies in the cache folder, under a name that says what its times depend on, the sources of the
kernels included: those of other kernels are not found, and the oldest such files go in time.
Several processes may read and add at the same time: a writer reads what is there, adds its own, and
replaces the file whole, under a lock where the system has one.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Generator
from pathlib import Path

from ...dialects.cache_folder import CacheFolder
from ...dialects.errors import UserError
from ...lowering.targets import CPU
from ..cost_file import CostFile, load_cost_file

TARGET = "cpu"
# Files of other machines, versions and checkouts that are kept beside the one in use.
MOST_OTHERS = 7


def database_path() -> Path | None:
    """Where the shared measurements of this machine are; None without a cache folder."""
    folder = CacheFolder()
    if folder.path is None or not folder.usable:
        return None
    kind = hashlib.sha256(CPU.generator().machine_kind().encode()).hexdigest()
    return folder.path / "costs" / f"cpu-{kind[:16]}.json"


def read_choices(path: Path, *, broken_is_empty: bool) -> CostFile:
    """What was measured before; nothing where there is no file.

    Raises:
        UserError: the file is broken, unless that counts as empty, with a warning.
    """
    if not path.exists():
        return CostFile(TARGET)
    try:
        return load_cost_file(path)
    except UserError as error:
        if not broken_is_empty:
            raise
        sys.stderr.write(f"isoform: warning: {error}; measured anew\n")
        return CostFile(TARGET)


def add_choices(path: Path, new: CostFile, *, broken_is_empty: bool) -> None:
    """Add what was measured now to what is in the file by now.

    Raises:
        UserError: the file cannot be written, or is broken, unless that counts as empty.
    """
    with _locked(path):
        before = CostFile(new.target)
        if path.exists():
            try:
                before = load_cost_file(path)
            except UserError:
                if not broken_is_empty:
                    raise
        before.merge(new)
        before.save(path)


def prune(path: Path) -> None:
    """Remove the files beside `path` that were written to longest ago, beyond `MOST_OTHERS`."""
    found: list[tuple[float, Path]] = []
    for file in path.parent.glob("cpu-*.json"):
        with contextlib.suppress(OSError):  # another process may be pruning too
            found.append((file.stat().st_mtime, file))
    others = sorted((item for item in found if item[1] != path), reverse=True)
    for _, file in others[MOST_OTHERS:]:
        for stale in (file, file.with_suffix(".lock")):
            with contextlib.suppress(OSError):
                stale.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold the lock beside a file; without one the last writer of two wins, whole."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        lock = path.with_suffix(".lock").open("w")
    except OSError:
        yield
        return
    with lock:
        with contextlib.suppress(OSError):  # some network folders have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield

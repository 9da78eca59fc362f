"""The measured choices that all programs of a user share, as cost files in the cache folder.

What `compile` measures is one file for each kind of machine, under a name that covers everything
its times depend on, including the sources of the kernels. So times of other kernels are not found,
and the oldest such files are removed in time. Several processes may read and add at the same time:
a writer reads the file, adds its entries, and replaces the file, under a lock if the system has
one.

What `isoform tune` measures is one file for all kinds: an entry for each kernel and processor,
under the hash of both and of the code that makes kernels. Files of several machines can be merged.
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
from ..cost.cost_file import CostFile, load_cost_file

TARGET = "cpu"
# How many files of other machines, versions and checkouts are kept beside the one in use.
MAX_OTHERS = 7


def database_path() -> Path | None:
    """The file of this machine's shared measurements; None without a cache folder."""
    folder = CacheFolder()
    if folder.path is None or not folder.usable:
        return None
    kind = hashlib.sha256(CPU.generator().machine_kind().encode()).hexdigest()
    return folder.path / "costs" / f"cpu-{kind[:16]}.json"


def read_choices(path: Path, *, broken_is_empty: bool) -> CostFile:
    """Earlier measurements; none if there is no file.

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
    """Add new measurements to the current contents of the file.

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
    """Remove the least recently written files beside `path`, beyond `MAX_OTHERS`."""
    found: list[tuple[float, Path]] = []
    for file in path.parent.glob("cpu-*.json"):
        with contextlib.suppress(OSError):  # another process may be pruning too
            found.append((file.stat().st_mtime, file))
    others = sorted((item for item in found if item[1] != path), reverse=True)
    for _, file in others[MAX_OTHERS:]:
        for stale in (file, file.with_suffix(".lock")):
            with contextlib.suppress(OSError):
                stale.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold the lock beside a file; without locks the last writer of two wins."""
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

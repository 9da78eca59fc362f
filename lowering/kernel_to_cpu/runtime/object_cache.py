"""Keep compiled objects on disk, and compile missing ones in parallel."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import llvmlite

from ....dialects.cache_folder import CacheFolder
from ....dialects.deadline import check_time
from ..isa import Isa
from .parallel import compile_objects


class ObjectCache:
    """Keep compiled objects in a folder, keyed by their source.

    Files that were damaged are recompiled.
    """

    def __init__(self, path: Path | str | None = None, limit: int | None = None) -> None:
        self._folder = CacheFolder(path, limit)
        self.hits = 0
        self.misses = 0

    def object(self, ir_text: str, isa: Isa) -> bytes:
        """Give the object for a module, compiling it only if the folder lacks it."""
        return self.objects([ir_text], isa)[0]

    def objects(self, ir_texts: Sequence[str], isa: Isa) -> list[bytes]:
        """Give the objects for modules, compiling missing ones in parallel."""
        files = [self._folder.file(f"{_key(text, isa)}.o") for text in ir_texts]
        found = [self._read(file) if file else None for file in files]
        missing = [k for k, data in enumerate(found) if data is None]
        self.hits += len(found) - len(missing)
        self.misses += len(missing)

        def keep(number: int, data: bytes) -> None:
            file = files[missing[number]]
            if file:
                self._folder.write(file, hashlib.sha256(data).digest() + data)
            check_time()

        made = compile_objects([ir_texts[k] for k in missing], isa, keep) if missing else []
        for k, data in zip(missing, made, strict=True):
            found[k] = data
        return [data for data in found if data is not None]

    def _read(self, file: Path) -> bytes | None:
        """Read an object whose checksum holds, and mark it as used."""
        try:
            content = file.read_bytes()
        except OSError:
            return None
        digest, data = content[:32], content[32:]
        if hashlib.sha256(data).digest() != digest:
            return None
        self._folder.touch(file)
        return data


def _key(ir_text: str, isa: Isa) -> str:
    parts = (ir_text, repr(isa), llvmlite.__version__, _version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _version() -> str:
    from importlib import metadata  # slow to import: it loads a parser of e-mail

    try:
        return metadata.version("isoform")
    except metadata.PackageNotFoundError:
        return "source"

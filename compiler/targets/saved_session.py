"""Sessions in a folder: `session.save(DIR)` and `isoform.open(DIR)`.

    session.json        format, processor, interface, and a sha256 of each other file
    program.native      native code, packed weights and the plan, as program_store.py writes them
    program.mlir        the program's text, for people
    defaults.safetensors  weights that stand for inputs left out; only where there are such

Native code is run, so a folder is only opened where its author is known: session.json is signed
with a key that this user keeps (`HMAC-SHA256`), or the caller gives the hash that `save` returned.
Nothing in it is unpickled, and no name in it is used as a path.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.cache_folder import CacheFolder
from ...dialects.errors import UserError
from ...dialects.files import hash_of_sources, read_whole, write_whole
from ...dialects.program import Program
from ...dialects.types import Array
from ...dialects.weights import load_safetensors, save_safetensors
from ...lowering.kernel_to_cpu import program_store
from ...lowering.kernel_to_cpu.isa import Isa
from ..frontends.module_text import module_text
from ..frontends.program_file import parse
from ..reports.json_schema import first_fault
from .session import Session, ValueInfo, usable_cores

MANIFEST, NATIVE, TEXT = "session.json", "program.native", "program.mlir"
DEFAULTS = "defaults.safetensors"
FORMAT = 1
_TEXT = {"type": "string"}
_VALUE = {
    "type": "array",
    "prefixItems": [_TEXT, _TEXT, {"type": "array", "items": {"type": "integer"}}],
    "minItems": 4,
    "maxItems": 4,
}
_SCHEMA = {
    "type": "object",
    "required": ["format", "isoform", "runtime", "processor", "inputs", "outputs", "files"],
    "properties": {
        "format": {"type": "integer"},
        "isoform": _TEXT,
        "runtime": _TEXT,
        "processor": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        "inputs": {"type": "array", "items": _VALUE},
        "outputs": {"type": "array", "items": _VALUE},
        "files": {"type": "object", "additionalProperties": _TEXT},
        "signature": _TEXT,
    },
}


class OpenedSession(Session):
    """A session that was saved; its program's text is read when it is asked for."""

    def __init__(self, folder: Path, manifest: dict[str, Any], threads: int) -> None:
        found = program_store.read_program(folder / NATIVE)
        if found is None:
            raise UserError("the native program is damaged", where=str(folder / NATIVE))
        self._folder = folder
        self.runner = program_store.StoredSession(*found, threads)
        self.inputs, self.outputs = (
            tuple(ValueInfo(n, np.dtype(d), tuple(s), bool(given)) for n, d, s, given in values)
            for values in (manifest["inputs"], manifest["outputs"])
        )
        self._defaults = _defaults(folder) if DEFAULTS in manifest["files"] else {}
        self._lock = threading.Lock()
        self._closed = False

    @cached_property
    def program(self) -> Program:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The program that was compiled, without its weights."""
        path = self._folder / TEXT
        return parse(read_whole(path).decode(), str(path))


def save_session(session: Session, folder: str | Path) -> str:
    """Write a session into a folder, which is made; return the hash by which others open it.

    Raises:
        UserError: its target is not the CPU, it has ops without native code, or files cannot be
            written.
    """
    path = Path(folder)
    runner = getattr(session, "runner", None)
    if not hasattr(runner, "packed_bytes"):
        text = "only sessions of the cpu, of fixed shapes, can be saved"
        raise UserError(text, where=str(path))
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder: {error.strerror}", where=str(path)) from error
    program_store.write_program(path / NATIVE, runner, session.algorithms)  # pyright: ignore[reportArgumentType]
    write_whole(path / TEXT, module_text(session.program.module))
    names = [NATIVE, TEXT]
    if defaults := session.defaults:
        save_safetensors(path / DEFAULTS, defaults)
        names.append(DEFAULTS)
    body = {
        "format": FORMAT,
        "isoform": _version(),
        "runtime": _runtime(),
        "processor": _processor(),
        "inputs": [_value(info) for info in session.inputs],
        "outputs": [_value(info) for info in session.outputs],
        "files": {name: _sha256(path / name) for name in names},
    }
    key = _key(make=True)
    signature = {} if key is None else {"signature": _signature(body, key)}
    text = json.dumps({**body, **signature}, indent=2) + "\n"
    write_whole(path / MANIFEST, text)
    for name in (MANIFEST, *names):  # under a usual umask of 002 the group may write
        (path / name).chmod(0o644)
    return hashlib.sha256(text.encode()).hexdigest()


def open_session(
    folder: str | Path, threads: int | None = None, sha256: str | None = None
) -> Session:
    """Open what `save_session` wrote, without compiling.

    Args:
        threads: as in `compile`.
        sha256: the hash that `save` returned; needed for what another user or machine saved.

    Raises:
        UserError: a file is missing, changed or may be changed by others; nobody vouches for it;
            it is for another processor or made by another isoform.
    """
    path = Path(folder)
    text = read_whole(path / MANIFEST)
    manifest = _parsed(text, path / MANIFEST)
    _check_owner(path, [MANIFEST, *manifest["files"]])
    _check_author(text, manifest, path, sha256)
    if manifest["format"] != FORMAT or manifest["runtime"] != _runtime():
        raise UserError(
            f"isoform {manifest['isoform']} saved this session, with another runtime",
            where=str(path),
            hint="compile and save it again",
        )
    if manifest["processor"] != _processor():
        here, there = _processor(), manifest["processor"]
        raise UserError(
            "this session is for another processor",
            where=str(path),
            expected=f"{here['cpu']} ({here['name']})",
            found=f"{there.get('cpu')} ({there.get('name')})",
            hint="compile and save it here",
        )
    for name, digest in manifest["files"].items():
        if _sha256(path / name) != digest:
            raise UserError("this file was changed since it was saved", where=str(path / name))
    return OpenedSession(path, manifest, usable_cores() if threads is None else threads)


def _parsed(text: bytes, where: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError("this is not JSON", where=str(where)) from error
    if (fault := first_fault(manifest, _SCHEMA)) is not None:
        raise UserError(f"this is not a saved session: {fault}", where=str(where))
    names = set(manifest["files"])
    if not {NATIVE, TEXT} <= names <= {NATIVE, TEXT, DEFAULTS}:
        raise UserError("this is not a saved session: it names other files", where=str(where))
    return manifest


def _check_owner(folder: Path, names: list[str]) -> None:
    """Refuse files that somebody else can change, and links out of the folder."""
    for path in (folder, *(folder / name for name in names)):
        try:
            status = path.stat() if path == folder else path.lstat()
        except OSError as error:
            raise UserError(f"cannot read file: {error.strerror}", where=str(path)) from error
        if path != folder and not stat.S_ISREG(status.st_mode):
            raise UserError("this is no regular file", where=str(path))
        if os.name == "posix" and status.st_uid not in (os.getuid(), 0):
            raise UserError("this belongs to another user", where=str(path), hint="copy it first")
        if os.name == "posix" and status.st_mode & 0o022:
            text = "others may change this, and it holds native code"
            raise UserError(text, where=str(path), hint="chmod -R go-w")


def _check_author(text: bytes, manifest: dict[str, Any], folder: Path, sha256: str | None) -> None:
    """Refuse native code of an unknown author."""
    if sha256 is not None:
        if not hmac.compare_digest(hashlib.sha256(text).hexdigest(), sha256.lower()):
            raise UserError("this is not the session of that hash", where=str(folder))
        return
    key = _key(make=False)
    body = {name: value for name, value in manifest.items() if name != "signature"}
    signed = manifest.get("signature", "")
    if key is None or not hmac.compare_digest(_signature(body, key).encode(), signed.encode()):
        raise UserError(
            "this user did not save this session, and it holds native code",
            where=str(folder),
            hint="isoform.open(DIR, sha256=...) takes the hash that save() returned",
        )


def _key(make: bool) -> bytes | None:
    """This user's key, in the cache folder; None without a folder, or where none was made."""
    cache = CacheFolder()
    if cache.path is None or not cache.usable:
        return None
    file = cache.path / "keys" / "sessions"
    try:
        if make and not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "wb") as stream:
                stream.write(secrets.token_bytes(32))
        key = file.read_bytes()
    except FileExistsError:  # another process has just made it
        key = file.read_bytes()
    except OSError:
        return None
    return key if len(key) == 32 else None


def _signature(body: dict[str, Any], key: bytes) -> str:
    text = json.dumps(body, sort_keys=True).encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    except OSError as error:
        raise UserError(f"cannot read file: {error.strerror}", where=str(path)) from error
    return digest.hexdigest()


def _value(info: ValueInfo) -> tuple[str, str, list[int], bool]:
    shape = [int(dim) for dim in info.shape or () if dim is not None]
    return info.name, info.dtype.name, shape, info.has_default


def _processor() -> dict[str, Any]:
    return dict(vars(Isa.host()))


def _runtime() -> str:
    """A hash of what reads the file and runs it: another version may read it otherwise."""
    here = Path(program_store.__file__)
    return hash_of_sources([here, here.parent / "runtime"])


def _version() -> str:
    from ..version import VERSION

    return VERSION


def _defaults(folder: Path) -> dict[str, Array]:
    weights = load_safetensors(folder / DEFAULTS)
    return {name: weights[name] for name in weights}

"""Open a session that was saved in a folder (session_folder.py), without compiling.

Its native code is run, so a folder is only opened where its author is known: session.json is signed
by this user, or the caller gives the hash that `save` returned. Nothing in it is unpickled, and no
name in it is used as a path.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.errors import UserError
from ...dialects.files import read_whole
from ...dialects.program import Program
from ...dialects.types import Array
from ...dialects.weights import load_safetensors
from ...lowering.kernel_to_cpu import program_store
from ..frontends.program_file import parse
from ..reports.json_schema import first_fault
from .session import Session, usable_cores
from .session_folder import (
    DEFAULTS,
    FORMAT,
    MANIFEST,
    NATIVE,
    TEXT,
    processor,
    runtime,
    sha256_of,
    signature_of,
    users_key,
)
from .value_info import ValueInfo

_TEXT = {"type": "string"}
_VALUE = {
    "type": "array",
    "prefixItems": [_TEXT, _TEXT, {"type": "array", "items": {"type": "integer"}}],
    "minItems": 4,
    "maxItems": 4,
}
_SCHEMA = {
    "type": "object",
    "required": ["format", "isoform", "runtime", "processor", "inputs", "outputs", "cuts", "files"],
    "properties": {
        "format": {"type": "integer"},
        "isoform": _TEXT,
        "runtime": _TEXT,
        "processor": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        "inputs": {"type": "array", "items": _VALUE},
        "outputs": {"type": "array", "items": _VALUE},
        "cuts": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "prefixItems": [_TEXT, {"type": "integer"}],
                "minItems": 2,
                "maxItems": 2,
            },
        },
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
            tuple(ValueInfo(n, np.dtype(d), _dims(s), bool(given)) for n, d, s, given in values)
            for values in (manifest["inputs"], manifest["outputs"])
        )
        self._cuts = {count: (name, dim) for count, (name, dim) in manifest["cuts"].items()}
        self._defaults = _defaults(folder) if DEFAULTS in manifest["files"] else {}
        self._lock = threading.Lock()
        self._closed = False

    @cached_property
    def program(self) -> Program:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The program that was compiled, without its weights."""
        path = self._folder / TEXT
        return parse(read_whole(path).decode(), str(path))


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
    if manifest["format"] != FORMAT or manifest["runtime"] != runtime():
        raise UserError(
            f"isoform {manifest['isoform']} saved this session, with another runtime",
            where=str(path),
            hint="compile and save it again",
        )
    if manifest["processor"] != processor():
        here, there = processor(), manifest["processor"]
        raise UserError(
            "this session is for another processor",
            where=str(path),
            expected=f"{here['cpu']} ({here['name']})",
            found=f"{there.get('cpu')} ({there.get('name')})",
            hint="compile and save it here",
        )
    for name, digest in manifest["files"].items():
        if sha256_of(path / name) != digest:
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
    key = users_key(make=False)
    body = {name: value for name, value in manifest.items() if name != "signature"}
    signed = manifest.get("signature", "")
    if key is None or not hmac.compare_digest(signature_of(body, key).encode(), signed.encode()):
        raise UserError(
            "this user did not save this session, and it holds native code",
            where=str(folder),
            hint="isoform.open(DIR, sha256=...) takes the hash that save() returned",
        )


def _dims(shape: list[int]) -> tuple[int | None, ...]:
    """A shape; -1 is a size that depends on data."""
    return tuple(None if n < 0 else n for n in shape)


def _defaults(folder: Path) -> dict[str, Array]:
    weights = load_safetensors(folder / DEFAULTS)
    return {name: weights[name] for name in weights}

"""Write a session into a folder: native code, packed weights, plan, and who vouches for them.

    session.json        format, processor, interface, and a sha256 of each other file
    program.native      native code, packed weights and the plan, as program_store.py writes them
    program.mlir        the program's text, for people
    defaults.safetensors  weights that stand for inputs left out; only where there are such

session.json is signed with a key that this user keeps (HMAC-SHA256). `saved_session.py` opens it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any, Protocol

from ...dialects.cache_folder import CacheFolder
from ...dialects.cuts import Cuts
from ...dialects.errors import UserError
from ...dialects.files import hash_of_sources, write_whole
from ...dialects.program import Program
from ...dialects.types import Array
from ...dialects.weights import save_safetensors, types_of
from ...lowering.kernel_to_cpu import program_store
from ...lowering.kernel_to_cpu.isa import Isa
from ..frontends.module_text import module_text
from ..version import VERSION
from .value_info import ValueInfo

MANIFEST, NATIVE, TEXT = "session.json", "program.native", "program.mlir"
DEFAULTS = "defaults.safetensors"
FORMAT = 1


class Saved(Protocol):
    """What is saved of a session."""

    program: Program
    runner: Any
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]

    @property
    def algorithms(self) -> list[dict[str, Any]]:
        """Notes about chosen kernels."""
        ...

    @property
    def cuts(self) -> Cuts:
        """The outputs whose sizes depend on data."""
        ...

    @property
    def defaults(self) -> dict[str, Array]:
        """The values of inputs that may be left out."""
        ...


def save_session(session: Saved, folder: str | Path) -> str:
    """Write a session into a folder, which is made; return the hash by which others open it.

    Raises:
        UserError: its target is not the CPU, it has ops without native code, or files cannot be
            written.
    """
    path = Path(folder)
    runner = getattr(session, "runner", None)
    if not hasattr(runner, "packed_bytes"):
        text = "only sessions of the cpu, of fixed shapes, can be saved"
        hint = "session.bound(feeds)[0] is the one for these arrays"
        raise UserError(text, where=str(path), hint=hint if runner is None else None)
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder: {error.strerror}", where=str(path)) from error
    program_store.write_program(path / NATIVE, runner, session.algorithms)  # pyright: ignore[reportArgumentType]
    write_whole(path / TEXT, module_text(session.program.module))
    names = [NATIVE, TEXT]
    if defaults := session.defaults:
        save_safetensors(path / DEFAULTS, defaults, types_of(defaults))
        names.append(DEFAULTS)
    body = {
        "format": FORMAT,
        "isoform": VERSION,
        "runtime": runtime(),
        "processor": processor(),
        "inputs": [_value(info) for info in session.inputs],
        "outputs": [_value(info) for info in session.outputs],
        "cuts": {count: list(cut) for count, cut in session.cuts.items()},
        "files": {name: sha256_of(path / name) for name in names},
    }
    key = users_key(make=True)
    signature = {} if key is None else {"signature": signature_of(body, key)}
    text = json.dumps({**body, **signature}, indent=2) + "\n"
    write_whole(path / MANIFEST, text)
    for name in (MANIFEST, *names):  # under a usual umask of 002 the group may write
        (path / name).chmod(0o644)
    return hashlib.sha256(text.encode()).hexdigest()


def users_key(make: bool) -> bytes | None:
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


def signature_of(body: dict[str, Any], key: bytes) -> str:
    """The signature of a manifest, which is all of it but this."""
    text = json.dumps(body, sort_keys=True).encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes. Raises UserError where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    except OSError as error:
        raise UserError(f"cannot read file: {error.strerror}", where=str(path)) from error
    return digest.hexdigest()


def _value(info: ValueInfo) -> tuple[str, str, list[int], bool]:
    shape = [-1 if dim is None else int(dim) for dim in info.shape or ()]
    return info.name, info.dtype.name, shape, info.has_default


def processor() -> dict[str, Any]:
    """What the native code was made for."""
    return dict(vars(Isa.host()))


def runtime() -> str:
    """A hash of what reads the file and runs it: another version may read it otherwise."""
    here = Path(program_store.__file__)
    return hash_of_sources([here, here.parent / "runtime"])

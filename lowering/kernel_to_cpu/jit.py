"""Compile IR text to object code, link it into the process, and keep objects on disk."""

import contextlib
import ctypes.util
import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from . import half
from .isa import Isa

_CACHE_BYTES = 512 << 20


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    libm = ctypes.util.find_library("m")
    if libm:  # kernels call expf, powf and the like; not every interpreter has them loaded
        llvm.load_library_permanently(libm)


def _machine(isa: Isa) -> llvm.TargetMachine:
    _initialize()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic", codemodel="default"
    )


def _optimize(ir_text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = llvm.parse_assembly(ir_text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # Kernels come vectorised and blocked; LLVM's own attempts only cost compile time.
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def compile_object(ir_text: str, isa: Isa) -> bytes:
    """Compile a module to a relocatable object for `isa`.

    Raises: RuntimeError with LLVM's message if the text does not parse or verify.
    """
    machine = _machine(isa)
    return machine.emit_object(_optimize(ir_text, machine))


def assembly(ir_text: str, isa: Isa) -> str:
    """Compile a module to assembly, for people."""
    machine = _machine(isa)
    return machine.emit_assembly(_optimize(ir_text, machine))


class Library:
    """Hold linked objects; addresses stay good for as long as the library lives."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        machine = _machine(Isa.host())
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        kept = list(dict.fromkeys(objects))
        if any(name.encode() in data for data in kept for name in half.NAMES):
            kept.append(_half_object())
        self._objects = [llvm.ObjectFileRef.from_data(data) for data in kept]
        for data in self._objects:
            self._engine.add_object_file(data)
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Find an exported function.

        Raises: KeyError if no object defines it.
        """
        address = self._engine.get_function_address(symbol)
        if not address:
            raise KeyError(symbol)
        return address


class ObjectCache:
    """Keep compiled objects in a folder, by the content they came from.

    A folder that cannot be used means no cache, never an error. Files that were damaged are
    recompiled. When the folder holds more than `limit` bytes, the objects used longest ago go.
    """

    def __init__(self, path: Path | str | None = None, limit: int = _CACHE_BYTES) -> None:
        self._folder = Path(path) if path is not None else default_folder()
        self._limit = limit
        self._written = limit  # since the last sweep; the first object written sweeps
        self.hits = 0
        self.misses = 0

    def object(self, ir_text: str, isa: Isa) -> bytes:
        """Give the object for a module, compiling it only if the folder lacks it."""
        return self.objects([ir_text], isa)[0]

    def objects(self, ir_texts: Sequence[str], isa: Isa) -> list[bytes]:
        """Give the objects for modules, compiling side by side those that the folder lacks."""
        from .parallel import compile_objects

        files = [self._folder / f"{_key(text, isa)}.o" if self._folder else None for text in ir_texts]
        found = [read_checked(file) if file else None for file in files]
        missing = [k for k, data in enumerate(found) if data is None]
        self.hits += len(found) - len(missing)
        self.misses += len(missing)

        def keep(number: int, data: bytes) -> None:
            file = files[missing[number]]
            if file:
                with contextlib.suppress(OSError):
                    self._write(file, data)

        made = compile_objects([ir_texts[k] for k in missing], isa, keep) if missing else []
        for k, data in zip(missing, made, strict=True):
            found[k] = data
        return [data for data in found if data is not None]

    def _write(self, file: Path, data: bytes) -> None:
        """Write aside, then rename, so that no reader sees half a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(hashlib.sha256(data).digest() + data)
            os.replace(name, file)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        self._written += len(data)
        if self._written > self._limit // 16:
            self._evict(file)
            self._written = 0

    def _evict(self, newest: Path) -> None:
        found: list[tuple[float, int, Path]] = []
        for file in newest.parent.iterdir():
            with contextlib.suppress(OSError):  # another process may be evicting too
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found):
            if total <= self._limit:
                return
            if file != newest:
                with contextlib.suppress(OSError):
                    file.unlink()
                total -= size


@cache
def _half_object() -> bytes:
    return compile_object(half.support(), Isa.named("plain"))


def default_folder() -> Path | None:
    """Name the cache folder: $ISOFORM_CACHE, else one in the home; None without a home."""
    named = os.environ.get("ISOFORM_CACHE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "isoform"
    except RuntimeError:
        return None


def _key(ir_text: str, isa: Isa) -> str:
    parts = (ir_text, repr(isa), llvmlite.__version__, _version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _version() -> str:
    try:
        return metadata.version("isoform")
    except metadata.PackageNotFoundError:
        return "source"


def read_checked(file: Path) -> bytes | None:
    """Read an object whose checksum holds, and mark it as used."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, data = content[:32], content[32:]
    if hashlib.sha256(data).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    return data

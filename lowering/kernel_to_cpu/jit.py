"""Compile IR text to object code, link it into the process, and keep objects on disk."""

import ctypes.util
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from ...dialects.deadline import check_time
from . import half
from .cache_folder import CacheFolder
from .isa import Isa


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
        """Give the objects for modules, compiling side by side those that the folder lacks."""
        from .parallel import compile_objects

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


@cache
def _half_object() -> bytes:
    return compile_object(half.support(), Isa.named("plain"))


def _key(ir_text: str, isa: Isa) -> str:
    parts = (ir_text, repr(isa), llvmlite.__version__, _version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _version() -> str:
    from importlib import metadata  # it brings a parser of e-mail

    try:
        return metadata.version("isoform")
    except metadata.PackageNotFoundError:
        return "source"

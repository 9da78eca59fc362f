"""Compile IR text to object code and link it into the process."""

import ctypes.util
from collections.abc import Iterable
from functools import cache

import llvmlite.binding as llvm

from ..emit import half
from ..isa import Isa


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
    # Kernels are already vectorised and blocked; LLVM's own attempts only cost compile time.
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
    """Compile a module to assembly text."""
    machine = _machine(isa)
    return machine.emit_assembly(_optimize(ir_text, machine))


class Library:
    """Hold linked objects; their addresses stay valid as long as the library exists."""

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


@cache
def _half_object() -> bytes:
    return compile_object(half.support(), Isa.named("plain"))

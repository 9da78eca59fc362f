"""kernel-to-nest: write out the loops that a kernel would be run as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.errors import UserError
from ...dialects.floats import BITS, Floats
from ...dialects.graph import ConstantOp
from ...dialects.kernel import CallOp, GemmOp, KernelOp, LoopsOp
from ...dialects.nest import NestOp
from ...dialects.program import main_of
from ...dialects.types import Array
from ..algebra_to_kernel.constant import constant_values
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.node import nests_of
from .build import Unsupported
from .product import product
from .schedule import loops


@dataclass(frozen=True)
class KernelToNest(ModulePass):
    """Write the scheduled loops of each kernel behind the program, which stays as it is.

    Kernels that no nest is built of yet have none; a kept ONNX node may have several. `isa` names
    an instruction set (avx512, avx2, plain); by default it is this machine's.

    Before:

        %y = kernel.loops (%0 = %x) {
          %1 = algebra.scope (i: 40) exp(%0[i]) : tensor<40xf32>
          kernel.yield %1 : tensor<40xf32>
        } : tensor<40xf32>

    After, on vectors of 16:

        nest.kernel @y (%x0: memref<40xf32>, %y: memref<40xf32>) {
          nest.for %i0 < 2 {
            nest.for %i0_1 < 16 vector {
              %0 = nest.load %x0[16 * %i0 + %i0_1] room 40 : memref<40xf32>
              %1 = math.exp %0 : f32
              nest.store %1, %y[16 * %i0 + %i0_1] : memref<40xf32>
            }
          }
          nest.for %i0_2 < 8 vector lanes 16 {
            ...
    """

    name = "kernel-to-nest"
    floats: ClassVar[Floats] = BITS

    isa: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        isa = _named(self.isa)
        constants = constant_values(op)
        names = {o.sym_name.data for o in op.body.block.ops if isinstance(o, FuncOp)}
        for number, kernel in enumerate(main_of(op).body.block.ops):
            if isinstance(kernel, CallOp):
                nests = _of_call(kernel, constants)
            else:
                nest = _nest(kernel, constants, isa) if isinstance(kernel, KernelOp) else None
                nests = [] if nest is None else [nest]
            for nest in nests:
                name = _new(kernel.results[0].name_hint or f"kernel{number}", names)
                nest.properties["sym_name"] = StringAttr(name)
                op.body.block.add_op(nest)


def _new(name: str, names: set[str]) -> str:
    """The name, or where there is one of it the next with a number; it is added to the names."""
    tries = (name if k == 0 else f"{name}_{k}" for k in count())
    found = next(n for n in tries if n not in names)
    names.add(found)
    return found


def _of_call(op: CallOp, constants: set[SSAValue]) -> Sequence[NestOp]:
    """The nests of a call, one after another; none of a gather, or where the host runs it."""

    def known(k: int) -> Array | None:
        source = op.inputs[k].owner
        return source.array() if isinstance(source, ConstantOp) else None

    found = None if op.results[0] in constants else nests_of(op, known)
    return [] if found is None else found.nests


def _named(name: str) -> Isa:
    if not name:
        return Isa.host()
    try:
        return Isa.named(name)
    except ValueError as error:
        raise UserError(str(error), where="kernel-to-nest") from None


def _nest(op: KernelOp, constants: set[SSAValue], isa: Isa) -> NestOp | None:
    """The nest of a kernel; None where none is built yet, or where there is nothing to compute."""
    if any(0 in scope.extents for scope in op.scopes):
        return None
    try:
        if isinstance(op, LoopsOp) and op.schedule is None:
            return loops(op, isa)
        if isinstance(op, GemmOp):
            made = product(op, isa)
            right = op.outer(made.found.b.source)
            return made.nest if right in constants else None
    except Unsupported:
        pass
    return None

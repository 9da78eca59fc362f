"""Small kernels that nests are built of, and what runs them: by name, a program of one kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i32
from xdsl.ir import Block, Operation, SSAValue

from isoform.compiler.targets.cpu import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import GemmOp, KernelOp, LoopsOp, physical
from isoform.dialects.nest import STACK, ForOp, NestOp
from isoform.dialects.types import tensor_type, to_numpy
from isoform.lowering.algebra_to_kernel.shared_loops import shared_loops
from isoform.lowering.kernel_to_cpu.constants import Constants
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.nests.lanes import vector_iterator
from isoform.lowering.kernel_to_cpu.nests.merging import merge_loops
from isoform.lowering.kernel_to_cpu.nests.nest import plan_nest
from isoform.lowering.kernel_to_cpu.products.contraction import Argument, lower_gemm, matrix_of
from isoform.lowering.kernel_to_cpu.runtime.execute import room
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from isoform.lowering.kernel_to_nest.points import plain_points
from isoform.lowering.kernel_to_nest.product import product
from isoform.lowering.kernel_to_nest.rows import plain_rows
from isoform.lowering.kernel_to_nest.schedule import loops
from isoform.lowering.nest_to_llvm.printer import print_llvm

Make = Callable[[GraphBuilder], SSAValue]


def _bias(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        bias = b.expand(b.input("b", shape[-1:]), shape)
        return b.relu(b.add(b.add(x, bias), b.tanh(b.input("z", shape))))

    return make


def _product(m: int, n: int, k: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        drawn = np.random.default_rng(3).standard_normal((k, n)).astype(np.float32)
        y = b.matmul(b.input("x", (m, k)), b.weight("w", drawn))
        return b.relu(b.add(y, b.input("z", (m, n))))

    return make


def _layer_norm(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        scale = b.weight("g", np.linspace(0.5, 2, shape[-1], dtype=np.float32))
        return b.layer_norm(b.input("x", shape), scale, axis=1, epsilon=1e-5)

    return make


def _reduced(kind: str, *shape: int, axes: Sequence[int] = (1,)) -> Make:
    return lambda b: b.op(f"reduce_{kind}", b.input("x", shape), axes=list(axes), keep_dims=False)


def _blurred(*shape: int) -> Make:
    """Windows of a softmax, which it reads past both ends."""

    def make(b: GraphBuilder) -> SSAValue:
        x = b.softmax(b.input("x", shape), axis=2)
        return b.avg_pool(x, kernel=[5], strides=[1], pads=[2, 2], dilations=[1])

    return make


def _centred(*shape: int) -> Make:
    """What differs from the mean by at least the mean difference: a row of bools."""

    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)

        def mean(y: SSAValue) -> SSAValue:
            return b.expand(b.reduce_mean(y, axes=[1], keep_dims=True), shape)

        far = b.abs(b.sub(x, mean(x)))
        return b.mul(far, b.cast(b.less(mean(far), far), to=f32))

    return make


def _linear(b: GraphBuilder, x: SSAValue) -> SSAValue:
    """Both dims twice as large by linear interpolation."""
    near = np.array([0.25, 0.75], np.float32)
    for axis, size in ((2, 5), (3, 20)):
        weights = b.constant(np.stack([np.tile(near, size), np.tile(near[::-1], size)]))
        x = b.resample(x, weights, axis=axis, shift=-1, per=2)
    return x


def _linear_last(b: GraphBuilder) -> SSAValue:
    """Interpolation of what a convolution leaves channels last."""
    kernel = b.weight("w", np.eye(21, dtype=np.float32)[:, :, None, None])
    x = b.input("x", (1, 21, 5, 20))
    y = b.conv(x, kernel, strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
    return _linear(b, y)


def _pool(kind: str, size: int, step: int, pad: int, *shape: int) -> Make:
    geometry: dict[str, Any] = {"strides": [step] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
    return lambda b: b.op(f"{kind}_pool", b.input("x", shape), kernel=[size] * 2, **geometry)


KERNELS: dict[str, Make] = {
    "one vector loop": lambda b: b.exp(b.input("x", (5000,))),
    "short": lambda b: b.abs(b.input("x", (3,))),
    "broadcasts": _bias(7, 37),
    "float64": lambda b: b.sqrt(b.abs(b.input("x", (2, 19), f64))),
    "integers": lambda b: b.mul(b.input("x", (5, 11), i32), b.input("z", (5, 11), i32)),
    "to half": lambda b: b.cast(b.input("x", (4, 33), f32), to=f16),
    "transpose": lambda b: b.transpose(b.input("x", (45, 70)), perm=[1, 0]),
    "transpose of halves": lambda b: b.transpose(b.input("x", (21, 40), f16), perm=[1, 0]),
    "short transpose": lambda b: b.transpose(b.input("x", (2, 3), bf16), perm=[1, 0]),
    "short transpose of bools": lambda b: b.transpose(b.input("x", (2, 3), i1), perm=[1, 0]),
    "transpose of bools": lambda b: b.transpose(b.input("x", (70, 33), i1), perm=[1, 0]),
    "transpose of a batch": lambda b: b.transpose(b.input("x", (3, 20, 18)), perm=[0, 2, 1]),
    "channels last": lambda b: b.transpose(b.input("x", (1, 3, 9, 15)), perm=[0, 2, 3, 1]),
    "channels first": lambda b: b.transpose(b.input("x", (1, 9, 15, 3)), perm=[0, 3, 1, 2]),
    "heads": lambda b: b.transpose(b.input("x", (6, 4, 24)), perm=[1, 0, 2]),
    "pad": lambda b: b.pad(b.input("x", (1, 2, 6, 40)), pads=[0, 0, 1, 3, 0, 0, 2, 1]),
    "concat": lambda b: b.concat(b.input("x", (2, 3, 20)), b.input("z", (2, 5, 20)), axis=1),
    "pool": _pool("max", 3, 2, 0, 1, 2, 11, 75),
    "pool with a border": _pool("max", 3, 1, 1, 1, 2, 6, 37),
    "average": _pool("avg", 2, 1, 0, 1, 2, 6, 40),
    "largest of columns": lambda b: b.op(
        "reduce_max", b.input("x", (23, 37)), axes=[0], keep_dims=False
    ),
    "softmax": lambda b: b.softmax(b.input("x", (5, 150)), axis=1),
    "softmax of short rows": lambda b: b.softmax(b.input("x", (4, 3, 10)), axis=2),
    "long softmax": lambda b: b.softmax(b.input("x", (6, 4000)), axis=1),
    "layer norm": _layer_norm(7, 200),
    "sum": _reduced("sum", 6, 300),
    "product of all": _reduced("prod", 3, 21),
    "largest": _reduced("max", 5, 149),
    "least": _reduced("min", 4, 16),
    "sum of two dims": _reduced("sum", 4, 5, 21, axes=(0, 2)),
    "largest of two dims": _reduced("max", 4, 5, 21, axes=(0, 2)),
    "softmax of halves": lambda b: b.softmax(b.input("x", (5, 83), f16), axis=1),
    "blurred softmax": _blurred(2, 3, 75),
    "blurred softmax of short rows": _blurred(2, 3, 7),
    "rows of bools": _centred(5, 37),
    "rows in registers": lambda b: _linear(b, b.input("x", (1, 3, 5, 20))),
    "windows in registers": _linear_last,
    "product": _product(37, 70, 53),
    "product of few rows": _product(2, 50, 33),
    "product of one block": _product(9, 16, 4),
    "deep product": _product(40, 40, 1300),
    "deep product of narrow panels": _product(12, 72, 1301),
}


@dataclass
class OneKernel:
    """A program's one kernel, and data for its operands."""

    op: KernelOp
    constants: Constants
    data: dict[SSAValue, np.ndarray]

    @property
    def known(self) -> Mapping[SSAValue, np.ndarray]:
        return {v: self.constants[v] for v in self.op.inputs if v in self.constants.known}

    def now(self, isa: Isa) -> tuple[KernelCode, Sequence[Argument]]:
        """A product as it is generated without a nest; others as nests without a schedule."""
        if isinstance(self.op, GemmOp):
            (call,) = lower_gemm(self.op, dict(self.known), isa)
            return call.code, call.arguments
        assert isinstance(self.op, LoopsOp)
        op, arguments = self.op, list[SSAValue](self.op.body.block.args)
        types = {a: tensor_type(v) for a, v in zip(arguments, op.inputs, strict=True)}
        plan = plan_nest(op.scopes, shared_loops(op.scopes))
        plan = merge_loops(plan, op.type, types)
        vector = vector_iterator(plan, op)
        if vector is None or any(scope.own for scope in plan.scopes):
            return print_llvm(plain_rows(op, plan, STACK, 1).nest), self._plain()
        return print_llvm(plain_points(op, plan, vector)[0]), self._plain()

    def _plain(self) -> list[Argument]:
        return [Argument(value) for value in (*self.op.inputs, self.op.result)]

    def nest(self, isa: Isa) -> tuple[NestOp, Sequence[Argument]]:
        """The kernel's nest, and what stands for its arguments."""
        if isinstance(self.op, LoopsOp):
            return loops(self.op, isa), self._plain()
        assert isinstance(self.op, GemmOp)
        made = product(self.op, isa)
        a, b = (self.op.outer(read.source) for read in (made.found.a, made.found.b))
        packed = made.packing.pack(matrix_of(self.known[b], made.found))
        extras = [Argument(value) for value in made.extras]
        left = Argument(a, offset=made.found.a_offset)
        return made.nest, [left, Argument(data=packed), *extras, Argument(self.op.result)]

    def bind(self, arguments: Sequence[Argument]) -> tuple[list[np.ndarray], np.ndarray]:
        """The arrays that arguments start at, and the result: bytes of ones before a run."""
        count, dtype = physical(self.op.type)[2], to_numpy(self.op.type.element_type)
        result = room(count * dtype.itemsize).view(dtype)
        result.view(np.uint8)[...] = 255
        arrays: list[np.ndarray] = []
        for argument in arguments:
            array = result if argument.value is self.op.result else argument.data
            if array is None:
                assert argument.value is not None
                array = self.data[argument.value]
            arrays.append(np.ascontiguousarray(array)[argument.offset :])
        return arrays, result


def one_kernel(name: str) -> OneKernel:
    """The kernel of that name: that of the most scopes."""
    b = GraphBuilder()
    b.output("y", KERNELS[name](b))
    program = place(b.build(), CpuOptions(1, "quick", tolerance=0.0))
    constants = Constants(program)
    ops = [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]
    ops = [op for op in ops if op.result not in constants.known]
    op = max(ops, key=lambda op: len(op.scopes))
    rng, data = np.random.default_rng(0), dict[SSAValue, np.ndarray]()
    for value in op.inputs:
        type_ = tensor_type(value)
        count, dtype = physical(type_)[2], to_numpy(type_.element_type)
        drawn: Any = rng.standard_normal(count) * (1 if dtype.kind == "f" else 9)
        if value in constants.known:
            drawn = np.asarray(constants[value]).ravel()
        data[value] = drawn > 0 if dtype == np.bool_ else drawn.astype(dtype)
    return OneKernel(op, constants, data)


def work(block: Block) -> int:
    """How many ops a block runs, at most."""
    return sum(
        op.size * work(op.block) if isinstance(op, ForOp) else 1 + sum(map(work, _blocks(op)))
        for op in block.ops
    )


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]


def run_on_cpu(
    kernel: OneKernel, code: KernelCode, arguments: Sequence[Argument], isa: Isa
) -> np.ndarray:
    """The result of a kernel's code."""
    arrays, result = kernel.bind(arguments)
    run_code(code, arrays, isa)
    return result


def run_code(code: KernelCode, arrays: Sequence[np.ndarray], isa: Isa) -> np.ndarray:
    """Run a kernel's code on arrays, the last of which is its result; its items in two parts."""
    library = Library([compile_object(code.ir, isa)])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    table = np.array([a.ctypes.data for a in arrays], np.uint64)
    function, half = kind(library.address(code.symbol)), code.items // 2
    function(table.ctypes.data, 0, half)
    function(table.ctypes.data, half, code.items)
    return arrays[-1]

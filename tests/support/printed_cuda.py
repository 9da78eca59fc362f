"""Printed CUDA against the reference: programs on the emulated device, and random schedules."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import KernelOp, LoopsOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.print_contraction import is_tiled
from isoform.lowering.kernel_to_cuda.program_data import CudaKernel, CudaProgram
from isoform.lowering.kernel_to_cuda.schedule import MAX_SUMS
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.testing.cuda_emulator.kernels import ORDERS, Order
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime
from isoform.testing.random_programs.agreement import Agreement, Mismatch
from support.cuda_kernels import need_compiler


def printed(text: str, libraries: Collection[str] = ()) -> CudaProgram:
    """The CUDA program of a module's text."""
    return cuda_program(place(parse(text), target="cuda"), libraries=libraries)


def kernel_of(text: str) -> CudaKernel:
    """The only kernel of a module's text."""
    (kernel,) = printed(text).kernels
    return kernel


def difference(
    program: Program,
    orders: Sequence[Order] = ORDERS,
    libraries: Collection[str] = (),
    made: CudaProgram | None = None,
    rng: random.Random | None = None,
) -> Mismatch | None:
    """Where a program on the emulated device differs from float64 in one of the thread orders.

    Args:
        made: what to run in place of the program's own CUDA.
        rng: draws a schedule for every kernel.
    """
    need_compiler()
    placed = place(program, target="cuda") if rng is None else scheduled(program, rng)
    made = cuda_program(placed, libraries=libraries) if made is None else made
    inputs = draw_inputs(program, 0)
    wanted = Agreement.of(program, inputs)
    for order in orders:
        found = CudaSession(made, EmulatedRuntime(order)).run(inputs)
        wrong = wanted.difference(found)
        if wrong is not None:
            return wrong
    return None


def edited(made: CudaProgram, old: str, new: str) -> CudaProgram:
    """The program with a bug planted in every kernel that has the text `old`."""
    kernels = tuple(replace(k, source=k.source.replace(old, new)) for k in made.kernels)
    assert kernels != made.kernels, f"no kernel has {old!r}"
    return replace(made, kernels=kernels)


# --- random schedules ---------------------------------------------------------------------------


def scheduled(program: Program, rng: random.Random) -> Program:
    """The program with places in memory and a random schedule for every kernel."""
    placed = place(program, target="cuda")
    for op in placed.main.body.block.ops:
        if isinstance(op, KernelOp):
            tiled = is_tiled(op) is not None
            op.properties["schedule"] = DictionaryAttr(_tiles(rng) if tiled else _loops(op, rng))
    return placed


def _tiles(rng: random.Random) -> dict[str, DenseArrayBase | IntegerAttr]:
    def sizes() -> list[int]:
        return [rng.choice(c) for c in ((1, 2), (2, 4, 8), (1, 1, 2), (1, 2, 4))]

    depth = [rng.choice((2, 4, 8)), rng.choice((1, 2))]
    rows, columns = sizes(), sizes()
    while math.prod(rows) * math.prod(columns) > MAX_SUMS * rows[1] * columns[1]:
        columns = sizes()  # a thread keeps no more results
    levels = {"tile_rows": rows, "tile_columns": columns, "tile_depth": depth}
    numbers = {"vector": rng.choice((1, 4)), "unroll": rng.choice((1, 2, 16))}
    return {
        **{name: DenseArrayBase.from_list(i64, n) for name, n in levels.items()},
        **{name: IntegerAttr(n, i64) for name, n in numbers.items()},
    }


def _loops(op: KernelOp, rng: random.Random) -> dict[str, IntegerAttr | StringAttr]:
    assert isinstance(op, LoopsOp) or op.scopes
    threads = IntegerAttr(rng.choice((32, 64, 128, 256)), i64)
    return {"threads": threads, "rows": StringAttr(rng.choice(("block", "thread")))}


def random_contraction(rng: random.Random) -> Program:
    """A product or convolution of ragged shape, with an epilogue mostly."""
    b = GraphBuilder()
    made = _conv(b, rng) if rng.random() < 0.5 else _matmul(b, rng)
    if rng.random() < 0.7:
        made = b.relu(made)
    b.output("y", made)
    return b.build("random contraction")


def _extent(rng: random.Random, most: int = 24) -> int:
    """An extent, a multiple of 4 as often as not: only these are loaded four at a time."""
    n = rng.randint(1, most)
    return n if rng.random() < 0.5 else -(-n // 4) * 4


def _matmul(b: GraphBuilder, rng: random.Random):
    batch = [] if rng.random() < 0.5 else [rng.randint(1, 3)]
    m, n, k = _extent(rng), _extent(rng), _extent(rng)
    flip_a, flip_b = rng.random() < 0.5, rng.random() < 0.5
    a = b.input("a", (*batch, *((k, m) if flip_a else (m, k))), f32)
    shape = (*batch, *((n, k) if flip_b else (k, n)))
    return b.matmul(a, _weight(b, shape, rng), transpose_a=flip_a, transpose_b=flip_b)


def _conv(b: GraphBuilder, rng: random.Random):
    spatial = rng.choice((1, 2, 2, 2, 3))
    groups = rng.choice((1, 1, 2, 3))
    inside, outside = groups * _extent(rng, 8), groups * _extent(rng, 8)
    sizes = [rng.randint(3, 9 if spatial < 3 else 5) for _ in range(spatial)]
    kernel = [rng.randint(1, 3) for _ in range(spatial)]
    properties = {
        "strides": [rng.randint(1, 2) for _ in range(spatial)],
        "dilations": [1] * spatial,
        "pads": [rng.randint(0, k - 1) for k in kernel] * 2,
        "groups": groups,
    }
    fits = all(n > 2 * (k - 1) for n, k in zip(sizes, kernel, strict=True))
    if fits and rng.random() < 0.3:
        properties["dilations"] = [2] * spatial
    x = b.input("x", (rng.randint(1, 2), inside, *sizes), f32)
    if rng.random() < 0.3:
        w = _weight(b, (inside, outside // groups, *kernel), rng, constant=True)
        return b.conv_transpose(x, w, output_padding=[0] * spatial, **properties)
    w = _weight(b, (outside, inside // groups, *kernel), rng, constant=True)
    return b.conv(x, w, **properties)


def _weight(b: GraphBuilder, shape: Sequence[int], rng: random.Random, constant: bool = False):
    if not constant and rng.random() < 0.5:
        return b.input("w", shape, f32)
    data = np.random.default_rng(rng.randint(0, 1 << 30)).standard_normal(shape, np.float32)
    return b.weight("w", data)

"""The papers' operators on a GPU by library, by generated kernels, and by searched tiles.

    python benchmarks/cuda_backends.py                    modelled for an H100, on any machine
    python benchmarks/cuda_backends.py --target a100
    python benchmarks/cuda_backends.py --measure          measured, on the GPU that is present

Modelled figures: `library` is the cost model's best algorithm (passes/cost/; it was fitted to
published times), the others are the model that chooses tiles (kernel_to_cuda/schedule.py), whose
constants no device has seen: they rank tiles, and are not to be compared with `library`. `plain` is
a block of 16 x 16 threads with one result each, `tiles` the default tiling, `searched` the best of
all tilings that fit. Where NVRTC is installed, those that spill are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, f32, i64
from xdsl.ir import Attribute, SSAValue

import isoform
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import KernelOp
from isoform.dialects.program import Program
from isoform.dialects.types import byte_size, tensor_type
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.compile import compile_kernels
from isoform.lowering.kernel_to_cuda.device_runtime import DeviceRuntime
from isoform.lowering.kernel_to_cuda.print_contraction import is_tiled
from isoform.lowering.kernel_to_cuda.program_data import Launch
from isoform.lowering.kernel_to_cuda.pycuda_runtime import open_device
from isoform.lowering.kernel_to_cuda.schedule import (
    MAX_SUMS,
    SHARED_BYTES,
    TileSizes,
    default_tiling,
    modelled,
    tile_sizes,
)
from isoform.lowering.kernel_to_cuda.session import CudaSession, timed
from isoform.lowering.targets import Target, target_named
from isoform.passes.cost.costs import Costs

PLAIN = TileSizes((1, 16, 1, 1), (1, 16, 1, 1))
# Of the best tilings by the model, those tried until one does not spill (or measured).
TRIED = 8


@dataclass(frozen=True)
class Operator:
    """One operator of the papers: a name and the program of it alone."""

    name: str
    build: Callable[[GraphBuilder], SSAValue]

    def program(self) -> Program:
        """The operator with weights known at compile time."""
        builder = GraphBuilder()
        builder.output("y", self.build(builder))
        return builder.build(self.name)


def conv(
    data: Sequence[int], features: int, taps: int, dilation: int = 1, groups: int = 1
) -> Callable[[GraphBuilder], SSAValue]:
    """A convolution that keeps the size."""

    def build(b: GraphBuilder) -> SSAValue:
        w = weight(b, features, data[1] // groups, taps, taps)
        pads = [(taps - 1) // 2 * dilation] * 4
        window = {"strides": [1, 1], "pads": pads, "dilations": [dilation] * 2}
        return b.conv(b.input("x", tuple(data)), w, groups=groups, **window)

    return build


def matmul(rows: int, depth: int, columns: int) -> Callable[[GraphBuilder], SSAValue]:
    """A product with weights."""

    def build(b: GraphBuilder) -> SSAValue:
        return b.matmul(b.input("x", (rows, depth)), weight(b, depth, columns))

    return build


def weight(b: GraphBuilder, *shape: int) -> SSAValue:
    """A random weight, drawn when it is read."""
    return b.weight("w", lambda: np.random.default_rng(0).standard_normal(shape, "f"), shape, f32)


OPERATORS = (
    Operator("conv3x3 [1,512,7,7] (EinNet)", conv((1, 512, 7, 7), 512, 3)),
    Operator("conv5x5 [16,32,224,224] (EinNet)", conv((16, 32, 224, 224), 32, 5)),
    Operator("conv5x5 [1,48,38,38] (PET)", conv((1, 48, 38, 38), 64, 5)),
    Operator("dilated [1,512,14,14] (PET)", conv((1, 512, 14, 14), 256, 3, dilation=2)),
    Operator("32 groups [1,128,56,56] (TASO)", conv((1, 128, 56, 56), 128, 3, groups=32)),
    Operator("1x1 [1,768,18,18] (PET)", conv((1, 768, 18, 18), 192, 1)),
    Operator("matmul 512x768x768 (PET)", matmul(512, 768, 768)),
    Operator("matmul 64x1024x4096 (TENSAT's BERT)", matmul(64, 1024, 4096)),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one JSON line for where it ran, and one for each operator."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default="h100", help="of the modelled figures")
    parser.add_argument("--measure", action="store_true", help="on the GPU that is present")
    parsed = parser.parse_args(arguments)
    try:
        device = open_device() if parsed.measure else None
    except UserError as error:
        parser.exit(1, f"cuda_backends: {error}\n")
    where = platform.machine() if device is None else device.description
    env = {"isoform": isoform.__version__, "machine": where, "load": round(os.getloadavg()[0], 1)}
    kind = f"modelled for {parsed.target}" if device is None else "measured"
    print(json.dumps({**env, "us": kind}))
    for operator in OPERATORS:
        row = modelled_row(operator, target_named(parsed.target))
        if device is not None:
            row = measured_row(operator, device)
        print(json.dumps({"operator": operator.name, **row}), flush=True)


@dataclass(frozen=True)
class Shape:
    """The tiled product that an operator is."""

    batch: int
    rows: int
    columns: int
    depth: int

    @classmethod
    def of(cls, op: KernelOp) -> Shape:
        found = is_tiled(op)
        assert found is not None
        parts = (found.batch, found.rows, found.columns, found.depth)
        return cls(*(found.size(part) for part in parts))

    def default(self) -> TileSizes:
        """The tiling without a search."""
        return default_tiling(self.rows, self.columns, self.depth, self.batch)

    def ranked(self) -> list[TileSizes]:
        """All tilings that fit, the fastest by the model first."""
        return sorted(tilings(), key=lambda t: (self.work(t), -t.step, t.sums, t.threads))

    def work(self, tiling: TileSizes) -> float:
        """Multiplications that one multiprocessor has time for."""
        return modelled(tiling, self.rows, self.columns, self.batch) * self.depth


def tilings() -> Iterator[TileSizes]:
    """More than the default chooses from: up to 16 results a side, deeper and shallower steps."""
    for threads, across in product((512, 256, 128, 64, 32), (64, 32, 16, 8, 4, 2)):
        for high, wide, step in product((16, 8, 4, 2, 1), (16, 8, 4, 2, 1), (4, 8, 16, 32)):
            if across <= threads:
                sides = (threads // across, high), (across, wide)
                rows, columns = (tile_sizes(*side) for side in sides)
                made = TileSizes(rows, columns, (step, 1), 4, step)
                if made.sums <= MAX_SUMS and made.shared_bytes(4) <= SHARED_BYTES:
                    yield made


def kernel_op(program: Program) -> KernelOp:
    """The operator's kernel among the program's."""
    ops = [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]
    return next(op for op in ops if is_tiled(op) is not None)


def modelled_row(operator: Operator, target: Target) -> dict[str, Any]:
    """Modelled microseconds of each way, and the tiles."""
    program = place(operator.program(), target="cuda")
    op = kernel_op(program)
    shape = Shape.of(op)
    fresh = [isinstance(value.owner, type(op)) for value in op.operands]
    seconds, algorithm = min(Costs(target).algorithms(op, fresh))
    moved = sum(byte_size(tensor_type(v)) for v in (*op.operands, *op.results))

    def us(tiling: TileSizes) -> float:
        rate = target.peak["f32"] / 2 / target.units
        busy = max(shape.work(tiling) / rate, moved / target.bandwidth)
        return round((busy + target.launch) * 1e6, 1)

    default, searched = shape.default(), fitting(operator, shape)
    return {
        "library": round(seconds * 1e6, 1),
        "algorithm": algorithm,
        "plain": us(PLAIN),
        "tiles": us(default),
        "searched": us(searched),
        "default": described(default),
        "best": described(searched),
    }


def fitting(operator: Operator, shape: Shape) -> TileSizes:
    """The best tiling by the model that does not spill; not checked where NVRTC is missing."""
    ranked = shape.ranked()
    for tiling in islice(ranked, TRIED):
        kernels = cuda_program(scheduled(operator, tiling), with_weights=False).kernels
        try:
            cubins = compile_kernels(kernels, 90)
        except UserError:
            return ranked[0]
        if not any(cubin.spill_bytes or cubin.stack_bytes for cubin in cubins):
            return tiling
    return shape.default()


def scheduled(operator: Operator, tiling: TileSizes | None, library: str = "") -> Program:
    """The operator's program with these tiles, or by a library."""
    program = place(operator.program(), target="cuda")
    chosen: dict[str, Attribute] = {}
    if tiling is not None:
        sizes = {"rows": tiling.rows, "columns": tiling.columns, "depth": tiling.depth}
        chosen = {f"tile_{k}": DenseArrayBase.from_list(i64, v) for k, v in sizes.items()}
        chosen |= {"unroll": IntegerAttr(tiling.unroll, i64)}
        chosen |= {"vector": IntegerAttr(tiling.vector, i64)}
    if library:
        chosen["library"] = StringAttr(library)
    kernel_op(program).properties["schedule"] = DictionaryAttr(chosen)
    return program


def measured_row(operator: Operator, device: DeviceRuntime) -> dict[str, Any]:
    """Measured microseconds of each way; `searched` is the fastest of the model's best few."""
    shape = Shape.of(kernel_op(place(operator.program(), target="cuda")))
    row: dict[str, Any] = {}
    for library in ("cublas", "cudnn"):
        program = scheduled(operator, None, library)
        steps = cuda_program(program, with_weights=False).steps
        if not all(isinstance(step, Launch) for step in steps):
            row["library"] = measured(program, device)
    row["plain"] = measured(scheduled(operator, PLAIN), device)
    row["tiles"] = measured(scheduled(operator, shape.default()), device)
    few = list(islice(shape.ranked(), TRIED))
    times = [measured(scheduled(operator, tiling), device) for tiling in few]
    best = min(range(len(few)), key=times.__getitem__)
    return {**row, "searched": times[best], "best": described(few[best])}


def measured(program: Program, device: DeviceRuntime) -> float:
    """Median microseconds of a program as a graph, the layout changes around it included."""
    session = CudaSession(cuda_program(program), device)
    try:
        return round(timed(device, device.capture(session.works())).median * 1e6, 2)
    finally:
        session.close()


def described(tiling: TileSizes) -> str:
    """Results of a block, of a thread, and the depth of a step."""
    size = f"{tiling.block_rows}x{tiling.block_columns}x{tiling.step}"
    return f"{size}, {tiling.threads} threads, {tiling.sums} results each"


if __name__ == "__main__":
    main()

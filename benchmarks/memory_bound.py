"""Measure kernels that do little arithmetic against a copy of as many bytes.

    python benchmarks/memory_bound.py                       every group, at three sizes
    python benchmarks/memory_bound.py pools rows --sizes L2,L3
    python benchmarks/memory_bound.py math --json

Bytes are those of the program's inputs and outputs, each once. Kernel and copy (the C library's)
take turns, both on one thread and on data at multiples of 64 bytes, by the thread's own clock, each
right after a run of its own that is not timed; the share is the median time of the copy over the
median time of the kernel. Kernels of the group `math` are bound by exp, tanh or erf: the last
column says which share they reach of the time that the function alone takes for as many elements,
in cache.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import SSAValue

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.commands.subcommands import table
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import ConvOp
from isoform.dialects.program import Program
from isoform.dialects.types import byte_size, tensor_type
from isoform.lowering.kernel_to_cpu.runtime.execute import aligned
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.onnx_to_graph.resizing import interpolation, positions, window
from isoform.testing.peaks import Copy

ROUNDS = 15
# Smaller kernels are timed several times at once, for the clock to see this many bytes.
REPEATED = 1 << 22
# Bytes touched: half of an L2 cache of 1 MiB, in an L3 cache of 32 MiB, past every cache.
SIZES = {"L2": 1 << 19, "L3": 1 << 23, "DRAM": 1 << 27}
POOL = {"pads": [0, 0, 0, 0], "dilations": [1, 1]}

Make = Callable[[GraphBuilder, int], SSAValue]


@dataclass(frozen=True)
class Case:
    """A kernel for about so many elements read and written.

    `function` is what bounds it. One `inside` a network reads what a convolution made, channels
    last, and is timed alone.
    """

    name: str
    make: Make
    function: str = ""
    inside: bool = False

    def program(self, size: int) -> Program:
        """The kernel at about `size` bytes."""
        b = GraphBuilder()
        b.output("y", self.make(b, size // 4))
        return b.build()


def image(b: GraphBuilder, elements: int, channels: int = 64) -> SSAValue:
    """An input [1, channels, s, s], of about so many elements if it had 64 channels."""
    side = max(4, round((elements / 64) ** 0.5 / 4) * 4)
    return b.input("x", (1, channels, side, side))


def matrix(b: GraphBuilder, elements: int, columns: int, name: str = "x") -> SSAValue:
    """An input of rows of `columns`."""
    return b.input(name, (max(1, elements // columns), columns))


def vector(b: GraphBuilder, *shape: int, name: str = "w") -> SSAValue:
    """A weight of small numbers."""
    return b.weight(name, np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32))


def rows_like(b: GraphBuilder, x: SSAValue, name: str) -> SSAValue:
    """A vector as wide as a row of x, broadcast to it."""
    shape = tensor_type(x).get_shape()
    return b.expand(vector(b, shape[-1], name=name), shape)


def _add_relu(b: GraphBuilder, n: int) -> SSAValue:
    return b.relu(b.add(b.input("x", (n // 3,)), b.input("z", (n // 3,))))


def _gelu(b: GraphBuilder, n: int) -> SSAValue:
    x = matrix(b, n // 2, 768)
    x = b.add(x, rows_like(b, x, "bias"))
    shape = tensor_type(x).get_shape()
    half, root, one = (b.expand(b.constant(np.float32(c)), shape) for c in (0.5, 2**-0.5, 1.0))
    return b.mul(b.mul(x, half), b.add(b.erf(b.mul(x, root)), one))


def _residual(b: GraphBuilder, n: int) -> SSAValue:
    x = matrix(b, n // 3, 768)
    z = b.input("z", tensor_type(x).get_shape())
    return b.add(b.add(x, rows_like(b, x, "bias")), z)


def _broadcast(b: GraphBuilder, n: int) -> SSAValue:
    x = matrix(b, n // 2, 197)
    return b.add(x, rows_like(b, x, "bias"))


def _scale_shift(b: GraphBuilder, n: int) -> SSAValue:
    x = image(b, n // 2)
    parts = [vector(b, 64, name=f"p{k}") for k in range(4)]
    return b.batch_norm(x, *parts)


def _transposed(perm: Sequence[int], *shape: int, multiple: int = 14) -> Make:
    """Transpose a shape whose 0s share the elements evenly, as multiples of a number."""

    def make(b: GraphBuilder, n: int) -> SSAValue:
        known = int(np.prod([d for d in shape if d]))
        side = max(1, round((n / 2 / known) ** (1 / shape.count(0)) / multiple)) * multiple
        return b.transpose(b.input("x", [d or side for d in shape]), perm=list(perm))

    return make


def _reduced(kind: str, axis: int) -> Make:
    def make(b: GraphBuilder, n: int) -> SSAValue:
        x = b.input("x", (max(1, n // (196 * 256)), 196, 256))
        return b.op(f"reduce_{kind}", x, axes=[axis], keep_dims=False)

    return make


def _pooled(kind: str, kernel: int, stride: int, *, inside: bool) -> Make:
    """A pool of an image in row-major order, or of what a convolution made."""

    def make(b: GraphBuilder, n: int) -> SSAValue:
        x = image(b, n // 2 if stride == 1 else n * 4 // 5, 4 if inside else 64)
        if inside:
            x = b.conv(x, vector(b, 64, 4, 1, 1), strides=[1, 1], **POOL)
        geometry: dict[str, Any] = POOL | {"kernel": [kernel] * 2, "strides": [stride] * 2}
        return b.op(f"{kind}_pool", x, **geometry)

    return make


def _joined(b: GraphBuilder, n: int) -> SSAValue:
    x = image(b, n // 4)
    z = b.input("z", tensor_type(x).get_shape())
    return b.concat(x, z, axis=1)


def _padded(b: GraphBuilder, n: int) -> SSAValue:
    return b.pad(image(b, n // 2), pads=[0, 0, 1, 1, 0, 0, 1, 1])


def _nearest(b: GraphBuilder, n: int) -> SSAValue:
    x = image(b, n // 5)
    one, c, h, w = tensor_type(x).get_shape()
    wide = b.broadcast(
        b.reshape(x, shape=[one, c, h, 1, w, 1]),
        shape=[one, c, h, 2, w, 2],
        dims=[0, 1, 2, 3, 4, 5],
    )
    return b.reshape(wide, shape=[one, c, 2 * h, 2 * w])


def _linear(scale: float, how: str = "half_pixel", *, inside: bool = False) -> Make:
    """Both dims of an image scaled by linear interpolation, as an imported Resize is."""

    def make(b: GraphBuilder, n: int) -> SSAValue:
        x = image(b, int(n / (1 + scale**2)), 4 if inside else 64)
        if inside:
            x = b.conv(x, vector(b, 64, 4, 1, 1), strides=[1, 1], **POOL)
        for axis in (2, 3):
            size = tensor_type(x).get_shape()[axis]
            at = positions(how, size, int(size * scale), scale, None)
            matrix = interpolation(at, size, "linear", {})
            found = window(at, matrix)
            assert found is not None
            weights = b.weight(f"w{axis}", found.weights(matrix).astype(np.float32))
            geometry = {"step": found.step, "shift": found.shift, "per": found.per}
            x = b.resample(x, weights, axis=axis, **geometry)
        return x

    return make


def _cast(source: Any, target: Any) -> Make:
    def make(b: GraphBuilder, n: int) -> SSAValue:
        return b.cast(b.input("x", (n * 4 // 6,), source), to=target)

    return make


def _softmax(columns: int) -> Make:
    return lambda b, n: b.softmax(matrix(b, n // 2, columns), axis=1)


def _layer_norm(b: GraphBuilder, n: int) -> SSAValue:
    x = matrix(b, n // 2, 768)
    return b.layer_norm(x, vector(b, 768), vector(b, 768, name="b"), axis=1, epsilon=1e-5)


def _applied(function: str) -> Make:
    return lambda b, n: b.op(function, b.input("x", (n // 2,)))


CASES: dict[str, tuple[Case, ...]] = {
    "elementwise": (
        Case("add, relu", _add_relu),
        Case("row + bias (197)", _broadcast),
        Case("residual + bias (768)", _residual),
        Case("batch norm (64)", _scale_shift),
        *(
            Case(f"cast {s}-{t}", _cast(s, t))
            for s, t in ((f16, f32), (f32, f16), (bf16, f32), (f32, bf16))
        ),
    ),
    "transposes": (
        Case("2-D", _transposed((1, 0), 0, 0)),
        Case("2-D, powers of 2", _transposed((1, 0), 0, 0, multiple=256)),
        Case("NCHW-NHWC (3)", _transposed((0, 2, 3, 1), 1, 3, 0, 0)),
        Case("NHWC-NCHW (3)", _transposed((0, 3, 1, 2), 1, 0, 0, 3)),
        Case("NCHW-NHWC (64)", _transposed((0, 2, 3, 1), 1, 64, 0, 0)),
        Case("NHWC-NCHW (64)", _transposed((0, 3, 1, 2), 1, 0, 0, 64)),
        Case("heads 0213", _transposed((0, 2, 1, 3), 1, 0, 12, 64)),
        Case("keys 0231", _transposed((0, 2, 3, 1), 1, 0, 12, 64)),
    ),
    "reductions": tuple(
        Case(f"{kind} of [n, 196, 256], axis {axis}", _reduced(kind, axis))
        for kind in ("sum", "max", "mean")
        for axis in (2, 1, 0)
    ),
    "rows": (Case("layer norm 768", _layer_norm),),
    "pools": (
        *(
            Case(
                f"{kind} {k}x{k} stride {s}{' NHWC' if inside else ''}",
                _pooled(kind, k, s, inside=inside),
                inside=inside,
            )
            for kind, k, s in (("max", 2, 2), ("max", 3, 1), ("max", 3, 2), ("avg", 3, 2))
            for inside in (False, True)
        ),
        Case(
            "global average",
            lambda b, n: b.reduce_mean(image(b, n), axes=[2, 3], keep_dims=False),
        ),
    ),
    "shapes": (
        Case("concat", _joined),
        Case("pad 1", _padded),
        Case("nearest 2x", _nearest),
        Case("linear 2x", _linear(2)),
        Case("linear 2x, corners", _linear(2, "align_corners")),
        Case("linear 0.5x", _linear(0.5)),
        Case("linear 2x NHWC", _linear(2, inside=True), inside=True),
    ),
    "math": (
        Case("exp", _applied("exp"), "exp"),
        Case("tanh", _applied("tanh"), "tanh"),
        Case("erf", _applied("erf"), "erf"),
        Case("bias, gelu (768)", _gelu, "erf"),
        Case("softmax 128", _softmax(128), "exp"),
        Case("softmax 1000", _softmax(1000), "exp"),
        Case("softmax 50000", _softmax(50000), "exp"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description="Measure kernels against a copy")
    add = parser.add_argument
    add("groups", nargs="*", metavar="GROUP", help=f"{', '.join(CASES)} (default: all)")
    add("--sizes", default=",".join(SIZES), help="among " + ", ".join(SIZES))
    add("--only", default="", help="kernels whose name holds this")
    add("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    for given, known in ((parsed.groups, CASES), (parsed.sizes.split(","), SIZES)):
        if unknown := set(given) - set(known):
            parser.error(f"no {min(unknown)!r}; choose among {', '.join(known)}")
    sizes = parsed.sizes.split(",")
    found = [
        {"group": group, "kernel": case.name} | {s: measure(case, SIZES[s]) for s in sizes}
        for group in parsed.groups or CASES
        for case in CASES[group]
        if parsed.only in case.name
    ]
    print(json.dumps(found, indent=2) if parsed.json else format_rows(found, sizes))


def measure(case: Case, size: int) -> dict[str, Any]:
    """Median times of a kernel and of a copy of as many bytes, taking turns."""
    placed = place(case.program(size))
    session = CpuSession(placed, 1)
    session.run({k: aligned(v) for k, v in draw_inputs(placed).items()})
    ops = [
        op
        for op in placed.main.body.block.ops
        if op.results and op.results[0] not in session.constants.known
    ]
    if case.inside:
        made = next(op for op in ops if isinstance(op, ConvOp)).result
        ops = [op for op in ops if made in op.operands]
        moved = sum(byte_size(tensor_type(v)) for op in ops for v in (*op.operands, *op.results))
    else:
        ends = [*placed.inputs.values(), *placed.outputs.values()]
        moved = sum(map(byte_size, ends))
    values: set[SSAValue] = {v for op in ops for v in op.results}
    repeats = max(1, REPEATED // moved)
    copy = Copy(moved, 1, repeats)
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        session.time(values)
        kernel = session.time(values, repeats)
        copy.time()  # or else it alone would find the other's data in the caches
        times.append((kernel, copy.time()))
    seconds, copied = (statistics.median(column) for column in zip(*times, strict=True))
    copy.close()
    session.close()
    found = {"us": seconds * 1e6, "copy_us": copied * 1e6, "share": copied / seconds}
    if case.function:
        elements = math.prod(placed.inputs["x"].get_shape())
        found["of_function"] = elements * seconds_of(case.function) / seconds
    return found


@cache
def seconds_of(function: str) -> float:
    """Seconds an element of one function, in cache."""
    program = Case(function, _applied(function)).program(SIZES["L2"])
    session = CpuSession(place(program), 1)
    session.run(draw_inputs(program))
    values = {
        v
        for s in session.segments
        for call in s.calls
        if (v := call.arguments[-1].value) is not None
    }
    seconds = statistics.median(session.time(values, 8) for _ in range(2 * ROUNDS))
    session.close()
    return seconds / math.prod(program.inputs["x"].get_shape())


def format_rows(found: Sequence[Mapping[str, Any]], sizes: Sequence[str]) -> str:
    """The kernels as a table."""
    cells: list[list[str]] = []
    for row in found:
        cells.append([row["group"], row["kernel"]])
        for size in sizes:
            cell = row[size]
            function = f" ({cell['of_function']:.0%})" if "of_function" in cell else ""
            cells[-1].append(f"{cell['us']:.1f} {cell['share']:.0%}{function}")
    return table(["group", "kernel", *(f"{size}: us, of copy" for size in sizes)], cells)


if __name__ == "__main__":
    main()

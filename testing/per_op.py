"""Where a program's time goes on the CPU: each kernel alone, against what the cores can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.peers.timing import interleave, median
from ..dialects.kernel import AttentionOp, CallOp, ConvOp, GemmOp, KernelOp, TiledProductOp
from ..dialects.program import Program, where
from ..passes.cost.flops import bytes_of, scope_work

ROUNDS = 15


def per_op(
    program: Program, threads: int, effort: str = "default", tolerance: float = 1e-5
) -> list[dict[str, Any]]:
    """Every kernel of a program, sorted by the time lost against its bound.

    The bound is the longer of two times: its operations at the measured peak of multiply-adds, and
    its bytes at the measured rate of a copy of as many bytes. Operations are those of the kernel's
    own scopes, as defined; neither counts what Winograd saves.

    Units: a row's `ms` is a median; `of_bound` is a share of 1; `lost_ms` is time over the bound.
    """
    from ..compiler import api
    from ..compiler.commands.inputs import draw_inputs
    from ..compiler.targets.cpu_options import CpuOptions
    from ..compiler.targets.levels import place
    from ..lowering.kernel_to_cpu.session import CpuSession

    placed = place(api.improve(program), CpuOptions(threads, effort, tolerance))
    session = CpuSession(placed, threads)
    session.run(draw_inputs(program))
    ops = [
        op
        for op in placed.main.body.block.ops
        if isinstance(op, KernelOp | CallOp) and op.results[0] not in session.constants.known
    ]
    runs = {str(k): (lambda s=set(op.results): session.time(s)) for k, op in enumerate(ops)}
    times = [median(t) for t in interleave(runs, 0.0, least=ROUNDS).values()]
    session.close()
    rows = [_row(op, seconds, threads) for op, seconds in zip(ops, times, strict=True)]
    total = sum(times)
    return sorted(
        (row | {"share": row["ms"] / 1e3 / total} for row in rows), key=lambda row: -row["lost_ms"]
    )


def _row(op: KernelOp | CallOp, seconds: float, threads: int) -> dict[str, Any]:
    from .peaks import copy_rate, fma_peak

    flops, moved = kernel_flops(op), bytes_of(op)
    arithmetic, traffic = flops / fma_peak(threads), moved / copy_rate(moved, threads)
    bound = max(arithmetic, traffic)
    return {
        "kernel": op.name,
        "place": where(op),
        "algorithm": algorithm(op),
        "ms": seconds * 1e3,
        "mflop": flops / 1e6,
        "mbyte": moved / 1e6,
        "gflops": flops / seconds / 1e9,
        "bound_by": "fma" if arithmetic >= traffic else "copy",
        "of_bound": bound / seconds,
        "lost_ms": (seconds - bound) * 1e3,
    }


def algorithm(op: KernelOp | CallOp) -> str:
    """The implementation of a kernel, in a few words."""
    if isinstance(op, CallOp):
        return op.callee.data
    if isinstance(op, GemmOp | AttentionOp | TiledProductOp):
        return op.name.removeprefix("kernel.").replace("_", " ")
    if not isinstance(op, ConvOp):
        return "loops"
    found = op.parameters
    if found.transposed:
        return "transposed conv"
    return "direct conv" if found.groups == 1 else f"conv, {found.groups} groups"


def kernel_flops(op: KernelOp | CallOp) -> int:
    """The operations of a kernel, by its own definition."""
    return sum(scope_work(s).flops for s in op.scopes) if isinstance(op, KernelOp) else 0


def format_ops(rows: Sequence[Mapping[str, Any]]) -> str:
    """The kernels as a table, with totals."""
    from ..compiler.commands.subcommands import table

    cells = [
        [
            row["place"],
            row["algorithm"],
            f"{row['ms']:.4f}",
            f"{row['mflop']:.2f}",
            f"{row['gflops']:.1f}",
            f"{row['of_bound']:.0%} {row['bound_by']}",
            f"{row['lost_ms']:.4f}",
            f"{row['share']:.1%}",
        ]
        for row in rows
    ]
    ms, mflop, lost = (sum(row[key] for row in rows) for key in ("ms", "mflop", "lost_ms"))
    bound = f"{(ms - lost) / ms:.0%}"
    cells.append(
        ["all", "", f"{ms:.4f}", f"{mflop:.2f}", f"{mflop / ms:.1f}", bound, f"{lost:.4f}", "100%"]
    )
    head = ["kernel", "algorithm", "ms", "MFLOP", "GFLOP/s", "of bound", "lost ms", "share"]
    return table(head, cells)

"""What checking the indices of a gather costs: with and without it, in pairs, in one process.

    python benchmarks/index_check.py [MODEL ...]

For each table and list of indices, and for each model as a whole, the medians of both and the
median ratio of the pairs, on one thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
from xdsl.dialects.builtin import i64

from isoform.compiler import api
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import CallOp
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.kernel_to_cpu import session
from isoform.lowering.kernel_to_cpu.emit.arithmetic import ArithmeticEmitter
from isoform.lowering.kernel_to_cpu.emit.types import I1, Value, constant
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.kernel_call import KernelCall
from isoform.lowering.kernel_to_cpu.nests.gather import lower_gather

ROUNDS = 41
# rows and width of the table, shape of the indices: embeddings of BERT and GPT-2, small ones
SHAPES = (
    (30522, 768, (1, 128)),
    (30522, 768, (8, 512)),
    (50257, 64, (1, 1024)),
    (1000, 16, (64, 64)),
    (1000, 1, (64, 1024)),
)


def lookup(rows: int, width: int, positions: tuple[int, ...]) -> Program:
    """Rows of a table at positions that are an input."""
    b = GraphBuilder()
    table = b.weight("table", np.ones((rows, width), np.float32))
    b.output("y", b.gather(table, b.input("i", positions, i64), axis=0))
    return b.build()


def unchecked(op: CallOp, isa: Isa) -> list[KernelCall]:
    """The same kernel, its alarm never set."""
    real = ArithmeticEmitter.compare

    def compare(self: ArithmeticEmitter, kind: str, *operands: Value) -> Value:
        return constant(I1, 0) if kind == "ne" else real(self, kind, *operands)

    with patch.object(ArithmeticEmitter, "compare", compare):
        return lower_gather(op, isa)


def made(program: Program, *, checked: bool) -> session.CpuSession:
    """Compile a program for one thread."""
    lower = lower_gather if checked else unchecked
    with patch.object(session, "lower_gather", lower):
        found = session.CpuSession(place(program, CpuOptions(1, "quick")))
    if not checked:
        found.execution.alarmed = np.zeros(0, np.int64)
    return found


def compare(name: str, program: Program, feeds: Mapping[str, Array]) -> None:
    """Measure a program both ways and print a line."""
    sessions = [made(program, checked=checked) for checked in (False, True)]
    for one in sessions:
        one.run(feeds)
    started = time.thread_time()
    sessions[0].run(feeds)
    times = max(1, int(0.005 / (time.thread_time() - started)))
    pairs: list[list[float]] = []
    for k in range(ROUNDS):
        pair = [0.0, 0.0]
        for which in (0, 1) if k % 2 else (1, 0):
            started = time.thread_time()
            for _ in range(times):
                sessions[which].run(feeds)
            pair[which] = (time.thread_time() - started) / times
        pairs.append(pair)
    before, after = (statistics.median(pair[k] for pair in pairs) for k in (0, 1))
    ratio = statistics.median(after / before for before, after in pairs)
    print(f"{name}: {before * 1e6:.1f} -> {after * 1e6:.1f} us, {ratio:.3f} times", flush=True)


def main() -> None:
    """Measure the tables, then the models named on the command line."""
    random = np.random.default_rng(0)
    for rows, width, positions in SHAPES:
        feeds = {"i": random.integers(0, rows, positions)}
        compare(f"{positions} of [{rows}, {width}]", lookup(rows, width, positions), feeds)
    for name in sys.argv[1:]:
        program = api.improve(api.load(name))
        compare(name, program, draw_inputs(program))


if __name__ == "__main__":
    main()

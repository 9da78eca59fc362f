"""Reports of small programs for the tests of `isoform view`."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoform import GraphBuilder, Program
from isoform.compiler.reports.program_graphs import levels_of
from isoform.compiler.search.optimizer import rewritten
from isoform.dialects.program import location

HOSTILE = "</script><img src=x onerror=alert(1)>"


def convolution_with_batch_norm(name: str = "conv1") -> Program:
    """A convolution, its batch norm and a relu; the convolution comes from a node of this name."""
    b = GraphBuilder()
    x = b.input("x", (1, 3, 8, 8))
    w = b.weight("w", np.ones((4, 3, 3, 3), np.float32))
    one = [b.weight(f"bn{k}", np.full(4, k + 1.0, np.float32)) for k in range(4)]
    y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    b.output("y", b.relu(b.batch_norm(y, *one)))
    program = b.build()
    for op in program.main.body.block.ops:
        if op.name == "graph.conv":
            op.location = location(name)
    return program


def report_of(program: Program) -> dict[str, Any]:
    better = rewritten(program, "cpu")
    return {**better.report, "levels": levels_of(better)}

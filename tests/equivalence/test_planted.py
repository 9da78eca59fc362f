"""A convolution put together from boxes of its output, and what may be wrong with one.

Its channels and batch are those of a real layer: the comparison shrinks them through all scopes.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.scalars import call
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.passes.equivalence import compare

N, C, H = 16, 128, 14


@dataclass(frozen=True)
class Faults:
    """What is wrong with the program of boxes."""

    weight: float = 0.0
    swapped: bool = False
    pad: int = 1
    rows: int = H - 2
    last: int = H - 1


def conv(build: ScopeBuilder, x: Source, w: Source, rows: int, first: int, f: Faults) -> Source:
    """Rows of a 3 by 3 convolution padded by one, from the first on."""
    n, c, h, v, k, r, s = iterators(7)
    kernel = w[k, c, r, s] if f.swapped else w[c, k, r, s]
    body = x[n, k, h + r + (first - f.pad), v + s - 1] * kernel
    return build.scope(tensor((N, C, rows, H), f32), body, [C, 3, 3])


def network(boxes: Faults | None) -> Program:
    """relu(conv(x)), the convolution whole or as its inner rows, then its first and last row."""
    b, build = GraphBuilder(), ScopeBuilder()
    x = Source(b.input("x", (N, C, H, H)))
    w = np.random.default_rng(0).normal(size=(C, C, 3, 3)).astype(np.float32)
    if boxes is not None:
        w[5, 7, 1, 2] += boxes.weight
    k = Source(b.weight("w", w))
    n, c, h, v = iterators(4)
    shape = tensor((N, C, H, H), f32)
    if boxes is None:
        whole = conv(build, x, k, H, 0, Faults())
    else:
        inner = conv(build, x, k, boxes.rows, 1, boxes)
        first, last = (conv(build, x, k, 1, row, Faults()) for row in (0, boxes.last))
        joined = inner[n, c, h - 1, v] + first[n, c, h, v] + last[n, c, h - (H - 1), v]
        whole = build.pointwise(shape, joined)
    made = build.pointwise(shape, call("max", whole[n, c, h, v], 0.0))
    for op in build.ops:
        b.append(op)
    b.output("y", made.value)
    return b.build()


def test_boxes_are_put_together_to_the_whole() -> None:
    verdict = compare(network(None), network(Faults()))
    assert verdict.kind == "equal", verdict.text()
    assert any("shrunk" in method for method, _ in verdict.methods)


PLANTED = {
    "one weight": Faults(weight=0.5),
    "channels swapped": Faults(swapped=True),
    "padding off by one": Faults(pad=0),
    "a box with a row too many": Faults(rows=H - 1),
    "a box with a row too few": Faults(rows=H - 3),
    "a correction of another row": Faults(last=H - 2),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str) -> None:
    verdict = compare(network(None), network(PLANTED[name]))
    assert verdict.kind == "different", verdict.text()
    assert verdict.difference is not None and verdict.difference.output == "y"

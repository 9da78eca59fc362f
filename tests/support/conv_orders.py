"""Convolutions as scopes with the dims of data, weights and result in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isoform.compiler.frontends.program_file import parse
from isoform.dialects.algebra import OnesOp, ScopeOp
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.program import Program
from isoform.dialects.scalars import Read
from isoform.dialects.types import shape_of
from isoform.dialects.weights import Weights
from isoform.lowering.graph_to_algebra import lower

LETTERS = "nfabd"


@dataclass(frozen=True)
class GraphConvolution:
    """A graph convolution: `x` is [n, c, *in], `w` as the op wants it."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    op: str = "conv"
    properties: dict[str, Any] = field(default_factory=dict[str, Any])

    def scope(self) -> ScopeOp:
        """The scope that it lowers to, in the order of the graph dialect."""
        rank, b = len(self.x) - 2, GraphBuilder()
        usual: dict[str, Any] = {
            "strides": [1] * rank,
            "pads": [0] * (2 * rank),
            "dilations": [1] * rank,
        }
        if self.op == "conv_transpose":
            usual["output_padding"] = [0] * rank
        value = b.op(self.op, b.input("x", self.x), b.input("w", self.w), **usual | self.properties)
        b.output("y", value)
        program = b.build()
        lower(value.owner)  # pyright: ignore
        return next(o for o in program.main.body.block.ops if isinstance(o, ScopeOp))


def in_order(
    conv: GraphConvolution,
    data: Sequence[int],
    weights: Sequence[int],
    out: Sequence[int],
    *,
    exchanged: bool = False,
    seed: int = 0,
) -> Program:
    """The convolution, a bias of the features and a relu, in algebra, all dims in these orders.

    Args:
        data, weights, out: which of the graph op's dims stands first, second ...
        exchanged: the weights are the first factor.
    """
    scope = conv.scope()
    rank, sums = len(scope.traversal), len(scope.summation)
    names = [LETTERS[k] for k in range(rank)] + [f"k{k}" for k in range(sums)]
    x, w, *guards = scope.reads()
    reads = [_text("%x", _moved(x, data), names), _text("%w", _moved(w, weights), names)]
    ones = list(dict.fromkeys(g.source for g in guards))
    reads = reads[::-1] if exchanged else reads
    reads += [_text(f"%one{ones.index(g.source)}", g, names) for g in guards]
    shapes = [_permuted(shape_of(r.source), order) for r, order in ((x, data), (w, weights))]
    result = _type(_permuted(scope.traversal, out))
    loops = ", ".join(f"{LETTERS[k]}: {scope.traversal[k]}" for k in out)
    under = ", ".join(f"k{k}: {n}" for k, n in enumerate(scope.summation))
    made = [f"  %one{k} = algebra.ones : {_type(shape_of(v))}" for k, v in enumerate(ones)]
    at = ", ".join(LETTERS[k] for k in out)
    text = f"""func.func @main(%x: {_type(shapes[0])}) -> {result} {{
  %w = graph.weight @w : {_type(shapes[1])}
  %b = graph.weight @b : {_type((scope.traversal[1],))}
{chr(10).join(made)}
  %c = algebra.scope ({loops}) {f"sum ({under})" if sums else ""} {" * ".join(reads)} : {result}
  %y = algebra.scope ({loops}) max(%c[{at}] + %b[f], 0.0) : {result}
  func.return %y : {result}
}}"""
    draw, held = np.random.default_rng(seed), Weights()
    array = draw.standard_normal(conv.w).astype(np.float32)
    held.add("w", np.ascontiguousarray(array.transpose(weights)))
    held.add("b", draw.standard_normal(scope.traversal[1]).astype(np.float32))
    assert all(isinstance(v.owner, OnesOp) for v in ones)
    return Program(parse(text).module, held)


def _moved(read: Read, order: Sequence[int]) -> Read:
    return Read(read.source, tuple(read.index[k] for k in order), read.outside)


def _permuted(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[k] for k in order)


def _type(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def _text(name: str, read: Read, names: Sequence[str]) -> str:
    return f"{name}[{', '.join(_index(e, names) for e in read.index)}]"


def _index(index: Index, names: Sequence[str]) -> str:
    parts = [str(index.constant)]
    for atom, times in index.terms:
        inner = (
            names[atom]
            if isinstance(atom, int)
            else f"(({_index(atom.numerator, names)}) floordiv {atom.divisor})"
        )
        parts.append(f"{times} * {inner}")
    return " + ".join(parts)

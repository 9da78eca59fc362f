"""A program in a few lines, for `repr` and for Jupyter: interface, ops, weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from html import escape
from io import StringIO
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from .types import Tensor, byte_width, tensor_type, to_numpy

# Kinds of ops that are named; lines of IR that Jupyter shows.
KINDS, LINES = 6, 300


class Summarised(Protocol):
    """What a summary reads of a program."""

    module: ModuleOp
    source: str

    @property
    def main(self) -> FuncOp:
        """The function that is run."""
        ...

    @property
    def inputs(self) -> dict[str, Tensor]:
        """Name and type of each input."""
        ...

    @property
    def outputs(self) -> dict[str, Tensor]:
        """Name and type of each output."""
        ...


def summary(program: Summarised, *more: str) -> str:
    """A program's lines: what it is, inputs, outputs, ops; then lines of the caller's."""
    rows = [_title(program)]
    rows += [f"  {name}: {shown(type_)}" for name, type_ in program.inputs.items()]
    rows += [f"  -> {name}: {shown(type_)}" for name, type_ in program.outputs.items()]
    return "\n".join([*rows, *(f"  {line}" for line in (_ops(program), *more) if line)])


def html(program: Summarised, *more: str) -> str:
    """The same for Jupyter, with the first lines of the IR to unfold."""
    values = "".join(
        f"<tr><td>{kind}</td><td>{escape(name)}</td><td>{escape(shown(type_))}</td></tr>"
        for kind, types in (("input", program.inputs), ("output", program.outputs))
        for name, type_ in types.items()
    )
    lines = "".join(f"<p>{escape(line)}</p>" for line in (_ops(program), *more) if line)
    out = StringIO()
    Printer(out).print_op(program.module)
    text = out.getvalue().split("\n")
    shown_text = "\n".join(text[:LINES])
    rest = f"\n... {len(text) - LINES} lines more" if len(text) > LINES else ""
    return (
        f"<b>{escape(_title(program))}</b><table>{values}</table>{lines}"
        f"<details><summary>IR</summary><pre>{escape(shown_text + rest)}</pre></details>"
    )


def shown(type_: Tensor) -> str:
    """A type as numpy writes it: `float32[1, 3, 8, 8]`."""
    return f"{to_numpy(type_.element_type)}{list(type_.get_shape())}"


def _title(program: Summarised) -> str:
    name = type(program).__name__
    return f"{name} {program.source}".rstrip()


def _ops(program: Summarised) -> str:
    """`9 graph ops: 4 conv, 4 relu, 1 add; 8 weights, 1.2 MB`."""
    every = [op for op in program.main.body.block.ops if not isinstance(op, ReturnOp)]
    weights = [op for op in every if op.name == "graph.weight"]
    rest = [op for op in every if op.name not in ("graph.weight", "graph.constant")]
    levels = sorted({op.name.partition(".")[0] for op in rest})
    kinds = Counter(op.name.partition(".")[2] for op in rest)
    named = [f"{count} {kind}" for kind, count in kinds.most_common(KINDS)]
    more = ["..."] if len(kinds) > KINDS else []
    plural = "" if len(rest) == 1 else "s"
    text = f"{len(rest)} {', '.join(levels) or 'graph'} op{plural}"
    text += f": {', '.join(named + more)}" if named else ""
    if not weights:
        return text
    plural = "" if len(weights) == 1 else "s"
    return f"{text}; {len(weights)} weight{plural}, {megabytes(sum(map(_bytes, weights)))}"


def _bytes(op: Operation) -> int:
    type_ = tensor_type(op.results[0])
    return math.prod(type_.get_shape()) * byte_width(type_.element_type)


def megabytes(count: int) -> str:
    """Bytes in the unit that suits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def price(cost: Mapping[str, object]) -> str:
    """What `optimize` changed, as a line: `1.169 -> 0.967 ms (measured, 1.21x)`."""
    before, after = cost.get("before"), cost.get("after")
    if not isinstance(before, float | int) or not isinstance(after, float | int):
        return ""
    gain = f", {before / after:.2f}x" if after else ""
    return f"{1e3 * before:.3f} -> {1e3 * after:.3f} ms ({cost.get('kind')}{gain})"

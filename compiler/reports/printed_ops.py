"""The ops of a program as text, each with its place, price and what it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer

from ...dialects.program import Program, provenance, sanitise, where
from ...dialects.types import shape_of
from ...dialects.weights_only import is_source, weights_only
from ...passes.cost.costs import Costs, is_free

# What the house notes on an op: told beside its text, not in it.
_OURS = "isoform."


@dataclass(frozen=True)
class PrintedOp:
    """One op of a program's body.

    Attributes:
        place: the op in the source's words, as a rewrite's `place`.
        text: as IR.
        same: as IR with operands by position: equal for ops that do the same to what they read.
        reads: positions of the ops that make its operands, each once; -1 - k for input k.
        rules: what made it.
        when: `source` (a weight), `once` (of weights alone), `free` (index expressions) or `run`.

    Units: `seconds` of one run, modelled.
    """

    name: str
    place: str
    text: str
    same: str
    reads: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    rules: tuple[str, ...]
    when: str
    seconds: float


def printed_ops(program: Program, costs: Costs) -> list[PrintedOp]:
    """The ops of a program in order, without its return."""
    block = program.main.body.block
    ops = [op for op in block.ops if not isinstance(op, ReturnOp)]
    names = _names(program, ops)
    made: dict[SSAValue, int] = {value: -1 - k for k, value in enumerate(block.args)}
    made |= {result: k for k, op in enumerate(ops) for result in op.results}
    known = weights_only(ops)
    seconds = {op: cost.seconds for op, cost in costs.breakdown(program)}
    return [
        PrintedOp(
            op.name,
            where(op),
            _text(op, names),
            _text(op, _by_position(op)),
            tuple(dict.fromkeys(made[v] for v in _read(op) if v in made)),
            tuple(tuple(shape_of(result)) for result in op.results),
            tuple(provenance(op)),
            _when(op, known),
            seconds.get(op, 0.0),
        )
        for op in ops
    ]


def _when(op: Operation, known: set[SSAValue]) -> str:
    if is_source(op):
        return "source"
    if op.results and all(result in known for result in op.results):
        return "once"
    return "free" if is_free(op) else "run"


def _read(op: Operation) -> list[SSAValue]:
    """The operands of an op, and what its regions read from outside."""
    inside = [v for region in op.regions for inner in region.walk() for v in inner.operands]
    return [*op.operands, *inside]


def _by_position(op: Operation) -> dict[SSAValue, str]:
    names = {value: f"in{k}" for k, value in enumerate(dict.fromkeys(_read(op)))}
    return names | {result: f"out{k}" for k, result in enumerate(op.results)}


def _names(program: Program, ops: list[Operation]) -> dict[SSAValue, str]:
    """A distinct name of each value: its own, or that of the source node it comes from."""
    inputs = zip(program.main.body.block.args, program.input_names, strict=True)
    names: dict[SSAValue, str] = {value: sanitise(name) for value, name in inputs}
    times = Counter(names.values())
    for op in ops:
        for result in op.results:
            name = sanitise(result.name_hint or _source(op) or op.name.partition(".")[2])
            times[name] += 1
            while times[name] > 1:
                name = f"{name}_{times[name] - 1}"
                times[name] += 1
            names[result] = name
    return names


def _source(op: Operation) -> str:
    return op.location.desc.data if isinstance(op.location, NameLoc) else ""


def _text(op: Operation, names: dict[SSAValue, str]) -> str:
    out = StringIO()
    printer = Printer(out)
    outer = {value: names[value] for value in (*_read(op), *op.results) if value in names}
    printer._ssa_values = outer  # pyright: ignore[reportPrivateUsage]
    with _without_notes(op):
        printer.print_op(op)
    return out.getvalue()


@contextmanager
def _without_notes(op: Operation) -> Generator[None]:
    """An op without the attributes that the house notes on it, in the block."""
    kept = dict(op.attributes)
    try:
        op.attributes = {k: v for k, v in kept.items() if not k.startswith(_OURS)}
        yield
    finally:
        op.attributes = kept

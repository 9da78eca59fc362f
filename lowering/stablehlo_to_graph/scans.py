"""Loops that count: how often they run, and which tensors they read or write row by row.

jax writes `lax.scan` as a loop that carries a counter, the scanned tensors, which no iteration
changes, and the stacked ones, of which each iteration replaces one row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialects.types import shape_of
from .node import HloNode
from .text import HloBlock, HloOp

# The most iterations that are counted: a counter of 32 bits overflows before.
_MOST = 1 << 31


@dataclass(frozen=True)
class Counter:
    """The carried number at `place`: it is `first + step * i` in iteration i of `trips`."""

    place: int
    first: int
    step: int
    trips: int


@dataclass(frozen=True)
class Row:
    """A carried tensor that is read, or written, one row an iteration.

    Attributes:
        place: its place among the carried values.
        op: the slice that reads it, or the update that writes it.
        backward: whether the last row comes first.
    """

    place: int
    op: HloOp
    backward: bool


@dataclass
class HloLoop:
    """What is known of a loop."""

    counter: Counter | None = None
    scanned: list[Row] = field(default_factory=list[Row])
    stacked: list[Row] = field(default_factory=list[Row])


def plan_of(n: HloNode) -> HloLoop:
    """How a `while` runs."""
    counter = _counter(n)
    if counter is None:
        return HloLoop()
    plan = HloLoop(counter)
    body = n.block(1)
    if (counter.first, counter.step) != (0, 1):
        return plan
    reading = _Reading(n, body, counter)
    for place in range(len(body.arguments)):
        if place != counter.place:
            reading.add(plan, place)
    return plan


def _counter(n: HloNode) -> Counter | None:
    """`while (i < n) { ...; i + step }` with numbers that are known."""
    condition, body = n.block(0), n.block(1)
    test = _maker(condition, condition.results[0])
    if test is None or test.name != "stablehlo.compare" or "LT" not in _words(test):
        return None
    names = [argument.name for argument in condition.arguments]
    if test.operands[0] not in names:
        return None
    place = names.index(test.operands[0])
    added = _maker(body, body.results[place])
    own = body.arguments[place].name
    if added is None or added.name != "stablehlo.add" or own not in added.operands:
        return None
    other = added.operands[1 - added.operands.index(own)]
    limit, step = _number(n, condition, test.operands[1]), _number(n, body, other)
    first = n.number_of(n[place])
    if limit is None or step is None or not isinstance(first, int) or step < 1:
        return None
    trips = max(0, -(-(limit - first) // step))
    return Counter(place, first, step, trips) if limit + step < _MOST else None


class _Reading:
    """Finds the tensors that the body of a loop reads or writes row by row."""

    def __init__(self, n: HloNode, body: HloBlock, counter: Counter) -> None:
        self.n, self.body, self.counter = n, body, counter
        self.makers = {name: op for op in body.ops for name in op.results}
        self.readers: dict[str, list[HloOp]] = {}
        for op in _all_ops(body):
            for name in dict.fromkeys(op.operands):
                self.readers.setdefault(name, []).append(op)

    def add(self, plan: HloLoop, place: int) -> None:
        """Add the tensor at a place, if it is one."""
        own, result = self.body.arguments[place].name, self.body.results[place]
        shape = shape_of(self.n[place])
        readers = [op for op in self.readers.get(own, []) if op is not self.body.ops[-1]]
        if not shape or shape[0] != self.counter.trips or len(readers) != 1:
            return
        (op,) = readers
        if op not in self.body.ops or op.operands[0] != own or own in op.operands[1:]:
            return
        if result == own and op.name == "stablehlo.dynamic_slice":
            sizes = op.attributes.get("sizes") or op.attributes.get("slice_sizes")
            backward = self._direction(op.operands[1:])
            if list(sizes or []) == [1, *shape[1:]] and backward is not None:
                plan.scanned.append(Row(place, op, backward))
        elif op.name == "stablehlo.dynamic_update_slice" and op.results == [result]:
            ends = self.readers.get(result, [])
            backward = self._direction(op.operands[2:])
            alone = ends == [self.body.ops[-1]] and list(self.body.results).count(result) == 1
            if alone and backward is not None and self._is_row(op, shape):
                plan.stacked.append(Row(place, op, backward))

    def _is_row(self, op: HloOp, shape: tuple[int, ...]) -> bool:
        made = self.makers.get(op.operands[1])
        return made is not None and made.types[0].get_shape() == (1, *shape[1:])

    def _direction(self, starts: list[str]) -> bool | None:
        """Whether a position is of the last row first; None if it is of no row in turn."""
        first, *rest = starts
        if any(_number(self.n, self.body, name) != 0 for name in rest):
            return None
        found = self._line(first, 0)
        last = self.counter.trips - 1
        return {(1, 0): False, (-1, last): True}.get(found or (0, 0))

    def _line(self, name: str, depth: int) -> tuple[int, int] | None:
        """A value as a * i + b in iteration i."""
        if name == self.body.arguments[self.counter.place].name:
            return 1, 0
        number = _number(self.n, self.body, name)
        if number is not None:
            return 0, number
        op = self.makers.get(name)
        if op is None or depth > 8:
            return None
        if op.name == "stablehlo.convert":
            return self._line(op.operands[0], depth + 1)
        if op.name == "stablehlo.select":  # of a negative index, which this one is not
            return self._select(op, depth)
        if op.name not in ("stablehlo.add", "stablehlo.subtract"):
            return None
        a, b = (self._line(v, depth + 1) for v in op.operands)
        if a is None or b is None:
            return None
        sign = 1 if op.name == "stablehlo.add" else -1
        return a[0] + sign * b[0], a[1] + sign * b[1]

    def _select(self, op: HloOp, depth: int) -> tuple[int, int] | None:
        """`i < 0 ? i + n : i` is i where i is a row's number."""
        test, _, kept = op.operands
        made = self.makers.get(test)
        if made is None or made.name != "stablehlo.compare" or "LT" not in _words(made):
            return None
        found = self._line(kept, depth + 1)
        zero = _number(self.n, self.body, made.operands[1]) == 0
        if not zero or found is None or self._line(made.operands[0], depth + 1) != found:
            return None
        ends = found[1], found[0] * (self.counter.trips - 1) + found[1]
        return found if min(ends) >= 0 else None


def _all_ops(block: HloBlock) -> list[HloOp]:
    return [op for o in block.ops for op in (o, *(i for r in o.regions for i in _all_ops(r)))]


def _maker(block: HloBlock, name: str) -> HloOp | None:
    return next((op for op in block.ops if name in op.results), None)


def _words(op: HloOp) -> list[str]:
    return [*op.words, str(op.attributes.get("comparison_direction", ""))]


def _number(n: HloNode, block: HloBlock, name: str) -> int | None:
    """A whole number that is known, inside the block or around it."""
    op = _maker(block, name)
    if op is not None:
        data = op.attributes.get("value") if op.name == "stablehlo.constant" else None
        value = data.ravel()[0].item() if data is not None and data.size == 1 else None
    elif any(argument.name == name for argument in block.arguments):
        return None
    else:
        value = n.number_of(n.scope.find(name))
    return value if isinstance(value, int) and not isinstance(value, bool) else None

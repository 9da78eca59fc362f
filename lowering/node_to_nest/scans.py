"""Scans along an axis, sequences turned round, determinants."""

from __future__ import annotations

import math

from ...dialects.nest import ForOp
from .node import KeptNode, NoNest, Writer
from .sampling import computed
from .strips import ALONG, LEAST_INNER, Lane, Strip, is_vector, strips


def _scan(name: str, neutral: int) -> Writer:
    """Prefixes along an axis, from either end, with or without the element itself."""

    def write(node: KeptNode) -> None:
        x, y, code = node[0], node.result, node.code
        if not x.shape:
            raise NoNest
        axis = node.int_operand(1) % len(x.shape)
        n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
        exclusive, backwards = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
        number = computed(x.element)
        if inner >= LEAST_INNER and is_vector(x.element):
            for strip in strips(code, math.prod(x.shape[:axis]), n, inner):
                _scan_strip(node, strip, name, neutral, inner)
            return
        with code.stage(math.prod(x.shape[:axis]) * inner if n else 0) as item:
            first = item // inner * (n * inner) + item % inner
            total = code.cell(neutral, number)
            with code.loop(n) as k:
                place = first + ((n - 1) - k if backwards else k) * inner
                before = total.value
                after = before.call(name, x[place].to(number))
                total.value = after
                y[place] = (before if exclusive else after).to(y.element)

    return write


def _scan_strip(node: KeptNode, strip: Strip, name: str, neutral: int, inner: int) -> None:
    """The prefixes of neighbours, side by side."""
    x, y, code = node[0], node.result, node.code
    n = x.shape[node.int_operand(1) % len(x.shape)]
    exclusive, backwards = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
    total = strip.local(computed(x.element))
    place = (ALONG * -1 + (n - 1) if backwards else ALONG) * inner
    strip.each(lambda lane: lane.put(total, code.number(neutral, total.element)))

    def step(lane: Lane, loop: ForOp) -> None:
        before = lane.get(total)
        after = before.call(name, lane.read(x, place).to(total.element))
        lane.put(total, after)
        lane.write(y, (before if exclusive else after).to(y.element), place)

    strip.along(n, step)


def reverse_sequence(node: KeptNode) -> None:
    """Of each batch entry, as many steps as its length are turned round."""
    x, lengths, y, code = node[0], node[1], node.result, node.code
    time, batch = int(node.get("time_axis", 0)), int(node.get("batch_axis", 1))
    if {time, batch} != {0, 1} or len(x.shape) < 2:
        raise NoNest
    inner = math.prod(x.shape[2:])
    with code.stage(x.shape[0] * x.shape[1] if inner else 0) as item:
        places = item // x.shape[1], item % x.shape[1]
        t, row = places[time], places[batch]
        length = lengths[row].place()
        source = code.select(t < length, length - 1 - t, t)
        at = source * x.shape[1] + row if time == 0 else row * x.shape[1] + source
        code.copy(x, at * inner, y, item * inner, inner)


def det(node: KeptNode) -> None:
    """The product of the pivots, with a change of sign for each exchange of rows."""
    x, y, code = node[0], node.result, node.code
    n, number = x.shape[-1], computed(x.element)
    if n > 128:
        raise NoNest
    with code.stage(math.prod(x.shape[:-2])) as item:
        rows = code.array(number, n * n)
        with code.loop(n * n) as k:
            rows[k] = x[item * (n * n) + k].to(number)
        found = code.cell(1.0, number)
        with code.loop(n) as k:
            pivot = code.cell(k)
            with code.loop(k + 1, n) as i:
                larger = rows[i * n + k].call("abs") > rows[pivot.value * n + k].call("abs")
                with code.when(larger):
                    pivot.value = i
            with code.when(pivot.value.differs(k)):
                found.value = -found.value
                with code.loop(k, n) as j:
                    upper, lower = rows[k * n + j], rows[pivot.value * n + j]
                    rows[k * n + j] = lower
                    rows[pivot.value * n + j] = upper
            corner = rows[k * n + k]
            found.value = found.value * corner
            with code.when(corner.differs(0)), code.loop(k + 1, n) as i:
                factor = rows[i * n + k] / corner
                with code.loop(k, n) as j:
                    rows[i * n + j] = rows[i * n + j] - factor * rows[k * n + j]
        y[item] = found.value.to(y.element)


WRITERS: dict[str, Writer] = {
    "CumProd": _scan("mul", 1),
    "CumSum": _scan("add", 0),
    "Det": det,
    "ReverseSequence": reverse_sequence,
}

"""RNN, GRU and LSTM, unrolled over their static number of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import shape_of
from .node import Node
from .shaping import sliced
from .values import NotNative

# More steps would make a program nobody reads; such nodes stay opaque.
MAX_STEPS = 512
State = tuple[SSAValue, ...]


@dataclass(frozen=True)
class Direction:
    """The parameters of one direction: products with x for all steps, and what a step needs."""

    inputs: SSAValue  # [steps, batch, gates * hidden]: x W^T + Wb
    recurrent: SSAValue  # R: [gates * hidden, hidden]
    bias: SSAValue | None  # Rb: [gates * hidden]
    peepholes: SSAValue | None  # P: [3 * hidden]
    activations: Sequence[str]
    hidden: int


Step = Callable[[Node, Direction, SSAValue, State], State]
_ACTIVATIONS = {"sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu"}


def recurrent(
    step: Step, gates: int, defaults: Sequence[str], states: int
) -> Callable[[Node], list[SSAValue]]:
    """A converter: `step` maps (hidden[, cell]) to the next, for each direction in turn."""

    def convert(node: Node) -> list[SSAValue]:
        _require_ranks(node)
        x, batch_first = node[0], node.flag("layout")
        if batch_first:
            x = node.transpose(x, [1, 0, 2])
        steps, batch, _ = shape_of(x)
        _require_plain(node, steps)
        hidden = shape_of(node[2])[-1]
        orders = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}
        order = orders.get(node.string("direction", "forward"))
        if order is None:
            raise UserError("direction is forward, reverse or bidirectional")
        rows: list[list[SSAValue]] = []
        finals: list[State] = []
        for d, sign in enumerate(order):
            direction = _direction(node, x, d, gates, hidden, _names(node, d, defaults))
            state = tuple(_initial(node, k, d, batch, hidden, batch_first) for k in (5, 6)[:states])
            outputs: list[SSAValue] = []
            for t in range(steps)[::sign]:
                state = step(node, direction, _at(node, direction.inputs, t), state)
                outputs.append(state[0])
            rows.append(outputs[::sign])
            finals.append(state)
        return _results(node, rows, finals, batch_first)

    return convert


def _require_ranks(node: Node) -> None:
    """Every operand has its rank. Raises UserError."""
    for k, rank in enumerate((3, 3, 3, 2, 1, 3, 3, 2)):
        if node.has(k):
            node.of_rank(k, rank)


def _require_plain(node: Node, steps: int) -> None:
    """NotNative for what is not modelled: ragged batches, clipping, coupled gates."""
    lengths = node.known(4) if node.has(4) else None
    ragged = node.has(4) and (lengths is None or any(n != steps for n in lengths.ravel()))
    if (
        ragged
        or "clip" in node.attributes
        or node.flag("input_forget")
        or not 0 < steps <= MAX_STEPS
    ):
        raise NotNative
    if "activation_alpha" in node.attributes or "activation_beta" in node.attributes:
        raise NotNative


def _names(node: Node, d: int, defaults: Sequence[str]) -> list[str]:
    given = [name.lower() for name in node.strings("activations")]
    names = given[d * len(defaults) : (d + 1) * len(defaults)] or list(defaults)
    if len(names) != len(defaults) or any(n not in _ACTIVATIONS for n in names):
        raise NotNative
    return [_ACTIVATIONS[n] for n in names]


def _row(node: Node, x: SSAValue, d: int) -> SSAValue:
    """x[d]."""
    shape = shape_of(x)
    part = sliced(node, x, [d] + [0] * (len(shape) - 1), [1, *shape[1:]], [1] * len(shape))
    return node.reshape(part, shape[1:])


def _at(node: Node, x: SSAValue, t: int) -> SSAValue:
    return _row(node, x, t)


def _part(node: Node, x: SSAValue, k: int, hidden: int) -> SSAValue:
    """Gate `k` of the last dim."""
    shape = shape_of(x)
    starts = [0] * (len(shape) - 1) + [k * hidden]
    return sliced(node, x, starts, [*shape[:-1], hidden], [1] * len(shape))


def _rows_of(node: Node, x: SSAValue, k: int, hidden: int) -> SSAValue:
    """Gate `k` of the first dim of a matrix."""
    return sliced(node, x, [k * hidden, 0], [hidden, shape_of(x)[1]], [1, 1])


def _direction(
    node: Node, x: SSAValue, d: int, gates: int, hidden: int, activations: Sequence[str]
) -> Direction:
    steps, batch, size = shape_of(x)
    build = node.build
    weights = _row(node, node[1], d)
    flat = node.reshape(x, [steps * batch, size])
    inputs = build.matmul(flat, weights, transpose_b=True)
    bias = None
    if node.has(3):
        both = _row(node, node[3], d)
        inputs = build.add(
            inputs, build.expand(_part(node, both, 0, gates * hidden), shape_of(inputs))
        )
        bias = _part(node, both, 1, gates * hidden)
    peepholes = _row(node, node[7], d) if node.has(7) else None
    inputs = node.reshape(inputs, [steps, batch, gates * hidden])
    return Direction(inputs, _row(node, node[2], d), bias, peepholes, activations, hidden)


def _initial(node: Node, k: int, d: int, batch: int, hidden: int, batch_first: bool) -> SSAValue:
    if not node.has(k):
        element = node.value(0).element
        assert element is not None
        return node.build.expand(node.scalar(0.0, element), [batch, hidden])
    given = node.transpose(node[k], [1, 0, 2]) if batch_first else node[k]
    return _row(node, given, d)


def _recurrence(node: Node, p: Direction, h: SSAValue) -> SSAValue:
    """h R^T + Rb."""
    product = node.build.matmul(h, p.recurrent, transpose_b=True)
    return (
        product
        if p.bias is None
        else node.build.add(product, node.build.expand(p.bias, shape_of(product)))
    )


def rnn_step(node: Node, p: Direction, x: SSAValue, state: State) -> State:
    """f(x W^T + h R^T + b)."""
    return (node.build.op(p.activations[0], node.build.add(x, _recurrence(node, p, state[0]))),)


def gru_step(node: Node, p: Direction, x: SSAValue, state: State) -> State:
    """Gates z, r, h; `linear_before_reset` multiplies r after the product."""
    build, (h,), n = node.build, state, p.hidden
    f, g = p.activations
    full = _recurrence(node, p, h)
    z, r = (build.op(f, build.add(_part(node, x, k, n), _part(node, full, k, n))) for k in range(2))
    if node.flag("linear_before_reset"):
        inner = build.mul(r, _part(node, full, 2, n))
    else:
        inner = build.matmul(build.mul(r, h), _rows_of(node, p.recurrent, 2, n), transpose_b=True)
        if p.bias is not None:
            inner = build.add(inner, build.expand(_part(node, p.bias, 2, n), shape_of(inner)))
    candidate = build.op(g, build.add(_part(node, x, 2, n), inner))
    kept = build.sub(node.literal(1.0, z), z)
    return (build.add(build.mul(kept, candidate), build.mul(z, h)),)


def lstm_step(node: Node, p: Direction, x: SSAValue, state: State) -> State:
    """Gates i, o, f, c, with peepholes from the cell to i, o and f."""
    build, (h, c), n = node.build, state, p.hidden
    f, g, last = p.activations
    full = build.add(x, _recurrence(node, p, h))

    def gate(k: int, peephole: int, cell: SSAValue) -> SSAValue:
        value = _part(node, full, k, n)
        if p.peepholes is not None:
            weight = build.expand(_part(node, p.peepholes, peephole, n), shape_of(cell))
            value = build.add(value, build.mul(weight, cell))
        return build.op(f, value)

    i, forget = gate(0, 0, c), gate(2, 2, c)
    candidate = build.op(g, _part(node, full, 3, n))
    c = build.add(build.mul(forget, c), build.mul(i, candidate))
    return build.mul(gate(1, 1, c), build.op(last, c)), c


def _results(
    node: Node, rows: list[list[SSAValue]], finals: list[State], batch_first: bool
) -> list[SSAValue]:
    """Y, Y_h and Y_c, stacked over steps and directions."""
    build = node.build
    batch, hidden = shape_of(finals[0][0])
    per_direction = [
        build.concat(*[node.reshape(h, [1, 1, batch, hidden]) for h in row], axis=0) for row in rows
    ]
    y = per_direction[0] if len(rows) == 1 else build.concat(*per_direction, axis=1)
    ends: list[SSAValue] = []
    for parts in zip(*finals, strict=True):
        stacked = [node.reshape(part, [1, batch, hidden]) for part in parts]
        ends.append(stacked[0] if len(stacked) == 1 else build.concat(*stacked, axis=0))
    if batch_first:
        y = node.transpose(y, [2, 0, 1, 3])
        ends = [node.transpose(end, [1, 0, 2]) for end in ends]
    return [y, *ends]


rnn = recurrent(rnn_step, 1, ["tanh"], 1)
gru = recurrent(gru_step, 3, ["sigmoid", "tanh"], 1)
lstm = recurrent(lstm_step, 4, ["sigmoid", "tanh", "tanh"], 2)

"""RNN, GRU and LSTM: a loop over their steps for each direction; unrolled if there are few.

In a batch of rows of different lengths all rows run all steps. Beyond its length a row keeps its
state, and its result is 0. How gaps of the specification are read: docs/onnx-disagreements.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.errors import UserError, did_you_mean
from ...dialects.opaque_kernels.recurrent import ACTIVATIONS, parameters
from ...dialects.types import element_of, shape_of, tensor, tensor_type
from . import regions
from .node import OnnxNode
from .regions import BodyBuilder, LoopParts
from .shaping import sliced
from .values import NotNative

State = tuple[SSAValue, ...]
Function = Callable[[OnnxNode, SSAValue], SSAValue]


@dataclass(frozen=True)
class Direction:
    """The parameters of one direction: products with x for all steps, and the inputs of a step."""

    inputs: SSAValue  # [steps, batch, gates * hidden]: x W^T + Wb
    recurrent: SSAValue  # R: [gates * hidden, hidden]
    bias: SSAValue | None  # Rb: [gates * hidden]
    peepholes: SSAValue | None  # P: [3 * hidden]
    functions: Sequence[Function]  # of the gates, the cell, the result
    hidden: int  # size of the state


Step = Callable[[OnnxNode, Direction, SSAValue, State], State]


def recurrent(
    step: Step, gates: int, defaults: Sequence[str], states: int
) -> Callable[[OnnxNode], list[SSAValue]]:
    """A converter: `step` maps (hidden[, cell]) to the next, in each direction."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        _require_ranks(node)
        x, batch_first = node[0], node.flag("layout")
        if batch_first:
            x = node.transpose(x, [1, 0, 2])
        steps, batch, _ = shape_of(x)
        orders = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}
        order = orders.get(node.string("direction", "forward"))
        if order is None:
            raise UserError("direction is forward, reverse or bidirectional")
        functions = _functions(node, defaults, len(order))
        if steps == 0:
            raise NotNative
        hidden = shape_of(node[2])[-1]
        lengths = Lengths(node, steps, batch, hidden)
        walk = _unrolled if steps < regions.UNROLLED else _looped
        rows: list[SSAValue] = []
        finals: list[State] = []
        for d, sign in enumerate(order):
            mine = functions[d * len(defaults) : (d + 1) * len(defaults)]
            direction = _direction(node, x, d, gates, hidden, mine)
            state = tuple(_initial(node, k, d, batch, hidden, batch_first) for k in (5, 6)[:states])
            made, state = walk(node, step, direction, state, lengths, sign)
            rows.append(node.reshape(made, [steps, 1, batch, hidden]))
            finals.append(tuple(lengths.cut(0, part, None) for part in state))
        return _results(node, rows, finals, batch_first)

    return convert


def _unrolled(
    node: OnnxNode, step: Step, direction: Direction, state: State, lengths: Lengths, sign: int
) -> tuple[SSAValue, State]:
    """The results of all steps, stacked, and the last state."""
    outputs: list[SSAValue] = []
    steps, batch, _ = shape_of(direction.inputs)
    for t in range(steps)[::sign]:
        after = step(node, direction, _row(node, direction.inputs, t), state)
        outputs.append(lengths.cut(t, after[0], None))
        state = tuple(lengths.cut(t, a, b) for a, b in zip(after, state, strict=True))
    rows = [node.reshape(h, [1, batch, direction.hidden]) for h in outputs[::sign]]
    return node.build.concat(*rows, axis=0), state


def _looped(
    node: OnnxNode, step: Step, direction: Direction, state: State, lengths: Lengths, sign: int
) -> tuple[SSAValue, State]:
    """As `_unrolled`, by a loop whose body is one step."""
    body = BodyBuilder(node.build.inside())
    inner = OnnxNode(node.proto, node.version, node.inputs, body.build, node.fresh)
    steps, batch, width = shape_of(direction.inputs)
    number = body.argument(tensor([], i64), "step")
    before = tuple(body.argument(tensor_type(v), "state") for v in state)
    row = body.argument(tensor([batch, width], element_of(direction.inputs)), "x")
    inside = replace(
        direction,
        recurrent=body.capture(direction.recurrent),
        bias=None if direction.bias is None else body.capture(direction.bias),
        peepholes=None if direction.peepholes is None else body.capture(direction.peepholes),
    )
    after = step(inner, inside, row, before)
    cut = lengths.inside(inner, body, number, None if sign == 1 else steps - 1)
    parts = LoopParts(
        body,
        state,
        [cut(a, b) for a, b in zip(after, before, strict=True)],
        scanned=[direction.inputs],
        rows=[cut(after[0], None)],
        trips=steps,
        backward=[int(sign == -1)] * 2,
    )
    *ends, rows = parts.add(node.build)
    return rows, tuple(ends)


def _require_ranks(node: OnnxNode) -> None:
    """Check the rank of every operand. Raises UserError."""
    for k, rank in enumerate((3, 3, 3, 2, 1, 3, 3, 2)):
        if node.has(k):
            node.of_rank(k, rank)


class Lengths:
    """How many steps each row of the batch has.

    Raises:
        UserError: there is not one length per row, or a constant one is not in [0, steps].
    """

    def __init__(self, node: OnnxNode, steps: int, batch: int, hidden: int):
        self.node, self.shape, self.steps = node, [batch, hidden], steps
        self.known = node.known(4)
        if node.has(4) and node.shape(4) != (batch,):
            raise UserError(
                "sequence_lens has one entry per row of the batch",
                expected=[batch],
                found=list(node.shape(4)),
            )
        if self.known is not None and ((self.known < 0) | (self.known > steps)).any():
            raise UserError(
                "a length is out of range", expected=f"0 to {steps}", found=self.known.tolist()
            )
        self._masks: dict[int, SSAValue] = {}

    def cut(self, t: int, inside: SSAValue, beyond: SSAValue | None) -> SSAValue:
        """`inside` in rows that have step t, `beyond` (0 if None) in the others."""
        if not self.node.has(4) or (self.known is not None and (self.known > t).all()):
            return inside
        if beyond is None:
            beyond = self.node.literal(0.0, inside)
        return self.node.build.where(self._mask(t), inside, beyond)

    def inside(
        self, node: OnnxNode, body: BodyBuilder, number: SSAValue, last: int | None
    ) -> Callable[[SSAValue, SSAValue | None], SSAValue]:
        """`cut` in a body: of the step with this number, counted back from `last` if given."""
        build = node.build
        if not self.node.has(4) or (self.known is not None and (self.known >= self.steps).all()):
            return lambda inside, _: inside
        rows = [self.shape[0], 1]
        if self.known is not None:
            lengths = build.constant(self.known.reshape(rows).astype(np.int64))
        else:
            lengths = body.capture(self.node.reshape(self.node[4], rows))
        t = build.cast(number, to=element_of(lengths))
        if last is not None:
            t = build.sub(node.literal(last, t), t)
        mask = build.expand(build.greater(lengths, build.expand(t, rows)), self.shape)

        def cut(inside: SSAValue, beyond: SSAValue | None) -> SSAValue:
            other = node.literal(0.0, inside) if beyond is None else beyond
            return build.where(mask, inside, other)

        return cut

    def _mask(self, t: int) -> SSAValue:
        """Rows that have step t, as booleans [batch, hidden]."""
        node, build = self.node, self.node.build
        if t not in self._masks:
            if self.known is not None:
                rows = node.data((self.known > t)[:, None], f"rows{t}")
            else:
                lengths = node.reshape(node[4], [self.shape[0], 1])
                rows = build.greater(lengths, node.literal(t, lengths))
            self._masks[t] = build.expand(rows, self.shape)
        return self._masks[t]


# --- activations ---


def _functions(node: OnnxNode, defaults: Sequence[str], ways: int) -> list[Function]:
    """The activations of all directions; `clip` bounds the operands of all but LSTM's h.

    Raises:
        UserError: there are too few or too many, one is unknown, or one lacks a parameter without
            a default.
    """
    given = node.strings("activations") or list(defaults) * ways
    if len(given) != len(defaults) * ways:
        raise UserError(
            "wrong number of activations", expected=len(defaults) * ways, found=len(given)
        )
    names = [name.lower() for name in given]
    for name in names:
        if name not in ACTIVATIONS:
            hint = did_you_mean(name, ACTIVATIONS) or f"known: {', '.join(ACTIVATIONS)}"
            raise UserError(f"activation '{name}' is unknown", hint=hint)
    alphas, betas = node.floats("activation_alpha") or [], node.floats("activation_beta") or []
    _require_numbers(names, alphas, betas)
    clip = node.float("clip", 0.0) if "clip" in node.attributes else None
    if clip is not None and clip <= 0:
        raise UserError("clip is not positive", found=clip)
    numbers = parameters(names, alphas, betas)
    return [
        _activation(name, *ab, clip if k % len(defaults) < 2 else None)
        for k, (name, ab) in enumerate(zip(names, numbers, strict=True))
    ]


def _require_numbers(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> None:
    """Affine and ScaledTanh are not ONNX ops: their parameters have no default."""
    for which, given, position in (("alpha", alphas, 0), ("beta", betas, 1)):
        takers = [name for name in names if ACTIVATIONS[name][position] is not None]
        left = [name for name in takers[len(given) :] if name in ("affine", "scaledtanh")]
        if left:
            raise UserError(
                f"activation '{left[0]}' has no default {which}",
                hint=f"give activation_{which} one entry for each activation that has one",
            )


def _activation(name: str, alpha: float, beta: float, clip: float | None) -> Function:
    def apply(node: OnnxNode, x: SSAValue) -> SSAValue:
        if clip is not None:
            x = node.build.clip(x, min=-clip, max=clip)
        return _BUILD[name](node, x, alpha, beta)

    return apply


def _scaled_tanh(node: OnnxNode, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    inner = node.build.tanh(node.build.mul(x, node.literal(beta, x)))
    return node.build.mul(inner, node.literal(alpha, inner))


_BUILD: Mapping[str, Callable[[OnnxNode, SSAValue, float, float], SSAValue]] = {
    "affine": lambda n, x, a, b: n.build.add(n.build.mul(x, n.literal(a, x)), n.literal(b, x)),
    "elu": lambda n, x, a, b: n.build.elu(x, alpha=a),
    "hardsigmoid": lambda n, x, a, b: n.build.hard_sigmoid(x, alpha=a, beta=b),
    "leakyrelu": lambda n, x, a, b: n.build.leaky_relu(x, alpha=a),
    "relu": lambda n, x, a, b: n.build.relu(x),
    "scaledtanh": _scaled_tanh,
    "sigmoid": lambda n, x, a, b: n.build.sigmoid(x),
    "softplus": lambda n, x, a, b: n.build.softplus(x),
    "softsign": lambda n, x, a, b: n.build.div(x, n.build.add(n.literal(1.0, x), n.build.abs(x))),
    "tanh": lambda n, x, a, b: n.build.tanh(x),
    "thresholdedrelu": lambda n, x, a, b: n.build.where(
        n.build.greater(x, n.literal(a, x)), x, n.literal(0.0, x)
    ),
}


# --- parameters ---


def _row(node: OnnxNode, x: SSAValue, d: int) -> SSAValue:
    """x[d]."""
    shape = shape_of(x)
    part = sliced(node, x, [d] + [0] * (len(shape) - 1), [1, *shape[1:]], [1] * len(shape))
    return node.reshape(part, shape[1:])


def _part(node: OnnxNode, x: SSAValue, k: int, hidden: int) -> SSAValue:
    """Gate `k` of the last dim."""
    shape = shape_of(x)
    starts = [0] * (len(shape) - 1) + [k * hidden]
    return sliced(node, x, starts, [*shape[:-1], hidden], [1] * len(shape))


def _rows_of(node: OnnxNode, x: SSAValue, k: int, hidden: int) -> SSAValue:
    """Gate `k` of the first dim of a matrix."""
    return sliced(node, x, [k * hidden, 0], [hidden, shape_of(x)[1]], [1, 1])


def _direction(
    node: OnnxNode, x: SSAValue, d: int, gates: int, hidden: int, functions: Sequence[Function]
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
    return Direction(inputs, _row(node, node[2], d), bias, peepholes, functions, hidden)


def _initial(
    node: OnnxNode, k: int, d: int, batch: int, hidden: int, batch_first: bool
) -> SSAValue:
    if not node.has(k):
        element = node.value(0).element
        assert element is not None
        return node.build.expand(node.scalar(0.0, element), [batch, hidden])
    given = node.transpose(node[k], [1, 0, 2]) if batch_first else node[k]
    return _row(node, given, d)


def _recurrence(node: OnnxNode, p: Direction, h: SSAValue) -> SSAValue:
    """h R^T + Rb."""
    product = node.build.matmul(h, p.recurrent, transpose_b=True)
    return (
        product
        if p.bias is None
        else node.build.add(product, node.build.expand(p.bias, shape_of(product)))
    )


def rnn_step(node: OnnxNode, p: Direction, x: SSAValue, state: State) -> State:
    """f(x W^T + h R^T + b)."""
    return (p.functions[0](node, node.build.add(x, _recurrence(node, p, state[0]))),)


def gru_step(node: OnnxNode, p: Direction, x: SSAValue, state: State) -> State:
    """Gates z, r, h; `linear_before_reset` multiplies r after the product."""
    build, (h,), n = node.build, state, p.hidden
    f, g = p.functions
    full = _recurrence(node, p, h)
    z, r = (f(node, build.add(_part(node, x, k, n), _part(node, full, k, n))) for k in range(2))
    if node.flag("linear_before_reset"):
        inner = build.mul(r, _part(node, full, 2, n))
    else:
        inner = build.matmul(build.mul(r, h), _rows_of(node, p.recurrent, 2, n), transpose_b=True)
        if p.bias is not None:
            inner = build.add(inner, build.expand(_part(node, p.bias, 2, n), shape_of(inner)))
    candidate = g(node, build.add(_part(node, x, 2, n), inner))
    kept = build.sub(node.literal(1.0, z), z)
    return (build.add(build.mul(kept, candidate), build.mul(z, h)),)


def lstm_step(node: OnnxNode, p: Direction, x: SSAValue, state: State) -> State:
    """Gates i, o, f, c, with peepholes from the cell to i, o and f; f may be 1 - i."""
    build, (h, c), n = node.build, state, p.hidden
    f, g, last = p.functions
    full = build.add(x, _recurrence(node, p, h))

    def gate(k: int, peephole: int, cell: SSAValue) -> SSAValue:
        value = _part(node, full, k, n)
        if p.peepholes is not None:
            weight = build.expand(_part(node, p.peepholes, peephole, n), shape_of(cell))
            value = build.add(value, build.mul(weight, cell))
        return f(node, value)

    i = gate(0, 0, c)
    coupled = node.flag("input_forget")
    forget = build.sub(node.literal(1.0, i), i) if coupled else gate(2, 2, c)
    candidate = g(node, _part(node, full, 3, n))
    c = build.add(build.mul(forget, c), build.mul(i, candidate))
    return build.mul(gate(1, 1, c), last(node, c)), c


def _results(
    node: OnnxNode, rows: list[SSAValue], finals: list[State], batch_first: bool
) -> list[SSAValue]:
    """Y, Y_h and Y_c, stacked over directions."""
    build = node.build
    batch, hidden = shape_of(finals[0][0])
    y = rows[0] if len(rows) == 1 else build.concat(*rows, axis=1)
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

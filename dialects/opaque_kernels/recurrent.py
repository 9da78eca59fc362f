"""RNN, GRU and LSTM with lengths, clipping, any activations, coupled gates and either layout.

onnx.reference ignores sequence_lens, clip, input_forget and activations. The operand of LSTM's h is
not clipped, and a row of length 0 ends in zeros: docs/onnx-disagreements.md.

Source: ONNX operators RNN, GRU, LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall

Function = Callable[[Array], Array]
State = tuple[Array, ...]

# Activations with the defaults of alpha and beta; None where the function has no such parameter.
ACTIVATIONS: Mapping[str, tuple[float | None, float | None]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "relu": (None, None),
    "scaledtanh": (1.0, 1.0),
    "sigmoid": (None, None),
    "softplus": (None, None),
    "softsign": (None, None),
    "tanh": (None, None),
    "thresholdedrelu": (1.0, None),
}


def parameters(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[tuple[float, float]]:
    """alpha and beta of each activation: the values are consumed in order by those that have one.

    Raises:
        ValueError: an activation is unknown.
    """
    alpha, beta = iter(alphas), iter(betas)
    found: list[tuple[float, float]] = []
    for name in names:
        if name not in ACTIVATIONS:
            raise ValueError(f"activation '{name}' is unknown")
        default = ACTIVATIONS[name]
        a = 0.0 if default[0] is None else next(alpha, default[0])
        b = 0.0 if default[1] is None else next(beta, default[1])
        found.append((a, b))
    return found


def _function(name: str, alpha: float, beta: float, clip: float | None) -> Function:
    """The activation on clipped values, in the dtype of its operand."""

    def apply(x: Array) -> Array:
        x = x if clip is None else np.clip(x, -clip, clip)
        return np.asarray(_apply(name, x, alpha, beta)).astype(x.dtype)

    return apply


def _apply(name: str, x: Array, alpha: float, beta: float) -> Array:
    match name:
        case "affine":
            return alpha * x + beta
        case "elu":
            return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))
        case "hardsigmoid":
            return np.clip(alpha * x + beta, 0, 1)
        case "leakyrelu":
            return np.where(x >= 0, x, alpha * x)
        case "relu":
            return np.maximum(x, 0)
        case "scaledtanh":
            return alpha * np.tanh(beta * x)
        case "sigmoid":
            return 1 / (1 + np.exp(-x))
        case "softplus":
            return np.logaddexp(x, 0)
        case "softsign":
            return x / (1 + np.abs(x))
        case "thresholdedrelu":
            return np.where(x > alpha, x, 0)
        case _:
            return np.tanh(x)


@dataclass(frozen=True)
class _Direction:
    """The parameters of one direction; the bias of the input and of the recurrence apart."""

    w: Array  # [gates * hidden, size]
    r: Array  # [gates * hidden, hidden]
    wb: Array
    rb: Array
    peepholes: Array  # [3 * hidden]
    functions: Sequence[Function]
    hidden: int


Step = Callable[[NodeCall, _Direction, Array, State], State]


def _recurrent(step: Step, gates: int, defaults: Sequence[str], states: int) -> Kernel:
    def run(call: NodeCall) -> list[Array]:
        batch_first = bool(call.get("layout", 0))
        x = np.swapaxes(call[0], 0, 1) if batch_first else call[0]
        orders = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}
        signs = orders[call.get("direction", "forward")]
        steps, batch, _ = x.shape
        lengths = call[4].astype(np.int64) if call.has(4) else np.full(batch, steps)
        if ((lengths < 0) | (lengths > steps)).any():
            raise ValueError(f"sequence_lens are not in [0, {steps}]")
        columns: list[Array] = []
        finals: list[State] = []
        for d, (sign, way) in enumerate(
            zip(signs, _directions(call, gates, defaults), strict=False)
        ):
            state = tuple(_initial(call, k, d, x, batch_first) for k in (5, 6)[:states])
            rows = np.zeros((steps, batch, way.hidden), x.dtype)
            for t in range(steps)[::sign]:
                valid = (t < lengths)[:, None]
                after = step(call, way, x[t], state)
                state = tuple(np.where(valid, a, b) for a, b in zip(after, state, strict=True))
                rows[t] = np.where(valid, after[0], 0)
            columns.append(rows)
            finals.append(tuple(np.where((lengths > 0)[:, None], part, 0) for part in state))
        y = np.stack(columns, axis=1)
        ends = [np.stack(parts, axis=0) for parts in zip(*finals, strict=True)]
        if batch_first:
            y, ends = y.transpose(2, 0, 1, 3), [end.transpose(1, 0, 2) for end in ends]
        return [y, *ends][: len(call.wanted)]

    return run


def _directions(call: NodeCall, gates: int, defaults: Sequence[str]) -> Iterator[_Direction]:
    ways, hidden = call[2].shape[0], call[2].shape[-1]
    names = [str(n).lower() for n in call.get("activations") or list(defaults) * ways]
    numbers = parameters(
        names, call.get("activation_alpha") or [], call.get("activation_beta") or []
    )
    clip, dtype, count = call.get("clip"), call[0].dtype, len(defaults)
    functions = [
        _function(n, *ab, clip if k % count < 2 else None)
        for k, (n, ab) in enumerate(zip(names, numbers, strict=True))
    ]
    bias = call[3] if call.has(3) else np.zeros((ways, 2 * gates * hidden), dtype)
    peepholes = call[7] if call.has(7) else np.zeros((ways, 3 * hidden), dtype)
    for d in range(ways):
        wb, rb = np.split(bias[d], 2)
        mine = functions[d * count : (d + 1) * count]
        yield _Direction(call[1][d], call[2][d], wb, rb, peepholes[d], mine, hidden)


def _initial(call: NodeCall, k: int, d: int, x: Array, batch_first: bool) -> Array:
    if not call.has(k):
        return np.zeros((x.shape[1], call[2].shape[-1]), x.dtype)
    return call[k][:, d] if batch_first else call[k][d]


def _rnn_step(call: NodeCall, p: _Direction, x: Array, state: State) -> State:
    (f,) = p.functions
    return (f(x @ p.w.T + state[0] @ p.r.T + p.wb + p.rb),)


def _gru_step(call: NodeCall, p: _Direction, x: Array, state: State) -> State:
    (f, g), (h,), n = p.functions, state, p.hidden
    given = x @ p.w.T + p.wb
    gates = f(given[:, : 2 * n] + h @ p.r[: 2 * n].T + p.rb[: 2 * n])
    z, r = gates[:, :n], gates[:, n:]
    last, bias = p.r[2 * n :].T, p.rb[2 * n :]
    inner = r * (h @ last + bias) if call.get("linear_before_reset") else (r * h) @ last + bias
    return ((1 - z) * g(given[:, 2 * n :] + inner) + z * h,)


def _lstm_step(call: NodeCall, p: _Direction, x: Array, state: State) -> State:
    (f, g, last), (h, c) = p.functions, state
    i, o, forget, candidate = np.split(x @ p.w.T + h @ p.r.T + p.wb + p.rb, 4, axis=-1)
    to_i, to_o, to_f = np.split(p.peepholes, 3)
    i = f(i + to_i * c)
    forget = 1 - i if call.get("input_forget") else f(forget + to_f * c)
    c = forget * c + i * g(candidate)
    return f(o + to_o * c) * last(c), c


KERNELS: dict[str, Kernel] = {
    "RNN": _recurrent(_rnn_step, 1, ["tanh"], 1),
    "GRU": _recurrent(_gru_step, 3, ["sigmoid", "tanh"], 1),
    "LSTM": _recurrent(_lstm_step, 4, ["sigmoid", "tanh", "tanh"], 2),
}

"""NasRNN, the recurrent cell found by Zoph and Le (2017), as TASO and TENSAT measure it.

Each step has its own weights, as in their sources; the state before the first step is a weight.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from .layers import Net, normal

_GATES = 8
_GAIN = 8.0
"""Variance gain of the products: six nested squashing functions make the state small."""


def _step(net: Net, name: str, x: SSAValue, state: SSAValue, width: int) -> SSAValue:
    b = net.build
    t = [
        b.add(
            net.project(f"{name}.x{k}", x, width, _GAIN),
            net.project(f"{name}.h{k}", state, width, _GAIN),
        )
        for k in range(_GATES)
    ]
    left = b.tanh(b.add(b.relu(t[0]), b.sigmoid(t[3])))
    right = b.tanh(b.mul(b.sigmoid(t[6]), b.relu(t[7])))
    gate = b.sigmoid(b.add(b.sigmoid(t[1]), b.tanh(t[2])))
    cell = b.tanh(b.mul(b.sigmoid(t[4]), b.tanh(t[5])))
    return b.tanh(b.mul(b.tanh(b.add(gate, cell)), b.tanh(b.mul(left, right))))


def nasrnn(batch: int, seed: int, *, steps: int = 5, width: int = 512) -> Program:
    """Build `steps` steps: inputs x0, x1, ... [batch, width] -> the last state."""
    net = Net(seed)
    inputs = [net.input(f"x{k}", (batch, width)) for k in range(steps)]
    start = net.weight("initial_state", [1, width], normal(0, 0.5))
    state = net.build.expand(start, (batch, width))
    for k, x in enumerate(inputs):
        state = _step(net, f"step{k}", x, state, width)
    return net.finish("zoo:nasrnn", state=state)

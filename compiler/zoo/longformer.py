"""Longformer's dilated band attention with a feed-forward layer (Beltagy et al. 2020), EinNet's.

One layer as EinNet's artifact runs it: each row meets 2 * width + 1 rows around it, `dilation`
apart; rows beyond the ends score 0 and take their share of the softmax; scores are not scaled.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

_SCORES = 0.02
"""Variance gain of queries: scores near 1 without a scale."""


def _heads(net: Net, x: SSAValue, batch: int, heads: int) -> SSAValue:
    """[b * s, h] -> [b * heads, s, h / heads]."""
    rows, hidden = shape_of(x)
    sequence, inner = rows // batch, hidden // heads
    x = net.build.reshape(x, shape=[batch, sequence, heads, inner])
    x = net.build.transpose(x, perm=[0, 2, 1, 3])
    return net.build.reshape(x, shape=[batch * heads, sequence, inner])


def _attention(
    net: Net, x: SSAValue, batch: int, heads: int, width: int, dilation: int
) -> SSAValue:
    b, (rows, hidden) = net.build, shape_of(x)
    gains = {"q": _SCORES, "k": LINEAR_GAIN, "v": LINEAR_GAIN}
    query, key, value = (
        _heads(net, net.project(part, x, hidden, gain), batch, heads)
        for part, gain in gains.items()
    )
    with b.at("attention"):
        scores = b.g2bmm(query, key, width=width, dilation=dilation)
        context = b.gbmm(b.softmax(scores, axis=2), value, dilation=dilation)
        context = b.reshape(context, shape=[batch, heads, rows // batch, hidden // heads])
        return b.reshape(b.transpose(context, perm=[0, 2, 1, 3]), shape=[rows, hidden])


def longformer(
    batch: int,
    seed: int,
    *,
    sequence: int = 10000,
    hidden: int = 512,
    heads: int = 8,
    width: int = 1000,
    dilation: int = 4,
) -> Program:
    """Build one layer: [batch, sequence, hidden] -> the same; `heads` divides `hidden`."""
    if hidden % heads != 0:
        raise UserError("longformer: 'heads' divides 'hidden'", found=f"{heads} and {hidden}")
    net = Net(seed)
    b = net.build
    x = b.reshape(net.input("input", (batch, sequence, hidden)), shape=[batch * sequence, hidden])
    y = _attention(net, x, batch, heads, width, dilation)
    for name in ("ffn1", "ffn2"):
        y = net.relu(net.linear(name, y, hidden, gain=RELU_GAIN))
    states = b.reshape(b.add(x, y), shape=[batch, sequence, hidden])
    return net.finish("zoo:longformer", last_hidden_state=states)

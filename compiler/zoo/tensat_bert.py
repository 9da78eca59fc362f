"""The BERT of TASO's and TENSAT's sources: eight attention layers without softmax or norms.

As there, a layer's last product reads the layer's input, not the attention's result: those results
are outputs of their own, all kept (TENSAT's graph keeps them, too).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, Net


def _heads(net: Net, x: SSAValue, batch: int, heads: int) -> SSAValue:
    """[b * s, h] -> [b * heads, s, h / heads]."""
    b, (rows, hidden) = net.build, shape_of(x)
    x = b.reshape(x, shape=[batch, rows // batch, heads, hidden // heads])
    x = b.transpose(x, perm=[0, 2, 1, 3])
    return b.reshape(x, shape=[batch * heads, rows // batch, hidden // heads])


def _attention(net: Net, name: str, x: SSAValue, batch: int, heads: int) -> SSAValue:
    b, (rows, hidden) = net.build, shape_of(x)
    small = LINEAR_GAIN * heads**2 / hidden**2  # scores and results near 1 without a scale
    gains = {"query": small, "key": LINEAR_GAIN, "value": LINEAR_GAIN}
    query, key, value = (
        _heads(net, net.project(f"{name}.{part}", x, hidden, gain), batch, heads)
        for part, gain in gains.items()
    )
    with b.at(name):
        context = b.matmul(b.matmul(query, key, transpose_b=True), value)
        context = b.reshape(context, shape=[batch, heads, rows // batch, hidden // heads])
        return b.reshape(b.transpose(context, perm=[0, 2, 1, 3]), shape=[rows, hidden])


def tensat_bert(
    batch: int,
    seed: int,
    *,
    sequence: int = 64,
    layers: int = 8,
    hidden: int = 1024,
    heads: int = 16,
) -> Program:
    """Build the layers on [batch * sequence, hidden]; `heads` divides `hidden`."""
    if hidden % heads != 0:
        raise UserError("tensat-bert: 'heads' divides 'hidden'", found=f"{heads} and {hidden}")
    net = Net(seed)
    x = net.relu(net.input("input", (batch * sequence, hidden)))
    outputs: dict[str, SSAValue] = {}
    for k in range(layers):
        outputs[f"attention{k}"] = _attention(net, f"layer{k}", x, batch, heads)
        x = net.project(f"layer{k}.linear", x, hidden)
    return net.finish("zoo:tensat-bert", **outputs, hidden=x)

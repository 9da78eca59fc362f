"""BERT-base, uncased (Devlin et al. 2018), with its pooler, as transformers' `BertModel` has it.

All tokens are of type 0: the type embedding is a row of its table, not an input.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import Net, normal

_EPSILON = 1e-12
_MASKED = -10000.0
"""What a masked position adds to its attention scores."""


def _embeddings(net: Net, ids: SSAValue, hidden: int, vocabulary: int, positions: int) -> SSAValue:
    b, draw = net.build, normal(0, 0.5)
    batch, sequence = shape_of(ids)
    words = net.weight("embeddings.word_embeddings.weight", [vocabulary, hidden], draw)
    places = net.weight("embeddings.position_embeddings.weight", [positions, hidden], draw)
    types = net.weight("embeddings.token_type_embeddings.weight", [2, hidden], draw)
    with b.at("embeddings"):
        place = b.slice(places, starts=[0, 0], sizes=[sequence, hidden], steps=[1, 1])
        kind = b.slice(types, starts=[0, 0], sizes=[1, hidden], steps=[1, 1])
        fixed = b.add(place, b.expand(kind, (sequence, hidden)))
        word = b.gather(words, ids, axis=0)
        total = b.add(word, b.expand(fixed, (batch, sequence, hidden)))
    return net.layer_norm("embeddings.LayerNorm", total, _EPSILON)


def _mask(net: Net, mask: SSAValue) -> SSAValue:
    """0 where a position counts, _MASKED where not: [b, s] -> [b, 1, 1, s]."""
    b = net.build
    batch, sequence = shape_of(mask)
    with b.at("attention_mask"):
        keep = b.cast(mask, to=f32)
        added = b.mul(b.sub(net.scalar(1.0, keep), keep), net.scalar(_MASKED, keep))
        return b.reshape(added, shape=[batch, 1, 1, sequence])


def _split_heads(net: Net, x: SSAValue, batch: int, heads: int) -> SSAValue:
    """[b * s, h] -> [b, heads, s, h / heads]."""
    rows, hidden = shape_of(x)
    x = net.build.reshape(x, shape=[batch, rows // batch, heads, hidden // heads])
    return net.build.transpose(x, perm=[0, 2, 1, 3])


def _attention(net: Net, name: str, x: SSAValue, mask: SSAValue, heads: int) -> SSAValue:
    b = net.build
    rows, hidden = shape_of(x)
    batch = shape_of(mask)[0]
    query, key, value = (
        _split_heads(net, net.linear(f"{name}.self.{part}", x, hidden), batch, heads)
        for part in ("query", "key", "value")
    )
    with b.at(f"{name}.self"):
        scores = b.matmul(query, key, transpose_b=True)
        scores = b.div(scores, net.scalar(math.sqrt(hidden // heads), scores))
        weights = b.softmax(b.add(scores, b.expand(mask, shape_of(scores))), axis=3)
        context = b.transpose(b.matmul(weights, value), perm=[0, 2, 1, 3])
        context = b.reshape(context, shape=[rows, hidden])
    y = net.linear(f"{name}.output.dense", context, hidden)
    return net.layer_norm(f"{name}.output.LayerNorm", b.add(y, x), _EPSILON)


def _layer(net: Net, name: str, x: SSAValue, mask: SSAValue, heads: int) -> SSAValue:
    hidden = shape_of(x)[1]
    x = _attention(net, f"{name}.attention", x, mask, heads)
    wide = net.gelu(net.linear(f"{name}.intermediate.dense", x, 4 * hidden))
    y = net.linear(f"{name}.output.dense", wide, hidden, gain=2.0)
    return net.layer_norm(f"{name}.output.LayerNorm", net.build.add(y, x), _EPSILON)


def bert_base(
    batch: int,
    seed: int,
    *,
    sequence: int = 128,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = 30522,
    positions: int = 512,
) -> Program:
    """Build BERT-base; smaller ones by its sizes, with `heads` dividing `hidden`."""
    net = Net(seed)
    b = net.build
    ids = net.input("input_ids", (batch, sequence), i64)
    mask = _mask(net, net.input("attention_mask", (batch, sequence), i64))
    x = _embeddings(net, ids, hidden, vocabulary, positions)
    x = b.reshape(x, shape=[batch * sequence, hidden])
    for k in range(layers):
        x = _layer(net, f"encoder.layer.{k}", x, mask, heads)
    states = b.reshape(x, shape=[batch, sequence, hidden])
    first = b.slice(states, starts=[0, 0, 0], sizes=[batch, 1, hidden], steps=[1, 1, 1])
    pooled = net.linear("pooler.dense", b.reshape(first, shape=[batch, hidden]), hidden)
    return net.finish("zoo:bert-base", last_hidden_state=states, pooler_output=b.tanh(pooled))

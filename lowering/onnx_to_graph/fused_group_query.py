"""Rotary embeddings and attention whose heads share keys, as onnxruntime has them for LLMs.

Source: onnxruntime docs/ContribOperators.md, and what its CPU kernels compute.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx import FunctionProto, TensorProto

from ...dialects.errors import UserError
from .fused_attention import by_heads, filtered, read_by_heads
from .fused_body import FusedBody
from .node import OnnxNode


def rotary_embedding(node: OnnxNode) -> FunctionProto:
    """RotaryEmbedding(x, positions, cosines, sines): halves, or pairs, of each head are rotated.

    Shapes: x is [batch, length, heads * size] or [batch, heads, length, size]; positions are
    [batch, length], or one number where the first starts.
    """
    body, shape = FusedBody(node), node.shape(0)
    if node.flag("is_packed_batching"):
        raise UserError("packed batches are not supported")
    width = 2 * node.shape(2)[1]
    flat = len(shape) == 3
    heads = node.int("num_heads", 0) or (shape[-1] // width if flat else shape[1])
    length = shape[1] if flat else shape[2]
    positions = "x1"
    if node.shape(1) == (1,):
        steps = body.tensor(np.arange(length, dtype=np.int64)[None])
        positions = body.add("Add", body.add("Cast", "x1", to=TensorProto.INT64), steps)
    x = by_heads(body, "x0", shape, heads) if flat else "x0"
    interleaved, size = node.flag("interleaved"), shape[-1] // (heads if flat else 1)
    y = rotated(body, x, positions, "x2", "x3", size, width, interleaved=interleaved)
    if node.attributes.get("scale") and node.float("scale", 1.0) != 1.0:
        raise UserError("a scale is not supported")
    if not flat:
        return body.function(y)
    joined = body.add("Transpose", y, perm=[0, 2, 1, 3])
    return body.function(body.add("Reshape", joined, body.integers(*shape)))


def rotated(
    body: FusedBody,
    x: str,
    positions: str,
    cosines: str,
    sines: str,
    size: int,
    width: int,
    *,
    interleaved: bool,
) -> str:
    """[batch, heads, length, size]: the first `width` numbers of each head, rotated; the rest."""
    cos, sin = (
        body.add("Unsqueeze", body.add("Gather", table, positions, axis=0), body.integers(1))
        for table in (cosines, sines)
    )
    turned = body.part(x, -1, 0, width) if width < size else x
    half = width // 2
    if interleaved:
        apart = body.add("Reshape", turned, body.integers(0, 0, 0, half, 2))
        a, b = (body.add("Gather", apart, body.scalar(k), axis=-1) for k in range(2))
    else:
        a, b = body.part(turned, -1, 0, half), body.part(turned, -1, half, width)
    first = body.add("Sub", body.add("Mul", a, cos), body.add("Mul", b, sin))
    second = body.add("Add", body.add("Mul", b, cos), body.add("Mul", a, sin))
    if interleaved:
        pair = [body.add("Unsqueeze", v, body.integers(-1)) for v in (first, second)]
        whole = body.add("Concat", *pair, axis=-1)
        whole = body.add("Reshape", whole, body.integers(0, 0, 0, width))
    else:
        whole = body.add("Concat", first, second, axis=-1)
    if width == size:
        return whole
    return body.add("Concat", whole, body.part(x, -1, width, size), axis=-1)


class _Grouped(FusedBody):
    """The body of a GroupQueryAttention, with the sizes that its operands have."""

    def __init__(self, node: OnnxNode):
        super().__init__(node)
        refused = {11: "sinks", 12: "a quantised cache", 13: "a quantised cache",
                   14: "norms of queries", 15: "norms of keys", 16: "padded chunks"}  # fmt: skip
        for k, what in refused.items():
            if node.has(k):
                raise UserError(f"{what} are not supported" if k > 13 else f"{what}: not supported")
        for name, default in (("smooth_softmax", 0), ("qk_output", 0), ("sliding_window_cache", 0)):
            if node.int(name, default) not in (default, -1):
                raise UserError(f"attribute '{name}' is not supported")
        self.heads, self.groups = node.int("num_heads", 1), node.int("kv_num_heads", 1)
        self.batch, self.length, width = node.shape(0)
        packed = not node.has(1)
        self.size = width // (self.heads + 2 * self.groups if packed else self.heads)
        self.past = node.shape(3)[2] if node.has(3) else 0
        self.total = node.constant_int(6, "the total length")
        if self.total not in (self.past + self.length, self.past) or self.total < self.length:
            raise UserError(
                "a buffer of keys that is longer than the total length is not supported",
                expected=self.past + self.length,
                found=self.total,
            )

    def operands(self) -> list[str]:
        """Queries, keys and values by heads."""
        widths = [n * self.size for n in (self.heads, self.groups, self.groups)]
        parts = ["x0", "x1", "x2"]
        if not self.node.has(1):
            ends = [0, widths[0], widths[0] + widths[1], sum(widths)]
            parts = [self.part("x0", -1, low, high) for low, high in pairwise(ends)]
        counts = (self.heads, self.groups, self.groups)
        return [
            by_heads(self, x, (self.batch, self.length, width), n)
            for x, width, n in zip(parts, widths, counts, strict=True)
        ]

    def before(self) -> str:
        """How many keys of the past each example has, [batch, 1]: none in a first prompt."""
        if self.total == self.length:
            return self.tensor(np.zeros((self.batch, 1), np.int64))
        ends = self.add("Cast", self.add("Reshape", "x5", self.integers(self.batch, 1)), to=7)
        return self.add("Add", ends, self.scalar(1 - self.length))

    def cached(self, k: int, fresh: str, before: str) -> str:
        """Keys or values of the past and then fresh ones; the past may be padded at its end.

        Zeros follow where an example has fewer.
        """
        if self.total == self.length:
            return fresh
        joined = self.add("Concat", f"x{k}", fresh, axis=2)
        steps = self.tensor(np.arange(self.total, dtype=np.int64)[None])
        later = self.add("Add", steps, self.add("Sub", self.scalar(self.past), before))
        place = self.add("Where", self.add("Less", steps, before), steps, later)
        last = self.scalar(self.past + self.length - 1)
        held, apart = self.add("LessOrEqual", place, last), self.integers(self.batch, 1, -1, 1)
        wide = self.add("Reshape", self.add("Min", place, last), apart)
        shape = self.integers(self.batch, self.groups, self.total, self.size)
        found = self.add("GatherElements", joined, self.add("Expand", wide, shape), axis=2)
        held = self.add("Reshape", held, apart)
        return self.add("Where", held, found, self.number(0.0, found))

    def seen(self, positions: str) -> str:
        """Which keys each query reads: those up to itself, or the last few of them."""
        keys = self.tensor(np.arange(self.total, dtype=np.int64))
        here = self.add("Reshape", positions, self.integers(self.batch, 1, self.length, 1))
        kept = self.add("LessOrEqual", keys, here)
        window = self.node.int("local_window_size", -1)
        if window > 0:
            first = self.add("Sub", here, self.scalar(window))
            kept = self.add("And", kept, self.add("Greater", keys, first))
        return kept


def group_query_attention(node: OnnxNode) -> FunctionProto:
    """GroupQueryAttention(q, k, v, past keys, past values, last places, total length, ...).

    The total length must be known: shapes depend on it.

    Raises:
        UserError: the cache is quantised or longer than what it holds, or another variant is asked.
    """
    body = _Grouped(node)
    q, k, v = body.operands()
    before = body.before()
    steps = body.tensor(np.arange(body.length, dtype=np.int64)[None])
    positions = body.add("Add", before, steps)
    if node.flag("do_rotary"):
        places = "x9" if node.has(9) else positions
        width = 2 * node.shape(7)[1]
        q, k = (
            rotated(body, x, places, "x7", "x8", body.size, width,
                    interleaved=node.flag("rotary_interleaved"))
            for x in (q, k)
        )  # fmt: skip
    keys, values = body.cached(3, k, before), body.cached(4, v, before)
    added = [body.operand(10)] if node.has(10) else []
    if node.int("causal", 1):
        added.append(filtered(body, body.seen(positions), q, float("-inf")))
    read, held = _shared(body, keys), _shared(body, values)
    sizes = (body.batch, body.heads, body.length, body.size, body.size)
    y = read_by_heads(body, q, read, held, sizes, *added, softcap=node.float("softcap", 0.0))
    return body.function(y, keys, values)


def _shared(body: _Grouped, x: str) -> str:
    """Each group's keys or values, for all heads that read them."""
    times = body.heads // body.groups
    if times == 1:
        return x
    apart = body.add("Unsqueeze", x, body.integers(2))
    shape = (body.batch, body.groups, times, body.total, body.size)
    wide = body.add("Expand", apart, body.integers(*shape))
    return body.add("Reshape", wide, body.integers(shape[0], body.heads, *shape[3:]))


__all__ = ["group_query_attention", "rotary_embedding"]

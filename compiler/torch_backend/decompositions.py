"""Which ATen ops torch decomposes before we see them."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._decomp.decompositions import one_layer_lstm

from ...lowering.aten_to_graph.table import TABLE

# Longer sequences stay in torch: a step is a dozen calls, and each has to be compiled.
MOST_STEPS = 128
_LSTM = 2  # oneDNN's number


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's core decompositions without those of ops that the table has, and two of ours."""
    found = core_aten_decompositions().items()
    own = {
        torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
        torch.ops.aten.mkldnn_rnn_layer.default: lstm_layer,
    }
    return own | {op: f for op, f in found if str(op).removeprefix("aten.") not in TABLE}


def encoder_layer(
    x: Any, width: int, heads: int, qkv_weight: Any, qkv_bias: Any, weight: Any, bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any,
    norm_weight_2: Any, norm_bias_2: Any, weight_1: Any, bias_1: Any, weight_2: Any, bias_2: Any,
    mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """TransformerEncoderLayer's fused op, which torch takes in evaluation mode; without a mask."""
    if mask is not None:
        return NotImplemented
    f = torch.nn.functional

    def attend(y: Any) -> Any:
        parts = f.linear(y, qkv_weight, qkv_bias).unflatten(-1, (3, heads, width // heads))
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        read = f.scaled_dot_product_attention(q, k, v)
        return f.linear(read.transpose(1, 2).flatten(2), weight, bias)

    def feed(y: Any) -> Any:
        y = f.linear(y, weight_1, bias_1)
        return f.linear(f.gelu(y) if use_gelu else f.relu(y), weight_2, bias_2)

    def norm_1(y: Any) -> Any:
        return f.layer_norm(y, (width,), norm_weight_1, norm_bias_1, eps)

    def norm_2(y: Any) -> Any:
        return f.layer_norm(y, (width,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = x + attend(norm_1(x))
        return x + feed(norm_2(x))
    x = norm_1(x + attend(x))
    return norm_2(x + feed(x))


def lstm_layer(
    x: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any, h: Any, c: Any, reverse: bool,
    batch_sizes: Any, mode: int, size: int, layers: int, has_biases: bool, *flags: bool,
) -> Any:  # fmt: skip
    """One layer of an LSTM over [steps, batch, size], which torch takes on the CPU; unrolled."""
    if mode != _LSTM or batch_sizes or layers != 1 or any(flags) or x.shape[0] > MOST_STEPS:
        return NotImplemented
    weights = [w_x, w_h, b_x, b_h] if has_biases else [w_x, w_h]
    start = h.squeeze(0), c.squeeze(0)
    y, (h, c) = one_layer_lstm(x, start, weights, has_biases, reverse)
    return y, h.unsqueeze(0), c.unsqueeze(0), x.new_empty(0)

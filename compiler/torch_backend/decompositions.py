"""Which ATen ops torch decomposes before we see them."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from ...lowering.aten_to_graph.table import TABLE


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's core decompositions without those of ops that the table has, and one of ours."""
    found = core_aten_decompositions().items()
    own = {torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer}
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

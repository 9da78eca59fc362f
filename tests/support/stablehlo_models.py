"""Four models in plain jax: an MLP, a convolutional net, a transformer block, an LSTM as a scan."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from support.stablehlo_arguments import Case, Draw


def models(d: Draw) -> Iterator[Case]:
    yield "model-mlp", _mlp, [_mlp_parameters(d), d.array(3, 8)]
    yield "model-cnn", _cnn, [_cnn_parameters(d), d.array(2, 12, 12, 3)]
    yield "model-transformer", _block, [_block_parameters(d), d.array(2, 6, 16)]
    yield "model-scan", _lstm, [_lstm_parameters(d), d.array(9, 2, 5)]


def _mlp_parameters(d: Draw) -> Any:
    sizes = (8, 16, 16, 4)
    return [
        {"kernel": d.array(a, b, low=-0.5, high=0.5), "bias": d.array(b)}
        for a, b in itertools.pairwise(sizes)
    ]


def _mlp(params: Any, x: Any) -> Any:
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["kernel"] + layer["bias"])
    return {"logits": x @ params[-1]["kernel"] + params[-1]["bias"], "label": jnp.argmax(x, -1)}


def _cnn_parameters(d: Draw) -> Any:
    return {
        "first": d.array(3, 3, 3, 8, low=-0.3, high=0.3), "scale": d.array(8), "shift": d.array(8),
        "depth": d.array(3, 3, 1, 8, low=-0.3, high=0.3), "dense": d.array(8, 5),
    }  # fmt: skip


def _cnn(params: Any, x: Any) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, params["first"], (2, 2), "SAME", dimension_numbers=dims)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    x = (x - mean) * lax.rsqrt(variance + 1e-5) * params["scale"] + params["shift"]
    x = jax.nn.gelu(x)
    x = lax.conv_general_dilated(
        x, params["depth"], (1, 1), "SAME", dimension_numbers=dims, feature_group_count=8
    )
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return jax.nn.softmax(x.mean((1, 2)) @ params["dense"])


def _block_parameters(d: Draw) -> Any:
    small = {"low": -0.3, "high": 0.3}
    return {
        "qkv": d.array(16, 48, **small), "out": d.array(16, 16, **small),
        "up": d.array(16, 32, **small), "down": d.array(32, 16, **small),
        "scale": d.array(2, 16), "shift": d.array(2, 16),
    }  # fmt: skip


def _block(params: Any, x: Any) -> Any:
    def norm(x: Any, k: int) -> Any:
        y = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return y * params["scale"][k] + params["shift"][k]

    length, heads = x.shape[1], 4
    parts = jnp.split(norm(x, 0) @ params["qkv"], 3, axis=-1)
    q, k, v = (p.reshape(*p.shape[:2], heads, -1) for p in parts)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(4)
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ params["out"]
    return x + jax.nn.gelu(norm(x, 1) @ params["up"]) @ params["down"]


def _lstm_parameters(d: Draw) -> Any:
    return {"x": d.array(5, 24, low=-0.5, high=0.5), "h": d.array(6, 24, low=-0.5, high=0.5)}


def _lstm(params: Any, x: Any) -> Any:
    def cell(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(row @ params["x"] + h @ params["h"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = (jnp.zeros((x.shape[1], 6)), jnp.zeros((x.shape[1], 6)))
    (h, _), rows = lax.scan(cell, start, x)
    return {"last": h, "rows": rows}

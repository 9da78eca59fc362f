"""Two ops of ai.onnx.ml that onnx.reference gets wrong.

For a linear model without intercepts it gives NaN. Normalizer's MAX divides by the greatest value;
it divides by the greatest magnitude.

Source: ONNX-ML operators LinearRegressor, Normalizer.
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def _linear_regressor(call: NodeCall) -> list[Array]:
    if str(call.get("post_transform", "NONE")) != "NONE":
        raise ValueError(f"post_transform {call.get('post_transform')} is not known")
    targets = call.get("targets", 1)
    weights = np.asarray(call.get("coefficients"), np.float32).reshape(targets, -1)
    y = call[0].astype(np.float32) @ weights.T
    intercepts = call.get("intercepts")
    return [y if not intercepts else y + np.asarray(intercepts, np.float32)]


def _normalizer(call: NodeCall) -> list[Array]:
    """Rows divided by their greatest value, sum of magnitudes or length, unless that is 0."""
    x = call[0].astype(np.float32)
    match str(call.get("norm", "MAX")):
        case "MAX":
            by = x.max(axis=-1, keepdims=True)
        case "L1":
            by = np.abs(x).sum(axis=-1, keepdims=True)
        case "L2":
            by = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        case other:
            raise ValueError(f"norm {other} is not known")
    return [x / np.where(by == 0, 1, by)]


KERNELS: dict[str, Kernel] = {"LinearRegressor": _linear_regressor, "Normalizer": _normalizer}

"""Random arguments for functions of jax."""

# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Case = tuple[str, Callable[..., Any], list[Any]]
FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)
INTS = (np.int32, np.int8, np.uint8, np.uint32, np.int16)


class Draw:
    """Random arguments; floats are sometimes special."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def array(self, *shape: int, dtype: Any = np.float32, low: float = -3, high: float = 3) -> Any:
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return self.rng.random(shape) < 0.5
        if kind.kind in "iu":
            start = max(0, int(low)) if kind.kind == "u" else int(low)
            return self.rng.integers(start, int(high) + 1, shape).astype(kind)
        return self.rng.uniform(low, high, shape).astype(np.float32).astype(kind)

    def special(self, *shape: int) -> Any:
        values = [0.0, -0.0, 1.0, -1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 1e-8, 30.0]
        return self.rng.choice(np.array(values, np.float32), shape)

"""Moves of partial equivalence on arrays, by numpy alone: to compare their index maps with."""

from __future__ import annotations

import numpy as np

from isoform.passes.partial.views import Lanes, Step, Swap


def moved(values: Lanes, step: Step) -> Lanes:
    """The values, [lane, *shape], after a step: pad, split, transpose, merge."""
    dim, into = step.dim + 1, step.into + 1
    if isinstance(step, Swap):
        return values.swapaxes(dim, into)
    blocks = -(-values.shape[dim] // step.by)
    values = _padded(values, dim, blocks * step.by - values.shape[dim])
    shape = values.shape
    values = values.reshape(*shape[:dim], blocks, step.by, *shape[dim + 1 :])
    digit = dim + 1 if step.inner else dim
    values = np.moveaxis(values, digit, 0)  # what stays keeps its position
    if step.minor:
        values = np.moveaxis(values, 0, into + 1)
        return values.reshape(*values.shape[:into], -1, *values.shape[into + 2 :])
    values = np.moveaxis(_padded(values, into + 1, step.gap), 0, into)
    values = values.reshape(*values.shape[:into], -1, *values.shape[into + 2 :])
    return values[(slice(None),) * into + (slice(0, values.shape[into] - step.gap),)]


def _padded(values: Lanes, dim: int, by: int) -> Lanes:
    return np.pad(values, [(0, by if k == dim else 0) for k in range(values.ndim)])

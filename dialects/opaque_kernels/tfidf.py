"""Counts of words and groups of words.

onnx.reference fails without weights in modes IDF and TFIDF.

Source: ONNX operator TfIdfVectorizer (9).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall

# A table of places is made where numbers are this near together.
MAX_TABLE = 1 << 16


def _tf_idf(call: NodeCall) -> list[Array]:
    x, shortest, longest = call[0], call.get("min_gram_length"), call.get("max_gram_length")
    indexes = np.asarray(call.get("ngram_indexes"))
    width = int(indexes.max()) + 1
    rows = (x.reshape(1, -1) if x.ndim < 2 else x).astype(np.int64)
    counts = np.zeros((len(rows), width), np.int64)
    for length, groups, first in _pool(call):
        if not shortest <= length <= longest:
            continue
        # Skips do not change a single word.
        for step in range(1, (call.get("max_skip_count") if length > 1 else 0) + 2):
            starts = rows.shape[1] - (length - 1) * step
            if starts <= 0:
                break
            windows = [rows[:, k * step : k * step + starts] for k in range(length)]
            places = _numbers(groups, windows)
            found = places >= 0
            at = np.nonzero(found)[0] * width + indexes[first + places[found]]
            counts += np.bincount(at, minlength=counts.size).reshape(counts.shape)
    weights = np.ones(width, np.float32)
    if call.get("weights"):
        weights[indexes] = call.get("weights")
    mode, found = call.get("mode"), counts.astype(np.float32)
    if mode != "TF":
        found = (found if mode == "TFIDF" else (found > 0).astype(np.float32)) * weights
    return [found[0] if x.ndim < 2 else found]


def _pool(call: NodeCall) -> Iterator[tuple[int, Array, int]]:
    """The groups of each length, and their first's number; `ngram_counts` says where they begin."""
    if not call.get("pool_int64s"):
        raise ValueError("words are not numbers")
    words, starts = np.asarray(call.get("pool_int64s")), list(call.get("ngram_counts"))
    number = 0
    for k, (start, end) in enumerate(zip(starts, [*starts[1:], len(words)], strict=True)):
        groups = words[start:end].reshape(-1, k + 1)
        yield k + 1, groups, number
        number += len(groups)


def _numbers(groups: Array, windows: list[Array]) -> Array:
    """Which group each window is, below 0 where it is none: word by word, by rank."""
    ranks = [np.zeros(len(groups), np.int64), np.zeros(windows[0].shape, np.int64)]
    for k, window in enumerate(windows):
        words, own = np.unique(groups[:, k], return_inverse=True)
        other = _found(words, window)
        keys, pairs = ranks[0] * len(words) + own, ranks[1] * len(words) + other
        known, ranks[0] = np.unique(keys, return_inverse=True)
        ranks[1] = _found(known, np.where((other < 0) | (ranks[1] < 0), -1, pairs))
    order = np.full(len(groups) + 1, -1)  # the last is for what is none
    order[ranks[0]] = np.arange(len(groups))
    return order[ranks[1]]


def _found(known: Array, values: Array) -> Array:
    """The place of each value among sorted ones, -1 where it is none."""
    if not len(known):
        return np.full(values.shape, -1)
    low, high = int(known[0]), int(known[-1])
    if high - low >= MAX_TABLE or max(-low, high) >= 1 << 62:
        places = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[places] == values, places, -1)
    table = np.full(high - low + 3, -1)  # the first and the last are for what is beyond
    table[known - low + 1] = np.arange(len(known))
    return table[np.clip(values, low - 1, high + 1) - (low - 1)]


KERNELS: dict[str, Kernel] = {"TfIdfVectorizer": _tf_idf}

"""Counts of words and groups of words.

onnx.reference fails without weights in modes IDF and TFIDF.

Source: ONNX operator TfIdfVectorizer (9).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def _tf_idf(call: NodeCall) -> list[Array]:
    x, shortest, longest = call[0], call.get("min_gram_length"), call.get("max_gram_length")
    pool = dict(_pool(call))
    indexes = list(call.get("ngram_indexes"))
    width = max(indexes) + 1
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = np.zeros((len(rows), width), np.float32)
    for row, words in enumerate(rows.tolist()):
        for length in range(shortest, longest + 1):
            # Skips do not change a single word.
            for step in range(1, (call.get("max_skip_count") if length > 1 else 0) + 2):
                for start in range(len(words) - (length - 1) * step):
                    found = pool.get(tuple(words[start : start + length * step : step]))
                    if found is not None:
                        counts[row, indexes[found]] += 1
    weights = np.ones(width, np.float32)
    if call.get("weights"):
        weights[indexes] = call.get("weights")
    mode = call.get("mode")
    if mode != "TF":
        counts = (counts if mode == "TFIDF" else (counts > 0).astype(np.float32)) * weights
    return [counts[0] if x.ndim < 2 else counts]


def _pool(call: NodeCall) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each group of words with its number; `ngram_counts` says where each length begins."""
    if not call.get("pool_int64s"):
        raise ValueError("words are not numbers")
    words, starts = list(call.get("pool_int64s")), list(call.get("ngram_counts"))
    number = 0
    for k, (start, end) in enumerate(zip(starts, [*starts[1:], len(words)], strict=True)):
        for at in range(start, end, k + 1):
            yield tuple(words[at : at + k + 1]), number
            number += 1


KERNELS: dict[str, Kernel] = {"TfIdfVectorizer": _tf_idf}

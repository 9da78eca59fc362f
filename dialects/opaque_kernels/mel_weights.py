"""Triangles over the bins of a spectrogram, evenly apart on the mel scale.

onnx.reference computes them one element at a time.

Source: ONNX operator MelWeightMatrix (17).
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def _mel_weights(call: NodeCall) -> list[Array]:
    from onnx import helper

    bins, length, rate = (int(call[k]) for k in range(3))
    low, high = (2595 * np.log1p(call[k] / 700) / np.log(10) for k in (3, 4))
    marks = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    hertz = 700 * np.expm1(marks / 2595 * np.log(10))
    left = ((length + 1) * hertz // rate).astype(np.int64)
    dtype = helper.tensor_dtype_to_np_dtype(call.get("output_datatype") or 1)
    found = np.zeros((length // 2 + 1, bins), dtype)
    centre = left[1:-1]
    peaks = (left[:-2] <= centre) & (centre < len(found))
    found[centre[peaks], np.flatnonzero(peaks)] = 1
    places = np.arange(max(left[0], 0), min(left[-1], len(found)))
    span = np.searchsorted(left, places, side="right") - 1  # between which two marks a place is
    start, end = left[span], left[span + 1]
    for column, slope in ((span, places - start), (span - 1, end - places)):
        inside = (column >= 0) & (column < bins)
        found[places[inside], column[inside]] = (slope / (end - start))[inside]
    return [found]


KERNELS: dict[str, Kernel] = {"MelWeightMatrix": _mel_weights}

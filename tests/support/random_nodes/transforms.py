"""Transforms of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample


def dft(d: Draw) -> Sample:
    """Real or complex, along any dim; cut or filled with zeros to a length."""
    opset = d.int(17, 23)
    inner = d.shape(1, 3, 6)
    parts = d.int(1, 2)
    shape = [d.int(1, 3), *inner, parts]
    axis = d.int(1, len(shape) - 2)
    axis = axis - len(shape) if d.flag(0.3) else axis
    given: dict[str, Any] = {}
    if d.flag(0.3):
        given["inverse"] = 1
    if parts == 1 and "inverse" not in given and d.flag():
        given["onesided"] = 1
    inputs: list[Any] = [d.array(d.pick(("float32", "float64")), shape)]
    inputs.append(np.asarray(d.size(1, 9), np.int64) if d.flag() else None)
    if opset >= 20:
        inputs.append(np.asarray(axis, np.int64))
    else:
        given["axis"] = axis
    constants = [k for k, a in enumerate(inputs) if k and a is not None]
    return Sample("DFT", inputs, given, opset, constants=constants, tolerance=1e-3)


def stft(d: Draw) -> Sample:
    batch, signal, parts = d.int(1, 3), d.size(1, 40), d.int(1, 2)
    length, step = d.int(1, signal), d.int(1, 8)
    dtype = d.pick(("float32", "float64"))
    window = d.array(dtype, [length], 0, 1) if d.flag(0.6) else None
    wanted = np.asarray(length, np.int64) if window is None or d.flag() else None
    inputs = [d.array(dtype, [batch, signal, parts]), np.asarray(step, np.int64), window, wanted]
    given = {"onesided": int(parts == 1 and d.flag(0.7))}
    constants = [k for k in (1, 3) if inputs[k] is not None]
    return Sample("STFT", inputs, given, d.int(17, 23), constants=constants, tolerance=1e-3)


def mel(d: Draw) -> Sample:
    bins, length = d.int(1, 12), d.int(8, 64)
    rate = d.pick([4000, 8000, 16000])
    low = d.float(0, rate / 8)
    numbers = [np.asarray(n, np.int64) for n in (bins, length, rate)]
    ends = [np.asarray(f, np.float32) for f in (low, d.float(low + rate / 16, rate / 2))]
    inputs = [*numbers, *ends]
    return Sample("MelWeightMatrix", inputs, {}, d.int(17, 23), constants=range(5))


GENERATORS: dict[str, Generator] = {
    "DFT": dft,
    "STFT": stft,
    "MelWeightMatrix": mel,
}

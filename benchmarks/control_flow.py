"""Recurrences and loops that data end: seconds to compile, and time against onnxruntime.

    python benchmarks/control_flow.py [--rounds N] [--unrolled] [NAME ...]

Recurrences have 64 inputs and a state of 64, for a batch of one. Each program is compiled in a
cache folder of its own, and timed by the process's CPU seconds. Runs are on one thread, by its
clock, in turn; the ratios are medians of paired ones. With --unrolled the program without loops is
measured beside the other: 512 steps take half a minute to compile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

import isoform
from isoform.compiler.peers.model_file import peer_model
from isoform.lowering.onnx_to_graph import import_onnx, regions

RNG = np.random.default_rng(0)
SIZE = 64
GATES = {"GRU": 3, "LSTM": 4}


def weights(*shape: int) -> np.ndarray:
    """Random weights that keep states small."""
    return (RNG.standard_normal(shape) / np.sqrt(SIZE)).astype(np.float32)


def with_weights(text: str, arrays: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model of a text in ONNX's notation, with initialisers."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>\n' + text)
    for name, array in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def recurrence(op: str, steps: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one GRU or LSTM, and its input."""
    text = f"""g (float[{steps},1,{SIZE}] x) => (float[s,d,b,h] y, float[d,b,h] last) {{
        y, last = {op}<hidden_size = {SIZE}>(x, W, R, B) }}"""
    rows = GATES[op] * SIZE
    given = {"W": weights(1, rows, SIZE), "R": weights(1, rows, SIZE), "B": weights(1, 2 * rows)}
    feeds = {"x": RNG.standard_normal((steps, 1, SIZE)).astype(np.float32)}
    return with_weights(text, given), feeds


def until(count: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """h -> tanh(h W + x), until a sum passes a bound or a count is reached: both are inputs."""
    text = f"""g (int64 n, float[1,{SIZE}] h0, float[1,{SIZE}] x, float bound)
            => (float[1,{SIZE}] y) {{
        y = Loop (n, , h0) <body = b (int64 i, bool on, float[1,{SIZE}] h)
                            => (bool go, float[1,{SIZE}] t) {{
            m = MatMul(h, W)  a = Add(m, x)  t = Tanh(a)
            s = ReduceSum<keepdims = 0>(t)  go = Less(s, bound) }}> }}"""
    feeds = {
        "n": np.asarray(count),
        "h0": RNG.standard_normal((1, SIZE)).astype(np.float32),
        "x": RNG.standard_normal((1, SIZE)).astype(np.float32),
        "bound": np.asarray(1e9, np.float32),
    }
    return with_weights(text, {"W": weights(SIZE, SIZE)}), feeds


CASES: dict[str, Callable[[], tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    "GRU, 128 steps": lambda: recurrence("GRU", 128),
    "GRU, 512 steps": lambda: recurrence("GRU", 512),
    "LSTM, 128 steps": lambda: recurrence("LSTM", 128),
    "LSTM, 512 steps": lambda: recurrence("LSTM", 512),
    "Loop until, 100 iterations": lambda: until(100),
}


@contextmanager
def fresh_cache() -> Generator[None]:
    """A cache folder of its own, so that all kernels are compiled."""
    before = os.environ.get("ISOFORM_CACHE")
    with TemporaryDirectory() as folder:
        os.environ["ISOFORM_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["ISOFORM_CACHE"]
            else:
                os.environ["ISOFORM_CACHE"] = before


def compiled(model: onnx.ModelProto, least: int) -> tuple[Any, float]:
    """A session, and the CPU seconds it took; loops of `least` iterations stay loops."""
    before, regions.UNROLLED = regions.UNROLLED, least
    try:
        with fresh_cache():
            started = time.process_time()
            session = isoform.compile(import_onnx(model), threads=1)
            return session, time.process_time() - started
    finally:
        regions.UNROLLED = before


def fastest(run: Callable[[], Any], times: int = 12) -> float:
    """The least of some runs, in microseconds of this thread."""
    found: list[float] = []
    for _ in range(times):
        started = time.thread_time()
        run()
        found.append(time.thread_time() - started)
    return 1e6 * min(found)


def row(name: str, rounds: int, unrolled: bool) -> str:
    """One line of the table."""
    model, feeds = CASES[name]()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(model, file)
        with peer_model(import_onnx(file), file) as given:  # the file itself
            peer = onnxruntime.InferenceSession(
                str(given.path), options, providers=["CPUExecutionProvider"]
            )
    session, seconds = compiled(model, regions.UNROLLED)
    ways = {"loop": lambda: session.run(None, feeds), "peer": lambda: peer.run(None, feeds)}
    apart = max(np.abs(a - b).max() for a, b in zip(*(w() for w in ways.values()), strict=True))
    other = 0.0
    if unrolled and not name.startswith("Loop"):
        whole, other = compiled(model, 1 << 30)
        ways["unrolled"] = lambda: whole.run(None, feeds)
    times = {way: list[float]() for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            times[way].append(fastest(run))

    def ratio(way: str) -> str:
        if way not in times:
            return "-"
        pairs = zip(times["loop"], times[way], strict=True)
        return f"{statistics.median(mine / theirs for mine, theirs in pairs):.2f}"

    before = f"{other:.1f}" if other else "-"
    loop, theirs = (statistics.median(times[way]) for way in ("loop", "peer"))
    return (
        f"| {name} | {before} | {seconds:.2f} | {loop:.1f} | {theirs:.1f} | {ratio('unrolled')} | "
        f"{ratio('peer')} | {apart:.1e} |"
    )


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--unrolled", action="store_true")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    print(
        "| model | unrolled: CPU s to compile | loop: CPU s to compile | loop us | onnxruntime us "
        "| loop / unrolled | loop / onnxruntime | apart |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in given.names or CASES:
        print(row(name, given.rounds, given.unrolled), flush=True)


if __name__ == "__main__":
    main()

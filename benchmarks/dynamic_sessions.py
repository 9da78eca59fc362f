"""Sessions of models with symbolic dims: what a new size costs, and each size's speed.

    python benchmarks/dynamic_sessions.py FILE.onnx... [--dim NAME=SIZE,SIZE,..] [--rounds N]
                                          [--up-to NAME=LARGEST,..]

The files are of scripts/export_sessions.py, say. Dims that vary together are written
`height,width=64x96,33x129`. A session meets the sizes in turn. Each is
timed beside a session that compiles each size by itself, and onnxruntime on the user's own file.
One thread, by its clock; ratios are medians of paired ones. `first call` is in CPU seconds of the
process, in an empty cache folder, without the time of the run. With `--up-to` what serves all sizes
is compiled before the first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime

import isoform
from isoform.compiler.targets.dynamic_session import DynamicSession
from isoform.compiler.targets.padded_session import PaddedSession
from isoform.dialects.extent_math import value_at
from isoform.dialects.extent_text import read_extent
from isoform.lowering.onnx_to_graph import DynamicProgram

SIZES = "100,7,33,64,65,90,127,128,12,50,99,111"


def main() -> None:
    """Print a table for each file."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("files", type=Path, nargs="+")
    arguments.add_argument("--dim", default=f"seq={SIZES}")
    arguments.add_argument("--fixed", default="batch=2,past=100,seq=1", help="the other dims")
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--up-to", default="", help="the largest size of each dim")
    given = arguments.parse_args()
    names, _, sizes = given.dim.partition("=")
    points = [
        dict(zip(names.split(","), map(int, point.split("x")), strict=True))
        for point in sizes.split(",")
    ]
    others, up_to = _pairs(given.fixed), _pairs(given.up_to) or None
    for file in given.files:
        with TemporaryDirectory() as folder:
            os.environ["ISOFORM_CACHE"] = folder
            _measure(file, points, others, given.rounds, up_to)


def _pairs(text: str) -> dict[str, int]:
    """`a=1,b=2` as a dict."""
    return {k: int(v) for k, v in (pair.split("=") for pair in text.split(",") if pair)}


def _measure(
    file: Path,
    points: Sequence[Mapping[str, int]],
    others: Mapping[str, int],
    rounds: int,
    up_to: Mapping[str, int] | None,
) -> None:
    program = isoform.load(file)
    assert isinstance(program, DynamicProgram)
    before = time.process_time()
    session = isoform.compile(program, threads=1, up_to=up_to)
    compiled = time.process_time() - before
    exact = isoform.compile(program, threads=1, exact_sizes=True)
    assert isinstance(session, DynamicSession)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    peer = onnxruntime.InferenceSession(file, options)
    draw = np.random.default_rng(0)
    heads = (", ".join(points[0]), "bound", "first call, CPU s", "apart",
             "of its own program's speed")  # fmt: skip
    print(f"\n{file.stem}\n\n| {' | '.join(heads)} | of onnxruntime's speed |\n{'|---' * 6}|")
    for point in points:
        feeds = _drawn(program, {**others, **point}, draw)
        before = time.process_time()
        found = session(**feeds)
        first = time.process_time() - before
        wanted = peer.run(None, feeds)
        apart = max(_apart(a, b) for a, b in zip(found.values(), wanted, strict=True))
        exact(**feeds)
        calls = [lambda f=feeds: session(**f), lambda f=feeds: exact(**f),
                 lambda f=feeds: peer.run(None, f)]  # fmt: skip
        ours, own, theirs = _times(calls, rounds)
        first -= statistics.median(ours)
        bound = session.bound(feeds)[0]
        held = bound.bounds if isinstance(bound, PaddedSession) else None
        most = "its own" if held is None else _by(held.get(name, n) for name, n in point.items())
        print(f"| {_by(point.values())} | {most} | {max(first, 0):.2f} | {apart:.0e}"
              f" | {_ratio(own, ours):.2f} | {_ratio(theirs, ours):.2f} |", flush=True)  # fmt: skip
    print(f"\n{session.programs} programs for {len(points)} sizes"
          f", {compiled:.1f} CPU s before the first call")  # fmt: skip


def _by(sizes: Iterable[int]) -> str:
    return " x ".join(map(str, sizes))


def _drawn(
    program: DynamicProgram, sizes: Mapping[str, int], draw: np.random.Generator
) -> dict[str, Any]:
    """Feeds of these sizes: normal floats, small indices, ones for masks."""
    found: dict[str, Any] = {}
    for info in program.declared:
        dims = info.dims or ()
        shape = [d if isinstance(d, int) else value_at(read_extent(str(d)), sizes) for d in dims]
        array = draw.standard_normal(shape).astype(np.float32)
        whole = np.ones(shape) if "mask" in info.name else draw.integers(0, 90, shape)
        found[info.name] = array if info.number == 1 else whole.astype(np.int64)
    return found


def _times(calls: Sequence[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of each call in each round, by the thread's clock; each is first as often."""
    found: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for k in range(len(calls)):
            k = (k + turn) % len(calls)
            before = time.thread_time()
            calls[k]()
            found[k].append(time.thread_time() - before)
    return found


def _ratio(a: Sequence[float], b: Sequence[float]) -> float:
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def _apart(a: Any, b: Any) -> float:
    return float(np.max(np.abs(a - b), initial=0.0) / max(1e-30, np.max(np.abs(b), initial=0.0)))


if __name__ == "__main__":
    main()

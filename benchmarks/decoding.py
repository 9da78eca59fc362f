"""A decoder's greedy loop: tokens a second, with the cache copied, held in place, in onnxruntime.

    python benchmarks/dynamic_exports.py FOLDER
    python benchmarks/decoding.py FOLDER/decoder.onnx [--tokens 200] [--past 8] [--rounds 3]

A step takes a token and a cache and gives logits and a longer cache. onnxruntime runs the user's
file with io binding: its outputs are bound as the next step's inputs, and never leave it. Each loop
runs from the same cache, in turn, on one thread, by the thread's clock, after a first one that
compiles. All have to choose the same tokens.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import isoform
from isoform.dialects.extent_math import value_at
from isoform.dialects.extent_text import read_extent

Loop = Callable[[int], list[int]]


class Decoder:
    """The names of a decoder's inputs and outputs, and a first cache.

    Inputs are tokens, a mask and the cache's arrays, in this order; outputs are logits, then the
    cache's arrays in the inputs' order.
    """

    def __init__(self, file: Path, past: int) -> None:
        self.file, self.past = file, past
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.peer = onnxruntime.InferenceSession(file, options)
        self.tokens, self.mask, *caches = (i.name for i in self.peer.get_inputs())
        self.logits, *grown = (o.name for o in self.peer.get_outputs())
        self.cache = dict(zip(caches, grown, strict=True))
        sizes = {"batch": 1, "seq": 1, "past": past}
        draw = np.random.default_rng(0)
        self.first: dict[str, Any] = {}
        for info in self.peer.get_inputs()[2:]:
            dims = [d if isinstance(d, int) else read_extent(d) for d in info.shape]
            shape = [d if isinstance(d, int) else value_at(d, sizes) for d in dims]
            self.first[info.name] = draw.standard_normal(shape).astype(np.float32)

    def ours(self, session: Any) -> Loop:
        """The loop of a session of ours."""

        def loop(tokens: int) -> list[int]:
            feeds, found = dict(self.first), [1]
            for k in range(tokens):
                feeds |= self._step(found[-1], self.past + k)
                outputs = session(**feeds)
                found.append(int(outputs[self.logits][0].argmax()))
                feeds |= {name: outputs[grown] for name, grown in self.cache.items()}
            return found

        return loop

    def theirs(self, tokens: int) -> list[int]:
        """The loop of onnxruntime, with io binding."""
        found = [1]
        cache: Mapping[str, Any] = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
            for name, array in self.first.items()
        }
        for k in range(tokens):
            binding = self.peer.io_binding()
            for name, array in self._step(found[-1], self.past + k).items():
                binding.bind_cpu_input(name, array)
            for name, value in cache.items():
                binding.bind_ortvalue_input(name, value)
            for name in (self.logits, *self.cache.values()):
                binding.bind_output(name)
            self.peer.run_with_iobinding(binding)
            logits, *grown = binding.get_outputs()
            found.append(int(logits.numpy()[0].argmax()))
            cache = dict(zip(self.cache, grown, strict=True))
        return found

    def _step(self, token: int, past: int) -> dict[str, Any]:
        mask = np.ones((1, past + 1), np.int64)
        return {self.tokens: np.asarray([[token]], np.int64), self.mask: mask}


def main() -> None:
    """Print a row for each way to run the loop."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--tokens", type=int, default=200)
    arguments.add_argument("--past", type=int, default=8)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    decoder = Decoder(given.file, given.past)
    program = isoform.load(given.file)
    loops: dict[str, Loop] = {
        "isoform, caches copied": decoder.ours(isoform.compile(program, threads=1)),
        "isoform, caches in place": decoder.ours(
            isoform.compile(program, threads=1, caches_in_place=True)
        ),
        f"onnxruntime {onnxruntime.__version__}, io binding": decoder.theirs,
    }
    chosen = {name: loop(given.tokens) for name, loop in loops.items()}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(given.rounds):
        for name, loop in loops.items():
            started = time.thread_time()
            loop(given.tokens)
            times[name].append(time.thread_time() - started)
    *_, peer = times
    print("| | tokens a second | of onnxruntime's | same tokens |\n|---|---|---|---|")
    for name, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(times[peer], seconds, strict=True))
        same = sum(a == b for a, b in zip(chosen[name], chosen[peer], strict=True))
        rate = given.tokens / statistics.median(seconds)
        print(f"| {name} | {rate:.1f} | {ratio:.2f} | {same - 1} of {given.tokens} |")


if __name__ == "__main__":
    main()

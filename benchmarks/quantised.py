"""Quantised and half-precision models against onnxruntime, on the same file.

    python benchmarks/quantised.py [--seconds S] [--forms qdq,int8] [NAME ...]

Each model of the zoo (of other sizes as `bert-base:layers=2`) is written as onnxruntime's tools
quantise it: QDQ and QOperator (unsigned activations, signed weights), dynamically, and as float16.
The compiled model and onnxruntime run in turn, on one thread, in one process, by the thread's
clock; the ratio is the median of the paired ratios. `agreement` is the largest difference over the
largest value.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader

import isoform
from isoform.compiler import zoo
from isoform.compiler.peers.model_file import peer_model

Array = Any
MODELS = ("squeezenet", "resnet18", "mobilenet-v2", "bert-base:layers=2", "resnet50")


def drawn(shape: list[int], kind: str, rng: np.random.Generator) -> Array:
    """Random data of an input."""
    if "int" in kind:
        return rng.integers(0, 1000, shape).astype(np.int64 if "64" in kind else np.int32)
    return rng.standard_normal(shape).astype(np.float16 if "16" in kind else np.float32)


def feeds(session: onnxruntime.InferenceSession, seed: int = 1) -> dict[str, Array]:
    """Random data of all inputs."""
    rng = np.random.default_rng(seed)
    made = {i.name: drawn(i.shape, i.type, rng) for i in session.get_inputs()}
    return {name: np.ones_like(a) if "mask" in name else a for name, a in made.items()}


class Calibration(CalibrationDataReader):
    """Two draws, from which quantize_static takes its ranges."""

    def __init__(self, path: Path) -> None:
        session = peer(path)
        self.draws: Iterator[dict[str, Array]] = iter([feeds(session, k) for k in (2, 3)])

    def get_next(self) -> dict[str, Array] | None:
        """The next draw, or None."""
        return next(self.draws, None)


def peer(path: Path) -> onnxruntime.InferenceSession:
    """onnxruntime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def static(form: str, activations: str) -> Callable[[Path, Path], None]:
    """A model with fixed ranges, in one of onnxruntime's two forms."""

    def make(source: Path, target: Path) -> None:
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

        quantize_static(
            source,
            target,
            Calibration(source),
            quant_format=QuantFormat[form],
            activation_type=QuantType[activations],
            weight_type=QuantType.QInt8,
            per_channel=form == "QDQ",
        )

    return make


def dynamic(source: Path, target: Path) -> None:
    """A model whose ranges are found as it runs."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, weight_type=QuantType.QInt8)


def half(source: Path, target: Path) -> None:
    """A model in float16, its inputs and outputs too."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source)), target)


FORMS: dict[str, Callable[[Path, Path], None] | None] = {
    "float32": None,
    "QDQ u8": static("QDQ", "QUInt8"),
    "QDQ s8": static("QDQ", "QInt8"),
    "QOperator": static("QOperator", "QUInt8"),
    "dynamic": dynamic,
    "float16": half,
}


def prepared(name: str, folder: Path) -> Path:
    """The zoo's model with its shapes, as onnxruntime's quantisation wants it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain, ready = folder / "plain.onnx", folder / "ready.onnx"
    model, *sizes = name.split(":")
    given = {key: int(value) for key, _, value in (size.partition("=") for size in sizes)}
    isoform.save(zoo.build(model, **given), plain)
    quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
    return ready


def row(path: Path, seconds: float) -> str:
    """The cells of one file: agreement, both times, the ratio."""
    program = isoform.load(path)
    with peer_model(program, path) as given:  # the file itself
        other = peer(given.path)
    data = feeds(other)
    session = isoform.compile(program, threads=1)
    wanted, found = other.run(None, data), session(**data)
    apart: list[float] = []
    for info, want in zip(other.get_outputs(), wanted, strict=True):
        pair = (np.asarray(a, np.float64) for a in (found[info.name], want))
        got, expected = pair
        apart.append(np.abs(got - expected).max() / max(float(np.abs(expected).max()), 1e-9))
    ours: list[float] = []
    theirs: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(ours) < 5:
        ours.append(clocked(lambda: session(**data)))
        theirs.append(clocked(lambda: other.run(None, data)))
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    times = (1e3 * statistics.median(t) for t in (ours, theirs))
    return f"{max(apart):.1e} | {next(times):.2f} | {next(times):.2f} | {ratio:.2f}"


def clocked(work: Callable[[], object]) -> float:
    """Seconds of this thread."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring a file")
    parser.add_argument("--forms", default=",".join(FORMS), help="which, with commas between them")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| model | form | agreement | isoform ms | onnxruntime ms | onnxruntime / isoform |")
    print("|---|---|---|---|---|---|")
    for name in args.names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            ready = prepared(name, Path(folder))
            for form in args.forms.split(","):
                path = Path(folder) / f"{form.replace(' ', '-')}.onnx"
                try:
                    make = FORMS[form]
                    if make is None:
                        path = ready
                    else:
                        make(ready, path)
                    cells = row(path, args.seconds)
                except Exception as error:  # noqa: BLE001 - a cell holds what went wrong
                    cells = f"{type(error).__name__}: {str(error)[:150]} | | |".replace("\n", " ")
                print(f"| {name} | {form} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

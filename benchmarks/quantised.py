"""Quantised and half-precision models against onnxruntime and OpenVINO, on the same file.

    python benchmarks/quantised.py [--seconds S] [--forms qdq,int8] [--exact] [NAME|FILE.onnx ...]

Each model of the zoo (of other sizes as `bert-base:layers=2`), or file, is written as onnxruntime's
tools quantise it: QDQ and QOperator (unsigned activations, signed weights), dynamically, and as
float16; bfloat16 is that with the other type. The compiled model, our float32 and the others run
in turn, on one thread, in one process, by the thread's clock; ratios are medians of the paired
ones. A runtime that does not run a file has what it says in its cell. `agreement` is the largest
difference over the largest value, from onnxruntime on the same file; where it does not run that
file from onnxruntime on the float32 file, marked `*`. Without VNNI onnxruntime adds products of
bytes in 16 bits, which saturate: `agreement` is with its exact sums; with `--exact` times are, too.
"""

from __future__ import annotations

import argparse
import logging
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader

import isoform
from isoform.compiler import zoo
from isoform.compiler.peers.model_file import peer_model
from isoform.compiler.peers.runtimes import openvino_peer

Array = Any
OTHERS = ("onnxruntime", "OpenVINO")
MODELS = ("squeezenet", "resnet18", "mobilenet-v2", "bert-base:layers=2", "resnet50")


def feeds(path: Path, seed: int = 1) -> dict[str, Array]:
    """Random data of all inputs of a file; of half floats they are those of float32, rounded."""
    rng, made = np.random.default_rng(seed), dict[str, Array]()
    graph = onnx.load(path, load_external_data=False).graph
    given = {tensor.name for tensor in graph.initializer}
    for info in (i for i in graph.input if i.name not in given):
        tensor = info.type.tensor_type
        shape = [d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind == "i":
            draw = rng.integers(0, 1000, shape)
            made[info.name] = (np.ones_like(draw) if "mask" in info.name else draw).astype(dtype)
        else:
            made[info.name] = rng.standard_normal(shape).astype(np.float32).astype(dtype)
    return made


class Calibration(CalibrationDataReader):
    """Two draws, from which quantize_static takes its ranges."""

    def __init__(self, path: Path) -> None:
        self.draws: Iterator[dict[str, Array]] = iter([feeds(path, k) for k in (2, 3)])

    def get_next(self) -> dict[str, Array] | None:
        """The next draw, or None."""
        return next(self.draws, None)


def peer(path: Path, exact: bool = False) -> onnxruntime.InferenceSession:
    """onnxruntime on one thread; without VNNI its sums of bytes may saturate, unless `exact`."""
    options = onnxruntime.SessionOptions()
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def summed_exactly(path: Path, data: dict[str, Array], otherwise: Any) -> Any:
    """What onnxruntime gives with exact sums; where it does not take the file so, what it gives."""
    try:
        return peer(path, exact=True).run(None, data)
    except Exception as error:  # noqa: BLE001 - its optimiser fails on some files then
        print(f"# {path.stem}, exact sums: {brief(error)}", file=sys.stderr)
        return otherwise


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


def other_half(source: Path, target: Path) -> None:
    """The same in bfloat16."""
    half(source, target)
    model = onnx.load(target)
    old, new = onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == old:
                attribute.i = new
            elif attribute.HasField("t") and attribute.t.data_type == old:
                attribute.t.CopyFrom(as_bfloat16(attribute.t))
    for tensor in model.graph.initializer:
        if tensor.data_type == old:
            tensor.CopyFrom(as_bfloat16(tensor))
    infos = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    for info in infos:
        if info.type.tensor_type.elem_type == old:
            info.type.tensor_type.elem_type = new
    onnx.save(model, target)


def as_bfloat16(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """A tensor of float16 in bfloat16."""
    array = onnx.numpy_helper.to_array(tensor).astype(ml_dtypes.bfloat16)
    return onnx.helper.make_tensor(
        tensor.name, onnx.TensorProto.BFLOAT16, array.shape, array.tobytes(), raw=True
    )


FORMS: dict[str, Callable[[Path, Path], None] | None] = {
    "float32": None,
    "QDQ u8": static("QDQ", "QUInt8"),
    "QDQ s8": static("QDQ", "QInt8"),
    "QOperator": static("QOperator", "QUInt8"),
    "dynamic": dynamic,
    "float16": half,
    "bfloat16": other_half,
}


def prepared(name: str, folder: Path) -> Path:
    """A file or a model of the zoo with its shapes, as onnxruntime's quantisation wants it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain, ready = Path(name), folder / "ready.onnx"
    if plain.suffix != ".onnx":
        plain = folder / "plain.onnx"
        model, *sizes = name.split(":")
        given = {key: int(value) for key, _, value in (size.partition("=") for size in sizes)}
        isoform.save(zoo.build(model, **given), plain)
    quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
    return ready


class Measured:
    """The float32 file of a model, and its forms beside it."""

    def __init__(self, ready: Path, seconds: float, exact_sums: bool) -> None:
        self.ready, self.seconds, self.exact_sums = ready, seconds, exact_sums
        self.session = isoform.compile(isoform.load(ready), threads=1)
        self.data = feeds(ready)
        self.exact: Any = peer(ready).run(None, self.data)

    def row(self, path: Path) -> str:
        """The cells of one file: agreement, times, ratios; or why onnxruntime does not run it."""
        data = feeds(path)
        program = isoform.load(path)
        session = isoform.compile(program, threads=1)
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda: session(**data),
            "float32": lambda: self.session(**self.data),
        }
        found, mark = list(session(**data).values()), ""
        refused: dict[str, str] = {}
        with peer_model(program, path) as given:  # the file itself
            try:
                other = peer(given.path, self.exact_sums)
                wanted = summed_exactly(path, data, other.run(None, data))
                runs["onnxruntime"] = lambda: other.run(None, data)
            except Exception as error:  # noqa: BLE001 - a cell holds what went wrong
                wanted, mark, refused["onnxruntime"] = self.exact, "*", brief(error)
            try:
                runs["OpenVINO"] = openvino_peer(given, 1, data).run
                runs["OpenVINO"]()
            except Exception as error:  # noqa: BLE001 - likewise
                runs.pop("OpenVINO", None)
                refused["OpenVINO"] = brief(error)
        off = max(apart(*pair) for pair in zip(found, wanted, strict=True))
        times = in_turn(runs, self.seconds)
        ours = times["ours"]
        cells = [f"{off:.1e}{mark}", milliseconds(ours)]
        cells += [refused.get(name) or milliseconds(times[name]) for name in OTHERS]
        cells += ["-" if name in refused else ratio(times[name], ours) for name in OTHERS]
        return " | ".join([*cells, ratio(times["float32"], ours)])


def apart(got: Array, expected: Array) -> float:
    """The largest difference over the largest value."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    if got.shape != expected.shape:
        return float("inf")
    return float(np.abs(got - expected).max() / max(float(np.abs(expected).max()), 1e-9))


def in_turn(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    """Seconds of each run, in rounds of all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end or rounds < 5:
        for name, work in runs.items():
            times[name].append(clocked(work))
        rounds += 1
    return times


def milliseconds(times: list[float]) -> str:
    """The median."""
    return f"{1e3 * statistics.median(times):.2f}"


def ratio(above: list[float], below: list[float]) -> str:
    """The median of the paired ratios."""
    return f"{statistics.median(a / b for a, b in zip(above, below, strict=True)):.2f}"


def brief(error: Exception) -> str:
    """An error in one short line, without paths."""
    line = " ".join(str(error).split()).replace("|", "/")
    return f"{type(error).__name__}: {re.sub(r'/[^ ]*/', '', line)[:110]}"


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
    parser.add_argument("--exact", action="store_true", help="onnxruntime's sums saturate nowhere")
    parser.add_argument("--forms", default=",".join(FORMS), help="which, with commas between them")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    heads = ["model", "form", "agreement", "isoform ms", *(f"{name} ms" for name in OTHERS)]
    heads += [*(f"{name} / isoform" for name in OTHERS), "float32 / isoform"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in args.names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            ready = prepared(name, Path(folder))
            measured = Measured(ready, args.seconds, args.exact)
            for form in args.forms.split(","):
                path = Path(folder) / f"{form.replace(' ', '-')}.onnx"
                try:
                    make = FORMS[form]
                    if make is None:
                        path = ready
                    else:
                        make(ready, path)
                    cells = measured.row(path)
                except Exception as error:  # noqa: BLE001 - a cell holds what went wrong
                    cells = " | ".join([brief(error), *["-"] * 6])
                print(f"| {Path(name).stem} | {form} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

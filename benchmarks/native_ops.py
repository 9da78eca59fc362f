"""ONNX ops that loop nests run, against onnxruntime and against the host that ran them before.

    python benchmarks/native_ops.py [--rounds N] [--host SECONDS] [NAME ...]
    python benchmarks/native_ops.py --opaque       ops that the host runs

Each op is a model of one node. onnxruntime and the compiled node run in turn, on one thread, in one
process; the ratio is the median of the paired ratios. The host (onnx.reference, or the numpy of
dialects/opaque_kernels) runs once, in a process that is stopped after so many seconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import isoform
from isoform.compiler.peers.model_file import peer_model
from isoform.dialects.opaque import evaluator
from isoform.lowering.onnx_to_graph import import_onnx

Array = Any
RNG = np.random.default_rng(0)
LEARNT, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"
DOMAINS = {LEARNT: 3, TRAINING: 1}


@dataclass(frozen=True)
class Case:
    """One node: its operands, of which those in `fixed` are initialisers."""

    op: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any]
    outputs: int = 1
    fixed: Sequence[int] = ()
    opset: int = 21
    domain: str = ""

    def model(self) -> onnx.ModelProto:
        """The model of this node."""
        names = [f"x{k}" for k in range(len(self.inputs))]
        results = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for k, (n, a) in enumerate(zip(names, self.inputs, strict=True))
            if k not in self.fixed
        ]
        weights = [numpy_helper.from_array(self.inputs[k], names[k]) for k in self.fixed]
        outputs = [onnx.ValueInfoProto(name=r) for r in results]
        graph = helper.make_graph([node], "g", infos, outputs, weights)
        opset = [helper.make_opsetid("", self.opset)]
        opset += [helper.make_opsetid(self.domain, DOMAINS[self.domain])] if self.domain else []
        return helper.make_model(graph, opset_imports=opset, ir_version=10)

    @property
    def feeds(self) -> dict[str, Array]:
        return {f"x{k}": a for k, a in enumerate(self.inputs) if k not in self.fixed}


def floats(*shape: int) -> Array:
    """Normal numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def places(high: int, *shape: int) -> Array:
    """Whole numbers below `high`."""
    return RNG.integers(0, high, shape)


def bytes_(*shape: int, high: int = 256) -> Array:
    """Bytes."""
    return RNG.integers(0, high, shape).astype(np.uint8)


def grid(n: int, h: int, w: int) -> Array:
    """Positions, a few of them outside of an image."""
    return RNG.uniform(-1.1, 1.1, (n, h, w, 2)).astype(np.float32)


def boxes(count: int, size: float) -> Array:
    """Corners of boxes in a square image."""
    corners = RNG.uniform(0, size / 2, (count, 2))
    return np.concatenate([corners, corners + RNG.uniform(4, size / 2, (count, 2))], 1).astype(
        np.float32
    )


def cases() -> dict[str, Case]:
    """The nodes by name."""
    one = np.array([1])
    wide, rows = floats(1, 16, 128, 128), places(4096, 4096)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    sample = {"align_corners": 0, "padding_mode": "zeros"}
    block, image = np.array([3, 3]), np.array([64, 64])
    align = {"output_height": 7, "output_width": 7, "sampling_ratio": 2}
    deform = [floats(1, 16, 32, 32), floats(16, 16, 3, 3), floats(1, 18, 32, 32)]
    twice = {"axis": 1}
    return {
        "TopK 1000 of 100000": Case("TopK", [floats(1, 100000), np.array([1000])], {}, 2, [1]),
        "TopK 5 of 64x1000": Case("TopK", [floats(64, 1000), np.array([5])], {}, 2, [1]),
        "TopK 10 of 512, axis 1": Case(
            "TopK", [floats(8, 512, 64), np.array([10])], {"axis": 1}, 2, [1]
        ),
        "ScatterND rows": Case(
            "ScatterND", [floats(4096, 64), rows[:, None], floats(4096, 64)], {}
        ),
        "ScatterND add": Case(
            "ScatterND",
            [floats(4096, 64), rows[:, None], floats(4096, 64)],
            {"reduction": "add"},
        ),
        "ScatterElements": Case(
            "ScatterElements", [floats(512, 512), places(512, 512, 512), floats(512, 512)], twice
        ),
        "ScatterElements add": Case(
            "ScatterElements",
            [floats(512, 512), places(512, 512, 512), floats(512, 512)],
            {"axis": 1, "reduction": "add"},
        ),
        "GridSample bilinear": Case("GridSample", [wide, grid(1, 128, 128)], sample),
        "GridSample bicubic": Case(
            "GridSample", [wide, grid(1, 128, 128)], {**sample, "mode": "cubic"}
        ),
        "GridSample nearest": Case(
            "GridSample", [wide, grid(1, 128, 128)], {**sample, "mode": "nearest"}
        ),
        "RoiAlign 100x64": Case(
            "RoiAlign", [floats(1, 64, 50, 50), boxes(100, 48), np.zeros(100, np.int64)], align
        ),
        "DeformConv 3x3": Case("DeformConv", deform, {"pads": [1, 1, 1, 1]}, opset=22),
        "Col2Im 3x3": Case(
            "Col2Im", [floats(1, 16 * 9, 64 * 64), image, block], {"pads": [1] * 4}, 1, [1, 2]
        ),
        "MaxPool positions": Case("MaxPool", [floats(1, 64, 112, 112)], window, 2),
        "MaxUnpool 2x2": Case(
            "MaxUnpool",
            [floats(1, 64, 56, 56), places(64 * 112 * 112, 1, 64, 56, 56)],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
        ),
        "CumSum 64x4096": Case("CumSum", [floats(64, 4096), np.array(1)], {}, 1, [1]),
        "CumSum axis 0": Case("CumSum", [floats(4096, 64), np.array(0)], {}, 1, [1]),
        "ReverseSequence": Case(
            "ReverseSequence", [floats(256, 32, 64), places(256, 32) + 1], {"batch_axis": 1}
        ),
        "Cast uint8 image": Case("Cast", [bytes_(1, 3, 512, 512)], {"to": TensorProto.FLOAT}),
        "Add uint8": Case("Add", [bytes_(1 << 20), bytes_(1 << 20)], {}),
        "Less uint8": Case("Less", [bytes_(1 << 20), bytes_(1 << 20)], {}),
        "BitwiseAnd int32": Case(
            "BitwiseAnd", [places(1 << 30, 1 << 20).astype(np.int32) for _ in range(2)], {}
        ),
        "BitShift uint8": Case(
            "BitShift", [bytes_(1 << 20), bytes_(1 << 20, high=8)], {"direction": "RIGHT"}
        ),
        "Mod int64": Case("Mod", [places(1000, 1 << 18), places(1000, 1 << 18) + 1], {}),
        "Mod float": Case("Mod", [floats(1 << 18), floats(1 << 18)], {"fmod": 1}),
        "Det 64x16x16": Case("Det", [floats(64, 16, 16)], {}),
        "ArgMax 64x1000": Case("ArgMax", [floats(64, 1000)], twice),
        "ArgMax channels": Case("ArgMax", [floats(1, 21, 128, 128)], twice),
        "MaxRoiPool": Case(
            "MaxRoiPool",
            [
                floats(1, 64, 50, 50),
                np.concatenate([np.zeros((100, 1)), boxes(100, 48)], 1).astype(np.float32),
            ],
            {"pooled_shape": [7, 7]},
        ),
        "CumSum int64": Case("CumSum", [places(9, 64, 4096), one[0]], {}, 1, [1]),
    }


def host_cases() -> dict[str, Case]:
    """Nodes that the host runs (opaque ones), by name."""
    rate, step = np.array(0.1, np.float32), np.array(3)
    moved = [rate, step, *(np.abs(floats(1 << 18)) for _ in range(4))]
    decays = {"norm_coefficient": 0.001}
    momentum = {"alpha": 0.9, "beta": 1.0, "mode": "standard", **decays}
    pairs = [word for first in range(14) for second in range(14) for word in (first, second)]
    found = {
        "Adam 262144": Case("Adam", moved, decays, 3, domain=TRAINING),
        "Adagrad 262144": Case("Adagrad", moved[:5], decays, 2, domain=TRAINING),
        "Momentum 262144": Case("Momentum", moved[:5], momentum, 2, domain=TRAINING),
        "TfIdfVectorizer 64x512": Case(
            "TfIdfVectorizer",
            [places(50, 64, 512)],
            {
                "mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1,
                "ngram_counts": [0, 50], "ngram_indexes": list(range(50 + 196)),
                "pool_int64s": [*range(50), *pairs],
            },
        ),
        "MelWeightMatrix 128x513": Case(
            "MelWeightMatrix",
            [np.array(v) for v in (128, 1024, 16000)]
            + [np.array(v, np.float32) for v in (20.0, 7600.0)],
            {}, 1, [0, 1],
        ),
        "Unique 65536 unsorted": Case("Unique", [places(5000, 65536) / 1.0], {"sorted": 0}, 4),
        "Unique rows of 4096x16": Case("Unique", [places(2, 4096, 16) / 1.0], {"axis": 0}, 4),
        "Unique columns of 16x4096": Case("Unique", [places(2, 16, 4096) / 1.0], {"axis": 1}, 4),
        "ArrayFeatureExtractor": Case(
            "ArrayFeatureExtractor", [floats(4096, 64), places(64, 32)], {}, domain=LEARNT
        ),
        "Binarizer": Case("Binarizer", [floats(4096, 64)], {"threshold": 0.5}, domain=LEARNT),
        "TreeEnsembleRegressor": Case(
            "TreeEnsembleRegressor", [floats(256, 16)], forest(50, 6, 16), domain=LEARNT
        ),
    }  # fmt: skip
    return found


def forest(trees: int, depth: int, features: int) -> dict[str, Any]:
    """Attributes of full trees over drawn features and thresholds, each leaf of one weight."""
    inner, all_ = 2**depth - 1, 2 ** (depth + 1) - 1
    nodes = [(tree, k) for tree in range(trees) for k in range(all_)]
    leaves = [(tree, k) for tree, k in nodes if k >= inner]
    return {
        "n_targets": 1,
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [k for _, k in nodes],
        "nodes_featureids": RNG.integers(0, features, len(nodes)).tolist(),
        "nodes_values": floats(len(nodes)).tolist(),
        "nodes_modes": ["BRANCH_LEQ" if k < inner else "LEAF" for _, k in nodes],
        "nodes_truenodeids": [2 * k + 1 if k < inner else 0 for _, k in nodes],
        "nodes_falsenodeids": [2 * k + 2 if k < inner else 0 for _, k in nodes],
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [k for _, k in leaves],
        "target_ids": [0] * len(leaves),
        "target_weights": floats(len(leaves)).tolist(),
    }


def onnxruntime_run(path: Path, feeds: Mapping[str, Array]) -> Callable[[], Any] | None:
    """What runs the model there, on one thread; None where it has no kernel."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        session.run(None, feeds)
    except Exception:  # noqa: BLE001 - each refusal has a class of its own there
        return None
    return lambda: session.run(None, feeds)


def host_seconds(case: Case, most: float) -> str:
    """What the host takes, once."""
    results: Any = multiprocessing.get_context("spawn").Queue()
    child = multiprocessing.get_context("spawn").Process(target=_host, args=(case, results))
    child.start()
    child.join(most)
    if child.is_alive():
        child.kill()
        return f"> {most:.0f} s"
    return f"{1e3 * results.get():.2f}"


def _host(case: Case, results: Any) -> None:
    run = evaluator(case.model())
    started = time.perf_counter()
    run.run(None, case.feeds)
    results.put(time.perf_counter() - started)


def measured(case: Case, rounds: int) -> tuple[float, float | None, float | None]:
    """Milliseconds of the nests and of onnxruntime, and the median ratio of the pairs."""
    feeds = case.feeds
    with TemporaryDirectory() as folder:
        file = Path(folder) / "node.onnx"
        onnx.save(case.model(), file)
        program = import_onnx(file)
        with peer_model(program, file) as given:  # the file itself
            theirs = onnxruntime_run(given.path, feeds)
        session = isoform.compile(program, threads=1, effort="quick")
    ours_all, theirs_all = list[float](), list[float]()
    session.run(None, feeds)
    for _ in range(rounds):
        ours_all.append(_timed(lambda: session.run(None, feeds)))
        if theirs is not None:
            theirs_all.append(_timed(theirs))
    mine = 1e3 * statistics.median(ours_all)
    if theirs is None:
        return mine, None, None
    pairs = zip(ours_all, theirs_all, strict=True)
    return mine, 1e3 * statistics.median(theirs_all), statistics.median(a / b for a, b in pairs)


def _timed(run: Callable[[], Any]) -> float:
    started = time.thread_time()
    run()
    return time.thread_time() - started


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--host", type=float, default=0)
    parser.add_argument("--opaque", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print("| node | host ms | isoform ms | onnxruntime ms | isoform / onnxruntime |")
    print("|---|---|---|---|---|")
    for name, case in (host_cases() if given.opaque else cases()).items():
        if given.names and not any(n in name for n in given.names):
            continue
        before = host_seconds(case, given.host) if given.host else ""
        mine, theirs, ratio = measured(case, given.rounds)
        shown = ["no kernel", ""] if theirs is None else [f"{theirs:.3f}", f"{ratio:.2f}"]
        print(f"| {name} | {before} | {mine:.3f} | {shown[0]} | {shown[1]} |", flush=True)


if __name__ == "__main__":
    main()

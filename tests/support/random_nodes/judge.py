"""What onnxruntime computes for a sample, what isoform computes, and whether they agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import compose

from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.opaque import evaluator
from isoform.lowering.onnx_to_graph import import_onnx
from isoform.lowering.onnx_to_graph.values import NotConstant
from support.random_nodes.draw import Sample

Arrays = Mapping[str, Any]


class NoKernel(Exception):
    """onnxruntime has no kernel for this op on these types, or refuses the model."""


def by_onnxruntime(sample: Sample) -> Arrays:
    """All results by name, computed without optimisation. Raises NoKernel."""
    batch_first = sample.attributes.get("layout") == 1
    sample = unsigned_weights(batch_second(sample) if batch_first else sample)
    model, feeds = sample.model(), sample.feeds
    try:
        found = run_plain(model, feeds)
    except Exception as error:  # every kind of refusal has its own class there
        raise NoKernel(str(error)) from error
    if batch_first:
        found = {
            n: np.asarray(a).transpose((2, 0, 1, 3) if np.ndim(a) == 4 else (1, 0, 2))
            for n, a in found.items()
        }
    return found


# Where a product of bytes has its weights, and their zero point.
WEIGHTS = {
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
    "QGemm": (3, 5),
    "MatMulInteger": (1, 3),
    "DynamicQuantizeMatMul": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
    "QAttention": (1, 7),
}


def unsigned_weights(sample: Sample) -> Sample:
    """The same product with 128 added to signed weights and to their zero point.

    Without VNNI onnxruntime adds pairs of unsigned times signed bytes in 16 bits, which saturate;
    products of unsigned ones are exact there on every processor.
    """
    weights, zero = WEIGHTS.get(sample.op_type, (0, 0))
    inputs = [*sample.inputs, *[None] * (zero + 1 - len(sample.inputs))]
    data, right, shift = inputs[0], inputs[weights], inputs[zero]
    if not weights or data is None or data.dtype == np.int8:
        return sample
    if right is None or right.dtype != np.int8:
        return sample
    shift = np.zeros((), np.int8) if shift is None else shift
    inputs[weights], inputs[zero] = (
        np.asarray(x.astype(np.int16) + 128, np.uint8) for x in (right, shift)
    )
    return replace(sample, inputs=inputs)


def run_plain(model: onnx.ModelProto, feeds: Arrays) -> dict[str, Any]:
    """All outputs by name, by onnxruntime without optimisation."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if any(node.op_type == "DynamicQuantizeLSTM" for node in model.graph.node):
        # Exact sums without VNNI, as `unsigned_weights`: here it is an optimisation of its own.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = model.SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def batch_second(sample: Sample) -> Sample:
    """The same recurrent node with layout 0, which is all that onnxruntime has."""
    inputs = [
        np.ascontiguousarray(np.swapaxes(a, 0, 1)) if k in (0, 5, 6) and a is not None else a
        for k, a in enumerate(sample.inputs)
    ]
    attributes = {k: v for k, v in sample.attributes.items() if k != "layout"}
    return Sample(
        sample.op_type, inputs, attributes, sample.opset, sample.outputs, sample.constants
    )


def by_evaluator(sample: Sample) -> Arrays:
    """As an opaque node computes it."""
    model = sample.model(range(len(sample.inputs)))
    names = [o.name for o in model.graph.output]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return dict(zip(names, evaluator(model).run(None, {}), strict=True))


def imported(sample: Sample):
    """The program, with operands made initialisers where they must be constants."""
    given: set[int] = set()
    while True:
        try:
            return import_onnx(sample.model(sorted(given)))
        except NotConstant as error:
            name = error.value.removeprefix("x")
            wanted = {int(name)} if name.isdigit() else set(range(1, len(sample.inputs)))
            if wanted <= given:
                raise
            given |= wanted


def by_reference(sample: Sample) -> Arrays:
    """The imported program in the reference evaluator."""
    program = imported(sample)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return reference.run(
            program, {k: v for k, v in sample.feeds.items() if k in program.inputs}
        )


def by_compiled(sample: Sample) -> Arrays:
    """The imported program, compiled at the least effort."""
    import isoform

    program = imported(sample)
    session = isoform.compile(program, threads=1, effort="quick")
    return session(**{k: v for k, v in sample.feeds.items() if k in program.inputs})


def together(samples: Sequence[Sample]) -> list[Arrays]:
    """What each node of one opset gives, compiled as parts of one model: a fifth of the time.

    Raises UserError where one of them is refused.
    """
    import isoform

    given: set[int] = set()
    while True:
        models = [
            compose.add_prefix(sample.model(sorted(given & {*range(len(sample.inputs))})), f"s{k}.")
            for k, sample in enumerate(samples)
        ]
        model, graph = models[0], models[0].graph
        for other in models[1:]:
            for name in ("node", "input", "output", "initializer"):
                getattr(graph, name).extend(getattr(other.graph, name))
        try:
            program = import_onnx(model)
            break
        except NotConstant as error:
            name = error.value.rpartition(".x")[2]
            wanted = {int(name)} if name.isdigit() else {1, 2, 3, 4}
            if wanted <= given:
                raise
            given |= wanted
    every = {f"s{k}.{n}": a for k, sample in enumerate(samples) for n, a in sample.feeds.items()}
    session = isoform.compile(program, threads=1, effort="quick")
    found = session(**{name: a for name, a in every.items() if name in program.inputs})
    return [
        {n.removeprefix(f"s{k}."): a for n, a in found.items() if n.startswith(f"s{k}.")}
        for k in range(len(samples))
    ]


def verdicts(samples: Sequence[Sample]) -> list[str]:
    """The verdict on each, compiled: "differs" and all else that is not "agrees" by itself."""
    found = [""] * len(samples)
    groups: dict[int, list[int]] = {}
    wanted: dict[int, Arrays] = {}
    for k, sample in enumerate(samples):
        try:
            wanted[k] = by_onnxruntime(sample)
            groups.setdefault(sample.opset, []).append(k)
        except NoKernel as error:
            found[k] = f"no kernel: {str(error)[:200]}"
    for places in groups.values():
        try:
            results = together([samples[k] for k in places])
        except Exception:  # noqa: BLE001 - which of them, and how, is found one by one
            continue
        for k, result in zip(places, results, strict=True):
            if not disagreement(samples[k], result, wanted[k]):
                found[k] = "agrees"
    for k, sample in enumerate(samples):
        try:
            found[k] = found[k] or verdict(sample, "compiled")
        except Exception as error:  # noqa: BLE001 - a crash is what is looked for
            found[k] = f"crash: {type(error).__name__}: {error}"
    return found


def wrong(model: onnx.ModelProto, feeds: Arrays, compiled: bool = False) -> str:
    """How the imported model differs from onnxruntime, empty where it does not."""
    import isoform

    program = import_onnx(model)
    given = {k: v for k, v in feeds.items() if k in program.inputs}
    wanted = run_plain(model, feeds)
    if compiled:
        found = isoform.compile(program, threads=1, effort="quick")(**given)
    else:
        found = program.cut(reference.run(program, given))
    way = "compiled" if compiled else "reference"
    faults = [difference(np.asarray(found[k]), wanted[k], 1e-4, way) for k in wanted]
    return "; ".join(filter(None, faults))


def model_verdict(model: onnx.ModelProto, feeds: Arrays, compiled: bool) -> str:
    """ "agrees", "no kernel: ...", "refused: ...", "differs: ..." or "crash: ..."."""
    try:
        run_plain(model, feeds)
    except Exception as error:  # noqa: BLE001 - every kind of refusal has its own class there
        return f"no kernel: {str(error)[:200]}"
    try:
        found = wrong(model, feeds, compiled)
    except UserError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return f"crash: {type(error).__name__}: {error}"
    return f"differs: {found}" if found else "agrees"


WAYS: dict[str, Callable[[Sample], Arrays]] = {
    "evaluator": by_evaluator,
    "reference": by_reference,
    "compiled": by_compiled,
}


def verdict(sample: Sample, way: str) -> str:
    """ "agrees", "no kernel", "refused: ..." or "differs: ..."."""
    try:
        wanted = by_onnxruntime(sample)
    except NoKernel as error:
        return f"no kernel: {str(error)[:200]}"
    try:
        found = WAYS[way](sample)
    except UserError as error:
        return f"refused: {error}"
    except Exception as error:
        if way != "evaluator":
            raise
        return f"evaluator fails: {type(error).__name__}: {error}"[:300].replace("\n", " ")
    wrong = disagreement(sample, found, wanted, way)
    return f"differs: {wrong}" if wrong else "agrees"


def disagreement(sample: Sample, found: Arrays, wanted: Arrays, way: str = "compiled") -> str:
    """The first result that differs, and how; empty where none does."""
    for name, want in wanted.items():
        wrong = difference(
            np.asarray(found[name]), np.asarray(want), sample.tolerance, way, sample.steps
        )
        if wrong:
            return f"{name}: {wrong}"
    return ""


def difference(got: Any, want: Any, tolerance: float, way: str = "compiled", steps: int = 0) -> str:
    """What is wrong with `got`, empty where nothing is."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, wanted {list(want.shape)}"
    if way != "reference" and got.dtype != want.dtype:
        return f"dtype {got.dtype}, wanted {want.dtype}"
    if way == "reference" and want.dtype.kind in "iu" and got.dtype.kind in "iu":
        got = got.astype(want.dtype)  # the reference does not wrap
    if want.dtype.kind in "biu":
        off = got != want
        if steps:
            off &= np.abs(got.astype(np.int64) - want.astype(np.int64)) > steps
        position = tuple(np.argwhere(off)[0]) if off.any() else ()
        said = f"{int(off.sum())} of {want.size}: {got[position]}, wanted {want[position]}"
        return said if off.any() else ""
    if want.dtype.kind in "OUS":
        return "" if np.array_equal(got, want) else "other strings"
    if want.dtype.itemsize == 2:
        tolerance *= 800 if want.dtype == ml_dtypes.bfloat16 else 100
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(w)
    scale = np.abs(w[finite]).max(initial=1e-6)
    with np.errstate(invalid="ignore"):
        near = np.where(
            finite, np.abs(g - w) <= tolerance * scale, (g == w) | (np.isnan(g) & np.isnan(w))
        )
    if near.all():
        return ""
    position = tuple(np.argwhere(~near)[0])
    return f"{int((~near).sum())} of {near.size}: {g[position]}, wanted {w[position]}"


__all__ = ["WAYS", "NoKernel", "by_onnxruntime", "run_plain", "verdict", "verdicts", "wrong"]

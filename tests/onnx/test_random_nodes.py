"""Every op that may become opaque agrees with onnxruntime over random attributes, ranks and dtypes.

`evaluator` is what an opaque node computes, `reference` the imported program's meaning, `compiled`
what runs. Where onnxruntime departs from the specification is in docs/onnx-disagreements.md.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from support.random_nodes import (
    elementwise,
    indexing,
    layers,
    learners,
    pools,
    quantised,
    recurrent,
    sampling,
)
from support.random_nodes import reductions as reduced
from support.random_nodes.draw import Draw, Generator, Sample
from support.random_nodes.judge import imported, verdict

from isoform.dialects import opaque, reference
from isoform.dialects.errors import UserError
from isoform.dialects.opaque_kernels import DOMAINS, KERNELS, NodeCall
from isoform.lowering.onnx_to_graph import regions
from isoform.lowering.onnx_to_graph.table import TABLE

GENERATORS: Mapping[str, Generator] = {
    **elementwise.GENERATORS,
    **indexing.GENERATORS,
    **layers.GENERATORS,
    **learners.GENERATORS,
    **pools.GENERATORS,
    **quantised.GENERATORS,
    **recurrent.GENERATORS,
    **reduced.GENERATORS,
    **sampling.GENERATORS,
}


def failures(op: str, way: str, seeds: range) -> list[str]:
    """What went wrong; a sample that onnxruntime has no kernel for proves nothing."""
    found = [(seed, verdict(GENERATORS[op](Draw(seed)), way)) for seed in seeds]
    wrong = [(s, v) for s, v in found if v != "agrees" and not v.startswith("no kernel")]
    return [f"seed {s}: {v} ({GENERATORS[op](Draw(s))})" for s, v in wrong]


@pytest.mark.parametrize("op", GENERATORS)
def test_an_opaque_node_computes_what_onnxruntime_does(op: str) -> None:
    """Of samples that onnxruntime has kernels for there are some."""
    verdicts = [verdict(GENERATORS[op](Draw(seed)), "evaluator") for seed in range(8)]
    assert [v for v in verdicts if v != "agrees" and not v.startswith("no kernel")] == []
    assert "agrees" in verdicts


@pytest.mark.parametrize("op", GENERATORS)
def test_an_imported_node_means_what_onnxruntime_computes(op: str) -> None:
    many = op in ("LSTM", "GRU", "RNN", "LpPool")  # native with many attributes
    assert failures(op, "reference", range(10, 20 if many else 12)) == []


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_recurrence_as_a_loop_computes_what_onnxruntime_does(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "UNROLLED", 1)
    assert failures(op, "reference", range(20, 35)) == []
    assert failures(op, "compiled", range(35, 38)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_many_recurrences_as_loops_agree(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "UNROLLED", 1)
    assert failures(op, "compiled", range(500)) == []


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN", "LpPool", "ReduceL2", "Slice", "Shrink"])
def test_a_compiled_node_computes_what_onnxruntime_does(op: str) -> None:
    assert failures(op, "compiled", range(20, 21)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_nodes_agree(op: str) -> None:
    found = [*failures(op, "evaluator", range(400)), *failures(op, "reference", range(200))]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_compiled_nodes_agree(op: str) -> None:
    assert failures(op, "compiled", range(15)) == []


# --- element types ---

NUMBERS = ("int32", "uint8", "float16")
MORE = ("float32", "float64", "bfloat16", "bool", "int8", "int16", "int64")
UNSIGNED = ("uint16", "uint32", "uint64")
# onnx.reference fails on integers; the refusal says so.
TYPED = [op for op in GENERATORS if op != "TreeEnsembleRegressor"]


def refusals(op: str, dtypes: tuple[str, ...]) -> list[str]:
    """Element types that ONNX allows for the first operand, and importing refuses."""
    sample = GENERATORS[op](Draw(3))
    schema = onnx.defs.get_schema(op.removesuffix("-old"), sample.opset, sample.domain)
    last = len(schema.inputs) - 1
    kinds = [schema.inputs[min(k, last)].type_str for k in range(len(sample.inputs))]
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    found: list[str] = []
    for dtype in dtypes:
        name = {"float32": "float", "float64": "double"}.get(dtype, dtype)
        number = onnx.TensorProto.DataType.Value(name.upper())
        if f"tensor({name})" not in allowed.get(kinds[0], []):
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(number)
        inputs = [
            np.abs(a).astype(kind) if a is not None and same == kinds[0] else a
            for a, same in zip(sample.inputs, kinds, strict=True)
        ]
        try:
            imported(dataclasses.replace(sample, inputs=inputs))
        except UserError as error:
            found.append(f"{dtype}: {error}")
    return found


@pytest.mark.parametrize("op", TYPED)
def test_no_element_type_that_onnx_allows_is_refused(op: str) -> None:
    assert refusals(op, NUMBERS) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", TYPED)
def test_no_other_element_type_that_onnx_allows_is_refused(op: str) -> None:
    assert refusals(op, (*MORE, *UNSIGNED)) == []


# --- nothing is left out ---

# Ops of the main domain without a generator: what computes them is told, or why there is nothing.
WITHOUT: dict[str, str] = {
    "strings: refused; sequences, optionals and images: decided at import": (
        "ImageDecoder Optional OptionalGetElement OptionalHasElement RegexFullMatch SequenceAt "
        "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
        "SplitToSequence ConcatFromSequence StringConcat StringNormalizer StringSplit"
    ),
    "results whose shape depends on data: refused": "NonMaxSuppression NonZero Unique",
    "random numbers": (
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
    ),
    "new in opset 26 and later: ONNX's node tests alone": (
        "BitCast CausalConvWithState LinearAttention SwiGLU"
    ),
    "control flow: test_control_flow.py": "If Loop Scan",
    "no arithmetic; folded or the operand itself": "Constant ConstantOfShape Shape Size",
    "always native or refused: test_conformance.py, test_old_opsets.py, test_resampling.py": (
        "CenterCropPad Conv ConvTranspose Dropout Einsum Flatten Gelu Range Reshape Split "
        "Squeeze Unsqueeze Upsample"
    ),
}


def test_every_op_has_a_generator_or_a_reason() -> None:
    known = {s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    known |= set(TABLE)
    told = {name for names in WITHOUT.values() for name in names.split()}
    drawn = {name.removesuffix("-old") for name in GENERATORS} | {"CastLike"}
    assert sorted(known - told - drawn) == []
    assert sorted(told - known) == []


def test_every_kernel_has_a_generator() -> None:
    kernels = {op for kernels in DOMAINS.values() for op in kernels}
    assert sorted(kernels - set(GENERATORS)) == []


# --- what onnxruntime leaves open or gets wrong, by the specification's own words ---


def test_a_logarithm_of_integers_is_cut_to_an_integer() -> None:
    """onnxruntime rounds each exponential to an integer first."""
    x = np.array([[-2, -2], [3, 1]], np.int32)
    sample = Sample("ReduceLogSumExp", [x], {"axes": [1], "keepdims": 0}, 13)
    wanted = np.trunc(np.log(np.exp(x.astype(float)).sum(1))).astype(np.int32)
    (found,) = opaque.evaluator(sample.model([0])).run(None, {})
    np.testing.assert_array_equal(found, wanted)


def test_automatic_pads_of_a_pool_hold_its_dilated_window() -> None:
    """SAME: as many results as elements at stride 1; onnxruntime gives fewer."""
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 8)
    given = {"kernel_shape": [3], "dilations": [2], "auto_pad": "SAME_UPPER"}
    (found,) = KERNELS["MaxPool"](NodeCall([x], given, 22, [True]))
    np.testing.assert_array_equal(found[0, 0], [2, 3, 4, 5, 6, 7, 6, 7])


# --- a wrong kernel is noticed ---


@pytest.mark.parametrize("op", ["LSTM", "MaxPool", "QuantizeLinear", "GridSample", "Scatter"])
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    right = KERNELS[op]

    def wrong(call: NodeCall) -> list[np.ndarray]:
        return [np.flip(a, axis=-1) if a.ndim else a for a in right(call)]

    planted = {**opaque.operators(), op: type("Planted", (), {})}
    base = opaque.operators()[op]
    planted[op] = type(op, (base,), {"kernel": staticmethod(wrong)})
    monkeypatch.setattr(opaque, "operators", lambda: planted)
    assert failures(op, "evaluator", range(10)) != []


def test_a_window_that_ceil_mode_cuts_holds_what_is_there() -> None:
    """The last of three windows has two elements."""
    x = np.array([[[1, 2, 3, 4, 5, 6]]], np.float32)
    given = {"kernel_shape": [3], "strides": [2], "ceil_mode": 1, "p": 1}
    sample = Sample("LpPool", [x], given, 22)
    assert verdict(sample, "reference") == "agrees"
    (found,) = reference.run(imported(sample), {"x0": x}).values()
    np.testing.assert_allclose(found, [[[6, 12, 11]]])

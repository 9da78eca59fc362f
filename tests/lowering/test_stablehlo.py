"""What jax.export writes is imported, and means what jax computed; jax is not needed.

`tests/support/stablehlo_fixtures.py` writes the texts, with jax's results.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isoform
from isoform.dialects import reference
from isoform.dialects.control import LoopOp
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.stablehlo_to_graph import is_stablehlo
from isoform.lowering.stablehlo_to_graph.importer import import_text
from isoform.lowering.stablehlo_to_graph.table import TABLE

PATH = Path(__file__).parents[1] / "fixtures" / "stablehlo.jsonl.gz"
CASES: dict[str, dict[str, Any]] = {
    case["name"]: case
    for case in map(json.loads, gzip.decompress(PATH.read_bytes()).decode().splitlines())
}
MODELS = sorted(name for name in CASES if name.startswith("model-"))
COMPILED = (
    *MODELS, "scan-reverse", "scan-nested", "fori-data", "while", "cond--1.0", "switch-1",
    "sort-two-keys", "scatter-add-outside", "take-fill", "window-min-dilated", "conv-all",
    "uniform", "typed-uint8", "shifts-int8", "narrow-uint8", "dot-int8", "atan2-special",
)  # fmt: skip
NEAR = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}

# Ops that jax.export no longer writes for any case, tested by their text below.
BY_TEXT = {
    "stablehlo.dot", "stablehlo.if", "stablehlo.logistic", "stablehlo.get_dimension_size",
    "stablehlo.reduce_precision",
    "chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh", "chlo.atan", "chlo.atanh", "chlo.cosh",
    "chlo.erf", "chlo.erfc", "chlo.is_inf", "chlo.sinh", "chlo.square", "chlo.tan", "chlo.top_k",
}  # fmt: skip


def imported(text: str) -> Program:
    return import_text(text, lambda at: f"x.mlir:{text.count(chr(10), 0, at) + 1}")


def array(entry: list[Any]) -> Array:
    name, shape, data = entry
    kind = np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    return np.frombuffer(base64.b64decode(data), kind).reshape(shape)


def check(case: dict[str, Any], program: Program, found: dict[str, Array]) -> None:
    kinds = [entry[0] for entry in (*case["inputs"], *case["outputs"])]
    near = max(NEAR.get(kind, 0.0) for kind in kinds)
    assert len(program.outputs) == len(case["outputs"])
    for name, entry in zip(program.outputs, case["outputs"], strict=True):
        wanted, result = array(entry), np.asarray(found[name])
        assert result.shape == wanted.shape
        pair = (v.astype(np.float64) for v in (result, wanted))
        np.testing.assert_allclose(*pair, rtol=near, atol=near)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_text_means_what_jax_computed(name: str) -> None:
    case = CASES[name]
    program = imported(case["text"])
    feeds = dict(zip(program.inputs, map(array, case["inputs"]), strict=True))
    with np.errstate(all="ignore"):
        check(case, program, reference.run(program, feeds))


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_text_computes_what_jax_computed(name: str) -> None:
    _compiled(CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CASES) - set(COMPILED)))
def test_every_compiled_text_computes_what_jax_computed(name: str) -> None:
    _compiled(CASES[name])


def _compiled(case: dict[str, Any]) -> None:
    program = imported(case["text"])
    arrays = list(map(array, case["inputs"]))
    found = isoform.compile(program)(*arrays)
    check(case, program, found)
    kinds = [str(found[name].dtype) for name in program.outputs]
    assert kinds == [entry[0] for entry in case["outputs"]]


def test_every_op_of_the_table_is_in_a_text() -> None:
    texts = " ".join(case["text"] for case in CASES.values())
    words = set(re.findall(r"(?:stablehlo|chlo)\.\w+", texts))
    assert set(TABLE) - words <= BY_TEXT, sorted(set(TABLE) - words - BY_TEXT)


# --- the form of what is imported ---


def test_names_are_those_of_jax() -> None:
    program = imported(CASES["model-mlp"]["text"])
    assert list(program.inputs)[:2] == ["params.0.bias", "params.0.kernel"]
    assert list(program.outputs) == ["label", "logits"]


def test_a_scan_is_a_loop_over_rows() -> None:
    """Not one that carries whole tensors, of which each iteration copies one row."""
    program = imported(CASES["model-scan"]["text"])
    (loop,) = (op for op in program.module.walk() if isinstance(op, LoopOp))
    assert len(loop.scanned) == 1 and len(loop.stacked) == 1
    assert [v.type.get_shape() for v in loop.carried] == [(2, 6), (2, 6)]  # pyright: ignore


def test_a_reversed_scan_walks_backward() -> None:
    program = imported(CASES["scan-reverse"]["text"])
    (loop,) = (op for op in program.module.walk() if isinstance(op, LoopOp))
    assert loop.is_backward(0) and loop.is_backward(1)


# --- texts by hand ---


def _main(body: str, given: str = "%a: tensor<2x3xf32>", result: str = "tensor<2x3xf32>") -> str:
    return f"func.func @main({given}) -> {result} {{\n{body}\n}}"


X = np.array([[0.5, -0.25, 0.0], [0.75, 0.9, -0.6]], np.float32)


@pytest.mark.parametrize("name", ["sinh", "cosh", "asin", "acos", "atan", "asinh", "atanh", "tan"])
def test_chlo_functions(name: str) -> None:
    text = _main(f"%0 = chlo.{name} %a : tensor<2x3xf32> -> tensor<2x3xf32>\n"
                 "return %0 : tensor<2x3xf32>")  # fmt: skip
    function = getattr(np, name.replace("as", "arcs").replace("ac", "arcc").replace("at", "arct"))
    np.testing.assert_allclose(_run(text, X), function(X), rtol=1e-6)


def test_other_chlo_ops() -> None:
    calls = ["erf %a", "erfc %a", "square %a", "acosh %1"]
    lines = ["%c = stablehlo.constant dense<2.0> : tensor<2x3xf32>"]
    lines += ["%1 = stablehlo.add %a, %c : tensor<2x3xf32>"]
    lines += [
        f"%r{k} = chlo.{call} : tensor<2x3xf32> -> tensor<2x3xf32>" for k, call in enumerate(calls)
    ]
    lines += ["%s = chlo.is_inf %a : tensor<2x3xf32> -> tensor<2x3xi1>"]
    lines += [
        "%t:2 = chlo.top_k(%a, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)"
    ]
    lines += ["return %r0, %r1, %r2, %r3, %s, %t#1 : " + ", ".join(["tensor<2x3xf32>"] * 6)]
    types = ", ".join([*["tensor<2x3xf32>"] * 4, "tensor<2x3xi1>", "tensor<2x2xi32>"])
    program = imported(_main("\n".join(lines), result=f"({types})"))
    found = list(reference.run(program, {"a": X}).values())
    np.testing.assert_allclose(found[0] + found[1], np.ones((2, 3)), rtol=1e-6)
    np.testing.assert_allclose(found[2], X * X, rtol=1e-6)
    np.testing.assert_allclose(found[3], np.arccosh(X + 2.0), rtol=1e-6)
    assert not found[4].any()
    assert found[5].tolist() == [[0, 2], [1, 0]]


def _run(text: str, *arrays: Array) -> Array:
    program = imported(text)
    (found,) = reference.run(program, dict(zip(program.inputs, arrays, strict=True))).values()
    return found


def test_the_generic_form_is_read() -> None:
    text = _main(
        '%0 = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : '
        "(tensor<2x3xf32>) -> tensor<3x2xf32>\n"
        '%1 = "stablehlo.dot_general"(%a, %0) <{dot_dimension_numbers = #stablehlo.dot<'
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, "
        "precision_config = [#stablehlo<precision DEFAULT>]}> : "
        "(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n"
        '%2 = "stablehlo.compare"(%1, %1) {comparison_direction = #stablehlo<comparison_direction '
        "LE>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>\n"
        '%3 = "stablehlo.dot"(%a, %0) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n'
        '%4 = "stablehlo.select"(%2, %1, %3) : '
        "(tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n"
        '"func.return"(%4) : (tensor<2x2xf32>) -> ()',
        result="tensor<2x2xf32>",
    )
    np.testing.assert_allclose(_run(text, X), X @ X.T, rtol=1e-6)


def test_a_generic_convolution_is_read() -> None:
    text = _main(
        '%0 = "stablehlo.convolution"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = '
        "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, "
        "padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_strides = array<i64: 1>}> : "
        "(tensor<1x4x2xf32>, tensor<2x2x3xf32>) -> tensor<1x4x3xf32>\n"
        "return %0 : tensor<1x4x3xf32>",
        "%a: tensor<1x4x2xf32>, %b: tensor<2x2x3xf32>", "tensor<1x4x3xf32>",
    )  # fmt: skip
    x, w = np.arange(8.0).reshape(1, 4, 2), np.arange(12.0).reshape(2, 2, 3)
    before = np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :4]
    np.testing.assert_allclose(_run(text, x, w), before @ w[0] + x @ w[1], rtol=1e-6)


def _scattered(x: Array, source: Array, low: tuple[int, int], step: int) -> Array:
    """What the specification says of windows of 2 x 2 that select by GE and scatter by a sum."""
    total = np.full(x.shape, 0.5)
    for i, j in np.ndindex(source.shape):
        corner = i * step - low[0], j * step - low[1]
        places = [(corner[0] + r, corner[1] + c) for r in (0, 1) for c in (0, 1)]
        inside = [p for p in places if all(0 <= k < n for k, n in zip(p, x.shape, strict=True))]
        # The first of the greatest: one is replaced only by a greater one.
        best = max(inside, key=lambda p: x[p], default=None)
        if best is not None:
            total[best] += source[i, j]
    return total


@pytest.mark.parametrize(
    ("pads", "out", "step"),
    [(((1, 0), (0, 1)), (4, 5), 1), (((1, 1), (1, 1)), (3, 3), 2), (((0, 1), (1, 0)), (4, 5), 1)],
)
def test_padding_is_never_selected(
    pads: tuple[tuple[int, int], tuple[int, int]], out: tuple[int, int], step: int
) -> None:
    shape = f"{out[0]}x{out[1]}"
    text = _main(
        "%c = stablehlo.constant dense<5.0e-01> : tensor<f32>\n"
        '%0 = "stablehlo.select_and_scatter"(%x, %s, %c) <{padding = '
        f"dense<{[list(pad) for pad in pads]}> : tensor<2x2xi64>, "
        "window_dimensions = array<i64: 2, 2>, "
        f"window_strides = array<i64: {step}, {step}>}}> ({{\n"
        "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
        "%1 = stablehlo.compare GE, %p, %q, FLOAT : "
        "(tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %1 : tensor<i1>\n}, {\n"
        "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
        "%1 = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %1 : tensor<f32>\n}) : "
        f"(tensor<4x5xf32>, tensor<{shape}xf32>, tensor<f32>) -> tensor<4x5xf32>\n"
        "return %0 : tensor<4x5xf32>",
        f"%x: tensor<4x5xf32>, %s: tensor<{shape}xf32>", "tensor<4x5xf32>",
    )  # fmt: skip
    draw = np.random.default_rng(3)
    x, source = -1 - draw.random((4, 5)), draw.random(out)  # below the zeros that pad
    wanted = _scattered(x, source, (pads[0][0], pads[1][0]), step)
    np.testing.assert_allclose(_run(text, x, source), wanted, rtol=1e-6)


def test_bytecode_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_bytes(b"ML\xefR\x0dStableHLO\x00")
    with pytest.raises(UserError, match="MLIR bytecode"):
        isoform.load(path)


def test_if_and_sizes() -> None:
    text = _main(
        '%0 = "stablehlo.if"(%p) ({\n'
        "%1 = stablehlo.add %a, %a : tensor<2x3xf32>\nstablehlo.return %1 : tensor<2x3xf32>\n"
        "}, {\nstablehlo.return %a : tensor<2x3xf32>\n}) : (tensor<i1>) -> tensor<2x3xf32>\n"
        "%2 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>\n"
        "%3 = stablehlo.convert %2 : (tensor<i32>) -> tensor<f32>\n"
        "%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x3xf32>\n"
        "%5 = stablehlo.reduce_precision %4, format = e8m7 : tensor<2x3xf32>\n"
        "%6 = stablehlo.add %0, %5 : tensor<2x3xf32>\n"
        "%7 = stablehlo.logistic %6 : tensor<2x3xf32>\nreturn %7 : tensor<2x3xf32>",
        "%p: tensor<i1>, %a: tensor<2x3xf32>",
    )
    for p in (True, False):
        np.testing.assert_allclose(_run(text, np.asarray(p), X), 1 / (1 + np.exp(-X * (1 + p) - 3)))


def test_the_rows_of_starts_may_be_any_dim() -> None:
    """jax writes them last."""
    text = _main(
        '%0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<'
        "collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 0>, "
        "slice_sizes = array<i64: 1, 1>}> : "
        "(tensor<2x3xf32>, tensor<1x2x4xi32>) -> tensor<2x4xf32>\nreturn %0 : tensor<2x4xf32>",
        "%a: tensor<2x3xf32>, %i: tensor<1x2x4xi32>",
        "tensor<2x4xf32>",
    )
    places = np.array([[[0, 2, 1, 1], [2, 0, 9, -3]]], np.int32)
    wanted = np.take_along_axis(X, places[0].clip(0, 2), 1)
    np.testing.assert_array_equal(_run(text, X, places), wanted)


@pytest.mark.parametrize(
    ("literal", "values"),
    [
        ("dense<[1.5, -2.0]> : tensor<2xf32>", [1.5, -2.0]),
        ("dense<3> : tensor<2xi8>", [3, 3]),
        ("dense<[true, false]> : tensor<2xi1>", [1, 0]),
        ('dense<"0x0000803F000000C0"> : tensor<2xf32>', [1.0, -2.0]),
        ('dense<"0x803F00C0"> : tensor<2xbf16>', [1.0, -2.0]),
        ("dense<[0x7F800000, 0xFF800000]> : tensor<2xf32>", [np.inf, -np.inf]),
        ("dense<255> : tensor<2xui8>", [255, 255]),
        ("dense<[-1, 2]> : tensor<2xi64>", [-1, 2]),
    ],
)
def test_literals(literal: str, values: list[float]) -> None:
    kind = literal.split(" : ")[1]
    text = _main(f"%0 = stablehlo.constant {literal}\nreturn %0 : {kind}", "", kind)
    np.testing.assert_array_equal(_run(text).astype(np.float64), values)


# --- what is refused ---


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%0 = stablehlo.fft %a, type = FFT, length = [3] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
         "x.mlir:2: no form in the graph dialect: stablehlo.fft"),
        ("%0, %1 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2x3xf32>) -> "
         "(tensor<2x3xf32>, tensor<2x3xf32>)", "stablehlo.rng_bit_generator"),
        ("%0 = stablehlo.custom_call @lapack_sgetrf(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
         "stablehlo.custom_call @lapack_sgetrf"),
        ("%0 = stablehlo.add %a, %a : tensor<?x3xf32>", "x.mlir:2: a size is not fixed"),
        ("%0 = stablehlo.complex %a, %a : tensor<2x3xcomplex<f32>>", "complex numbers"),
        ("%0 = stablehlo.add %a, %b : tensor<2x3xf32>", "x.mlir:2: '%b' is not defined"),
        ("%0 = stablehlo.add %a, %a : tensor<2x4xf32>", "type does not follow from its operands"),
        ("%0 = stablehlo.transpose %a, dims = [0, 7] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
         "x.mlir:2: stablehlo.transpose"),
        ("%0 = stablehlo.transpose %a : (tensor<2x3xf32>) -> tensor<2x3xf32>",
         "attribute 'dims' is not a list of whole numbers"),
        ("%0 = stablehlo.add %a : tensor<2x3xf32>", "an operand is missing"),
        ("%0 = stablehlo.constant dense_resource<__elided__> : tensor<2x3xf32>", "elements"),
        ("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2x3xf32>", "does not fit"),
        ("%0 = stablehlo.constant dense<300> : tensor<2x3xi8>", "out of range"),
        ("%0 = call @other(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>", "no function '@other'"),
        ("%0 = call @main(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>", "'main' calls itself"),
        ("%0 = stablehlo.add %a, %a", "x.mlir:2: '%0' is not defined"),
        ("%0 = stablehlo.add %a, $a : tensor<2x3xf32>", "x.mlir:2: unexpected '\\$'"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_with_its_line(body: str, words: str) -> None:
    text = _main(f"{body}\nreturn %0 : tensor<2x3xf32>")
    with pytest.raises(UserError, match=words):
        imported(text)


def test_a_text_that_ends_early_is_one_line() -> None:
    """Each prefix of a text is an error of ours, at a place."""
    text = CASES["scan"]["text"]
    for end in range(0, len(text) - 2, 97):
        with pytest.raises(UserError):
            imported(text[:end])


def test_only_stablehlo_is_taken_for_it() -> None:
    assert all(is_stablehlo(case["text"]) for case in CASES.values())
    assert not is_stablehlo("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n}")
    assert not is_stablehlo('// stablehlo.add\nfunc.func @main() attributes {a = "stablehlo.add"}')


@pytest.mark.parametrize("suffix", [".mlir", ".stablehlo"])
def test_files_are_loaded_by_content(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_text(CASES["model-mlp"]["text"])
    program = isoform.load(path)
    assert list(program.outputs) == ["label", "logits"]

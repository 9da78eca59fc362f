"""skip-padding: kernels leave out rows that nobody reads, and nobody reads what they left out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bounding import at, bounded, drawn, padded
from xdsl.utils.exceptions import VerifyException

from isoform.compiler.frontends.program_file import program_of
from isoform.compiler.frontends.source import SourceText
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.compiler.targets.padded_session import aligned
from isoform.dialects.kernel import AttentionOp, GemmOp, KernelOp
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.types import Array
from isoform.lowering.kernel_to_cpu.session import CpuSession

# By name: the text, the bounds.
PROGRAMS: dict[str, tuple[str, dict[str, int]]] = {
    # The rows of each of three entries: no prefix of the buffer, blocks that are in two entries.
    "product": (
        """func.func @main(%x: tensor<3x?x8xf32, #graph.dims<3, n, 8>>, %one: tensor<8x24xf32>)
              -> tensor<3x?x24xf32, #graph.dims<3, n, 24>> {
          %w = graph.broadcast %one {shape = [3, 8, 24], dims = [1, 2]} : tensor<3x8x24xf32>
          %y = graph.matmul %x, %w : tensor<3x?x24xf32, #graph.dims<3, n, 24>>
          func.return %y : tensor<3x?x24xf32, #graph.dims<3, n, 24>>
        }""",
        {"n": 41},
    ),
    "mlp": (
        """func.func @main(%x: tensor<3x?x8xf32, #graph.dims<3, n, 8>>, %one: tensor<8x24xf32>,
              %two: tensor<24x8xf32>) -> tensor<3x?x8xf32, #graph.dims<3, n, 8>> {
          %w = graph.broadcast %one {shape = [3, 8, 24], dims = [1, 2]} : tensor<3x8x24xf32>
          %v = graph.broadcast %two {shape = [3, 24, 8], dims = [1, 2]} : tensor<3x24x8xf32>
          %a = graph.matmul %x, %w : tensor<3x?x24xf32, #graph.dims<3, n, 24>>
          %b = graph.sigmoid %a : tensor<3x?x24xf32, #graph.dims<3, n, 24>>
          %c = graph.matmul %b, %v : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
          %d = graph.add %c, %x : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
          %y = graph.softmax %d {axis = 2} : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
          func.return %y : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
        }""",
        {"n": 41},
    ),
    "points": (
        """func.func @main(%x: tensor<3x?x8xf32, #graph.dims<3, n, 8>>)
              -> tensor<3x?x8xf32, #graph.dims<3, n, 8>> {
          %a = graph.tanh %x : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
          func.return %a : tensor<3x?x8xf32, #graph.dims<3, n, 8>>
        }""",
        {"n": 40},
    ),
    # Zeros stay zeros, so the second product reads all of them; the first one reads the first rows.
    "zeros": (
        """func.func @main(%x: tensor<?x12xf32, #graph.dims<n, 12>>, %w: tensor<12x12xf32>)
              -> (tensor<?x12xf32, #graph.dims<n, 12>>, tensor<12x12xf32>) {
          %t = graph.tanh %x : tensor<?x12xf32, #graph.dims<n, 12>>
          %u = graph.matmul %t, %w : tensor<?x12xf32, #graph.dims<n, 12>>
          %s = graph.matmul %t, %x {transpose_a = true} : tensor<12x12xf32>
          func.return %u, %s : tensor<?x12xf32, #graph.dims<n, 12>>, tensor<12x12xf32>
        }""",
        {"n": 100},
    ),
    # The mask has many items.
    "long": (
        """func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>)
              -> (tensor<?x4xf32, #graph.dims<n, 4>>, tensor<1x4xf32>, tensor<1x4xf32>) {
          %e = graph.exp %x : tensor<?x4xf32, #graph.dims<n, 4>>
          %s = graph.reduce_sum %e {axes = [0]} : tensor<1x4xf32>
          %m = graph.reduce_max %x {axes = [0]} : tensor<1x4xf32>
          func.return %e, %s, %m : tensor<?x4xf32, #graph.dims<n, 4>>, tensor<1x4xf32>,
            tensor<1x4xf32>
        }""",
        {"n": 3000},
    ),
    "attention": (
        """func.func @main(%x: tensor<2x?x16xf32, #graph.dims<2, n, 16>>, %w: tensor<2x16x16xf32>,
              %u: tensor<2x16x16xf32>) -> tensor<2x?x16xf32, #graph.dims<2, n, 16>> {
          %q = graph.matmul %x, %w : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %k = graph.matmul %x, %u : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %v = graph.exp %x : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %s = graph.matmul %q, %k {transpose_b = true} : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %p = graph.softmax %s {axis = 2} : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %y = graph.matmul %p, %v : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          func.return %y : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
        }""",
        {"n": 40},
    ),
    # What exporters put behind a softmax: rows of NaN become zeros.
    "guarded": (
        """func.func @main(%x: tensor<2x?x16xf32, #graph.dims<2, n, 16>>, %w: tensor<2x16x16xf32>,
              %u: tensor<2x16x16xf32>) -> tensor<2x?x16xf32, #graph.dims<2, n, 16>> {
          %q = graph.matmul %x, %w : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %k = graph.matmul %x, %u : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %v = graph.exp %x : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          %s = graph.matmul %q, %k {transpose_b = true} : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %p = graph.softmax %s {axis = 2} : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %i = graph.is_nan %p : tensor<2x?x?xi1, #graph.dims<2, n, n>>
          %c = graph.constant dense<0.0> : tensor<f32>
          %z = graph.broadcast %c {shape = [2, n, n], dims = []}
            : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %g = graph.where %i, %z, %p : tensor<2x?x?xf32, #graph.dims<2, n, n>>
          %y = graph.matmul %g, %v : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
          func.return %y : tensor<2x?x16xf32, #graph.dims<2, n, 16>>
        }""",
        {"n": 40},
    ),
    # The padding of a softmax is zeros; what is chosen there instead is not.
    "chosen": (
        """func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>)
              -> (tensor<?x4xf32, #graph.dims<n, 4>>, tensor<1x4xf32>) {
          %p = graph.softmax %x {axis = 0} : tensor<?x4xf32, #graph.dims<n, 4>>
          %h = graph.constant dense<0.5> : tensor<f32>
          %b = graph.broadcast %h {shape = [n, 4], dims = []} : tensor<?x4xf32, #graph.dims<n, 4>>
          %i = graph.less %p, %b : tensor<?x4xi1, #graph.dims<n, 4>>
          %w = graph.where %i, %b, %p : tensor<?x4xf32, #graph.dims<n, 4>>
          %s = graph.reduce_sum %w {axes = [0]} : tensor<1x4xf32>
          %e = graph.exp %x : tensor<?x4xf32, #graph.dims<n, 4>>
          func.return %e, %s : tensor<?x4xf32, #graph.dims<n, 4>>, tensor<1x4xf32>
        }""",
        {"n": 3000},
    ),
    # Winograd, fused and in three kernels.
    "tiles": (
        """func.func @main(%x: tensor<?x32x32x32xf32, #graph.dims<b, 32, 32, 32>>)
              -> (tensor<?x32x32x32xf32, #graph.dims<b, 32, 32, 32>>,
                  tensor<?x64x7x7xf32, #graph.dims<b, 64, 7, 7>>) {
          %k = graph.weight @tiles32 : tensor<32x32x3x3xf32>
          %l = graph.weight @tiles64 : tensor<64x32x3x3xf32>
          %y = graph.conv %x, %k {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1],
            groups = 1} : tensor<?x32x32x32xf32, #graph.dims<b, 32, 32, 32>>
          %s = graph.slice %x {starts = [0, 0, 0, 0], sizes = [b, 32, 7, 7],
            steps = [1, 1, 1, 1]} : tensor<?x32x7x7xf32, #graph.dims<b, 32, 7, 7>>
          %z = graph.conv %s, %l {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1],
            groups = 1} : tensor<?x64x7x7xf32, #graph.dims<b, 64, 7, 7>>
          func.return %y, %z : tensor<?x32x32x32xf32, #graph.dims<b, 32, 32, 32>>,
            tensor<?x64x7x7xf32, #graph.dims<b, 64, 7, 7>>
        }""",
        {"b": 6},
    ),
    # Both dims of the scores are outputs; one reader sums all rows, another reads the first.
    "scores": (
        """func.func @main(%x: tensor<?x12xf32, #graph.dims<n, 12>>, %w: tensor<12x12xf32>)
              -> (tensor<?x?xf32, #graph.dims<n, n>>, tensor<1x12xf32>,
                  tensor<12x?xf32, #graph.dims<12, n>>) {
          %a = graph.matmul %x, %w : tensor<?x12xf32, #graph.dims<n, 12>>
          %e = graph.exp %a : tensor<?x12xf32, #graph.dims<n, 12>>
          %s = graph.matmul %e, %x {transpose_b = true} : tensor<?x?xf32, #graph.dims<n, n>>
          %m = graph.reduce_mean %e {axes = [0]} : tensor<1x12xf32>
          %t = graph.transpose %a {perm = [1, 0]} : tensor<12x?xf32, #graph.dims<12, n>>
          %u = graph.tanh %t : tensor<12x?xf32, #graph.dims<12, n>>
          func.return %s, %m, %u : tensor<?x?xf32, #graph.dims<n, n>>, tensor<1x12xf32>,
            tensor<12x?xf32, #graph.dims<12, n>>
        }""",
        {"n": 40},
    ),
    "images": (
        """func.func @main(%x: tensor<?x3x9x9xf32, #graph.dims<b, 3, 9, 9>>)
              -> (tensor<?x8x5x5xf32, #graph.dims<b, 8, 5, 5>>,
                  tensor<?x5xf32, #graph.dims<b, 5>>) {
          %k = graph.weight @k : tensor<8x3x3x3xf32>
          %d = graph.weight @d : tensor<8x1x3x3xf32>
          %w = graph.weight @w : tensor<8x5xf32>
          %a = graph.conv %x, %k {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1],
            groups = 1} : tensor<?x8x9x9xf32, #graph.dims<b, 8, 9, 9>>
          %r = graph.relu %a : tensor<?x8x9x9xf32, #graph.dims<b, 8, 9, 9>>
          %c = graph.conv %r, %d {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1],
            groups = 8} : tensor<?x8x5x5xf32, #graph.dims<b, 8, 5, 5>>
          %m = graph.reduce_mean %c {axes = [2, 3], keep_dims = false}
            : tensor<?x8xf32, #graph.dims<b, 8>>
          %y = graph.matmul %m, %w : tensor<?x5xf32, #graph.dims<b, 5>>
          func.return %c, %y : tensor<?x8x5x5xf32, #graph.dims<b, 8, 5, 5>>,
            tensor<?x5xf32, #graph.dims<b, 5>>
        }""",
        {"b": 6},
    ),
    "both": (
        """func.func @main(%x: tensor<?x?x8xf32, #graph.dims<b, n, 8>>,
              %w: tensor<?x8x12xf32, #graph.dims<b, 8, 12>>)
              -> (tensor<?x?x12xf32, #graph.dims<b, n, 12>>, tensor<?x12xf32, #graph.dims<b, 12>>) {
          %a = graph.matmul %x, %w : tensor<?x?x12xf32, #graph.dims<b, n, 12>>
          %e = graph.sigmoid %a : tensor<?x?x12xf32, #graph.dims<b, n, 12>>
          %m = graph.reduce_max %e {axes = [1], keep_dims = false}
            : tensor<?x12xf32, #graph.dims<b, 12>>
          func.return %e, %m : tensor<?x?x12xf32, #graph.dims<b, n, 12>>,
            tensor<?x12xf32, #graph.dims<b, 12>>
        }""",
        {"b": 4, "n": 20},
    ),
}


WEIGHTS = {
    "k": (8, 3, 3, 3), "d": (8, 1, 3, 3), "w": (8, 5), "tiles32": (32, 32, 3, 3),
    "tiles64": (64, 32, 3, 3),
}  # fmt: skip


def placed(name: str) -> tuple[Program, Program, dict[str, int]]:
    """A program with symbols, the one at its bounds as kernels, and the bounds."""
    text, bounds = PROGRAMS[name]
    symbolic = program_of(SourceText("p.mlir", text), Path("p.mlir"))
    draw = np.random.default_rng(0)
    for key, shape in WEIGHTS.items():
        symbolic.weights.add(key, draw.standard_normal(shape).astype(np.float32))
    return symbolic, place(bounded(symbolic, bounds), CpuOptions(1)), bounds


def kernels(program: Program) -> list[KernelOp]:
    return [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]


def feeds_at(
    symbolic: Program, kernel: Program, sizes: dict[str, int]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs of these sizes, padded, and the outputs of the program of just these sizes."""
    exact = at(symbolic, sizes)
    inputs = drawn(exact, sum(sizes.values()))
    shapes = {name: type_.get_shape() for name, type_ in kernel.inputs.items()}
    feeds = {name: padded(array, shapes[name]) for name, array in inputs.items()}
    feeds |= {f"size.{name}": np.asarray(n, np.int64) for name, n in sizes.items()}
    return feeds, run(exact, inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_count_are_right_behind_any_padding(name: str) -> None:
    symbolic, kernel, bounds = placed(name)
    every = list(itertools.product(*([1, n // 2, n - 1, n] for n in bounds.values())))
    session = CpuSession(kernel, threads=2)
    float32 = np.dtype(np.float32)
    out = {o: aligned(type_.get_shape(), float32) for o, type_ in kernel.outputs.items()}
    for sizes in every:
        feeds, wanted = feeds_at(symbolic, kernel, dict(zip(bounds, sizes, strict=True)))
        session.arena[...] = 0xFF  # NaN, and -1
        for array in out.values():
            array[...] = np.nan
        found = session.run_into(feeds, out)
        for output, array in wanted.items():
            cut = found[output][tuple(map(slice, array.shape))]
            largest = float(np.abs(array).max())
            np.testing.assert_allclose(
                cut, array, 1e-4, 1e-5 * largest, err_msg=f"{output} at {sizes}"
            )


@pytest.mark.parametrize("name", PROGRAMS)
def test_padding_is_left_out(name: str) -> None:
    """Most rows behind those that count are as they were before."""
    symbolic, kernel, bounds = placed(name)
    sizes = dict.fromkeys(bounds, 1)
    feeds, wanted = feeds_at(symbolic, kernel, sizes)
    shapes = {
        o: t.get_shape() for o, t in kernel.outputs.items() if wanted[o].shape != t.get_shape()
    }
    out = {o: aligned(shape, np.dtype(np.float32)) for o, shape in shapes.items()}
    for array in out.values():
        array[...] = 77.0
    session = CpuSession(kernel, threads=1)
    session.arena.view(np.float32)[...] = 77.0  # what other kernels leave may be copied from there
    session.run_into(feeds, out)
    first, shape = next(iter(shapes.items()))
    half = [slice(n // 2, None) if n in bounds.values() else slice(None) for n in shape]
    assert np.mean(out[first][tuple(half)] == 77.0) > 0.7


@pytest.mark.parametrize("name", ["attention", "guarded"])
def test_attention_is_told_how_many_keys_count(name: str) -> None:
    _, kernel, _ = placed(name)
    (found,) = [op for op in kernels(kernel) if isinstance(op, AttentionOp)]
    assert found.keys is not None
    count = found.inputs[found.keys.value.data]
    assert kernel.input_names[list(kernel.main.body.block.args).index(count)] == "size.n"  # pyright: ignore
    assert all(op.rows_read for op in kernels(kernel) if isinstance(op, GemmOp | AttentionOp))


def test_tiles_of_images_that_nobody_reads_are_left_out() -> None:
    _, kernel, _ = placed("tiles")
    kinds = {op.name for op in kernels(kernel) if op.rows_read and op.schedule is not None}
    assert {"kernel.tiled_product", "kernel.loops"} <= kinds


TILED = """func.func @main(%x: tensor<6x8x16xf32>, %n: tensor<i64>) -> tensor<6x8x16xf32> {
    %y = kernel.loops (%a = %x, %b = %n) schedule {tile = array<i64: 1, 4, 1>}
        rows array<i64: 0, 1, 1, 1> {
      %0 = algebra.scope (i0: 6, i1: 8, i2: 16) exp(%a[i0, i1, i2]) : tensor<6x8x16xf32>
      kernel.yield %0 : tensor<6x8x16xf32>
    } : tensor<6x8x16xf32>
    func.return %y : tensor<6x8x16xf32>
  }"""


def test_tiles_that_nobody_reads_are_left_out() -> None:
    kernel = program_of(SourceText("p.mlir", TILED), Path("p.mlir"))
    x, out = np.ones((6, 8, 16), np.float32), aligned((6, 8, 16), np.dtype(np.float32))
    (y,) = kernel.outputs
    for n, rows in ((1, 4), (4, 4), (5, 8), (6, 8)):
        out[...] = 77.0
        feeds = dict(zip(kernel.input_names, (x, np.asarray(n, np.int64)), strict=True))
        CpuSession(place(kernel, CpuOptions(1)), threads=1).run_into(feeds, {y: out})
        wanted = np.full_like(x, 77.0)
        wanted[:n, :rows] = np.exp(np.float32(1))
        np.testing.assert_allclose(out, wanted, 1e-6)


def test_what_a_reader_takes_whole_is_computed_whole() -> None:
    """The mean reads all rows of a masked copy, and no more rows of what it copies than count."""
    _, kernel, _ = placed("scores")
    assert any("rows" not in op.properties for op in kernels(kernel))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([5, 1], "the result has no dim 5"),
        ([0, 9], "there is no operand 9"),
        ([0, 0], "operand 0 says how many rows of dim 0 are read: it is .*, expected tensor<i64>"),
        ([0], "`rows` holds pairs of a dim and an operand"),
    ],
)
def test_rows_are_verified(rows: list[int], words: str) -> None:
    from xdsl.dialects.builtin import DenseArrayBase, i64

    _, kernel, _ = placed("mlp")
    op: Any = next(op for op in kernels(kernel) if op.rows_read)
    op.properties["rows"] = DenseArrayBase.from_list(i64, rows)
    with pytest.raises(VerifyException, match=words):
        op.verify()

"""skip-padding where data say how many rows there are: experts compute their own rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from support.random_nodes.judge import run_plain

from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.kernel import GemmOp, KernelOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.onnx_to_graph import import_onnx

HEAD = """<ir_version: 10, opset_import: ["" : 21]>
g (float[40, 8] x, float[40] gate) => ({result} y)
<float nought = {{0}}, int64[1] flat = {{-1}}, int64[2] column = {{-1, 1}}> {{
    some = Greater(gate, nought)
    found = NonZero(some)
    rows = Transpose <perm = [1, 0]> (found)
    of = Reshape(found, flat)
    own = Gather(x, of)
    middle = MatMul(own, w)
    bent = Tanh(middle)
    out = MatMul(bent, v)
"""
# By name: the type of the result, the nodes.
MODELS = {
    "added": ("float[40, 8]", 'y = ScatterND <reduction = "add"> (x, rows, out)'),
    "replaced": ("float[40, 8]", "y = ScatterND(x, rows, out)"),
    "returned": ("float[n, 8]", "y = Identity(out)"),
    # Both an expert's rows and a sum of all of them.
    "two readers": (
        "float[40, 8]",
        "z = ScatterND(x, rows, out) s = ReduceSum <keepdims = 1> (out) y = Add(z, s)",
    ),
    "elements": (
        "float[40, 8]",
        "c = Reshape(found, column) e = Expand(c, wide) y = ScatterElements(x, e, out)",
    ),
    # Indices of another dim than that of the rows that count.
    "columns": (
        "float[40, 8]",
        "c = Reshape(found, column) z = Sub(c, c) e = Add(z, order) "
        "y = ScatterElements <axis = 1> (x, e, out)",
    ),
}
COUNTS = (0, 1, 7, 23, 40)


def model(name: str) -> onnx.ModelProto:
    result, nodes = MODELS[name]
    found = onnx.parser.parse_model(f"{HEAD.format(result=result)} {nodes} }}")
    draw = np.random.default_rng(3).standard_normal
    weights: dict[str, Any] = {
        "w": draw((8, 24)).astype(np.float32),
        "v": draw((24, 8)).astype(np.float32),
    }
    weights |= {"wide": np.array([1, 8], np.int64), "order": np.arange(8)[::-1].astype(np.int64)}
    found.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in weights.items())
    return found


def placed(name: str) -> tuple[onnx.ModelProto, Program, list[KernelOp]]:
    proto = model(name)
    program = place(import_onnx(proto), CpuOptions(threads=1))
    kernels: list[Any] = [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]
    return proto, program, kernels


def feeds_at(count: int) -> dict[str, Any]:
    draw = np.random.default_rng(count)
    gate = np.full(40, -1, np.float32)
    gate[draw.permutation(40)[:count]] = 1
    return {"x": draw.standard_normal((40, 8)).astype(np.float32), "gate": gate}


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_count_are_right_behind_any_padding(name: str) -> None:
    proto, program, _ = placed(name)
    session = CpuSession(program, threads=1)
    for count in COUNTS:
        feeds = feeds_at(count)
        session.arena[...] = 0xFF  # NaN, and -1
        found = program.cut(session.run(feeds))["y"]
        wanted: Any = run_plain(proto, feeds)["y"]
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=f"{count} rows")


@pytest.mark.parametrize("name", ["added", "replaced", "returned", "elements"])
def test_products_compute_the_rows_that_count(name: str) -> None:
    products = [op for op in placed(name)[2] if isinstance(op, GemmOp)]
    assert len(products) == 2
    assert all(dim == 0 for op in products for dim, _ in op.rows_read)
    assert all(op.rows_read for op in products)


def test_what_is_summed_as_well_is_computed_whole() -> None:
    """A copy with zeros in place of padding reads no more rows than count; so all are skipped."""
    products = [op for op in placed("two readers")[2] if isinstance(op, GemmOp)]
    assert all(op.rows_read for op in products)

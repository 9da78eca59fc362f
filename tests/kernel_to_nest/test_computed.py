"""Nests whose places depend on data, printed as CUDA and run by the emulator in every order."""

from typing import Any

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.random_nodes import elementwise, indexing, pools, sampling
from support.random_nodes.draw import Draw, Sample
from support.random_nodes.judge import NoKernel, by_onnxruntime, difference, imported
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from isoform.dialects.graph import OpaqueOp
from isoform.dialects.op_reference import evaluate_op
from isoform.dialects.types import element_of, tensor_type, to_numpy
from isoform.lowering.nest_to_cuda import print_cuda
from isoform.lowering.node_to_nest.find import find_nests
from isoform.testing.cuda_emulator.kernels import ORDERS, emulate

GENERATORS = {
    name: family.GENERATORS[name]
    for family, names in (
        (indexing, ("TopK", "ScatterElements", "ScatterND", "ReverseSequence")),
        (sampling, ("GridSample", "DeformConv")),
        (pools, ("RoiAlign", "MaxUnpool")),
        (elementwise, ("BitShift", "Mod")),
    )
    for name in names
    if name in family.GENERATORS
}


def emulated(sample: Sample, order: Any) -> dict[str, np.ndarray] | None:
    """The results of a program with one kept node, which is emulated; the reference runs the rest.

    None if there is no such node.
    """
    program = imported(sample)
    block = program.main.body.block
    if sum(isinstance(op, OpaqueOp) for op in block.ops) != 1:
        return None
    values: dict[SSAValue, Any] = {}
    for arg, name in zip(block.args, program.input_names, strict=True):
        values[arg] = sample.feeds[name]
    weights = dict(program.weights.items())
    for op in block.ops:
        if isinstance(op, ReturnOp):
            made = [values[v].astype(to_numpy(element_of(v))) for v in op.arguments]
            return dict(zip(program.output_names, made, strict=True))
        given = [values[v] for v in op.operands]
        kept = isinstance(op, OpaqueOp)
        found = of_node(op, given, order) if kept else evaluate_op(op, given, weights)
        values |= zip(op.results, found, strict=True)
    return None


def of_node(node: OpaqueOp, arrays: list[Any], order: Any) -> list[np.ndarray]:
    types = [[tensor_type(v) for v in values] for values in (node.inputs, node.outputs)]
    arrays = [a.astype(to_numpy(t.element_type)) for a, t in zip(arrays, types[0], strict=True)]
    nests = find_nests(node.properties, types[0], types[1], lambda k: arrays[k])
    assert nests is not None
    results = [np.zeros(t.get_shape(), to_numpy(t.element_type)) for t in types[1]]
    held = [np.ascontiguousarray(a) for a in (*arrays, *results, np.zeros(1, np.int64))]
    for kernel in emulate([print_cuda(n, f"k{k}") for k, n in enumerate(nests.nests)]):
        kernel.launch([a.ctypes.data for a in held], order)
    return held[len(arrays) : -1]


@pytest.mark.parametrize("op", GENERATORS)
def test_cuda_text_of_a_node_computes_what_onnxruntime_does(op: str) -> None:
    need_compiler()
    compared = 0
    for seed in range(12):
        sample = GENERATORS[op](Draw(seed))
        if any(a is not None and a.dtype == np.float16 for a in sample.inputs):
            continue
        try:
            wanted = by_onnxruntime(sample)
        except NoKernel:
            continue
        found = emulated(sample, ORDERS[seed % len(ORDERS)])
        if found is None:
            continue
        compared += 1
        for name, want in wanted.items():
            wrong = difference(found[name], np.asarray(want), sample.tolerance)
            assert not wrong, (seed, str(sample), wrong)
        if compared == 2:
            return
    assert compared

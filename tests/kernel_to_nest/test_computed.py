"""Nests whose places depend on data, printed as CUDA and run by the emulator in every order."""

from typing import Any

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.random_nodes import elementwise, indexing, pools, sampling
from support.random_nodes.draw import Draw, Sample
from support.random_nodes.judge import NoKernel, by_onnxruntime, difference, imported
from xdsl.ir import BlockArgument

from isoform.dialects.graph import ConstantOp, OpaqueOp
from isoform.dialects.types import shape_of, tensor_type, to_numpy
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
    """The results of the one kept node of a sample; None if the program has other ops."""
    program = imported(sample)
    ops = [op for op in program.main.body.block.ops if op.name.startswith("graph.")]
    (node,) = [op for op in ops if isinstance(op, OpaqueOp)] or [None]
    if node is None or node is not ops[-1]:
        return None
    arrays: list[Any] = []
    given = dict(zip(program.main.body.block.args, program.input_names, strict=True))
    for value in node.inputs:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            arrays.append(owner.array())
        elif isinstance(value, BlockArgument):
            arrays.append(sample.feeds[given[value]])
        else:
            return None
    types = [[tensor_type(v) for v in values] for values in (node.inputs, node.outputs)]
    nests = find_nests(node.properties, types[0], types[1], lambda k: arrays[k])
    assert nests is not None
    results = [np.zeros(shape_of(r), to_numpy(t.element_type)) for r, t in zip(
        node.outputs, types[1], strict=True)]  # fmt: skip
    held = [np.ascontiguousarray(a) for a in (*arrays, *results, np.zeros(1, np.int64))]
    for kernel in emulate([print_cuda(n, f"k{k}") for k, n in enumerate(nests.nests)]):
        kernel.launch([a.ctypes.data for a in held], order)
    made = held[len(arrays) : -1]
    return dict(zip(program.output_names, made, strict=False))


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

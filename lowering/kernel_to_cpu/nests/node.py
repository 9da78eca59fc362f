"""Native code of an opaque ONNX node that has loop nests (lowering/node_to_nest)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import IntegerAttr

from ....dialects.graph import OpaqueOp
from ....dialects.graph.data import ArgMaxOp
from ....dialects.kernel import CallOp
from ....dialects.types import Array, tensor_type
from ..kernel_call import Argument, KernelCall

if TYPE_CHECKING:
    from ...node_to_nest.find import Nests


def nests_of(op: CallOp, known: Callable[[int], Array | None]) -> Nests | None:
    """The nests of a kept node or an arg_max; None if the host must run it."""
    if op.callee.data not in (OpaqueOp.name, ArgMaxOp.name):
        return None
    # Imported when there is such a node.
    from ...node_to_nest.find import arg_max_nests, find_nests

    types = [[tensor_type(v) for v in values] for values in (op.inputs, op.outputs)]
    axis = op.config.data.get("axis")
    if isinstance(axis, IntegerAttr):
        return arg_max_nests(axis.value.data, types[0][0], types[1][0])
    return find_nests(op.config.data, types[0], types[1], known)


def lower_node(op: CallOp, nests: Nests) -> list[KernelCall]:
    """A call for each nest, in order."""
    from ...nest_to_llvm.printer import print_llvm

    values = tuple(Argument(v) for v in (*op.inputs, *op.outputs))
    unused = Argument(data=np.zeros(1, np.int64))
    alarm = unused if nests.alarm is None else Argument(alarm=op)
    return [KernelCall(print_llvm(n), (*values, alarm)) for n in nests.nests]

"""The nests of a program's kernels, from the contraction that each of them carries."""

from __future__ import annotations

import math

from ...dialects.algebra import ScopeOp
from ...dialects.contraction_attr import ContractionAttr, ConvParameters
from ...dialects.kernel import KernelOp
from ...dialects.program import Program
from .nest import Ints, OperatorNest, Sketches, sketches_of


def nests_of(program: Program, sketches: Sketches = sketches_of) -> dict[OperatorNest, int]:
    """The nests of all convolutions and products, each with the number of kernels that have it.

    The program is at the kernel level. A kernel is named by its first scope; elementwise work that
    is fused to it does not count.
    """
    found: dict[OperatorNest, int] = {}
    for op in program.main.body.block.ops:
        if isinstance(op, KernelOp) and op.scopes:
            nest = nest_of(op.scopes[0], sketches)
            if nest is not None:
                found[nest] = found.get(nest, 0) + 1
    return found


def nest_of(scope: ScopeOp, sketches: Sketches = sketches_of) -> OperatorNest | None:
    """The nest of a scope that is a contraction; None for any other."""
    attr = ContractionAttr.of(scope)
    if attr is None:
        return None
    convolution = ConvParameters.of(scope, attr)
    if convolution is None:
        batch, m, n, k = (
            math.prod(scope.extents[i] for i in attr.group(name))
            for name in ("batch", "m", "n", "k")
        )
        return OperatorNest("matmul", sketches("matmul", (batch, m, n), (k,)), (batch, m, n), (k,))
    kind, space, reduction = _convolution(convolution)
    return OperatorNest(
        kind,
        sketches(kind, space, reduction),
        space,
        reduction,
        convolution.strides,
        convolution.dilations,
        convolution.pads,
    )


def _convolution(found: ConvParameters) -> tuple[str, Ints, Ints]:
    """Kind and loops; a grouped one has its groups as a loop, a depthwise one channels only."""
    kind = f"{'transposed-' if found.transposed else ''}conv{len(found.sizes)}d"
    per_group = found.features // found.groups
    if found.groups == 1:
        space = (found.images, found.features, *found.sizes)
        return kind, space, (found.channels_per_group, *found.kernel)
    if per_group == found.channels_per_group == 1:
        return f"depthwise-{kind}", (found.images, found.groups, *found.sizes), found.kernel
    space = (found.images, found.groups, per_group, *found.sizes)
    return f"grouped-{kind}", space, (found.channels_per_group, *found.kernel)

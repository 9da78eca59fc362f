"""The nests of a program's kernels, from the contraction that each of them carries."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.builder import GraphBuilder
from ...dialects.contraction_attr import ContractionAttr, ConvParameters
from ...dialects.kernel import ContractionKernelOp, KernelOp
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


def kernel_nest(op: KernelOp, structure: tuple[str, ...]) -> OperatorNest:
    """The nest of any kernel; `structure` says which schedules it can have.

    A kernel without a contraction has the loops of its longest scope, and its kind is what its
    scopes compute, up to sizes.
    """
    nest = nest_of(op.scopes[0], lambda *_: structure) if _is_product(op) else None
    if nest is not None:
        return nest
    longest = max(op.scopes, key=lambda scope: math.prod(scope.extents))
    work = " ".join(inner.name for scope in op.scopes for inner in scope.body.block.ops)
    kind = hashlib.sha256(work.encode()).hexdigest()[:8]
    return OperatorNest(f"loops {kind}", structure, longest.traversal, longest.summation)


def _is_product(op: KernelOp) -> bool:
    return isinstance(op, ContractionKernelOp)


def operator_of(nest: OperatorNest, constant: bool) -> Program | None:
    """A program of one operator with this nest; None of a kind for which there is none.

    `constant` says whether the second operand is a weight.
    """
    build = GraphBuilder()

    def second(shape: Ints) -> SSAValue:
        if not constant:
            return build.input("b", shape)
        return build.weight("w", np.full(shape, 0.5, np.float32))

    if nest.kind == "matmul":
        (batch, m, n), (k,) = nest.space, nest.reduction
        stack = (batch,) if batch > 1 else ()
        build.output("y", build.matmul(build.input("x", (*stack, m, k)), second((*stack, k, n))))
        return build.build()
    if not constant or "conv" not in nest.kind or "transposed" in nest.kind:
        return None
    rank = len(nest.strides)
    taps = nest.reduction[-rank:]
    groups = 1 if nest.kind.startswith("conv") else nest.space[1]
    features = math.prod(nest.space[1:-rank])
    per_group = nest.reduction[0] if len(nest.reduction) > rank else 1
    size = tuple(
        (n - 1) * stride + dilation * (tap - 1) + 1
        for n, stride, dilation, tap in zip(
            nest.space[-rank:], nest.strides, nest.dilations, taps, strict=True
        )
    )
    data = build.input("x", (nest.space[0], groups * per_group, *size))
    geometry = {"strides": list(nest.strides), "dilations": list(nest.dilations)}
    pads = [0] * (2 * rank)
    weights = second((features, per_group, *taps))
    build.output("y", build.conv(data, weights, groups=groups, pads=pads, **geometry))
    return build.build()

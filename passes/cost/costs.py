"""The cost of a program on a target: one interface, `Costs`.

Theory. A kernel does F operations and moves B bytes, and the slower of the two decides (roofline):

    t = max(F / (peak * efficiency * fill), B_w / bandwidth + B_a / speed(B_a), traffic) + launch
    1 / fill = (1 + half_tiles * units / tiles) * (1 + setup / k)

- `peak` is the target's rate for the arithmetic class (f32; f16 on tensor cores; f64 at half f32).
- `efficiency` is the share of the peak that good code of this class reaches (`EFFICIENCY`).
- `fill` says that a product with few tiles leaves units of a GPU idle, and that each tile of an
  implicit gemm has to set up its indices. It is 1 on a cpu, and for loops without a product, which
  are bound by memory anyway.
- B are the bytes that are read and written: of an operand of which only a box is read, the box's.
- B_w are the weights read: they come from memory every time, since a model is larger than a cache.
  B_a are the other operands and the results: they move at cache speed if they fit in half of the
  last cache. Adding up costs of hot caches would hide the cost of weights.
- `traffic` is what a product's tiles read from a GPU's last cache (conv_algorithms.py).
- `launch` is paid once per kernel: without it merging is never rewarded, with it alone always.

A convolution costs the least of three algorithms, where the target has them and they apply:
implicit gemm, Winograd (3x3, stride 1, dilation 1, ungrouped: Lavin and Gray 2015) and FFT (stride
1, dilation 1, ungrouped: Mathieu, Henaff, LeCun 2013), as conv_algorithms.py counts them.
An algorithm of several kernels pays the sum of its arithmetic and its memory time, not the maximum.

A fused kernel costs the sum of its scopes' operations over the bytes of its operands and result
only. Ops that depend on weights alone cost nothing: they run once, before the program. Shapes under
another name (reshape, view) and broadcasts are index expressions and cost nothing. Nor do parts
(split, slice without steps): whoever reads one takes an offset and strides (share_buffers.py).

A measured entry of the cost file replaces the model; otherwise the model is multiplied by the
file's scale for the class. Every answer says which: `kind` is "measured" or "modelled". Trust the
order of two modelled costs, not their microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.contraction_attr import ConvParameters
from ...dialects.control import ControlOp, IfOp, LoopOp
from ...dialects.errors import UserError
from ...dialects.graph import GraphOp
from ...dialects.graph.base import discard
from ...dialects.graph.shaping import SliceOp
from ...dialects.index import Index, range_of
from ...dialects.kernel import KernelOp
from ...dialects.program import Program
from ...dialects.shape_guards import SIZES, sizes_of, symbols_of
from ...dialects.signature import key, signature
from ...dialects.specialize import op_at, type_at
from ...dialects.types import byte_size, element_of, shape_of, tensor, tensor_type
from ...dialects.weights_only import is_source, weights_only
from ...lowering.algebra_to_kernel.match import match_conv
from ...lowering.targets import Target
from ..convolution.conv_algorithms import (
    FITTED,
    ConvolutionProblem,
    Estimate,
    Fitted,
    Product,
    conv_algorithms,
)
from .cost_file import CostFile, load_cost_file
from .flops import Work, scope_work, times_of, work_of

EFFICIENCY = {
    "gemm": 0.85,
    "conv": 0.85,
    "winograd": 0.7,
    "fft": 0.4,
    "grouped": 0.25,
    "other": 0.3,
}
"""Share of the peak reached: docs/cpu.md's tiles for gemm and conv; the others are estimates."""
Box: TypeAlias = "tuple[tuple[int, int], ...]"
FREE = (
    *("graph.reshape", "graph.broadcast", "graph.split"),
    *("kernel.view", "kernel.join", "kernel.yield", "func.return"),
)


@dataclass(frozen=True)
class Cost:
    """Seconds, their origin (`measured` or `modelled`), and the algorithm they belong to."""

    seconds: float
    kind: str = "modelled"
    algorithm: str = ""


FREE_COST = Cost(0.0)


class Costs:
    """Costs of ops and programs on one target, at any level; answers are memoised.

    Args:
        sizes: what symbolic dims are taken for.
    """

    def __init__(
        self,
        target: Target,
        file: CostFile | None = None,
        fitted: Fitted = FITTED,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        if file is not None and file.target != target.name:
            raise UserError(
                "the cost file is for another target", expected=target.name, found=file.target
            )
        self.target, self.fitted = target, fitted
        self.file = file if file is not None else CostFile(target.name)
        self.sizes = dict(sizes or {})
        self._memo: dict[tuple[object, ...], Cost] = {}

    @property
    def key(self) -> tuple[str, ...]:
        """Everything but the op that an answer depends on: a key for answers kept on disk."""
        sizes = (repr(sorted(self.sizes.items())),) if self.sizes else ()
        return repr(self.target), repr(self.fitted), self.file.digest, *sizes

    def at(self, sizes: Mapping[str, int]) -> Costs:
        """The same costs, with symbolic dims taken for these sizes."""
        return Costs(self.target, self.file, self.fitted, sizes)

    def of(self, function: FuncOp) -> Costs:
        """The costs for a function: at its example sizes (`isoform.sizes`), if it has symbols.

        Raises:
            UserError: a symbol has no example size.
        """
        symbols, sizes = symbols_of(function), sizes_of(function)
        missing = [name for name in symbols if name not in sizes]
        if missing:
            hint = f"{SIZES} = {{{', '.join(f'{name} = 16 : i64' for name in missing)}}}"
            raise UserError("a cost needs example sizes", found=", ".join(missing), hint=hint)
        return self.at(sizes) if symbols else self

    def bytes_of(self, type_: Attribute) -> int:
        """Bytes of a tensor; of any other type 0."""
        found = type_at(type_, self.sizes) if self.sizes else type_
        return byte_size(found) if isa(found, TensorType[Attribute]) else 0

    def program(self, program: Program) -> Cost:
        """Sum over the ops that run; "measured" only if every one of them is."""
        costs = [cost for _, cost in self.breakdown(program)]
        measured = bool(costs) and all(cost.kind == "measured" for cost in costs)
        seconds = math.fsum(cost.seconds for cost in costs)
        return Cost(seconds, "measured" if measured else "modelled")

    def breakdown(self, program: Program) -> list[tuple[Operation, Cost]]:
        """The ops with a cost, in order, each with its cost."""
        ops = list(program.main.body.block.ops)
        known = weights_only(ops)
        return [(op, self.op(op, known)) for op in ops if runs(op, known)]

    def op(self, op: Operation, known: Iterable[SSAValue] = frozenset()) -> Cost:
        """The cost of one op; operands in `known` are weights and come from memory.

        Args:
            op: of the graph, algebra or kernel dialect.
            known: values that depend on weights alone, as `weights_only` finds them.
        """
        if is_free(op) or is_source(op):
            return FREE_COST
        if isinstance(op, LoopOp | IfOp):
            return self._control(op)
        known = known if isinstance(known, (set, frozenset)) else set(known)
        fresh = tuple(value in known for value in op.operands)
        memo = (*_identity(op), fresh)
        if memo not in self._memo:
            self._memo[memo] = self._cost(op, fresh)
        return self._memo[memo]

    def _control(self, op: ControlOp) -> Cost:
        """All iterations of a loop (one where data decide), the dearer body of a branch."""
        found: list[Cost] = []
        for region in op.bodies:
            ops = list(region.block.ops)
            known = weights_only(ops)
            costs = [self.op(inner, known) for inner in ops if runs(inner, known)]
            measured = bool(costs) and all(cost.kind == "measured" for cost in costs)
            seconds = times_of(op) * math.fsum(cost.seconds for cost in costs)
            found.append(Cost(seconds, "measured" if measured else "modelled"))
        return max(found, key=lambda cost: cost.seconds)

    def _cost(self, op: Operation, fresh: Sequence[bool]) -> Cost:
        op = op_at(op, self.sizes) if self.sizes else op
        if self.file.ops:
            entry = self.file.ops.get(key(signature(op)))
            if entry is not None:
                return Cost(entry.us * 1e-6, "measured", entry.algorithm)
        return self.model(op, fresh)

    def model(self, op: Operation, fresh: Sequence[bool]) -> Cost:
        """The roofline answer, ignoring the cost file's entry for this op."""
        seconds, algorithm = min(self.algorithms(op, fresh))
        return Cost(seconds, "modelled", algorithm)

    def algorithms(self, op: Operation, fresh: Sequence[bool]) -> list[tuple[float, str]]:
        """Modelled seconds and name of each algorithm that applies."""
        read = bytes_read(op)
        weights = sum(read[v] for v in _distinct(op, fresh, True))
        moved = sum(read[v] for v in _distinct(op, fresh, False))
        moved += sum(byte_size(tensor_type(v)) for v in op.results)
        element = element_of(op.operands[0] if op.operands else op.results[0])
        return [
            (self.seconds(estimate, element, weights, moved), estimate.algorithm)
            for estimate in estimates(op, self.target, self.fitted)
        ]

    def seconds(
        self, estimate: Estimate, element: Attribute, weights: float, moved: float
    ) -> float:
        """The seconds of a kernel, computed with this algorithm.

        Args:
            element: of its operands.
            weights: bytes of weights read.
            moved: bytes of the other operands and of the results.
        """
        target = self.target
        activations = moved + estimate.extra_bytes
        fits = activations <= target.caches[-1] / 2
        speed = target.cache_bandwidth if fits else target.bandwidth
        memory = weights / target.bandwidth + activations / speed
        compute, traffic = self._compute(estimate, element)
        scale = self.file.class_scale.get(estimate.class_, 1.0)
        if estimate.kernels > 1:
            launch = estimate.kernels * self.fitted.stage * target.launch
            return scale * (compute + memory / estimate.bandwidth + launch)
        return scale * (max(compute, memory, traffic) + target.launch)

    def _compute(self, estimate: Estimate, element: Attribute) -> tuple[float, float]:
        """Seconds of the arithmetic, and of a GPU's tile reads from its last cache."""
        if not estimate.flops:
            return 0.0, 0.0
        target, product = self.target, estimate.product
        compute = estimate.flops / (_rate(target, element) * EFFICIENCY[estimate.class_])
        if product is None or not target.tiled:
            return compute, 0.0
        compute *= 1 + self.fitted.half_tiles * target.units / product.tiles
        compute *= 1 + estimate.setup / product.k
        return compute, product.traffic(_width(element)) / target.cache_bandwidth


def load_costs(target: Target, path: str | Path | None = None) -> Costs:
    """Costs on a target, with the cost file at `path` if one is given.

    Raises:
        UserError: the file is broken or for another target.
    """
    return Costs(target, None if path is None else load_cost_file(path))


def is_free(op: Operation) -> bool:
    """Whether an op is index expressions alone, or a view of its operand's buffer."""
    part = isinstance(op, SliceOp) and all(step == 1 for step in op.ints("steps"))
    return part or op.name in FREE


def runs(op: Operation, known: set[SSAValue]) -> bool:
    """Whether an op does anything when the program runs."""
    return bool(op.results) and not is_free(op) and not any(r in known for r in op.results)


def _identity(op: Operation) -> tuple[object, ...]:
    """A key of an op's cost, cheaper than the signature: graph ops have no region."""
    if op.regions or isinstance(op, ScopeOp):
        return (signature(op),)
    same = tuple(list(op.operands).index(v) for v in op.operands)
    types = tuple(v.type for v in (*op.operands, *op.results))
    return (op.name, types, same, tuple(sorted(op.properties.items(), key=lambda item: item[0])))


def bytes_read(op: Operation) -> dict[SSAValue, int]:
    """Bytes of each operand that an op reads: of a part, not of what it is a part of."""
    whole = {value: byte_size(tensor_type(value)) for value in op.operands}
    if isinstance(op, SliceOp):
        return {op.x: byte_size(tensor_type(op.result))}
    if isinstance(op, GraphOp):
        return whole
    boxes: dict[SSAValue, set[Box]] = {value: set() for value in whole}
    for scope in scopes_of(op)[0]:
        for read in scope.reads():
            value = _outside(op, read.source)
            if value in boxes:
                boxes[value].add(box_of(read.index, shape_of(read.source), scope.extents))
    return {
        value: min(size, places_in(boxes[value]) * _width(element_of(value)))
        if boxes[value]
        else size
        for value, size in whole.items()
    }


def box_of(index: Sequence[Index], shape: Sequence[int], extents: tuple[int, ...]) -> Box:
    """The least box around the places of a tensor that are read: first and end of each dim."""
    ranges = (range_of(e, extents) for e in index)
    pairs = zip(ranges, shape, strict=True)
    return tuple((max(low, 0), min(high + 1, size)) for (low, high), size in pairs)


def places_in(boxes: Iterable[Box]) -> int:
    """The places in boxes, as if they did not overlap."""
    return sum(math.prod(max(end - first, 0) for first, end in box) for box in boxes)


def _outside(op: Operation, source: SSAValue) -> SSAValue:
    """The operand that a scope of an op reads; a value made inside is itself."""
    if (
        isinstance(op, KernelOp)
        and isinstance(source, BlockArgument)
        and source in op.body.block.args
    ):
        return op.inputs[source.index]
    return source


def _distinct(op: Operation, fresh: Sequence[bool], wanted: bool) -> list[SSAValue]:
    """The distinct operands that are (or are not) weights; guards are not data."""
    chosen = (v for v, weight in zip(op.operands, fresh, strict=True) if weight == wanted)
    return [v for v in dict.fromkeys(chosen) if not isinstance(v.owner, OnesOp)]


def _rate(target: Target, element: Attribute) -> float:
    if isinstance(element, Float16Type | BFloat16Type):
        return target.rate("f16")
    return target.rate("f32") / (2 if isinstance(element, Float64Type) else 1)


def _width(element: Attribute) -> int:
    """Bytes of an element."""
    return max(1, byte_size(tensor([1], element)))


# --- how an op may be computed ------------------------------------------------------------------


def estimates(op: Operation, target: Target, fitted: Fitted = FITTED) -> list[Estimate]:
    """The algorithms for an op, at least one; for convolutions those that the target has."""
    scopes, stand_in = scopes_of(op)
    try:
        found = next((c for scope in scopes if (c := _contraction(scope)) is not None), None)
        total = work_of(op) if isinstance(op, GraphOp) else sum(map(scope_work, scopes), Work())
        rest = total.flops - 2 * total.macs
        if found is None or not total.macs:
            return [Estimate("gemm" if total.macs else "other", total.flops, "")]
        scope, match = found
        if match is None:
            return [Estimate("gemm", total.flops, "gemm", product=Product.of(scope))]
        algorithms = conv_algorithms(ConvolutionProblem.of(match), total.macs, target, fitted)
        return [replace(algorithm, flops=algorithm.flops + rest) for algorithm in algorithms]
    finally:
        discard(stand_in)


def scopes_of(op: Operation) -> tuple[list[ScopeOp], list[Operation]]:
    """The scopes of an op, and the ops made to find them (to be dropped)."""
    if isinstance(op, ScopeOp):
        return [op], []
    if not isinstance(op, GraphOp):
        return [inner for inner in op.walk() if isinstance(inner, ScopeOp)], []
    if not type(op).has_scopes():
        return [], []
    steps, _ = op.scopes()
    return [step for step in steps if isinstance(step, ScopeOp)], steps


def _contraction(scope: ScopeOp) -> tuple[ScopeOp, ConvParameters | None] | None:
    """The scope, if it is a sum of products, and its parameters, if it is a convolution."""
    return (scope, match_conv(scope)) if scope_work(scope).macs else None

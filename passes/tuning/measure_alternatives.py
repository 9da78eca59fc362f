"""Measure alternatives of one kernel: the op alone, on random data, interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects.algebra import OnesOp
from ...dialects.graph import WeightOp
from ...dialects.kernel import (
    ConvOp,
    KernelOp,
    LayoutAttr,
    LoopsOp,
    YieldOp,
    logical,
    with_layout,
)
from ...dialects.program import Program, main_of
from ...dialects.scope_builder import ScopeBuilder, Source
from ...dialects.types import Array, Tensor, is_float, tensor_type, to_numpy
from ...dialects.weights import Weights
from ...lowering.algebra_to_kernel.convert import enclose
from ...lowering.targets import CPU
from ..assign_layouts import grow_halo
from ..fusion.fuse_tiles import FuseTiles
from ..plan_memory import PlanMemory
from .alternatives import Alternative

ROUNDS = 9


@dataclass(frozen=True)
class Measurement:
    """Median seconds of one alternative, and its error against the direct implementation.

    `error` is the largest difference over the largest magnitude, on random data.
    """

    alternative: Alternative
    seconds: float
    low: float  # the first quartile of the times, in seconds
    high: float  # the third one
    error: float


def measure(
    op: KernelOp, constants: set[SSAValue], choices: Sequence[Alternative], seed: int
) -> list[Measurement]:
    """Time every alternative of an op in turn, `ROUNDS` times; errors are against the first one."""
    programs = [_program_of(op, constants, choice, seed) for choice in choices]
    inputs = _inputs(programs[0][0], seed)
    sessions = CPU.generator().sessions([program for program, _ in programs])
    outputs = [session.run(inputs) for session in sessions]
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for k, (session, (_, values)) in enumerate(zip(sessions, programs, strict=True)):
            times[k].append(session.time(values))
    results: list[Measurement] = []
    for choice, taken, found in zip(choices, times, outputs, strict=True):
        low, middle, high = statistics.quantiles(taken, n=4)
        results.append(Measurement(choice, middle, low, high, largest_error(found, outputs[0])))
    for session in sessions:
        session.close()
    return results


def largest_error(found: dict[str, Array], expected: dict[str, Array]) -> float:
    """The largest difference, over the largest magnitude."""
    worst = 0.0
    for name, want in expected.items():
        scale = float(np.max(np.abs(want), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(found[name] - want), initial=0.0)) / scale)
    return worst


def _program_of(
    op: KernelOp, constants: set[SSAValue], choice: Alternative, seed: int
) -> tuple[Program, set[SSAValue]]:
    """Return a program that runs an alternative, and the results of the ops that are timed."""
    program, copy = isolate_contraction(op, constants, seed)
    ops = main_of(program.module).body.block.ops
    others = [op for op in ops if op is not copy]
    choice.apply(copy)
    FuseTiles().apply(Context(), program.module)
    PlanMemory().apply(Context(), program.module)
    return program, {result for op in ops if op not in others for result in op.results}


def isolate_contraction(
    op: KernelOp, constants: set[SSAValue], seed: int
) -> tuple[Program, KernelOp]:
    """Return a program of the op's contraction alone: its operands are inputs, or random weights.

    The epilogue is left out: it costs about the same after any implementation, and without it equal
    contractions are measured once. Dim orders are kept; halos are reduced to what is read.
    """
    used = [k for k, arg in enumerate(op.body.block.args) if _reads(op, arg)]
    return _single_op_program(op, used, _first_scope(op, used), _result_type(op), constants, seed)


def isolate_kernel(op: KernelOp, constants: set[SSAValue], seed: int) -> tuple[Program, KernelOp]:
    """As `isolate_contraction`, with the epilogue: the scopes after the first one."""
    used, result = range(len(op.inputs)), _without_halo(op.type)
    return _single_op_program(op, used, op.body.clone(), result, constants, seed)


def _single_op_program(
    op: KernelOp,
    used: Sequence[int],
    region: Region,
    result_type: Tensor,
    constants: set[SSAValue],
    seed: int,
) -> tuple[Program, KernelOp]:
    """Return a program of one op with this region; `used` are the indices of its operands."""
    block = Block()
    weights = Weights()
    values: list[SSAValue] = []
    for position, k in enumerate(used):
        type_ = _without_halo(tensor_type(op.inputs[k]))
        if op.inputs[k] in constants:
            weights.add(f"w{position}", partial(random_weight, type_, seed + position))
            block.add_op(source := WeightOp(f"w{position}", logical(type_)))
            values.append(source.result)
        else:
            arg = block.insert_arg(logical(type_), len(block.args))
            values.append(_in_layout(block, arg, type_))
    copy = type(op)(values, region, result_type, _schedule(op))
    block.add_op(copy)
    if isinstance(copy, ConvOp):
        grow_halo(copy)
    result = _in_layout(block, copy.result, logical(copy.type))
    block.add_op(ReturnOp(result))
    kind = FunctionType.from_lists([a.type for a in block.args], [result.type])
    module = ModuleOp([FuncOp("main", kind, Region(block))])
    return Program(module, weights), copy


def _reads(op: KernelOp, arg: SSAValue) -> bool:
    return any(use.operation is op.scopes[0] for use in arg.uses)


def _first_scope(op: KernelOp, used: Sequence[int]) -> Region:
    old = [op.body.block.args[k] for k in used]
    block = Block(arg_types=[arg.type for arg in old])
    values: dict[SSAValue, SSAValue] = dict(zip(old, block.args, strict=True))
    for inner in op.body.block.ops:
        if isinstance(inner, OnesOp) or inner is op.scopes[0]:
            block.add_op(made := inner.clone(values))
            values.update(zip(inner.results, made.results, strict=True))
    block.add_op(YieldOp(values[op.scopes[0].result]))
    return Region(block)


def _without_halo(type_: Tensor) -> Tensor:
    layout = _layout(type_)
    return type_ if layout is None else with_layout(logical(type_), LayoutAttr.of(layout.dims))


def _result_type(op: KernelOp) -> Tensor:
    first = tensor_type(op.scopes[0].result)
    return _without_halo(op.type) if first == logical(op.type) else first


def _schedule(op: KernelOp) -> dict[str, Attribute] | None:
    return None if op.schedule is None else dict(op.schedule.data)


def _in_layout(block: Block, value: SSAValue, type_: Tensor) -> SSAValue:
    """Return the value in the layout of `type_`, copied if its layout is another."""
    if value.type == type_:
        return value
    build = ScopeBuilder()
    scope = build.pointwise(logical(type_), Source(value).here()).value.owner
    inputs, region = enclose(scope)  # pyright: ignore[reportArgumentType]
    copy = LoopsOp(inputs, region, with_layout(logical(type_), _layout(type_)))
    block.add_op(copy)
    return copy.result


def _layout(type_: Tensor) -> LayoutAttr | None:
    return type_.encoding if isinstance(type_.encoding, LayoutAttr) else None


def random_weight(type_: Tensor, seed: int) -> Array:
    """Draw random data of a type; sums over all dims but the first keep their magnitude."""
    shape, dtype = type_.get_shape(), to_numpy(type_.element_type)
    random = np.random.default_rng(seed)
    if not is_float(type_.element_type):
        return np.asarray(random.integers(0, 2, shape), dtype)
    fan_in = max(1, int(np.prod(shape[1:])))
    return np.asarray(random.standard_normal(shape) / np.sqrt(fan_in), dtype)


def _inputs(program: Program, seed: int) -> dict[str, Array]:
    return {name: random_activation(type_, seed) for name, type_ in program.inputs.items()}


def random_activation(type_: Tensor, seed: int) -> Array:
    """Draw random data of a type, for an input: floats of unit variance."""
    if not is_float(type_.element_type):
        return random_weight(type_, seed)
    values = np.random.default_rng(seed).standard_normal(type_.get_shape())
    return np.asarray(values, to_numpy(type_.element_type))

"""Some scopes alone, as a program that can be compiled and measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.types import Array, Tensor, tensor_type, to_numpy
from ...dialects.weights import Weights

RESULT = "y"


def isolate(op: ScopeOp, known: Collection[SSAValue], seed: int = 0) -> tuple[Program, ScopeOp]:
    """A program of one op, and the op in it: see `isolate_all`."""
    program, (copy,) = isolate_all([op], known, seed)
    return program, copy


def isolate_all(
    ops: Sequence[ScopeOp],
    known: Collection[SSAValue],
    seed: int = 0,
    inside: Sequence[ScopeOp] = (),
) -> tuple[Program, list[ScopeOp]]:
    """A program of some independent ops, and the ops in it.

    Operands are inputs, or weights drawn from the seed.

    Args:
        known: values that are known before the program runs.
        inside: values that the ops read and the program computes too.
    """
    block, weights = Block(), Weights()
    values: dict[SSAValue, SSAValue] = {}
    computed = [op.result for op in inside]
    read = dict.fromkeys(v for op in (*inside, *ops) for v in op.inputs)
    for number, value in enumerate(v for v in read if v not in computed):
        type_ = tensor_type(value)
        if isinstance(value.owner, OnesOp):
            block.add_op(made := value.owner.clone())
            values[value] = made.result
        elif value in known:
            name = f"w{number}"
            weights.add(name, partial(_draw, type_, seed + number))
            block.add_op(weight := WeightOp(name, type_))
            values[value] = weight.result
            weight.result.name_hint = name
        else:
            values[value] = block.insert_arg(type_, len(block.args))
            values[value].name_hint = f"x{number}"
    inner = [op.clone(values) for op in inside]
    for number, copy in enumerate(inner):
        copy.attributes.clear()
        copy.result.name_hint = f"part{number}"
    copies = [op.clone(values) for op in ops]
    for number, copy in enumerate(copies):
        copy.attributes.clear()
        copy.result.name_hint = RESULT if len(ops) == 1 else f"{RESULT}{number}"
    results = [copy.result for copy in copies]
    block.add_ops([*inner, *copies, ReturnOp(*results)])
    kind = FunctionType.from_lists([a.type for a in block.args], [r.type for r in results])
    module = ModuleOp([FuncOp("main", kind, Region(block))])
    return Program(module, weights, "subprogram"), copies


def _draw(type_: Tensor, seed: int) -> Array:
    """Random numbers that keep sums at their magnitude."""
    shape = type_.get_shape()
    fan_in = max(1, int(np.prod(shape[1:])))
    values = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(fan_in)
    return values.astype(to_numpy(type_.element_type))

"""Make the extents of a graph-level program smaller, everywhere at once, if it stays valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, WeightOp
from ...dialects.program import Program, return_of
from ...dialects.types import Array, Tensor, tensor_type
from ...dialects.weights import Weights

Sizes = Mapping[int, int]

# Properties that hold extents; a changed extent is changed there too.
_EXTENTS = ("shape", "sizes")


def smaller_extents(program: Program) -> Iterable[Program]:
    """Programs in which one extent, or one dim of one source, became smaller."""
    if any(not isinstance(op, GraphOp | WeightOp | ConstantOp) for op in _body(program)):
        return
    for n in sorted({n for v in _sources(program) for n in _shape(v) if n > 1}, reverse=True):
        for m in dict.fromkeys((1, n // 2, n - 1)):
            yield from _rebuilt(program, {n: m}, None)
    for position, value in enumerate(_sources(program)):
        for dim, n in enumerate(_shape(value)):
            for m in dict.fromkeys((1, n // 2, n - 1)):
                if n > 1:
                    yield from _rebuilt(program, {n: m}, (position, dim))


def _body(program: Program) -> list[Operation]:
    return list(program.main.body.block.ops)[:-1]


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _sources(program: Program) -> list[SSAValue]:
    """Inputs, weights and constants: all other extents follow from theirs."""
    data = [op.results[0] for op in _body(program) if isinstance(op, WeightOp | ConstantOp)]
    return [*program.main.body.block.args, *data]


def _rebuilt(program: Program, sizes: Sizes, only: tuple[int, int] | None) -> Iterable[Program]:
    """The program with changed extents (in every source, or in one dim of one), if it is valid."""
    candidate = program.clone()
    candidate.weights = Weights({name: program.weights[name] for name in _used(program)})
    try:
        for position, value in enumerate(_sources(candidate)):
            dims = [
                sizes.get(n, n) if only is None or only == (position, dim) else n
                for dim, n in enumerate(_shape(value))
            ]
            _resize(candidate, value, dims)
        for op in _body(candidate):
            if isinstance(op, GraphOp):
                if only is None:
                    _rename(op, sizes)
                _infer(op)
    except UserError:
        return
    outputs = [value.type for value in return_of(candidate.module).arguments]
    args = [a.type for a in candidate.main.body.block.args]
    candidate.main.function_type = type(candidate.main.function_type).from_lists(args, outputs)
    yield candidate


def _used(program: Program) -> list[str]:
    names = dict.fromkeys(op.key for op in _body(program) if isinstance(op, WeightOp))
    return [name for name in names if name in program.weights]


def _resize(program: Program, value: SSAValue, dims: list[int]) -> None:
    type_ = tensor_type(value)
    if list(type_.get_shape()) == dims:
        return
    corner = tuple(slice(0, n) for n in dims)
    new = TensorType(type_.element_type, dims)
    match value.owner:
        case WeightOp() as op:
            if op.key in program.weights:
                data: dict[str, Array] = dict(program.weights.items())
                if data[op.key].shape == type_.get_shape():
                    data[op.key] = np.ascontiguousarray(data[op.key][corner])
                program.weights = Weights(data)
        case ConstantOp() as op:
            op.properties["data"] = ConstantOp(op.array()[corner], type_.element_type).data
        case _:
            pass
    _set_type(value, new)


def _set_type(value: SSAValue, type_: Attribute) -> None:
    value._type = type_  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def _rename(op: GraphOp, sizes: Sizes) -> None:
    for name in _EXTENTS:
        if name in op.properties:
            numbers = [sizes.get(n, n) for n in op.ints(name)]
            op.properties[name] = DenseArrayBase.from_list(i64, numbers)


def _infer(op: GraphOp) -> None:
    """Give the results the types that follow from the operands. Raises UserError."""
    found = op.infer()
    types: list[Tensor] = [found] if isinstance(found, TensorType) else list(found)
    if any(n < 0 for t in types for n in t.get_shape()):
        raise UserError("an extent would be negative")
    for result, type_ in zip(op.results, types, strict=True):
        _set_type(result, type_)

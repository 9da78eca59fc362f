"""The control dialect: loops and branches over tensors, whose bodies are programs.

An op here belongs to no level. It stays as it is while passes lower its bodies, as they lower the
program around it. Every body is isolated from above: what it reads comes in as an argument, or is a
weight or constant of its own. So each pass works on a body as on a program (`as_program`).

    %n, %ys = control.loop "trips" = 8 ... { ^bb0(%i: tensor<i64>, %h: tensor<4xf32>): ... }
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .arithmetic import Arithmetic
from .errors import UserError
from .graph import WeightOp
from .program import ARENA, main_of, named, where
from .types import Array, Tensor, element_of, reference_dtype, shape_of, tensor, tensor_type

# The exact reference runs no loop longer that data end: a number drawn at random may be its count.
MOST_STEPS = 4096
COUNT = tensor([], i64)
_BODY = "isoform.body"
CONDITION = tensor([], i1)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a body with its results."""

    name = "control.yield"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Run a body again and again, on values that it passes on to itself.

    The body's arguments are the number of the iteration, the carried values, a row of each scanned
    tensor, and the captured values. It yields whether to go on (where `conditional`), the carried
    values, and a row of each stacked result. The results are the carried values after the last
    iteration, and the stacked rows.

    The loop ends after `trips` iterations or `count`, whichever is less, or when `start` or what
    the body yields is false. Scanned and stacked tensors have `trips` rows along dim 0; those
    marked in `backward` are read, or written, from the last row to the first. Rows that no
    iteration writes hold anything; those that data may leave out are written forward.
    """

    name = "control.loop"
    count = opt_operand_def(COUNT)
    start = opt_operand_def(CONDITION)
    carried = var_operand_def(TensorType)
    scanned = var_operand_def(TensorType)
    captured = var_operand_def(TensorType)
    trips = opt_prop_def(IntegerAttr)
    conditional = opt_prop_def(UnitAttr)
    backward = opt_prop_def(DenseArrayBase)
    # The places that plan-memory gives: of results, of the body's own memory, and its size.
    offsets = opt_prop_def(ArrayAttr[IntegerAttr])
    scratch = opt_prop_def(IntegerAttr)
    arenas = opt_prop_def(ArrayAttr[IntegerAttr])
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(IsolatedFromAbove(), Pure())
    assembly_format = (
        "(`times` $count^)? (`while` $start^)? (`carry` `(` $carried^ `:` type($carried) `)`)? "
        "(`scan` `(` $scanned^ `:` type($scanned) `)`)? "
        "(`with` `(` $captured^ `:` type($captured) `)`)? attr-dict-with-keyword "
        "(`->` type($outputs)^)? $body"
    )

    def __init__(
        self,
        body: Region,
        result_types: Sequence[Attribute],
        *,
        count: SSAValue | None = None,
        start: SSAValue | None = None,
        carried: Sequence[SSAValue] = (),
        scanned: Sequence[SSAValue] = (),
        captured: Sequence[SSAValue] = (),
        trips: int | None = None,
        conditional: bool = False,
        backward: Sequence[int] = (),
    ):
        def given(value: SSAValue | None) -> list[SSAValue]:
            return [] if value is None else [value]

        walked = DenseArrayBase.from_list(i64, list(backward)) if any(backward) else None
        super().__init__(
            operands=[given(count), given(start), carried, scanned, captured],
            result_types=[result_types],
            regions=[body],
            properties={
                "trips": None if trips is None else IntegerAttr(trips, i64),
                "conditional": UnitAttr() if conditional else None,
                "backward": walked,
            },
        )

    @property
    def bodies(self) -> Sequence[Region]:
        """Its regions."""
        return [self.body]

    @property
    def is_conditional(self) -> bool:
        """Whether the body yields, before all else, if the loop goes on."""
        return self.conditional is not None

    @property
    def stacked(self) -> Sequence[SSAValue]:
        """The results that have a row for each iteration."""
        return self.outputs[len(self.carried) :]

    def is_backward(self, number: int) -> bool:
        """Whether a row tensor (first those scanned, then those stacked) is walked from its end."""
        return bool(self._walked and self._walked[number])

    @property
    def _walked(self) -> tuple[int, ...]:
        walked: Any = self.backward
        return () if walked is None else walked.get_values()

    def verify_(self) -> None:
        self._verify_shapes()
        types = [COUNT, *(v.type for v in self.carried)]
        types += [self._row(v) for v in self.scanned]
        _verify_arguments(self, self.body, [*types, *(v.type for v in self.captured)])
        wanted: list[Attribute] = [CONDITION] if self.is_conditional else []
        wanted += [v.type for v in self.carried]
        _verify_yield(self, self.body, [*wanted, *(self._row(v) for v in self.stacked)])
        if [v.type for v in self.carried] != [v.type for v in self.outputs[: len(self.carried)]]:
            raise VerifyException("a carried value keeps its type")

    def _verify_shapes(self) -> None:
        rows = [*self.scanned, *self.stacked]
        if len(self.outputs) < len(self.carried):
            raise VerifyException("there is one result for each carried value")
        if self.backward is not None and len(self._walked) != len(rows):
            raise VerifyException("backward has one entry for each scanned and each stacked tensor")
        if not rows:
            if self.trips is None and self.count is None and not self.is_conditional:
                raise VerifyException("nothing ends this loop: give trips, a count or a condition")
            return
        if self.trips is None:
            raise VerifyException("a loop that reads or writes rows has `trips` of them")
        first = len(self.scanned)
        back = any(self.is_backward(first + k) for k in range(len(self.stacked)))
        if back and (self.is_conditional or self.count or self.start):
            raise VerifyException("rows whose number data decide are written forward")
        for value in rows:
            shape = tensor_type(value).get_shape()
            if not shape or shape[0] != self.trips.value.data:
                raise VerifyException(f"expected {self.trips.value.data} rows, found {value.type}")

    def _row(self, value: SSAValue) -> Tensor:
        type_ = tensor_type(value)
        return tensor(type_.get_shape()[1:], type_.element_type)

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> Sequence[Array]:
        """Run the body as often as the operands say."""
        given = iter(operands)
        limit = None if self.trips is None else self.trips.value.data
        if self.count is not None:
            most = int(next(given))
            limit = most if limit is None else min(limit, most)
        going = True if self.start is None else bool(next(given))
        carried, scanned, captured = (
            [next(given) for _ in values] for values in (self.carried, self.scanned, self.captured)
        )
        body = _Body(self.body, weights, arithmetic)
        rows = [np.zeros(shape_of(v), reference_dtype(element_of(v))) for v in self.stacked]
        decided = self.count is not None or self.is_conditional
        most = MOST_STEPS if decided and arithmetic is not Arithmetic.COMPUTED else math.inf
        last = 0 if self.is_conditional or limit is None else limit
        step = 0
        while going and (limit is None or step < limit):
            if max(step + 1, last) > most:
                raise UserError(f"the reference runs {most} iterations at most", where=where(self))
            lines = [a[self._place(k, step)] for k, a in enumerate(scanned)]
            results = body([np.asarray(step, np.int64), *carried, *lines, *captured])
            going = not self.is_conditional or bool(results.pop(0))
            carried = results[: len(carried)]
            for k, row in enumerate(results[len(carried) :]):
                rows[k][self._place(len(scanned) + k, step)] = row
            step += 1
        return [*carried, *rows]

    def _place(self, number: int, step: int) -> int:
        """The row of a row tensor that an iteration reads or writes."""
        return -1 - step if self.is_backward(number) else step


@irdl_op_definition
class IfOp(IRDLOperation):
    """Run one of two bodies.

    The arguments of both are the captured values. They yield the results.
    """

    name = "control.if"
    condition = operand_def(CONDITION)
    captured = var_operand_def(TensorType)
    offsets = opt_prop_def(ArrayAttr[IntegerAttr])
    scratch = opt_prop_def(IntegerAttr)
    arenas = opt_prop_def(ArrayAttr[IntegerAttr])
    outputs = var_result_def(TensorType)
    then_body = region_def("single_block")
    else_body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), Pure())
    assembly_format = (
        "$condition (`with` `(` $captured^ `:` type($captured) `)`)? attr-dict-with-keyword "
        "(`->` type($outputs)^)? $then_body `else` $else_body"
    )

    def __init__(
        self,
        condition: SSAValue,
        captured: Sequence[SSAValue],
        bodies: tuple[Region, Region],
        result_types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[condition, captured], regions=list(bodies), result_types=[result_types]
        )

    @property
    def bodies(self) -> Sequence[Region]:
        """Its regions: what runs if the condition holds, and what runs otherwise."""
        return [self.then_body, self.else_body]

    def verify_(self) -> None:
        for body in self.bodies:
            _verify_arguments(self, body, [v.type for v in self.captured])
            _verify_yield(self, body, [v.type for v in self.outputs])

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> Sequence[Array]:
        """Run the body that the condition chooses."""
        condition, *captured = operands
        chosen = self.then_body if bool(condition) else self.else_body
        return _Body(chosen, weights, arithmetic)(captured)


ControlOp: TypeAlias = LoopOp | IfOp


class _Body:
    """A body prepared to be evaluated many times."""

    def __init__(self, region: Region, weights: Mapping[str, Any], arithmetic: Arithmetic):
        from .discrete import discrete_constants

        self.block, self.weights, self.arithmetic = region.block, weights, arithmetic
        exact = arithmetic is not Arithmetic.COMPUTED
        self.known = discrete_constants(self.block.ops, weights) if exact else {}

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        from .reference import Values, run_block

        values: Values = dict(zip(self.block.args, arguments, strict=True))
        return run_block(self.block.ops, values, self.weights, self.arithmetic, self.known)


def weights_inside(op: Operation, data: Callable[[WeightOp], Array | None]) -> Mapping[str, Array]:
    """The weights that an op's bodies name, of those whose data are given."""
    found = {w.key: data(w) for w in op.walk() if isinstance(w, WeightOp)}
    return {key: array for key, array in found.items() if array is not None}


def arguments_of(op: Operation, number: int) -> list[SSAValue]:
    """The arguments of an op's bodies that have the value of an operand, at first at least."""
    if isinstance(op, IfOp):
        return [body.block.args[number - 1] for body in op.bodies] if number else []
    if not isinstance(op, LoopOp) or op.operands[number] in op.scanned:
        return []
    place = number - (op.count is not None) - (op.start is not None)
    return [op.body.block.args[1 + place]] if place >= 0 else []


def control_ops(block: Block) -> list[ControlOp]:
    """The loops and branches of a block, in order."""
    return [op for op in block.ops if isinstance(op, ControlOp)]


@contextmanager
def as_program(op: ControlOp, number: int) -> Generator[ModuleOp]:
    """Give a body as the `@main` of a module of its own; then put it back in its place."""
    region = op.bodies[number]
    block = region.block
    region.detach_block(block)
    module = _module(block)
    try:
        yield module
    finally:
        function = main_of(module)
        block = function.body.block
        function.body.detach_block(block)
        region.add_block(block)
        _end(block, YieldOp)
        arena = module.attributes.get(ARENA)
        if isinstance(arena, IntegerAttr):
            arenas = [] if op.arenas is None else list(op.arenas.data)
            arenas += [IntegerAttr(0, i64)] * (len(op.bodies) - len(arenas))
            arenas[number] = arena
            op.arenas = ArrayAttr(arenas)


def body_module(op: ControlOp, number: int) -> ModuleOp:
    """A copy of a body as the `@main` of a module."""
    block = op.bodies[number].clone().block
    region = block.parent
    assert region is not None
    region.detach_block(block)
    module = _module(block)
    if op.arenas is not None:
        module.attributes[ARENA] = op.arenas.data[number]
    return module


def is_body(module: ModuleOp) -> bool:
    """Whether a module is a body given as a program: its results lie where the loop has them."""
    return _BODY in module.attributes


def _module(block: Block) -> ModuleOp:
    last = _end(block, ReturnOp)
    inputs, outputs = [v.type for v in block.args], [v.type for v in last.operands]
    function = FuncOp("main", FunctionType.from_lists(inputs, outputs), Region(block))
    function.arg_attrs = named([f"in{k}" for k in range(len(inputs))])
    function.res_attrs = named([f"out{k}" for k in range(len(outputs))])
    module = ModuleOp([function])
    module.attributes[_BODY] = UnitAttr()
    return module


def _end(block: Block, kind: type[ReturnOp] | type[YieldOp]) -> Operation:
    """Replace the terminator by one of another kind."""
    old = block.last_op
    assert old is not None
    values = list(old.operands)
    old.detach()
    old.erase()
    new = ReturnOp(*values) if kind is ReturnOp else YieldOp(values)
    block.add_op(new)
    return new


def _verify_arguments(op: ControlOp, body: Region, wanted: Sequence[Attribute]) -> None:
    found = [argument.type for argument in body.block.args]
    if found != list(wanted):
        raise VerifyException(
            f"{op.name}: a body's arguments are {_listed(wanted)}, found {_listed(found)}"
        )


def _verify_yield(op: ControlOp, body: Region, wanted: Sequence[Attribute]) -> None:
    last = body.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{op.name}: a body ends with control.yield")
    found = [value.type for value in last.values]
    if found != list(wanted):
        raise VerifyException(f"{op.name}: a body yields {_listed(wanted)}, found {_listed(found)}")


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


CONTROL = Dialect("control", [LoopOp, IfOp, YieldOp], [])

"""bound-dims: one program of fixed sizes for all sizes up to a bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.builder import GraphBuilder
from ...dialects.context import WeightContext
from ...dialects.dims_attr import DimsAttr
from ...dialects.errors import UserError
from ...dialects.extent_math import symbol
from ...dialects.extent_text import extent_text, guard_text
from ...dialects.floats import ROUNDING, Floats
from ...dialects.graph import GraphOp
from ...dialects.program import (
    ENDS,
    GROWS,
    KEPT,
    ROWS,
    SIZE,
    input_names_of,
    main_of,
    named,
    return_of,
    where,
)
from ...dialects.shape_guards import GUARDS, SIZES, shape_env, symbols_of
from ...dialects.specialize import check_names, specialize
from ...dialects.types import tensor_type
from ...dialects.weights import Weights
from .growing import GrownInput, grows_attr, growths
from .padding import Dim, NotBounded, Padding
from .rules import bounded_op


@dataclass(frozen=True)
class BoundDims(ModulePass):
    """Give symbolic dims a largest size; the size of a call becomes an input.

    A value has the extents of the bounds. Its first rows count, as many as the size says; the rest
    is padding. Inputs are given with zeros there, results are cut by whoever reads them. An op that
    looks across a padded dim reads a number that changes nothing in place of padding.

    Args:
        dims: `name<=number` for symbols that get a bound, `name=number` for the others.
        grow: a result that is an input and rows behind it, as a cache, may be in the input's array:
            the input has the result's extents, `kept.NAME` says how many rows are there before,
            and `ends.NAME` from which row on it holds the zeros that the result has there.

    Before:

        func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>) -> tensor<1x4xf32> {
          %y = graph.reduce_max %x {axes = [0]} : tensor<1x4xf32>
          func.return %y : tensor<1x4xf32>
        }

    After `bound-dims{dims="n<=16"}`, where `%size` is the input `size.n`:

        func.func @main(%x: tensor<16x4xf32>, %size: tensor<i64>) -> tensor<1x4xf32> {
          %k = graph.constant dense<[0, 1, 2, .., 15]> : tensor<16xi64>
          %n = graph.broadcast %size {shape = [16], dims = []} : tensor<16xi64>
          %i = graph.less %k, %n : tensor<16xi1>
          %m = graph.broadcast %i {shape = [16, 4], dims = [0]} : tensor<16x4xi1>
          %c = graph.constant dense<-inf> : tensor<f32>
          %l = graph.broadcast %c {shape = [16, 4], dims = []} : tensor<16x4xf32>
          %t = graph.where %m, %x, %l : tensor<16x4xf32>
          %y = graph.reduce_max %t {axes = [0]} : tensor<1x4xf32>
          func.return %y : tensor<1x4xf32>
        }
    """

    name = "bound-dims"
    floats: ClassVar[Floats] = ROUNDING
    dims: tuple[str, ...]
    grow: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace the body of `@main`. Raises UserError as `bound`."""
        weights = ctx.weights if isinstance(ctx, WeightContext) else None
        bounds: dict[str, int] = {}
        numbers: dict[str, int] = {}
        for text in self.dims:
            name, sign, number = text.partition("<=") if "<=" in text else text.partition("=")
            if not name or not number.isdigit():
                hint = 'dims="batch=2","seq<=64"'
                raise UserError(f"'{text}' gives no size and no bound", hint=hint)
            (bounds if sign == "<=" else numbers)[name] = int(number)
        bound(op, bounds, numbers, weights, self.grow)


def bound(
    module: ModuleOp,
    bounds: Mapping[str, int],
    numbers: Mapping[str, int],
    weights: Weights | None = None,
    grow: bool = False,
) -> None:
    """Replace the body of `@main` by one of fixed sizes, in place.

    Args:
        bounds: the largest size of each symbol that gets an input, `size.NAME`.
        numbers: the size of each other symbol.
        grow: take inputs that results grow with the results' extents (growing.py).

    Raises:
        NotBounded: an op has no rule for padding, a value may be larger than at the bound, or a
            guard does not hold there.
        UserError: a symbol has no number, a number no symbol.
    """
    main, sizes = main_of(module), {**bounds, **numbers}
    check_names(symbols_of(main), sizes, "<=")
    broken = shape_env(main).broken(sizes)
    if broken is not None:
        raise NotBounded(f"at the bounds the guard {guard_text(broken)} does not hold")
    names, build, returned = input_names_of(main), GraphBuilder(), return_of(module).arguments
    padding = Padding(build, sizes, list(bounds))
    values: dict[SSAValue, SSAValue] = {}
    found = growths(main, bounds) if grow else []
    with shape_env(main).active():
        results = [padding.dims(value.type) for value in returned]
        for name, arg in zip(names, main.body.block.args, strict=True):
            growth = next((g for g in found if g.given == arg.index), None)
            values[arg] = _input(name, arg, padding, growth and results[growth.result])
        counts = {name: symbol(name) for name in bounds}
        counts |= {extent_text(dim.count): dim.count for dim in _grown(found, results)}
        added = [
            *(SIZE + text for text in counts),
            *(p + names[g.given] for g in found for p in (KEPT, ENDS)),
        ]
        for name in added:
            if name in names:
                raise NotBounded(f"an input has the name '{name}'")
            number = build.input(name, [], i64)
            if name.removeprefix(SIZE) in counts:
                padding.take(counts[name.removeprefix(SIZE)], number)
        for op in main.body.block.ops:
            if not isinstance(op, ReturnOp):
                _copy(op, values, padding)
    build.block.add_op(ReturnOp(*(values[v] for v in returned)))
    _replace(main, build, added)
    main.attributes[ROWS] = ArrayAttr(_rows(dims, counts) for dims in results)
    if found:
        main.attributes[GROWS] = grows_attr(len(results), names, found)
    specialize(module, {}, weights)  # positions become constants


def _input(
    name: str, arg: BlockArgument, padding: Padding, grown: Sequence[Dim] | None
) -> SSAValue:
    """An input of the bounded program, as the ops read it.

    Args:
        grown: the dims of the result that grows it; the input has their extents.
    """
    dims, build = padding.dims(arg.type), padding.build
    extents = [dim.size for dim in dims]
    wide = [dim.size for dim in grown or dims]
    new = build.input(name, wide, tensor_type(arg).element_type)
    padded = [k for k, dim in enumerate(dims) if dim.count is not None]
    padding.zeros |= {(new, k) for k in padded}
    if wide == extents:
        return new
    none = [0] * len(dims)
    read = build.slice(new, starts=none, sizes=extents, steps=[1] * len(dims))
    padding.zeros |= {(read, k) for k in padded}
    padding.wide[read] = new
    return read


def _grown(found: Sequence[GrownInput], results: Sequence[Sequence[Dim]]) -> list[Dim]:
    """The dims along which results have more rows than inputs."""
    return [results[growth.result][growth.axis] for growth in found]


def _rows(dims: Sequence[Dim], counted: Collection[str]) -> ArrayAttr[StringAttr]:
    texts = ["" if dim.count is None else extent_text(dim.count) for dim in dims]
    return ArrayAttr(StringAttr(text if text in counted else "") for text in texts)


def _copy(op: Operation, values: dict[SSAValue, SSAValue], padding: Padding) -> None:
    """Build what an op gives in the bounded program."""
    build = padding.build
    last = build.block.last_op
    operands = [values[v] for v in op.operands]
    if isinstance(op, GraphOp) and not op.regions:
        found = bounded_op(op, operands, padding)
    else:
        _refuse_symbols(op)
        new = op.clone(dict(values))
        build.block.add_op(new)
        found = new.results
    for old, value in zip(op.results, found, strict=True):
        values[old] = value
        if value.name_hint is None:
            value.name_hint = old.name_hint
    made = build.block.first_op if last is None else last.next_op
    while made is not None:
        made.location = op.location
        made = made.next_op


def _refuse_symbols(op: Operation) -> None:
    inner = [arg for region in op.regions for block in region.blocks for arg in block.args]
    if any(
        isinstance(tensor_type(v).encoding, DimsAttr) for v in (*op.operands, *op.results, *inner)
    ):
        raise NotBounded("padding does not pass it", where=where(op))


def _replace(main: FuncOp, build: GraphBuilder, added: Sequence[str]) -> None:
    """Give `@main` the block that was built, which has these inputs behind those of before."""
    names = input_names_of(main)
    old, block = main.body.block, build.block
    main.body.detach_block(old)
    main.body.add_block(block)
    old.erase()
    returned = block.last_op
    assert isinstance(returned, ReturnOp)
    types = [arg.type for arg in block.args], [value.type for value in returned.arguments]
    main.function_type = FunctionType.from_lists(*types)
    given = named(names) if main.arg_attrs is None else main.arg_attrs
    main.arg_attrs = ArrayAttr([*given, *named(added)])
    for name in (GUARDS, SIZES):
        main.attributes.pop(name, None)


__all__ = ["BoundDims", "bound"]

"""bound-dims: one program of fixed sizes for all sizes up to a bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.builder import GraphBuilder
from ...dialects.context import WeightContext
from ...dialects.dims_attr import DimsAttr
from ...dialects.errors import UserError
from ...dialects.extent_text import guard_text
from ...dialects.floats import ROUNDING, Floats
from ...dialects.graph import GraphOp
from ...dialects.program import (
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
        bound(op, bounds, numbers, weights)


def bound(
    module: ModuleOp,
    bounds: Mapping[str, int],
    numbers: Mapping[str, int],
    weights: Weights | None = None,
) -> None:
    """Replace the body of `@main` by one of fixed sizes, in place.

    Args:
        bounds: the largest size of each symbol that gets an input, `size.NAME`.
        numbers: the size of each other symbol.

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
    names, build = input_names_of(main), GraphBuilder()
    padding = Padding(build, sizes, list(bounds))
    values: dict[SSAValue, SSAValue] = {}
    with shape_env(main).active():
        for name, arg in zip(names, main.body.block.args, strict=True):
            dims = padding.dims(arg.type)
            new = build.input(name, [d.size for d in dims], tensor_type(arg).element_type)
            padding.zeros |= {(new, k) for k, dim in enumerate(dims) if dim.count is not None}
            values[arg] = new
        for name in bounds:
            if SIZE + name in names:
                raise NotBounded(f"an input has the name '{SIZE}{name}'")
            padding.take(name, build.input(SIZE + name, [], i64))
        for op in main.body.block.ops:
            if not isinstance(op, ReturnOp):
                _copy(op, values, padding)
        results = [values[v] for v in return_of(module).arguments]
    rows = [_rows(padding.dims(v.type), bounds) for v in return_of(module).arguments]
    build.block.add_op(ReturnOp(*results))
    _replace(main, build, names, bounds)
    main.attributes[ROWS] = ArrayAttr(rows)
    specialize(module, {}, weights)  # positions become constants


def _rows(dims: Sequence[Dim], bounds: Collection[str]) -> ArrayAttr[StringAttr]:
    names = [str(dim.count) for dim in dims]
    return ArrayAttr(StringAttr(name if name in bounds else "") for name in names)


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


def _replace(
    main: FuncOp, build: GraphBuilder, names: Sequence[str], bounds: Collection[str]
) -> None:
    """Give `@main` the block that was built."""
    old, block = main.body.block, build.block
    main.body.detach_block(old)
    main.body.add_block(block)
    old.erase()
    returned = block.last_op
    assert isinstance(returned, ReturnOp)
    types = [arg.type for arg in block.args], [value.type for value in returned.arguments]
    main.function_type = FunctionType.from_lists(*types)
    given = named(names) if main.arg_attrs is None else main.arg_attrs
    main.arg_attrs = ArrayAttr([*given, *named([SIZE + name for name in bounds])])
    for name in (GUARDS, SIZES):
        main.attributes.pop(name, None)


__all__ = ["BoundDims", "bound"]

"""Give the symbols of a program their numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.test_value import create_ssa_value

from .dims_attr import DimsAttr
from .errors import UserError, did_you_mean
from .graph import ConstantOp, WeightOp
from .graph.data import IotaOp
from .program import main_of, return_of
from .shape_guards import GUARDS, SIZES, check_guards, shape_env, symbols_of
from .types import shape_of, tensor
from .weights import Weights

if TYPE_CHECKING:
    from .extents import Dims, Extent

# Positions up to this many stay in the text.
LITERAL = 16


def specialize(
    module: ModuleOp,
    sizes: Mapping[str, int],
    weights: Weights | None = None,
    literal: int = LITERAL,
) -> None:
    """Bind the symbols of `@main`, in place; positions (`graph.iota`) become constants.

    Args:
        weights: where long constants go; without it long positions stay ops.
        literal: positions up to this many are no long ones.

    Raises:
        UserError: a symbol has no number, a number no symbol, or a guard does not hold.
    """
    main = main_of(module)
    _check(main, sizes)
    for op in list(main.walk()):
        _bind(op, sizes)
        if isinstance(op, IotaOp):
            _positions(op, weights, literal)
    inputs = [arg.type for arg in main.body.block.args]
    results = [value.type for value in return_of(module).arguments]
    main.function_type = FunctionType.from_lists(inputs, results)
    for name in (GUARDS, SIZES):
        main.attributes.pop(name, None)


def check_names(known: Collection[str], sizes: Collection[str], sign: str = "=") -> None:
    """Raise UserError unless the symbols that are known are those that sizes are given for.

    Args:
        sign: how a size is given, for the hint.
    """
    for name in sizes:
        if name not in known:
            hint = did_you_mean(name, known) or f"they are {', '.join(known) or 'none'}"
            raise UserError(f"the program has no symbolic dim '{name}'", hint=hint)
    for name in known:
        if name not in sizes:
            raise UserError(f"the symbolic dim '{name}' has no size", hint=f"{name}{sign}NUMBER")


def _check(main: FuncOp, sizes: Mapping[str, int]) -> None:
    known = symbols_of(main)
    check_names(known, sizes)
    if not known:
        return
    check_guards(main)
    broken = shape_env(main).broken(sizes)
    if broken is not None:
        from .extent_text import guard_text

        given = ", ".join(f"{name}={sizes[name]}" for name in broken.symbols)
        raise UserError(
            "the program is not for these sizes", expected=guard_text(broken), found=given
        )


def _bind(op: Operation, sizes: Mapping[str, int]) -> None:
    """Numbers in one op's types and properties, and in those of its blocks' arguments."""
    values: list[SSAValue] = [*op.results]
    values += [arg for region in op.regions for block in region.blocks for arg in block.args]
    for value in values:
        value._type = type_at(value.type, sizes)  # pyright: ignore[reportPrivateUsage]
    for name, attribute in op.properties.items():
        if isinstance(attribute, DimsAttr):
            op.properties[name] = DenseArrayBase.from_list(i64, attribute.at(sizes))


def op_at(op: Operation, sizes: Mapping[str, int]) -> Operation:
    """A copy of an op for these sizes, whose operands are no values of a program."""
    copies = dict[SSAValue, SSAValue]()
    for value in op.operands:
        if value not in copies:
            copies[value] = create_ssa_value(type_at(value.type, sizes))
    copy = op.clone(value_mapper=copies)
    for inner in copy.walk():
        _bind(inner, sizes)
    return copy


def type_at(type_: Attribute, sizes: Mapping[str, int]) -> Attribute:
    """A tensor type for these sizes; of any other attribute, itself."""
    if isinstance(type_, TensorType) and isinstance(type_.encoding, DimsAttr):
        return tensor(type_.encoding.at(sizes), type_.element_type)
    return type_


def _positions(op: IotaOp, weights: Weights | None, literal: int) -> None:
    """A constant of an `iota`'s numbers."""
    (count,) = shape_of(op.results[0])
    if count <= literal:
        new: Operation = ConstantOp(op.reference()[0], i64)
    elif weights is None:
        return
    else:
        start, step = op.ints("start")[0], op.ints("step")[0]
        name = f"iota.{start}.{step}.{count}"
        if name not in weights:
            weights.add(name, op.reference()[0])
        new = WeightOp(name, op.type)
    new.location = op.location
    new.results[0].name_hint = op.results[0].name_hint
    Rewriter.replace_op(op, [new])


def sizes_of_shapes(
    main: FuncOp, names: Sequence[str], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The number of each symbol that the shapes of inputs give.

    Args:
        names: of the function's arguments; some may have no shape.
        shapes: by these names.

    Raises:
        UserError: a shape contradicts its type or another one.
    """
    args = zip(names, main.body.block.args, strict=True)
    return sizes_of_dims({name: shape_of(arg) for name, arg in args}, shapes)


def sizes_of_dims(dims: Mapping[str, Dims], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """As `sizes_of_shapes`, from the dims of inputs by name."""
    from .extent_math import solved

    sizes: dict[str, int] = {}
    known = [
        (name, dim, n)
        for name, shape in shapes.items()
        if name in dims
        for dim, n in _pairs(name, dims[name], shape)
    ]
    # Symbols that stand alone first: then expressions of several have one left at most.
    for name, dim, n in sorted(known, key=lambda entry: not _is_alone(entry[1])):
        expr = dim if isinstance(dim, int) else dim.expr
        if not solved(expr, n, sizes):
            raise UserError(f"a dim of input '{name}' has another size", expected=dim, found=n)
    return sizes


def _is_alone(dim: int | Extent) -> bool:
    return isinstance(dim, int) or dim.expr.is_Symbol


def _pairs(name: str, dims: Dims, shape: Sequence[int]) -> list[tuple[int | Extent, int]]:
    if len(dims) != len(shape):
        raise UserError(f"input '{name}' has another rank", expected=len(dims), found=list(shape))
    return list(zip(dims, shape, strict=True))

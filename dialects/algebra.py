"""The algebra dialect: tensor programs as einsum-like scopes.

A scope computes one tensor,

    out[x] = reduce over s of body(T_1[tau_1(x, s)], T_2[tau_2(x, s)], ...)

with traversal iterators x and summation iterators s, each over [0, extent). Reads are at
quasi-affine indices. A read has a fixed value outside its tensor's shape: 0, or v with `else v`.
That convention is padding, and a read of `algebra.ones` is a guard. Example:

    %y = algebra.scope (n: 1, f: 64, h: 56, w: 56) sum (c: 64, r: 3, s: 3)
           %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<1x64x56x56xf32>

What no scope can express (gather by data, sort, opaque ops) is an `algebra.extern`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    StringAttr,
    TensorType,
    f64,
    i64,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from . import scope_text
from .index import Index, from_affine
from .scalars import Expr, Read, reads_of
from .scope_body import body_to_expr, expr_to_body, verify_body
from .types import Tensor, tensor_type

_NAME = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
REDUCTIONS = ("sum", "max", "min", "prod")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a scope's body with the value at one point."""

    name = "algebra.yield"
    value = operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict $value `:` type($value)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value])


def _indices(map_: AffineMapAttr) -> tuple[Index, ...]:
    """The results of a map, converted once for each attribute."""
    known: tuple[Index, ...] | None = vars(map_).get("indices")
    if known is None:
        known = vars(map_)["indices"] = tuple(from_affine(e) for e in map_.data.results)
    return known


@irdl_op_definition
class ScopeOp(IRDLOperation):
    """Compute one tensor, point by point, by a scalar body under a reduction.

    Operand k is read once, at `maps[k]`, and is the body's block argument k; `outside[k]` is its
    value beyond the shape. The traversal extents are the result's shape.
    """

    name = "algebra.scope"
    inputs = var_operand_def(TensorType)
    iterators = prop_def(ArrayAttr[StringAttr])
    sums = prop_def(DenseArrayBase)
    reduction = prop_def(StringAttr)
    maps = prop_def(ArrayAttr[AffineMapAttr])
    outside = prop_def(ArrayAttr[FloatAttr])
    body = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        result_type: Tensor,
        expr: Expr,
        sums: Sequence[int] = (),
        reduction: str = "sum",
        names: Sequence[str] | None = None,
    ):
        """Build from a scalar expression whose reads' sources are SSA values.

        Args:
            result_type: its shape gives the traversal extents, iterators 0 .. rank-1.
            expr: body; iterators rank .. rank+len(sums)-1 are the summations.
        """
        reads = reads_of(expr)
        rank = len(result_type.get_shape())
        count = rank + len(sums)
        super().__init__(
            operands=[[read.source for read in reads]],
            properties={
                "iterators": iterator_names(rank, len(sums), names),
                "sums": DenseArrayBase.from_list(i64, sums),
                "reduction": StringAttr(reduction),
                "maps": ArrayAttr(_map_of(read.index, count) for read in reads),
                "outside": ArrayAttr(FloatAttr(read.outside, f64) for read in reads),
            },
            regions=[expr_to_body(expr, reads, result_type.element_type, YieldOp)],
            result_types=[result_type],
        )

    @property
    def traversal(self) -> tuple[int, ...]:
        """Extents of the traversal iterators."""
        return tensor_type(self.results[0]).get_shape()

    @property
    def summation(self) -> tuple[int, ...]:
        """Extents of the summation iterators."""
        return _integers(self.sums)

    @property
    def extents(self) -> tuple[int, ...]:
        return self.traversal + self.summation

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name.data for name in self.iterators)

    def index_of(self, operand: int) -> tuple[Index, ...]:
        """The index expressions at which operand number `operand` is read."""
        return _indices(self.maps.data[operand])

    def reads(self) -> list[Read]:
        """One `Read` per operand, sources being the SSA values."""
        each = zip(self.operands, self.maps.data, self.outside.data, strict=True)
        return [Read(value, _indices(map_), out.value.data) for value, map_, out in each]

    def reads_of(self, source: SSAValue) -> list[Read]:
        """Those of one source, in time that does not depend on how many others there are."""
        operands = sorted(use.index for use in source.uses if use.operation is self)
        maps, outside = self.maps.data, self.outside.data
        return [Read(source, _indices(maps[k]), outside[k].value.data) for k in operands]

    def expr(self) -> Expr:
        """The body as a scalar expression over `reads()`."""
        return body_to_expr(self.body.block, self.reads())

    @property
    def is_pointwise(self) -> bool:
        """Whether nothing is reduced."""
        return not self.summation

    @property
    def is_sum(self) -> bool:
        """Whether it has summed iterators and its reduction is `sum`: additions in any order."""
        return bool(self.summation) and self.reduction.data == "sum"

    def verify_(self) -> None:
        _verify_scope(self)

    def print(self, printer: Printer) -> None:
        scope_text.print_scope(self, printer)

    @classmethod
    def parse(cls, parser: Parser) -> ScopeOp:
        return scope_text.parse_scope(cls, parser)


def iterator_names(rank: int, sums: int, names: Sequence[str] | None) -> ArrayAttr[StringAttr]:
    """The names given, or `i0, i1, ...` for traversals and `k0, k1, ...` for summations."""
    if names is None:
        names = [f"i{k}" for k in range(rank)] + [f"k{k}" for k in range(sums)]
    return ArrayAttr(StringAttr(name) for name in names)


@lru_cache(maxsize=1 << 12)
def _integers(array: DenseArrayBase) -> tuple[int, ...]:
    return tuple(map(int, array.get_values()))  # pyright: ignore[reportAttributeAccessIssue]


@lru_cache(maxsize=1 << 14)
def _map_of(index: tuple[Index, ...], count: int) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(count, 0, tuple(e.to_affine() for e in index)))


def _verify_scope(op: ScopeOp) -> None:
    rank, sums = len(op.traversal), op.summation
    if op.reduction.data not in REDUCTIONS:
        raise VerifyException(
            f"unknown reduction '{op.reduction.data}', expected one of {', '.join(REDUCTIONS)}"
        )
    if any(n < 0 for n in op.traversal) or any(n < 1 for n in sums):
        raise VerifyException("extents must be static, summations at least 1")
    if len(op.iterators) != rank + len(sums) or len(set(op.names)) != len(op.names):
        raise VerifyException(
            f"expected {rank + len(sums)} distinct iterator names, found {list(op.names)}"
        )
    if unreadable := [name for name in op.names if _NAME.fullmatch(name) is None]:
        raise VerifyException(f"an iterator cannot be named '{unreadable[0]}'")
    if len(op.maps) != len(op.inputs) or len(op.outside) != len(op.inputs):
        raise VerifyException("one map and one outside value per operand are needed")
    if len(op.body.block.args) != len(op.inputs):
        raise VerifyException("the body needs one argument per operand")
    for k, (value, arg, map_) in enumerate(
        zip(op.inputs, op.body.block.args, op.maps, strict=True)
    ):
        _verify_read(op, k, value, arg.type, map_.data)
    last = op.body.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException("the body must end with algebra.yield")
    verify_body(op.body.block)
    element = tensor_type(op.result).element_type
    if last.value.type != element:
        raise VerifyException(f"the body yields {last.value.type}, the result holds {element}")


def _verify_read(op: ScopeOp, k: int, value: SSAValue, arg: Attribute, map_: AffineMap) -> None:
    source = tensor_type(value)
    if len(map_.results) != len(source.get_shape()) or map_.num_dims != len(op.iterators):
        raise VerifyException(
            f"read {k} has {len(map_.results)} indices over {map_.num_dims} "
            f"iterators, expected {len(source.get_shape())} over {len(op.iterators)}"
        )
    if arg != source.element_type:
        raise VerifyException(
            f"body argument {k} is {arg}, the operand holds {source.element_type}"
        )
    try:
        op.index_of(k)
    except ValueError as error:
        raise VerifyException(f"read {k}: {error}") from error


@irdl_op_definition
class OnesOp(IRDLOperation):
    """The constant tensor of ones; a read of it is 1 inside its shape and 0 outside (a guard)."""

    name = "algebra.ones"
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Tensor):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class ExternOp(IRDLOperation):
    """An operation that no scope expresses; its meaning is that of the named op.

    `callee` is the full name of a registered op (`graph.gather`), `config` its properties.
    """

    name = "algebra.extern"
    inputs = var_operand_def(TensorType)
    callee = prop_def(StringAttr)
    config = prop_def(DictionaryAttr)
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$callee `(` $inputs `)` $config attr-dict `:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        config: DictionaryAttr,
        result_types: Sequence[Tensor],
    ):
        super().__init__(
            operands=[inputs],
            properties={"callee": StringAttr(callee), "config": config},
            result_types=[result_types],
        )


ALGEBRA = Dialect("algebra", [ScopeOp, YieldOp, OnesOp, ExternOp], [])

"""Write scopes in Python as one writes them on paper.

Used by every graph op's `as_scopes` and by lowerings:

    n, f, h, w = iterators(4)
    c, r, s = iterators(3, 4)  # numbers 4, 5, 6: sums follow the traversal
    y = build.scope(type, x[n, c, h + r - 1, w + s - 1] * k[f, c, r, s], sums=(64, 3, 3))
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from .algebra import OnesOp, ScopeOp
from .index import Index, iterators
from .scalars import Call, Cast, Const, Expr, Read, Scalar, call
from .types import Tensor, element_of, is_float, is_half, shape_of, tensor


class Source:
    """A tensor value in scopes: `source[index, ...]` is a scalar `Read`.

    `canonical_types.Source` is another class: a tensor of a canonical scope, without IR.
    """

    def __init__(self, value: SSAValue):
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.value)

    @property
    def element(self) -> Attribute:
        return element_of(self.value)

    def __getitem__(self, index: Index | int | Sequence[Index | int]) -> Read:
        parts = index if isinstance(index, Sequence) else (index,)
        return Read(self.value, tuple(Index.of(e) for e in parts))

    def at(self, index: Sequence[Index | int], outside: float) -> Read:
        """Read with a value other than 0 outside the shape."""
        return Read(self.value, tuple(Index.of(e) for e in index), outside)

    def here(self) -> Read:
        """Read at the traversal point itself (a pointwise read with an equal shape)."""
        return self[iterators(len(self.shape))]


class ScopeBuilder:
    """Collects the algebra ops of one lowering step in `ops`, in order."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> Source:
        self.ops.append(op)
        return Source(op.results[0])

    def scope(
        self,
        result_type: Tensor,
        expr: Expr,
        sums: Sequence[int] = (),
        reduction: str = "sum",
        names: Sequence[str] | None = None,
    ) -> Source:
        """Add a scope; see `algebra.ScopeOp`. An empty reduction gives its neutral element."""
        if 0 in sums:
            rank = len(result_type.get_shape())
            neutral = Const(neutral_element(reduction, result_type.element_type))
            return self.add(ScopeOp(result_type, neutral, names=names and names[:rank]))
        return self.add(ScopeOp(result_type, expr, sums, reduction, names))

    def ones(self, shape: Sequence[int], element: Attribute) -> Source:
        return self.add(OnesOp(tensor(shape, element)))

    def pointwise(self, result_type: Tensor, expr: Expr) -> Source:
        return self.scope(result_type, expr)

    def widened(self, x: Source) -> Source:
        """f16 and bf16 as float32, for ops with several steps that round once; else `x` itself."""
        if not is_half(x.element):
            return x
        return self.pointwise(tensor(x.shape, f32), cast(f32, x.here()))

    def narrowed(
        self, result_type: Tensor, expr: Expr, of: Source, names: Sequence[str] | None = None
    ) -> Source:
        """A value computed from a widened `of`, rounded to the result's type."""
        element = result_type.element_type
        value = expr if of.element == element else cast(element, expr)
        return self.scope(result_type, value, names=names)


def const(value: float | int | bool) -> Expr:
    """A literal."""
    return Const(value)


def cast(element: Attribute, arg: Scalar) -> Expr:
    """Conversion to an element type."""
    return Cast(element, arg if isinstance(arg, Expr) else Const(arg))


def maximum(a: Scalar, b: Scalar) -> Expr:
    """The greater, or NaN if either is."""
    return call("max", a, b)


def minimum(a: Scalar, b: Scalar) -> Expr:
    """The lesser, or NaN if either is."""
    return call("min", a, b)


def select(condition: Scalar, then: Scalar, otherwise: Scalar) -> Expr:
    """`then` where the condition holds, `otherwise` elsewhere."""
    return call("select", condition, then, otherwise)


def exp(x: Scalar) -> Expr:
    """The exponential."""
    return call("exp", x)


def sigmoid(x: Scalar) -> Expr:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(call("neg", x)))


def softplus(x: Scalar) -> Expr:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)): no overflow, and small results are exact."""
    return maximum(x, 0.0) + call("log1p", exp(call("neg", call("abs", x))))


def neutral_element(reduction: str, element: Attribute) -> float:
    """The result of an empty reduction."""
    match reduction:
        case "max":
            return lowest(element)
        case "min":
            return highest(element)
        case _:
            return 1.0 if reduction == "prod" else 0.0


def lowest(element: Attribute) -> float:
    """The identity of max: -inf, or the least integer."""
    if is_float(element):
        return float("-inf")
    width = getattr(element, "width", None)
    assert width is not None
    return -(1 << (width.data - 1))


def highest(element: Attribute) -> float:
    """The identity of min: inf, or the greatest integer."""
    return float("inf") if is_float(element) else -lowest(element) - 1


__all__ = [
    "Call",
    "ScopeBuilder",
    "Source",
    "call",
    "cast",
    "const",
    "exp",
    "highest",
    "iterators",
    "lowest",
    "maximum",
    "minimum",
    "select",
    "sigmoid",
    "softplus",
]

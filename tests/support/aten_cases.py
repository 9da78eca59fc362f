"""Random calls of every ATen op in the table: dtypes, ranks, strides, empty tensors.

Needs torch.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

# Ops whose other results are for gradients: only the first is computed.
FIRST_ONLY = (
    "native_", "_native", "_batch_norm", "_fused_rms", "_scaled_dot", "log_sigmoid", "max_pool",
)  # fmt: skip
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32")
SHAPES = ((), (5,), (3, 4), (2, 3, 4), (2, 0, 3), (1, 3, 1))


@dataclass(frozen=True)
class Case:
    """One call: arguments may hold tensors, also in lists."""

    target: str
    args: Sequence[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def op(self) -> Any:
        name, _, overload = self.target.partition(".")
        space = torch.ops.prims if name in ("convert_element_type", "iota") else torch.ops.aten
        return getattr(getattr(space, name), overload)

    def result(self, args: Any = None, kwargs: Any = None) -> Any:
        """What torch computes, for these arguments or the case's own."""
        found = self.op(*(self.args if args is None else args), **(kwargs or self.kwargs))
        if self.target.startswith("empty"):  # only shape and type say something
            return found.masked_fill(torch.ones((), dtype=torch.bool), 0)
        return found[0] if self.target.startswith(FIRST_ONLY) else found


class Draw:
    """Random tensors and numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = torch.Generator().manual_seed(seed)

    def int(self, low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=self.rng))

    def pick(self, values: Sequence[Any]) -> Any:
        return values[self.int(0, len(values))]

    def t(
        self, shape: Sequence[int], dtype: str = "float32", low: float = -2.0, high: float = 2.0
    ) -> Any:
        """A tensor whose dims may lie in another order, or be broadcast."""
        kind = getattr(torch, dtype)
        dims = list(range(len(shape)))
        style = self.int(0, 4)
        if style == 1:
            dims = torch.randperm(len(shape), generator=self.rng).tolist()
        made = [shape[d] for d in dims]
        if style == 2 and len(shape) > 1:
            made[0] = min(made[0], 1)
        if kind == torch.bool:
            x = torch.rand(made, generator=self.rng) < 0.5
        elif kind.is_floating_point:
            x = (torch.rand(made, generator=self.rng) * (high - low) + low).to(kind)
        else:
            x = torch.randint(int(low), int(high) + 1, made, generator=self.rng).to(kind)
        back = [dims.index(k) for k in range(len(shape))]
        return x.permute(back).expand(tuple(shape))

    def shape(self) -> tuple[int, ...]:
        return self.pick(SHAPES)

    def float(self) -> str:
        return self.pick(FLOATS)

    def number(self) -> str:
        return self.pick((*FLOATS, *INTS))


def _other(d: Draw, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts with another."""
    cut = d.int(0, len(shape) + 1)
    return tuple(1 if d.int(0, 3) == 0 else n for n in shape[cut:])


Make = Callable[[Draw], "tuple[Any, ...]"]


def unary(low: float = -2.0, high: float = 2.0, kinds: Sequence[str] = FLOATS) -> Make:
    return lambda d: (d.t(d.shape(), d.pick(kinds), low, high),)


def binary(kinds: Sequence[str] = (*FLOATS, *INTS), low: float = -2.0, same: bool = False) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape, kind = d.shape(), d.pick(kinds)
        other = kind if same else d.pick(kinds)
        return d.t(shape, kind, low), d.t(_other(d, shape), other, low)

    return make


def positive(kinds: Sequence[str]) -> Make:
    """The second operand is not 0."""

    def make(d: Draw) -> tuple[Any, ...]:
        shape, kind = d.shape(), d.pick(kinds)
        y = d.t(_other(d, shape), kind, 1, 4)
        return d.t(shape, kind, -9, 9), torch.where(d.t(y.shape, "bool"), y, -y)

    return make


def scalar(value: Any, kinds: Sequence[str] = (*FLOATS, *INTS)) -> Make:
    return lambda d: (d.t(d.shape(), d.pick(kinds)), value)


def axis_of(d: Draw, x: Any) -> int:
    return d.int(-x.dim(), x.dim())


def reduction(kinds: Sequence[str] = FLOATS, empty: bool = True) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape = d.pick([s for s in SHAPES if s and (empty or 0 not in s)])
        x = d.t(shape, d.pick(kinds))
        return x, sorted({axis_of(d, x) % x.dim() for _ in range(2)}), bool(d.int(0, 2))

    return make


def along(kinds: Sequence[str] = FLOATS) -> Make:
    """One axis; no two elements are equal, so that positions are clear."""

    def make(d: Draw) -> tuple[Any, ...]:
        shape = d.pick([s for s in SHAPES if s and 0 not in s])
        count = int(torch.Size(shape).numel())
        order = torch.randperm(count, generator=d.rng).reshape(shape)
        x = order.to(getattr(torch, d.pick(kinds)))
        return x, axis_of(d, x), bool(d.int(0, 2))

    return make


def whole(kinds: Sequence[str] = FLOATS, empty: bool = True) -> Make:
    shapes = [s for s in SHAPES if empty or 0 not in s]
    return lambda d: (d.t(d.pick(shapes), d.pick(kinds)),)


def with_axis(kinds: Sequence[str] = FLOATS, empty: bool = True) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape = d.pick([s for s in SHAPES if s and (empty or 0 not in s)])
        x = d.t(shape, d.pick(kinds))
        return x, axis_of(d, x)

    return make


def image(rank: int, *rest: Any, size: int = 7, kinds: Sequence[str] = ("float32",)) -> Make:
    return lambda d: (d.t((2, 3, *[size] * rank), d.pick(kinds)), *rest)


def shaped(
    shape: Sequence[int], *rest: Any, kinds: Sequence[str] = (*FLOATS, *INTS, "bool")
) -> Make:
    return lambda d: (d.t(shape, d.pick(kinds)), *rest)


def keyword(make: Make, **kwargs: Any) -> Callable[[Draw], tuple[tuple[Any, ...], dict[str, Any]]]:
    return lambda d: (make(d), kwargs)  # pyright: ignore[reportReturnType]


def cases(target: str, makers: Sequence[Any], seed: int) -> Iterator[Case]:
    """Calls of one op, one for each maker and round."""
    for k, make in enumerate(makers):
        for turn in range(max(1, 4 // len(makers))):
            made = make(Draw(seed * 1000 + 10 * k + turn))
            if len(made) == 2 and isinstance(made[1], dict):
                yield Case(target, made[0], made[1])
            else:
                yield Case(target, made)

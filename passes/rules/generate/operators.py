"""What the generator enumerates: operators as specifications, and the small worlds they meet in.

An operator is an op of the graph dialect and its attributes, nothing else: shapes and values come
from the dialect's own inference and meaning. Attributes may be computed from the operands, which
are called `a`, `b`, `c` there. A world is a set of variables and constants at fixed small shapes,
all of one size where they may be, so that whatever could fit fits; on which shapes a rule really
holds is found out later (generalise.py), on shapes that differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..exact import Shape
from ..rule import Attributes, AttrValue, Node, Size

POSITIONS = ("a", "b", "c")


@dataclass(frozen=True)
class Operator:
    """An op with the values its attributes take.

    Attributes:
        results: how many it has; each is a term of its own.
        inputs_only: it is applied to variables alone (as TASO's enlarge).
    """

    op: str
    arity: int
    attributes: Attributes = ()
    results: int = 1
    inputs_only: bool = False


def operator(
    op: str, arity: int, *, results: int = 1, inputs_only: bool = False, **attributes: AttrValue
) -> Operator:
    """An operator, its attributes as keywords."""
    return Operator(op, arity, tuple(sorted(attributes.items())), results, inputs_only)


@dataclass(frozen=True)
class World:
    """Variables and constants at fixed shapes, and the operators that meet there.

    Attributes:
        extents: the only ones that results may have; keeps the world finite.
    """

    name: str
    variables: tuple[tuple[str, Shape], ...]
    operators: tuple[Operator, ...]
    extents: frozenset[int]
    constants: tuple[Node, ...] = ()


def _half(axis: int) -> tuple[Size, Size]:
    return (Size(f"a.shape[{axis}] // 2"), Size(f"a.shape[{axis}] - a.shape[{axis}] // 2"))


def concat(axis: int) -> Operator:
    """Two operands one after the other."""
    return operator("concat", 2, axis=axis)


def split(axis: int) -> Operator:
    """Two halves; the sizes become explicit when a rule is made general."""
    return operator("split", 1, results=2, axis=axis, sizes=_half(axis))


def conv(stride: int = 1, same: bool = True, arity: int = 2) -> Operator:
    """Grouped as the shapes say; with `arity` 3 it adds a bias."""
    pad = (Size("b.shape[2] // 2"), Size("b.shape[3] // 2"))
    return operator(
        "conv",
        arity,
        strides=(stride, stride),
        dilations=(1, 1),
        groups=Size("a.shape[1] // b.shape[1]"),
        pads=(*pad, *pad) if same else (0, 0, 0, 0),
    )


def pool(kind: str, stride: int = 1) -> Operator:
    """3 by 3, its pads counted (an average over the window's size is linear)."""
    made = operator(
        kind,
        1,
        kernel=(3, 3),
        strides=(stride, stride),
        dilations=(1, 1),
        pads=(1, 1, 1, 1),
    )
    if kind != "avg_pool":
        return made
    return replace(made, attributes=(("count_include_pad", True), *made.attributes))


ADD, MUL, RELU = operator("add", 2), operator("mul", 2), operator("relu", 1)
MATMUL = operator("matmul", 2)
TRANSPOSE = operator("transpose", 1, perm=(1, 0))
ENLARGE = operator("pad", 1, inputs_only=True, pads=(0, 0, 1, 1, 0, 0, 1, 1))
SCALE = operator("broadcast", 1, inputs_only=True, dims=(), shape=(2, 2))

_SQUARE, _WIDE, _TALL = (2, 2), (2, 4), (4, 2)
_IMAGE, _KERNEL, _DEPTH = (1, 2, 3, 3), (2, 2, 3, 3), (2, 1, 3, 3)
_MATRIX = frozenset({2, 4})
_TENSOR = frozenset({1, 2, 3, 4})


def _named(names: str, shape: Shape) -> tuple[tuple[str, Shape], ...]:
    return tuple((name, shape) for name in names)


def _constant(op: str) -> Node:
    return Node(op, (), (("channels", 2), ("kernel", (3, 3))))


WORLDS: tuple[World, ...] = (
    World(
        "matrices",
        _named("abcd", _SQUARE),
        (ADD, MUL, MATMUL, TRANSPOSE, RELU),
        _MATRIX,
        (Node("identity_matrix", (), (("size", 2),)), Node("ones", (), (("shape", (2, 2)),))),
    ),
    World(
        "matrix-layouts",
        _named("ab", _SQUARE),
        (
            MATMUL,
            operator("matmul", 2, transpose_a=True),
            operator("matmul", 2, transpose_b=True),
            operator("matmul", 2, transpose_a=True, transpose_b=True),
            TRANSPOSE,
        ),
        _MATRIX,
    ),
    World(
        "matrix-parts",
        _named("abcd", _SQUARE),
        (MATMUL, ADD, MUL, RELU, TRANSPOSE, concat(0), concat(1), split(0), split(1)),
        _MATRIX,
    ),
    World(
        "halves",
        (*_named("a", _WIDE), *_named("b", _TALL), *_named("c", _SQUARE)),
        (ADD, MATMUL, RELU, concat(0), concat(1), split(0), split(1)),
        _MATRIX,
    ),
    World(
        "scales",
        (*_named("ab", _SQUARE), ("s", ()), ("t", ())),
        (MUL, ADD, MATMUL, TRANSPOSE, SCALE),
        _MATRIX,
    ),
    World(
        "images",
        (*_named("xy", _IMAGE), *_named("wv", _KERNEL)),
        (ADD, RELU, conv(), concat(0), concat(1), split(0), split(1)),
        _TENSOR,
    ),
    World(
        "strides",
        (*_named("xy", _IMAGE), *_named("wv", _KERNEL), ("s", ())),
        (
            ADD,
            RELU,
            conv(2),
            conv(1, same=False),
            operator("broadcast", 1, inputs_only=True, dims=(), shape=_IMAGE),
        ),
        _TENSOR,
    ),
    World(
        "kernels",
        (*_named("x", _IMAGE), *_named("w", _KERNEL), *_named("p", (2, 2, 1, 1))),
        (ADD, RELU, conv(), ENLARGE, concat(0), split(1)),
        _TENSOR,
        (_constant("identity_kernel"),),
    ),
    World(
        "biased-kernels",
        (("x", _IMAGE), ("w", (2, 2, 1, 1)), ("b", (2,))),
        (conv(arity=3), ENLARGE),
        _TENSOR,
    ),
    World(
        "pools",
        (*_named("xy", _IMAGE), *_named("w", _DEPTH)),
        (ADD, RELU, conv(), pool("avg_pool"), pool("max_pool"), concat(1), split(1)),
        _TENSOR,
        (_constant("pool_kernel"),),
    ),
    World(
        "merged-groups",
        (("x", _IMAGE), ("w", (2, 1, 2, 2)), ("b", (2,))),
        (MUL, conv(same=False), conv(same=False, arity=3), concat(1)),
        _TENSOR,
        (Node("pair_mask", (), (("groups", 2), ("shape", (2, 2, 2, 2)))),),
    ),
    World(
        "groups",
        (*_named("xy", (1, 2, 2, 2)), *_named("wv", (2, 1, 1, 1)), *_named("u", (2, 2, 1, 1))),
        (ADD, conv(), concat(0), concat(1), split(0), split(1)),
        _TENSOR,
    ),
    World(
        "biases",
        (*_named("x", (1, 2, 2, 2)), *_named("wv", (2, 2, 1, 1)), *_named("bc", (2,))),
        (ADD, conv(), conv(arity=3), concat(0), concat(1), split(1)),
        _TENSOR,
    ),
)

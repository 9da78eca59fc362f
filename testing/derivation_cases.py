"""The operators for which EinNet's paper derives programs, as scopes, each with the expected
result.

For tests and benchmarks; the search does not know them. Every case has the paper's shape and a
small one with the same structure, on which each state can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from ..dialects.canonical_types import Guard, Leaf, Read, Scope, leaf
from ..dialects.index import iterators
from ..lowering.algebra_to_kernel.table import Match, matches
from ..passes.derivation.body import Link, build
from ..passes.derivation.replace import Roots, scopes_of

Goal = Callable[[Match], bool]


@dataclass(frozen=True)
class Case:
    """A program, and the library call that some derived program must consist of.

    Attributes:
        text: the paper's name of the derivation.
        depth: rule applications within which it must be found.
        goal: true for a match in the wanted program, and false for every match in the given one.
        roots: at the paper's shape; `small` has the same structure.
    """

    name: str
    text: str
    depth: int
    goal: Goal
    roots: Roots
    small: Roots

    def reached(self, roots: Sequence[Scope]) -> Match | None:
        """The match that meets the goal, if a program has one."""
        found = (m for scope in scopes_of(roots) for m in matches(scope))
        return next((m for m in found if self.goal(m)), None)


def constants(roots: Sequence[Scope]) -> list[str]:
    """Tokens of the weights among the leaves: labels that begin with a K."""
    leaves = {f.source for s in scopes_of(roots) for t in s.expr.terms for f in _reads(t.factors)}
    return sorted(s.token for s in leaves if isinstance(s, Leaf) and s.label.startswith("K"))


def _reads(factors: Sequence[object]) -> list[Read]:
    return [f for f in factors if isinstance(f, Read)]


def _tensor(name: str, *shape: int) -> Leaf:
    return leaf(name, shape, f32, label=name)


def _scope(shape: Sequence[int], sums: Sequence[int], *factors: Link) -> Scope:
    return build(shape, sums, factors, f32)


# --- operators ----------------------------------------------------------------------------------


def conv(
    data: Sequence[int], features: int, taps: Sequence[int], stride: int = 1, dilation: int = 1
) -> Scope:
    """A 2-D convolution, padded so that stride 1 keeps the size."""
    images, channels, height, width = data
    n, f, h, w, c, r, s = iterators(7)
    x, k = _tensor("X", *data), _tensor("K", features, channels, *taps)
    up, left = ((t - 1) // 2 * dilation for t in taps)
    position = (h * stride + r * dilation - up, w * stride + s * dilation - left)
    out = [(size - 1) // stride + 1 for size in (height, width)]
    factors = Read(x, (n, c, *position)), Read(k, (f, c, r, s))
    return _scope([images, features, *out], [channels, *taps], *factors)


def deconv(data: Sequence[int], features: int, taps: int, by_guards: bool) -> Scope:
    """A 2-D transposed convolution of stride 2 and padding 1.

    With `by_guards` it sums over all input positions, and guards select those that reach an output;
    else each output gathers from floor-divided positions.
    """
    images, channels, size, _ = data
    x, k = _tensor("X", *data), _tensor("K", channels, features, taps, taps)
    out = [images, features, *[(size - 1) * 2 - 2 + taps] * 2]
    if by_guards:
        n, f, h, w, c, i, j, r, s = iterators(9)
        guards = Guard(h + 1 - i * 2 - r, 1), Guard(w + 1 - j * 2 - s, 1)
        factors = Read(x, (n, c, i, j)), Read(k, (c, f, r, s)), *guards
        return _scope(out, [channels, size, size, taps, taps], *factors)
    n, f, h, w, c, r, s = iterators(7)
    up, left = h + 1 - r, w + 1 - s
    factors = Read(x, (n, c, up // 2, left // 2)), Read(k, (c, f, r, s))
    guards = Guard(up % 2, 1), Guard(left % 2, 1)
    return _scope(out, [channels, taps, taps], *factors, *guards)


def band(batch: int, rows: int, inner: int, width: int, dilation: int) -> Scope:
    """Products of each row with the rows in a dilated band around it."""
    q, t = _tensor("Q", batch, rows, inner), _tensor("T", batch, rows, inner)
    b, m, w, k = iterators(4)
    factors = Read(q, (b, m, k)), Read(t, (b, m + (w - width) * dilation, k))
    return _scope([batch, rows, 2 * width + 1], [inner], *factors)


def conv1d(data: Sequence[int], features: int, taps: int, across: bool, name: str) -> Scope:
    """A convolution with taps along the width (across) or along the height."""
    images, channels, height, width = data
    n, f, h, w, c, r = iterators(6)
    x, k = _tensor("X", *data), _tensor(name, features, channels, taps)
    offset = r - (taps - 1) // 2
    position = (h, w + offset) if across else (h + offset, w)
    factors = Read(x, (n, c, *position)), Read(k, (f, c, r))
    return _scope([images, features, height, width], [channels, taps], *factors)


def conv1d_pair(data: Sequence[int], features: Sequence[int], taps: int) -> Roots:
    """Two convolutions of one input, along the width and along the height."""
    first, second = features
    return (conv1d(data, first, taps, True, "K1"), conv1d(data, second, taps, False, "K2"))


# --- goals --------------------------------------------------------------------------------------


def _product(k: int, side: int, name: str = "gemm") -> Goal:
    """A matrix product of operands used in place, one side having this extent."""

    def goal(match: Match) -> bool:
        sides = {match.extent(match.groups["m"]), match.extent(match.groups["n"])}
        matches_goal = match.kernel.name == name and all(match.direct)
        return matches_goal and match.extent(match.groups["k"]) == k and side in sides

    return goal


def _window(
    taps: int, channels: int, features: int | None = None, stride: int = 1, dilation: int = 1
) -> Goal:
    """An ungrouped convolution over two windows of these taps."""

    def goal(match: Match) -> bool:
        if match.kernel.name != "conv" or len(match.windows) != 2 or match.groups["batch"]:
            return False
        extents = match.contraction.extents
        matches_goal = all(
            (extents[w.inner], w.stride, abs(w.dilation)) == (taps, stride, dilation)
            for w in match.windows
        )
        cin, cout = match.extent(match.groups["k"]), match.extent(match.groups["n"])
        return matches_goal and cin == channels and features in (None, cout)

    return goal


def _is_gemm_after_copies(match: Match) -> bool:
    return match.kernel.name == "gemm" and not all(match.direct)


def _is_undilated_band(match: Match) -> bool:
    return match.kernel.name == "band-matmul" and abs(match.windows[0].dilation) == 1


def _is_grouped_conv(match: Match) -> bool:
    return match.kernel.name == "conv" and bool(match.groups["batch"])


def _is_conv_of_one_window(match: Match) -> bool:
    taps = [match.contraction.extents[w.inner] for w in match.windows]
    return match.kernel.name == "conv" and len(taps) == 1 and not match.groups["batch"]


def _is_batched_gemm(match: Match) -> bool:
    return match.kernel.name == "batched-gemm"


def all_cases() -> tuple[Case, ...]:
    """The paper's cases, in the order of its figures and tables."""
    conv3 = (conv((1, 512, 7, 7), 512, (3, 3)),)
    small3 = (conv((1, 2, 5, 4), 2, (3, 3)),)
    wide = (conv((16, 32, 224, 224), 1, (5, 5)),)
    conv5 = Case(
        "conv5x5", "conv3x3, 4 times the outputs", 4, _window(3, 32, 4), wide,
        (conv((2, 2, 6, 5), 1, (5, 5)),),
    )  # fmt: skip
    gather = Case(
        "transposed-gather", "gemm + selective sum", 4, _product(448, 256 * 16),
        (deconv((16, 448, 2, 2), 256, 4, False),), (deconv((2, 2, 3, 3), 2, 4, False),),
    )  # fmt: skip
    delta = Case(
        "transposed-delta", "gemm + selective sum", 4, _product(448, 256 * 16),
        (deconv((16, 448, 2, 2), 256, 4, True),), (deconv((2, 2, 3, 3), 2, 4, True),),
    )  # fmt: skip
    dilated = Case(
        "conv3x3-dilated", "regular conv3x3", 4, _window(3, 512),
        (conv((1, 512, 14, 14), 256, (3, 3), dilation=2),),
        (conv((1, 2, 7, 6), 2, (3, 3), dilation=2),),
    )  # fmt: skip
    g2bmm = Case(
        "band-dilated", "plain band matmul", 4, _is_undilated_band,
        (band(8, 10000, 64, 512, 4),), (band(2, 9, 3, 2, 2),),
    )  # fmt: skip
    gcn = Case(
        "gcn-lines", "one gemm, outputs stacked", 5, _product(512, 42 * 7),
        conv1d_pair((1, 512, 7, 7), (21, 21), 7), conv1d_pair((1, 2, 4, 5), (3, 2), 3),
    )  # fmt: skip
    strided = Case(
        "conv3x3-stride2", "conv2x2, stride 1, 4 times the channels", 4, _window(2, 256),
        (conv((1, 64, 56, 56), 64, (3, 3), stride=2),),
        (conv((1, 2, 7, 6), 2, (3, 3), stride=2),),
    )  # fmt: skip
    stem = Case(
        "conv7x7-stride2", "conv4x4, stride 1, 4 times the channels", 4, _window(4, 12),
        (conv((1, 3, 224, 224), 64, (7, 7), stride=2),),
        (conv((1, 2, 9, 8), 2, (7, 7), stride=2),),
    )  # fmt: skip
    return (
        Case("conv3x3", "gemm + offset-reduce", 4, _product(512, 512 * 9), conv3, small3),
        Case("conv3x3-im2col", "layout + gemm", 0, _is_gemm_after_copies, conv3, small3),
        conv5,
        gather,
        delta,
        dilated,
        g2bmm,
        gcn,
        strided,
        stem,
        Case("conv1x1", "gemm", 0, _product(512, 512), (conv((1, 512, 7, 7), 512, (1, 1)),),
             (conv((1, 2, 5, 4), 2, (1, 1)),)),
        Case("conv3x3-grouped", "group conv, input duplicated", 4, _is_grouped_conv, conv3, small3),
        Case("conv3x3-smaller", "conv with fewer taps", 0, _is_conv_of_one_window, conv3, small3),
        Case("conv3x3-batched", "batched matmul", 4, _is_batched_gemm, conv3, small3),
    )  # fmt: skip


def stacked() -> Roots:
    """A dilated convolution read by another one past its edges: replacing it needs guards."""
    n, f, h, w, c, r = iterators(6)
    inner = conv((1, 2, 7, 5), 2, (3, 1), dilation=2)
    k = _tensor("K2", 2, 2, 3)
    factors = Read(inner, (n, c, h + r - 1, w)), Read(k, (f, c, r))
    return (_scope([1, 2, 7, 5], [2, 3], *factors),)

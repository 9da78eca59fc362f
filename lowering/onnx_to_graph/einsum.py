"""Einsum as transposes and batched products, operand by operand from the left."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import shape_of
from .node import OnnxNode
from .values import NotNative


def einsum(node: OnnxNode) -> list[SSAValue]:
    """Any equation: diagonals, sums, transposes and batched products."""
    terms, result = _parse(node)
    values = node.operands()
    for k, term in enumerate(terms[: len(values)]):
        values[k], terms[k] = _diagonal(node, values[k], term)
    if len(terms) != len(values):
        raise UserError(
            "the equation has another number of terms", expected=len(values), found=len(terms)
        )
    sizes = _sizes(terms, values)
    value, labels = values[0], terms[0]
    for k in range(1, len(values)):
        later = set(result).union(*terms[k + 1 :])
        value, labels = _pair(node, value, labels, values[k], terms[k], later, sizes)
    value, labels = _summed(node, value, labels, set(result))
    value = node.transpose(value, [labels.index(c) for c in result if c in labels])
    return [node.reshape(value, [sizes[c] for c in result])]


def _parse(node: OnnxNode) -> tuple[list[str], str]:
    """Labels of each operand and of the result; `...` becomes Greek letters."""
    equation = node.string("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node):
        raise UserError(
            "the equation has another number of terms", expected=len(node), found=len(terms)
        )
    spare = list(map(chr, range(0x3B1, 0x3B1 + 24)))
    dots = max(
        (len(node.shape(k)) - len(t.replace("...", "")) for k, t in enumerate(terms) if "..." in t),
        default=0,
    )
    if dots > len(spare):
        raise NotNative
    full: list[str] = []
    for k, term in enumerate(terms):
        count = len(node.shape(k)) - len(term.replace("...", ""))
        full.append(
            term.replace("...", "".join(spare[dots - count : dots])) if count >= 0 else term
        )
        if len(full[-1]) != len(node.shape(k)):
            raise UserError(f"term '{term}' does not fit rank {len(node.shape(k))}")
    if not arrow:
        letters = "".join(terms).replace("...", "")
        right = "..." * ("..." in left) + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    result = right.replace("...", "".join(spare[:dots]))
    bad = next((c for c in result if c not in "".join(full) or result.count(c) > 1), None)
    if bad is not None or any(c not in string.ascii_letters for c in right.replace("...", "")):
        raise UserError(f"the equation '{equation}' is malformed")
    return full, result


def _diagonal(node: OnnxNode, x: SSAValue, labels: str) -> tuple[SSAValue, str]:
    """An operand without repeated labels: of two dims one stays, where both indices are equal.

    Of a matrix of n rows, flat, the diagonal is every (n + 1)-th element.
    """
    while (label := next((c for c in labels if labels.count(c) > 1), None)) is not None:
        first, second = [k for k, c in enumerate(labels) if c == label][:2]
        rest = [k for k in range(len(labels)) if k not in (first, second)]
        shape = shape_of(x)
        n = shape[first]
        if shape[second] != n:
            raise UserError(f"label '{label}' has two sizes", expected=n, found=shape[second])
        kept = [shape[k] for k in rest]
        flat = node.reshape(node.transpose(x, [*rest, first, second]), [*kept, n * n])
        starts, ones = [0] * (len(rest) + 1), [1] * len(rest)
        x = node.build.slice(flat, starts=starts, sizes=[*kept, n], steps=[*ones, n + 1])
        labels = "".join(labels[k] for k in rest) + label
    return x, labels


def _sizes(terms: Sequence[str], values: Sequence[SSAValue]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for label, n in zip(term, shape_of(value), strict=True):
            known = sizes.setdefault(label, n)
            if 1 not in (known, n) and known != n:
                raise UserError(f"label '{label}' has two sizes", expected=known, found=n)
            sizes[label] = max(known, n) if 0 not in (known, n) else 0
    return sizes


def _summed(node: OnnxNode, x: SSAValue, labels: str, keep: Iterable[str]) -> tuple[SSAValue, str]:
    axes = [k for k, c in enumerate(labels) if c not in keep]
    if not axes:
        return x, labels
    kept = "".join(c for c in labels if c in keep)
    return node.build.reduce_sum(x, axes=axes, keep_dims=False), kept


def _pair(
    node: OnnxNode,
    a: SSAValue,
    left: str,
    b: SSAValue,
    right: str,
    later: set[str],
    sizes: dict[str, int],
) -> tuple[SSAValue, str]:
    """Contract two operands: batch labels first, then a product of matrices."""
    a, left = _summed(node, a, left, later | set(right))
    b, right = _summed(node, b, right, later | set(left))
    a = node.build.expand(
        a, [sizes[c] if c in right else n for c, n in zip(left, shape_of(a), strict=True)]
    )
    b = node.build.expand(
        b, [sizes[c] if c in left else n for c, n in zip(right, shape_of(b), strict=True)]
    )
    batch = [c for c in left if c in right and c in later]
    inner = [c for c in left if c in right and c not in later]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    local = dict(zip(left, shape_of(a), strict=True)) | dict(zip(right, shape_of(b), strict=True))

    def matrix(x: SSAValue, labels: str, one: list[str], two: list[str]) -> SSAValue:
        x = node.transpose(x, [labels.index(c) for c in [*batch, *one, *two]])
        shape = [*(local[c] for c in batch), *(math.prod(local[c] for c in g) for g in (one, two))]
        return node.reshape(x, shape)

    y = node.build.matmul(matrix(a, left, rows, inner), matrix(b, right, inner, columns))
    labels = "".join([*batch, *rows, *columns])
    return node.reshape(y, [local[c] for c in labels]), labels

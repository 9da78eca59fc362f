"""Merge chains of splits along one axis into one split. Pairwise merging of products makes them."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Block, SSAValue

from ...dialects.graph.shaping import SplitOp


def flatten_splits(block: Block) -> None:
    """Merge a split and a split of one of its parts."""
    for op in list(block.ops):
        outer = op.x.owner if isinstance(op, SplitOp) and op.x.has_one_use() else None
        if isinstance(op, SplitOp) and isinstance(outer, SplitOp) and _same_axis(outer, op):
            _flatten(outer, op)


def _same_axis(outer: SplitOp, inner: SplitOp) -> bool:
    return outer.value("axis") == inner.value("axis")


def _flatten(outer: SplitOp, inner: SplitOp) -> None:
    at = outer.results.index(inner.x)  # pyright: ignore[reportArgumentType]
    sizes, parts = list(outer.ints("sizes")), len(inner.results)
    sizes[at : at + 1] = inner.ints("sizes")
    one: Any = SplitOp(outer.x, axis=outer.value("axis"), sizes=sizes, results=len(sizes))
    one.attributes |= outer.attributes
    one.location = outer.location
    assert outer.parent is not None
    outer.parent.insert_op_before(one, outer)
    results = list(one.results)
    inner_results, outer_results = list(inner.results), list(outer.results)
    for old, new in zip(inner_results, results[at : at + parts], strict=True):
        _replace(old, new)
    rest = results[:at] + results[at + parts :]
    for old, new in zip(outer_results[:at] + outer_results[at + 1 :], rest, strict=True):
        _replace(old, new)
    inner.detach()
    inner.drop_all_references()
    outer.detach()
    outer.drop_all_references()


def _replace(old: SSAValue, new: SSAValue) -> None:
    new.name_hint = old.name_hint
    old.replace_all_uses_with(new)

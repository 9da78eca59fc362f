"""Calls made from others: other dtypes, a dim more or less, nothing in a dim, gaps in memory.

Needs torch.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from support.aten_calls import traced
from support.aten_cases import Case

Change = Callable[[Any], Any]


def _gaps(x: Any) -> Any:
    """The same numbers with gaps in memory: between rows, or between the numbers of one row."""
    if not x.dim():
        return x
    width = x.shape[-1]
    wide = torch.empty((*x.shape[:-1], 2 * width + 1), dtype=x.dtype)
    return (wide[..., 1 : width + 1] if x.dim() > 1 else wide[1::2]).copy_(x)


def _cast(kind: Any) -> Change:
    return lambda x: x.to(kind) if x.is_floating_point() else x


def _long(x: Any) -> Any:
    return (4 * x).to(torch.int64) if x.is_floating_point() else x


CHANGES: dict[str, Change] = {
    "gaps": _gaps,
    "float64": _cast(torch.float64),
    "bfloat16": _cast(torch.bfloat16),
    "int64": _long,
    "int32": lambda x: _long(x).to(torch.int32) if x.is_floating_point() else x,
    "one dim more": lambda x: x[None],
    "one dim less": lambda x: x[0],
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[..., :0],
}


def variants(case: Case) -> Iterator[tuple[str, Case]]:
    """The variants of a call that torch takes: of all its tensors, or else of the first alone."""
    for name, change in CHANGES.items():
        for alone in (False, True):
            made = _changed(case, change, alone)
            if made is not None:
                yield name, made
                break


def _changed(case: Case, change: Change, alone: bool) -> Case | None:
    leaves, spec = torch.utils._pytree.tree_flatten((list(case.args), case.kwargs))
    tensors = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    try:
        for k in tensors[:1] if alone else tensors:
            leaves[k] = change(leaves[k])
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, spec)
        made = Case(case.target, args, kwargs)
        if _shapes(made.result()) != _shapes(_fake(made)):
            return None
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return None  # torch refuses such a call, or its fake tensors do
    return made if tensors else None


def _fake(case: Case) -> Any:
    """The results by fake tensors, which some ops give other shapes when nothing is in them."""
    module, _ = traced(case)
    (output,) = [n for n in module.graph.nodes if n.op == "output"]
    return torch.fx.map_arg(output.args[0], lambda n: n.meta["val"])


def _shapes(results: Any) -> list[Any]:
    found = [t.shape for t in torch.utils._pytree.tree_leaves(results)]
    if not found:
        raise ValueError("a call without results")
    return found

"""A call of an ATen op as an FX graph. Needs torch."""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from support.aten_cases import Case


def traced(case: Case) -> tuple[Any, list[Any]]:
    """The graph of a call, and its tensors."""
    leaves, tree = tree_flatten((list(case.args), case.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors: Any) -> Any:
        given = list(leaves)
        for k, tensor in zip(places, tensors, strict=True):
            given[k] = tensor
        args, kwargs = tree_unflatten(given, tree)
        return case.result(args, kwargs)

    tensors = [leaves[k] for k in places]
    module = make_fx(call, tracing_mode="fake")(*tensors)
    module.graph.eliminate_dead_code()
    return module, tensors

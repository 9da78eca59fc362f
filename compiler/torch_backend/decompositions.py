"""Which ATen ops torch decomposes before we see them."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions

from ...lowering.aten_to_graph.table import TABLE


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's core decompositions, without those of ops that the table has."""
    found = core_aten_decompositions().items()
    return {op: f for op, f in found if str(op).removeprefix("aten.") not in TABLE}

"""torch's symbolic sizes as extents of ours, which a `ShapeEnv` decides about."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Mod, PythonMod

from ...dialects.extent_math import make_guard, symbol, value_at
from ...dialects.extents import Extent, ShapeEnv
from ...lowering.aten_to_graph.aten import UnsupportedAten


class Symbols:
    """The symbols of a graph and what is known of them.

    Args:
        sizes: an example of each, by torch's name.
        ranges: what torch allows, by symbol: each has `lower` and `upper`.
    """

    def __init__(self, sizes: Mapping[str, int], ranges: Mapping[Any, Any]) -> None:
        self.env = ShapeEnv(sizes=dict(sizes))
        for name in sizes:
            found = next((r for s, r in ranges.items() if str(s) == name), None)
            low, high = (0, sympy.oo) if found is None else (found.lower, found.upper)
            self.env.add(make_guard(symbol(name) - max(0, int(low)), ">="))
            if sympy.sympify(high).is_Integer:
                self.env.add(make_guard(int(high) - symbol(name), ">="))

    def size(self, value: Any) -> Any:
        """A number, or a symbolic one as an extent.

        Raises:
            UnsupportedAten: an expression of other functions than sums, products and divisions.
        """
        return self._of(value.node.expr) if isinstance(value, torch.SymInt) else int(value)

    def example(self, value: Any) -> int:
        """The number that a size is for the example."""
        found = self.size(value)
        return value_at(found.expr, self.env.sizes) if isinstance(found, Extent) else found

    def _of(self, expr: Any) -> Any:
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol and str(expr) in self.env.sizes:
            return self.env.dim(str(expr))
        parts = [self._of(e) for e in expr.args]
        match expr:
            case sympy.Add():
                return sum(parts[1:], parts[0])
            case sympy.Mul():
                return math.prod(parts)
            case sympy.Pow() if isinstance(parts[1], int) and parts[1] > 0:
                return math.prod([parts[0]] * parts[1])
            case FloorDiv() | CleanDiv():
                return parts[0] // parts[1]
            case Mod() | PythonMod():
                return parts[0] % parts[1]
            case _:
                raise UnsupportedAten(f"the size {expr}")


class SizesOf:
    """Where a graph's arguments have the symbols of its sizes."""

    def __init__(self, placeholders: Sequence[Any]) -> None:
        self.places: dict[str, tuple[int, int | None]] = {}
        for k, node in enumerate(placeholders):
            value = node.meta.get("val")
            dims = enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]
            for d, size in dims:
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    self.places.setdefault(str(size.node.expr), (k, d))

    def __call__(self, args: Sequence[Any]) -> dict[str, int]:
        """The number of each symbol."""
        found = self.places.items()
        return {s: args[k] if d is None else args[k].shape[d] for s, (k, d) in found}

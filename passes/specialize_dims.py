"""specialize-dims: give symbolic dims their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.context import WeightContext
from ..dialects.errors import UserError
from ..dialects.floats import BITS, Floats
from ..dialects.specialize import specialize


@dataclass(frozen=True)
class SpecializeDims(ModulePass):
    """Replace symbolic dims by numbers, in types and properties; guards on them are checked.

    Args:
        dims: `name=number` for every symbol.

    Before:

        func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>)
            -> tensor<?xf32, #graph.dims<4 * n>> attributes {isoform.guards = ["n <= 512"]} {
          %y = graph.reshape %x {shape = [4 * n]} : tensor<?xf32, #graph.dims<4 * n>>
          func.return %y : tensor<?xf32, #graph.dims<4 * n>>
        }

    After `specialize-dims{dims="n=3"}`:

        func.func @main(%x: tensor<3x4xf32>) -> tensor<12xf32> {
          %y = graph.reshape %x {shape = [12]} : tensor<12xf32>
          func.return %y : tensor<12xf32>
        }
    """

    name = "specialize-dims"
    floats: ClassVar[Floats] = BITS
    dims: tuple[str, ...]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Bind all symbols. Raises UserError as `specialize`."""
        weights = ctx.weights if isinstance(ctx, WeightContext) else None
        specialize(op, dict(_pair(text) for text in self.dims), weights)


def _pair(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdigit():
        raise UserError(f"'{text}' gives no size", hint='dims="batch=2","seq=16"')
    return name, int(number)

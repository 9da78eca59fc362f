"""lower-precision: compute products in half floats or bytes. The result is another program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import Floats, Label
from ...dialects.program import add_provenance
from .products import KINDS, products

RULE = "lower-precision"


@dataclass(frozen=True)
class LowerPrecision(ModulePass):
    """Lower the precision of float32 products and convolutions of `@main`: no equivalence.

    To a half float the operands are rounded, sums are taken in float32, and rounded once. To bytes
    (`int8-dynamic`) the data are quantised over their range, as ONNX's DynamicQuantizeLinear does,
    weights by one scale for each column or filter; `integer-products` then multiplies bytes.
    Products in the bodies of loops and branches stay.

    Args:
        to: bf16, f16 or int8-dynamic.
        ops: which of the products, by their number in the program's order; None for all.

    Before:

        %y = graph.matmul %x, %w : tensor<4x6xf32>

    After `lower-precision{to="bf16"}`:

        %0 = graph.cast %x {to = bf16} : tensor<4x8xbf16>
        %1 = graph.cast %w {to = bf16} : tensor<8x6xbf16>
        %2 = graph.matmul %0, %1 : tensor<4x6xbf16>
        %y = graph.cast %2 {to = f32} : tensor<4x6xf32>
    """

    name = RULE
    floats: ClassVar[Floats] = Floats(Label.VALUES, "as the lower precision has them")
    anchor: ClassVar[str] = "builtin.module"
    to: str
    ops: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace the products. Raises UserError for an unknown kind, or a number of none."""
        at = f"pass '{RULE}'"
        if self.to not in KINDS:
            hint = did_you_mean(self.to, KINDS) or f"known are {', '.join(KINDS)}"
            raise UserError(f"no precision '{self.to}'", where=at, hint=hint)
        found = products(op, self.to)
        chosen = range(len(found)) if self.ops is None else sorted(set(self.ops))
        for number in chosen:
            if not 0 <= number < len(found):
                expected = f"numbers below {len(found)}" if found else "none"
                raise UserError(f"no product {number} to lower", where=at, expected=expected)
        for number in chosen:
            product = found[number]
            value = KINDS[self.to](product)
            value.name_hint = product.result.name_hint
            assert isinstance(value.owner, Operation)
            add_provenance(value.owner, [RULE])
            product.result.replace_all_uses_with(value)
            Rewriter.erase_op(product)


__all__ = ["RULE", "LowerPrecision"]

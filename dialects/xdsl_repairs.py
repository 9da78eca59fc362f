"""What the pinned xDSL reads wrongly, repaired in one place.

xDSL 0.75 prints infinities, NaN and some float32 numbers of a `dense<...>` literal in hexadecimal,
as MLIR does, and reads them back as integers: `dense<[0x7F800000]>` becomes 2139095040.0. MLIR
means the number's bits, and so do we.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import AnyFloat
from xdsl.parser import AttrParser

_Element: Any = AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage]
_to_type = _Element.to_type


def _to_type_by_bits(element: Any, parser: AttrParser, type_: Any) -> Any:
    if isinstance(type_, AnyFloat) and element.span.text.startswith("0x"):
        raw = int(element.value).to_bytes(type_.size, "little")
        return type_.unpack(raw, 1)[0]
    return _to_type(element, parser, type_)


def install() -> None:
    """Read hexadecimal floats in `dense` literals as bits, from now on."""
    _Element.to_type = _to_type_by_bits

"""A node as a kernel sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..types import Array


@dataclass(frozen=True)
class NodeCall:
    """Operands (None where omitted), given attributes, the opset, named results."""

    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any]
    version: int
    wanted: Sequence[bool]

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def __getitem__(self, k: int) -> Array:
        """Operand `k`. Raises ValueError where it is omitted."""
        found = self.inputs[k] if k < len(self.inputs) else None
        if found is None:
            raise ValueError(f"operand {k} is missing")
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; strings as text."""
        return self.attributes.get(name, default)


Kernel: TypeAlias = Callable[[NodeCall], Sequence[Array]]

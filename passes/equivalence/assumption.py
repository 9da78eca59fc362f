"""What a verdict depends on that it does not prove."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """A statement that the verdict depends on, an identity of real functions for example."""

    name: str
    statement: str

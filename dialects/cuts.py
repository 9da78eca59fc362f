"""Outputs whose size depends on data: a count beside each says where its padding begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .types import Array

Cuts: TypeAlias = "Mapping[str, tuple[str, int]]"
"""For each output that is a number of rows: the output that has so many, and along which dim."""


def cut(outputs: Mapping[str, Array], cuts: Cuts) -> dict[str, Array]:
    """The outputs without padding, and without the numbers of rows that say where it begins."""
    found = {name: array for name, array in outputs.items() if name not in cuts}
    for count, (output, dim) in cuts.items():
        before = (slice(None),) * dim
        found[output] = found[output][(*before, slice(int(outputs[count])))].copy()
    return found


__all__ = ["Cuts", "cut"]

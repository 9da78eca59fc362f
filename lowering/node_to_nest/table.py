"""Every ONNX op that a loop nest runs: op type -> what writes the nests of a node."""

from __future__ import annotations

from collections.abc import Mapping

from . import bounded, elementwise, extremes, sampling, scans, scatters, sorting, windows
from .node import Writer

TABLE: Mapping[str, Writer] = {
    **elementwise.WRITERS,
    **scans.WRITERS,
    **extremes.WRITERS,
    **sorting.WRITERS,
    **scatters.WRITERS,
    **sampling.WRITERS,
    **windows.WRITERS,
}

BOUNDED: Mapping[str, Writer] = bounded.WRITERS
"""Of the domain `isoform`: the rows of results are padded, and their number is the last result."""

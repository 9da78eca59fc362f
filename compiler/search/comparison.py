"""How a result compares with its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...passes.search_result import StopReason


@dataclass(frozen=True)
class Comparison:
    """Seconds of input and result, how they were found, and why if not measured.

    Attributes:
        before, rival: the input with direct kernels, and as well tuned as the result.
        algorithms: where the kernels of the faster one are not the direct ones, for a report.
        compiling: seconds that one compilation of the result took, which no budget counts.
        missed: what ended the comparison before it was one: the result cannot be returned.
    """

    before: float
    after: float  # the result
    tuned_input: float  # the input, as well tuned
    kind: str  # "measured" or "modelled"
    note: str = ""  # why not measured
    algorithms: tuple[dict[str, Any], ...] = ()
    compiling: float = 0.0
    missed: StopReason | None = None

    @property
    def refused(self) -> str:
        """Why the result is not returned, where it is not."""
        return self.note if self.missed is not None else f"{self.kind} slower"

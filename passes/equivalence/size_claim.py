"""For which sizes a verdict on programs with symbolic dims holds, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .assumption import Assumption

if TYPE_CHECKING:
    from ...dialects.extent_math import Sizes

SAME_FORMULA = Assumption(
    "one-formula-in-the-sizes",
    "what an op computes is one formula in its sizes: from the stated sizes on, a proof that is "
    "the same at every size drawn is the same at every other",
)

# Cases without a proof that the text lists.
_SHOWN = 5


def sizes_text(sizes: Sizes) -> str:
    """For example `batch=2, seq=16`."""
    return ", ".join(f"{name}={n}" for name, n in sorted(sizes.items()))


@dataclass(frozen=True)
class SizeCase:
    """Some sizes and what is known of them.

    Attributes:
        where: which, for example `batch >= 4, seq = 1`.
        how: "proved" (for each of them), "compared" (it is one size), "different" or "unknown".
        tried: the sizes at which the programs were compared.
    """

    where: str
    how: str
    tried: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class LeftOut:
    """Sizes at which one of the programs does not exist, with its error."""

    sizes: str
    reason: str


@dataclass(frozen=True)
class SizeClaim:
    """What is known of all sizes.

    Attributes:
        symbols: the names of the sizes.
        guards: nothing is claimed of sizes for which one of them does not hold.
        cases: together, all other sizes.
        left_out: sizes among them at which there is nothing to compare.
    """

    symbols: tuple[str, ...]
    guards: tuple[str, ...]
    cases: tuple[SizeCase, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def gap(self) -> str:
        """Why it is not all sizes; "" if it is."""
        open_ = [case for case in self.cases if case.how == "unknown"]
        if not open_:
            return "" if self.cases else "there is no size to compare at"
        tried = [size for case in self.cases for size in case.tried]
        at = f"equal at the {len(tried)} sizes tried, not shown for all: " if tried else ""
        return f"{at}where {open_[0].where}, {open_[0].reason}"

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "symbols": list(self.symbols),
            "guards": list(self.guards),
            "cases": [
                {"where": c.where, "how": c.how, "tried": list(c.tried), "reason": c.reason}
                for c in self.cases
            ],
            "left_out": [{"sizes": o.sizes, "reason": o.reason} for o in self.left_out],
        }

    def text(self) -> str:
        """The largest regions and what is not known; how many cases there are besides."""
        lines = [f"sizes: {', '.join(self.symbols)}"]
        if self.guards:
            lines[0] += f", where {', '.join(self.guards)}"
        large = [c for c in self.cases if c.how == "proved" and " = " not in c.where]
        lines += [f"  {c.where}: proved (compared at {'; '.join(c.tried)})" for c in large]
        open_ = [c for c in self.cases if c.how in ("unknown", "different")]
        lines += [f"  {c.where}: {c.how}{c.reason and ': '}{c.reason}" for c in open_[:_SHOWN]]
        if len(open_) > _SHOWN:
            lines.append(f"  {len(open_) - _SHOWN} more such cases (--json lists them)")
        smaller = len(self.cases) - len(large) - len(open_)
        if smaller:
            single = sum(case.how == "compared" for case in self.cases)
            lines.append(
                f"  smaller sizes: {single} compared one by one, {smaller - single} cases with "
                "some fixed and the others proved"
            )
        lines += [f"  left out: {o.sizes} ({o.reason})" for o in self.left_out]
        return "\n".join(lines)
